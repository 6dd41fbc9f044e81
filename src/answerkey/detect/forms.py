"""Certain forms: replies that are errors whatever the question was, as `form_table.py` lists them, and open ends."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import re2

from answerkey.text.normalise import lazy
from answerkey.transcripts.json_values import decode_json

# A longer reply is not one line of a system, or a letter with a leaked placeholder, or a JSON body.
_LONGEST_LINE, _LONGEST_LETTER, _LONGEST_BODY = 2000, 1500, 200_000
# Spaces, invisible characters and punctuation.
_NOTHING = lazy(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff.…·\\-–—_*#`\"'~|>?!,;:()<=+/\\\\]*"
)
_UNDECODED = lazy("[\ufffd\x00-\x08\x0e-\x1a]")
_MOJIBAKE = lazy(
    "[ÐÑ][^\\sA-Za-zÀ-ÿ]|[ÐÑ][°±²³´µ¶·¸¹º»¼½¾¿]|Ã[\x80-\xbf¡-¿ƒ‚„…†‡‰‹Œ]|â€[™œ\x9d“”¦˜]|ã[\x80-\xbf]{2}|æ[\x80-\xbf]{2}"
)
# Marks and spaces around a reply; the last two characters join emoji.
_MARKS = r"[\s\p{P}\p{S}\x{FE0F}\x{200D}]*"
# How a reply ends that does not break off, and what does.
_ENDS = tuple(".!?…。！？।؟؛:：)]}»”\"'`*_~>|")
_LIST_NUMBER = lazy(r"\s*(?:\d{1,2}[.)]|[-*•+])\s*")
_SMILEY = lazy(r"[:;=8xX]'?-?[(\[{]|[(\[{][:;=]")
_PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "「": "」", "«": "»"}
_FEWEST_WORDS = 3
# What a clause lacks that ends in one of these verbs, unless it has a word by which it may be whole: "what they are", "no, the
# red ones are". Other languages end whole clauses in such verbs.
_LINKING_VERBS = frozenset(("is", "are", "was", "were"))
_WHOLE_CLAUSES = """
who whom whose what where when which why how whether that than as if though although unless until while so such like there here
whatever wherever whichever however yes yeah yep no nope not only both neither either nor all none also each every too
sure ok okay
"""
_SHORT_SUBJECTS = """
i it they we you he she this that these those one ones mine yours ours theirs his hers rest others some many most
"""
_WHOLE_CLAUSE, _SHORT_SUBJECT = frozenset(_WHOLE_CLAUSES.split()), frozenset(_SHORT_SUBJECTS.split())
_CLAUSE_END = lazy(r"[.!?;:\n]")


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


class Form(msgspec.Struct, frozen=True):
    """A form that some replies have which are errors."""

    form: str
    examples: tuple[str, ...]
    kind: str = "error_text"
    # A reply in which this occurs is not of the form.
    unless: str = ""
    # Whether capitals matter.
    case: bool = False
    # Below 1: suspected only.
    probability: float = 1.0

    def at(self, text: str, start: int, end: int) -> DetectedFailure:
        """The failure that this form shows in a part of a reply."""
        sure = self.probability == 1
        message = shortened(text[start:end])
        return DetectedFailure(self.kind, message, start, end, ("form",), self.probability, sure)


class Bodies(msgspec.Struct, frozen=True):
    """JSON bodies that report an error or should have stayed inside the chatbot, by their keys."""

    error_keys: frozenset[str]
    beside_error: frozenset[str]
    status_keys: tuple[str, ...]
    failed_states: frozenset[str]
    failing_message: str
    raw_calls: tuple[frozenset[str], ...]
    error_examples: tuple[str, ...]
    call_examples: tuple[str, ...]

    def reports_error(self, fields: dict[str, Any]) -> bool:
        """Whether a body does nothing but report an error."""
        keys = fields.keys()
        if not keys <= self.error_keys | self.beside_error:
            return False
        message = fields.get("message", fields.get("detail", "")) if len(fields) == 1 else ""
        states = [str(fields.get(key)).lower() for key in self.status_keys]
        return (
            any(fields[key] and not isinstance(fields[key], int) for key in keys & self.error_keys)
            or fields.get("success", True) is False
            or fields.get("ok", True) is False
            or fields.get("is_error") is True
            or any(state in self.failed_states or _is_http_error(state) for state in states)
            or compile_form(self.failing_message).search(str(message)) is not None
        )

    def is_raw_call(self, fields: dict[str, Any]) -> bool:
        """Whether a body is a message or a tool call of the chatbot's own machinery."""
        keys = fields.keys()
        return any(call <= keys for call in self.raw_calls) and keys.isdisjoint({"answer", "response"})


class FormTable(msgspec.Struct, frozen=True):
    """All of `form_table.py`."""

    whole: tuple[Form, ...]
    whole_with_mark: tuple[Form, ...]
    whole_unless: str
    inside: tuple[Form, ...]
    inside_unless: str
    inside_marks: str
    bodies: Bodies


def form_table() -> FormTable:
    """The table, imported when the first reply is read."""
    from answerkey.detect.form_table import FORM_TABLE

    return FORM_TABLE


@cache
def compile_form(pattern: str, case: bool = False) -> Any:
    """A compiled RE2 pattern."""
    return re2.compile(pattern, _options(case))


def compile_set(
    new_set: Callable[[Any], Any], patterns: Iterable[str]
) -> Callable[[bytes], list[int] | None]:
    """A function that gives the numbers of the patterns that a text in UTF-8 has, found in one pass."""
    found = new_set(_options(case=False))
    for pattern in patterns:
        found.Add(pattern)
    found.Compile()
    match: Callable[[bytes], list[int] | None] = found.Match
    return match


def _options(case: bool) -> Any:
    options = re2.Options()
    options.case_sensitive, options.log_errors = case, False
    # Groups are never read; without them RE2 needs one pass.
    options.never_capture, options.max_mem = True, 64 << 20
    return options


def _whole_patterns() -> list[str]:
    return [f"(?-i:{form.form})" if form.case else f"(?:{form.form})" for form in form_table().whole]


def some_whole_form() -> str:
    """An RE2 pattern of replies that have the shape of some whole form."""
    return rf"\A{_MARKS}(?:{'|'.join(_whole_patterns())}){_MARKS}\z"


@cache
def _match_whole() -> Callable[[bytes], list[int] | None]:
    return compile_set(re2.Set.FullMatchSet, [f"{_MARKS}{form}{_MARKS}" for form in _whole_patterns()])


def whole_forms(encoded: bytes) -> tuple[int, ...]:
    """The numbers of the whole forms that a reply in UTF-8, without spaces around it, has the shape of."""
    # The marks around each form take three quarters of the time of compiling all of them, and most replies have no form.
    return tuple(sorted(_match_whole()(encoded) or ())) if len(encoded) <= 4 * _LONGEST_LINE else ()


def shortened(text: str, longest: int = 120) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def is_blank(stripped: str) -> bool:
    """Whether a reply has no word, number, symbol or emoji."""
    return not stripped or (not stripped[0].isalnum() and _NOTHING.fullmatch(stripped) is not None)


def certain_form(stripped: str, whole: Sequence[int], has_mark: bool) -> DetectedFailure | None:
    """The form that a reply without spaces around it has; None: its form says nothing.

    `whole` are its `whole_forms`; `has_mark`: whether one of `inside_marks` occurs in it.
    """
    if not has_mark:
        return _whole_form(stripped, whole, ())
    return (
        _undecoded_form(stripped)
        or _body_form(stripped)
        or _whole_form(stripped, whole, form_table().whole_with_mark)
        or _inside_form(stripped)
    )


def _undecoded_form(text: str) -> DetectedFailure | None:
    head = text[:_LONGEST_LINE]
    broken = len(_UNDECODED.findall(head)) or (0 if head.isascii() else len(_MOJIBAKE.findall(head)))
    if broken * 20 <= len(head):
        return None
    return DetectedFailure("malformed", "text that was not decoded", because=("undecoded",))


def _body_form(text: str) -> DetectedFailure | None:
    fields = body_fields(text)
    if fields is None:
        return None
    if form_table().bodies.reports_error(fields):
        return DetectedFailure("error_text", shortened(text), 0, len(text), ("error body",))
    if form_table().bodies.is_raw_call(fields):
        message = "a raw message or a call of a tool instead of an answer"
        return DetectedFailure("malformed", message, because=("raw call",))
    return None


def _whole_form(text: str, numbers: Sequence[int], with_mark: Sequence[Form]) -> DetectedFailure | None:
    if len(text) > _LONGEST_LINE:
        return None
    table = form_table()
    forms = [table.whole[number] for number in numbers]
    forms += [form for form in with_mark if compile_form(f"{_MARKS}(?:{form.form}){_MARKS}").fullmatch(text)]
    if not forms or compile_form(table.whole_unless).search(text):
        return None
    fitting = (form for form in forms if not form.unless or not compile_form(form.unless).search(text))
    form = next(fitting, None)
    return None if form is None else form.at(text, 0, len(text))


def _inside_form(text: str) -> DetectedFailure | None:
    table = form_table()
    if len(text) > _LONGEST_LETTER:
        return None
    for form in table.inside:
        found = compile_form(form.form, form.case).search(text)
        if found:
            # The form itself may have a word by which an answer would speak about it.
            around = f"{text[: found.start()]} {text[found.end() :]}"
            if compile_form(table.inside_unless).search(around):
                return None
            is_excepted = form.unless and compile_form(form.unless).search(text)
            return None if is_excepted else form.at(text, found.start(), found.end())
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


def _is_http_error(code: str) -> bool:
    return len(code) == 3 and code.isdecimal() and code[0] in "45"


def truncated_form(text: str) -> DetectedFailure | None:
    """Whether a reply certainly breaks off."""
    end = _open_end(text)
    if end is None:
        return None
    start = max(0, len(text) - 40)
    return DetectedFailure("truncated", f"…{shortened(text[start:])}", start, len(text), (end,))


def _open_end(text: str) -> str | None:
    """What is open at the end of a reply: a code fence, table row, list number, bracket, quote or sentence; None: nothing."""
    if "```" in text and text.count("```") % 2:
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
        and not _function_words().isdisjoint("_".join(words[-count:]).lower() for count in (1, 2, 3))
    ):
        return "sentence ends in a function word"
    return "sentence lacks what its verb announces" if words and _lacks_complement(text) else None


def _lacks_complement(text: str) -> bool:
    """Whether the last clause ends in a verb that something must follow: "The helmets are"."""
    clause = _CLAUSE_END.split(text)[-1]
    words = [word.strip(",()\"'–-").lower() for word in clause.split()]
    return (
        len(words) >= _FEWEST_WORDS
        and clause.split()[-1] in _LINKING_VERBS
        and words[-2] not in _SHORT_SUBJECT
        and _WHOLE_CLAUSE.isdisjoint(words)
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


@cache
def _function_words() -> frozenset[str]:
    """Words that cannot end a sentence, whatever the language: `function_words.txt`."""
    lines = Path(__file__).with_name("function_words.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split()[1:])
