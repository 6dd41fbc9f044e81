"""Rows of a log: which question each answers, and the trial that comes of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.datasets.golden_sets import EXPECTATION_FIELDS, parse_question
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import UNNUMBERED, RowOrigin, Trial
from answerkey.plugins import ScorerRegistry, scorers
from answerkey.runs.log_files import Block
from answerkey.transcripts.recorded_rows import check_messages, lacks_text, propose_maps, reply_in_row
from answerkey.transcripts.row_files import decode_line

# Fields of a row that describe the question, not the reply.
_QUESTION_FIELDS = EXPECTATION_FIELDS | frozenset(
    {"id", "question", "category", "group", "persona", "tags", "weight", "turns"}
)
# Fields whose presence means that a row carries its own golden case.
_INLINE_FIELDS = (EXPECTATION_FIELDS | {"category", "persona", "tags", "turns"}) - {"tools"}
# Together they mark a row that answerkey wrote itself, with the scores of an earlier scoring.
_SCORED_BEFORE = frozenset({"reply", "components", "grade", "passed"})
# Parsed questions are cached for rows that repeat them; a log of more different questions takes no more memory.
_MOST_PARSED = 20_000
# Beyond these only while rows do repeat their questions.
_SOME_PARSED = 2000
_LARGEST_TRIAL = 2**31 - 1
# Fields of a row that a message lists.
_FIELDS_NAMED = 20


class UnreadableRow(msgspec.Struct, frozen=True):
    """A row that cannot become a trial."""

    line: int | None
    reason: str
    # The row as it is in the file.
    raw: bytes | dict[str, Any] = b""


class LoggedTrial(msgspec.Struct, frozen=True):
    """A trial with its place among all rows of the log."""

    place: int
    trial: Trial
    # Whether answerkey wrote the row itself.
    scored_before: bool = False
    # The row, where it has no field for the text of a reply.
    row_without_text: Mapping[str, Any] | None = None


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
        self._columns = tuple(keep)
        # Question by the fields that it was parsed from.
        self._parsed: dict[str, tuple[Question, dict[str, Any]]] = {}
        self._repeated = 0

    def read(self, block: Block) -> Iterator[LoggedTrial | UnreadableRow]:
        """All rows of a block, in the order of the log."""
        yield from self._listed_rows(block)
        yield from self._lines(block)
        for line, reason, raw in block.bad:
            yield UnreadableRow(line, reason, raw)
        if block.problem:
            yield UnreadableRow(block.line, block.problem)

    def _listed_rows(self, block: Block) -> Iterator[LoggedTrial | UnreadableRow]:
        for place, (line, row) in enumerate(block.rows, start=block.first):
            yield self._row(row, row, place, line)

    def _lines(self, block: Block) -> Iterator[LoggedTrial | UnreadableRow]:
        if not block.lines:
            return
        first_line = (block.line or 0) + 1
        for index, raw in enumerate(block.lines.split(b"\n")):
            if not raw or raw.isspace():
                continue
            try:
                row = decode_line(raw.removeprefix(b"\xef\xbb\xbf"))
            except ValueError as error:
                yield UnreadableRow(first_line + index, str(error), raw)
                continue
            yield self._row(row, raw, block.first + index, first_line + index)

    def _row(
        self, row: dict[str, Any], raw: bytes | dict[str, Any], place: int, line: int | None
    ) -> LoggedTrial | UnreadableRow:
        try:
            trial = self.trial(row, place, line)
        except ValueError as error:
            return UnreadableRow(line, str(error), raw)
        without_text = row if lacks_text(row, trial.replies) else None
        return LoggedTrial(place, trial, row.keys() >= _SCORED_BEFORE, without_text)

    def trial(self, row: Mapping[str, Any], place: int, line: int | None = None) -> Trial:
        """The trial of one row; ValueError says what is wrong with it."""
        position, question = self._find(row, place)
        origin = RowOrigin(line, {name: row[name] for name in self._columns if name in row})
        return Trial(question, _trial_number(row), position, _replies(row, question), origin=origin)

    def _find(self, row: Mapping[str, Any], place: int) -> tuple[int, Question]:
        """Position and question; ValueError says why it cannot be found."""
        identity, text = row.get("id"), row.get("question")
        if isinstance(identity, int) and not isinstance(identity, bool):
            identity = str(identity)
        if self._has_golden_set:
            known = self._by_id.get(identity) if isinstance(identity, str) else None
            if known is None and isinstance(text, str):
                known = self._by_text.get(text)
            if known is not None:
                return known
            if _INLINE_FIELDS.isdisjoint(row):
                named = f"id {identity!r}" if identity is not None else "that question"
                raise ValueError(f"the golden set has no question with {named}; check --questions")
        if identity is None and not isinstance(text, str) and not row.get("turns"):
            raise ValueError(f"has neither 'id' nor 'question'{_fields_of(row)}; {propose_maps(row)}")
        return self._behind + place, self._parse(row, identity, text)

    def _parse(self, row: Mapping[str, Any], identity: object, text: object) -> Question:
        """The question that a row brings itself, parsed once for rows that repeat it."""
        key = str(identity or text)
        fields = _question_fields(row, identity, text)
        cached = self._parsed.get(key)
        if cached is not None and cached[1] == fields:
            self._repeated += 1
            return cached[0]
        question = parse_question(fields, registry=self._registry)
        count = len(self._parsed)
        if count < _SOME_PARSED or (count < _MOST_PARSED and self._repeated > count):
            self._parsed[key] = (question, fields)
        return question


def _question_fields(row: Mapping[str, Any], identity: object, text: object) -> dict[str, Any]:
    fields = {name: value for name, value in row.items() if name in _QUESTION_FIELDS}
    if "tools" in fields and fields["tools"] != "none":
        del fields["tools"]
    if text is None and not row.get("turns"):
        fields["question"] = str(identity)
    return fields


def without_text_reason(row: Mapping[str, Any]) -> str:
    """What to do about a row that has no field for the text of a reply."""
    return f"has no reply text{_fields_of(row)}; {propose_maps(row)}"


def _fields_of(row: Mapping[str, Any]) -> str:
    return f" (the row has {', '.join(list(row)[:_FIELDS_NAMED]) or 'no field'})"


def _trial_number(row: Mapping[str, Any]) -> int:
    trial = row.get("trial")
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
