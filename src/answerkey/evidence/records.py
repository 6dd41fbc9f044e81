"""Evidence of a reply (tool results, passages, arguments, the question) as records of values and as one text."""

import csv
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, filterfalse
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.dates import month_number
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, fold_accents, stem
from answerkey.text.numbers import parse_number
from answerkey.transcripts.json_values import decode_json

MAX_EVIDENCE_CHARACTERS = 500_000
_MAX_LABEL_CANDIDATES = 24  # values of a record that are tried as its label
_MAX_LABEL_LENGTH = 60
_MAX_DEPTH = 64  # deeper parts of a tool result are left out
# Larger numbers, and longer texts, are read as text. So is a text with a leading zero, which may be an id.
_MAX_NUMBER = 1e300
_MAX_NUMBER_LENGTH = 24
_NUMBER_START = frozenset("123456789-−$€£¥")
_LEAF_TYPES = frozenset({str, int, float, bool, type(None)})
_CONTAINER_TYPES = (dict, list, tuple, Mapping)  # the abstract class last: isinstance is slow on it

_WORD = re.compile(r"([^\W_]+)")
_ASCII_WORD = re.compile(r"([A-Za-z0-9]+)")
_SENTENCE_END = re.compile(r"[.!?;\n。！？](?:(?<=[\n。！？])\n*|\s+)")


def _word_key(word: str) -> str:
    folded = fold_accents(word)
    month = month_number(folded)
    return f"#{month}" if month else stem(folded)


# The form in which words are compared: without accents, stemmed, and "#8" for any name of August.
word_key = Remembered(_word_key).__getitem__
_FUNCTION_WORD_KEYS = frozenset(map(word_key, FUNCTION_WORDS))


class Words:
    """The words of a text in order: their keys and spans."""

    def __init__(self, text: str) -> None:
        # Separators and words alternate in `pieces`; splitting and adding up lengths runs in C.
        pieces = (_ASCII_WORD if text.isascii() else _WORD).split(text)
        edges = list(accumulate(map(len, pieces)))
        self.starts, self.ends = edges[:-1:2], edges[1::2]
        self.keys = list(map(word_key, pieces[1::2]))

    def indices(self, start: int, end: int) -> range:
        """The indices of the words that begin in a span of the text."""
        return range(bisect_left(self.starts, start), bisect_left(self.starts, end))


def content_words(keys: Sequence[str]) -> set[str]:
    """The keys without function words and digits."""
    return set(filterfalse(str.isdigit, set(keys) - _FUNCTION_WORD_KEYS))


def sentence_edges(text: str) -> list[int]:
    """The offsets at which the sentences of a text begin, and the end of the last one."""
    return [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text) + 1]


def novelty(reply: Words, evidence: Words) -> float | None:
    """The share of a reply's distinct content words that do not occur in its evidence; None without content words."""
    words = content_words(reply.keys)
    return len(words.difference(evidence.keys)) / len(words) if words else None


Path = tuple[str | int, ...]
EarlierTurns = Sequence[tuple[Question, Reply]]


class EvidenceRecord(msgspec.Struct, frozen=True, gc=False):
    """An object or list of the evidence, or a passage by itself."""

    root: str  # "tool_calls[0].result", "sources[1].text", "question"
    path: Path | None  # keys and indices below the root; None: a passage
    first_value: int  # index of its first value
    start: int  # offset of its first value in the text
    entries: int = 0  # length, for a list in a tool result

    @property
    def label(self) -> str:
        """The name of the record in a derivation: "sum of {label}"."""
        if not self.path:
            return "the result"
        return self.path[-1] if isinstance(self.path[-1], str) else "the row"


class EvidenceValue(msgspec.Struct, frozen=True, gc=False):
    """A value, the name of one, or a passage."""

    start: int  # offset in the text of the evidence, where a number has length 0
    text: str
    number: float | None  # also for a text that is only a number ("$1,420")
    record: int  # index of its record
    key: str | int  # its name or index in the record
    is_cell: bool  # part of a tool result, so that it can be summed; False for passages, arguments and names


class Evidence:
    """All records and values in order, and their words as one text. `records` ends with a sentinel."""

    def __init__(self) -> None:
        self.text = ""  # everything except the numbers; empty until `finish`
        self.length = 0  # of `text`
        self.records: list[EvidenceRecord] = []
        self.values: list[EvidenceValue] = []
        self._starts: list[int] = []

    def add(self, value: Any, root: str, *, is_cell: bool = False) -> None:
        """Add a passage, or a JSON value leaf by leaf. The name of a column is added once."""
        if value is None:
            return
        stack: list[tuple[Any, Path]] = [(parse_tool_text(value) if is_cell else value, ())]
        named: set[object] = set()
        while stack and self.length <= MAX_EVIDENCE_CHARACTERS:
            item, path = stack.pop()
            is_list = isinstance(item, (list, tuple))
            is_container = isinstance(item, _CONTAINER_TYPES)
            self.records.append(
                EvidenceRecord(
                    root,
                    path if is_container else None,
                    len(self.values),
                    self.length,
                    len(item) if is_list and is_cell else 0,
                )
            )
            if not is_container:
                self._add_value(item, "", is_cell)
                continue
            nested: list[tuple[Any, Path]] = []
            for key, part in enumerate(item) if is_list else _with_column_names(item).items():
                if type(key) is not int and key not in named:
                    named.add(key)
                    self._add_value(str(key), str(key), is_cell=False)
                if type(part) in _LEAF_TYPES or not isinstance(part, _CONTAINER_TYPES):
                    self._add_value(part, key, is_cell)
                else:
                    nested.append((part, (*path, key)))
            if len(path) < _MAX_DEPTH:
                stack += reversed(nested)

    def _add_value(self, value: Any, key: str | int, is_cell: bool) -> None:
        """Add a value to the last record."""
        kind, text, number = type(value), value, None
        if kind is not str:
            is_large = kind is int and abs(value) > _MAX_NUMBER
            text = "" if value is None else hex(value) if is_large else str(value)
            if (kind is int or kind is float) and -_MAX_NUMBER < value < _MAX_NUMBER:
                number = float(value)
        elif value[:1] in _NUMBER_START and len(value) <= _MAX_NUMBER_LENGTH:
            parsed = parse_number(value)
            number = float(parsed) if parsed else None
        if text:
            self.values.append(EvidenceValue(self.length, text, number, len(self.records) - 1, key, is_cell))
            self._starts.append(self.length)
            self.length += 1 if number is not None else 1 + len(text)

    def finish(self) -> None:
        """Add the sentinel record and join the text."""
        self.records.append(EvidenceRecord("", None, len(self.values), self.length))
        self.text = "\n".join(["" if value.number is not None else value.text for value in self.values])

    def value_at(self, offset: int) -> EvidenceValue:
        """The value at an offset of the text."""
        return self.values[bisect_right(self._starts, offset) - 1]

    def address(self, value: EvidenceValue) -> str:
        """The path of a value in the reply: tool_calls[0].result[2].balance."""
        record = self.records[value.record]
        path = () if record.path is None else (*record.path, value.key)
        return record.root + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)

    def row_label(self, cell: EvidenceValue) -> str:
        """The first short text in the record of a cell; empty if there is none."""
        if not cell.is_cell:
            return ""
        first = self.records[cell.record].first_value
        last = min(self.records[cell.record + 1].first_value, first + _MAX_LABEL_CANDIDATES)
        for value in self.values[first:last]:
            is_text = value.is_cell and value.number is None and value.key != cell.key
            if is_text and len(value.text) <= _MAX_LABEL_LENGTH:
                return value.text
        return ""


def gather_evidence(question: Question, reply: Reply, earlier: EarlierTurns = ()) -> Evidence:
    """Everything that a reply can be based on, including earlier turns, but not the texts of earlier replies.

    The order decides which of several equal values is linked: tool results, sources, arguments, then the question.
    """
    evidence = Evidence()
    turns = [("", question, reply)]
    turns += [(f"turns[{number}].", *turn) for number, turn in enumerate(earlier)]
    calls = [
        (f"{prefix}tool_calls[{number}]", call)
        for prefix, _, answer in turns
        for number, call in enumerate(answer.tool_calls)
    ]
    for root, call in calls:
        evidence.add(call.result, f"{root}.result", is_cell=True)
        evidence.add(call.error, f"{root}.error")
    for prefix, _, answer in turns:
        for number, source in enumerate(answer.sources):
            root = f"{prefix}sources[{number}]"
            evidence.add(source.text, f"{root}.text")
            evidence.add(source.title, f"{root}.title")
            evidence.add(source.id, f"{root}.id")
            evidence.add(source.metadata, f"{root}.metadata")
    for root, call in calls:
        evidence.add(call.arguments, f"{root}.arguments")
    for prefix, asked, _ in turns:
        evidence.add(asked.question, f"{prefix}question")
        evidence.add(asked.context, f"{prefix}context")
    evidence.finish()
    return evidence


def _with_column_names(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """{"columns": [names], "rows": [[cells]]} with each row as an object; any other value unchanged."""
    columns, rows = value.get("columns"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return value
    rows = [dict(zip(map(str, columns), row, strict=False)) if isinstance(row, list) else row for row in rows]
    return {**value, "rows": rows, "columns": None}


def parse_tool_text(value: Any) -> Any:
    """Parse the text of a tool result: JSON, or a table with separators. Return any other value unchanged."""
    if not isinstance(value, str):
        return value
    if value[:1] in ("[", "{"):
        try:
            return decode_json(value)
        except ValueError:
            return value
    # A Markdown table has a line of dashes below its header.
    lines = [
        line.strip().strip("|") for line in value.replace("\x00", "").splitlines() if set(line) - set("|-: ")
    ]
    for separator in "|\t;," if len(lines) > 1 else "":
        count = lines[0].count(separator)
        if count and all(line.count(separator) == count for line in lines):
            names, *rows = ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator))
            return [dict(zip(names, row, strict=False)) for row in rows]
    return value
