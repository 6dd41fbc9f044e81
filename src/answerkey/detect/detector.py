"""Decides from a reply's text alone whether it is an error instead of an answer.

1. One finite automaton looks for marks of forms, for whole forms and for words of failure. Most replies have none of them and are
   answers, unless they break off.
2. Certain forms (`form_table.py`) are charged.
3. A reply that is an error message through and through (every sentence of it, by what its words mean: `words.txt`) is charged
   unless the fitted model (`model.py`) finds that unlikely.
4. The model charges a reply that reports a failure where it is surer than one false accusation in 200 answers; from one half on
   it suspects, which costs nothing.

"Der opstod en fejl. Prøv igen senere." reports a fault that happened and says to try again, and no word of it is about anything
else. An answer about an error has other words, explains, or states a value.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from answerkey.detect.form_table import (
    EXPLAINS,
    FAILURE_TOKEN,
    FORM_TABLE,
    MOJIBAKE,
    NOTHING,
    OTHER_TOKEN,
    UNDECODED,
    Form,
    compile_form,
    compile_set,
)
from answerkey.detect.model import Model, shipped_model
from answerkey.text.normalise import Remembered
from answerkey.text.numbers import CURRENCY_SIGNS
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import decode_json

__all__ = ["SUSPECTED_FROM", "DetectedFailure", "detect_failure", "detect_failures", "plain_text"]

SUSPECTED_FROM = 0.5
# An error message below this probability is not charged if words of it are unknown.
LEAST_LIKELY = 0.3
# Below this, it is not one.
_PLAIN_BELOW = 0.01
# Most sentences that neither report nor accompany a failure in a reply that the model charges.
MOST_OTHERS = 1
_SURROGATE = lazy("[\ud800-\udfff]")


class DetectedFailure(msgspec.Struct, frozen=True):
    """Why a reply counts as an error, or is suspected to be one."""

    # A response error of the scoring standard: empty, null, error_text, trace, malformed or truncated.
    kind: str
    # The words that decided, or what is wrong with the reply.
    message: str
    # Span of these words in the reply; empty where the reply as a whole is wrong.
    start: int = 0
    end: int = 0
    # What decided: the name of a form, or the words with the largest weights.
    because: tuple[str, ...] = ()
    # How likely it is an error; 1 where a form is certain.
    probability: float = 1.0
    # False: suspected only, which costs nothing.
    charged: bool = True


_NULL = DetectedFailure("null", "there is no reply", because=("null",))
_EMPTY = DetectedFailure("empty", "the reply is empty", because=("empty",))


def detect_failures(texts: Sequence[str | None]) -> list[DetectedFailure | None]:
    """The failure that each reply's text shows or suggests; None for an answer."""
    return [detect_failure(text) for text in texts]


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows or suggests; None for an answer. `model` replaces the shipped weights."""
    if text is None:
        return _NULL
    stripped = plain_text(text)
    if is_blank(stripped):
        return _EMPTY
    hits = scan(stripped)
    found = _decide(stripped, hits, model) if hits else truncated_form(stripped)
    if found is None or not found.end:
        return found
    offset = len(text) - len(text.lstrip())
    return msgspec.structs.replace(found, start=found.start + offset, end=found.end + offset)


def plain_text(text: str) -> str:
    """A reply as it is read: without spaces around it, with one kind of apostrophe, and without halves of characters."""
    stripped = text.strip()
    return stripped if stripped.isascii() else _SURROGATE.sub("\ufffd", stripped.replace("’", "'"))


def is_blank(stripped: str) -> bool:
    """Whether a reply has no word, number, symbol or emoji."""
    return not stripped or (not stripped[0].isalnum() and NOTHING.fullmatch(stripped) is not None)


def shortened(text: str, longest: int = 120) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def _decide(stripped: str, hits: Sequence[int], model: Model | None) -> DetectedFailure | None:
    found = certain_form(stripped, hits)
    # The keys of a JSON body have said all there is to say about it.
    if found is not None or (MARK in hits and body_fields(stripped) is not None):
        return found
    if FAILURE_WORD in hits:
        found = _by_words(stripped, model or shipped_model())
    return found if found is not None and found.charged else truncated_form(stripped) or found


def _by_words(stripped: str, model: Model) -> DetectedFailure | None:
    """The failure that a reply's words report, charged or suspected."""
    probability = model.probability(stripped)
    if probability < _PLAIN_BELOW:
        return None
    is_likely = probability >= LEAST_LIKELY
    # An unlikely reply is only charged without unknown words, and most replies show at a glance that they have some.
    message = read_message(stripped) if is_likely or _has_few_unknown_words(stripped) else None
    is_message = message is not None and (message.is_sure or (message.is_likely and is_likely))
    if not is_message and probability < SUSPECTED_FROM:
        return None
    start, end = (0, len(stripped)) if message is None else (message.start, message.end)
    charged_from = model.weights.charged_from
    return DetectedFailure(
        kind="error_text",
        message=shortened(stripped[start:end]),
        start=start,
        end=end,
        because=("error message" if is_message else "model",),
        probability=1.0 if is_message else round(probability, 3),
        charged=is_message
        or (message is not None and message.others <= MOST_OTHERS and probability >= charged_from),
    )


# Forms.

# What the automaton finds: a mark that each form inside a reply has, a word without which no sentence reports a failure, the
# shape of some form that a whole reply has.
MARK, FAILURE_WORD, WHOLE = range(3)
# A longer reply is not one line of a system, or a JSON body.
_LONGEST_LINE, _LONGEST_BODY = 2000, 200_000
# Marks and spaces around a reply; the last two characters join emoji.
_AROUND = r"[\s\p{P}\p{S}\x{FE0F}\x{200D}]*"


@cache
def _automaton() -> Callable[[bytes], list[int] | None]:
    forms = "|".join(f"(?-i:{form.form})" if form.case else f"(?:{form.form})" for form in FORM_TABLE.whole)
    return compile_set((FORM_TABLE.inside_marks, _failure_words(), _as_whole(forms)))


def _as_whole(form: str) -> str:
    return rf"\A{_AROUND}(?:{form}){_AROUND}\z"


def scan(stripped: str) -> Sequence[int]:
    """What the automaton finds in a reply without spaces around it."""
    return _automaton()(stripped.encode()) or ()


def certain_form(stripped: str, hits: Sequence[int]) -> DetectedFailure | None:
    """The form that a reply without spaces around it has; None: its form says nothing."""
    found = None
    if MARK in hits:
        found = _undecoded_form(stripped) or _body_form(stripped)
    if found is None and WHOLE in hits:
        found = _whole_form(stripped)
    return _inside_form(stripped) if found is None and MARK in hits else found


def _undecoded_form(text: str) -> DetectedFailure | None:
    head = text[:_LONGEST_LINE]
    broken = len(UNDECODED.findall(head)) or (0 if head.isascii() else len(MOJIBAKE.findall(head)))
    if broken * 20 <= len(head):
        return None
    return DetectedFailure("malformed", "text that was not decoded", because=("undecoded",))


def _body_form(text: str) -> DetectedFailure | None:
    fields = body_fields(text)
    if fields is None:
        return None
    if FORM_TABLE.bodies.reports_error(fields):
        return DetectedFailure("error_text", shortened(text), 0, len(text), ("error body",))
    if FORM_TABLE.bodies.is_raw_call(fields):
        message = "a raw message or a call of a tool instead of an answer"
        return DetectedFailure("malformed", message, because=("raw call",))
    return None


def body_fields(text: str) -> dict[str, Any] | None:
    """The fields of a reply that is a JSON object, or a list of them, with keys in lower case; None: it is not."""
    if text[0] not in "{[`" or len(text) > _LONGEST_BODY:
        return None
    if text.startswith("```"):
        text = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        value = decode_json(text)
    except ValueError:
        return None
    first: Any = value[0] if isinstance(value, list) and value else value
    return {str(key).lower(): item for key, item in first.items()} if isinstance(first, dict) else None


def _whole_form(text: str) -> DetectedFailure | None:
    if len(text) > _LONGEST_LINE or compile_form(FORM_TABLE.whole_unless).search(text):
        return None
    for form in FORM_TABLE.whole:
        if compile_form(_as_whole(form.form), form.case).search(text) and not form.excepts(text):
            return _has_form(form, text, 0, len(text))
    return None


def _inside_form(text: str) -> DetectedFailure | None:
    for form in FORM_TABLE.inside:
        found = compile_form(form.form, form.case).search(text) if len(text) <= form.longest else None
        if found:
            # The form itself may have a word by which an answer would speak about it.
            around = f"{text[: found.start()]} {text[found.end() :]}"
            is_excepted = compile_form(FORM_TABLE.inside_unless).search(around) or form.excepts(text)
            return None if is_excepted else _has_form(form, text, found.start(), found.end())
    return None


def _has_form(form: Form, text: str, start: int, end: int) -> DetectedFailure:
    message, sure = shortened(text[start:end]), form.probability == 1
    return DetectedFailure(form.kind, message, start, end, ("form",), form.probability, sure)


# Replies that break off.

# How a reply ends that does not break off, and what does.
_ENDS = tuple(".!?…。！？।؟؛:：)]}»”\"'`*_~>|")
_LIST_NUMBER = lazy(r"\s*(?:\d{1,2}[.)]|[-*•+])\s*")
_SMILEY = lazy(r"[:;=8xX]'?-?[(\[{]|[(\[{][:;=]")
_PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "「": "」", "«": "»"}
# "It came to $442," and, behind a word in Latin letters, "(": a lone one is a smiley in Russian.
_OPEN_AMOUNT = lazy(r"[$€£¥₹]\d[\d,.]*,$")
_OPEN_BRACKET = lazy(r"[A-Za-z0-9.,] [(\[{]$")
# Words of a sentence that breaks off, at least; words that follow each other in `function_words.txt`, at most.
_FEWEST_WORDS, _MOST_JOINED = 3, 5
_CLAUSE_END = lazy(r"[.!?;:\n]")


def truncated_form(text: str) -> DetectedFailure | None:
    """Whether a reply certainly breaks off."""
    end = _open_end(text)
    if end is None:
        return None
    start = max(0, len(text) - 40)
    return DetectedFailure("truncated", f"…{shortened(text[start:])}", start, len(text), (end,))


def _open_end(text: str) -> str | None:
    """What is open at the end of a reply: a code fence, table row, list number, bracket, quote or sentence; None: nothing."""
    if text.count("```") % 2:
        return "open code fence"
    last = text
    if "\n" in text:
        *above, last = text.split("\n")
        line = next((line for line in reversed(above) if line.strip()), "")
        if last.lstrip().startswith("|") and line.count("|") > max(1, last.count("|")):
            return "open table row"
        if _LIST_NUMBER.fullmatch(last) and _LIST_NUMBER.match(line):
            return "list number without a text"
    if text.endswith(_ENDS) and text[0] not in "{[":
        return None
    if text[0] in "{[" and text.count(text[0]) > text.count(_PAIRS[text[0]]):
        return "open bracket"
    if "```" not in text and _has_open_bracket(last):
        return "open bracket"
    return _missing_words(text, last.split())


def _has_open_bracket(line: str) -> bool:
    """Whether a bracket or quotation mark of the last line is still open at its end."""
    without = _SMILEY.sub("", line)
    return any(
        without.count(opening) == without.count(closing) + 1
        and without.rfind(opening) > without.rfind(closing)
        and (len(without) - without.rfind(opening) > 2 or _OPEN_BRACKET.search(without))
        for opening, closing in _PAIRS.items()
    )


def _missing_words(text: str, words: Sequence[str]) -> str | None:
    """What the last sentence of a reply lacks at its end; None: nothing for sure."""
    if _OPEN_AMOUNT.search(text):
        return "amount that breaks off"
    endings = {"_".join(words[-count:]).lower() for count in range(1, _MOST_JOINED + 1)}
    if len(words) >= _FEWEST_WORDS and words[-1].islower() and not _words_of("not_last").isdisjoint(endings):
        return "sentence ends in a function word"
    return "sentence lacks what its verb announces" if _lacks_complement(text) else None


def _lacks_complement(text: str) -> bool:
    """Whether the last clause ends in a verb that something must follow: "The helmets are", "Turnover was $"."""
    clause = _CLAUSE_END.split(text)[-1].split()
    is_amount = clause[-1:] != [] and clause[-1] in CURRENCY_SIGNS
    if is_amount:
        clause.pop()
    words = [word.strip(",()\"'–-").lower() for word in clause]
    return (
        len(words) >= _FEWEST_WORDS - is_amount
        and clause[-1] in _words_of("linking_verbs")
        and words[-2] not in _words_of("short_subjects")
        and _words_of("whole_clauses").isdisjoint(words)
    )


def _read_words(name: str) -> dict[str, list[tuple[str, list[str]]]]:
    """A file of words: heading → languages and their words."""
    sections: dict[str, list[tuple[str, list[str]]]] = {}
    for line in Path(__file__).with_name(name).read_text("utf-8").splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            language, _, words = line.partition(":")
            section.append((language, words.split()))
    return sections


@cache
def _words_of(heading: str) -> frozenset[str]:
    """The words under a heading of `function_words.txt`, whatever the language."""
    lines = _read_words("function_words.txt")[heading]
    return frozenset(word for _, words in lines for word in words)


# What the words of a reply mean.

# A longer reply is not an error message.
_LONGEST_MESSAGE = 320
# Languages written without spaces: what follows each other there is looked up in parts, and about three letters make a word.
_DENSE = lazy("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DENSE_LETTERS = 3
_LETTERS = "\\w\u0591-\u05c7\u064b-\u065f\u0900-\u0eff\u1000-\u109f\u1780-\u17ff"
_WORD = lazy(rf"[^\W\d_](?:[{_LETTERS}'ʼ\u200c\u200d-]*[{_LETTERS}])?")
_SENTENCE_END = lazy(r"[.!?…।؟]+(?=\s|$)|[。！？\n]+|[;:—–](?=\s)|(?<=[\u0e00-\u0e7f]) |$")
# Identifiers are unknown words at a glance.
_MOST_UNKNOWN = 3
_COMPANIONS = frozenset({"sorry", "again", "help"})
# Meanings one of which every sentence that reports a failure has.
_FAILING = frozenset({"fault", "cannot", "down", "late", "limit"})


class _Word(NamedTuple):
    meanings: frozenset[str]
    # How many words of it are in no list.
    unknown: float


class _Vocabulary(NamedTuple):
    """Words and beginnings of words ("fail*"), and parts of words, each with what it means."""

    words: dict[str, set[str]]
    parts: dict[str, set[str]]
    # Finds the parts, the longest first.
    any_part: "re.Pattern[str]"


@cache
def _vocabulary() -> _Vocabulary:
    words: dict[str, set[str]] = {}
    parts: dict[str, set[str]] = {}
    for meaning, lines in _read_words("words.txt").items():
        for language, line in lines:
            known = parts if language == "joined" else words
            for word in line:
                known.setdefault(word.replace("_", " "), set()).add(meaning)
    return _Vocabulary(words, parts, re.compile("|".join(sorted(parts, key=len, reverse=True))))


def _look_up(word: str) -> _Word:
    words, parts, any_part = _vocabulary()
    if _DENSE.search(word):
        meanings = frozenset[str]().union(*(parts[part] for part in any_part.findall(word)))
        return _Word(meanings, len(any_part.sub("", word)) / _DENSE_LETTERS)
    beginnings = (f"{word[:end]}*" for end in range(len(word), 1, -1))
    beginning = next((one for one in beginnings if one in words), "")
    meanings = frozenset(words.get(word, set()) | words.get(beginning, set()))
    return _Word(meanings, 0.0 if meanings or len(word) <= 2 else 1.0)


_words = Remembered(_look_up)


def _failure_words() -> str:
    """An RE2 pattern of the words without which no sentence reports a failure."""
    vocabulary, edge = _vocabulary(), r"[^\pL\pM\pN_]"
    # In order, as words with the same beginning compile faster side by side.
    words, parts = (
        [re.escape(word) for word in sorted(known) if not known[word].isdisjoint(_FAILING)]
        for known in (vocabulary.words, vocabulary.parts)
    )
    whole = "|".join(word for word in words if not word.endswith("*"))
    beginnings = "|".join(word.removesuffix(r"\*") for word in words if word.endswith("*"))
    return f"(?:^|{edge})(?:(?:{whole})(?:{edge}|$)|(?:{beginnings}))|{'|'.join(parts)}"


def _has_few_unknown_words(text: str) -> bool:
    """Whether a reply may be an error message through and through; quicker than reading it."""
    words = _WORD.findall(text[: _LONGEST_MESSAGE + 1].lower())
    return sum([_words[word].unknown for word in words]) <= _MOST_UNKNOWN


class Message(NamedTuple):
    """A reply that reports a failure."""

    # Span of the first sentence that does.
    start: int
    end: int
    # How many sentences neither report a failure nor accompany one.
    others: int
    # Whether all of it is an error message: surely, or unless the fitted model finds it unlikely.
    is_sure: bool
    is_likely: bool


def read_message(text: str) -> Message | None:
    """What a reply reports of a failure, by the words of its sentences; None: nothing, or it speaks about errors."""
    if len(text) > _LONGEST_MESSAGE or text[0] in '"“«„`' or EXPLAINS.search(text.lower()):
        return None
    plain = text
    # What machines write is about what failed: its words would be unknown ones.
    for token in (FAILURE_TOKEN, OTHER_TOKEN):
        plain = token.sub(lambda found: " " * len(found[0]), plain)
    sentences = list(_sentences(plain.lower()))
    failing = [sentence for sentence in sentences if sentence.reports_failure]
    if not failing:
        return None
    meanings = frozenset[str]().union(*(sentence.meanings for sentence in sentences))
    failures = frozenset[str]().union(*(sentence.failures for sentence in failing))
    # The more a reply has of an error message, the more words of it may be about what failed.
    signs = len(failures) + len(meanings & _COMPANIONS) + (FAILURE_TOKEN.search(text) is not None)
    unknown = sum(sentence.unknown for sentence in sentences)
    others = sum(not sentence.reports_failure and not sentence.accompanies for sentence in sentences)
    is_likely = not others and 0 < signs >= unknown
    is_sure = is_likely and unknown < 0.5 and signs + ("happen" in meanings) > 1
    return Message(failing[0].start, failing[0].end, others, is_sure, is_likely)


class _Sentence:
    """What the words of one sentence mean."""

    def __init__(self, start: int, end: int, words: list[str]) -> None:
        self.start, self.end = start, end
        known = [_words[word] for word in words]
        has = self.meanings = frozenset[str]().union(*(word.meanings for word in known))
        self.unknown = sum(word.unknown for word in known)
        is_asked = "ask" in has or "system" in has
        limits = sum("limit" in word.meanings for word in known)
        found = {
            "fault": "fault" in has and not has.isdisjoint({"happen", "work", "system"}),
            "cannot": {"cannot", "work"} <= has and is_asked,
            "down": "system" in has and ("down" in has or {"up", "cannot"} <= has),
            "late": "late" in has and (is_asked or "work" in has),
            "limit": "limit" in has and (is_asked or limits > 1),
        }
        # What it says is wrong.
        self.failures = {name for name, is_reported in found.items() if is_reported}
        # Whether it says that anything is wrong.
        self.reports_failure = bool(self.failures) or "fault" in has or {"cannot", "work"} <= has

    @property
    def accompanies(self) -> bool:
        """Whether it is a sentence that error messages also have."""
        usual = _COMPANIONS | {"ask", "system", "happen", "late"}
        return self.unknown <= 1 and not self.meanings.isdisjoint(usual)


def _sentences(lower: str) -> Iterator[_Sentence]:
    start = 0
    for found in _SENTENCE_END.finditer(lower):
        words = _WORD.findall(lower[start : found.start()])
        if words:
            yield _Sentence(start, found.end(), words)
        start = found.end()
