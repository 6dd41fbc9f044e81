"""Changed-data twins: a copy of the data with other figures, and a golden set that expects them.

A chatbot that reads the copy gives the new values; one that remembers, or reads something else, gives the old ones.
"""

import csv
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from answerkey.errors import UsageError
from answerkey.model.question import QuestionSet, TruthSettings
from answerkey.truth.resolve import Resolved, resolve

# What a figure becomes: so far off that no usual tolerance accepts it, and no multiple of the old one.
_FACTOR, _ADDED = 1.37, 3
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


class TwinValue(msgspec.Struct, frozen=True):
    """A value that is another one in the twin."""

    # The question's id.
    id: str
    old: Any = msgspec.field(name="from")
    new: Any = msgspec.field(name="to")


class Twin(msgspec.Struct, frozen=True, kw_only=True):
    """A changed copy of the data."""

    # The questions whose values changed, with the new values.
    questions: QuestionSet
    changed: tuple[TwinValue, ...]
    # Ids of the questions that are left out: none of their values changed.
    unchanged: tuple[str, ...]
    # Which columns were changed: "books.reservations.gross".
    columns: tuple[str, ...]
    files: tuple[Path, ...]


class _Column(Protocol):
    """A column of a copy, whose figures can be changed and restored."""

    name: str

    def change(self) -> bool:
        """Change its figures; False if it has none."""
        ...

    def restore(self) -> None:
        """Undo the change."""
        ...


def make_twin(
    questions: QuestionSet, settings: Mapping[str, TruthSettings], folder: Path, output: Path
) -> Twin:
    """Copy the SQLite databases and CSV files of the sources, and change the figures that the keys depend on.

    A column is changed only if that changes a value and leaves every key computable: an id or a year stays.
    """
    copies = {name: _copied(name, one, folder, output) for name, one in settings.items()}
    if not any(copies[name] != settings[name] for name in settings):
        raise UsageError("--twin needs a source under [truth] with a SQLite url or with CSV files")
    before = resolve(questions, copies, (), folder)
    if before.problems:
        raise UsageError(before.problems[0])
    current, columns = before, []
    for column in [column for name in copies for column in _columns(name, copies[name])]:
        if not column.change():
            continue
        after = resolve(questions, copies, (), folder)
        if after.problems or _values(after) == _values(current):
            column.restore()
        else:
            current = after
            columns.append(column.name)
    changed = [
        TwinValue(old.id, old.value, new.value)
        for old, new in zip(before.keys, current.keys, strict=True)
        if old.value != new.value
    ]
    ids = {one.id for one in changed}
    return Twin(
        questions=questions.subset([question for question in current.questions if question.id in ids]),
        changed=tuple(changed),
        unchanged=tuple(question.id for question in questions if question.id not in ids),
        columns=tuple(columns),
        files=tuple(path for one in copies.values() for path in _paths(one) if path.is_relative_to(output)),
    )


def _values(resolved: Resolved) -> list[object]:
    return [key.value for key in resolved.keys]


def _copied(name: str, settings: TruthSettings, folder: Path, output: Path) -> TruthSettings:
    """The settings of a source whose data is a copy; those of any other source unchanged."""
    if settings.files and all(Path(path).suffix.lower() in _DELIMITERS for path in settings.files.values()):
        patterns = {}
        for table, pattern in settings.files.items():
            target = output / name / table
            target.mkdir(parents=True, exist_ok=True)
            found = folder / pattern
            for path in sorted(found.parent.glob(found.name)):
                shutil.copyfile(path, target / path.name)
            patterns[table] = str(target / found.name)
        return msgspec.structs.replace(settings, files=patterns)
    if urlsplit(settings.url).scheme == "sqlite":
        [path] = _paths(settings, folder)
        if path.is_file():
            output.mkdir(parents=True, exist_ok=True)
            target = (output / path.name).resolve()
            with closing(sqlite3.connect(path)) as original, closing(sqlite3.connect(target)) as copy:
                original.backup(copy)
            return msgspec.structs.replace(settings, url=f"sqlite:///{target}")
    return settings


def _paths(settings: TruthSettings, folder: Path = Path()) -> list[Path]:
    """The data files of a source."""
    if settings.files:
        patterns = [folder / pattern for pattern in settings.files.values()]
        return [path for pattern in patterns for path in sorted(pattern.parent.glob(pattern.name))]
    if urlsplit(settings.url).scheme == "sqlite":
        path = unquote(urlsplit(settings.url).path)
        return [Path(path.removeprefix("/")) if path.startswith("//") else folder / path.removeprefix("/")]
    return []


def _columns(name: str, settings: TruthSettings) -> Iterator[_Column]:
    """The columns of figures in the copy of a source."""
    if settings.files:
        for table, pattern in settings.files.items():
            for path in sorted(Path(pattern).parent.glob(Path(pattern).name)):
                yield from _csv_columns(f"{name}.{table}", path)
    elif settings.url.startswith("sqlite:"):
        for path in _paths(settings):
            yield from _sqlite_columns(name, path)


def _sqlite_columns(name: str, path: Path) -> Iterator[_Column]:
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for _, column, kind, _, _, key in database.execute(
                f"PRAGMA table_info({_quoted(table)})"
            ).fetchall():
                if not key and _FIGURES.search(kind):
                    yield _SqliteColumn(f"{name}.{table}.{column}", path, table, column)


# Types of columns that SQLite treats as numbers.
_FIGURES = re.compile("INT|REAL|NUM|DEC|FLOA|DOUB", re.IGNORECASE)


class _SqliteColumn:
    def __init__(self, name: str, path: Path, table: str, column: str) -> None:
        self.name = name
        self._path, self._table, self._column = path, _quoted(table), _quoted(column)
        # (value, rowid)
        self._saved: list[tuple[object, int]] = []

    def change(self) -> bool:
        with closing(sqlite3.connect(self._path)) as database, database:
            query = f"SELECT {self._column}, rowid FROM {self._table}"  # noqa: S608  # both are quoted
            self._saved = database.execute(query).fetchall()
            changed = [(_other_value(value), row) for value, row in self._saved]
            database.executemany(self._update, changed)
        return bool(changed)

    def restore(self) -> None:
        with closing(sqlite3.connect(self._path)) as database, database:
            database.executemany(self._update, self._saved)

    @property
    def _update(self) -> str:
        return f"UPDATE {self._table} SET {self._column} = ? WHERE rowid = ?"  # noqa: S608  # both are quoted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _other_value(value: object) -> object:
    match value:
        case int():
            return round(value * _FACTOR) + _ADDED
        case float():
            return round(value * _FACTOR + _ADDED, 2)
    return value


def _csv_columns(name: str, path: Path) -> Iterator[_Column]:
    head = next(iter(_read_rows(path)), [])
    for index, title in enumerate(head):
        yield _CsvColumn(f"{name}.{title}", path, index)


class _CsvColumn:
    def __init__(self, name: str, path: Path, index: int) -> None:
        self.name = name
        self._path, self._index = path, index
        self._saved = b""

    def change(self) -> bool:
        self._saved = self._path.read_bytes()
        rows, index = _read_rows(self._path), self._index
        cells = [row for row in rows[1:] if index < len(row) and row[index]]
        if not all(_FIGURE.fullmatch(row[index]) for row in cells):
            return False
        for row in cells:
            decimals = len(row[index].partition(".")[2])
            row[index] = f"{float(row[index]) * _FACTOR + _ADDED:.{decimals}f}"
        with self._path.open("w", encoding="utf-8", newline="") as lines:
            csv.writer(lines, delimiter=_DELIMITERS[self._path.suffix.lower()]).writerows(rows)
        return bool(cells)

    def restore(self) -> None:
        self._path.write_bytes(self._saved)


_FIGURE = re.compile(r"-?\d+(?:\.\d+)?")


def _read_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.reader(lines, delimiter=_DELIMITERS[path.suffix.lower()]))
