"""The roles of a word in a notice of failure, looked up once for each distinct word and remembered.

What a reply's words say together is found in `evidence` and weighed in `model`.
"""

import re

from answerkey.detect.learned.roles import (
    APOLOGY,
    BAD,
    CODE,
    COMMA,
    END,
    FACT,
    FAIL,
    FOREIGN,
    LIMIT,
    MACHINE,
    NAME,
    NEGATION,
    NUMBER,
    OTHERS,
    OWNER,
    QUOTE,
    RETRY,
    SLOW,
    STATUS,
    THING,
    TROUBLE,
)
from answerkey.detect.learned.vocabulary import WORDS
from answerkey.text.lazy import lazy

__all__ = ["SIGNS", "is_sign", "roles_of"]

# A reply without any of these is no notice of failure.
SIGNS = FAIL | TROUBLE | BAD | NEGATION | STATUS | RETRY | APOLOGY | CODE | LIMIT | SLOW | FOREIGN

_EXACT: dict[str, int] = {}
_PREFIXES: list[tuple[str, int]] = []
for _role, _list in WORDS.items():
    for _word in _list.split():
        if _word.endswith("*"):
            _PREFIXES.append((_word[:-1], _role))
        else:
            _EXACT[_word] = _EXACT.get(_word, 0) | _role
_PREFIXES_OF: dict[str, list[tuple[str, int]]] = {}
for _start, _role in _PREFIXES:
    _PREFIXES_OF.setdefault(_start[:3], []).append((_start, _role))

# German writes compounds as one word: "Buchhaltungssystem", "Netzwerkfehler".
_SUFFIXES = (
    ("datenbank", MACHINE), ("server", MACHINE), ("dienst", MACHINE), ("system", THING), ("systeme", THING), ("fehler", TROUBLE),
    ("störung", TROUBLE), ("verbindung", THING), ("anfrage", THING), ("suche", THING), ("platform", THING),
)  # fmt: skip

_FACT = lazy(
    r"[$€£¥]-?\d.*|\d[\d.,]*(?:%|k|bn|ft|mi|km|kg|lb|am|pm)|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,2}:\d\d|(?:19|20)\d\d|\d{1,2}[-/]\d{1,2}[-/]\d{2,4}|\d{4}-\d\d-\d\d"
    r"|jan|january|feb|february|mar|march|apr|april|june|july|aug|august|sept?|september|oct|october|nov|november|dec|december|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|januar|februar|märz|juni|juli|oktober|dezember|janvier|février|avril|juin|juillet|août|septembre|octobre|novembre|décembre|mon|monday|tue|tuesday|wed|wednesday|thu|thursday|fri|friday|sat|saturday|sunday",
    re.IGNORECASE,
)  # fmt: skip
_CODE = lazy(
    # names_with_underscores, CamelCase ending in an error, 4xx and 5xx, ECONNRESET, key=value, a/path/to, host:port, 0x…
    r"\w+_\w[\w().]*|(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout|Refused|Exceeded|Denied|Fault|Failure)\w*|E[A-Z]{4,}|\w+=\S*|(?:/[\w.-]+){2,}|[\w.-]+:\d{2,5}"
    r"|0x[0-9a-fA-F]+|[A-Z]{2,}-?\d{3,}|\w+\(\)|errno|stderr|stdout|sigkill|sigterm"
)  # fmt: skip
# An error message begins here.
_STATUS = lazy(r"[45]\d\ds?")
_LABELS = frozenset({"error:", "failed:", "fatal:", "err:"})
_EDGES = ".,;:!?\"'()[]{}*“”‘’…–—-`«»<>#|~"
_SENTENCE_END = lazy(r"[.!?…;。！？][\"”’)\]`*]*$")
# "At 10 a.m.", "Mr. Ruiz", "No. 5" go on.
_ABBREVIATED = lazy(
    r"\(?(?:[ap]\.m|e\.g|i\.e|approx|mr|mrs|ms|dr|st|vs|etc|no|nos|p|pp|sec|fig|inc|ltd|co|jr|sr|[A-Z])\.",
    re.IGNORECASE,
)
_CLAUSE_END = lazy(r"[,:(]$|^[–—-]+$|^\(")
_PARTS = lazy(r"[\w'’.-]+")
_LONGEST = 40
_MOST_REMEMBERED = 200_000


def _roles(chunk: str) -> int:
    """The roles of what stands between two spaces."""
    roles = (
        END
        if _SENTENCE_END.search(chunk) and not _ABBREVIATED.fullmatch(chunk)
        else COMMA
        if _CLAUSE_END.search(chunk)
        else 0
    )
    if chunk[0] in "\"“«`'‘" or chunk[-1] in '"”»`':
        roles |= QUOTE
    if chunk.lower().strip("[(*`") in _LABELS:
        return roles | FAIL | CODE
    core = chunk.strip(_EDGES)
    if not core:
        return roles
    roles |= _word_roles(core)
    if roles & ~(END | QUOTE | NAME | COMMA) == 0 and not core.isalnum():
        for part in _PARTS.findall(core):
            if part != core:
                roles |= _word_roles(part.strip(_EDGES))
    return roles


def _word_roles(word: str) -> int:
    lowered = word.lower().replace("’", "'")
    roles = _EXACT.get(lowered, 0) or _EXACT.get(lowered.removesuffix("'s"), 0)
    for end, role in _SUFFIXES:
        if lowered.endswith(end):
            roles |= role
    for start, role in _PREFIXES_OF.get(lowered[:3], ()):
        if lowered.startswith(start):
            roles |= role
    if roles & OTHERS and lowered.endswith("'s"):
        roles |= OWNER
    if _FACT.fullmatch(word):
        roles |= FACT
    elif _CODE.fullmatch(word):
        roles |= CODE
    elif word[:1].isdigit():
        roles |= NUMBER | (STATUS if _STATUS.fullmatch(word) else 0)
    if not roles and word[:1].isupper() and word[1:].islower():
        roles |= NAME
    return roles


class _RoleCache(dict[str, int]):
    """Each distinct word is looked at once, so that a reply costs a dictionary's lookups."""

    def __missing__(self, chunk: str) -> int:
        if len(chunk) > _LONGEST:
            return _roles(chunk[:_LONGEST])
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        roles = self[chunk] = _roles(chunk)
        return roles


_ROLES = _RoleCache()
# The roles of a word with the punctuation around it.
roles_of = _ROLES.__getitem__


class _SignCache(dict[str, bool]):
    """Whether a word is one without which no reply is a notice of failure; most replies have none."""

    def __missing__(self, chunk: str) -> bool:
        sign = bool(_ROLES[chunk] & SIGNS)
        if len(chunk) <= _LONGEST:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[chunk] = sign
        return sign


is_sign = _SignCache().__getitem__
