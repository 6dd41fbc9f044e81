"""Kinds of system errors, recognised in the error texts of chatbots, drivers and gateways."""

import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from answerkey.model.reply import ERROR_KINDS, ErrorKind, Failure, JsonObject
from answerkey.protocols import RetryableError
from answerkey.text.normalise import lazy
from answerkey.transcripts.json_values import json_text, safe_text, type_in_words

SystemErrorKind = Literal["connection", "tool", "timeout", "memory", "rate_limit", "http", "exception"]

# Frames and characters of a traceback.
_MOST_FRAMES = 10
_MOST_TRACEBACK = 4000
_PACKAGE_FOLDER = str(Path(__file__).parents[1]) + os.sep
_SECRET_NAME = lazy(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6

# "module.ClassName: what happened"; the class says more than the words after it.
_CLASS = lazy(r"^\s*(?:[A-Za-z_]\w*\.)*([A-Z]\w{2,})\s*(?:[:(]|$)")

# Kind → what a message of it says. The first that fits counts.
_MESSAGE_KINDS: dict[SystemErrorKind, re.Pattern[str]] = {
    # A bare 429 may be an invoice number, so it needs a neighbour that makes it a status.
    "rate_limit": lazy(
        r"rate[\s_-]?limit|too many requests|quota (?:was |has been |is )?(?:exceeded|reached|exhausted)"
        r"|(?:exceeded|over|out of)\b[^.]{0,40}\bquota|insufficient[\s_]quota"
        r"|resource[\s_]exhausted|throttl(?:ed|ing)|\b(?:http|status|code|error)\W{0,3}(?:code\W{0,3})?429\b|^\W*429\b",
        re.IGNORECASE,
    ),
    "http": lazy(
        r"\b(?:http(?:/\d(?:\.\d)?)?|status|code|error)\W{0,3}(?:status|code|error)?\W{0,3}([45]\d\d)\b"
        r"|\b([45]\d\d)\W{1,2}(?:bad request|unauthori[sz]ed|payment required|forbidden|not found|method not allowed"
        r"|conflict|gone|payload too large|unprocessable|internal server error|not implemented|bad gateway"
        r"|service (?:temporarily )?unavailable|gateway time-?out|client error|server error)",
        re.IGNORECASE,
    ),
    "tool": lazy(
        r"\btool(?:[\s_-]?(?:call|execution|use|invocation))?\s*(?:error|exception|failed|failure)"
        r"|\btool\b[^.\n]{0,60}\b(?:failed|raised|errored|crashed|not found|does not exist|is unavailable)\b"
        r"|\b(?:error|failure|failed|exception)\b[^.\n]{0,30}\b(?:executing|calling|running|invoking|in"
        r"|to (?:execute|call|run|invoke)) (?:the |a )?(?:tool|function)\b"
        r"|mcp_tool_execution_error",
        re.IGNORECASE,
    ),
    "memory": lazy(
        r"memoryerror|out[\s_-]of[\s_-]memory|outofmemory|cannot allocate memory|memory (?:exhausted|limit exceeded)"
        r"|\bOOM(?:Killed)?\b|\bENOMEM\b",
        re.IGNORECASE,
    ),
    "timeout": lazy(
        r"time[\s_-]?out\b|timed[\s_-]out|timeouterror|deadline[\s_](?:was )?exceeded|time limit exceeded|took too long"
        r"|ETIMEDOUT",
        re.IGNORECASE,
    ),
    "connection": lazy(
        r"connection[\s_-]?(?:\w+ ){0,3}(?:was |has been |is )?"
        r"(?:refused|reset|aborted|closed|dropped|lost|failed|failure|error|terminated)"
        r"|(?:could not|couldn't|cannot|can't|can not|failed to|unable to)(?: \w+){0,2} (?:re)?connect"
        r"|ECONNREFUSED|ECONNRESET|ECONNABORTED|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|EPIPE"
        r"|name or service not known|nodename nor servname|getaddrinfo|name resolution|no route to host"
        r"|(?:network|host|server|database) is (?:unreachable|down|unavailable|not available|offline)|broken pipe"
        r"|server disconnected|server closed the connection|unable to open database|database is locked"
        r"|connect(?:ion)? call failed|remote end closed|connection to \S+(?: \S+){0,6} failed",
        re.IGNORECASE,
    ),
}
# Where a class's name settles it, whatever its message says.
_CLASS_KINDS: dict[SystemErrorKind, re.Pattern[str]] = {
    "rate_limit": lazy(r"RateLimit|TooManyRequests|QuotaExceeded|ResourceExhausted|Throttl"),
    "timeout": lazy(r"Time[dD]?[oO]ut|DeadlineExceeded"),
    "memory": lazy(r"^MemoryError$|OutOfMemory"),
    "tool": lazy(
        r"^Tool(?!kit)|Tool(?:Execution|Call|Invocation|Use)?(?:Error|Exception|Failure)$|^McpError$"
    ),
    "connection": lazy(
        r"^(?:Connection(?:Error|Refused|Reset|Aborted|Closed|Failed|Exception)|BrokenPipe|gaierror|herror|APIConnection"
        r"|ClientConnector|ClientConnection|ClientOSError|ServerDisconnected|ConnectError|NetworkError|NewConnection"
        r"|ServiceUnreachable|SSLError|DNS|ClientPayload|RemoteProtocol|TransportError)",
    ),
}


def kind_of_status(status: int) -> SystemErrorKind:
    """The kind of a reply with this HTTP status (400 or above)."""
    return "rate_limit" if status == 429 else "http"


def kind_of_class_name(name: str) -> SystemErrorKind | None:
    """The kind that an exception class's bare name settles, or None if it does not."""
    return next((kind for kind, pattern in _CLASS_KINDS.items() if pattern.search(name)), None)


def classify_error(message: str) -> SystemErrorKind:
    """The kind of system error in an error message; `exception` if it gives no hint."""
    # The hint is at the start; a trace of a megabyte is not searched.
    message = message[:2000]
    named = _CLASS.match(message)
    if named and (kind := kind_of_class_name(named[1])):
        return kind
    return next((kind for kind, pattern in _MESSAGE_KINDS.items() if pattern.search(message)), "exception")


# Failures from exceptions, and from error fields in their many dialects: a kind, and one clean line without secrets.


# An OperationalError that says one of these is about the statement, not about reaching the database.
_STATEMENT_ERRORS = ("no such", "syntax error", "near ", "has no column", "ambiguous", "does not exist")
# The fields of an error's object that name it, have its HTTP status and say what happened.
_NAMES = ("kind", "type", "name", "code", "status")
_STATUSES = ("code", "status", "status_code", "statusCode")
_MESSAGES = ("message", "detail", "error", "description", "reason", "content", "title")


def failure_from_exception(exc: BaseException, redact: Callable[[str], str] = str) -> Failure:
    """The failure that an exception of the chatbot amounts to."""
    if isinstance(exc, RetryableError):
        return exc.failure
    text = exception_text(exc)
    message = f"{type(exc).__name__}: {text}" if text else type(exc).__name__
    masked = _mask_environment(redact(message))
    return Failure(_kind(exc), failure_message(masked), redact(_own_frames(exc)))


def _own_frames(exc: BaseException) -> str:
    """The innermost frames of an exception in code that is not answerkey's, as a traceback writes them."""
    import traceback

    frames = [
        frame
        for frame in traceback.extract_tb(exc.__traceback__)
        if not frame.filename.startswith(_PACKAGE_FOLDER)
    ]
    here = str(Path.cwd()) + os.sep
    for frame in frames:
        frame.filename = frame.filename.removeprefix(here)
    lines = traceback.format_list(frames[-_MOST_FRAMES:])
    if len(frames) > _MOST_FRAMES:
        lines.insert(0, f"  … {len(frames) - _MOST_FRAMES} outer frames\n")
    # A source line may hold anything, and a path may be a terminal's control sequence.
    text = "".join(char for char in "".join(lines) if char == "\n" or char.isprintable())
    return _mask_environment(safe_text(text)[:_MOST_TRACEBACK].rstrip())


def _mask_environment(text: str) -> str:
    """A text without the values of environment variables that are named like secrets."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            text = text.replace(value, f"${{{name}}}")
    return text


def exception_text(exc: BaseException) -> str:
    """What an exception says; empty if asking it raises another one."""
    try:
        return str(exc)
    except Exception:  # noqa: BLE001  # the chatbot's own class
        return ""


def retryable_from_exception(exc: BaseException) -> RetryableError | None:
    """The same as a RetryableError if the chatbot was turned away: 429, 503 or a refused connection."""
    if isinstance(exc, RetryableError):
        return exc
    if isinstance(exc, ConnectionRefusedError) or _status(exc) in (429, 503):
        return RetryableError(failure_from_exception(exc), _retry_after(exc))
    return None


def failure_message(text: str, longest: int = 500) -> str:
    """`text` on one line, without control characters, not longer than `longest`."""
    # Far more than can be shown is enough to work on.
    text = text[: longest * 8]
    if not text.isprintable():
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn")
        )
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _kind(exc: BaseException, depth: int = 0) -> ErrorKind:
    if isinstance(exc, MemoryError):
        return "memory"
    if isinstance(exc, TimeoutError):
        return "timeout"
    names = [cls.__name__ for cls in type(exc).__mro__ if cls not in (Exception, BaseException, object)]
    status = _status(exc)
    if status == 429:
        return "rate_limit"
    for name in names:
        if kind := kind_of_class_name(name):
            return kind
    if isinstance(exc, ConnectionError):
        return "connection"
    text = exception_text(exc)
    # Every database driver has these two names, and they mostly mean that the database could not be had.
    if "OperationalError" in names or "InterfaceError" in names:
        return "exception" if any(part in text.lower() for part in _STATEMENT_ERRORS) else "connection"
    if status is not None and status >= 400:
        return kind_of_status(status)
    kind_in_text = classify_error(text)
    if kind_in_text == "exception" and exc.__cause__ is not None and depth < 5:
        return _kind(exc.__cause__, depth + 1)
    return kind_in_text


def _status(exc: BaseException) -> int | None:
    """The HTTP status that an exception of an HTTP client or SDK carries."""
    for holder in (exc, getattr(exc, "response", None)):
        for name in ("status_code", "status", "code"):
            try:
                value: object = getattr(holder, name, None)
            except Exception:  # noqa: BLE001, S112  # a property of the chatbot's own class
                continue
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
                return value
    return None


def _retry_after(exc: BaseException) -> float | None:
    for holder in (exc, getattr(exc, "response", None)):
        get = getattr(getattr(holder, "headers", None), "get", None)
        if callable(get):
            try:
                return max(0.0, float(get("Retry-After") or get("retry-after")))
            except (TypeError, ValueError):
                continue
    return None


# What programs write for no error.
_NO_ERRORS = frozenset(("", "none", "null", "nil", "nan", "false", "no", "no error", "ok", "0", "n/a", "-"))


def read_failure(value: object) -> Failure | None:
    """The failure in an error field; None if the field is empty."""
    if not value:
        return None
    if isinstance(value, str):
        if value.strip().casefold() in _NO_ERRORS:
            return None
        return Failure(classify_error(value), failure_message(safe_text(value)))
    if isinstance(value, dict):
        return _from_object(value)
    if isinstance(value, list):
        return (
            read_failure(value[0])
            if len(value) == 1
            else Failure("exception", failure_message(json_text(value)))
        )
    if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
        return Failure(kind_of_status(value), f"HTTP {value}")
    return Failure(
        "exception",
        "the reply says that there was an error" if value is True else failure_message(json_text(value)),
    )


NOT_TEXT_REMEDY = "return its text, a dict with the text under 'answer', or say where it is with reply.text"


def not_text(name: str | None, value: object) -> Failure:
    """The failure of a reply whose text is an object: as JSON it would be graded although no user saw it."""
    where = "the reply" if name is None else f"the reply's {name}"
    return Failure("malformed", f"{where} is {type_in_words(value)}, not text; {NOT_TEXT_REMEDY}")


def _from_object(value: JsonObject) -> Failure:
    named = next((name for key in _NAMES if isinstance(name := value.get(key), str)), None)
    said = next((text for key in _MESSAGES if isinstance(text := value.get(key), str) and text), None)
    for kind in ERROR_KINDS:
        if named == kind:
            return Failure(kind, failure_message(safe_text(said or kind)))
    message = failure_message(
        safe_text(": ".join(part for part in (named, said) if part) or json_text(value))
    )
    status = next(
        (code for key in _STATUSES if isinstance(code := value.get(key), int) and 400 <= code <= 599), None
    )
    return Failure(classify_error(message) if status is None else kind_of_status(status), message)
