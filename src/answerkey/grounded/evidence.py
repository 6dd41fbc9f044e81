"""Evidence: tool results, passages, arguments and the question as records of values, and their words as one text."""

import csv
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.numbers import parse_number

MOST_EVIDENCE = 500_000  # more characters are not searched
_MOST_VALUES, _LONGEST_LABEL = 24, 60  # so many values of a record are looked at for what it is called
_DEEPEST = 64  # what lies deeper in a result is left out; no tool's table does
_LARGEST, _LONGEST_NUMBER = 1e300, 24  # a larger number is read as text,
_NUMBER_SIGNS = frozenset("123456789-−$€£¥")  # and so is what may be an id with a zero before it
_LEAVES = frozenset({str, int, float, bool, type(None)})
_HOLDING = (dict, list, tuple, Mapping)  # dictionaries are tried first: to ask an abstract class takes long
# What a reply rests on, in this order; what it was asked comes last.
_PARTS = ("tool_calls result error", "sources text title id metadata", "tool_calls arguments")

Path = tuple[str | int, ...]
Earlier = Sequence[tuple[Question, Reply]]


class Record(msgspec.Struct, frozen=True, gc=False):
    """An object or list of the evidence, or a passage by itself."""

    root: str  # "tool_calls[0].result", "sources[1].text", "question"
    path: Path | None  # keys and indices below the root; None: a passage
    first: int  # number of its first spot,
    start: int  # and where that begins in the text
    entries: int = 0  # how many a tool's list has


class Spot(msgspec.Struct, frozen=True, gc=False):
    """One value, the name of one, or a passage."""

    start: int  # in the laid-out text, in which a number takes no room
    text: str
    number: float | None  # whether it came as one or as a text that is nothing else ("$1,420")
    record: int
    key: str | int  # its name or index in the record
    cell: bool  # a tool's result may be summed; a passage, an argument or the name of a value may not


class Evidence:
    """The records, with one behind the last, and their spots in order."""

    def __init__(self) -> None:
        # Everything but the numbers, laid out once it is written, and how long that is.
        self.text, self.length = "", 0
        self.records: list[Record] = []
        self.spots: list[Spot] = []
        self._starts: list[int] = []

    def write(self, value: Any, key: str | int = "", cell: bool = False) -> None:
        """Add a value to the last record."""
        kind, text, number = type(value), value, None
        if kind is not str:
            is_large = kind is int and abs(value) > _LARGEST
            text = "" if value is None else hex(value) if is_large else str(value)
            if (kind is int or kind is float) and -_LARGEST < value < _LARGEST:
                number = float(value)
        elif value[:1] in _NUMBER_SIGNS and len(value) <= _LONGEST_NUMBER and (worth := parse_number(value)):
            number = float(worth)
        if text:
            self.spots.append(Spot(self.length, text, number, len(self.records) - 1, key, cell))
            self._starts.append(self.length)
            self.length += 1 if number is not None else 1 + len(text)

    def spot_at(self, offset: int) -> Spot:
        return self.spots[bisect_right(self._starts, offset) - 1]

    def where(self, spot: Spot) -> str:
        """The address in the reply: tool_calls[0].result[2].balance."""
        record = self.records[spot.record]
        path = () if record.path is None else (*record.path, spot.key)
        return record.root + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)

    def row_label(self, spot: Spot) -> str:
        """What a reader would call the record of a cell: its first short text."""
        first, last = self.records[spot.record].first, self.records[spot.record + 1].first
        others = self.spots[first : min(last, first + _MOST_VALUES)] if spot.cell else []
        texts = [one.text for one in others if one.cell and one.number is None and one.key != spot.key]
        return next((text for text in texts if len(text) <= _LONGEST_LABEL), "")


def gather_evidence(question: Question, reply: Reply, earlier: Earlier = ()) -> Evidence:
    """What a reply may rest on; of a conversation, also what came before it, but not what the chatbot said."""
    evidence = Evidence()
    turns = [(question, reply, ""), *((*turn, f"turns[{number}].") for number, turn in enumerate(earlier))]
    for kind, *names in map(str.split, _PARTS):
        for _, given, prefix in turns:
            for number, one in enumerate(getattr(given, kind)):
                for name in names:
                    where = f"{prefix}{kind}[{number}].{name}"
                    _lay_out(evidence, getattr(one, name), where, cell=name == "result")
    for asked, _, prefix in turns:
        for name in ("question", "context"):
            _lay_out(evidence, getattr(asked, name), prefix + name)
    evidence.records.append(Record("", None, len(evidence.spots), evidence.length))
    evidence.text = "\n".join([spot.text if spot.number is None else "" for spot in evidence.spots])
    return evidence


def _lay_out(evidence: Evidence, value: Any, root: str, cell: bool = False) -> None:
    """Write a passage, or a JSON value leaf by leaf without recursion; the name of a column once."""
    waiting: list[tuple[Any, Path]] = [] if value is None else [(_read_text(value) if cell else value, ())]
    named: set[object] = set()
    while waiting and evidence.length <= MOST_EVIDENCE:
        value, path = waiting.pop()
        is_list, is_table = isinstance(value, (list, tuple)), isinstance(value, _HOLDING)
        at = len(evidence.spots), evidence.length, len(value) if is_list and cell else 0
        evidence.records.append(Record(root, path if is_table else None, *at))
        if not is_table:
            evidence.write(value, "", cell)
            continue
        inside: list[tuple[Any, Path]] = []
        for key, item in enumerate(value) if is_list else _with_columns(value).items():
            if type(key) is not int and key not in named:
                named.add(key)
                evidence.write(str(key), str(key))
            if type(item) in _LEAVES or not isinstance(item, _HOLDING):
                evidence.write(item, key, cell)
            else:
                inside.append((item, (*path, key)))
        waiting += reversed(inside) if len(path) < _DEEPEST else ()


def _with_columns(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rows that come apart from the names of their columns get them."""
    columns, rows = value.get("columns"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return value
    rows = [dict(zip(map(str, columns), row, strict=False)) if isinstance(row, list) else row for row in rows]
    return {**value, "rows": rows, "columns": None}


def _read_text(text: Any) -> Any:
    """A tool's text as what it holds: JSON, a table with separators, or itself."""
    if not isinstance(text, str):
        return text
    if text[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return text
    ruled = text.replace("\x00", "").splitlines()
    lines = [line.strip().strip("|") for line in ruled if set(line) - set("|-: ")]
    for mark in "|\t;," if len(lines) > 1 else "":
        count = lines[0].count(mark)
        if count and all(line.count(mark) == count for line in lines):
            names, *rows = ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark))
            return [dict(zip(names, row, strict=False)) for row in rows]
    return text
