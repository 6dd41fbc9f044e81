"""Messages whose wording a program fixes: of operating systems, networks, languages, databases and providers of models.

Each is a line by itself, and a reply that is nothing else is a failure. A reply that goes on is one only if what follows is the
program's too, or asks for another try; what explains the message is an answer.
"""

# ruff: noqa: E501 — lists of messages.

import re
from functools import cache

from answerkey.detect.explained import advises, is_explaining_prose
from answerkey.detect.learned.roles import APOLOGY, HELP, RETRY
from answerkey.detect.learned.words import roles_of
from answerkey.detect.wordings import WORDINGS
from answerkey.text.lazy import lazy

__all__ = ["program_message"]

_LONGEST_LINE = 250
_MOST_WORDS_AFTER = 40
_EDGES = " \t!:;,*`\"'[]()<>-–—#⚠️❌🚫🔴"

# Where an argument comes first, or has a form of its own.
_SHAPES = lazy(
    r"(?:connect|read|write|bind|listen|spawn|open|send|accept|scandir|query\w*|getaddrinfo|request to \S+ failed, reason:) E[A-Z_]{3,}\b.*"
    r"|dial (?:tcp|udp|unix)\b.*|(?i:get|post|put|delete|head|patch) \"?https?://\S+?\"?: \S.*"
    r"|(?i:http(?:/[\d.]+)?(?: error| status)?(?: code)?|status(?: code)?):? ?[45]\d\d"
    r"|\d{1,2} [A-Z_]{6,30}: .*|(?:[A-Z]{2,}_){1,5}(?:FAILED|NXDOMAIN|TIMEOUT|REFUSED|INVALID|ABORTED|RESET|ERROR|DENIED|CLOSED)(?:: .*)?"
    r"|(?:[A-Z]\w+::)+\w+(?:: .+| \(.*\):?)|(?:[A-Z]\w+: )?\w+(?:Error|Exception) at /\S*"
    r"|(?=\S*[._$]\S)[A-Za-z_$][\w$.\[\]()]* is not (?:a function|defined|iterable|a constructor|callable|subscriptable|an object)"
    r"|\S+_\S+ is not a valid tool\b.*|undefined is not an? (?:object|function)\b.*|null is not an object\b.*"
    r"|'[\w.-]+' (?:object|codec|module) (?:is not|has no|can't|does not|cannot) .*|name '\w+' is not defined.*|'\S+' is not recognized as an internal or external command.*"
    r"|(?i:relation|column|table|view|database|schema|role|function|index|type|operator|constraint|sequence|model|tool|collection|queue|topic|bucket|key|file|path|host|user) (?:\"[^\"]+\"|'[^']+'|`[^`]+`|\w+[._]\w\S*) (?:(?:does not|doesn't) exist|already exists|(?:was |is )?not (?:found|registered|available))\b.*"
    r"|\d+ validation errors? (?:for|in) \w+.*|.{1,120} violates (?:[\w-]+ ){0,3}constraint\b.*|(?:[A-Z ]+ )?constraint failed: .*|near \"[^\"]*\": syntax error.*"
    r"|E1\d{4} [a-z].+|(?:[\w./-]+/)?[\w-]+\.(?:go|rs|c|cc|cpp|h|ts|tsx|js|py|java|hs|kt|swift|rb|php|scala|cs|lua|ml):\d+(?::\d+)?: .+"
    r"|(?:[\w.]+=(?:\"[^\"]*\"|[^\s\"]+) )*(?:level|severity|status|err|error|exception)=(?:\"?(?i:error|fatal|critical|failed|5\d\d|4\d\d)|\"[^\"]{4,}\").*|error=\w+&error_description=.*"
    r"|==\d+==\s?ERROR: .*|Error using \w+ \(line \d+\).*|Invalid '[^']+': .+|\[[A-Z_ ]*(?:ERROR|FAILED|FAILURE|TIMEOUT)[A-Z_ ]*\].*|[\w/.-]+: (?:line \d+: )?(?:\S+: )?command not found"
    r"|.{1,80}\(core dumped\)|(?:\S+ ){0,3}terminated by signal \S+.*|\(?'?Connection aborted\.'?, .*|Require stack:.*"
    r"|(?i:process|worker|container|job|task|pod)(?: \S+)? (?:was )?(?:killed|terminated|aborted) \((?i:signal|exit|code|oom|sig)[^)]{0,40}\)(?:: .*| (?:during|while|after|by) [^;]*)?",
)  # fmt: skip
# How a line of such a shape begins if not with a name or a figure.
_SHAPED_FIRST = frozenset(
    [
        "connect",
        "process",
        "worker",
        "container",
        "job",
        "task",
        "pod",
        "read",
        "write",
        "bind",
        "listen",
        "spawn",
        "open",
        "send",
        "accept",
        "scandir",
        "query",
        "getaddrinfo",
        "request",
        "dial",
        "get",
        "post",
        "put",
        "delete",
        "head",
        "patch",
        "http",
        "status",
        "django",
        "undefined",
        "null",
        "name",
        "relation",
        "column",
        "table",
        "view",
        "database",
        "schema",
        "role",
        "function",
        "index",
        "type",
        "operator",
        "constraint",
        "sequence",
        "model",
        "tool",
        "collection",
        "queue",
        "topic",
        "bucket",
        "key",
        "file",
        "path",
        "host",
        "user",
        "unique",
        "check",
        "foreign",
        "not",
        "near",
        "error",
        "invalid",
        "bash",
        "sh",
        "zsh",
        "aborted",
        "illegal",
        "killed",
        "process",
        "child",
        "update",
        "new",
        "duplicate",
        "insert",
        "quit",
    ]
)
_QUOTES = "\"“'‘«"
_NEXT_SENTENCE = lazy(r"(?<=[.!;])\s+(?=[A-Z])|\s+[-–—]\s+")


@cache
def _by_beginning() -> dict[str, re.Pattern[str]]:
    """One pattern for all wordings with the same first words, two where they are fixed; most replies begin with others."""
    wordings: dict[str, list[str]] = {}
    for line in WORDINGS:
        words = line.split()
        fixed = words[:2] if len(words) > 1 and "*" not in "".join(words[:2]) else words[:1]
        beginning = " ".join(word.strip(_EDGES).rstrip("*.…") for word in fixed)
        wordings.setdefault(beginning, []).append(
            re.escape(line).replace(r"\ \*", r"\ .{1,150}?").replace(r"\*", r".{0,200}")
        )
    return {beginning: re.compile("|".join(patterns)) for beginning, patterns in wordings.items()}


@cache
def _firsts() -> frozenset[str]:
    """The first words of all."""
    return _SHAPED_FIRST | {beginning.partition(" ")[0] for beginning in _by_beginning()}


def program_message(stripped: str) -> tuple[int, int] | None:
    """The span of a program's message with which a reply begins and that nothing explains."""
    line, _, below = stripped.partition("\n")
    if len(line) > _LONGEST_LINE:
        return None
    raw = line.split(None, 1)[0]
    plain = raw.rstrip(",.:").isalpha()
    if plain and raw.rstrip(",.:").lower() not in _firsts():
        return None
    beginning = [word.strip(_EDGES).rstrip(".…").lower() for word in line.split(None, 2)[:2]]
    known = _by_beginning()
    wordings = known.get(" ".join(beginning)) or known.get(beginning[0])
    shaped = not plain or beginning[0] in _SHAPED_FIRST
    if wordings is None and not shaped:
        return None
    if _is_message(line, wordings, shaped):
        return (0, len(line)) if _adds_nothing(below) else None
    cut = None if line[0] in _QUOTES else _NEXT_SENTENCE.search(line)
    if cut and _is_message(line[: cut.start()], wordings, shaped):
        after = line[cut.end() :] + "\n" + below
        return (0, cut.start()) if _asks_for_a_retry(after) else None
    return None


def _is_message(line: str, wordings: re.Pattern[str] | None, shaped: bool) -> bool:
    if wordings is not None and _fits(wordings, line):
        return True
    return shaped and _SHAPES.fullmatch(line.strip().rstrip(".")) is not None


def _fits(wordings: re.Pattern[str], line: str) -> bool:
    said = line.strip(_EDGES).lower().replace("’", "'")
    return bool(wordings.fullmatch(said) or wordings.fullmatch(said.rstrip(_EDGES + ".")))


def _adds_nothing(below: str) -> bool:
    """Whether nothing follows but what the program adds: no advice, no sentences about it."""
    rest = below.strip()
    return not rest or (
        len(rest.split()) <= _MOST_WORDS_AFTER
        and not advises("\n" + rest)
        and not is_explaining_prose(rest.rpartition("\n\n")[2])
    )


def _asks_for_a_retry(after: str) -> bool:
    words = after.split()
    return (
        len(words) <= _MOST_WORDS_AFTER
        and any(roles_of(word) & (RETRY | HELP | APOLOGY) for word in words)
        and not advises("\n" + after)
    )
