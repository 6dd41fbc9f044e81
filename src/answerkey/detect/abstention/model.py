"""Decides whether a reply declines: says that it is not known, not on record or not possible, and states no answer.

A linear model of its words and of a few features: what the question asks for, which kinds of words by which replies decline
(`cues.toml`) the reply has, and whether it states a figure or a name that the question does not have, before, after or without
them. `tools/fit/fit_abstention.py` fits the weights.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from math import log
from typing import NamedTuple

from answerkey.detect.model import Model, shipped_model

__all__ = ["Model", "declines", "features_of", "probability", "words_of"]

# A reply at least this likely to decline does.
DECLINES_FROM = 0.5
# The rest of a longer reply is not read.
_LONGEST = 4000
# Kinds of cues that decline by themselves.
_DECLINING = frozenset({"unable", "unknown", "failed", "refuses"})
# Kinds of cues in questions.
_ASKED = frozenset({"asks_value", "asks_amount", "asks_person"})
# In these lists of cues a text may be anywhere: the languages are written without spaces, or with prefixes.
_JOINED = "joined"
# In a cue, up to three words of any kind.
_GAP, _LONGEST_GAP = "~", 3

_CONTRAST = re.compile(
    r"[,—–-] (?=(?:but|though|although|still|however|yet|aber|doch|mais|pero|aunque|ma|però|mas|porém|maar|men|mutta|ale|lecz"
    r"|но|але|ama|fakat|tapi|tetapi|nhưng|de|αλλά|dar)\b)"
)
_SENTENCE = re.compile(r"[^\n.!?。！？;]*(?:\.(?=[^\s.])[^\n.!?。！？;]*)*[.!?。！？;\n]*")
_FIGURE = re.compile(r"\d+(?:[.,:/]\d+)*")
# Whole replies that decline, too short for the model.
_BARE = re.compile(r"\W*(?:n/a|not available|not on (?:file|record))\W*", re.IGNORECASE)
# Between a word that declines and a figure: what makes the figure a statement.
_STATES = re.compile(r"[,:;=(\u2013\u2014$€£¥₹]")
_WORD = re.compile(rf"{_FIGURE.pattern}|\w[\w'/-]*")
# A word with a capital that does not begin a sentence.
_NAME = re.compile(r"(?<=[\w,:»\"] )[A-ZÀ-ÞΑ-ΩА-Я][\w.'-]+")
_AND = re.compile(
    r"\b(?:and|und|et|y|e|en|och|og|sekä|i|a|oraz|и|і|та|ve|dan|và|și|és|και)\b|,|、|和|と|및|ו"
)
_YES_OR_NO = re.compile(
    r"\W*(?:yes|no|yep|nope|ja|nein|nee|nej|oui|non|sí|si|sì|não|sim|tak|nie|ano|ne|да|нет|так|ні|evet|hayır|kyllä|ei|igen|nem"
    r"|はい|いいえ|是的|不是|네|아니요|نعم|لا|כן|לא|हाँ|हां|जी|ya|tidak|có|không|ναι|όχι|da|nu)(?!\w)[,.!:;،、，。—–-]",
    re.IGNORECASE,
)


class _Cue(NamedTuple):
    """Words by which replies decline."""

    kind: str
    words: tuple[str, ...]


class _Cues(NamedTuple):
    """All cues: those of words by the first two letters, and by kind those of languages that are written without spaces."""

    by_beginning: dict[str, list[_Cue]]
    joined: dict[str, re.Pattern[str]]


class _Sentence(NamedTuple):
    """What one sentence of a reply has."""

    cues: frozenset[str]
    # It has a figure or a name that the question does not have.
    has_figure: bool
    has_name: bool
    # The first such figure comes after the last cue that declines.
    figure_is_last: bool
    is_question: bool
    repeats_question: bool

    @property
    def declines(self) -> bool:
        return not self.cues.isdisjoint(_DECLINING) or self.denies_record

    @property
    def denies_record(self) -> bool:
        return {"denies", "records"} <= self.cues

    @property
    def speaker_declines(self) -> bool:
        return "speaker" in self.cues and not self.cues.isdisjoint({"unable", "unknown", "refuses", "denies"})


def declines(question: str, reply: str | None, model: Model | None = None) -> bool:
    """Whether a reply declines to answer a question. `model` replaces the shipped one.

    >>> declines("Who signed it?", "There is no record of who signed it.")
    True
    >>> declines("Who signed it?", "Maria Lopez signed it on 3 May.")
    False
    """
    return reply is not None and probability(question, reply, model) >= DECLINES_FROM


def probability(question: str, reply: str, model: Model | None = None) -> float:
    """How likely a reply declines."""
    if _BARE.fullmatch(reply):
        return 1.0
    features = features_of(question, reply)
    if not features:
        return 0.0
    return (model or shipped_model("answerkey.detect.abstention")).weigh(words_of(reply), features)


def words_of(reply: str) -> list[str]:
    """The words that the model weighs."""
    return _straight(reply[:_LONGEST]).lower().split()


def features_of(question: str, reply: str) -> dict[str, float]:
    """The features of a reply that the model weighs; empty for a reply without words."""
    text = _straight(reply.strip()[:_LONGEST])
    question_text = _straight(question).lower()
    sentences = list(_sentences(text, question_text))
    if not sentences:
        return {}
    declining = [number for number, sentence in enumerate(sentences) if sentence.declines]
    first = declining[0] if declining else len(sentences)
    last = declining[-1] if declining else -1
    # Advice on where else to look may name figures and people without answering.
    stating = [
        (number, sentence)
        for number, sentence in enumerate(sentences)
        if not sentence.is_question and "refers" not in sentence.cues
    ]
    before = any(sentence.has_figure for number, sentence in stating if number < first)
    after = any(sentence.has_figure for number, sentence in stating if number > last) or (
        bool(declining) and sentences[last].figure_is_last
    )
    named_after = any(sentence.has_name for number, sentence in stating if number > last)
    several = _AND.search(question_text) is not None
    cues = frozenset().union(*(sentence.cues for sentence in sentences))
    plain = [sentence for _, sentence in stating if not sentence.cues & (_DECLINING | {"denies"})]
    denying = [sentence for sentence in sentences if sentence.cues & (_DECLINING | {"denies"})]
    asked = (
        frozenset(_find_cues([word.lower() for word in _WORD.findall(question_text)], question_text)) & _ASKED
    )
    value, amount, person = (f"asks_{kind}" in asked for kind in ("value", "amount", "person"))
    only_denies = bool(denying) and not declining
    # What is missing is what was asked for.
    missing = any(sentence.repeats_question and not sentence.has_figure for sentence in denying)
    flags = {
        **{f"cue {kind}": kind in cues for kind in _cues().joined.keys() - _ASKED},
        "asks for a value": value,
        "only denies, a value asked": only_denies and value,
        "only denies, a value asked, nothing stated": only_denies and value and not after and not before,
        "only denies, yes or no asked": only_denies and not value,
        "declines, yes or no asked": bool(declining) and not value,
        "declines, a value asked": bool(declining) and value,
        "what is asked is missing": missing,
        "what is asked is missing, a value asked": missing and value,
        "what is asked is missing, last": bool(denying)
        and denying[-1] is sentences[-1]
        and denying[-1].repeats_question
        and not denying[-1].has_figure,
        "denies last": bool(denying) and denying[-1] is stating[-1][1] if stating else False,
        "denies first": bool(denying) and denying[0] is sentences[0],
        "denies first, a value asked": bool(denying) and denying[0] is sentences[0] and value,
        "no denial": not denying,
        "states a figure without denying, an amount asked": amount
        and any(sentence.has_figure for sentence in plain),
        "states a figure while denying, an amount asked": amount
        and any(sentence.has_figure for sentence in denying),
        "states no figure, an amount asked": amount
        and not any(sentence.has_figure for sentence in sentences),
        "states a name without denying, a person asked": person
        and any(sentence.has_name for sentence in plain),
        "states no name, a person asked": person and not any(sentence.has_name for sentence in sentences),
        "says none of an amount": amount
        and any("nothing" in sentence.cues and not sentence.declines for sentence in sentences)
        and not any(sentence.denies_record for sentence in sentences),
        "denies a record, yes or no asked": not value
        and any(sentence.denies_record for sentence in sentences),
        "short denial, yes or no asked": only_denies and not value and len(sentences) == 1,
        "cue unable or unknown": not cues.isdisjoint({"unable", "unknown"}),
        "cue only failed": cues & _DECLINING == {"failed"},
        "speaker declines": any(sentence.speaker_declines for sentence in sentences),
        "record is denied": any(sentence.denies_record for sentence in sentences),
        "declines": bool(declining),
        "declines first": first == 0,
        "declines last": bool(declining) and last == len(sentences) - 1,
        "declines, several asked": bool(declining) and several,
        "states figure before": bool(declining) and before,
        "states figure before, several asked": bool(declining) and before and several,
        "states figure after": bool(declining) and after,
        "states figure only": not declining and after,
        "states name after": bool(declining) and named_after,
        "states name only": not declining and named_after,
        "states in the question's words": any(
            sentence.repeats_question and (sentence.has_figure or sentence.has_name) for sentence in plain
        ),
        "guesses after declining": bool(declining) and "guesses" in cues and after,
        "nothing denied": not cues & (_DECLINING | {"denies"}),
        "asks": sentences[-1].is_question,
        "asks without declining": sentences[-1].is_question and not declining,
        "begins with yes or no": _YES_OR_NO.match(text) is not None,
    }
    return {
        **{name: float(flag) for name, flag in flags.items()},
        "share of declining sentences": len(declining) / len(sentences),
        "share of plain sentences": len(plain) / len(sentences),
        "length": log(1 + len(text)) / 5,
    }


def _sentences(text: str, question_text: str) -> Iterator[_Sentence]:
    question_figures = set(_FIGURE.findall(question_text))
    question_stems = _stems(question_text)
    # What follows a "but" is another statement.
    for found in _SENTENCE.finditer(_CONTRAST.sub("; ", text)):
        sentence = found.group().strip()
        spans = [word.span() for word in _WORD.finditer(sentence)]
        words = [sentence[start:end].lower() for start, end in spans]
        if not words:
            continue
        last_cues = _find_cues(words, sentence)
        figures = [
            number
            for number, word in enumerate(words)
            # "None of the 22 documents" states no answer.
            if word[0].isdigit()
            and word not in question_figures
            and not _is_record(words[number + 1 : number + 2])
        ]
        names = [name for name in _NAME.findall(sentence) if not _stems(name.lower()) & question_stems]
        declined = max((end for kind, end in last_cues.items() if kind in _DECLINING), default=len(words))
        yield _Sentence(
            cues=frozenset(last_cues),
            has_figure=bool(figures),
            has_name=bool(names),
            figure_is_last=bool(figures)
            and figures[-1] > declined
            # "No entry for the house at 900 Main Street" states nothing; "no entry: 900" does.
            and _STATES.search(sentence, spans[declined][0], spans[figures[-1]][0]) is not None,
            is_question=sentence.endswith(("?", "？", "؟")),
            repeats_question=not question_stems.isdisjoint(_stems(sentence.lower())),
        )


def _find_cues(words: Sequence[str], sentence: str) -> dict[str, int]:
    """The kinds of cues in a sentence, each with the number of the word at which its last one begins."""
    cues = _cues()
    found: dict[str, int] = {}
    for start, word in enumerate(words):
        for cue in cues.by_beginning.get(word[:2], ()):
            if _matches(cue.words, words, start):
                found[cue.kind] = start
    if not sentence.isascii():
        for kind, pattern in cues.joined.items():
            if pattern.search(sentence):
                found.setdefault(kind, len(words) - 1)
    return found


def _is_record(words: Sequence[str]) -> bool:
    return bool(words) and "records" in _find_cues(words, "")


def _matches(cue: Sequence[str], words: Sequence[str], start: int) -> bool:
    """Whether a cue's words are there from a word on."""
    for number, expected in enumerate(cue):
        if expected == _GAP:
            rest = cue[number + 1 :]
            return any(_matches(rest, words, later) for later in range(start, start + _LONGEST_GAP + 1))
        if start >= len(words):
            return False
        word = words[start]
        if not (word.startswith(expected[:-1]) if expected[-1] == "*" else word == expected):
            return False
        start += 1
    return True


def _straight(text: str) -> str:
    return text.replace("’", "'").replace("\u00a0", " ")


def _stems(text: str) -> set[str]:
    """The beginnings of the longer words of a text in lower case, which other forms of a word share."""
    return {word[:5] for word in _WORD.findall(text) if len(word) > 3}


@cache
def _cues() -> _Cues:
    table = tomllib.loads((files("answerkey.detect.abstention") / "cues.toml").read_text("utf-8"))
    by_beginning: dict[str, list[_Cue]] = {}
    joined: dict[str, re.Pattern[str]] = {}
    for kind, lists in table.items():
        joined[kind] = re.compile("|".join(map(re.escape, lists[_JOINED])))
        for words in (cue.split() for name, cues in lists.items() if name != _JOINED for cue in cues):
            by_beginning.setdefault(words[0][:2], []).append(_Cue(kind, tuple(words)))
    return _Cues(by_beginning, joined)
