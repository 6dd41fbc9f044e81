"""Certain forms: replies that are errors whatever the question was, as `forms.toml` lists them."""

import tomllib
from collections.abc import Iterable
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import msgspec
import re2

from answerkey.detect.bodies import Bodies, body_fields
from answerkey.detect.open_ends import open_end
from answerkey.text.normalise import lazy

# A longer reply is not one line of a system, or a letter with a leaked placeholder.
_LONGEST_LINE, _LONGEST_LETTER = 2000, 1500
# Spaces, invisible characters and punctuation.
_NOTHING = lazy(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff.…·\\-–—_*#`\"'~|>?!,;:()<=+/\\\\]*"
)
_UNDECODED = lazy("[\ufffd\ud800-\udfff\x00-\x08\x0e-\x1a]")
_MOJIBAKE = lazy(
    "[ÐÑ][^\\sA-Za-zÀ-ÿ]|[ÐÑ][°±²³´µ¶·¸¹º»¼½¾¿]|Ã[\x80-\xbf¡-¿ƒ‚„…†‡‰‹Œ]|â€[™œ\x9d“”¦˜]|ã[\x80-\xbf]{2}|æ[\x80-\xbf]{2}"
)
# Marks and spaces around a reply; the last two characters join emoji.
_MARKS = r"[\s\p{P}\p{S}\x{FE0F}\x{200D}]*"


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


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `forms.toml`."""

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


class FormTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """All of `forms.toml`."""

    whole: tuple[Form, ...]
    whole_unless: str
    inside: tuple[Form, ...]
    inside_unless: str
    bodies: Bodies

    @cached_property
    def any_whole(self) -> Any:
        """A quick test whether one of the whole forms may match."""
        return compile_form(f"{_MARKS}(?:{_either(self.whole)}){_MARKS}")

    @cached_property
    def any_inside(self) -> Any:
        """A quick test whether one of the forms may occur."""
        return compile_form(_either(self.inside))


@cache
def form_table() -> FormTable:
    """The table, read once."""
    text = (files("answerkey.detect") / "forms.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), FormTable)


@cache
def compile_form(pattern: str, case: bool = False) -> Any:
    """A compiled RE2 pattern."""
    options = re2.Options()
    options.case_sensitive, options.log_errors = case, False
    # Groups are never read; without them RE2 needs one pass.
    options.never_capture, options.max_mem = True, 64 << 20
    return re2.compile(pattern, options)


def _either(forms: Iterable[Form]) -> str:
    return "|".join(f"(?:{form.form})" for form in forms)


def shortened(text: str, longest: int = 120) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def is_blank(stripped: str) -> bool:
    """Whether a reply has no word, number, symbol or emoji."""
    return not stripped or (not stripped[0].isalnum() and _NOTHING.fullmatch(stripped) is not None)


def certain_form(stripped: str) -> DetectedFailure | None:
    """The form that a reply without spaces around it has; None: its form says nothing."""
    # RE2 cannot read half of a pair of surrogates; "?" keeps the spans right.
    plain = stripped.replace("’", "'").encode("utf-8", "replace").decode()
    return _undecoded_form(stripped) or _body_form(stripped) or _whole_form(plain) or _inside_form(plain)


def truncated_form(text: str) -> DetectedFailure | None:
    """Whether a reply certainly breaks off."""
    found = open_end(text)
    if found is None:
        return None
    start = max(0, len(text) - 40)
    return DetectedFailure("truncated", f"…{shortened(text[start:])}", start, len(text), (found,))


def _undecoded_form(text: str) -> DetectedFailure | None:
    head = text[:_LONGEST_LINE]
    found = len(_UNDECODED.findall(head)) or (0 if head.isascii() else len(_MOJIBAKE.findall(head)))
    if found * 20 <= len(head):
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


def _whole_form(text: str) -> DetectedFailure | None:
    table = form_table()
    if len(text) > _LONGEST_LINE or not table.any_whole.fullmatch(text):
        return None
    if compile_form(table.whole_unless).search(text):
        return None
    for form in table.whole:
        if compile_form(f"{_MARKS}(?:{form.form}){_MARKS}", form.case).fullmatch(text) and not (
            form.unless and compile_form(form.unless).search(text)
        ):
            return form.at(text, 0, len(text))
    return None


def _inside_form(text: str) -> DetectedFailure | None:
    table = form_table()
    if len(text) > _LONGEST_LETTER or not table.any_inside.search(text):
        return None
    for form in table.inside:
        found = compile_form(form.form, form.case).search(text)
        if found:
            # The form itself may have a word by which an answer would speak about it.
            around = f"{text[: found.start()]} {text[found.end() :]}"
            is_spoken_of = compile_form(table.inside_unless).search(around)
            return None if is_spoken_of else form.at(text, found.start(), found.end())
    return None
