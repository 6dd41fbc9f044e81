"""Runs as a table: which columns there are, what stands in them, and their file."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from answerkey.report.table import Column, Table, TableRow
from answerkey.server.views.table_choice import chosen_columns, measure_column, plain_value
from answerkey.store.database import BATCH
from answerkey.store.run_list import RunFilter, RunList, RunRow, figure_of
from answerkey.store.sql import SqlStore

_FIRST = (
    Column(name="grade", title="Grade", kind="grade", sort="-score"),
    Column(name="name", title="Run", sort="name"),
    Column(name="id", title="Id"),
    Column(name="status", title="Status", kind="status", sort="status"),
    Column(name="baselines", title="Baseline", kind="names", note="The names under which it is a baseline"),
    Column(name="tags", title="Tags", kind="names"),
    Column(name="target", title="Chatbot", sort="target"),
    Column(name="version", title="Version", note="Of the chatbot: label, git commit, model, prompt"),
    Column(name="set", title="Questions", note="The golden set", sort="set"),
    Column(name="score", title="Score", kind="score", sort="-score"),
    Column(
        name="low", title="from", kind="score", note="Where the likely range of the score begins", sort="-low"
    ),
    Column(
        name="high", title="to", kind="score", note="Where the likely range of the score ends", sort="-high"
    ),
)
_LAST = (
    Column(name="pass_rate", title="Passed", kind="score", note="Of the questions", sort="-pass_rate"),
    Column(name="questions", title="Asked", kind="count", note="Questions", sort="-questions"),
    Column(name="coverage", title="Done", kind="score", note="Of what was to be asked", sort="coverage"),
    Column(name="error_rate", title="Errors", kind="score", note="Of the replies", sort="-error_rate"),
    Column(name="p50", title="Typical time", kind="ms", sort="-p50"),
    Column(name="p95", title="p95", kind="ms", note="19 of 20 replies took no longer", sort="-p95"),
    Column(name="cost", title="Cost", kind="money", sort="-cost"),
    Column(name="created_at", title="When", kind="time", sort="-created_at"),
)
_FIXED = {column.name for column in (*_FIRST, *_LAST)}
_COMPONENTS_SHOWN = 5


def run_table(query: RunFilter, rows: Sequence[RunRow]) -> Table:
    """A page of rows."""
    offered = _offered(query, rows)
    columns = _chosen(query, offered, rows)
    return Table(
        columns=columns,
        offered=offered,
        rows=tuple(
            TableRow(
                pick=row.info.id,
                label=row.info.name,
                address=f"/runs/{quote(row.info.id, safe='')}",
                cells=tuple(_value(row, column.name) for column in columns),
            )
            for row in rows
        ),
        sort=query.sort,
    )


def exported_runs(store: SqlStore, query: RunFilter) -> tuple[tuple[Column, ...], Iterator[list[Any]]]:
    """The columns and every row of the table, for a file."""
    listed = RunList(store)
    first, total = listed.page(query, limit=BATCH)
    offered = _offered(query, first)
    # A file's reader finds a run by its id, whether the page shows it or not.
    columns = tuple(dict.fromkeys((_FIRST[2], *_chosen(query, offered, first))))

    def rows() -> Iterator[RunRow]:
        yield from first
        for start in range(BATCH, total, BATCH):
            yield from listed.page(query, limit=BATCH, offset=start)[0]

    return columns, ([plain_value(_value(row, column.name)) for column in columns] for row in rows())


def _offered(query: RunFilter, rows: Iterable[RunRow]) -> tuple[Column, ...]:
    """Every column: components and metrics are those of these rows, and those that are asked for."""
    figures = [row.figures for row in rows if row.figures is not None]
    components = dict.fromkeys(name for one in figures for name in one.components)
    metrics = dict.fromkeys(name for one in figures for name in one.metrics)
    asked = (*query.columns, query.order[0], *(one.name for one in query.ranges))
    names = dict.fromkeys((*components, *metrics, *asked))
    measures = (
        measure_column(name, "metric" if name in metrics else "score", f"-{name}")
        for name in names
        if name not in _FIXED
    )
    return (*_FIRST, *measures, *_LAST)


def _chosen(query: RunFilter, offered: Sequence[Column], rows: Sequence[RunRow]) -> tuple[Column, ...]:
    components = dict.fromkeys(name for row in rows if row.figures for name in row.figures.components)
    usual = [
        "grade",
        "name",
        "score",
        "low",
        "high",
        *list(components)[:_COMPONENTS_SHOWN],
        "pass_rate",
        "p95",
        "cost",
        "created_at",
    ]
    # What is the same in every row, or in none, is not shown.
    usual += [name for name in ("set", "target") if getattr(query, name) is None]
    usual += [name for name in ("baselines", "tags", "version") if any(_value(row, name) for row in rows)]
    usual += ["status"] if any(row.info.status != "complete" for row in rows) else []
    return chosen_columns(query, offered, usual)


def _value(row: RunRow, name: str) -> Any:
    info = row.info
    match name:
        case "grade":
            return None if row.figures is None else row.figures.grade
        case "baselines":
            return row.baselines
        case "version":
            return info.target_version.words
        case "set":
            return info.question_set
        case "name" | "id" | "status" | "tags" | "target" | "created_at":
            return getattr(info, name)
    return figure_of(row.figures, name)
