"""What is chosen of a table by its address: columns, conditions and a page of rows, and the address that says so again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from answerkey.errors import UsageError
from answerkey.model.feedback import Feedback, ProductionReply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import letter_grade
from answerkey.report.detail import Loss
from answerkey.report.row_files import Column, Kind, Table, TableRow
from answerkey.report.view import COMPONENT_WORDS, QuestionView, row_view
from answerkey.report.wording import Change, changes_between, name_words
from answerkey.store.database import BATCH
from answerkey.store.feedback import ShortText
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.store.questions import PairFilter, PairRow, QuestionList
from answerkey.store.row_filter import Ranged, RowFilter
from answerkey.store.run_list import RunFilter, RunList, RunRow, figure_of
from answerkey.store.sql import SqlStore
from answerkey.text.differences import Piece

__all__ = [
    "SHORT_NAMES",
    "NoQuery",
    "PageNumber",
    "Paging",
    "ShortText",
    "chosen_columns",
    "conditions_in_words",
    "measure_column",
    "plain_value",
]

_MOST_COLUMNS = 40
# Components in a narrow column.
SHORT_NAMES = {"tool_usage": "Tools", "response_quality": "Said", "error_handling": "No errors"}


def measure_column(name: str, kind: Kind, sort: str, note: str = "") -> Column:
    """A component or a metric as a column; `note` is said after the name of one that has no words of its own."""
    words = COMPONENT_WORDS[name][0] if name in COMPONENT_WORDS else f"{name_words(name)}{note}"
    title = SHORT_NAMES.get(name, name_words(name).capitalize())
    return Column(name=name, title=title, kind=kind, note=words, sort=sort)


def chosen_columns(query: Ranged, offered: Sequence[Column], usual: Iterable[str]) -> tuple[Column, ...]:
    """The columns that are wanted, and those by which rows are chosen and sorted; in the order of all."""
    known = {column.name for column in offered}
    unknown = [name for name in query.columns if name not in known]
    if unknown or len(query.columns) > _MOST_COLUMNS:
        raise UsageError(f"columns: there is none {unknown[0][:60]!r}" if unknown else "too many columns")
    wanted = {*(query.columns or usual), query.order[0], *(one.name for one in query.ranges)}
    return tuple(column for column in offered if column.name in wanted)


def conditions_in_words(query: Ranged, link: Callable[..., str], anchor: str) -> list[tuple[str, str]]:
    """What rows are chosen by, each with the address of the page without it."""
    given = query.conditions.items()
    chosen = [(f"{name} {value}", f"{link(**{name: None, 'page': None})}#{anchor}") for name, value in given]
    ranges = [str(one) for one in query.ranges]
    for one in ranges:
        others = [other for other in ranges if other != one]
        without = link(range=others or None, measure=None, low=None, high=None, page=None)
        chosen.append((one.replace(":", " "), f"{without}#{anchor}"))
    return chosen


def plain_value(value: Any) -> Any:
    """A cell for a file."""
    if isinstance(value, tuple) and value and isinstance(value[0], Loss):
        return "; ".join(str(loss) for loss in value)
    return None if value == () else value


PageNumber = Annotated[int, msgspec.Meta(ge=1, le=1_000_000, description="Which page of rows.")]


class NoQuery(msgspec.Struct, frozen=True):
    """What a page takes of whose address only the path counts."""


class Paging(msgspec.Struct, frozen=True):
    """Which rows are shown."""

    page: int
    size: int
    total: int
    # Whether there are more than that, which were not counted.
    more: bool = False

    @property
    def pages(self) -> int:
        """How many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """Rows before this page."""
        return (self.page - 1) * self.size


# The questions of a run as a table: which columns there are, what stands in them, and their file.


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


# Runs as a table: which columns there are, what stands in them, and their file.


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
    columns = _chosen_run_table(query, offered, rows)
    return Table(
        columns=columns,
        offered=offered,
        rows=tuple(
            TableRow(
                pick=row.info.id,
                label=row.info.name,
                address=f"/runs/{quote(row.info.id, safe='')}",
                cells=tuple(_value_run_table(row, column.name) for column in columns),
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
    columns = tuple(dict.fromkeys((_FIRST[2], *_chosen_run_table(query, offered, first))))

    def rows() -> Iterator[RunRow]:
        yield from first
        for start in range(BATCH, total, BATCH):
            yield from listed.page(query, limit=BATCH, offset=start)[0]

    return columns, (
        [plain_value(_value_run_table(row, column.name)) for column in columns] for row in rows()
    )


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


def _chosen_run_table(
    query: RunFilter, offered: Sequence[Column], rows: Sequence[RunRow]
) -> tuple[Column, ...]:
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
    usual += [
        name for name in ("baselines", "tags", "version") if any(_value_run_table(row, name) for row in rows)
    ]
    usual += ["status"] if any(row.info.status != "complete" for row in rows) else []
    return chosen_columns(query, offered, usual)


def _value_run_table(row: RunRow, name: str) -> Any:
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


# Production replies as a table: which columns there are, what stands in them, and their file.


# Characters of a question and of a reply in the list.
_SHOWN = 600
_COLUMNS = (
    Column(name="grade", title="Grade", kind="grade", sort="score"),
    Column(name="question", title="Question", note="What was asked"),
    Column(name="id", title="Id", sort="id"),
    Column(name="text", title="Reply", note="The beginning of what was said"),
    Column(name="category", title="Category", sort="category"),
    Column(name="error", title="Error", note="Kind of the error that it ended in", sort="error"),
    Column(name="score", title="Score", kind="score", note="By the golden set", sort="score"),
    Column(name="liked", title="▲", kind="count", note="How many liked it"),
    Column(name="disliked", title="▼", kind="count", note="How many did not like it"),
    Column(name="comment", title="What users said", note="The newest comment"),
    Column(name="tools", title="Tools called", kind="names"),
    Column(name="latency_ms", title="Time", kind="ms", sort="-latency_ms"),
    Column(name="model", title="Model", sort="model"),
    Column(name="version", title="Version", sort="version"),
    Column(name="sender", title="Sent by"),
    Column(name="created_at", title="When", kind="time", note="When it was said", sort="-created_at"),
)
_SELDOM = ("id", "category", "tools", "model", "version", "sender")
_USUAL = tuple(column.name for column in _COLUMNS if column.name not in _SELDOM)


class ReplyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A reply in the list."""

    id: str
    created_at: str
    question: str
    # None: a null reply.
    text: str | None
    category: str | None
    # Which chatbot said it, as far as that was told, and who sent it.
    model: str | None
    version: str | None
    sender: str
    score: float | None
    grade: str | None
    error: str | None
    latency_ms: float | None
    tools: tuple[str, ...]
    feedback: tuple[Feedback, ...]


def reply_row(item: ProductionReply, feedback: Sequence[Feedback]) -> ReplyRow:
    """What the list shows of a reply."""
    card = item.scorecard
    text = item.reply.text
    return ReplyRow(
        id=item.id,
        created_at=item.created_at,
        question=item.question[:_SHOWN],
        text=None if text is None else text[:_SHOWN],
        category=item.category,
        model=item.model,
        version=item.version,
        sender=item.sender,
        score=item.score,
        grade=None if item.score is None else letter_grade(item.score),
        error=None if card is None or card.error is None else card.error.kind,
        latency_ms=item.reply.timings.latency_ms,
        tools=tuple(dict.fromkeys(item.reply.tools_used)),
        feedback=tuple(feedback),
    )


def reply_table(query: ProductionFilter, rows: Sequence[ReplyRow]) -> Table:
    """A page of rows."""
    columns = chosen_columns(query, _COLUMNS, _USUAL)
    return Table(
        columns=columns,
        offered=_COLUMNS,
        rows=tuple(
            TableRow(
                address=f"/replies/{quote(row.id, safe='')}",
                cells=tuple(_value_reply_table(row, column.name) for column in columns),
            )
            for row in rows
        ),
        sort=query.sort,
    )


def exported_replies(
    store: SqlStore, query: ProductionFilter
) -> tuple[tuple[Column, ...], Iterator[list[Any]]]:
    """The columns and every row of the table, for a file."""
    # A file's reader finds a reply by its id, whether the page shows it or not.
    columns = tuple(dict.fromkeys((_COLUMNS[2], *chosen_columns(query, _COLUMNS, _USUAL))))
    replies = ProductionReplies(store)
    found = replies.every(query)

    def rows() -> Iterator[ReplyRow]:
        while batch := list(islice(found, BATCH)):
            verdicts = replies.verdicts([item.id for item in batch])
            yield from (reply_row(item, verdicts.get(item.id, [])) for item in batch)

    return columns, (
        [plain_value(_value_reply_table(row, column.name)) for column in columns] for row in rows()
    )


def _value_reply_table(row: ReplyRow, name: str) -> Any:
    match name:
        case "text":
            return "no reply (null)" if row.text is None else row.text
        case "liked":
            return sum(one.positive for one in row.feedback) or None
        case "disliked":
            return sum(not one.positive for one in row.feedback) or None
        case "comment":
            return next((one.comment for one in row.feedback if one.comment), "")
    return getattr(row, name)


# The questions of two runs as a table of differences: which columns there are, what stands in them, and their address.


_FIRST_PAIR_TABLE = (
    Column(name="question", title="Question", sort="position"),
    Column(name="id", title="Id"),
    Column(name="category", title="Category"),
    Column(name="base", title="Base", kind="score", sort="base"),
    Column(name="candidate", title="Candidate", kind="score", sort="candidate"),
    Column(name="change", title="Change", kind="change", note="Points of a hundred", sort="change"),
    Column(name="why", title="Why", kind="why", note="What the first trial did otherwise than the base’s"),
)
_USUAL_PAIR_TABLE = ("question", "category", "base", "candidate", "change", "why")
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
    columns = list(_FIRST_PAIR_TABLE)
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
    return chosen_columns(query, offered, _USUAL_PAIR_TABLE)


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
                cells=tuple(_value_pair_table(row, row.why, column.name) for column in columns),
            )
            for row in rows
        ),
        sort=query.sort,
    )


def exported_cells(row: PairRow, columns: Iterable[Column]) -> list[Any]:
    """A row for a file."""
    why = changes_between(*row.cards[:2])
    values = (_value_pair_table(row, why, column.name) for column in columns)
    return ["; ".join(map(str, value)) if isinstance(value, tuple) else value for value in values]


def _value_pair_table(row: PairRow | CompareRow, why: tuple[Change, ...], name: str) -> Any:
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
