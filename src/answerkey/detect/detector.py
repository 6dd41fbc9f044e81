"""Decides from a reply's text alone whether it is an error instead of an answer.

1. Certain forms (`form_table.py`) are charged.
2. A reply without any word of failure is an answer, unless it breaks off. One finite automaton looks for these words, for
   marks of forms and for whole forms, and most replies need no more.
3. A reply that is an error message through and through (every sentence of it, by what its words mean: `words.txt`) is charged
   unless the fitted model (`model.py`) finds that unlikely.
4. The model charges a reply that reports a failure where it is surer than one false accusation in 200 answers; from one half on
   it suspects, which costs nothing.

"Der opstod en fejl. Prøv igen senere." reports a fault that happened and says to try again, and no word of it is about anything
else. An answer about an error has other words, explains, or states a value.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import re2

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
from answerkey.detect.model import Model, clip, shipped_model
from answerkey.text.normalise import Remembered
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import decode_json

__all__ = ["LEAST_LIKELY", "MOST_OTHERS", "SUSPECTED_FROM", "DetectedFailure", "detect_failure", "plain_text"]

# A longer reply is not one line of a system, or a JSON body.
_LONGEST_LINE, _LONGEST_BODY = 2000, 200_000
# Marks and spaces around a reply; the last two characters join emoji.
_AROUND = r"[\s\p{P}\p{S}\x{FE0F}\x{200D}]*"
# How a reply ends that does not break off, and what does.
_ENDS = tuple(".!?…。！？।؟؛:：)]}»”\"'`*_~>|")
_LIST_NUMBER = lazy(r"\s*(?:\d{1,2}[.)]|[-*•+])\s*")
_SMILEY = lazy(r"[:;=8xX]'?-?[(\[{]|[(\[{][:;=]")
_PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "「": "」", "«": "»"}
_FEWEST_WORDS = 3
_CLAUSE_END = lazy(r"[.!?;:\n]")
# A longer reply is not an error message.
_LONGEST = 600
# Languages written without spaces: what follows each other there is looked up in parts.
_DENSE = lazy("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Of such writing, the letters of which about three make a word.
_DENSE_LETTER = lazy("[\u3400-\u9fff\u30a0-\u30ff\uac00-\ud7af\u0e01-\u0e2e]")
_LETTERS = "\\w\u0591-\u05c7\u064b-\u065f\u0900-\u0eff\u1000-\u109f\u1780-\u17ff"
_WORD = lazy(rf"[^\W\d_](?:[{_LETTERS}'ʼ\u200c\u200d-]*[{_LETTERS}])?")
_SENTENCE_END = lazy(r"[.!?…।؟]+(?=\s|$)|[。！？\n]+|[;:—–](?=\s)|(?<=[\u0e00-\u0e7f]) |$")
_LONGEST_PART = 12
# Identifiers are unknown words at a glance.
_MOST_UNKNOWN = 5
_COMPANIONS = frozenset({"sorry", "again", "help"})
# Meanings one of which every sentence that reports a failure has.
_FAILING = frozenset({"fault", "cannot", "down", "late", "limit"})
SUSPECTED_FROM = 0.5
# An error message below this probability is not charged if words of it are unknown.
LEAST_LIKELY = 0.3
# Below this, it is not one.
_PLAIN_BELOW = 0.002
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
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


def _whole_patterns() -> list[str]:
    return [f"(?-i:{form.form})" if form.case else f"(?:{form.form})" for form in FORM_TABLE.whole]


@cache
def _match_whole() -> Callable[[bytes], list[int] | None]:
    return compile_set(re2.Set.FullMatchSet, [f"{_AROUND}{form}{_AROUND}" for form in _whole_patterns()])


def shortened(text: str, longest: int = 120) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def is_blank(stripped: str) -> bool:
    """Whether a reply has no word, number, symbol or emoji."""
    return not stripped or (not stripped[0].isalnum() and NOTHING.fullmatch(stripped) is not None)


def certain_form(stripped: str, hits: "Scan") -> DetectedFailure | None:
    """The form that a reply without spaces around it has; None: its form says nothing."""
    if not hits.has_mark:
        return _whole_form(stripped) if hits.has_whole_form else None
    return (
        _undecoded_form(stripped)
        or _body_form(stripped)
        or (_whole_form(stripped) if hits.has_whole_form else None)
        or _inside_form(stripped)
    )


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


def _whole_form(text: str) -> DetectedFailure | None:
    if len(text) > _LONGEST_LINE or compile_form(FORM_TABLE.whole_unless).search(text):
        return None
    # The marks around each form take three quarters of the time of compiling all of them, and most replies have no form.
    forms = [FORM_TABLE.whole[number] for number in sorted(_match_whole()(text.encode()) or ())]
    return next((_has_form(form, text, 0, len(text)) for form in forms if not form.excepts(text)), None)


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
        lines = text.split("\n")
        last = lines[-1]
        above = next((line for line in reversed(lines[:-1]) if line.strip()), "")
        if last.lstrip().startswith("|") and above.count("|") > max(1, last.count("|")):
            return "open table row"
        if _LIST_NUMBER.fullmatch(last) and _LIST_NUMBER.match(above):
            return "list number without a text"
    if text.endswith(_ENDS) and text[0] not in "{[":
        return None
    if text[0] in "{[" and text.count(text[0]) > text.count(_PAIRS[text[0]]):
        return "open bracket"
    if "```" not in text and _has_open_bracket(last):
        return "open bracket"
    words = last.split()
    if (
        len(words) >= _FEWEST_WORDS
        and words[-1].islower()
        and not _words_of("not_last").isdisjoint("_".join(words[-count:]).lower() for count in (1, 2, 3))
    ):
        return "sentence ends in a function word"
    return "sentence lacks what its verb announces" if words and _lacks_complement(text) else None


def _lacks_complement(text: str) -> bool:
    """Whether the last clause ends in a verb that something must follow: "The helmets are"."""
    clause = _CLAUSE_END.split(text)[-1].split()
    words = [word.strip(",()\"'–-").lower() for word in clause]
    return (
        len(words) >= _FEWEST_WORDS
        and clause[-1] in _words_of("linking_verbs")
        and words[-2] not in _words_of("short_subjects")
        and _words_of("whole_clauses").isdisjoint(words)
    )


def _has_open_bracket(line: str) -> bool:
    """Whether a bracket or quotation mark of the last line is still open at its end."""
    without = _SMILEY.sub("", line)
    return any(
        without.count(opening) == without.count(closing) + 1
        and without.rfind(opening) > without.rfind(closing)
        and len(without) - without.rfind(opening) > 2
        for opening, closing in _PAIRS.items()
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


def _has_few_unknown_words(text: str) -> bool:
    """Whether a reply may be an error message through and through; quicker than reading it."""
    words = _WORD.findall(text[: _LONGEST + 1].lower())
    return sum([_words[word].unknown for word in words]) <= _MOST_UNKNOWN


def read_message(text: str) -> Message | None:
    """What a reply reports of a failure, by the words of its sentences; None: nothing, or it speaks about errors."""
    if len(text) > _LONGEST or text[0] in '"“«„`' or EXPLAINS.search(text.lower()):
        return None
    plain = text
    # What machines write is about what failed: its words would be unknown ones.
    for token in (FAILURE_TOKEN, OTHER_TOKEN):
        plain = token.sub(lambda found: " " * len(found[0]), plain)
    sentences = [sentence for sentence in _sentences(plain.lower()) if sentence.words]
    failing = [sentence for sentence in sentences if sentence.failures]
    if not failing:
        return None
    meanings = frozenset[str]().union(*(sentence.meanings for sentence in sentences))
    failures = frozenset[str]().union(*(sentence.failures for sentence in failing)) - {"something"}
    support = len(meanings & _COMPANIONS) + (FAILURE_TOKEN.search(text) is not None)
    unknown = sum(sentence.unknown for sentence in sentences)
    others = sum(not sentence.failures and not sentence.accompanies for sentence in sentences)
    # The more a reply has of an error message, the more words of it may be about what failed.
    is_likely = (
        not others
        and (bool(failures) or support > (unknown > 0))
        and unknown <= 0.6 + 0.7 * (len(failures) + support)
        and ("again" in meanings or "?" not in text)
    )
    is_plain = not failures.isdisjoint({"fault", "cannot", "down"}) and (support > 0 or "happen" in meanings)
    is_sure = is_likely and unknown < 0.5 and (is_plain or len(failures) + support > 2)
    return Message(failing[0].start, failing[0].end, others, is_sure, is_likely)


class _Sentence:
    """What the words of one sentence mean."""

    def __init__(self, start: int, end: int, words: list[str]) -> None:
        self.start, self.end, self.words = start, end, words
        known = [_words[word] for word in words]
        self.meanings = frozenset[str]().union(*(word.meanings for word in known))
        self.unknown = sum(word.unknown for word in known)
        self._limits = sum("limit" in word.meanings for word in known)

    @property
    def failures(self) -> set[str]:
        """What it says is wrong; "something": hardly anything."""
        meanings = self.meanings
        is_asked = not meanings.isdisjoint({"ask", "system"})
        found = {
            "fault": "fault" in meanings and not meanings.isdisjoint({"happen", "work", "system"}),
            "cannot": {"cannot", "work"} <= meanings and is_asked,
            "down": {"down", "system"} <= meanings or {"up", "cannot", "system"} <= meanings,
            "late": "late" in meanings and (is_asked or "work" in meanings),
            "limit": "limit" in meanings and (self._limits > 1 or is_asked),
            "something": "fault" in meanings or {"cannot", "work"} <= meanings,
        }
        return {name for name, is_reported in found.items() if is_reported}

    @property
    def accompanies(self) -> bool:
        """Whether it is a sentence that error messages also have."""
        return self.unknown <= 1 and not self.meanings.isdisjoint(
            _COMPANIONS | {"ask", "system", "happen", "late"}
        )


def _sentences(lower: str) -> Iterator[_Sentence]:
    start = 0
    for found in _SENTENCE_END.finditer(lower):
        yield _Sentence(start, found.end(), _WORD.findall(lower[start : found.start()]))
        start = found.end()


class _Word(NamedTuple):
    meanings: frozenset[str]
    # How many words of it are in no list.
    unknown: float


class _WordLists(NamedTuple):
    """Whole words, beginnings, and parts of words, each with what it means."""

    whole: dict[str, set[str]]
    beginnings: dict[str, set[str]]
    parts: dict[str, set[str]]


@cache
def _lists() -> _WordLists:
    lists = _WordLists({}, {}, {})
    for meaning, lines in _read_words("words.txt").items():
        for language, words in lines:
            for word in words:
                known = lists.beginnings if word.endswith("*") else lists.whole
                known = lists.parts if language == "joined" else known
                known.setdefault(word.rstrip("*").replace("_", " "), set()).add(meaning)
    return lists


def _failure_words() -> str:
    """An RE2 pattern of the words without which no sentence reports a failure."""
    # In order, as words with the same beginning compile faster side by side.
    whole, beginnings, parts = (
        "|".join(re.escape(word) for word in sorted(words) if not words[word].isdisjoint(_FAILING))
        for words in _lists()
    )
    edge = r"[^\pL\pM\pN_]"
    return f"(?:^|{edge})(?:(?:{whole})(?:{edge}|$)|(?:{beginnings}))|{parts}"


def _look_up(word: str) -> _Word:
    whole, beginnings, parts = _lists()
    if not _DENSE.search(word):
        beginning = next((word[:end] for end in range(len(word), 1, -1) if word[:end] in beginnings), "")
        meanings = whole.get(word, set()) | beginnings.get(beginning, set())
        return _Word(frozenset(meanings), 0.0 if meanings or len(word) <= 2 else 1.0)
    meanings, rest, at = set(), "", 0
    while at < len(word):
        starts = (word[at:end] for end in range(at + _LONGEST_PART, at, -1))
        part = next((start for start in starts if start in parts), "")
        meanings |= parts.get(part, set())
        rest += "" if part else word[at]
        at += len(part) or 1
    return _Word(frozenset(meanings), len(_DENSE_LETTER.findall(rest)) / 3)


_words = Remembered(_look_up)


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows or suggests; None for an answer. `model` replaces the shipped weights."""
    if text is None:
        return DetectedFailure("null", "there is no reply", because=("null",))
    stripped = plain_text(text)
    if is_blank(stripped):
        return DetectedFailure("empty", "the reply is empty", because=("empty",))
    found = _decide(stripped, model)
    if found is None or not found.end:
        return found
    offset = len(text) - len(text.lstrip())
    return msgspec.structs.replace(found, start=found.start + offset, end=found.end + offset)


def plain_text(text: str) -> str:
    """A reply as it is read: without spaces around it, with one kind of apostrophe, and without halves of characters."""
    stripped = text.strip()
    return stripped if stripped.isascii() else _SURROGATE.sub("\ufffd", stripped.replace("’", "'"))


@cache
def _automaton() -> Callable[[bytes], list[int] | None]:
    whole = rf"\A{_AROUND}(?:{'|'.join(_whole_patterns())}){_AROUND}\z"
    return compile_set(re2.Set.SearchSet, (FORM_TABLE.inside_marks, _failure_words(), whole))


class Scan(NamedTuple):
    """What a finite automaton finds in a reply."""

    # Whether one of the marks occurs in it that each form inside a reply has.
    has_mark: bool
    # Whether it has a word without which no sentence reports a failure.
    has_failure_word: bool
    # Whether the whole reply has the shape of some form.
    has_whole_form: bool


def scan(stripped: str) -> Scan | None:
    """Scan a reply without spaces around it; None: nothing is found in it."""
    hits = _automaton()(stripped.encode())
    return Scan(0 in hits, 1 in hits, 2 in hits) if hits else None


def _decide(stripped: str, model: Model | None) -> DetectedFailure | None:
    hits = scan(stripped)
    if hits is None:
        return truncated_form(stripped)
    found = certain_form(stripped, hits)
    # The keys of a JSON body have said all there is to say about it.
    if found is not None or (hits.has_mark and body_fields(stripped) is not None):
        return found
    if hits.has_failure_word:
        found = _by_words(stripped, model or shipped_model())
    return found if found is not None and found.charged else truncated_form(stripped) or found


def _by_words(stripped: str, model: Model) -> DetectedFailure | None:
    """The failure that a reply's words report, charged or suspected."""
    # Most numbers are new words. With 0 for every digit they are known ones, by which most answers are recognised.
    if model.probability(clip(stripped).encode().translate(_ZEROS).decode()) < _PLAIN_BELOW:
        return None
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
    return DetectedFailure(
        kind="error_text",
        message=shortened(stripped[start:end]),
        start=start,
        end=end,
        because=("error message" if is_message else "model",),
        probability=1.0 if is_message else round(probability, 3),
        charged=is_message
        or (
            message is not None
            and message.others <= MOST_OTHERS
            and probability >= model.weights.charged_from
        ),
    )
