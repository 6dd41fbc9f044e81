"""Evidence: tool results, passages, arguments and the question laid out as one text, with what stands where in it."""

import csv
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply

__all__ = ["MOST_EVIDENCE", "Evidence", "Spot", "gather_evidence"]

# More characters of evidence than this are not searched.
MOST_EVIDENCE = 12_000_000
# What lies deeper in a result is left out; no tool's table does.
_DEEPEST = 64
_LONGEST_LABEL = 60

Path = tuple[str | int, ...]


class Spot(msgspec.Struct, frozen=True, gc=False):
    """One value, name or passage of the evidence, and its stretch of the laid-out text."""

    start: int
    end: int
    # "tool_calls[0].result", "sources[1].text", "question".
    root: str
    # Keys and indices below the root; empty: the root itself.
    path: Path
    # Number of the record (object or list) that holds it; -1: none does.
    record: int = -1
    # A tool's result may be summed; a passage, an argument or the name of a value may not.
    cell: bool = False

    @property
    def where(self) -> str:
        """The address in the reply: tool_calls[0].result[2].balance."""
        return self.root + "".join(
            f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path
        )

    @property
    def column(self) -> tuple[str, Path]:
        """The same for the cells that stand under each other: of a list's records, or of an object's objects."""
        path = self.path
        for index in range(len(path) - 1, -1, -1):
            if isinstance(path[index], int):
                return self.root, (*path[:index], "*", *path[index + 1 :])
        return self.root, ((*path[:-2], "*", path[-1]) if len(path) > 1 else path)


class Evidence:
    """The laid-out text and its spots, in order."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.spots: list[Spot] = []
        self._starts: list[int] = []
        # The values of each record, by its number.
        self.records: list[list[int]] = []
        # Lists of a result, with how many entries each has.
        self.lists: list[tuple[str, Path, int]] = []
        self.text = ""

    def write(self, text: str, root: str, path: Path = (), record: int = -1, *, cell: bool = False) -> None:
        """Add a value at the end."""
        if not text:
            return
        start = self.length
        if record >= 0:
            self.records[record].append(len(self.spots))
        self.spots.append(Spot(start, start + len(text), root, path, record, cell))
        self._starts.append(start)
        self._pieces.append(text)
        self.length = start + len(text) + 1

    def close(self) -> None:
        """Lay the text out, once everything is written."""
        self.text = "\n".join(self._pieces)

    def spot_at(self, offset: int) -> Spot:
        """The spot that an offset of the text lies in."""
        return self.spots[bisect_right(self._starts, offset) - 1]

    def value(self, spot: Spot) -> str:
        """What stands there."""
        return self.text[spot.start : spot.end]

    def row_label(self, spot: Spot) -> str:
        """What a reader would call the record of a spot: its first short text."""
        for number in self.records[spot.record] if spot.record >= 0 else ():
            other = self.spots[number]
            value = self.value(other)
            if other.path != spot.path and len(value) <= _LONGEST_LABEL and value.lower() != value.upper():
                return value
        return ""


def gather_evidence(
    question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]] = ()
) -> Evidence:
    """What a reply may rest on; of a conversation, also what came before it, but not what the chatbot said."""
    evidence = Evidence()
    turns = [(question, reply, ""), *((*turn, f"turns[{number}].") for number, turn in enumerate(earlier))]
    for _, given, prefix in turns:
        for number, call in enumerate(given.tool_calls):
            _lay_out(evidence, call.result, f"{prefix}tool_calls[{number}].result", cells=True)
        for number, source in enumerate(given.sources):
            for name in ("text", "title", "id"):
                evidence.write(_plain(getattr(source, name)), f"{prefix}sources[{number}].{name}")
            _lay_out(evidence, source.metadata, f"{prefix}sources[{number}].metadata", cells=False)
    for asked, given, prefix in turns:
        for number, call in enumerate(given.tool_calls):
            _lay_out(evidence, call.arguments, f"{prefix}tool_calls[{number}].arguments", cells=False)
        evidence.write(_plain(asked.question), f"{prefix}question")
        evidence.write(_plain(asked.context), f"{prefix}context")
    evidence.close()
    return evidence


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and "e" in repr(value):
        return f"{value:.12f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.0f}"
    if isinstance(value, int) and value.bit_length() > 4096:
        return hex(value)
    return str(value)


def _lay_out(evidence: Evidence, value: Any, root: str, *, cells: bool) -> None:
    """Write a JSON value leaf by leaf, without recursion."""
    if isinstance(value, str) and cells:
        value = _read_text(value)
    named: set[tuple[str, Path]] = set()
    waiting: list[tuple[Any, Path, int]] = [(value, (), -1)]
    while waiting and evidence.length <= MOST_EVIDENCE:
        value, path, record = waiting.pop()
        inside = _entries(value) if len(path) < _DEEPEST else None
        if inside is None:
            evidence.write(_plain(value) if len(path) < _DEEPEST else "", root, path, record, cell=cells)
            continue
        number = len(evidence.records)
        evidence.records.append([])
        if isinstance(value, list | tuple):
            evidence.lists.append((root, path, len(value)))
        entries = list(inside)
        for key, _ in entries:
            column = (root, tuple("*" if isinstance(part, int) else part for part in (*path, key)))
            if isinstance(key, str) and column not in named:
                named.add(column)
                evidence.write(key, root, (*path, key), number)
        waiting += [(item, (*path, key), number) for key, item in reversed(entries)]


def _entries(value: Any) -> Iterator[tuple[str | int, Any]] | None:
    """What an object or list holds; rows that come apart from the names of their columns get them."""
    if isinstance(value, Mapping):
        columns, rows = value.get("columns"), value.get("rows")
        if isinstance(columns, list) and isinstance(rows, list) and all(isinstance(one, str) for one in columns):
            rest = {key: item for key, item in value.items() if key != "columns"}
            rest["rows"] = [dict(zip(columns, row, strict=False)) if isinstance(row, list) else row for row in rows]
            value = rest
        return ((str(key), item) for key, item in value.items())
    return iter(enumerate(value)) if isinstance(value, list | tuple) else None


def _read_text(text: str) -> Any:
    """A tool's text as what it holds: JSON, a table with separators, or itself."""
    if text[:1] in "[{":
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return text
    for mark in ("|", "\t", ";", ","):
        count = lines[0].count(mark)
        if count and all(line.count(mark) == count for line in lines):
            rows = [[cell.strip() for cell in row] for row in csv.reader(_stripped(lines, mark), delimiter=mark)]
            rows = [row for row in rows if any(set(cell) - set("-: ") for cell in row)]
            return [dict(zip(rows[0], row, strict=False)) for row in rows[1:]] if len(rows) > 1 else text
    return text


def _stripped(lines: list[str], mark: str) -> list[str]:
    return [line.replace("\x00", "").strip().strip("|") for line in lines] if mark == "|" else [line.replace("\x00", "") for line in lines]
