"""The questions of two runs as a table of differences: which columns there are, what stands in them, and their address."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from answerkey.model.run import RunInfo
from answerkey.report.changes import Change, changes_between
from answerkey.report.table import Column, Kind, Table, TableRow
from answerkey.report.value_wording import name_words
from answerkey.server.views.paging import ShortText
from answerkey.server.views.question_table import SHORT_NAMES
from answerkey.server.views.table_choice import chosen_columns
from answerkey.store.pairs import PairFilter, PairRow

__all__ = ["PAIR_CONDITIONS", "PairsFilter", "exported_cells", "pair_columns", "pair_table", "wanted_columns"]

# What questions are chosen by, besides ranges and `show`.
PAIR_CONDITIONS = ("text", "category", "persona", "tag", "error", "tool")
_FIRST = (
    Column(name="question", title="Question", sort="position"),
    Column(name="id", title="Id"),
    Column(name="category", title="Category"),
    Column(name="base", title="Base", kind="score", sort="base"),
    Column(name="candidate", title="Candidate", kind="score", sort="candidate"),
    Column(name="change", title="Change", kind="change", note="Points of a hundred", sort="change"),
    Column(name="why", title="Why", kind="why", note="What the first trial did otherwise than the base’s"),
)
_USUAL = ("question", "category", "base", "candidate", "change", "why")
# What values of a measure are, and their differences.
_KINDS: dict[str, tuple[Kind, Kind]] = {
    "component": ("score", "change"),
    "metric": ("metric", "metric_change"),
    "latency_ms": ("ms", "ms_change"),
    "cost": ("money", "metric_change"),
}


class PairsFilter(PairFilter, frozen=True, kw_only=True):
    """Which questions of two runs, in what order, and which columns of them."""

    columns: tuple[ShortText, ...] = ()


class PairedQuestion(Protocol):
    """A question in both runs."""

    @property
    def id(self) -> str:
        """The question's."""

    @property
    def category(self) -> str:
        """The question's."""

    @property
    def question(self) -> str:
        """What is asked."""

    @property
    def scores(self) -> tuple[float | None, ...]:
        """In each run, the base first."""

    @property
    def measures(self) -> tuple[dict[str, float], ...]:
        """Means of its trials in each run."""

    @property
    def why(self) -> tuple[Change, ...]:
        """Why the first candidate scores otherwise than the base."""


def pair_columns(infos: Sequence[RunInfo], metrics: Iterable[str]) -> tuple[Column, ...]:
    """Every column that the questions of runs can have: of each measure both values and the difference."""
    components = dict.fromkeys(name for info in infos for name in info.weights)
    kinds = dict.fromkeys(components, "component") | {"latency_ms": "latency_ms", "cost": "cost"}
    for name in metrics:
        kinds.setdefault(name, "metric")
    columns = list(_FIRST)
    for name, measured in kinds.items():
        title = {"latency_ms": "Time"}.get(name) or SHORT_NAMES.get(name, name_words(name).capitalize())
        value, change = _KINDS[measured]
        for side, kind, words in (
            ("base", value, f"{title}: base"),
            ("candidate", value, f"{title}: candidate"),
            ("change", change, f"{title}: change"),
        ):
            key = f"{side}.{name}"
            columns.append(Column(name=key, title=words, kind=kind, note="Mean of its trials", sort=key))
    return tuple(columns)


def wanted_columns(query: PairsFilter, offered: Sequence[Column]) -> tuple[Column, ...]:
    """Those that the page shows."""
    return chosen_columns(query, offered, _USUAL)


def pair_table(
    query: PairsFilter, offered: tuple[Column, ...], rows: Sequence[PairedQuestion], candidate: RunInfo
) -> Table:
    """A page of rows."""
    columns = wanted_columns(query, offered)
    address = f"/runs/{quote(candidate.id, safe='')}/questions/"
    return Table(
        columns=columns,
        offered=offered,
        rows=tuple(
            TableRow(
                address=f"{address}{quote(row.id, safe='')}",
                cells=tuple(_value(row, row.why, column.name) for column in columns),
            )
            for row in rows
        ),
        sort=query.sort,
    )


def exported_cells(row: PairRow, columns: Iterable[Column]) -> list[Any]:
    """A row for a file."""
    why = changes_between(*row.cards[:2])
    values = (_value(row, why, column.name) for column in columns)
    return ["; ".join(map(str, value)) if isinstance(value, tuple) else value for value in values]


def _value(row: PairRow | PairedQuestion, why: tuple[Change, ...], name: str) -> Any:
    match name:
        case "question" | "id" | "category":
            return getattr(row, name)
        case "base":
            return row.scores[0]
        case "candidate":
            return row.scores[1]
        case "change":
            return _less(*row.scores[:2])
        case "why":
            return why
    side, _, measure = name.partition(".")
    values = [measures.get(measure) for measures in row.measures[:2]]
    return _less(*values) if side == "change" else values[side == "candidate"]


def _less(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
