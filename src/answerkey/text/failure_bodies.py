"""Bodies instead of answers: JSON and XML errors, error pages, tool calls and raw messages."""

import json
import re
from collections.abc import Callable

from answerkey.text.detected_failure import DetectedFailure
from answerkey.text.failure_explained import beside_fences
from answerkey.text.failure_signs import kind_of
from answerkey.text.lazy import lazy

__all__ = ["failing_body"]

_HTML_ERROR = lazy(
    r"<(?:title|h1|h2|center|p)[^>]*>\s*(?:<\w+>)?\s*(?:error\b|\d{3} |[45]\d\d\b|bad gateway|"
    r"internal server error|service (?:temporarily )?unavailable|"
    r"gateway time-?out|access denied|forbidden|not found|application error|something went wrong|"
    r"whitelabel error|just a moment|"
    r"server error|request rejected|attention required)",
    re.IGNORECASE,
)
_XML_ERROR = lazy(
    r"(?:<\?xml[^>]{0,100}>\s*)?(?:<[\w:]*(?:Envelope|Body|Response)\b[^>]{0,200}>\s*){0,3}<(?:\w{1,20}:)?(?:\w{"
    r"0,20}(?:error|fault|exception)s?|ErrorResponse)\b(?![^>]{0,100}/>)",
    re.IGNORECASE,
)
_FAILING_STATUS = {
    "error",
    "failed",
    "failure",
    "fail",
    "timeout",
    "unavailable",
    "denied",
    "exception",
    "crashed",
    "aborted",
}
# What a body with only a message says if it is an error.
_BODY_SIGNS = lazy(
    r"\bnot (?:found|auth|allowed|valid|support|available|permitted|implemented)|internal|"
    r"denied|forbidden|invalid|endpoint|unauthori|exceed|missing|required|"
    r"timed? ?out|failed|failure|unavailable|expired|too many|throttl|error|exception|"
    r"bad request|credential|refused|unsupported|went wrong|overload",
    re.IGNORECASE,
)
# A body with nothing beside these has only a message.
_MESSAGE_KEYS = frozenset(
    [
        "detail",
        "message",
        "Message",
        "msg",
        "code",
        "reason",
        "__type",
        "statusText",
        "request_id",
        "requestId",
    ]
)
_ERROR_KEYS = (
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
)
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
        if re.match(r"\{'(?:error|role|content|type|id|tool|name)'\s*:", body):
            kind = kind_of(body) if re.match(r"\{'error'", body) else "malformed"
            return DetectedFailure(kind, "a raw object", start, start + len(stripped))
        return None
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return None
    keys = set(first)
    says = " ".join(
        str(first.get(key, "")) for key in ("error", "message", "detail", "title", "status", "code", "type")
    )
    if any(first.get(key) for key in _ERROR_KEYS):
        return DetectedFailure(kind_of(body), body[:200], start, start + len(stripped))
    status = first.get("status", first.get("statusCode", first.get("status_code", first.get("code"))))
    failing = (isinstance(status, str) and status.lower() in _FAILING_STATUS) or (
        isinstance(status, int) and 400 <= status <= 599
    )
    if failing or first.get("success") is False or first.get("ok") is False or first.get("type") == "error":
        return DetectedFailure(kind_of(body), body[:200], start, start + len(stripped))
    if (keys <= {"detail", "message", "timestamp", "path", "requestId", "trace_id", "title"}) and notice(
        says.strip() or " ", 0
    ):
        return DetectedFailure(kind_of(says), body[:200], start, start + len(stripped))
    if keys <= _MESSAGE_KEYS and _BODY_SIGNS.search(body):
        return DetectedFailure(kind_of(says), body[:200], start, start + len(stripped))
    if len(first) == 1:
        only = next(iter(first))
        if only in _ANSWER_KEYS and first[only] in (None, ""):
            return DetectedFailure("null", body[:200], start, start + len(stripped))
        if only in _ANSWER_KEYS and isinstance(first[only], str) and notice(first[only].strip() or " ", 0):
            return DetectedFailure(kind_of(first[only]), body[:200], start, start + len(stripped))
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
