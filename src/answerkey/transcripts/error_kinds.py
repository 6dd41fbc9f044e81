"""Which kind of system error a message tells of: error texts as chatbots, drivers and gateways write them."""

import re
from typing import Literal

from answerkey.text.lazy import lazy

SystemErrorKind = Literal["connection", "tool", "timeout", "memory", "rate_limit", "http", "exception"]

# "module.ClassName: what happened"; the class says more than the words after it.
_CLASS = lazy(r"^\s*(?:[A-Za-z_]\w*\.)*([A-Z]\w{2,})\s*(?:[:(]|$)")

# A bare 429 may be an invoice number, so it needs a neighbour that makes it a status.
_RATE_LIMIT = lazy(
    r"rate[\s_-]?limit|too many requests|quota (?:was |has been |is )?(?:exceeded|reached|exhausted)"
    r"|(?:exceeded|over|out of)\b[^.]{0,40}\bquota|insufficient[\s_]quota"
    r"|resource[\s_]exhausted|throttl(?:ed|ing)|\b(?:http|status|code|error)\W{0,3}(?:code\W{0,3})?429\b|^\W*429\b",
    re.IGNORECASE,
)
_STATUS = lazy(
    r"\b(?:http(?:/\d(?:\.\d)?)?|status|code|error)\W{0,3}(?:status|code|error)?\W{0,3}([45]\d\d)\b"
    r"|\b([45]\d\d)\W{1,2}(?:bad request|unauthori[sz]ed|payment required|forbidden|not found|method not allowed"
    r"|conflict|gone|payload too large|unprocessable|internal server error|not implemented|bad gateway"
    r"|service (?:temporarily )?unavailable|gateway time-?out|client error|server error)",
    re.IGNORECASE,
)
_TIMEOUT = lazy(
    r"time[\s_-]?out\b|timed[\s_-]out|timeouterror|deadline[\s_](?:was )?exceeded|time limit exceeded|took too long"
    r"|ETIMEDOUT",
    re.IGNORECASE,
)
_MEMORY = lazy(
    r"memoryerror|out[\s_-]of[\s_-]memory|outofmemory|cannot allocate memory|memory (?:exhausted|limit exceeded)"
    r"|\bOOM(?:Killed)?\b|\bENOMEM\b",
    re.IGNORECASE,
)
_TOOL = lazy(
    r"\btool(?:[\s_-]?(?:call|execution|use|invocation))?\s*(?:error|exception|failed|failure)"
    r"|\btool\b[^.\n]{0,60}\b(?:failed|raised|errored|crashed|not found|does not exist|is unavailable)\b"
    r"|\b(?:error|failure|failed|exception)\b[^.\n]{0,30}\b(?:executing|calling|running|invoking|in"
    r"|to (?:execute|call|run|invoke)) (?:the |a )?(?:tool|function)\b"
    r"|mcp_tool_execution_error",
    re.IGNORECASE,
)
_CONNECTION = lazy(
    r"connection[\s_-]?(?:\w+ ){0,3}(?:was |has been |is )?"
    r"(?:refused|reset|aborted|closed|dropped|lost|failed|failure|error|terminated)"
    r"|(?:could not|couldn't|cannot|can't|can not|failed to|unable to)(?: \w+){0,2} (?:re)?connect"
    r"|ECONNREFUSED|ECONNRESET|ECONNABORTED|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|EPIPE"
    r"|name or service not known|nodename nor servname|getaddrinfo|name resolution|no route to host"
    r"|(?:network|host|server|database) is (?:unreachable|down|unavailable|not available|offline)|broken pipe"
    r"|server disconnected|server closed the connection|unable to open database|database is locked"
    r"|connect(?:ion)? call failed|remote end closed|connection to \S+(?: \S+){0,6} failed",
    re.IGNORECASE,
)
_IN_ORDER: tuple[tuple[SystemErrorKind, re.Pattern[str]], ...] = (
    ("tool", _TOOL),
    ("memory", _MEMORY),
    ("timeout", _TIMEOUT),
    ("connection", _CONNECTION),
)
# Where a class's name settles it, whatever its message says.
_CLASS_KINDS: tuple[tuple[SystemErrorKind, re.Pattern[str]], ...] = (
    ("rate_limit", lazy(r"RateLimit|TooManyRequests|QuotaExceeded|ResourceExhausted|Throttl")),
    ("timeout", lazy(r"Time[dD]?[oO]ut|DeadlineExceeded")),
    ("memory", lazy(r"^MemoryError$|OutOfMemory")),
    (
        "tool",
        lazy(r"^Tool(?!kit)|Tool(?:Execution|Call|Invocation|Use)?(?:Error|Exception|Failure)$|^McpError$"),
    ),
    (
        "connection",
        lazy(
            r"^(?:Connection(?:Error|Refused|Reset|Aborted|Closed|Failed|Exception)|BrokenPipe|gaierror|herror|APIConnection"
            r"|ClientConnector|ClientConnection|ClientOSError|ServerDisconnected|ConnectError|NetworkError|NewConnection"
            r"|ServiceUnreachable|SSLError|DNS|ClientPayload|RemoteProtocol|TransportError)",
        ),
    ),
)


def kind_of_status(status: int) -> SystemErrorKind:
    """The kind of a reply with this HTTP status (400 or above)."""
    return "rate_limit" if status == 429 else "http"


def kind_of_class_name(name: str) -> SystemErrorKind | None:
    """The kind that an exception class's bare name settles, or None if it does not."""
    return next((kind for kind, pattern in _CLASS_KINDS if pattern.search(name)), None)


def classify_error(message: str) -> SystemErrorKind:
    """The kind of system error that an error message tells of; `exception` if it gives no hint."""
    # The hint stands at the start; a trace of a megabyte is not searched.
    message = message[:2000]
    named = _CLASS.match(message)
    if named and (kind := kind_of_class_name(named[1])):
        return kind
    if _RATE_LIMIT.search(message):
        return "rate_limit"
    if _STATUS.search(message):
        return "http"
    return next((kind for kind, pattern in _IN_ORDER if pattern.search(message)), "exception")
