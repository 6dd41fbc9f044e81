"""The questions of a run as a table: which columns there are, what stands in them, and their file."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from answerkey.model.run import RunInfo
from answerkey.report.table import Column, Table, TableRow
from answerkey.report.view import QuestionView, row_view
from answerkey.server.views.table_choice import chosen_columns, measure_column, plain_value
from answerkey.store.question_list import QuestionList
from answerkey.store.row_filter import RowFilter
from answerkey.store.sql import SqlStore


def question_columns(info: RunInfo, metrics: Iterable[str]) -> tuple[Column, ...]:
    """Every column that a run's questions can have."""
    repeated = info.repeat > 1
    first = [
        Column(
            name="grade", title="Grade", kind="grade", note="A is 90% and more, F is below 60%", sort="score"
        ),
        Column(name="question", title="Question", note="What was asked", sort="position"),
        Column(name="id", title="Id", sort="id"),
        Column(name="category", title="Category", sort="category"),
        Column(name="persona", title="Persona", note="Who asks"),
        Column(name="tags", title="Tags", kind="names"),
        Column(name="why", title="Why points were lost", kind="why", note="In its worst trial"),
        Column(name="score", title="Score", kind="score", note="Mean of its trials", sort="score"),
    ]
    trials = [
        Column(name="trials_passed", title="Passed", kind="count", note="Trials that passed"),
        Column(name="trials", title="Trials", kind="count", note="How often it was asked"),
        Column(name="lowest", title="Lowest", kind="score", note="The worst trial’s score", sort="-spread"),
        Column(name="highest", title="Highest", kind="score", note="The best trial’s score", sort="-spread"),
    ]
    measures = [
        measure_column(name, "score" if name in info.weights else "metric", name, ", mean of its trials")
        for name in dict.fromkeys((*info.weights, *metrics))
    ]
    last = [
        Column(name="error", title="Error", note="Kind of an error that a reply ended in", sort="-error"),
        Column(name="tools", title="Tools called", kind="names"),
        Column(name="latency_ms", title="Time", kind="ms", note="Of its slowest trial", sort="-latency_ms"),
        Column(name="cost", title="Cost", kind="money", note="Of all its trials", sort="-cost"),
        Column(name="reply", title="Reply", note="The beginning of what was said"),
        Column(name="passed", title="Result", kind="flag", note="Whether it reached the pass mark"),
    ]
    return (*first, *(trials if repeated else ()), *measures, *last)


def question_table(
    info: RunInfo, query: RowFilter, metrics: Iterable[str], rows: Sequence[QuestionView], start: int
) -> Table:
    """A page of rows; `start` is the place of the first in the reader's list, for the next and the one before."""
    offered = question_columns(info, metrics)
    columns = _chosen(info, query, offered)
    address = f"/runs/{quote(info.id, safe='')}/questions/"
    return Table(
        columns=columns,
        offered=offered,
        rows=tuple(
            TableRow(
                id=f"q-{row.position}",
                address=f"{address}{quote(row.id, safe='')}?{query.parameters(at=start + place)}",
                cells=tuple(_value(row, column) for column in columns),
            )
            for place, row in enumerate(rows)
        ),
        sort=query.sort,
    )


def exported_questions(
    store: SqlStore, query: RowFilter, run: str
) -> tuple[tuple[Column, ...], Iterator[list[Any]]]:
    """The columns and every row of the table, for a file."""
    info = store.find_run(run)
    summary = store.summary_of(info.id)
    offered = question_columns(info, () if summary is None else summary.metrics)
    # A file's reader finds a question by its id, whether the page shows it or not.
    columns = tuple(dict.fromkeys((offered[2], *_chosen(info, query, offered))))
    rows = QuestionList(store).every_row(info, query)
    return columns, ([plain_value(_value(row_view(row), column)) for column in columns] for row in rows)


def _chosen(info: RunInfo, query: RowFilter, offered: Sequence[Column]) -> tuple[Column, ...]:
    usual = (
        *("grade", "question", "category", "why", "score"),
        *(("trials_passed", "lowest") if info.repeat > 1 else ()),
        *list(info.weights)[:5],
        "latency_ms",
    )
    return chosen_columns(query, offered, usual)


def _value(row: QuestionView, column: Column) -> Any:
    if column.name == "why":
        return row.losses
    if column.name in row.__struct_fields__:
        return getattr(row, column.name)
    return row.measures.get(column.name)
