"""The dashboard's four tables: their columns, cells and links, and the same tables as files."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from urllib.parse import quote

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.comparison import Group, rounded_parts
from answerkey.model.judgement import Feedback, ProductionReply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import letter_grade
from answerkey.report.detail import Loss
from answerkey.report.result_files import Column, Kind, Table, TableRow, cell_text
from answerkey.report.view import COMPONENT_WORDS, QuestionView, row_view
from answerkey.report.wording import Change, name_words, score_percent
from answerkey.server.intake import JOB_TAG
from answerkey.server.rendering import causes_stored
from answerkey.store.database import BATCH
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.store.questions import SIDES, PairFilter, QuestionFilter, QuestionTable, difference
from answerkey.store.sql import RunFilter, RunRow, RunTable, SqlStore, figure_of
from answerkey.store.table_query import Range, TableFilter
from answerkey.text.normalise import Piece, one_line

_MAX_COLUMNS = 40
_MOST_CAUSES = 8
# Characters of a question or a reply on a page; files have them whole.
EXCERPT = 600
# Components in a narrow column.
SHORT_NAMES = {"tool_usage": "Tools", "response_quality": "Quality", "error_handling": "No errors"}
_COMPONENTS_SHOWN = 5

AnyRow = TypeVar("AnyRow")
# The columns and the rows of a file.
ExportedTable = tuple[tuple[Column, ...], Iterator[list[Any]]]


class TableLayout(msgspec.Struct, Generic[AnyRow], frozen=True, kw_only=True):
    """The columns of a table, and what its cells hold; pages and files are made from the same layout."""

    # All columns there are.
    offered: tuple[Column, ...]
    # The columns that are shown unless others are chosen.
    default: tuple[str, ...]
    # The value of a row in a column.
    cell: Callable[[AnyRow, str], Any]

    def columns(self, query: TableFilter) -> tuple[Column, ...]:
        """The chosen columns in their order, and those that rows are filtered and sorted by; without a choice, as offered."""
        known = {column.name: column for column in self.offered}
        unknown = [name for name in query.columns if name not in known]
        if unknown:
            raise UsageError(f"there is no column {unknown[0][:60]!r}")
        if len(query.columns) > _MAX_COLUMNS:
            raise UsageError(f"columns: at most {_MAX_COLUMNS} can be shown")
        self._check_shares(query)
        if query.columns:
            used = [name for name in known if name in query.value_names]
            return tuple(known[name] for name in dict.fromkeys((*query.columns, *used)))
        shown = {*self.default, *query.value_names}
        return tuple(column for column in self.offered if column.name in shown)

    def _check_shares(self, query: TableFilter) -> None:
        """Refuse `score:60..`, which no score reaches: 60% or 0.6 is meant."""
        shares = {(column.sort or "").removeprefix("-") for column in self.offered if column.kind == "score"}
        for limit in query.ranges:
            if limit.name in shares and max(limit.low or 0.0, limit.high or 0.0) > 1:
                raise UsageError(f"range {str(limit)[:80]!r}: a score is at most 1; write 60% or 0.6")

    def table(
        self,
        query: TableFilter,
        rows: Iterable[AnyRow],
        table_row: Callable[[int, AnyRow, tuple[Any, ...]], TableRow],
    ) -> Table:
        """A page of rows; `table_row` makes one of its number on the page, its data and its cells."""
        columns = self.columns(query)
        shown = (
            table_row(number, row, tuple(self.cell(row, column.name) for column in columns))
            for number, row in enumerate(rows)
        )
        return Table(columns=columns, offered=self.offered, rows=tuple(shown), sort=query.sort)

    def export(self, query: TableFilter, rows: Iterable[AnyRow]) -> ExportedTable:
        """The columns and every row for a file, which always has the id."""
        key = next(column for column in self.offered if column.name == "id")
        columns = tuple(dict.fromkeys((key, *self.columns(query))))
        return columns, ([_file_value(self.cell(row, column.name)) for column in columns] for row in rows)


def _file_value(value: Any) -> Any:
    """A cell for a file: reasons become a text."""
    if isinstance(value, tuple) and value and isinstance(value[0], Loss | Change):
        return "; ".join(map(str, value))
    return None if value == () else value


def measure_column(name: str, kind: Kind, sort: str, note: str = "") -> Column:
    """A component or a metric as a column; `note` follows the name of one that has no description."""
    words = COMPONENT_WORDS[name] if name in COMPONENT_WORDS else f"{name_words(name)}{note}"
    title = SHORT_NAMES.get(name, name_words(name).capitalize())
    return Column(name=name, title=title, kind=kind, note=words, sort=sort)


# Values of filters that say little by themselves.
_CONDITIONS = {
    ("result", "failed"): "failed",
    ("result", "passed"): "passed",
    ("result", "lost"): "lost points",
    ("result", "error"): "ended in an error",
    ("result", "ungraded"): "not graded",
    ("verdict", "up"): "liked by users",
    ("verdict", "down"): "not liked by users",
    ("verdict", "any"): "with feedback",
    ("verdict", "none"): "without feedback",
}
_FILTERS = {"since": "from", "until": "to", "text": "with the words"}


def _condition_words(name: str, value: Any) -> str:
    known = _CONDITIONS.get((name, value))
    return known or f"{_FILTERS.get(name, name)} {name_words(value) if name == 'error' else value}"


class CauseItem(msgspec.Struct, frozen=True, kw_only=True):
    """A cause of lost points, with its number of questions; `key` selects them."""

    key: str
    words: str
    questions: int
    # Points of the whole score; negative if they were lost. Rounded, those of all causes add up.
    points: float
    rounded_points: float


def _cause_key(group: Group) -> str:
    return blake2b(group.words.encode("utf-8", "replace"), digest_size=4).hexdigest()


def cause_items(groups: Sequence[Group]) -> tuple[CauseItem, ...]:
    """The largest causes of lost points."""
    lost = [group for group in groups if group.points < 0]
    parts = rounded_parts([-group.points for group in lost])
    return tuple(
        CauseItem(
            key=_cause_key(group),
            words=one_line(group.words, 200),
            questions=len(group.ids),
            points=group.points / 100,
            rounded_points=-part / 100,
        )
        for group, part in zip(lost[:_MOST_CAUSES], parts, strict=False)
    )


def ids_of_cause(groups: Sequence[Group], key: str) -> tuple[str, ...]:
    """The questions of a cause; raises UnknownNameError if there is no such cause any more."""
    found = next((group for group in groups if group.points < 0 and _cause_key(group) == key), None)
    if found is None:
        raise UnknownNameError("these questions have no such cause any more; open the page without it")
    return found.ids


def table_of_run(store: SqlStore, info: RunInfo, query: QuestionFilter) -> QuestionTable:
    """The questions of a run; with a cause, only those that lost points for it."""
    groups = () if query.cause is None else causes_stored(store, info).groups
    return QuestionTable(store, info, None if query.cause is None else ids_of_cause(groups, query.cause))


class TableView(msgspec.Struct, frozen=True, kw_only=True):
    """A page with a table."""

    # The id of the table's heading.
    anchor: ClassVar[str] = "questions"

    query: TableFilter
    # Why points were lost, the largest cause first.
    causes: tuple[CauseItem, ...] = ()

    @property
    @abstractmethod
    def table(self) -> Table | None:
        """The table."""

    def conditions(self, link: Callable[..., str]) -> list[tuple[str, str]]:
        """The filters in words, each with the address of the page without it."""
        causes = {("cause", item.key): item.words for item in self.causes}
        described = [
            (
                causes.get((name, value)) or _condition_words(name, value),
                f"{link(**{name: None, 'page': None})}#{self.anchor}",
            )
            for name, value in self.query.conditions.items()
        ]
        ranges = self.query.ranges
        for limit in ranges:
            others = [str(other) for other in ranges if other != limit]
            without = link(range=others or None, measure=None, low=None, high=None, page=None)
            described.append((self._range_words(limit), f"{without}#{self.anchor}"))
        return described

    def _range_words(self, limit: Range) -> str:
        """`Score from 50% to 80%`, in the units that the table shows."""
        offered = () if self.table is None else self.table.offered
        sorted_by = [column for column in offered if (column.sort or "").removeprefix("-") == limit.name]
        column = next((column for column in sorted_by if column.number), None)
        if column is None:
            return str(limit).replace(":", " ")
        low, high = (None if end is None else cell_text(end, column.kind) for end in (limit.low, limit.high))
        if low is not None and high is not None:
            return f"{column.title} from {low} to {high}"
        return f"{column.title} at least {low}" if high is None else f"{column.title} at most {high}"


PageNumber = Annotated[int, msgspec.Meta(ge=1, le=1_000_000, description="Which page of rows.")]


class NoQuery(msgspec.Struct, frozen=True):
    """The query of a page that takes none."""


class Paging(msgspec.Struct, frozen=True):
    """Which rows are shown."""

    page: int
    size: int
    total: int
    # Whether there are more rows than were counted.
    more: bool = False

    @property
    def pages(self) -> int:
        """The number of pages; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """Rows before this page."""
        return (self.page - 1) * self.size


# The questions of a run


def question_columns(info: RunInfo, metrics: Iterable[str]) -> tuple[Column, ...]:
    """Every column that a run's questions can have."""
    repeated = info.repeat > 1
    first = [
        Column(
            name="grade", title="Grade", kind="grade", note="A is 90% and more, F is below 60%", sort="score"
        ),
        Column(name="question", title="Question", note="What was asked", sort="position", wide=True),
        Column(name="id", title="Id", sort="id"),
        Column(name="category", title="Category", sort="category"),
        Column(name="persona", title="Persona", note="Who asks"),
        Column(name="tags", title="Tags", kind="names"),
        Column(name="why", title="Why points were lost", kind="why", wide=True, note="In its worst trial"),
        Column(name="score", title="Score", kind="score", note="Mean of its trials", sort="score"),
    ]
    trials = [
        Column(name="trials_passed", title="Passed", kind="count", note="Trials that passed"),
        Column(name="trials", title="Trials", kind="count", note="Number of trials"),
        Column(name="lowest", title="Lowest", kind="score", note="The worst trial’s score", sort="-spread"),
        Column(name="highest", title="Highest", kind="score", note="The best trial’s score", sort="-spread"),
    ]
    measures = [
        measure_column(name, "score" if name in info.weights else "metric", name, ", mean of its trials")
        for name in dict.fromkeys((*info.weights, *metrics))
    ]
    last = [
        Column(name="error", title="Error", note="Kind of error", sort="-error"),
        Column(name="tools", title="Tools called", kind="names"),
        Column(name="latency_ms", title="Time", kind="ms", note="Of its slowest trial", sort="-latency_ms"),
        Column(name="cost", title="Cost", kind="money", note="Of all its trials", sort="-cost"),
        Column(name="reply", title="Reply", kind="reply", note="Beginning of the reply", wide=True),
        Column(name="passed", title="Result", kind="flag", note="Whether it reached the pass mark"),
    ]
    return (*first, *(trials if repeated else ()), *measures, *last)


def question_layout(info: RunInfo, metrics: Iterable[str]) -> TableLayout[QuestionView]:
    repeated = ("trials_passed", "lowest") if info.repeat > 1 else ()
    components = list(info.weights)[:_COMPONENTS_SHOWN]
    return TableLayout(
        offered=question_columns(info, metrics),
        default=("grade", "question", "category", "why", "score", *repeated, *components, "latency_ms"),
        cell=_question_cell,
    )


def question_table(
    info: RunInfo, query: QuestionFilter, metrics: Iterable[str], rows: Sequence[QuestionView], start: int
) -> Table:
    """A page of rows; `start` is the position of the first in the whole list, for links to its neighbours."""
    address = f"/runs/{quote(info.id, safe='')}/questions/"
    return question_layout(info, metrics).table(
        query,
        rows,
        lambda number, row, cells: TableRow(
            id=f"q-{row.position}",
            address=f"{address}{quote(row.id, safe='')}?{query.query_string(at=start + number)}",
            cells=cells,
        ),
    )


def export_questions(store: SqlStore, query: QuestionFilter, run: str) -> ExportedTable:
    info = store.find_run(run)
    summary = store.summary_of(info.id)
    layout = question_layout(info, () if summary is None else summary.metrics)
    return layout.export(query, map(row_view, table_of_run(store, info, query).every(query)))


def _question_cell(row: QuestionView, name: str) -> Any:
    if name == "why":
        return row.losses
    if name in row.__struct_fields__:
        return getattr(row, name)
    return row.measures.get(name)


# Runs


_FIRST = (
    Column(name="grade", title="Grade", kind="grade", sort="-score"),
    Column(name="name", title="Run", sort="name"),
    Column(name="created_at", title="When", kind="time", sort="-created_at"),
    Column(name="id", title="Id"),
    Column(name="status", title="Status", kind="status", sort="status"),
    Column(name="baselines", title="Baseline", kind="names", note="Baseline names"),
    Column(name="tags", title="Tags", kind="names"),
    Column(name="target", title="Chatbot", sort="target"),
    Column(name="version", title="Version", note="Of the chatbot: label, git commit, model, prompt"),
    Column(name="set", title="Questions", note="The golden set", sort="set"),
    Column(name="score", title="Score", kind="score", sort="-score"),
    Column(name="interval", title="Likely", note="95% interval of the score"),
    Column(name="low", title="Likely from", kind="score", note="Lower end of the interval", sort="-low"),
    Column(name="high", title="Likely to", kind="score", note="Upper end of the interval", sort="-high"),
)
_LAST = (
    Column(name="pass_rate", title="Passed", kind="score", note="Of the questions", sort="-pass_rate"),
    Column(name="questions", title="Asked", kind="count", note="Questions", sort="-questions"),
    Column(name="coverage", title="Done", kind="score", note="Share of planned replies", sort="coverage"),
    Column(name="error_rate", title="Errors", kind="score", note="Of the replies", sort="-error_rate"),
    Column(name="p50", title="Typical time", kind="ms", sort="-p50"),
    Column(name="p95", title="p95", kind="ms", note="95% of replies were faster", sort="-p95"),
    Column(name="cost", title="Cost", kind="money", sort="-cost"),
)
_FIXED = {column.name for column in (*_FIRST, *_LAST)}


def run_layout(query: RunFilter, rows: Sequence[RunRow]) -> TableLayout[RunRow]:
    """The table of runs; its components and metrics are those of these rows, and those that the query names."""
    figures = [row.figures for row in rows if row.figures is not None]
    components = dict.fromkeys(name for one in figures for name in one.components)
    metrics = dict.fromkeys(name for one in figures for name in one.metrics)
    names = dict.fromkeys((*components, *metrics, *query.columns, *query.value_names))
    measures = (
        measure_column(name, "metric" if name in metrics else "score", f"-{name}")
        for name in names
        if name not in _FIXED
    )
    shown = list(components)[:_COMPONENTS_SHOWN]
    default = ["grade", "name", "created_at", "score", "interval", *shown, "pass_rate", "p95", "cost"]
    # Columns that would be empty, or the same in every row, are hidden.
    default += [
        name
        for name in ("set", "target")
        if name not in query.conditions and (len(rows) < 2 or len({_run_cell(row, name) for row in rows}) > 1)
    ]
    default += [
        name for name in ("baselines", "tags", "version") if any(_run_cell(row, name) for row in rows)
    ]
    default += ["status"] if any(row.info.status != "complete" for row in rows) else []
    default += ["coverage"] if any(one.coverage < 1 for one in figures) else []
    return TableLayout(offered=(*_FIRST, *measures, *_LAST), default=tuple(default), cell=_run_cell)


def run_table(query: RunFilter, rows: Sequence[RunRow]) -> Table:
    return run_layout(query, rows).table(
        query,
        rows,
        lambda _, row, cells: TableRow(
            pick=row.info.id,
            label=row.info.name,
            address=f"/runs/{quote(row.info.id, safe='')}",
            cells=cells,
        ),
    )


def export_runs(store: SqlStore, query: RunFilter) -> ExportedTable:
    """The table as a file; its columns are those of the first rows."""
    rows = RunTable(store).every(query)
    first = list(islice(rows, BATCH))
    return run_layout(query, first).export(query, chain(first, rows))


def _run_cell(row: RunRow, name: str) -> Any:
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
        case "interval":
            likely = None if row.figures is None else row.figures.interval
            return None if likely is None else f"{score_percent(likely.low)}–{score_percent(likely.high)}"
        case "tags":
            # Those of jobs are for the server.
            return tuple(tag for tag in info.tags if not tag.startswith(JOB_TAG))
        case "name" | "id" | "status" | "target" | "created_at":
            return getattr(info, name)
    return figure_of(row.figures, name)


# Production replies


_REPLY_COLUMNS = (
    Column(name="grade", title="Grade", kind="grade", sort="score"),
    Column(name="question", title="Question", note="What was asked", wide=True),
    Column(name="id", title="Id", sort="id"),
    Column(name="text", title="Reply", kind="reply", note="Beginning of the reply", wide=True),
    Column(name="category", title="Category", sort="category"),
    Column(name="error", title="Error", note="Kind of error", sort="error"),
    Column(name="score", title="Score", kind="score", note="By the golden set", sort="score"),
    Column(name="liked", title="▲", kind="count", note="How many liked it"),
    Column(name="disliked", title="▼", kind="count", note="How many did not like it"),
    Column(name="comment", title="What users said", note="The newest comment", wide=True),
    Column(name="tools", title="Tools called", kind="names"),
    Column(name="latency_ms", title="Time", kind="ms", sort="-latency_ms"),
    Column(name="model", title="Model", sort="model"),
    Column(name="version", title="Version", sort="version"),
    Column(name="sender", title="Sent by"),
    Column(name="created_at", title="When", kind="time", note="When it was said", sort="-created_at"),
)
_HIDDEN_REPLY_COLUMNS = ("id", "category", "tools", "model", "version", "sender")


class ReplyRow(msgspec.Struct, frozen=True, kw_only=True):
    """A reply in the list."""

    id: str
    created_at: str
    question: str
    # None: a null reply.
    text: str | None
    category: str | None
    # Of the chatbot, if known; and who sent the reply.
    model: str | None
    version: str | None
    sender: str
    score: float | None
    grade: str | None
    error: str | None
    latency_ms: float | None
    tools: tuple[str, ...]
    feedback: tuple[Feedback, ...]


def reply_row(
    item: ProductionReply, feedback: Sequence[Feedback], *, excerpt: int | None = EXCERPT
) -> ReplyRow:
    """A reply as a row, with texts cut to `excerpt` characters."""
    card = item.scorecard
    text = item.reply.text
    return ReplyRow(
        id=item.id,
        created_at=item.created_at,
        question=item.question[:excerpt],
        text=None if text is None else text[:excerpt],
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


def _reply_cell(row: ReplyRow, name: str) -> Any:
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


REPLY_LAYOUT: TableLayout[ReplyRow] = TableLayout(
    offered=_REPLY_COLUMNS,
    default=tuple(column.name for column in _REPLY_COLUMNS if column.name not in _HIDDEN_REPLY_COLUMNS),
    cell=_reply_cell,
)


def reply_table(query: ProductionFilter, rows: Sequence[ReplyRow]) -> Table:
    return REPLY_LAYOUT.table(
        query,
        rows,
        lambda _, row, cells: TableRow(address=f"/replies/{quote(row.id, safe='')}", cells=cells),
    )


def export_replies(store: SqlStore, query: ProductionFilter) -> ExportedTable:
    replies = ProductionReplies(store)
    matching = replies.every(query)

    def rows() -> Iterator[ReplyRow]:
        while batch := list(islice(matching, BATCH)):
            verdicts = replies.verdicts([item.id for item in batch])
            yield from (reply_row(item, verdicts.get(item.id, []), excerpt=None) for item in batch)

    return REPLY_LAYOUT.export(query, rows())


# The questions of two or more runs


_PAIR_COLUMNS = (
    Column(name="question", title="Question", sort="position", wide=True),
    Column(name="id", title="Id"),
    Column(name="category", title="Category"),
)
# Of two runs, and of more.
_PAIR_CHANGES = (
    Column(name="change", title="Change", kind="change", note="Points of a hundred", sort="change"),
    Column(
        name="why", title="Why", kind="why", wide=True, note="How the first trial differs from the base’s"
    ),
)
_CHANGES = (
    Column(
        name="change", title="Worst change", kind="change", note="Of any run from the base", sort="change"
    ),
    Column(name="gain", title="Best change", kind="change", note="Of any run from the base", sort="-gain"),
)
# What values of a measure are, and their differences.
_MEASURE_KINDS: dict[str, tuple[Kind, Kind]] = {
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
    # Each reply with its differences from the base's marked. None: a null reply.
    replies: tuple[tuple[Piece, ...] | None, ...]
    # Why the first candidate scores differently from the base.
    why: tuple[Change, ...]
    # For each run: components, metrics, latency_ms and cost, means of the trials.
    measures: tuple[dict[str, float], ...]
    same_text: bool
    # Whether a reply has too little in common with the base's to mark differences.
    other_text: tuple[bool, ...]

    @property
    def sides(self) -> tuple[RowSide, ...]:
        """The values by run, the base first."""
        changes = (None, *self.changes)
        return tuple(map(RowSide, self.scores, self.grades, changes, self.replies, self.other_text))


def pair_columns(infos: Sequence[RunInfo], metrics: Iterable[str]) -> tuple[Column, ...]:
    """Every column that the questions of runs can have: of each measure both values and the difference."""
    components = dict.fromkeys(name for info in infos for name in info.weights)
    kinds = dict.fromkeys(components, "component") | {"latency_ms": "latency_ms", "cost": "cost"}
    for name in metrics:
        kinds.setdefault(name, "metric")
    sides = dict(zip(SIDES, _side_titles(infos), strict=False))
    scores = [Column(name=side, title=words, kind="score", sort=side) for side, words in sides.items()]
    columns = [*_PAIR_COLUMNS, *scores, *(_CHANGES if len(infos) > 2 else _PAIR_CHANGES)]
    for name, measured in kinds.items():
        title = {"latency_ms": "Time"}.get(name) or SHORT_NAMES.get(name, name_words(name).capitalize())
        value, change = _MEASURE_KINDS[measured]
        named = [(side, value, f"{title}: {words.lower()}") for side, words in sides.items()]
        if len(infos) == 2:
            named.append(("change", change, f"{title}: change"))
        for side, kind, words in named:
            key = f"{side}.{name}"
            columns.append(Column(name=key, title=words, kind=kind, note="Mean of its trials", sort=key))
    return tuple(columns)


def _side_titles(infos: Sequence[RunInfo]) -> list[str]:
    if len(infos) == 2:
        return ["Base", "Candidate"]
    return [one_line(info.name, 24) for info in infos]


def pair_layout(infos: Sequence[RunInfo], metrics: Iterable[str]) -> TableLayout[CompareRow]:
    changes = ("change", "gain") if len(infos) > 2 else ("change", "why")
    default = ("question", "category", *SIDES[: len(infos)], *changes)
    return TableLayout(offered=pair_columns(infos, metrics), default=default, cell=_pair_cell)


def pair_table(
    query: PairFilter, layout: TableLayout[CompareRow], rows: Sequence[CompareRow], candidate: RunInfo
) -> Table:
    address = f"/runs/{quote(candidate.id, safe='')}/questions/"
    return layout.table(
        query,
        rows,
        lambda _, row, cells: TableRow(address=f"{address}{quote(row.id, safe='')}", cells=cells),
    )


def _pair_cell(row: CompareRow, name: str) -> Any:
    match name:
        case "question" | "id" | "category" | "why":
            return getattr(row, name)
        case "change":
            return min((change for change in row.changes if change is not None), default=None)
        case "gain":
            return max((change for change in row.changes if change is not None), default=None)
    side, _, measure = name.partition(".")
    values = [measures.get(measure) for measures in row.measures] if measure else row.scores
    return difference(*values[:2]) if side == "change" else values[SIDES.index(side)]
