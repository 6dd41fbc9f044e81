"""YAML 1.2: values as the author typed them, the line of each, and values that are probably not what the author meant.

A row of a golden set is edited in its file as its author wrote it, a line of JSON Lines, or an object of a JSON or YAML list
without its indentation: comments, order, quotes and every other row stay byte for byte.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher, unified_diff
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter

from answerkey.errors import InputError, UsageError
from answerkey.model.question import ReadNote
from answerkey.model.reply import Json, JsonObject
from answerkey.transcripts.json_values import (
    MAX_JSON_DEPTH,
    NestingError,
    decode_python_json,
    decode_strict_json,
    limit_depth,
    outline_json,
)
from answerkey.transcripts.row_files import YAML_TEXTS, find_list

_TAG = "tag:yaml.org,2002:"
# Tags whose scalars are texts; the core schema of YAML 1.2 has no dates.
_TEXT_TAGS = frozenset(_TAG + name for name in ("str", "timestamp", "binary", "value", "merge"))
_VALUE_TAGS = frozenset(_TAG + name for name in ("bool", "int", "float"))
_COLLECTION_TAGS = frozenset(_TAG + name for name in ("seq", "map", "omap", "set"))
_QUOTE = "put the value in quotes"
# A comma without a space between what may be the groups of one number.
_BEFORE_COMMA, _AFTER_COMMA = re.compile(r"(?:^|\D)\d{1,3}$"), re.compile(r"\d{3}(?!\d)")
_COMMENT = re.compile(r"[ \t]+#([^\r\n]*)")
_ITEM = re.compile(r"^( *)-(?=[ \t\r\n]|$)", re.MULTILINE)
_NESTED_VALUE = re.compile(r"^\s*(?:- +)*[^\s:]+:\s+\S.*?:(?:\s|$)")


class YamlError(ValueError):
    """Something wrong with a document: what, on which line, and the remedy."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


class YamlDocument(NamedTuple):
    """A document's value, or the items that could be read of a document with mistakes."""

    value: Json
    node: Node | None
    # What is wrong, and what is worth a look.
    problems: list[YamlError]
    notes: list[ReadNote]

    def item_nodes(self, keys: Iterable[str]) -> list[Node]:
        """The nodes of the list that the keys lead to."""
        node = self.node
        for key in keys:
            node = _child(node, key)
        return node.value if isinstance(node, SequenceNode) else []


def line_of(node: Node, path: Iterable[str | int] = ()) -> int:
    """The line of a value inside a node: by field name and, in a list, by number from 1; as far as the path exists."""
    for part in path:
        inner = _child(node, part)
        if inner is None:
            break
        node = inner
    return _line(node.start_mark)


def _child(node: Node | None, part: str | int) -> Node | None:
    """The field of a name, or the item of a number from 1; None if there is none."""
    if isinstance(part, int):
        return node.value[part - 1] if isinstance(node, SequenceNode) and part <= len(node.value) else None
    pairs = node.value if isinstance(node, MappingNode) else ()
    return next((value for name, value in pairs if name.value == part), None)


def decode_yaml(text: str) -> Json:
    """Decode one YAML document. Raises ValueError."""
    document = read_yaml(text)
    if document.problems:
        raise document.problems[0]
    return limit_depth(document.value)


# Texts that parsers of YAML 1.1 take for true, false or a number of minutes.
_READ_DIFFERENTLY = re.compile(r"y|n|yes|no|on|off|[-+]?[\d_]+(:[\d_.]+)+", re.IGNORECASE)


def encode_yaml(value: Json) -> bytes:
    """A value as a YAML document in block style, which parsers of YAML 1.1 and 1.2 read alike."""

    class Representer(SafeRepresenter):
        def represent_str(self, data: str) -> ScalarNode:
            quoted = "'" if _READ_DIFFERENTLY.fullmatch(data) else None
            return self.represent_scalar(_TAG + "str", data, style=quoted)

    Representer.add_representer(str, Representer.represent_str)
    writer = YAML(typ="safe", pure=True)
    writer.Representer = Representer
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.width = 110
    stream = io.BytesIO()
    writer.dump(value, stream)
    return stream.getvalue()


def read_yaml(text: str, text_keys: frozenset[str] = frozenset()) -> YamlDocument:
    """Read one document. The scalars under `text_keys` are the texts that the author typed, also if they look like numbers.

    After a mistake in the syntax of a list's item, the other items are read all the same. Raises NestingError.
    """
    try:
        node = _compose(text)
    except YAMLError as error:
        return _read_items(text, _explain(error, text), text_keys)
    reader = _NodeReader(text, text_keys)
    value = None if node is None else reader.value(node)
    return YamlDocument(value, node, reader.problems, reader.notes)


def _compose(text: str) -> Node | None:
    try:
        return YAML(typ="safe", pure=True).compose(text)  # type: ignore[no-any-return]
    except RecursionError:
        raise NestingError from None


def _read_items(text: str, problem: YamlError, text_keys: frozenset[str]) -> YamlDocument:
    """The items of a list that has a mistake, each read on its own."""
    problems: list[YamlError] = []
    nodes: list[Any] = []
    values: list[Json] = []
    reader = _NodeReader(text, text_keys)
    for first_line, chunk in _item_texts(text):
        # Blank lines before the item, so that its lines have their numbers.
        placed = "\n" * first_line + chunk
        try:
            node = _compose(placed)
        except YAMLError as error:
            found = _explain(error, placed)
            if not _is_alias_of(found, text):
                problems.append(found)
            continue
        item_reader = _NodeReader(placed, text_keys)
        if isinstance(node, SequenceNode) and len(node.value) == 1:
            values.append(item_reader.value(node.value[0]))
            nodes += node.value
        problems += item_reader.problems
        reader.notes += item_reader.notes
    return YamlDocument(
        values,
        SequenceNode(_TAG + "seq", nodes) if nodes else None,
        problems or [problem],
        reader.notes,
    )


def _item_texts(text: str) -> Iterator[tuple[int, str]]:
    """The items of the outermost list, each with the number of lines before it."""
    first = _ITEM.search(text)
    if first is None:
        return
    starts = [found.start() for found in _ITEM.finditer(text) if found[1] == first[1]]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield text.count("\n", 0, start), text[start:end]


def _is_alias_of(problem: YamlError, text: str) -> bool:
    """Whether an item could not be read alone because it refers to another."""
    alias = re.search(r"undefined alias '(.+)'", str(problem))
    return alias is not None and re.search(rf"&{re.escape(alias[1])}\b", text) is not None


class _NodeReader:
    """Turns nodes into values; collects problems and notes."""

    def __init__(self, text: str, text_keys: frozenset[str]) -> None:
        self._text = text
        self._text_keys = text_keys
        self.problems: list[YamlError] = []
        self.notes: list[ReadNote] = []
        # Aliases: the same node is the same value. A node that is being read contains itself if it is met again.
        self._values: dict[tuple[int, bool], Json] = {}
        self._open: set[int] = set()
        self._depth = 0

    def value(self, node: Node, *, as_text: bool = False) -> Json:
        key = (id(node), as_text)
        if key in self._values:
            return self._values[key]
        if id(node) in self._open:
            self._refuse(node, "contains itself through an alias; remove the alias")
            return None
        if self._depth > MAX_JSON_DEPTH:
            raise NestingError
        self._open.add(id(node))
        self._depth += 1
        value: Json
        if isinstance(node, ScalarNode):
            value = self._scalar(node, as_text=as_text)
        elif isinstance(node, SequenceNode):
            self._note_split_numbers(node)
            value = [self.value(item, as_text=as_text) for item in node.value]
        else:
            value = self._mapping(node)
        if not isinstance(node, ScalarNode) and node.tag not in _COLLECTION_TAGS:
            self._refuse_tag(node)
        self._depth -= 1
        self._open.discard(id(node))
        self._values[key] = value
        return value

    def _mapping(self, node: Node) -> dict[str, Json]:
        merged: dict[str, Json] = {}
        values: dict[str, Json] = {}
        lines: dict[str, int] = {}
        for name, held in node.value:
            if not isinstance(name, ScalarNode):
                self._refuse(name, "a field name must be text")
                continue
            if name.tag == _TAG + "merge":
                inherited = self.value(held)
                for one in inherited if isinstance(inherited, list) else [inherited]:
                    merged = {**(one if isinstance(one, dict) else {}), **merged}
                continue
            field, line = str(name.value), _line(name.start_mark)
            if field in lines:
                self._refuse(
                    name,
                    f"{field!r} is given twice, here and on line {lines[field]}; "
                    "remove one, or begin the next question with '- '",
                )
                continue
            lines[field] = line
            values[field] = self.value(held, as_text=field in self._text_keys)
        return {**merged, **values}

    def _scalar(self, node: ScalarNode, *, as_text: bool) -> Json:
        text = str(node.value)
        if node.style is None and text:
            self._note_comment(node)
        if node.tag in _TEXT_TAGS:
            return text
        if node.tag == _TAG + "null":
            return None
        if node.tag not in _VALUE_TAGS:
            self._refuse_tag(node)
            return text
        if as_text and node.style is None:
            return text
        return text.lower() in ("true", "yes", "on", "y") if node.tag == _TAG + "bool" else _number(text)

    def _refuse(self, node: Node, message: str) -> None:
        self.problems.append(YamlError(message, _line(node.start_mark)))

    def _refuse_tag(self, node: Node) -> None:
        tag = str(node.tag).replace(_TAG, "!!")
        self._refuse(node, f"{tag!r} is a YAML tag that answerkey does not read; {_QUOTE} if it is text")

    def _note_comment(self, node: ScalarNode) -> None:
        """A comment that begins without a space after # is probably part of the value: rule #4."""
        comment = _COMMENT.match(self._text, node.end_mark.index)
        if comment and comment[1] and not comment[1][0].isspace():
            self.notes.append(
                ReadNote(
                    code="comment-cut",
                    line=_line(node.start_mark),
                    message=f"“{_shortened(node.value)}” ends before “#{_shortened(comment[1])}”, which YAML takes for a comment",
                    remedy=f"{_QUOTE} if the text after # belongs to it",
                )
            )

    def _note_split_numbers(self, node: SequenceNode) -> None:
        """[$16,144] is a list of two values."""
        for left, right in zip(node.value, node.value[1:], strict=False):
            if not (_is_plain(left) and _is_plain(right)):
                continue
            between = self._text[left.end_mark.index : right.start_mark.index]
            if between == "," and _BEFORE_COMMA.search(left.value) and _AFTER_COMMA.match(right.value):
                whole = f"{left.value},{right.value}"
                self.notes.append(
                    ReadNote(
                        code="split-number",
                        line=_line(left.start_mark),
                        message=f"[{whole}] is a list of two values, “{left.value}” and “{right.value}”",
                        remedy=f'write ["{whole}"] if it is one number, or a space after the comma',
                    )
                )


def _number(text: str) -> Json:
    """A number of the core schema."""
    plain = text.replace("_", "").lower()
    try:
        if plain.lstrip("+-").startswith(("0x", "0o", "0b")):
            return int(plain, 0)
        return int(plain)
    except ValueError:
        pass
    try:
        return float(plain.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text


def _is_plain(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.style is None


def _line(mark: StreamMark) -> int:
    return int(mark.line) + 1


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


# Syntax errors in the words of an author.


def _explain(error: YAMLError, text: str) -> YamlError:
    """What is wrong with a document that cannot be parsed, and the remedy."""
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return YamlError(f"{str(error).splitlines()[0]}; save the file as UTF-8 text")
    problem = str(error.problem)
    lines = text.splitlines() or [""]
    # What is missing at the end of the text is missing on its last line.
    line = min(_line(error.problem_mark), len(lines))
    written = lines[line - 1]
    opened = None if error.context_mark is None else _line(error.context_mark)
    if "'\\t'" in problem or (written[: error.problem_mark.column + 1].strip() == "" and "\t" in written):
        return YamlError("a tab at the beginning of the line; indent with spaces", line)
    if "mapping values" in problem and _NESTED_VALUE.match(written):
        return YamlError(f"the value contains a colon and a space (': '); {_QUOTE}", line)
    if "cannot start any token" in problem:
        character = problem.split("'")[1]
        return YamlError(f"a value cannot begin with {character!r}; {_QUOTE}", line)
    if "undefined alias" in problem or "while scanning an alias" in str(error.context):
        return YamlError(f"{problem} ('*' at the beginning refers to an '&' elsewhere); {_QUOTE}", line)
    if "escape" in problem:
        remedy = "use single quotes, or write the backslash twice"
        return YamlError(f"unknown escape in double quotes; {remedy}", line)
    if "another document" in problem:
        return YamlError("a second document begins with '---'; keep one document a file", line)
    if "flow" in str(error.context):
        begun = "" if opened in (None, line) else f" that begins on line {opened}"
        first = lines[min(opened or line, len(lines)) - 1]
        hint = f"; {_QUOTE} if it contains ' #'" if " #" in first else ""
        return YamlError(
            f"the list or object in brackets{begun} is not closed, or a value in it contains a bracket, a quote or ': '; "
            f"close it, or put such a value in quotes{hint}",
            opened or line,
        )
    if "<scalar>" in problem:
        return YamlError(
            "text after a closing quote; put the whole value in quotes, and write a quote inside '…' twice",
            line,
        )
    if "block" in str(error.context) or "not allowed here" in problem or "could not find" in problem:
        return YamlError(
            "the line does not fit: write 'field: value', with the same indentation as the fields above", line
        )
    return YamlError(f"{problem}; {_QUOTE}", line)


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
