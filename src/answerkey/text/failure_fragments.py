"""What programs leave in the place of an answer without a sentence: bare names of errors, gateways' lines, tails of logs, a stream
that breaks off in an error's body.
"""

# ruff: noqa: E501 — lists of phrases.

import re
from collections.abc import Callable

from answerkey.text.detected_failure import DetectedFailure
from answerkey.text.failure_signs import kind_of
from answerkey.text.lazy import lazy

__all__ = ["failing_fragment"]

_LONGEST_NAME = 80
# "insufficient_quota", "ActiveRecord::ConnectionNotEstablished": one word in a program's spelling that names a failure.
_NAME = lazy(
    r"(?=\S*(?:[a-z][A-Z]|_|::|[A-Z]{6}))\W*[\w:.$]*?(?i:error|exception|fail|timeout|timed_?out|denied|refused|quota|exceed|invalid|unavailable|unauth|exhaust|not_?found|overload|not_?(?:established|available|connected|allowed|implemented)|throttl|bad_alloc|interrupt|aborted)[\w:.$]*\W*"
)
_LONGEST_LINE = 60
# A gateway's whole answer.
_GATEWAY = lazy(
    r"\W*(?:no (?:healthy|available|live|reachable|active|working) (?:upstreams?|servers?|backends?|nodes?|instances?|workers?|hosts?|endpoints?|providers?|deployments?|models?)(?: available| found)?"
    r"|(?:[a-z]+ ){0,3}[-–:] ?[45]\d\d|[45]\d\d (?:[a-z]+ ){0,2}not found|cannot (?:get|post|put|delete) /\S*"
    r"|socket hang up|(?:data: ?)?\[done\]"
    r"|(?:error )?no (?:response|output|content|completion|reply)(?: (?:available|received|returned|generated))?)\W*",
    re.IGNORECASE,
)
# A line of a log: a time, or a level, at its beginning.
_LOG_LINE = lazy(
    r"\W*(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|\d\d/\w{3}/\d{4}|\w{3} +\d{1,2} \d\d:\d\d:\d\d|\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL|TRACE)\]?\b)"
)
_LOG_FAILURE = lazy(
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b|(?:Error|Exception)\b|(?i:\bfailed\b|timed out|giving up|refused|aborted|unreachable)"
)
# The body of an error at the end of a text that had begun to answer.
_BODY = lazy(
    r"(?:data: ?)?\{\s*\"(?:error|errors|status|type|code|message|detail|success|ok)\"\s*:[^`]{1,1000}\}\s*\Z"
)
# Before it: a sentence that is cut off, or an announcement.
_BEGUN = lazy(
    r"(?:[\w,](?<!means)|…|\.\.\.)\s*\Z|(?i:\b(?:let me|one moment|checking|searching|looking|i(?:['’]ll| will)|just a|hold on)\b[^\n]{0,80}\s*\Z)"
)


def failing_fragment(
    stripped: str, start: int, whole: bool, body: "Callable[[str], DetectedFailure | None]"
) -> DetectedFailure | None:
    """A failure that is told by no sentence; `body` says whether a JSON body is one."""
    found = None
    if not whole:
        return None
    if len(stripped) <= _LONGEST_NAME and " " not in stripped:
        found = _NAME.fullmatch(stripped)
    elif len(stripped) <= _LONGEST_LINE:
        found = _GATEWAY.fullmatch(stripped)
    if found:
        return DetectedFailure(kind_of(stripped), stripped, start, start + len(stripped))
    if "\n" in stripped and (stripped[0] in "[" or stripped[0].isdigit() or stripped[:4].isupper()):
        lines = [line for line in stripped.split("\n") if line.strip()]
        if len(lines) >= 2 and all(map(_LOG_LINE.match, lines)):
            telling = next(filter(_LOG_FAILURE.search, reversed(lines)), None)
            if telling:
                return DetectedFailure(kind_of(telling), telling[:200], start, start + len(stripped))
    if stripped[-1] == "}" and '{"' in stripped[1:]:
        found = _BODY.search(stripped)
        if found and found.start() and _BEGUN.search(stripped[: found.start()]):
            told = body(stripped[found.start() :].removeprefix("data:").strip())
            if told and told.kind != "malformed":
                return DetectedFailure(told.kind, told.message, start + found.start(), start + len(stripped))
    return None
