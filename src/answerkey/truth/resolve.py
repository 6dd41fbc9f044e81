"""Resolving: preconditions checked and computed expectations replaced by their values, before the first question."""

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from answerkey.errors import ConfigError, TruthError
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
)
from answerkey.plugins import load_object
from answerkey.truth.sources import TruthSource, open_source

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]00:00(?::00(?:\.0+)?)?)?")
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
        """Close what was opened."""
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
        turns = tuple(self._turn(question, turn) for turn in question.turns)
        return msgspec.structs.replace(self._turn(question, question), turns=turns)

    def _turn(self, question: Question, turn: Question) -> Question:
        if not any(
            isinstance(one, ComputedExpectation)
            for one in (*turn.expected_keywords, *turn.forbidden_keywords)
        ):
            return turn
        expected: list[Expectation] = []
        is_answerable = turn.answerable
        for one in turn.expected_keywords:
            if not isinstance(one, ComputedExpectation):
                expected.append(one)
                continue
            values = self._values(question, turn, one)
            if values is None:
                # It stays without a value, so that the question is still known to be the same one.
                expected.append(one)
                is_answerable = is_answerable and one.on_empty != "abstain"
            else:
                expected += _expectations(one, values)
        forbidden: list[Expectation] = []
        for one in turn.forbidden_keywords:
            if isinstance(one, ComputedExpectation):
                forbidden += _expectations(one, self._values(question, turn, one) or [])
            else:
                forbidden.append(one)
        return msgspec.structs.replace(
            turn,
            expected_keywords=tuple(expected),
            forbidden_keywords=tuple(forbidden),
            answerable=is_answerable,
        )

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
    singles = [_expectation(value, computed) for value in values]
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
