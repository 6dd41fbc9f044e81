"""`--map FIELD=JMESPATH`: where the rows of another tool's file have answerkey's fields."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from answerkey.errors import InputError, UsageError
from answerkey.model.json_value import JsonObject
from answerkey.transcripts.fields.content_text import TEXT_NAMES
from answerkey.transcripts.payloads import NAMES_READ
from answerkey.transcripts.table_columns import FIELDS_OF

# Not a field: where a document has its rows.
ROWS = "rows"
_FIELDS = (*FIELDS_OF["replies"], ROWS)
# Names under which answerkey itself would read something.
_READ = NAMES_READ.union(_FIELDS, TEXT_NAMES)
# A field that none of so many rows has is not there.
_ENOUGH = 1000


def read_map(texts: Iterable[str]) -> dict[str, str]:
    """FIELD → expression, from "FIELD=JMESPATH" as the command line gives it."""
    expressions: dict[str, str] = {}
    for text in texts:
        field, equals, expression = (part.strip() for part in text.partition("="))
        if not (field and equals and expression):
            raise UsageError(f"--map {text!r}: write FIELD=JMESPATH, as answer=response.text")
        if field in expressions:
            raise UsageError(f"--map {field} is given twice; keep one")
        expressions[field] = expression
    return expressions


class FieldMap:
    """Expressions over the rows of one file; one that is a row's own field or column need not be JMESPath."""

    def __init__(self, expressions: Mapping[str, str]) -> None:
        self._given = dict(expressions)
        self._rows = self._given.pop(ROWS, None)
        self._find = {field: finder(expression) for field, expression in expressions.items()}
        for field in self._given:
            if field in _READ:
                continue
            close = get_close_matches(field, _FIELDS, n=1, cutoff=0.75)
            known = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(_FIELDS)}"
            raise UsageError(f"--map {field}={self._given[field]}: answerkey has no field {field!r}; {known}")

    def __bool__(self) -> bool:
        return bool(self._given) or self._rows is not None

    @property
    def fields(self) -> frozenset[str]:
        """What has an expression."""
        return frozenset(self._given)

    def rows_in(self, document: object, path: Path) -> list[Any] | None:
        """The rows that `rows` finds in a document; None if it is not given."""
        if self._rows is None:
            return None
        found = self._find[ROWS](document) if isinstance(document, dict | list) else None
        if not isinstance(found, list):
            finds = "finds no list in it" if is_expression(self._rows) else "is not valid JMESPath"
            raise InputError(f"--map rows={self._rows} {finds}{_seen(document)}", path=path)
        return found

    def over(
        self, rows: Iterable[tuple[int | None, JsonObject]], path: Path
    ) -> Iterator[tuple[int | None, JsonObject]]:
        """The rows with every field where it belongs; an expression that finds nothing in any row is refused."""
        if not self._given:
            yield from rows
            return
        missing, rows = set(self._given), iter(rows)
        first = list(islice(rows, _ENOUGH))
        for _, row in first:
            missing = {field for field in missing if self._find[field](row) is None}
        if missing and first:
            field = next(field for field in self._given if field in missing)
            expression = self._given[field]
            finds = "finds nothing in any row"
            if not is_expression(expression):
                finds = "is not valid JMESPath, and no row has a field of that name"
            raise InputError(f"--map {field}={expression} {finds}{_seen(first[0][1])}", path=path)
        for block in (first, rows):
            for line, row in block:
                yield line, self._mapped(row)

    def _mapped(self, row: JsonObject) -> JsonObject:
        found = {field: self._find[field](row) for field in self._given}
        # What a field was taken from is the other tool's, and not to be read once more under a name of answerkey's.
        taken = {_root(expression) for expression in self._given.values()}
        kept = {
            name: value
            for name, value in row.items()
            if name not in found and not (name in taken and (name in _READ or name in self._given.values()))
        }
        return {**kept, **{field: value for field, value in found.items() if value is not None}}


def _root(expression: str) -> str:
    """The field of a row that an expression begins with."""
    return expression.partition(".")[0].partition("[")[0].partition("|")[0].strip().strip('"')


def _seen(row: object) -> str:
    return f"; there are {', '.join(list(row)[:20])}" if isinstance(row, dict) else ""


def is_expression(expression: str) -> bool:
    """Whether it is JMESPath."""
    import jmespath  # only where there is a map

    try:
        jmespath.compile(expression)
    except ValueError:
        return False
    return True


def finder(expression: str) -> Callable[[Any], Any]:
    """How an expression finds a value: as a row's own field or column, else as JMESPath; None if there is none."""
    import jmespath  # only where there is a map

    try:
        search = jmespath.compile(expression).search
    except ValueError:
        # It can only be a column's name.
        search = None

    def find(row: Any) -> Any:
        if isinstance(row, dict) and expression in row:
            return row[expression]
        try:
            return None if search is None else search(row)
        except (TypeError, ValueError, RecursionError):
            return None

    return find
