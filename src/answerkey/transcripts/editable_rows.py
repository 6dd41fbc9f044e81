"""Editing one row of a golden set in its file: comments, order, quotes and every other row stay byte for byte.

A row is edited as its author wrote it: a line of JSON Lines, or an object of a JSON or YAML list without its indentation.
"""

import json
import re
from difflib import SequenceMatcher, unified_diff
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from answerkey.errors import InputError, UsageError
from answerkey.model.reply import JsonObject
from answerkey.transcripts.json_values import decode_python_json, decode_strict_json, outline_json
from answerkey.transcripts.row_files import YAML_TEXTS, find_list
from answerkey.transcripts.yaml_documents import encode_yaml, read_yaml

_JSON_LINES, _YAML = (".jsonl", ".ndjson"), (".yaml", ".yml")
EDITABLE = (*_JSON_LINES, ".json", *_YAML)
_BOM = "\ufeff"
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?=\r?\n|\Z)")
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")
_DASH = re.compile(r"[ ]*-[ ]+")


class EditableRow(NamedTuple):
    """A row and its place in the text."""

    line: int
    start: int
    end: int
    # Empty for a line of JSON Lines that cannot be read.
    row: JsonObject


class EditableRows:
    """The rows of a file's text."""

    def __init__(self, text: str, path: Path) -> None:
        self.text, self.path = text, path
        self._suffix = path.suffix.lower()
        if self._suffix not in EDITABLE:
            raise UsageError(
                f"{path.name}: only JSON Lines, JSON and YAML files can be edited here; edit this one in its own program, "
                f"or convert it: answerkey export jsonl {path.name}"
            )

    @classmethod
    def read(cls, path: Path) -> "EditableRows":
        """The rows of a file. Raises UsageError."""
        try:
            return cls(path.read_bytes().decode("utf-8"), path)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not in UTF-8; it cannot be edited here") from None

    @property
    def is_lines(self) -> bool:
        """Whether each row is one line of JSON."""
        return self._suffix in _JSON_LINES

    @property
    def format(self) -> str:
        """The format of a row."""
        return "YAML" if self._suffix in _YAML else "JSON"

    @cached_property
    def rows(self) -> list[EditableRow]:
        """All rows, in order. Raises UsageError if the file cannot be read."""
        if self.is_lines:
            return self._json_lines()
        return self._yaml() if self._suffix in _YAML else self._json()

    def text_of(self, row: EditableRow) -> str:
        """A row as its author wrote it, without its indentation."""
        return "\n".join(self._plain_lines(row))

    def replace(self, row: EditableRow, edited: str) -> "EditableRows":
        """The file with one row edited. Raises UsageError if it cannot be read, or other rows would change."""
        lines = self._edited_lines(edited)
        before, raw = self._plain_lines(row), self._raw_lines(row)
        indentation, written = self._indentation(row), [lines[0]]
        # Lines that stay keep what is written in the file, such as spaces at their end.
        matcher = SequenceMatcher(None, before[1:], lines[1:], autojunk=False)
        for kind, first, last, new_first, new_last in matcher.get_opcodes():
            if kind == "equal":
                written += raw[first + 1 : last + 1]
            else:
                written += [_indented(line, indentation) for line in lines[new_first + 1 : new_last + 1]]
        text = self.text[: row.start] + self._line_end.join(written) + self.text[row.end :]
        changed = self._checked(text, row.line, row.line + len(lines) - 1)
        index = self.rows.index(row)
        self._refuse_side_effects(changed, [*self.rows[:index], *self.rows[index + 1 :]], index)
        return changed

    def append(self, added: str) -> "EditableRows":
        """The file with one more row at its end. Raises UsageError if it cannot be read, or other rows would change."""
        lines = self._edited_lines(added)
        text, end = self.text, self._line_end
        if self.is_lines:
            separator = end if text and not text.endswith("\n") else ""
            return EditableRows(f"{text}{separator}{lines[0]}{end}", self.path)
        if not self.rows:
            raise UsageError(f"{self.path.name} has no list of questions that one could be added to")
        last = self.rows[-1]
        outside = text[: last.start].rstrip()
        space = text[len(outside) : last.start]
        if outside.endswith((",", "[")):
            is_first = outside.endswith("[") and not space
            before, indentation = ", " if is_first else f",{space}", self._indentation(last)
        else:
            written = text[self._line_start(last) : last.start]
            dash = written if _DASH.fullmatch(written) else "- ".rjust(last.start - self._line_start(last))
            # With a blank line between the last two, also before the new one.
            between = text[self.rows[-2].end : last.start] if len(self.rows) > 1 else ""
            gap = _BLANK_LINE.search(between) is not None
            before, indentation = end * (2 if gap else 1) + dash, " " * len(dash)
        indented = [lines[0], *(_indented(line, indentation) for line in lines[1:])]
        text = text[: last.end] + before + end.join(indented) + text[last.end :]
        first_line = self.text.count("\n", 0, last.end) + before.count("\n") + 1
        changed = self._checked(text, first_line, first_line + len(lines) - 1)
        self._refuse_side_effects(changed, self.rows, len(self.rows))
        return changed

    def encode(self, row: JsonObject) -> str:
        """A new row as text, in the style of the file."""
        if self.format == "YAML":
            return encode_yaml(row).decode().strip()
        spread = not self.is_lines and any("\n" in self.text_of(one) for one in self.rows[-1:])
        return json.dumps(row, ensure_ascii=False, indent=2 if spread else None)

    def patch_to(self, changed: "EditableRows") -> str:
        """The difference as a unified diff that `git apply` and `patch` take; empty if there is none."""
        old, new = _lines_of(self.text), _lines_of(changed.text)
        lines = unified_diff(old, new, f"a/{self.path.name}", f"b/{self.path.name}", n=1)
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )

    def _json_lines(self) -> list[EditableRow]:
        rows, start = [], len(_BOM) if self.text.startswith(_BOM) else 0
        for number, line in enumerate(_lines_of(self.text[start:]), start=1):
            written = line.rstrip("\r\n")
            if written.strip():
                rows.append(EditableRow(number, start, start + len(written), _row_of(written)))
            start += len(line)
        return rows

    def _json(self) -> list[EditableRow]:
        try:
            value = decode_python_json(self.text.removeprefix(_BOM))
        except json.JSONDecodeError as error:
            raise _UnreadableError(error.msg, error.lineno, self.path) from None
        except ValueError as error:
            raise _UnreadableError(str(error), None, self.path) from None
        keys, items = find_list(value, self.path)
        outline = outline_json(self.text, keys)
        for repeated in outline.repeated:
            raise _UnreadableError(f"{repeated.key!r} is given twice", repeated.line, self.path)
        if len(outline.items) != len(items):
            return []
        return [
            EditableRow(place.line, place.start, place.end, item)
            for place, item in zip(outline.items, items, strict=True)
        ]

    def _yaml(self) -> list[EditableRow]:
        try:
            document = read_yaml(self.text, YAML_TEXTS)
        except ValueError as error:
            raise _UnreadableError(str(error), None, self.path) from None
        for problem in document.problems:
            raise _UnreadableError(str(problem), problem.line, self.path)
        keys, items = find_list(document.value, self.path)
        nodes = document.item_nodes(keys)
        if len(nodes) != len(items) or not all(isinstance(item, dict) for item in items):
            return []
        return [
            EditableRow(node.start_mark.line + 1, node.start_mark.index, self._end_of(node), item)
            for node, item in zip(nodes, items, strict=True)
        ]

    def _end_of(self, node: Node) -> int:
        """Where a node ends, with the comment on its last line; what follows on lines of its own is outside."""
        end = len(self.text[: _last_index(node)].rstrip())
        rest = _REST_OF_LINE.match(self.text, end)
        return rest.end() if rest else end

    @cached_property
    def _line_end(self) -> str:
        return "\r\n" if "\r\n" in self.text[: self.text.find("\n") + 1] else "\n"

    def _line_start(self, row: EditableRow) -> int:
        return self.text.rfind("\n", 0, row.start) + 1

    def _indentation(self, row: EditableRow) -> str:
        before = self.text[self._line_start(row) : row.start]
        return " " * len(before) if self.format == "YAML" else before[: len(before) - len(before.lstrip())]

    def _raw_lines(self, row: EditableRow) -> list[str]:
        return [line.removesuffix("\r") for line in self.text[row.start : row.end].split("\n")]

    def _plain_lines(self, row: EditableRow) -> list[str]:
        first, *rest = self._raw_lines(row)
        deepest = len(self._indentation(row))
        return [first, *(line[min(deepest, len(line) - len(line.lstrip(" \t"))) :] for line in rest)]

    def _edited_lines(self, edited: str) -> list[str]:
        # A browser sends the lines of a form with \r\n.
        text = edited.replace("\r\n", "\n").strip()
        if self.is_lines and "\n" in text:
            text = json.dumps(decode_strict_json(text.encode()), ensure_ascii=False)
        return text.split("\n")

    def _checked(self, text: str, first_line: int, last_line: int) -> "EditableRows":
        """A changed text that can be read; problems are named by their line in what was edited."""
        changed = EditableRows(text, self.path)
        try:
            _ = changed.rows
        except _UnreadableError as error:
            where = "after it, the file cannot be read"
            if error.line is not None and first_line <= error.line <= last_line:
                where = f"line {error.line - first_line + 1}"
            raise UsageError(f"{where}: {error.reason}") from None
        return changed

    def _refuse_side_effects(self, changed: "EditableRows", others: list[EditableRow], index: int) -> None:
        after = [one.row for one in changed.rows]
        if len(after) != len(others) + 1 or [*after[:index], *after[index + 1 :]] != [
            one.row for one in others
        ]:
            raise UsageError(
                f"the edit would change other questions of {self.path.name}, or is more than one; edit them in the file"
            )


class _UnreadableError(InputError):
    """The text of a file that is not valid."""

    def __init__(self, message: str, line: int | None, path: Path) -> None:
        super().__init__(message, path=path.name, line=line)


def _row_of(line: str) -> JsonObject:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _lines_of(text: str) -> list[str]:
    """The lines with their ends. A line separator of Unicode inside a text ends no line."""
    return StringIO(text, newline="\n").readlines()


def _indented(line: str, indentation: str) -> str:
    return indentation + line if line else line


def _last_index(node: Node) -> int:
    """Where the last scalar or bracket of a node ends; the end of a block is where the next one begins."""
    if not isinstance(node, MappingNode | SequenceNode) or node.flow_style:
        return int(node.end_mark.index)
    last = node.value[-1]
    return max(map(_last_index, last if isinstance(last, tuple) else (last,)))
