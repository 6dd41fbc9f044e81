"""Truth: preconditions checked and computed expectations replaced by their values before the first question; changed-data twins.

A twin is a copy of the data with other figures, and a golden set that expects them. A chatbot that reads the copy gives the new
values; one that remembers, or reads something else, gives the old ones.
"""

import csv
import datetime
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from answerkey.errors import ConfigError, TruthError, UsageError
from answerkey.golden.truth_sources import TruthSource, open_source
from answerkey.model.question import (
    ROUNDING,
    Alternatives,
    ComputedExpectation,
    ComputedKey,
    DateExpectation,
    Expectation,
    NumberExpectation,
    Question,
    QuestionSet,
    RunTruth,
    SingleExpectation,
    TextExpectation,
    TruthSettings,
    TruthValue,
    WorldCheck,
    WorldCondition,
    expected_options,
)
from answerkey.plugins import load_object
from answerkey.transcripts.files import parameters

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]00:00(?::00(?:\.0+)?)?)?")
_TIME = re.compile(r"((?:\d{4}-\d{2}-\d{2}[ T])?(?:[01]?\d|2[0-3]):[0-5]\d)(?::00(?:\.0+)?)?")
_EXPECT = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(.+?)\s*")
_COMPARE = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq, "!=": ne}
_HTTP_SECONDS = 10.0
_MOST_BYTES = 10_000_000


class TruthSources:
    """The sources of a configuration, each opened when it is first needed and closed at the end."""

    def __init__(self, settings: Mapping[str, TruthSettings], folder: Path) -> None:
        self._settings, self._folder = settings, folder
        self._opened: dict[str, TruthSource] = {}
        self._computed: dict[bytes, _Result] = {}

    def compute(self, method: str, expression: str, source: str, arguments: Mapping[str, Any]) -> "_Result":
        """The values of an expression; the same expression with the same arguments is computed once."""
        name = source or self._only_source(method)
        key = msgspec.json.encode([name, method, expression, arguments], order="deterministic")
        if key not in self._computed:
            began = perf_counter()
            values = self._source(name, method).values(expression, arguments)
            most = self._settings.get(name, TruthSettings()).max_rows
            if len(values) > most:
                raise TruthError(
                    f"gives {len(values):,} values, more than {most:,}; aggregate them, or raise max_rows "
                    f"under [truth.{name}]"
                )
            self._computed[key] = _Result(name, values, 1000 * (perf_counter() - began))
        return self._computed[key]

    def _only_source(self, method: str) -> str:
        fields = {"sql": ("url", "files"), "fact": ("document",), "python": ("python",)}[method]
        names = [name for name, one in self._settings.items() if any(getattr(one, field) for field in fields)]
        if len(names) != 1:
            listed = ", ".join(names) or "there is none"
            raise TruthError(f'"from" must name a source under [truth] for {method!r} ({listed})')
        return names[0]

    def _source(self, name: str, method: str) -> TruthSource:
        if name not in self._opened:
            settings = self._settings.get(name)
            if settings is None and name == "demo":
                # The bundled golden set is computed from the reference chatbot's own database.
                database = load_object("answerkey_demo:database_path")()
                settings = TruthSettings(url=f"sqlite:///{database}")
            if settings is None:
                known = ", ".join(self._settings) or "none"
                raise TruthError(f"there is no [truth.{name}] in the configuration; sources: {known}")
            self._opened[name] = open_source(name, settings, self._folder)
        source = self._opened[name]
        if source.method != method:
            raise TruthError(f"[truth.{name}] computes {source.method!r}, not {method!r}")
        return source

    def close(self) -> None:
        for source in self._opened.values():
            source.close()
        self._opened.clear()


class _Result(NamedTuple):
    source: str
    values: list[TruthValue]
    ms: float


@contextmanager
def open_sources(settings: Mapping[str, TruthSettings], folder: Path) -> Iterator[TruthSources]:
    """The sources for the time of one resolution: one snapshot."""
    sources = TruthSources(settings, folder)
    try:
        yield sources
    finally:
        sources.close()


class Resolved(NamedTuple):
    """A golden set with its computed values."""

    questions: QuestionSet
    keys: list[ComputedKey]
    truth: RunTruth
    # One line for each key or precondition that cannot be computed or does not hold.
    problems: list[str]


def resolve(
    questions: QuestionSet,
    settings: Mapping[str, TruthSettings],
    world: tuple[WorldCondition, ...],
    folder: Path,
) -> Resolved:
    """Check the preconditions and compute every expectation, from one snapshot."""
    with open_sources(settings, folder) as sources:
        checks, problems = _check_world(world, sources)
        resolving = _Resolving(sources, questions.path)
        resolved = [resolving.question(question) for question in questions]
    truth = RunTruth(
        computed=len(resolving.keys),
        world=checks,
        computed_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    return Resolved(questions.subset(resolved), resolving.keys, truth, [*problems, *resolving.problems])


class _Resolving:
    """Replaces computed expectations, and collects what was computed and what could not be."""

    def __init__(self, sources: TruthSources, path: str | None) -> None:
        self._sources, self._path = sources, path
        self.keys: list[ComputedKey] = []
        self.problems: list[str] = []

    def question(self, question: Question) -> Question:
        """A question whose computed expectations are replaced by their values."""

        def find(turn: Question, old: Question | None, one: ComputedExpectation) -> list[Expectation] | None:
            values = self._values(question, turn, one)
            return None if values is None else _expectations(one, values)

        return _replaced(question, None, find)

    def _values(
        self, question: Question, turn: Question, one: ComputedExpectation
    ) -> list[TruthValue] | None:
        """The values of an expectation; None where there is none, or it could not be computed."""
        arguments = one.arguments if one.method == "python" else {**_fields(question, turn), **one.arguments}
        try:
            result = self._sources.compute(one.method, one.expression, one.source, arguments)
        except (TruthError, ConfigError) as error:
            self._problem(question, f"{one.method} {_shortened(one.expression)!r}: {error}")
            return None
        values: list[TruthValue] = [value for value in result.values if value is not None and value != ""]
        shown = [_as_json(value) for value in result.values]
        self.keys.append(
            ComputedKey(
                id=question.id,
                source=result.source,
                expression=one.expression,
                value=shown[0] if len(shown) == 1 else shown or None,
                rows=len(result.values),
                ms=round(result.ms, 3),
            )
        )
        if values and len(values) == len(result.values):
            return values
        if one.on_empty != "abstain":
            what = "no row" if not result.values else "NULL"
            self._problem(
                question,
                f"{one.method} {_shortened(one.expression)!r} gives {what}: the data is missing, or set "
                '"on_empty": "abstain" if the question then has no answer',
            )
        return None

    def _problem(self, question: Question, message: str) -> None:
        where = f"{self._path}:{question.line}: " if self._path and question.line else ""
        self.problems.append(f"{where}{question.id}: {message}")


class StoredValues(NamedTuple):
    """A question with the values that were computed for a stored version of it."""

    question: Question
    # What has no stored value: it is new, or a field that its query names changed.
    missing: list[ComputedExpectation]


def with_stored_values(question: Question, stored: Question) -> StoredValues:
    """Replace computed expectations by what was computed for `stored`, where it asked the source the same."""
    missing: list[ComputedExpectation] = []

    def find(turn: Question, old: Question | None, one: ComputedExpectation) -> list[Expectation] | None:
        before: tuple[Expectation, ...] = ()
        if old is not None and _asks_the_same(one, (question, turn), (stored, old)):
            before = (*old.expected_keywords, *old.forbidden_keywords)
        known = [value for value in before if not isinstance(value, str | ComputedExpectation)]
        found = [value for value in known if value.expression == one.described]
        if found:
            return _as_expected(one, found)
        had_no_value = any(
            isinstance(value, ComputedExpectation) and value.described == one.described for value in before
        )
        if had_no_value and one.on_empty == "abstain":
            return None
        missing.append(one)
        return [one]

    return StoredValues(_replaced(question, stored, find), missing)


# Finds what takes the place of a computed expectation of a turn, given the stored version of the turn; None: the data has
# no value.
_Find = Callable[[Question, Question | None, ComputedExpectation], list[Expectation] | None]


def _replaced(question: Question, stored: Question | None, find: _Find) -> Question:
    """A question whose computed expectations are replaced.

    One without a value stays, so that the question is still known to be the same one.
    """

    def replaced(turn: Question, old: Question | None) -> Question:
        is_answerable = turn.answerable
        lists: list[tuple[Expectation, ...]] = []
        for is_forbidden, before in enumerate((turn.expected_keywords, turn.forbidden_keywords)):
            after: list[Expectation] = []
            for one in before:
                found = None
                if isinstance(one, ComputedExpectation):
                    found = find(turn, old, one)
                    if found is None and one.on_empty == "abstain" and not is_forbidden:
                        is_answerable = False
                after += [one] if found is None else found
            lists.append(tuple(after))
        expected, forbidden = lists
        return msgspec.structs.replace(
            turn, expected_keywords=expected, forbidden_keywords=forbidden, answerable=is_answerable
        )

    old_turns = () if stored is None else stored.turns
    turns = tuple(
        replaced(turn, old_turns[index] if index < len(old_turns) else None)
        for index, turn in enumerate(question.turns)
    )
    return msgspec.structs.replace(replaced(question, stored), turns=turns)


def _asks_the_same(
    one: ComputedExpectation, new: tuple[Question, Question], old: tuple[Question, Question]
) -> bool:
    """Whether the fields that a query names without a parameter of that name are the same."""
    if one.method != "sql":
        return True
    now, before = _fields(*new), _fields(*old)
    return all(
        now.get(name) == before.get(name) for name in parameters(one.expression) - one.arguments.keys()
    )


def _as_expected(computed: ComputedExpectation, stored: list[Any]) -> list[Expectation]:
    """Stored values as this expectation asks for them: its weight, tolerance, and all or any of them."""
    singles: list[SingleExpectation] = []
    for value in (option for one in stored for option in expected_options(one)):
        if isinstance(value, NumberExpectation):
            singles.append(_expectation(value.number, computed))
        elif isinstance(value, TextExpectation | DateExpectation):
            singles.append(msgspec.structs.replace(value, must=computed.must))
    return _all_or_any(computed, singles)


def _fields(question: Question, turn: Question) -> dict[str, Any]:
    """What a query may name as `:name` without a parameter: the question's own fields."""
    known = {
        "id": question.id,
        "category": question.category,
        "persona": question.persona,
        "question": turn.question,
    }
    return {**question.metadata, **turn.metadata, **known}


def _expectations(computed: ComputedExpectation, values: list[TruthValue]) -> list[Expectation]:
    """The values as expectations: each of them, or one of them."""
    return _all_or_any(computed, [_expectation(value, computed) for value in values])


def _all_or_any(computed: ComputedExpectation, singles: list[SingleExpectation]) -> list[Expectation]:
    if computed.several == "any" and len(singles) > 1:
        bare = tuple(msgspec.structs.replace(one, must=False) for one in singles if not isinstance(one, str))
        return [Alternatives(bare, must=computed.must, expression=computed.described)]
    return list(singles)


def _expectation(value: TruthValue, computed: ComputedExpectation) -> SingleExpectation:
    must, expression = computed.must, computed.described
    if isinstance(value, int | float):
        tolerance = computed.tolerance
        if not tolerance and value != int(value):
            tolerance = ROUNDING
        return NumberExpectation(float(value), tolerance=tolerance, must=must, expression=expression)
    if isinstance(value, datetime.datetime):
        return DateExpectation(value.isoformat(" ", "minutes"), must=must, expression=expression)
    if isinstance(value, datetime.date):
        return DateExpectation(value.isoformat(), must=must, expression=expression)
    text = str(value)
    if _ISO_DATE.fullmatch(text):
        # SQLite has no dates of its own.
        return DateExpectation(text[:10], must=must, expression=expression)
    time = _TIME.fullmatch(text)
    if time is not None:
        return DateExpectation(time[1], must=must, expression=expression)
    return TextExpectation(text, must=must, expression=expression)


def _as_json(value: TruthValue) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else value


def _shortened(expression: str) -> str:
    text = " ".join(expression.split())
    return text if len(text) <= 80 else text[:77] + "…"


# The world.


def _check_world(
    world: tuple[WorldCondition, ...], sources: TruthSources
) -> tuple[tuple[WorldCheck, ...], list[str]]:
    checks: list[WorldCheck] = []
    problems: list[str] = []
    for condition in world:
        compare = _comparison(condition)
        try:
            value = _world_value(condition, sources)
        except TruthError as error:
            problems.append(f"world: {condition.name}: {error}")
            checks.append(WorldCheck(name=condition.name, value=None, expect=condition.expect, holds=False))
            continue
        holds = compare(value)
        checks.append(WorldCheck(name=condition.name, value=value, expect=condition.expect, holds=holds))
        if not holds:
            problems.append(
                f"world: {condition.name}: expected {condition.expect}, found {'nothing' if value is None else value}"
            )
    return tuple(checks), problems


def _world_value(condition: WorldCondition, sources: TruthSources) -> Any:
    if condition.get:
        return _fetched(condition)
    method = next(name for name in ("sql", "fact", "python") if getattr(condition, name))
    values = sources.compute(method, getattr(condition, method), condition.source, {}).values
    if len(values) > 1:
        raise TruthError(f"{len(values)} values where one is compared; aggregate them")
    return _as_json(values[0]) if values else None


def _fetched(condition: WorldCondition) -> Any:
    """The value that a web address, such as a chatbot's health endpoint, reports."""
    import json
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    import jmespath

    if not condition.get.startswith(("http://", "https://")):
        raise TruthError(f"get: {condition.get!r} is not an http address")
    request = Request(condition.get, headers={"Accept": "application/json"})  # noqa: S310  # checked above
    try:
        with urlopen(request, timeout=_HTTP_SECONDS) as response:  # noqa: S310  # checked above
            body = response.read(_MOST_BYTES)
    except HTTPError as error:
        raise TruthError(f"{condition.get}: HTTP {error.code} {error.reason}") from None
    except (URLError, OSError, ValueError) as error:
        raise TruthError(f"{condition.get}: {getattr(error, 'reason', None) or error}") from None
    if not condition.value:
        return body.decode("utf-8", "replace").strip()
    try:
        return jmespath.search(condition.value, json.loads(body))
    except ValueError:
        raise TruthError(f"{condition.get}: the response is not JSON, or value is not a path") from None


def _comparison(condition: WorldCondition) -> Any:
    """The test of a value by `expect`."""
    where = f"[[world]] {condition.name}"
    given = [name for name in ("sql", "fact", "python", "get") if getattr(condition, name)]
    if len(given) != 1:
        raise ConfigError(f"{where} needs exactly one of sql, fact, python, get")
    match = _EXPECT.fullmatch(condition.expect)
    if match is None:
        raise ConfigError(f'{where}: expect = {condition.expect!r}: write a comparison such as "> 0"')
    operator, text = match[1], match[2]
    wanted: float | str
    try:
        wanted = float(text)
    except ValueError:
        wanted = text.strip("\"'")
        if operator not in ("==", "!="):
            raise ConfigError(
                f"{where}: expect = {condition.expect!r}: a text can only be == or !="
            ) from None

    def compare(value: Any) -> bool:
        if value is None:
            return False
        if isinstance(wanted, str):
            return (str(value) == wanted) is (operator == "==")
        try:
            number = float(value)
        except (TypeError, ValueError):
            return False
        return bool(_COMPARE[operator](number, wanted))

    return compare


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


class _Column(NamedTuple):
    """A column of a copy."""

    name: str
    path: Path
    # Changes its figures; False if it has none.
    change: Callable[[], bool]


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
        saved = column.path.read_bytes()
        if not column.change():
            continue
        after = resolve(questions, copies, (), folder)
        if after.problems or _values(after) == _values(current):
            column.path.write_bytes(saved)
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
                    change = partial(_change_in_sqlite, path, _quoted(table), _quoted(column))
                    yield _Column(f"{name}.{table}.{column}", path, change)


# Types of columns that SQLite treats as numbers.
_FIGURES = re.compile("INT|REAL|NUM|DEC|FLOA|DOUB", re.IGNORECASE)


def _change_in_sqlite(path: Path, table: str, column: str) -> bool:
    with closing(sqlite3.connect(path)) as database, database:
        query = f"SELECT {column}, rowid FROM {table}"  # noqa: S608  # both are quoted
        changed = [(_other_value(value), row) for value, row in database.execute(query)]
        database.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", changed)  # noqa: S608
    return bool(changed)


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
        yield _Column(f"{name}.{title}", path, partial(_change_in_csv, path, index))


def _change_in_csv(path: Path, index: int) -> bool:
    rows = _read_rows(path)
    cells = [row for row in rows[1:] if index < len(row) and row[index]]
    if not all(_FIGURE.fullmatch(row[index]) for row in cells):
        return False
    for row in cells:
        decimals = len(row[index].partition(".")[2])
        row[index] = f"{float(row[index]) * _FACTOR + _ADDED:.{decimals}f}"
    with path.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, delimiter=_DELIMITERS[path.suffix.lower()]).writerows(rows)
    return bool(cells)


_FIGURE = re.compile(r"-?\d+(?:\.\d+)?")


def _read_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.reader(lines, delimiter=_DELIMITERS[path.suffix.lower()]))
