"""YAML 1.2: values as the author typed them, the line of each, and values that are probably not what the author meant."""

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter

from answerkey.model.question import ReadNote
from answerkey.model.reply import Json
from answerkey.transcripts.json_values import MAX_JSON_DEPTH, NestingError, limit_depth

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
            node = next((value for name, value in _pairs(node) if name.value == key), None)
        return node.value if isinstance(node, SequenceNode) else []


def line_of(node: Node, path: Iterable[str | int] = ()) -> int:
    """The line of a value inside a node: by field name and, in a list, by number from 1; as far as the path exists."""
    for part in path:
        if isinstance(part, int):
            inner = (
                node.value[part - 1] if isinstance(node, SequenceNode) and part <= len(node.value) else None
            )
        else:
            inner = next((value for name, value in _pairs(node) if name.value == part), None)
        if inner is None:
            break
        node = inner
    return _line(node.start_mark)


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
    from ruamel.yaml.nodes import SequenceNode

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


def _pairs(node: object) -> list[tuple[Node, Node]]:
    return node.value if isinstance(node, MappingNode) else []


def _line(mark: StreamMark) -> int:
    return int(mark.line) + 1


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


# Syntax errors in the words of an author.


def _explain(error: YAMLError, text: str) -> YamlError:
    """What is wrong with a document that cannot be parsed, and the remedy."""
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return YamlError(f"not valid YAML: {str(error).splitlines()[0]}; save the file as UTF-8 text")
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
    return YamlError(f"not valid YAML: {problem}; {_QUOTE}", line)
