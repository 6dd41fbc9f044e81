"""Evidence: tool results, passages, arguments and the question laid out as one text, with what stands where in it."""

import csv
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply

__all__ = ["MOST_EVIDENCE", "Evidence", "Path", "Spot", "gather_evidence"]

# More characters of evidence than this are not searched.
MOST_EVIDENCE = 500_000
# What lies deeper in a result is left out; no tool's table does.
_DEEPEST = 64
_LONGEST_LABEL = 60

Path = tuple[str | int, ...]
_HOLDERS = (dict, list, tuple, Mapping)


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
        return self.root + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)

    @property
    def column(self) -> tuple[str, Path]:
        """The same for the cells that stand under each other: of a list's records, an object's objects, calls of a kind."""
        path = self.path
        for index in range(len(path) - 1, -1, -1):
            if isinstance(path[index], int):
                return self.root, (*path[:index], "*", *path[index + 1 :])
        return "", ((*path[:-2], "*", path[-1]) if len(path) > 1 else path)


class Evidence:
    """The laid-out text and its spots, in order."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0
        self.spots: list[Spot] = []
        self._starts: list[int] = []
        # The spots of each record.
        self.records: list[list[Spot]] = []
        # The lists of results: where, how many entries, and the number of the first spot inside.
        self.lists: list[tuple[Path, int, int]] = []
        self.text = ""

    def write(self, text: str, root: str, path: Path = (), record: int = -1, *, cell: bool = False) -> None:
        """Add a value at the end."""
        if text:
            spot = Spot(self.length, self.length + len(text), root, path, record, cell)
            if record >= 0:
                self.records[record].append(spot)
            self.spots.append(spot)
            self._starts.append(spot.start)
            self._pieces.append(text)
            self.length = spot.end + 1

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
        """What a reader would call the record of a cell: its first short text."""
        for other in self.records[spot.record] if spot.cell and spot.record >= 0 else ():
            value = self.value(other)
            if (
                other.cell
                and other.path != spot.path
                and len(value) <= _LONGEST_LABEL
                and not value.isnumeric()
            ):
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
            evidence.write(_plain(call.error), f"{prefix}tool_calls[{number}].error")
        for number, source in enumerate(given.sources):
            for name in ("text", "title", "id"):
                evidence.write(_plain(getattr(source, name)), f"{prefix}sources[{number}].{name}")
            _lay_out(evidence, source.metadata, f"{prefix}sources[{number}].metadata")
    for asked, given, prefix in turns:
        for number, call in enumerate(given.tool_calls):
            _lay_out(evidence, call.arguments, f"{prefix}tool_calls[{number}].arguments")
        evidence.write(_plain(asked.question), f"{prefix}question")
        evidence.write(_plain(asked.context), f"{prefix}context")
    evidence.close()
    return evidence


def _plain(value: Any) -> str:
    if isinstance(value, float) and "e" in repr(value):
        return f"{value:.12f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.0f}"
    if isinstance(value, int) and value.bit_length() > 4096:
        return hex(value)
    return "" if value is None else str(value)


def _lay_out(evidence: Evidence, value: Any, root: str, *, cells: bool = False) -> None:
    """Write a JSON value leaf by leaf, without recursion; the name of a column once."""
    value = _read_text(value) if cells else value
    if not isinstance(value, _HOLDERS):
        evidence.write(_plain(value), root, cell=cells)
        return
    named: set[tuple[Path, str]] = set()
    waiting: list[tuple[Any, Path, Path]] = [(value, (), ())]
    while waiting and evidence.length <= MOST_EVIDENCE:
        value, path, column = waiting.pop()
        record = len(evidence.records)
        evidence.records.append([])
        inside: list[tuple[Any, Path, Path]] = []
        if isinstance(value, Mapping):
            for name, item in _with_columns(value).items():
                key = str(name)
                if (column, key) not in named:
                    named.add((column, key))
                    evidence.write(key, root, (*path, key), record)
                if isinstance(item, _HOLDERS):
                    inside.append((item, (*path, key), (*column, key)))
                else:
                    text = item if type(item) is str else _plain(item)
                    evidence.write(text, root, (*path, key), record, cell=cells)
        else:
            if cells and len(value) > 1:
                evidence.lists.append((path, len(value), len(evidence.spots)))
            for index, item in enumerate(value):
                if isinstance(item, _HOLDERS):
                    inside.append((item, (*path, index), (*column, "*")))
                else:
                    evidence.write(_plain(item), root, (*path, index), record, cell=cells)
        waiting += reversed(inside) if len(path) < _DEEPEST else ()


def _with_columns(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rows that come apart from the names of their columns get them."""
    columns, rows = value.get("columns"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return value
    named = [
        dict(zip(map(str, columns), row, strict=False)) if isinstance(row, list) else row for row in rows
    ]
    return {key: named if key == "rows" else item for key, item in value.items() if key != "columns"}


def _read_text(text: Any) -> Any:
    """A tool's text as what it holds: JSON, a table with separators, or itself."""
    if not isinstance(text, str):
        return text
    if text[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return text
    lines = [
        line.strip().strip("|") for line in text.replace("\x00", "").splitlines() if set(line) - set("|-: ")
    ]
    for mark in "|\t;," if len(lines) > 1 else "":
        count = lines[0].count(mark)
        if count and all(line.count(mark) == count for line in lines):
            names, *rows = ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark))
            return [dict(zip(names, row, strict=False)) for row in rows]
    return text
