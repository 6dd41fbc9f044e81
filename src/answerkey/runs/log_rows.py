"""Rows of a log: which question each answers, the trial that comes of it, and the scored block of many."""

import gc
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from heapq import nsmallest
from itertools import islice
from typing import Any, Literal

import msgspec

from answerkey.datasets.golden_sets import (
    EXPECTATION_FIELDS,
    QUESTION_FIELDS,
    misnamed_expectation,
    parse_question,
    read_category,
    read_expectations,
    read_expected_tools,
    read_id,
    read_question_text,
)
from answerkey.model.options import Options
from answerkey.model.question import ExpectedTool, Question, group_of, question_id
from answerkey.model.question_totals import (
    AlikeReplies,
    QuestionSlices,
    QuestionTotals,
    SharedValues,
    SingleReply,
    SingleTrial,
    TrialValues,
    counted_latency,
    is_single,
)
from answerkey.model.reply import Reply, Timings, ToolCall
from answerkey.model.run_document import row_line, table_line
from answerkey.model.scorecard import UNNUMBERED, RowOrigin, Scorecard, Trial
from answerkey.model.tally import Tally
from answerkey.plugins import ScorerRegistry, scorers
from answerkey.runs.log_files import BadRow, Block
from answerkey.runs.log_table import (
    BlockPart,
    BlockResult,
    BlockSummary,
    LowScore,
    NotedRows,
    PackedQuestions,
    ResultLines,
)
from answerkey.scorers.grader import Grader, GraderRecipe
from answerkey.text.normalise import one_line, typed_alike
from answerkey.transcripts.fields import read_calls
from answerkey.transcripts.json_values import read_duration, safe_text
from answerkey.transcripts.payloads import EVIDENCE
from answerkey.transcripts.recorded_rows import (
    check_messages,
    first_asked,
    lacks_text,
    propose_maps,
    reply_in_row,
)
from answerkey.transcripts.row_files import decode_line
from answerkey.transcripts.tables import FIELDS_OF, plain_name

# Fields of a row that describe the question, not the reply.
_QUESTION_FIELDS = EXPECTATION_FIELDS | frozenset(
    {"id", "question", "category", "group", "persona", "tags", "weight", "turns"}
)
# Fields whose presence means that a row carries its own golden case.
_INLINE_FIELDS = (EXPECTATION_FIELDS | {"category", "persona", "tags", "turns"}) - {"tools"}
# Without any of these, names that are spelt otherwise are looked for.
_NAMES_A_QUESTION = frozenset({"id", "question", "turns", "messages"})
_SPELLINGS = {plain_name(name): name for name in FIELDS_OF["replies"]} | {"questionid": "id"}
# Parsed questions are cached for rows that repeat them; a log of more different questions takes no more memory.
_MOST_PARSED = 20_000
# Beyond these only while rows do repeat their questions.
_SOME_PARSED = 2000
_LARGEST_TRIAL = 2**31 - 1
# After this many other rows in a row, a block's rows are no longer tried as plain ones.
_PLAIN_TRIES = 20
# Fields of a row that a message lists.
_FIELDS_NAMED = 20


class UnreadableRow(msgspec.Struct, frozen=True):
    """A row that cannot become a trial."""

    line: int | None
    reason: str
    # The row as it is in the file.
    raw: bytes | dict[str, Any] = b""


class PlainRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row that has only these fields, of these types: decoded straight into them, it takes a third of the time.

    Any other row, and what is wrong with this one, is left to `RowReader.trial`; the readers of fields are the same.
    """

    answer: str
    id: str | int | None = None
    question: str | None = None
    category: str | None = None
    expected_tools: list[str] = []
    expected_keywords: list[str] = []
    tools_used: list[str] | None = None
    latency_ms: float | None = None
    trial: int | None = None
    error: None = None

    def reply(self) -> Reply:
        """The reply in it."""
        answer, tools, latency = self.answer, self.tools_used, read_duration(self.latency_ms)
        return Reply(
            text=answer if answer.isascii() else safe_text(answer),
            tool_calls=_calls_by_name(tuple(tools)) if tools else (),
            timings=_UNTIMED if latency is None else Timings(latency_ms=latency),
            evidence=_TOOLS_SEEN if tools is not None else _TOOLS_UNSEEN,
        )

    def own_question(self, identity: str | None) -> Question:
        """The question that it brings itself."""
        text = read_question_text(self.question or identity, "question")
        category, expected_tools = _category_and_tools(self.category, tuple(self.expected_tools))
        return Question(
            id=question_id(text) if identity is None else read_id(identity, "id"),
            question=text,
            category=category,
            expected_tools=expected_tools,
            expected_keywords=read_expectations(self.expected_keywords, "expected_keywords"),
        )


@lru_cache(maxsize=1000)
def _calls_by_name(names: tuple[str, ...]) -> tuple[ToolCall, ...]:
    """The calls of tools that a row only names; few lists make up most logs."""
    return read_calls(list(names))


@lru_cache(maxsize=1000)
def _category_and_tools(category: str | None, tools: tuple[str, ...]) -> tuple[str, tuple[ExpectedTool, ...]]:
    return read_category(category or "", "category"), read_expected_tools(list(tools), "expected_tools")


decode_plain = msgspec.json.Decoder(PlainRow).decode
_UNTIMED = Timings()
_TOOLS_SEEN, _TOOLS_UNSEEN = EVIDENCE[True, False], EVIDENCE[False, False]


class LoggedTrial(msgspec.Struct, frozen=True, gc=False):
    """A trial with its position among all rows of the log."""

    index: int
    trial: Trial
    # The row, where it has no field for the text of a reply.
    row_without_text: Mapping[str, Any] | None = None
    # Whether its reply has nothing but a text, tools by name and a latency.
    is_plain: bool = False


class RowReader:
    """Makes trials of rows; expectations are in the row itself or in a golden set."""

    def __init__(
        self,
        questions: Sequence[Question] | None,
        *,
        keep: Sequence[str] = (),
        registry: ScorerRegistry = scorers,
    ) -> None:
        # The scorers that the checks of a row may name.
        self._registry = registry
        self._has_golden_set = questions is not None
        # Questions that rows bring themselves are placed after those of the golden set.
        self._behind = len(questions or ())
        listed = list(enumerate(questions or ()))
        self._by_id = {question.id: (position, question) for position, question in listed}
        self._by_text = {question.question: (position, question) for position, question in reversed(listed)}
        self._listed = listed
        self._columns = tuple(keep)
        # Names of further fields that rows may have.
        self._allowed_names = set(keep)
        # Question by the fields that it was parsed from.
        self._parsed: dict[str, tuple[Question, object]] = {}
        self._repeated = 0
        # Rows of the block read last that ask something else than the question with their id.
        self.asked_otherwise, self._path = NotedRows(), ""

    def read(self, block: Block) -> Iterator[LoggedTrial | UnreadableRow]:
        """All rows of a block, in the order of the log."""
        self.asked_otherwise, self._path = NotedRows(block=block.number), block.path
        yield from self._listed_rows(block)
        yield from self._lines(block)
        for line, reason, raw in block.bad:
            yield UnreadableRow(line, reason, raw)
        if block.problem:
            yield UnreadableRow(block.line, block.problem)

    def _listed_rows(self, block: Block) -> Iterator[LoggedTrial | UnreadableRow]:
        for index, (line, row) in enumerate(block.rows, start=block.first):
            yield self._row(row, row, index, line)

    def _lines(self, block: Block) -> Iterator[LoggedTrial | UnreadableRow]:
        if not block.lines:
            return
        first_line = (block.line or 0) + 1
        # How many rows in a row may have other fields: in most logs all have the same.
        plain_tries = 0 if self._columns else _PLAIN_TRIES
        for index, raw in enumerate(block.lines.split(b"\n")):
            if not raw or raw.isspace():
                continue
            position, line = block.first + index, first_line + index
            if plain_tries:
                trial = self._plain_trial(raw, position, line)
                if trial is not None:
                    plain_tries = _PLAIN_TRIES
                    yield LoggedTrial(position, trial, is_plain=True)
                    continue
                plain_tries -= 1
            try:
                row = decode_line(raw.removeprefix(b"\xef\xbb\xbf"))
            except ValueError as error:
                yield UnreadableRow(line, str(error), raw)
                continue
            yield self._row(row, raw, position, line)

    def _plain_trial(self, raw: bytes, row_index: int, line: int) -> Trial | None:
        """The trial of a plain row; None: it is not one, or something is wrong with it."""
        try:
            row = decode_plain(raw)
            if "\0" in row.answer:
                return None
            identity = str(row.id) if isinstance(row.id, int) else row.id
            if self._has_golden_set:
                known = self._known(identity, row.question, line)
                if known is None:
                    return None
                position, question = known
            elif identity is None and row.question is None:
                return None
            else:
                fields = (row.question, row.category, row.expected_tools, row.expected_keywords)
                key = identity or row.question or ""
                question = self._parsed_once(key, fields, row.own_question, identity)
                position = self._behind + row_index
            if question.turns:
                return None
            number = UNNUMBERED if row.trial is None else _trial_number(row.trial)
            return Trial(question, number, position, (row.reply(),), origin=RowOrigin(line))
        except (ValueError, RecursionError):
            return None

    def _row(
        self, row: dict[str, Any], raw: bytes | dict[str, Any], row_index: int, line: int | None
    ) -> LoggedTrial | UnreadableRow:
        try:
            if row.keys().isdisjoint(_NAMES_A_QUESTION):
                row = _as_spelt(row)
            trial = self.trial(row, row_index, line)
        except ValueError as error:
            return UnreadableRow(line, str(error), raw)
        without_text = row if lacks_text(row, trial.replies) else None
        return LoggedTrial(row_index, trial, without_text)

    def trial(self, row: Mapping[str, Any], row_index: int, line: int | None = None) -> Trial:
        """The trial of one row; ValueError says what is wrong with it."""
        position, question = self._find(row, row_index, line)
        origin = RowOrigin(line, {name: row[name] for name in self._columns if name in row})
        return Trial(
            question, _trial_number(row.get("trial")), position, _replies(row, question), origin=origin
        )

    def _find(self, row: Mapping[str, Any], row_index: int, line: int | None) -> tuple[int, Question]:
        """Position and question; ValueError says why it cannot be found."""
        identity, text = row.get("id"), row.get("question")
        if isinstance(identity, int) and not isinstance(identity, bool):
            identity = str(identity)
        if identity is None and text is None and not row.get("turns"):
            text = first_asked(row)
        known = self._known(identity, text, line)
        if known is None and text is None:
            # The id may be that of a conversation.
            known = self._known(None, first_asked(row))
        if known is not None:
            return known
        if row.keys() >= {"role", "content"}:
            raise ValueError(
                'is one message of a conversation; make a row of each: {"messages": [{"role", "content"}, …]}'
            )
        if identity is None and not isinstance(text, str) and not row.get("turns"):
            raise ValueError(f"has neither 'id' nor 'question'{_fields_of(row)}; {propose_maps(row)}")
        if self._has_golden_set and _INLINE_FIELDS.isdisjoint(row):
            named = f"id {identity!r}" if identity is not None else "that question"
            raise ValueError(f"the golden set has no question with {named}; check --questions")
        fields = _question_fields(row, identity, text)
        for name in row.keys() - fields.keys() - self._allowed_names:
            self._allow_name(name)
        parse = partial(parse_question, registry=self._registry)
        return self._behind + row_index, self._parsed_once(str(identity or text), fields, parse, fields)

    def _known(self, identity: object, text: object, line: int | None = None) -> tuple[int, Question] | None:
        """Position and question in the golden set: by id, unless the text is that of another question; else by text."""
        if not self._has_golden_set:
            return None
        known = self._by_id.get(identity) if isinstance(identity, str) else None
        if not isinstance(text, str) or (known is not None and (known[1].turns or known[1].question == text)):
            return known
        by_text = self._by_text.get(text) or self._by_alike_text.get(typed_alike(text))
        if known is None or by_text is not None:
            # The ids of a log may be its own, such as row numbers.
            return by_text
        asked = known[1].question
        if typed_alike(asked) != typed_alike(text):
            reason = f"id {identity!r} is {one_line(asked, 60)!r} in the golden set, and the row asks {one_line(text, 60)!r}"
            self.asked_otherwise.add(BadRow(self._path, line, reason))
        return known

    @cached_property
    def _by_alike_text(self) -> dict[str, tuple[int, Question]]:
        """Questions by their text as others may have typed it; those of which two would be alike are left out."""
        alike: dict[str, list[tuple[int, Question]]] = {}
        for position, question in self._listed:
            alike.setdefault(typed_alike(question.question), []).append((position, question))
        return {text: its[0] for text, its in alike.items() if len(its) == 1}

    def _allow_name(self, name: str) -> None:
        """Refuse a field that would be an expectation under another name; the rest of a row's fields is its own matter."""
        meant = misnamed_expectation(name)
        if meant is not None:
            raise ValueError(
                f"unknown field {name!r} looks like an expectation, and would score nothing: add --map {meant}={name}, "
                "or rename it if it is a note"
            )
        self._allowed_names.add(name)

    def _parsed_once(
        self, key: str, fields: object, parse: Callable[..., Question], *arguments: object
    ) -> Question:
        """The question that a row brings itself, parsed once for rows that repeat it."""
        cached = self._parsed.get(key)
        if cached is not None and cached[1] == fields:
            self._repeated += 1
            return cached[0]
        question = parse(*arguments)
        count = len(self._parsed)
        if count < _SOME_PARSED or (count < _MOST_PARSED and self._repeated > count):
            self._parsed[key] = (question, fields)
        return question


def _as_spelt(row: dict[str, Any]) -> dict[str, Any]:
    """A row with answerkey's spelling of names that differ only in case, spaces and underscores."""
    spelt = {name: _SPELLINGS.get(plain_name(name), name) for name in row}
    return row if len(set(spelt.values())) < len(row) else {spelt[name]: value for name, value in row.items()}


def _question_fields(row: Mapping[str, Any], identity: object, text: object) -> dict[str, Any]:
    fields = {name: value for name, value in row.items() if name in _QUESTION_FIELDS}
    if "tools" in fields and fields["tools"] != "none":
        del fields["tools"]
    if fields.get("question") is None and not row.get("turns"):
        fields["question"] = str(identity) if text is None else text
    return fields


def without_text_reason(row: Mapping[str, Any]) -> str:
    """What to do about a row that has no field for the text of a reply."""
    if row.keys() <= QUESTION_FIELDS.keys():
        return (
            f"has no reply{_fields_of(row)}: this looks like a golden set; to ask a chatbot its questions: "
            "answerkey run FILE --target T; to grade recorded replies by it: answerkey score REPLIES --questions FILE"
        )
    return f"has no reply text{_fields_of(row)}; {propose_maps(row)}"


def _fields_of(row: Mapping[str, Any]) -> str:
    return f" (the row has {', '.join(list(row)[:_FIELDS_NAMED]) or 'no field'})"


def _trial_number(trial: object) -> int:
    if trial is None:
        return UNNUMBERED
    if isinstance(trial, bool) or not isinstance(trial, int) or not 0 <= trial <= _LARGEST_TRIAL:
        raise ValueError(f"'trial' must be a whole number from 0 to {_LARGEST_TRIAL}")
    return trial


def _replies(row: Mapping[str, Any], question: Question) -> tuple[Reply, ...]:
    # Messages that cannot be read are a fault of the log, not of the chatbot.
    check_messages(row)
    if not question.turns:
        return (reply_in_row(row, question.question) or Reply(),)
    turns = [
        reply_in_row(row, turn.question, number, in_turns=True) for number, turn in enumerate(question.turns)
    ]
    return tuple(reply for reply in turns if reply is not None)


# Blocks: the rows of a block, scored together and added up.

# What is kept of each result: nothing, the trial, or its row as a line of JSON, in full or with what tables have of it.
ResultForm = Literal["nothing", "trials", "lines", "table_lines"]
# The lowest replies, which reports list.
WORST_LISTED = 20
# Rows that are scored together, within the time limit of one: few, so that only very slow scorers exceed it.
_BATCH = 100
# Rows of results that are kept together.
_ROWS_TOGETHER = 500


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Rows make no reference cycles: looking for them in all that a block holds would take a third of the time."""
    collects_garbage = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects_garbage:
            gc.enable()


class LogPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that scoring a block takes, besides the block."""

    # None where the grader exists in this process only.
    recipe: GraderRecipe | None
    # The golden set; None: expectations are in the rows.
    questions: tuple[Question, ...] | None = None
    pass_mark: float
    results: ResultForm = "nothing"
    # Columns that results keep.
    keep: tuple[str, ...] = ()
    scoring_seconds: float = Options().scoring_seconds


class BlockScorer:
    """Scores blocks, one after the other."""

    def __init__(self, plan: LogPlan, grader: Grader) -> None:
        self._plan, self._grader = plan, grader
        # Where a keyword was found is only looked at in results.
        grader.set_spans(plan.results in ("trials", "lines"))
        self._reader = RowReader(plan.questions, keep=plan.keep, registry=grader.registry)

    def score(self, block: Block, before_row: Callable[[int], None] | None = None) -> BlockPart:
        """Score a block; a row that cannot be read is listed among the bad ones.

        `before_row` gets the index of the first row of each batch before it is graded; of each row where the block says so.
        """
        with paused_garbage_collection():
            # What it needed is freed before garbage is collected again.
            return self._score(block, before_row)

    def _score(self, block: Block, before_row: Callable[[int], None] | None) -> BlockPart:
        collector = BlockCollector(self._plan, block, self._grader)
        trials = self.trials(block, collector)
        batch = 1 if block.one_by_one else _BATCH
        while rows := list(islice(trials, batch)):
            if before_row is not None:
                before_row(rows[0].index)
            collector.add_many(rows, self._cards(rows, block))
        return collector.part()

    def _cards(self, rows: Sequence[LoggedTrial], block: Block) -> list[Scorecard]:
        # The facts behind a value are only looked at in results.
        facts = self._plan.results != "nothing"
        if not block.too_costly:
            return self._grader.grade_many([row.trial for row in rows], facts=facts)
        return [
            self._too_costly(row.trial)
            if row.index in block.too_costly
            else self._grader.grade_many([row.trial], facts=facts)[0]
            for row in rows
        ]

    def _too_costly(self, trial: Trial) -> Scorecard:
        return self._grader.too_costly(trial.question, trial.number, self._plan.scoring_seconds)

    def trials(self, block: Block, collector: "BlockCollector") -> Iterator[LoggedTrial]:
        """The block's trials, not yet scored; rows that cannot be read go to the collector."""
        for row in self._reader.read(block):
            if isinstance(row, UnreadableRow):
                collector.add_bad(BadRow.of(block.path, row.line, row.reason, row.raw))
            else:
                if row.row_without_text is not None:
                    collector.add_without_text(row)
                yield row
        collector.note_asked_otherwise(self._reader.asked_otherwise)


class BlockCollector:
    """Collects the scored trials of a block."""

    def __init__(self, plan: LogPlan, block: Block, grader: Grader) -> None:
        self._plan, self._block, self._grader = plan, block, grader
        self._tally = Tally(plan.pass_mark)
        # By question: the only replies of trials, and all others.
        self._singles: dict[str, list[SingleReply]] = {}
        self._others: dict[str, tuple[Question, QuestionTotals]] = {}
        # Replies that are alike, by what they have in common, and by the ids of this, which are quicker to look up.
        self._alike: dict[tuple[QuestionSlices, TrialValues, str | None, bool], AlikeReplies] = {}
        self._alike_by_ids: dict[tuple[int, int, bool], tuple[AlikeReplies, QuestionSlices, Scorecard]] = {}
        self._low: list[tuple[float, int, Trial]] = []
        self._low_limit = 2.0
        self._trials = self._errors = self._imperfect = self._failed = 0
        self._points = 0.0
        self._bad: list[BadRow] = []
        self._results: list[BlockResult] = []
        self._lines: list[ResultLines] = []
        self._write_row = {"lines": row_line, "table_lines": table_line}.get(plan.results)
        # Rows that are not in `_lines` yet, and the place of each in the log.
        self._rows, self._indices = list[bytes](), array("q")
        self._columns: set[str] = set()
        self._without_text, self._asked_otherwise = NotedRows(block=block.number), NotedRows()

    def add_many(self, rows: Sequence[LoggedTrial], cards: Sequence[Scorecard]) -> None:
        """Count rows with their scorecards; plain replies that are alike are added up together when the block ends."""
        whole, keeps_results = self._tally.whole, self._plan.results != "nothing"
        for row, card in zip(rows, cards, strict=True):
            trial, question = row.trial, row.trial.question
            if not row.is_plain or question.severity is not None or group_of(question) is not None:
                self.add(trial.scored(card), row.index)
                continue
            slices, observed = self._slices(question), trial.replies[0].evidence.tools_observed
            found = self._alike_by_ids.get((id(slices), id(card), observed))
            if found is not None:
                alike = found[0]
            elif card.total is None or card.suspected is not None:
                # Its own words are counted too.
                self.add(trial.scored(card), row.index)
                continue
            else:
                alike = self._alike_of(trial.scored(card), slices)
                if not keeps_results:
                    # What has these ids is kept, so that nothing else gets them.
                    self._alike_by_ids[id(slices), id(card), observed] = alike, slices, card
            alike.times += 1
            latency = trial.replies[0].timings.latency_ms
            if latency is not None:
                alike.latencies.append(latency)
                if latency >= whole.slowest_limit:
                    whole.add_slow(question.id, latency)
            self._add_single(trial, alike, row.index, latency)
            if keeps_results or card.total != 1:
                self._keep(trial.scored(card), row.index)

    def _slices(self, question: Question) -> QuestionSlices:
        # Rows mostly repeat the very same question.
        same = self._singles.get(question.id)
        if same is not None and same[0].question is question:
            return same[0].alike.slices
        return QuestionSlices.of(question)

    def _alike_of(self, trial: Trial, slices: QuestionSlices) -> AlikeReplies:
        """The replies that a scored trial's only one is alike to."""
        values, error = TrialValues.of(trial), trial.scorecard.error
        key = slices, values, None if error is None else error.kind, trial.reply.evidence.tools_observed
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = AlikeReplies(trial, slices, values)
        return alike

    def _add_single(self, trial: Trial, alike: AlikeReplies, row_index: int, latency: float | None) -> None:
        question, index = trial.question, row_index if self._plan.results != "nothing" else None
        single = SingleReply(question, alike, trial.position, trial.number, index, latency)
        singles = self._singles.get(question.id)
        if singles is None:
            self._singles[question.id] = [single]
        else:
            singles.append(single)

    def add(self, trial: Trial, row_index: int) -> None:
        """Count a scored trial."""
        card = trial.scorecard
        self._tally.add_reply(trial, self._add_to_question(trial, row_index))
        if trial.origin is not None and trial.origin.columns:
            self._columns.update(trial.origin.columns)
        self._trials += 1
        self._errors += card.error is not None
        self._points += card.total or 0.0
        if card.total is None or card.total < 1:
            self._imperfect += 1
            self._failed += not card.passed
        self._keep(trial, row_index)

    def _keep(self, trial: Trial, row_index: int) -> None:
        """Keep a scored trial, as far as results and the lowest replies are kept."""
        score = trial.scorecard.total
        if score is None or score < 1:
            self._add_low(-1.0 if score is None else score, row_index, trial)
        if self._write_row is not None:
            self._rows.append(self._write_row(trial))
            self._indices.append(row_index)
            if len(self._rows) >= _ROWS_TOGETHER:
                self._join_rows()
        elif self._plan.results == "trials":
            packed = _encode_trial(trial)
            self._results.append(BlockResult(row_index, trial.question.id, score, packed))

    def _add_to_question(self, trial: Trial, row_index: int) -> QuestionSlices:
        """Count a trial of its question; returns the slices that this row puts it in."""
        question = trial.question
        if is_single(trial):
            slices = self._slices(question)
            latency = counted_latency(trial.replies[0])
            self._add_single(trial, self._alike_of(trial, slices), row_index, latency)
            return slices
        known = self._others.get(question.id)
        if known is None:
            known = self._others[question.id] = question, QuestionTotals(question, trial.position)
        first, totals = known
        totals.add(trial, row_index if self._plan.results != "nothing" else None)
        if question is first:
            return totals.slices
        totals.has_several_texts |= question.question != first.question
        return QuestionSlices.of(question)

    def _questions(self, shared: SharedValues) -> Iterator[SingleTrial | QuestionTotals]:
        """The block's questions; those of a single reply by that alone."""
        for identity, replies in self._singles.items():
            known = self._others.get(identity)
            single = shared.single_trial(replies[0]) if known is None and len(replies) == 1 else None
            if single is not None:
                yield single
            elif known is None:
                yield QuestionTotals.of_singles(replies)
            else:
                known[1].merge(QuestionTotals.of_singles(replies))
        for _, totals in self._others.values():
            yield totals

    def _join_rows(self) -> None:
        if self._rows:
            self._lines.append(ResultLines(self._indices, b"".join(self._rows)))
            self._rows, self._indices = [], array("q")

    def _add_low(self, score: float, row_index: int, trial: Trial) -> None:
        if score > self._low_limit:
            return
        self._low.append((score, row_index, trial))
        if len(self._low) >= 2 * WORST_LISTED:
            self._low = nsmallest(WORST_LISTED, self._low, key=lambda low: low[:2])
            self._low_limit = self._low[-1][0]

    def add_bad(self, row: BadRow) -> None:
        """Count a row that cannot be scored."""
        self._bad.append(row)
        self._tally.whole.add_unscored(row.counted_as)

    def add_without_text(self, logged: LoggedTrial) -> None:
        """Count a row that has no field for the text of a reply."""
        row, origin = logged.row_without_text or {}, logged.trial.origin
        line = None if origin is None else origin.line
        self._without_text.add(BadRow(self._block.path, line, without_text_reason(row)))

    def note_asked_otherwise(self, rows: NotedRows) -> None:
        """Rows that ask something else than the question with their id."""
        self._asked_otherwise = rows

    def part(self) -> BlockPart:
        """What the block came to."""
        low = nsmallest(WORST_LISTED, self._low, key=lambda low: low[:2])
        self._join_rows()
        for alike in self._alike.values():
            if not alike.times:
                continue
            self._tally.add_alike(alike)
            card = alike.trial.scorecard
            self._trials += alike.times
            self._errors += alike.times * (card.error is not None)
            self._points += alike.times * (card.total or 0.0)
            self._imperfect += alike.times * (card.total != 1)
            self._failed += alike.times * (not card.passed)
        shared = SharedValues.none()
        summary = BlockSummary(
            number=self._block.number,
            trials=self._trials,
            errors=self._errors,
            points=self._points,
            tally=self._tally,
            worst=[
                LowScore(score, index, _encode_trial(trial.scored(self._grader.explained(trial))))
                for score, index, trial in low
            ],
            imperfect=self._imperfect,
            failed=self._failed,
            bad=self._bad,
            columns=self._columns,
            without_text=self._without_text,
            asked_otherwise=self._asked_otherwise,
        )
        return BlockPart(
            summary,
            PackedQuestions.of(self._questions(shared), shared),
            self._results,
            self._lines,
            self._block.row_checksums(),
        )


_encode_trial = msgspec.msgpack.Encoder(enc_hook=repr).encode
