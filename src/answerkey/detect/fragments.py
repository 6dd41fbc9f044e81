"""What programs leave in the place of an answer without a sentence: bare names of errors, gateways' lines, tails of logs, a stream
that breaks off in an error's body or notice.
"""

# ruff: noqa: E501 — lists of phrases.

import re
from collections.abc import Callable

from answerkey.detect.detected import DetectedFailure
from answerkey.detect.signs import kind_of
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
_BEGUN_TO = lazy(
    r"(?i:\b(?:let me|one moment|checking|searching|looking|working|fetching|loading|i(?:['’]ll| will)|just a|hold on)\b[^\n]{0,80}\Z)"
)
# What ends a text that was cut off: a notice in brackets, or in the last lines, with a mark of its own.
_TAIL = lazy(
    r"(?:\s*[\[(<]([^\[\]()<>\n]{3,150})[\])>]|\n\s*(\S[^\n]{3,200})|\s((?:-{2,}|—|\*{3,}|[⚠❌🚫🔴⛔])\W*\w[^\n]{3,200}))\W*\Z"
)
_MARKED = lazy(
    r"\W*(?:[⚠❌🚫🔴⛔]|\[|<|\*\*|--|—|(?:[a-z]\w*)?(?:error|exception|timeout)\b|fatal\b)", re.IGNORECASE
)
_TAIL_MARKS = ("--", "—", "***", "⚠", "❌", "🚫", "🔴", "⛔")
# What a tool said, after its name: "query_database -> ERROR: …".
_OF_A_TOOL = lazy(r"[`\[(]?[a-z]+(?:_[a-z]+){1,4}(?:\(\))?[`\])]?\s*(?:->|=>|→|:|\|)\s*(?=\S)")
_OF_A_STREAM = lazy(
    r"\W*(?:stream|response|generation|connection|output|completion|reply|transmission)\b", re.IGNORECASE
)
# A sentence that ends so does not end: "the members are".
_UNFINISHED = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "but",
        "by",
        "for",
        "from",
        "had",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "our",
        "per",
        "so",
        "than",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "this",
        "to",
        "was",
        "were",
        "which",
        "who",
        "will",
        "with",
        "would",
        "your",
        "total",
        "following",
        "includes",
    ]
)
_FEWEST_WORDS = 3


def failing_fragment(
    stripped: str,
    start: int,
    whole: bool,
    body: "Callable[[str], DetectedFailure | None]",
    notice: "Callable[[str], DetectedFailure | None]",
) -> DetectedFailure | None:
    """A failure that is told by no sentence; `body` says whether a JSON body is one, and `notice` whether a text tells of one."""
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
    if "_" in stripped[:60]:
        tool = _OF_A_TOOL.match(stripped)
        told = notice(stripped[tool.end() :]) if tool else None
        if told:
            return DetectedFailure(told.kind, told.message, start, start + len(stripped))
    if stripped[-1] in "])>" or "\n" in stripped or any(map(stripped[-250:].__contains__, _TAIL_MARKS)):
        return _cut_off(stripped, start, notice)
    return None


def _cut_off(
    stripped: str, start: int, notice: "Callable[[str], DetectedFailure | None]"
) -> DetectedFailure | None:
    """A text that breaks off and ends with a notice of why: "The total was [connection lost]"."""
    tail = _TAIL.search(stripped, max(0, len(stripped) - 300))
    if tail is None:
        return None
    before, last = stripped[: tail.start()].rstrip(), tail[1] or tail[2] or tail[3]
    words = before.split()
    label = bool(tail[1]) and before.endswith(":")
    if not label and (
        len(words) < _FEWEST_WORDS
        or not (words[-1][-1].isalnum() or words[-1][-1] in ",…|" or before.endswith("..."))
    ):
        return None
    unfinished = words[-1].lower().rstrip(",") in _UNFINISHED or _BEGUN_TO.search(before) is not None
    if (
        not unfinished
        and not label
        and not (_MARKED.match(last) or (tail[1] and "\n" not in before[-60:]) or _OF_A_STREAM.match(last))
    ):
        return None
    told = notice(last.strip(" ⚠️❌🚫🔴⛔*[]<>—-"))
    if told is None:
        return None
    return DetectedFailure(told.kind, last[:200], start + tail.start(), start + len(stripped))
