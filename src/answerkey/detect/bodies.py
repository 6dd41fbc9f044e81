"""Bodies instead of answers: JSON and XML errors, error pages, tool calls and raw messages."""

# ruff: noqa: E501 — lists of phrases.

import json
import re
from collections.abc import Callable

from answerkey.detect.detected import DetectedFailure
from answerkey.detect.explained import beside_fences
from answerkey.detect.signs import kind_of
from answerkey.text.lazy import lazy

__all__ = ["failing_body"]

_HTML_ERROR = lazy(
    r"<(?:title|h1|h2|center|p)[^>]*>\s*(?:<\w+>)?\s*(?:error\b|\d{3} |[45]\d\d\b|bad gateway|"
    r"internal server error|service (?:temporarily )?unavailable|"
    r"gateway time-?out|access denied|forbidden|not found|application error|something went wrong|"
    r"whitelabel error|just a moment|sign ?in|log ?in|redirecting|(?:site |under )?maintenance|are you a robot|access to this page|"
    r"server error|request rejected|attention required)",
    re.IGNORECASE,
)
_XML_ERROR = lazy(
    r"(?:<\?xml[^>]{0,100}>\s*)?(?:<[\w:]*(?:Envelope|Body|Response)\b[^>]{0,200}>\s*){0,3}<(?:\w{1,20}:)?(?:\w{"
    r"0,20}(?:error|fault|exception)s?|ErrorResponse)\b(?![^>]{0,100}/>)",
    re.IGNORECASE,
)
_FAILING_STATUS = frozenset(
    [
        "error",
        "failed",
        "failure",
        "fail",
        "timeout",
        "timed_out",
        "unavailable",
        "denied",
        "exception",
        "crashed",
        "aborted",
        "internal",
        "internal_error",
        "server_error",
        "bad_gateway",
        "rejected_by_server",
    ]
)
# Where a body says how it went.
_STATUS_KEYS = (
    "status",
    "state",
    "result",
    "outcome",
    "statusCode",
    "status_code",
    "code",
    "http_code",
    "httpStatus",
)
# What a body with only a message says if it is an error.
_BODY_SIGNS = lazy(
    r"\bnot (?:found|auth|allowed|valid|support|available|permitted|implemented)|internal|"
    r"denied|forbidden|invalid|endpoint|unauthori|exceed|missing|required|"
    r"timed? ?out|failed|failure|unavailable|expired|too many|throttl|error|exception|"
    r"bad request|credential|refused|unsupported|went wrong|overload|(?:could|can) ?not|unable",
    re.IGNORECASE,
)
# A body with nothing but these is a message, which its words decide;
_PLAIN_TEXT = """
detail message Message msg code reason __type statusText request_id requestId details
"""
_PLAIN_KEYS = frozenset(_PLAIN_TEXT.split())
# with these beside them it still has nothing else to say.
_BESIDE_TEXT = """
description title type path timestamp trace_id traceId correlationId instance hint help documentation_url body
status state result outcome data statusCode status_code http_code httpStatus ok success time method url
retryable retry_after id job_id jobId task_id run_id session_id sessionId service severity level tool object
name node step
"""
_MESSAGE_KEYS = _PLAIN_KEYS | frozenset(_BESIDE_TEXT.split())
_ERROR_KEYS = [
    "error",
    "errors",
    "exception",
    "fault",
    "errorMessage",
    "error_message",
    "Error",
    "stackTrace",
    "traceback",
    "error_code",
    "errorCode",
    "error_description",
    "exceptionMessage",
    "faultstring",
    "is_error",
    "isError",
    "err",
    "errno",
    "errorType",
    "error_type",
    "last_error",
]
_CALL_KEYS = (
    {"name", "arguments"},
    {"tool_calls"},
    {"function_call"},
    {"tool", "tool_input"},
    {"action", "action_input"},
    {"tool", "arguments"},
    {"tool", "args"},
    {"name", "parameters"},
    {"function", "arguments"},
    {"recipient_name", "parameters"},
    {"tool_name", "tool_input"},
    {"tool_name", "arguments"},
    {"type", "function"},
    {"tool", "input"},
    {"name", "input", "type"},
    {"tool_use_id"},
)
_ANSWER_KEYS = (
    "answer",
    "response",
    "text",
    "output",
    "message",
    "content",
    "result",
    "data",
    "results",
    "value",
    "reply",
    "completion",
)
# What stands beside an answer.
_BESIDE_ANSWER = frozenset(
    [
        "sources",
        "citations",
        "context",
        "documents",
        "references",
        "metadata",
        "id",
        "model",
        "usage",
        "session_id",
        "conversation_id",
        "confidence",
        "tools",
        "tool_calls",
        "steps",
        "followups",
        "suggestions",
        "latency",
        "duration",
        "timestamp",
    ]
)
_TAG = lazy(r"<!--.*?-->|<(?:style|script)\b.*?</(?:style|script)>|<[^<>]{1,300}>", re.DOTALL | re.IGNORECASE)
_HTTP_HEAD = lazy(r"HTTP/\d(?:\.\d)? \d{3}[^\n]*\n(?:[\w-]+:[^\n]*\n)*\s*\n")


def failing_body(
    stripped: str, start: int, whole: bool, notice: "Callable[[str, int], DetectedFailure | None]"
) -> DetectedFailure | None:
    """JSON bodies and HTML pages instead of an answer."""
    if stripped[0] == "<":
        fault = _XML_ERROR.match(stripped)
        if fault:
            return DetectedFailure(kind_of(stripped), fault.group()[-200:], start, start + fault.end())
        page = _HTML_ERROR.search(stripped)
        if page:
            return DetectedFailure(kind_of(page.group()) if kind_of(page.group()) != "error_text" else "http",
                                   page.group(), start + page.start(), start + page.end())  # fmt: skip
        shown = _TAG.sub(" ", stripped).strip()
        told = notice(shown, 0) if shown else None
        return DetectedFailure(told.kind, told.message, start, start + len(stripped)) if told else None
    headers = _HTTP_HEAD.match(stripped)
    if headers and headers.end() < len(stripped):
        return failing_body(stripped[headers.end() :].lstrip(), start + headers.end(), whole, notice)
    body = stripped
    if stripped.startswith("```"):
        if beside_fences(stripped):
            return None
        body = stripped.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if body[:1] not in {"{", "["}:
        return None
    if not whole:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        if re.match(r"[\[{]\s*[{\[]?\s*\"[\w$ -]+\"\s*:", body) and body[-1:] not in {"}", "]"}:
            return DetectedFailure("malformed", "JSON that breaks off", start, start + len(stripped))
        if re.match(
            r"\[?\{'(?:error|role|content|type|id|tool|name|tool_calls|function|message|status)'\s*:", body
        ):
            kind = kind_of(body) if re.match(r"\[?\{'error'", body) else "malformed"
            return DetectedFailure(kind, "a raw object", start, start + len(stripped))
        return None
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return None
    keys = set(first)
    failed = _failed_value(first, body, notice)
    if failed:
        return DetectedFailure(failed, body[:200], start, start + len(stripped))
    if any(call <= keys for call in _CALL_KEYS) and not any(key in keys for key in ("answer", "response")):
        return DetectedFailure("malformed", "a tool call instead of an answer", start, start + len(stripped))
    if (
        keys >= {"role", "content"}
        or keys >= {"choices"}
        or keys >= {"candidates"}
        or (keys >= {"id", "object", "model"})
    ):
        return DetectedFailure("malformed", "a raw message object", start, start + len(stripped))
    return None


def _failed_value(
    value: dict[str, object], body: str, notice: "Callable[[str, int], DetectedFailure | None]"
) -> str | None:
    """The kind of failure that an object tells of: by a key of errors, a status, its message, or an answer that is none."""
    keys = set(value)
    says = " ".join(
        str(value.get(key, "")) for key in ("error", "message", "detail", "title", "status", "code", "type")
    )
    # A number of errors is a result; a body that only tells of itself has no other keys.
    others = keys - _MESSAGE_KEYS - set(_ERROR_KEYS)
    if any(
        value.get(key) and not (others and key == "errors" and _is_count(value[key])) for key in _ERROR_KEYS
    ):
        return kind_of(body)
    if (not others or ("message" in keys and len(others) <= 2)) and any(
        _is_failing_status(value.get(key)) for key in _STATUS_KEYS
    ):
        return kind_of(body)
    if value.get("success") is False or value.get("ok") is False or value.get("type") == "error":
        return kind_of(body)
    if keys <= _MESSAGE_KEYS and "message" in keys | {key.lower() for key in keys} and not _is_success(value):
        if notice(str(value.get("message", says)).strip() or " ", 0) or _only_a_message(keys, body):
            return kind_of(says)
    elif keys <= _MESSAGE_KEYS and (notice(says.strip() or " ", 0) or _only_a_message(keys, body)):
        return kind_of(says)
    said = next((key for key in _ANSWER_KEYS if key in keys), None)
    if said is None or not keys <= {said} | _BESIDE_ANSWER:
        return None
    answer = value[said]
    if answer in (None, ""):
        return "null"
    if isinstance(answer, dict) and len(keys) == 1:
        return _failed_value(answer, body, notice)
    told = notice(answer.strip() or " ", 0) if isinstance(answer, str) else None
    return told.kind if told else None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_failing_status(status: object) -> bool:
    if isinstance(status, str):
        return status.lower() in _FAILING_STATUS or bool(re.fullmatch(r"[45]\d\d", status))
    return isinstance(status, int) and 400 <= status <= 599


def _is_success(value: dict[str, object]) -> bool:
    return value.get("success") is True or value.get("ok") is True or value.get("code") in {200, "200"} or (
        str(value.get("status", "")).lower() in {"ok", "success", "200", "done", "completed"}
    )  # fmt: skip


def _only_a_message(keys: set[str], body: str) -> bool:
    return keys <= _PLAIN_KEYS and _BODY_SIGNS.search(body) is not None
