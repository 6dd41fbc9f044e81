"""Decides from a reply's text alone whether it is an error instead of an answer.

1. One finite automaton looks for marks of forms, for whole forms and for words of failure. Most replies have none of them and are
   answers, unless they break off.
2. Certain forms (`form_table.py`) are charged.
3. A reply that is an error message through and through (every sentence of it, by what its words mean: `words.toml`) is charged
   unless the fitted model (`model.py`) finds that unlikely.
4. The model charges a reply that reports a failure where it is surer than one false accusation in 200 answers; from one half on
   it suspects, which costs nothing.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from answerkey.detect import form_table
from answerkey.detect.form_table import FORM_TABLE, compile_form
from answerkey.detect.model import Model, shipped_model
from answerkey.text.normalise import Remembered
from answerkey.text.numbers import CURRENCY_SIGNS
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import decode_json

__all__ = ["SUSPECTED_FROM", "DetectedFailure", "detect_failure", "plain_text"]

SUSPECTED_FROM = 0.5
# An error message below these probabilities is none: one through and through for sure, and one with unknown words.
_LEAST_IF_SURE, _LEAST_LIKELY = 0.005, 0.3
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


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows or suggests; None for an answer. `model` replaces the shipped weights."""
    if text is None:
        return DetectedFailure("null", "there is no reply", because=("null",))
    stripped = plain_text(text)
    if is_blank(stripped):
        return DetectedFailure("empty", "the reply is empty", because=("empty",))
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
    return not stripped or (not stripped[0].isalnum() and form_table.NOTHING.fullmatch(stripped) is not None)


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
    # An unlikely reply is only charged without unknown words, and most show at a glance that they have some.
    may_be_sure = probability >= _LEAST_IF_SURE and _count_unknown(stripped) <= _MOST_UNKNOWN
    message = read_message(stripped) if probability >= _LEAST_LIKELY or may_be_sure else None
    levels = (2.0, model.weights.charged_from, _LEAST_LIKELY, _LEAST_IF_SURE)
    charged_from = levels[message.level if message is not None else 0]
    if probability < min(charged_from, SUSPECTED_FROM):
        return None
    start, end = (0, len(stripped)) if message is None else (message.start, message.end)
    return DetectedFailure(
        kind="error_text",
        message=shortened(stripped[start:end]),
        start=start,
        end=end,
        because=("error message" if charged_from <= _LEAST_LIKELY else "model",),
        probability=round(probability, 3),
        charged=probability >= charged_from,
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
def _automaton(only_ascii: bool) -> Callable[[bytes], list[int] | None]:
    """That of every text, or that of ASCII texts, which has half of the words and compiles faster."""
    forms = "|".join(f"(?-i:{form.form})" if form.case else f"(?:{form.form})" for form in FORM_TABLE.whole)
    words = _failure_words(only_ascii=only_ascii)
    return form_table.compile_set((FORM_TABLE.inside_marks, words, _as_whole(forms)))


def _as_whole(form: str) -> str:
    return rf"\A{_AROUND}(?:{form}){_AROUND}\z"


def scan(stripped: str) -> Sequence[int]:
    """What the automaton finds in a reply without spaces around it."""
    return _automaton(stripped.isascii())(stripped.encode()) or ()


def certain_form(stripped: str, hits: Sequence[int]) -> DetectedFailure | None:
    """The form that a reply without spaces around it has; None: its form says nothing."""
    found = (_undecoded_form(stripped) or _body_form(stripped)) if MARK in hits else None
    found = found or (_listed_form(stripped, is_whole=True) if WHOLE in hits else None)
    return _listed_form(stripped, is_whole=False) if found is None and MARK in hits else found


def _undecoded_form(text: str) -> DetectedFailure | None:
    head = text[:_LONGEST_LINE]
    broken = len(form_table.UNDECODED.findall(head)) or len(form_table.MOJIBAKE.findall(head))
    if broken * 20 <= len(head):
        return None
    return DetectedFailure("malformed", "text that was not decoded", because=("undecoded",))


def _body_form(text: str) -> DetectedFailure | None:
    fields = body_fields(text) or {}
    if FORM_TABLE.bodies.reports_error(fields):
        return DetectedFailure("error_text", shortened(text), 0, len(text), ("error body",))
    if FORM_TABLE.bodies.is_raw_call(fields):
        return DetectedFailure(
            "malformed", "a raw message or call instead of an answer", because=("raw call",)
        )
    return None


def body_fields(text: str) -> dict[str, Any] | None:
    """The fields of a reply that is a JSON object, or a list of them, with keys in lower case; None: it is not."""
    if text[0] not in "{[`" or len(text) > _LONGEST_BODY:
        return None
    try:
        value = decode_json(text.removeprefix("```json").removeprefix("```").removesuffix("```").strip())
    except ValueError:
        return None
    first: Any = value[0] if isinstance(value, list) and value else value
    return {str(key).lower(): item for key, item in first.items()} if isinstance(first, dict) else None


def _listed_form(text: str, is_whole: bool) -> DetectedFailure | None:
    """The first form of the table that a reply has as a whole, or that occurs in it."""
    forms = FORM_TABLE.whole if is_whole else FORM_TABLE.inside
    unless = FORM_TABLE.whole_unless if is_whole else FORM_TABLE.inside_unless
    for form in forms if len(text) <= _LONGEST_LINE else ():
        found = compile_form(_as_whole(form.form) if is_whole else form.form, form.case).search(text)
        if found and not form.excepts(text):
            start, end = found.span()
            # The form itself may have a word by which an answer would speak about it.
            if not compile_form(unless).search(text if is_whole else f"{text[:start]} {text[end:]}"):
                is_sure, words = form.probability == 1, shortened(text[start:end])
                return DetectedFailure(form.kind, words, start, end, ("form",), form.probability, is_sure)
    return None


# Replies that break off.

# How a reply ends that does not break off, and what does.
_ENDS = tuple(".!?…。！？।؟؛:：)]}»”\"'`*_~>|")
_LIST_NUMBER = lazy(r"\s*(?:\d{1,2}[.)]|[-*•+])\s*")
_SMILEY = lazy(r"[:;=8xX]'?-?[(\[{]|[(\[{][:;=]")
_PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "「": "」", "«": "»"}
# Words of a sentence that breaks off, at least; words that follow each other in `function_words.toml`, at most.
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
        above, _, last = text.rpartition("\n")
        line = above.rstrip().rpartition("\n")[2]
        if last.lstrip().startswith("|") and line.count("|") > max(1, last.count("|")):
            return "open table row"
        if _LIST_NUMBER.fullmatch(last) and _LIST_NUMBER.match(line):
            return "list number without a text"
    if text[0] in "{[" and text.count(text[0]) > text.count(_PAIRS[text[0]]):
        return "open bracket"
    if text.endswith(_ENDS):
        return None
    if "```" not in text and _has_open_bracket(last):
        return "open bracket"
    words = last.split()
    if words[-1][0] in CURRENCY_SIGNS and words[-1][-1] == ",":
        return "amount that breaks off"
    endings = {"_".join(words[-count:]).lower() for count in range(1, _MOST_JOINED + 1)}
    if len(words) >= _FEWEST_WORDS and words[-1].islower() and not _words_of("not_last").isdisjoint(endings):
        return "sentence ends in a function word"
    return "sentence lacks what its verb announces" if _lacks_complement(text) else None


def _has_open_bracket(line: str) -> bool:
    """Whether a bracket or quotation mark of the last line is still open at its end."""
    without = _SMILEY.sub("", line).rstrip()
    # A lone bracket is a smiley behind a word in Cyrillic letters.
    is_after_word = without[-2:-1] == " " and without[:-2].isascii()
    return any(
        without.count(opening) == without.count(closing) + 1
        and without.rfind(opening) > without.rfind(closing)
        and (len(without) - without.rfind(opening) > 2 or is_after_word)
        for opening, closing in _PAIRS.items()
    )


def _lacks_complement(text: str) -> bool:
    """Whether the last clause ends in a verb that something must follow: "The helmets are", "Turnover was $"."""
    is_amount = text[-1] in CURRENCY_SIGNS
    clause = _CLAUSE_END.split(text.rstrip(CURRENCY_SIGNS))[-1].split()
    words = [word.strip(",()\"'–-").lower() for word in clause]
    return (
        len(words) >= _FEWEST_WORDS - is_amount
        and clause[-1] in _words_of("linking_verbs")
        and words[-2] not in _words_of("short_subjects")
        and _words_of("whole_clauses").isdisjoint(words)
    )


def _read_words(name: str, *headings: str) -> dict[str, dict[str, str]]:
    """A file of words, or the sections with some headings: heading → language → words."""
    import tomllib  # many commands read no reply

    sections = re.split(r"(?m)^(?=\[)", Path(__file__).with_name(name).read_text("utf-8"))
    wanted = [one for one in sections if not headings or one[1:].partition("]")[0] in headings]
    return tomllib.loads("".join(wanted))


@cache
def _words_of(heading: str) -> frozenset[str]:
    """The words under a heading of `function_words.toml`, whatever the language."""
    return frozenset(" ".join(_read_words("function_words.toml")[heading].values()).split())


# What the words of a reply mean.

# A longer reply is not an error message, nor an unlikely one with more unknown words.
_LONGEST_MESSAGE, _MOST_UNKNOWN = 320, 3
# Languages written without spaces: what follows each other there is looked up in parts, and about three letters make a word.
_DENSE = lazy("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LETTERS = "\\w\u0591-\u05c7\u064b-\u065f\u0900-\u0eff\u1000-\u109f\u1780-\u17ff"
_WORD = lazy(rf"[^\W\d_](?:[{_LETTERS}'ʼ\u200c\u200d-]*[{_LETTERS}])?")
_SENTENCE_END = lazy(r"[.!?…।؟]+(?=\s|$)|[。！？\n]+|[;:—–](?=\s)|(?<=[\u0e00-\u0e7f]) |$")
# Meanings one of which every sentence that reports a failure has.
_FAILING = frozenset({"fault", "cannot", "down", "late", "limit"})
# Kinds of failure, with the meanings that a sentence combines which reports one. "something" is hardly one.
_REPORTS = {
    "fault": (("fault", "happen"), ("fault", "work"), ("fault", "system")),
    "cannot": (("cannot", "work", "ask"), ("cannot", "work", "system")),
    "down": (("down", "system"), ("up", "cannot", "system")),
    "late": (("late", "work"), ("late", "ask"), ("late", "system")),
    "limit": (("limit", "ask"), ("limit", "system")),
    "something": (("fault",), ("cannot", "work")),
}
# Meanings of what error messages say besides; one of them is in each sentence that accompanies a report.
_COMPANIONS = frozenset({"sorry", "again", "help"})
_USUAL = _COMPANIONS | {"ask", "system", "happen", "late"}


class _Word(NamedTuple):
    meanings: frozenset[str]
    # How many words of it are in no list.
    unknown: float


@cache
def _vocabulary(*headings: str) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Words and beginnings of words ("fail*"), and parts of words, the longest first, each with what it means (of `headings`)."""
    words: dict[str, set[str]] = {}
    parts: dict[str, set[str]] = {}
    for meaning, lines in _read_words("words.toml", *headings).items():
        for language, line in lines.items():
            known = parts if language == "joined" else words
            for word in line.split():
                known.setdefault(word.replace("_", " "), set()).add(meaning)
    return words, dict(sorted(parts.items(), key=lambda part: -len(part[0])))


def _look_up(word: str) -> _Word:
    words, parts = _vocabulary()
    meanings = set[str]()
    if _DENSE.search(word):
        for part in parts:
            if part in word:
                word = word.replace(part, "")
                meanings |= parts[part]
        return _Word(frozenset(meanings), len(word) / 3)
    for known in (word, *(f"{word[:end]}*" for end in range(2, len(word) + 1))):
        meanings |= words.get(known, set())
    return _Word(frozenset(meanings), 0.0 if meanings or len(word) <= 2 else 1.0)


_words = Remembered(_look_up)


def _failure_words(*, only_ascii: bool) -> str:
    """An RE2 pattern of the words without which no sentence reports a failure; `only_ascii`: of those in ASCII."""
    # In order, as words with the same beginning compile faster side by side. Most replies need no other part of the file.
    words, parts = (
        [re.escape(word) for word in sorted(filter(str.isascii, known) if only_ascii else known)]
        for known in _vocabulary(*sorted(_FAILING))
    )
    edge = r"[^\pL\pM\pN_]"
    whole = "|".join(word for word in words if not word.endswith("*"))
    beginnings = "|".join(word.removesuffix(r"\*") for word in words if word.endswith("*"))
    return "|".join([f"(?:^|{edge})(?:(?:{whole})(?:{edge}|$)|(?:{beginnings}))", *parts])


def _count_unknown(text: str) -> float:
    """How many words of a reply are in no list, identifiers included."""
    return sum([_words[word].unknown for word in _WORD.findall(text[:_LONGEST_MESSAGE].lower())])


class Message(NamedTuple):
    """A reply that reports a failure."""

    # Span of the first sentence that does.
    start: int
    end: int
    # How much of it is an error message. 0: little; 1: all but one sentence; 2: all; 3: all for sure.
    level: int


def read_message(text: str) -> Message | None:
    """What a reply reports of a failure, by the words of its sentences; None: nothing, or it speaks about errors."""
    if len(text) > _LONGEST_MESSAGE or text[0] in '"“«„`' or form_table.EXPLAINS.search(text.lower()):
        return None
    plain = text
    # What machines write is about what failed: its words would be unknown ones.
    for token in (form_table.FAILURE_TOKEN, form_table.OTHER_TOKEN):
        plain = token.sub(lambda found: " " * len(found[0]), plain)
    start, end, others, unknown, at = 0, 0, 0, 0.0, 0
    meanings, kinds = set[str](), set[str]()
    for stop in _SENTENCE_END.finditer(plain):
        words = [_words[word.lower()] for word in _WORD.findall(plain[at : stop.start()])]
        has = frozenset[str]().union(*(word.meanings for word in words))
        reported = {kind for kind, ways in _REPORTS.items() if any(map(has.issuperset, ways))}
        new = sum(word.unknown for word in words)
        if reported and not end:
            start, end = at, stop.end()
        others += bool(words) and not reported and (new > 1 or has.isdisjoint(_USUAL))
        meanings |= has
        kinds |= reported - {"something"}
        unknown += new
        at = stop.end()
    if not end:
        return None
    # The more a reply has of an error message, the more words of it may be about what failed.
    signs = len(kinds) + len(meanings & _COMPANIONS) + bool(form_table.FAILURE_TOKEN.search(text))
    is_known = unknown <= 0.6 + 0.7 * signs and (bool(kinds) or signs > (unknown > 0))
    is_whole = not others and is_known and ("?" not in text or "again" in meanings)
    is_sure = is_whole and unknown < 0.5 and signs + ("happen" in meanings) > 1
    return Message(start, end, (others <= 1) + is_whole + is_sure)
