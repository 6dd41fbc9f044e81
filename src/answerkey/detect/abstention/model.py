"""Decides whether a reply declines: says that it is not known, not on record or not possible, and states no answer.

A linear model weighs the words and cues (`cues.toml`: kinds of words by which replies decline) of the reply, and of each of its
sentences alone. Boosted trees decide by its log-odds and by what the sentence that is likeliest to decline, the first one and
the last one have: cues, words of the question, figures and names that the question does not have.
`tools/fit/fit_abstention.py` fits both. A list (`whole_replies.toml`) decides the shortest replies.
"""

import gzip
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from answerkey.detect.model import Model as WordModel
from answerkey.detect.model import Weights, shipped_model
from answerkey.text.patterns import Trees

__all__ = [
    "Model",
    "Weighed",
    "begins_with_yes",
    "declines",
    "numbers_of",
    "probability",
    "read_reply",
    "shipped",
    "weighed",
]

_FOLDER = Path(__file__).parent
# A reply at least this likely to decline does: at most 2% of the plain answers by authors left out of the fit are.
DECLINES_FROM = 0.52
# The rest of a longer reply is not read.
_LONGEST = 4000
# Kinds of cues that deny, and that the trees see of a sentence.
_DENYING = frozenset({"unable", "unknown", "failed", "refuses", "denies"})
_SEEN = (*sorted(_DENYING), "records", "states", "speaker", "refers", "guesses", "nothing", "numbers")
# Kinds of cues in questions.
_ASKED = ("asks_value", "asks_amount", "asks_person", "asks_way")
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
# Longer replies are not in `whole_replies.toml`. One to six words of such a reply, and without a figure.
_LONGEST_WHOLE = 120
_WORDS, _PLAIN_WORDS = r"[^\s,;:.!?]+( [^\s,;:.!?]+){0,5}", r"[^\s\d,;:.!?]+( [^\s\d,;:.!?]+){0,5}"
# To such a question "please ask Ann" is an answer.
_ASKS_WHOM_TO_ASK = re.compile(r"\b(?:ask|contact|call|reach)\b", re.IGNORECASE)
_WORD = re.compile(rf"{_FIGURE.pattern}|\w[\w'/-]*")
# A word with a capital that does not begin a sentence, or is followed by another one.
_CAPITAL = r"[A-ZÀ-ÞΑ-ΩА-Я][\w.'-]+"
_NAME = re.compile(rf"(?<=[\w,:»\"] ){_CAPITAL}|^{_CAPITAL}(?= {_CAPITAL})")
_AND = re.compile(
    r"\b(?:and|und|et|y|e|en|och|og|sekä|i|a|oraz|и|і|та|ve|dan|và|și|és|και)\b|,|、|和|と|및|ו"
)
_YES = "yes|yep|ja|oui|si|sí|sì|sim|tak|ano|да|так|evet|kyllä|igen|はい|是的|네|نعم|כן|हाँ|हां|जी|ya|có|ναι|da|correct|right"
_NO = (
    "no|nope|nein|nee|nej|non|não|nie|ne|нет|ні|hayır|ei|nem|いいえ|不是|아니요|لا|לא|नहीं|tidak|không|όχι|nu"
)
_YES_OR_NO = re.compile(rf"\W*(?:{_YES}|{_NO})(?!\w)[,.!:;،、，。—–-]", re.IGNORECASE)
_BEGINS_WITH_YES = re.compile(rf"\W*(?:{_YES})(?!\w)[,.!:;،、，。—–-]", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_][\w'-]*")
# Words of one topic share their beginning.
_STEM = 5
# Words of questions that say nothing about their topic.
_QUESTION_WORD = re.compile(
    r"wh(?:at|en|ere|ich|om?|ose)|do(?:es)?|did|ha(?:ve|s|d)|will|[wcs]h?ould|this|that|with|from|yours?|about|many|much|long"
    r"|the(?:re|ir|y|m|n)?|into|were|been|being|than|some|please|tell|give|need|know|list|show"
    r"|and|for|was|are|not|our|his|her|its|all|any|who|how|why|can|had|you|out|get|got|per|let|one|now"
    r"|der|die|das|den|dem|des|ein(?:e[rnms]?)?|und|ist|wie|wer|les|une|est|qui|que|los|las|del|una|por|para|con|che|gli|sono"
    r"|het|een|voor|det|ett|och|som|för|att|til|med|jest|czy|что|как|для|или|это|cum|este|bir|yang|và|của"
)


class _Cue(NamedTuple):
    """Words by which replies decline."""

    kind: str
    words: tuple[str, ...]


class _Cues(NamedTuple):
    """All cues: those of words by the first two letters, and by kind those of languages that are written without spaces."""

    by_beginning: dict[str, list[_Cue]]
    joined: dict[str, re.Pattern[str]]


class _Question(NamedTuple):
    """What a question asks for."""

    # Beginnings of its words: of names, and of all others.
    topic: frozenset[str]
    names: frozenset[str]
    figures: frozenset[str]
    # Kinds of cues: an amount, a person, or any value.
    kinds: frozenset[str]
    asks_several: bool


class _Sentence(NamedTuple):
    """What one sentence of a reply has."""

    words: list[str]
    cues: frozenset[str]
    # The share and number of the question's words, and the share of its names.
    topic_share: float
    topic_words: int
    name_share: float
    # Words, figures and names that are not in the question.
    others: int
    figures: int
    names: int
    # The words before the first such figure: an answer often begins with it.
    figure_after: int
    is_question: bool
    length: int
    # The words before the first cue that denies.
    denied_after: int

    @property
    def states(self) -> bool:
        """Advice on where else to look may name figures and people without answering."""
        return not self.is_question and "refers" not in self.cues

    @property
    def denies(self) -> bool:
        return not self.cues.isdisjoint(_DENYING)


class Reading(NamedTuple):
    """A reply to a question, sentence by sentence."""

    question: _Question
    sentences: list[_Sentence]
    size: int
    begins_with_yes_or_no: bool


class Weighed(NamedTuple):
    """What the linear model reads of a text: its words in lower case and its other features."""

    words: list[str]
    features: dict[str, float]


class Model:
    """The fitted weights and trees."""

    def __init__(self, weights: Weights, trees: Trees) -> None:
        self.weights, self.trees = weights, trees
        self._words = WordModel(weights)

    def probability(self, reading: Reading) -> float:
        """How likely a reply declines."""
        whole, *sentences = self.log_odds(reading)
        numbers = numbers_of(reading, whole, sentences)
        return 1 / (1 + exp(-self.trees.score(list(numbers.values()))))

    def log_odds(self, reading: Reading) -> list[float]:
        """The log-odds of the linear model: of the whole reply, and of each sentence."""
        chances = [self._words.weigh(*text) for text in weighed(reading)]
        return [log(chance / (1 - chance)) for chance in chances]


@cache
def shipped() -> Model:
    """The model of this version."""
    packed = (_FOLDER / "trees.json.gz").read_bytes()
    trees = msgspec.json.decode(gzip.decompress(packed), type=Trees)
    return Model(shipped_model(_FOLDER).weights, trees)


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
    if (
        len(reply) <= _LONGEST_WHOLE
        and _whole_replies().fullmatch(reply)
        and not _ASKS_WHOM_TO_ASK.search(question)
    ):
        return 1.0
    reading = read_reply(question, reply)
    return (model or shipped()).probability(reading) if reading.sentences else 0.0


def begins_with_yes(text: str) -> bool:
    """Whether a text begins with a word for yes."""
    return _BEGINS_WITH_YES.match(text) is not None


def read_reply(question: str, reply: str) -> Reading:
    """A reply to a question, sentence by sentence; a reply without words has none."""
    text = _straight(reply.strip()[:_LONGEST])
    its_question = _read_question(_straight(question))
    return Reading(
        its_question, list(_sentences(text, its_question)), len(text), _YES_OR_NO.match(text) is not None
    )


def weighed(reading: Reading) -> list[Weighed]:
    """What the linear model reads: of the whole reply, then of each sentence."""
    kind = "a value asked" if "asks_value" in reading.question.kinds else "yes or no asked"

    def read(words: list[str], cues: frozenset[str]) -> Weighed:
        features = {name: 1.0 for cue in cues for name in (f"cue {cue}", f"cue {cue}, {kind}")}
        return Weighed(words, {**features, kind: 1.0})

    sentences = reading.sentences
    whole = read(
        [word for sentence in sentences for word in sentence.words],
        frozenset().union(*(sentence.cues for sentence in sentences)),
    )
    return [whole, *(read(sentence.words, sentence.cues) for sentence in sentences)]


def numbers_of(reading: Reading, whole: float, log_odds: Sequence[float]) -> dict[str, float]:
    """What the trees read, by name, from a reply and the log-odds of the linear model: of the whole and of each sentence."""
    question, sentences = reading.question, reading.sentences
    place = max(range(len(sentences)), key=log_odds.__getitem__)
    likeliest = sentences[place]
    denying = [sentence for sentence in sentences if sentence.denies]
    plain = [sentence for sentence in sentences if not sentence.denies and not sentence.is_question]
    numbers = {
        "whole": whole,
        "likeliest": log_odds[place],
        "first": log_odds[0],
        "last": log_odds[-1],
        "sentences": len(sentences),
        "length": log(1 + reading.size),
        **{kind: kind in question.kinds for kind in _ASKED},
        "asks for several": question.asks_several,
        "begins with yes or no": reading.begins_with_yes_or_no,
        "sentences before": place,
        "sentences that deny": len(denying),
        "plain sentences": len(plain),
        "first that denies": sentences.index(denying[0]) if denying else len(sentences),
        "topic, denied": _most(sentence.topic_share for sentence in denying),
        "topic, plain": _most(sentence.topic_words for sentence in plain),
        "topic, likeliest beside the others": likeliest.topic_share
        - max(0, _most(one.topic_share for number, one in enumerate(sentences) if number != place)),
    }
    valued = [(_value(question, sentence), sentence) for sentence in plain if sentence.states]
    numbers |= {
        "value, plain": _most(value for value, _ in valued),
        "value, plain, topic": _most(value > 0 and sentence.topic_share for value, sentence in valued),
        "value, likeliest": _value(question, likeliest),
        "others, plain": _most(sentence.others for _, sentence in valued),
    }
    for name, part in (("before", sentences[:place]), ("after", sentences[place + 1 :])):
        stating = [sentence for sentence in part if sentence.states]
        numbers[f"figures {name}"] = sum(sentence.figures for sentence in stating)
        numbers[f"names {name}"] = sum(sentence.names for sentence in stating)
        numbers[f"topic {name}"] = _most(sentence.topic_share for sentence in stating)
        numbers[f"topic with a figure {name}"] = _most(
            sentence.topic_share for sentence in stating if sentence.figures
        )
        numbers[f"guesses {name}"] = any("guesses" in sentence.cues for sentence in part)
    for name, sentence in (("likeliest", likeliest), ("first", sentences[0]), ("last", sentences[-1])):
        # Words and cues say what a sentence is; figures and the question's words, what about.
        values = sentence._asdict().items()
        numbers |= {f"{name}: {key}": value for key, value in values if key not in {"words", "cues"}}
        numbers |= {f"{name}: {cue}": cue in sentence.cues for cue in _SEEN}
    return numbers


def _value(question: _Question, sentence: _Sentence) -> int:
    """How much a sentence states of what is asked for."""
    if "asks_amount" in question.kinds:
        return sentence.figures + ("numbers" in sentence.cues)
    return sentence.names if "asks_person" in question.kinds else sentence.others


def _most(values: Iterator[float]) -> float:
    return max(values, default=-1)


@lru_cache(maxsize=64)
def _read_question(question: str) -> _Question:
    names: set[str] = set()
    topic: set[str] = set()
    for found in _LETTERS.finditer(question):
        word = found.group().lower()
        if len(word) > 2 and not _QUESTION_WORD.fullmatch(word):
            is_name = found.group()[0].isupper() and found.start() > 0 and not question.isupper()
            (names if is_name else topic).add(word[:_STEM])
    lower = question.lower()
    return _Question(
        frozenset(topic - names),
        frozenset(names),
        frozenset(_FIGURE.findall(lower)),
        frozenset(_find_cues([word.lower() for word in _WORD.findall(lower)], lower)).intersection(_ASKED),
        _AND.search(lower) is not None,
    )


def _sentences(text: str, question: _Question) -> Iterator[_Sentence]:
    known = question.topic | question.names
    # What follows a "but" is another statement.
    for found in _SENTENCE.finditer(_CONTRAST.sub("; ", text)):
        sentence = found.group().strip()
        words = [word.lower() for word in _WORD.findall(sentence)]
        if not words:
            continue
        places = _find_cues(words, sentence)
        cues = frozenset(places)
        stems = {word[:_STEM] for word in words if len(word) > 2}
        topic_words = len(stems & question.topic)
        figures = [
            number
            for number, word in enumerate(words)
            # "None of the 22 documents" states no answer.
            if word[0].isdigit()
            and word not in question.figures
            and "records" not in _find_cues(words[number + 1 : number + 2], "")
        ]
        yield _Sentence(
            words=sentence.lower().split(),
            cues=cues,
            topic_share=topic_words / max(1, len(question.topic)),
            topic_words=topic_words,
            name_share=len(stems & question.names) / max(1, len(question.names)),
            others=sum(
                len(word) > 3 and not word[0].isdigit() and word[:_STEM] not in known and not _is_cue(word)
                for word in words
            ),
            figures=len(figures),
            names=sum(name.lower()[:_STEM] not in known for name in _NAME.findall(sentence)),
            figure_after=figures[0] if figures else len(words),
            is_question=sentence.endswith(("?", "？", "؟")),
            length=len(words),
            denied_after=min((places[cue] for cue in cues & _DENYING), default=len(words)),
        )


def _find_cues(words: Sequence[str], sentence: str) -> dict[str, int]:
    """The kinds of cues in a sentence, each with the number of words before its first."""
    cues = _cues()
    found: dict[str, int] = {}
    for start, word in enumerate(words):
        for cue in cues.by_beginning.get(word[:2], ()):
            if cue.kind not in found and _matches(cue.words, words, start):
                found[cue.kind] = start
    if not sentence.isascii():
        for kind, pattern in cues.joined.items():
            if kind not in found and (place := pattern.search(sentence)):
                found[kind] = sentence.count(" ", 0, place.start())
    return found


@lru_cache(maxsize=4096)
def _is_cue(word: str) -> bool:
    return _QUESTION_WORD.fullmatch(word) is not None or bool(_find_cues([word], word))


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


def _word_lists(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / name).read_text("utf-8"))


@cache
def _whole_replies() -> re.Pattern[str]:
    phrases = [phrase for phrases in _word_lists("whole_replies.toml").values() for phrase in phrases]
    either = "|".join(phrases).replace("@", _WORDS).replace("~", _PLAIN_WORDS).replace("(", "(?:")
    # Some apologise before or after.
    sorry = r"(?:sorry|unfortunately|i'm afraid|leider|désolé|lo siento)"
    return re.compile(rf"\W*(?:{sorry}\W+)?(?:(?:{either})(?!\w)\W*){{1,2}}(?:{sorry}\W*)?", re.IGNORECASE)


@cache
def _cues() -> _Cues:
    table: dict[str, dict[str, list[str]]] = _word_lists("cues.toml")
    by_beginning: dict[str, list[_Cue]] = {}
    joined: dict[str, re.Pattern[str]] = {}
    for kind, lists in table.items():
        joined[kind] = re.compile("|".join(map(re.escape, lists[_JOINED])))
        for words in (cue.split() for name, cues in lists.items() if name != _JOINED for cue in cues):
            by_beginning.setdefault(words[0][:2], []).append(_Cue(kind, tuple(words)))
    return _Cues(by_beginning, joined)
