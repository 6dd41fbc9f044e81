"""Evidence: tool results, passages, arguments and the question as records of values, and their words as one text."""

import csv
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply

# More characters of evidence than this are not searched.
MOST_EVIDENCE = 500_000
# So many values of a record tell what it is about.
MOST_VALUES = 24
# What lies deeper in a result is left out; no tool's table does.
_DEEPEST = 64
_LONGEST_LABEL = 60

Path = tuple[str | int, ...]
# A larger number is read as text.
_LARGEST = 1e300
_LEAVES = frozenset({str, int, float, bool, type(None)})
# Dictionaries are tried first: to ask an abstract class takes long.
_MAPPINGS = (dict, Mapping)
_HOLDING = (dict, list, tuple, Mapping)


class Record(msgspec.Struct, frozen=True, gc=False):
    """An object or list of the evidence, or a passage by itself."""

    # "tool_calls[0].result", "sources[1].text", "question".
    root: str
    # Keys and indices below the root; None: a passage.
    path: Path | None
    # Number of its first spot.
    first: int
    # What it has in common with the records beside it: those of a list, an object's objects, calls of a kind.
    column: Path = ()


class Spot(msgspec.Struct, frozen=True, gc=False):
    """One value, the name of one, or a passage."""

    # Where it begins in the laid-out text, in which a number takes no room.
    start: int
    # A text, or a number as it came.
    value: str | float
    # Number of its record.
    record: int
    # Its name or index in the record.
    key: str | int = ""
    # A tool's result may be summed; a passage, an argument or the name of a value may not.
    cell: bool = False

    @property
    def text(self) -> str:
        """What stands there."""
        return self.value if isinstance(self.value, str) else _plain(self.value)


class Evidence:
    """The records and their spots in order, and the laid-out text."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._starts: list[int] = []
        self.length = 0
        self.spots: list[Spot] = []
        self.records: list[Record] = []
        # The lists of results: (path, how many entries, number of the first spot inside).
        self.lists: list[tuple[Path, int, int]] = []
        self.text = ""

    def passage(self, value: Any, root: str, *, cell: bool = False) -> None:
        """Add a text that belongs to no table."""
        if value is not None:
            self.records.append(Record(root, None, len(self.spots)))
            self.write(value, "", cell)

    def write(self, value: Any, key: str | int, cell: bool = False) -> None:
        """Add a value to the last record."""
        kind, text = type(value), value
        if (kind is int or kind is float) and -_LARGEST < value < _LARGEST:
            text = ""
        elif kind is not str:
            text = value = _plain(value)
        if value == "":
            return
        start = self.length
        self.spots.append(Spot(start, value, len(self.records) - 1, key, cell))
        self._starts.append(start)
        self._pieces.append(text)
        self.length = start + len(text) + 1

    def close(self) -> None:
        """Lay the text out, once everything is written."""
        self.text = "\n".join(self._pieces)

    def spot_at(self, offset: int) -> Spot:
        """The spot that an offset of the text lies in."""
        return self.spots[bisect_right(self._starts, offset) - 1]

    def spots_of(self, number: int, most: int = MOST_VALUES) -> list[Spot]:
        """The first spots of a record."""
        first = self.records[number].first
        last = self.records[number + 1].first if number + 1 < len(self.records) else len(self.spots)
        return self.spots[first : min(last, first + most)]

    def where(self, spot: Spot) -> str:
        """The address in the reply: tool_calls[0].result[2].balance."""
        record = self.records[spot.record]
        path = () if record.path is None else (*record.path, spot.key)
        return record.root + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)

    def row_label(self, spot: Spot) -> str:
        """What a reader would call the record of a cell: its first short text."""
        for other in self.spots_of(spot.record) if spot.cell else ():
            text = other.value if other.cell and other.key != spot.key else ""
            if isinstance(text, str) and 0 < len(text) <= _LONGEST_LABEL and not text.isnumeric():
                return text
        return ""


def gather_evidence(
    question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]] = ()
) -> Evidence:
    """What a reply may rest on; of a conversation, also what came before it, but not what the chatbot said."""
    evidence = Evidence()
    turns = [(question, reply, ""), *((*turn, f"turns[{number}].") for number, turn in enumerate(earlier))]
    for _, given, prefix in turns:
        for number, call in enumerate(given.tool_calls):
            _lay_out(evidence, _read_text(call.result), f"{prefix}tool_calls[{number}].result", cell=True)
            if call.error is not None:
                evidence.passage(call.error, f"{prefix}tool_calls[{number}].error")
        for number, source in enumerate(given.sources):
            for name in ("text", "title", "id"):
                evidence.passage(getattr(source, name), f"{prefix}sources[{number}].{name}")
            if source.metadata:
                _lay_out(evidence, source.metadata, f"{prefix}sources[{number}].metadata")
    for asked, given, prefix in turns:
        for number, call in enumerate(given.tool_calls):
            _lay_out(evidence, call.arguments, f"{prefix}tool_calls[{number}].arguments")
        evidence.passage(asked.question, f"{prefix}question")
        evidence.passage(asked.context, f"{prefix}context")
    evidence.close()
    return evidence


def _plain(value: Any) -> str:
    if isinstance(value, float) and "e" in repr(value):
        return f"{value:.12f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.0f}"
    if isinstance(value, int) and value.bit_length() > 4096:
        return hex(value)
    return "" if value is None else str(value)


def _lay_out(evidence: Evidence, value: Any, root: str, *, cell: bool = False) -> None:
    """Write a JSON value leaf by leaf, without recursion; the name of a column once."""
    if not _holds(value):
        evidence.passage(value, root, cell=cell)
        return
    named: set[object] = set()
    waiting: list[tuple[Any, Path, Path]] = [(value, (), ("",))]
    while waiting and evidence.length <= MOST_EVIDENCE:
        value, path, column = waiting.pop()
        evidence.records.append(Record(root, path, len(evidence.spots), column))
        inside: list[tuple[Any, Path, Path]] = []
        items: Iterable[tuple[Any, Any]] = enumerate(value)
        # Below a list its index is left open; where there is none, the last name.
        beside = (root, *path, "*")
        if isinstance(value, _MAPPINGS):
            items = _with_columns(value).items()
            beside = () if column[0] else ("", *path, "*")
        elif cell and len(value) > 1:
            evidence.lists.append((path, len(value), len(evidence.spots)))
        for key, item in items:
            if type(key) is not int:
                key = str(key)
                if (name := (column, key)) not in named:
                    named.add(name)
                    evidence.write(key, key)
            if type(item) in _LEAVES or not _holds(item):
                evidence.write(item, key, cell)
            else:
                inside.append((item, (*path, key), beside or (*column, key)))
        waiting += reversed(inside) if len(path) < _DEEPEST else ()


def _holds(value: Any) -> bool:
    return isinstance(value, _HOLDING)


def _with_columns(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rows that come apart from the names of their columns get them."""
    if "columns" not in value:
        return value
    columns, rows = value["columns"], value.get("rows")
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
