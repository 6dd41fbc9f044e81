"""Forms that are certain: a reply of this build is no answer, whatever its words; and marks that tell the kind of an error."""

# ruff: noqa: E501 — lists of marks and keys.

import re
from typing import Any

import msgspec

from answerkey.text.normalise import lazy
from answerkey.transcripts.json_values import decode_json

# White space, control and format characters, and the marks that leave nothing on the screen.
_INVISIBLE = lazy(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]*"
)
# "none" in small letters is an answer ("How many are late? none"), and so is "None.".
_NULLS = frozenset(
    {"null", "NULL", "Null", "None", "undefined", "NaN", "nan", "nil", "<null>", "(null)", "<nil>", "nullptr", "[null]", "[]", "{}",
     '""', "''"}
)  # fmt: skip
_NULL_WORDS = lazy(
    r"[\W_]*(?:(?:null|NULL|undefined|NaN|nullptr)[\W_]+)*(?:null|NULL|undefined|NaN|nullptr)[\W_]*"
)
_ONLY_MARKS = lazy(r"[.…·\-–—_*#`\"'~|>?!,;:()\[\]{}<=+/\\\s]+")
_EMPTY_MARKUP = lazy(
    r"(?:</?(?:p|br|div|span|em|b|i|strong|html|head|body|ul|ol|li|h[1-6]|pre|code)\b[^<>\n]{0,100}>|&(?:nbsp|#160|#xa0);|\s)+|```\w*\s*(?:```)?",
    re.IGNORECASE,
)
_LABEL = lazy(
    r"[\W_]*(?:(?:final )?(?:answer|response|reply|output|result)|assistant|bot|ai|system)[*_ ]*[:>][\W_]*",
    re.IGNORECASE,
)
_UNDECODED = lazy("[\ufffd\ud800-\udfff\x00-\x08\x0e-\x1a]")
_MOJIBAKE = lazy("Ã[\x80-\xbf¡-¿ƒ‚„…†‡‰‹Œ]|â€[™œ\x9d“”¦˜]|ã[\x80-\xbf]{2}|æ[\x80-\xbf]{2}")
# Lines that only a trace has.
_TRACE_LINES = (
    r"Traceback \(most recent call last\)|^[ \t]+File \"[^\"\n]+\", line \d+|^[ \t]+at (?:async )?[\w.$<>/@\[\] ]+\([^)\n]*\)|"
    r"^[ \t]*at (?:async )?\S+:\d+:\d+|^[ \t]+from \S+:\d+:in |^\S+\.rb:\d+:in |^goroutine \d+ \[|^panic: |^#\d+ +\S+\(\d+\)|^Caused by: |"
    r"^thread '[^']*' panicked|^Exception in thread "
)
_TRACE_LINE = lazy(_TRACE_LINES, re.MULTILINE)
# Without one of these there is no such line.
TRACE_HINTS = (
    "Traceback", 'File "', "\tat ", "  at ", "\nat ", "\n at ", "\tfrom ", "  from ", "\nfrom ", ".rb:", "goroutine", "panic", "#", "Caused by",
    "Exception in",
)  # fmt: skip
_TRACE = lazy(rf"{_TRACE_LINES}|^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception): ", re.MULTILINE)
_LEAK = lazy(
    r"\{\{|\$\{|%\(\w+\)s|\{%|<%|\{[^\W\d][\w.|]*\}|\[[A-Z_]{3,}\]|<[A-Z_]{3,}>|@@|\|\||<\||\[object |<\w+ object|object at 0x|"
    r"\b(?:undefined|NaN|null|Invalid Date)\b|tool_calls?\b|function_call|\"arguments\"|Action Input:|</?(?:think|tool_\w+)>|\[/?INST\]"
)
_CONTROL_MARK = lazy(
    r"<\|(?:im_start|im_end|endoftext|assistant|system|user|eot_id|start_header_id)\|>|\[/INST\]|<<SYS>>"
)
_PRINTED_OBJECT = lazy(
    r"\[object \w+\]|<[\w.]+ (?:object|instance) at 0x[0-9a-fA-F]+>|<(?:coroutine|generator|function|bound method) [^>\n]{1,200}>|<Response \[\d{3}\]>"
)
# What stands in these is spoken of.
_QUOTES = lazy("[\"“”`«»'‘’]\\S|「")
_LARGEST_BODY = 200_000
_ERROR_KEYS = frozenset(
    str.split(
    "error errors exception fault errormessage error_message stacktrace traceback error_code errorcode error_description exceptionmessage "
    "faultstring is_error iserror err errno errortype error_type last_error"
    )
)  # fmt: skip
# What a body that only tells of itself has beside its error.
_BESIDE_ERROR = _ERROR_KEYS | frozenset(
    str.split(
    "detail details message msg code reason __type statustext request_id requestid description title type path timestamp trace_id traceid "
    "correlationid instance hint help documentation_url status state result outcome data statuscode status_code http_code httpstatus ok "
    "success time method url retryable retry_after id job_id jobid task_id run_id session_id sessionid service severity level tool object "
    "name node step answer response output"
    )
)  # fmt: skip
_FAILED = frozenset(
    str.split(
        "error failed failure fail timeout timed_out unavailable denied exception crashed aborted internal internal_error server_error"
    )
)
_CALLS = (
    {"name", "arguments"}, {"tool_calls"}, {"function_call"}, {"tool", "tool_input"}, {"action", "action_input"}, {"tool", "arguments"},
    {"tool", "args"}, {"name", "parameters"}, {"function", "arguments"}, {"tool_name", "arguments"}, {"tool", "input"}, {"tool_use_id"},
    {"role", "content"}, {"choices"}, {"candidates"},
)  # fmt: skip


class DetectedFailure(msgspec.Struct, frozen=True):
    """Why a reply counts as an error."""

    # A response error of the scoring standard: empty, null, error_text, trace or malformed.
    kind: str
    # The telling part of the reply, or what is wrong with it.
    message: str
    # Span of the telling part in the reply.
    start: int = 0
    end: int = 0
    # What decided: the name of a form, or words of the reply in quotation marks, figures and concepts, the strongest first.
    because: tuple[str, ...] = ()
    # How likely it is an error; 1 where a form is certain.
    probability: float = 1.0


def certain_form(text: str | None, stripped: str) -> DetectedFailure | None:
    """The failure that the form of a reply shows by itself; `stripped` is the text without white space around it."""
    if text is None:
        return DetectedFailure("null", "there is no reply", because=("null",))
    if not stripped or _INVISIBLE.fullmatch(stripped):
        return DetectedFailure("empty", "the reply is empty", 0, len(text), ("empty",))
    first = stripped[0]
    if len(stripped) <= 80:
        if stripped in _NULLS or (stripped not in {"none", "None."} and _NULL_WORDS.fullmatch(stripped)):
            return DetectedFailure("null", stripped, 0, len(text), ("null",))
        if stripped[-1] in ":>*_ " and _LABEL.fullmatch(stripped):
            return DetectedFailure("empty", "a label without a text", 0, len(text), ("label",))
    if not first.isalnum():
        if _ONLY_MARKS.fullmatch(stripped) or _EMPTY_MARKUP.fullmatch(stripped):
            return DetectedFailure(
                "empty", "the reply is only punctuation or empty markup", 0, len(text), ("empty",)
            )
        if first in "{[`" and len(stripped) <= _LARGEST_BODY:
            body = _failing_body(stripped)
            if body:
                return DetectedFailure(body[0], body[1], 0, len(text), ("body",))
    return None


def marked_form(head: str) -> DetectedFailure | None:
    """In a clipped text: a trace without words around it, undecoded text, marks that should have stayed inside."""
    lines = [line for line in head.split("\n") if line.strip()]
    trace = _TRACE_LINE.search(head) if any(map(head.__contains__, TRACE_HINTS)) else None
    if (
        trace
        and 2 * len(_TRACE_LINE.findall(head)) + 2 >= len(lines)
        and not _is_prose(lines[-1])
        and not _is_prose(lines[0])
    ):
        return DetectedFailure("trace", trace.group().strip()[:200], trace.start(), trace.end(), ("trace",))
    if len(_UNDECODED.findall(head)) * 20 > len(head) or (
        not head.isascii() and len(_MOJIBAKE.findall(head)) * 20 > len(head)
    ):
        return DetectedFailure("malformed", "text that was not decoded", 0, len(head), ("undecoded",))
    if len(head) >= 400 or ("<" not in head and "[" not in head):
        return None
    mark = _CONTROL_MARK.search(head) or _PRINTED_OBJECT.search(head)
    if mark and not _QUOTES.search(head):
        return DetectedFailure("malformed", mark.group(), mark.start(), mark.end(), ("mark",))
    return None


def kind_by_marks(text: str, breaks_off: bool) -> str:
    """The kind of a reply that was found to be an error: by a trace, by what should have stayed inside, else a message."""
    if _TRACE_LINE.search(text) or ("\n" in text and _TRACE.search(text)):
        return "trace"
    return "malformed" if breaks_off or _LEAK.search(text) else "error_text"


def _is_prose(line: str) -> bool:
    """Whether a line is a sentence of somebody who explains: ten words or more, and few signs of code."""
    return (
        len(line.split()) >= 10
        and line.rstrip()[-1:] in ".!?:"
        and len(re.findall(r"[{}<>=\\/()]", line)) <= 3
    )


def _failing_body(stripped: str) -> tuple[str, str] | None:
    """Kind and message of a JSON body that tells of an error or should have stayed inside."""
    body = stripped
    if body.startswith("```"):
        body = body.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        value = decode_json(body)
    except ValueError:
        return None
    first: Any = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return None
    fields = {str(key).lower(): item for key, item in first.items()}
    keys = set(fields)
    told = any(fields.get(key) and not isinstance(fields[key], int) for key in keys & _ERROR_KEYS)
    said_no = fields.get("success") is False or fields.get("ok") is False or fields.get("is_error") is True
    if (
        told
        or said_no
        or any(
            _says_failed(fields.get(key)) for key in ("status", "state", "code", "statuscode", "status_code")
        )
    ) and (keys <= _BESIDE_ERROR):
        return "error_text", body[:200]
    if any(call <= keys for call in _CALLS) and keys.isdisjoint({"answer", "response"}):
        return "malformed", "a raw message or a call of a tool instead of an answer"
    return None


def _says_failed(status: object) -> bool:
    if isinstance(status, str):
        return status.lower() in _FAILED or bool(re.fullmatch(r"[45]\d\d", status))
    return isinstance(status, int) and 400 <= status <= 599
