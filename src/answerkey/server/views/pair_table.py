"""The questions of two runs as a table of differences: which columns there are, what stands in them, and their address."""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from answerkey.model.run import RunInfo
from answerkey.report.comparison_wording import Change, changes_between
from answerkey.report.table import Column, Kind, Table, TableRow
from answerkey.report.value_wording import name_words
from answerkey.server.views.table_choice import SHORT_NAMES, chosen_columns
from answerkey.store.pairs import PairFilter, PairRow
from answerkey.text.differences import Piece

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


class RowSide(msgspec.Struct, frozen=True):
    """A question in one run."""

    score: float | None
    grade: str | None
    # Candidate minus base; None in the base, and where one of them has no score.
    change: float | None
    reply: tuple[Piece, ...] | None
    other_text: bool


class CompareRow(msgspec.Struct, frozen=True, kw_only=True):
    """A question in all runs."""

    id: str
    category: str
    question: str
    scores: tuple[float | None, ...]
    grades: tuple[str | None, ...]
    # Candidate minus base, for each candidate.
    changes: tuple[float | None, ...]
    # Each reply as it differs from the base's; the base's own, and one that shares little with it, are whole.
    # None: a null reply.
    replies: tuple[tuple[Piece, ...] | None, ...]
    # Of the first candidate: why it scores otherwise than the base.
    why: tuple[Change, ...]
    # Of each run: components, metrics, latency_ms and cost, means of the trials.
    measures: tuple[dict[str, float], ...]
    same_text: bool
    # Which replies share so little with the base's that marking differences would only hide them.
    other_text: tuple[bool, ...]

    @property
    def sides(self) -> tuple[RowSide, ...]:
        """The same by run, the base first."""
        changes = (None, *self.changes)
        return tuple(map(RowSide, self.scores, self.grades, changes, self.replies, self.other_text))


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


def wanted_columns(query: PairFilter, offered: Sequence[Column]) -> tuple[Column, ...]:
    """Those that the page shows."""
    return chosen_columns(query, offered, _USUAL)


def pair_table(
    query: PairFilter, offered: tuple[Column, ...], rows: Sequence[CompareRow], candidate: RunInfo
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


def _value(row: PairRow | CompareRow, why: tuple[Change, ...], name: str) -> Any:
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
