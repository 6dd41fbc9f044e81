"""Editing the configured golden set by question: nothing else in the file changes, and no other editor is overwritten."""

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

import msgspec

from answerkey.config import Settings
from answerkey.datasets.golden_sets import parse_question, with_functions
from answerkey.errors import AnswerkeyError, UnknownNameError, UsageError
from answerkey.golden.lint import Finding, lint_questions
from answerkey.golden.truth import Resolved, StoredValues, resolve, with_stored_values
from answerkey.model.question import Check, ComputedExpectation, Question, QuestionSet
from answerkey.model.reply import JsonObject
from answerkey.model.scorecard import mean_score
from answerkey.report.result_files import atomic_file
from answerkey.runs.context import golden_set
from answerkey.runs.production import same_question
from answerkey.scorers.grader import make_grader
from answerkey.store.questions import question_history
from answerkey.store.sql import SqlStore
from answerkey.transcripts.json_values import as_list
from answerkey.transcripts.row_files import FieldMap, read_rows
from answerkey.transcripts.yaml_documents import EDITABLE, EditableRow, EditableRows

# Characters of a question that can be edited in a browser.
LONGEST = 200_000
# Runs whose replies are scored again.
_RUNS = 10


class ChangedFileError(UsageError):
    """The file changed since it was read."""


class GoldenForm(msgspec.Struct, frozen=True, kw_only=True):
    """An edited question; `line` and `digest` say which one, 0 for a new one."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    line: Annotated[int, msgspec.Meta(ge=0)] = 0
    digest: Annotated[str, msgspec.Meta(max_length=80)] = ""
    # The id of the draft that it was, and is in the file of drafts until it is saved or rejected.
    draft: Annotated[str, msgspec.Meta(max_length=2_000)] = ""
    action: Literal["try", "save", "reject"] = "try"


class GoldenLine(msgspec.Struct, frozen=True):
    """A question of the file as its author wrote it, and where it begins; 0 and an empty digest for a new one."""

    number: int
    text: str
    digest: str


class DraftEvidence(msgspec.Struct, frozen=True):
    """Where a draft comes from."""

    source: str = ""
    times: int = msgspec.field(default=1, name="asked")
    reply: str = ""
    links: tuple[dict[str, Any], ...] = ()


class Draft(msgspec.Struct, frozen=True):
    """A case of `answerkey draft`."""

    id: str
    # Its line in the file.
    document: JsonObject
    # What the golden set would get.
    row: JsonObject
    wording: str
    evidence: DraftEvidence
    warnings: tuple[str, ...]

    @classmethod
    def read(cls, document: JsonObject) -> "Draft":
        """A line of the file, whatever a person changed in it."""
        row = {name: value for name, value in document.items() if name not in ("evidence", "warnings")}
        try:
            evidence = msgspec.convert(document.get("evidence") or {}, DraftEvidence)
            warnings = msgspec.convert(document.get("warnings") or (), tuple[str, ...])
        except msgspec.ValidationError as error:
            raise UsageError(f"draft {row.get('id')!r}: {error}") from None
        turns = [one for one in as_list(row.get("turns")) if isinstance(one, dict)] or [row]
        wording = " → ".join(str(turn.get("question", "")) for turn in turns)
        return cls(str(row.get("id", "")), document, row, wording, evidence, warnings)


class Rescored(msgspec.Struct, frozen=True):
    """The stored replies of a run to a question, scored without the edit and with it."""

    run_id: str
    run_name: str
    before: float | None
    after: float | None


class KnownValue(msgspec.Struct, frozen=True):
    """The value of a computed expectation: of the newest run, or computed now (without a run); None: not known."""

    expression: str
    value: str | None
    run_id: str = ""
    run_name: str = ""
    # Why it could not be computed now.
    problem: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What an edit would do."""

    problem: str = ""
    findings: tuple[Finding, ...] = ()
    rescored: tuple[Rescored, ...] = ()
    # What is computed from the data.
    truth: tuple[KnownValue, ...] = ()
    # Why replies were not scored again, or what to know of their scores.
    notes: tuple[str, ...] = ()
    diff: str = ""


class GoldenFile:
    """The configured golden set, where it is a file that can be edited as text."""

    def __init__(self, settings: Settings, questions: str | None, drafts: str | None = None) -> None:
        self._settings = settings
        self._drafts: Path | None = None if drafts is None else settings.folder / drafts
        named = questions or settings.questions
        self.path: Path | None = None if named is None else settings.folder / named
        self._lock, self._draft_lock = Lock(), Lock()
        self._last_read: EditableRows | None = None

    @property
    def editable(self) -> bool:
        """Whether there is a golden set that can be edited here."""
        return self.path is not None and self.path.suffix.lower() in EDITABLE and self.path.is_file()

    @property
    def format(self) -> str:
        """The format of a question in the file, JSON or YAML."""
        return self._read().format

    def find(self, *, identity: str | None = None, question: str | None = None) -> GoldenLine | None:
        """A question by its id or else its wording."""
        file = self._read()
        for one in file.rows:
            row = self._fields(one.row)
            if identity is not None and row.get("id") == identity:
                return _golden_line(file, one)
            if question is not None and same_question(str(row.get("question", "")), question):
                return _golden_line(file, one)
        return None

    def get(self, identity: str) -> GoldenLine:
        """A question; raises UnknownNameError if the file has none with this id."""
        found = self.find(identity=identity)
        if found is None:
            raise UnknownNameError(f"{self.path}: no question with the id {identity[:120]!r}")
        return found

    def encode(self, row: JsonObject) -> str:
        """A new question as text, in the style of the file."""
        return self._read().encode(row)

    def attempt(self, store: SqlStore, form: GoldenForm, *, may_compute: bool) -> Trial:
        """What saving would do: problems, findings, and the scores of stored replies by the edited question.

        Without `may_compute`, no query, path or function is evaluated that the visitor typed.
        """
        file = self._read()
        try:
            row = self._row_to_edit(file, form)
            changed, question = self._changed(file, row, form.text)
            self._refuse_second_id(changed, question)
            if may_compute:
                self._refuse_failing(row, question)
        except UsageError as error:
            return Trial(problem=str(error))
        known_checks = () if row is None else self._question(row.row).checks
        rescoring = _Rescoring(self._settings, store, question, known_checks, may_compute=may_compute)
        return Trial(
            findings=tuple(lint_questions(QuestionSet(name=self._name, questions=(question,)))),
            truth=tuple(rescoring.values()),
            rescored=tuple(rescoring.scores()),
            notes=tuple(rescoring.notes),
            diff=file.patch_to(changed),
        )

    def save(self, form: GoldenForm) -> Question:
        """Write the question; raises ChangedFileError if it is no longer the one that was edited."""
        with self._lock:
            file = self._read()
            row = self._row_to_edit(file, form)
            changed, question = self._changed(file, row, form.text)
            self._refuse_second_id(changed, question)
            self._refuse_failing(row, question)
            with atomic_file(file.path) as written:
                written.write(changed.text.encode())
        return question

    def drafts(self) -> list[Draft]:
        """The drafts that wait for a person."""
        return [Draft.read(row) for row in self._draft_rows()]

    def _draft_rows(self) -> list[JsonObject]:
        if self._drafts is None:
            raise UsageError("no drafts: start the server with `answerkey serve --drafts FILE`")
        # Without any draft left, the file is empty.
        is_empty = self._drafts.is_file() and not self._drafts.stat().st_size
        return [] if is_empty else [row for _, row in read_rows(self._drafts)]

    def draft(self, identity: str) -> Draft:
        """A draft by its id; raises UnknownNameError if it was accepted or rejected."""
        found = next((one for one in self.drafts() if one.id == identity), None)
        if found is None:
            raise UnknownNameError(
                f"no draft with the id {identity[:120]!r}; it may have been accepted or rejected"
            )
        return found

    def accept(self, form: GoldenForm, author: str) -> Question:
        """Add an edited draft to the golden set with its provenance; refuses near-misses of existing cases."""
        from answerkey.runs.draft import accepted_case  # few servers have drafts

        with self._draft_lock:
            draft = self.draft(form.draft)
            file = self._read()
            changed, _ = self._changed(file, None, form.text)
            row = {**changed.rows[-1].row, "evidence": draft.document.get("evidence")}
            accepted = accepted_case(row, golden_set(file.path, self._settings), author)
            question = self.save(GoldenForm(text=file.encode(accepted)))
            self._remove_draft(form.draft)
        return question

    def reject(self, identity: str) -> None:
        with self._draft_lock:
            self.draft(identity)
            self._remove_draft(identity)

    def _remove_draft(self, identity: str) -> None:
        rest = [one.document for one in self.drafts() if one.id != identity]
        assert self._drafts is not None  # it was read
        with atomic_file(self._drafts) as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in rest)

    @property
    def _name(self) -> str:
        return "" if self.path is None else self.path.name

    def _read(self) -> EditableRows:
        """The file as it is now; what was read is used again while it is the same."""
        if self.path is None:
            raise UsageError("no golden set is configured: set `questions` in answerkey.toml")
        file, last = EditableRows.read(self.path), self._last_read
        if last is None or last.text != file.text:
            self._last_read = last = file
        return last

    def _row_to_edit(self, file: EditableRows, form: GoldenForm) -> EditableRow | None:
        """The question that was opened, as it is now; None for a new one."""
        if not form.line:
            return None
        for row in file.rows:
            if row.line == form.line and _digest(file.text_of(row)) == form.digest:
                return row
        raise ChangedFileError(
            f"line {form.line} of {self._name} changed since you opened it; nothing was saved. Open it again"
        )

    def _changed(
        self, file: EditableRows, row: EditableRow | None, text: str
    ) -> tuple[EditableRows, Question]:
        """The file after an edit, and the question as it would be read from there."""
        try:
            changed = file.append(text) if row is None else file.replace(row, text)
            index = len(file.rows) if row is None else file.rows.index(row)
            return changed, self._question(changed.rows[index].row)
        except ValueError as error:
            raise UsageError(f"invalid question: {error}") from None

    def _refuse_second_id(self, changed: EditableRows, question: Question) -> None:
        """Raises UsageError if two questions of the file would have the id of the edited one."""
        ids = [self._fields(one.row).get("id") for one in changed.rows]
        if ids.count(question.id) > 1:
            raise UsageError(f"another question of {self._name} has the id {question.id[:120]!r}")

    def _refuse_failing(self, row: EditableRow | None, question: Question) -> None:
        """Raises UsageError if the edit adds a query, path or call that gives no value."""
        problems = self._problems(question)
        known = self._problems(self._question(row.row)) if row is not None and problems else []
        new = [one for one in problems if one not in known]
        if new:
            raise UsageError("; ".join(new))

    def _problems(self, question: Question) -> list[str]:
        """What cannot be computed for a question, and why."""
        try:
            return _computed_now(question, self._settings).problems
        except AnswerkeyError as error:
            return [str(error)]

    def _fields(self, row: JsonObject) -> JsonObject:
        """A row of the file under the names that it is read with."""
        mapped = self._map.mapped(row, has_cells=False) if self._settings.map else row
        return with_functions(mapped, self._settings.row_functions)

    @cached_property
    def _map(self) -> FieldMap:
        return FieldMap(self._settings.map)

    def _question(self, row: JsonObject) -> Question:
        return parse_question(self._fields(row), registry=self._settings.scorer_registry)


class _Rescoring:
    """Scores the stored replies to a question by its edited version."""

    def __init__(
        self,
        settings: Settings,
        store: SqlStore,
        question: Question,
        known_checks: tuple[Check, ...],
        *,
        may_compute: bool,
    ) -> None:
        self._settings, self._store, self._question = settings, store, question
        self._may_compute = may_compute
        self._why_not_computed = ""
        self._known_checks = known_checks
        self._history = list(question_history(store, question.id, limit=_RUNS))
        self.notes: list[str] = []

    def values(self) -> Iterator[KnownValue]:
        """What is computed for the question: as the newest run computed it, or now."""
        newest = next(iter(self._history), None)
        if newest is None:
            resolved = StoredValues(self._question, _computed(self._question))
        else:
            [first, *_] = self._store.results_of(self._store.find_run(newest.run_id), self._question.id)
            resolved = with_stored_values(self._question, first.question)
        stored = resolved.question.computed_values
        fresh = {} if not resolved.missing or self._fresh is None else self._fresh.computed_values
        missing = {one.described for one in resolved.missing}
        for one in dict.fromkeys(one.described for one in _computed(self._question)):
            if one in missing:
                value = ", ".join(fresh[one]) if one in fresh else None
                failed = value is None and self._may_compute
                yield KnownValue(one, value, problem=self._why_not_computed if failed else "")
            elif newest is not None:
                yield KnownValue(one, ", ".join(stored.get(one, ["none"])), newest.run_id, newest.run_name)

    def scores(self) -> Iterator[Rescored]:
        """The newest runs that asked it; what keeps others from being scored is added to the notes."""
        refused = self._new_function(self._question)
        if refused:
            self.notes.append(
                f"Not scored: the function {refused} is new in this question, and {_WHO_COMPUTES}."
            )
            return
        grader = make_grader(self._settings.scoring, self._settings)
        without_value, computed, other_settings, other_wording = 0, 0, 0, 0
        for point in self._history:
            trials = self._store.results_of(self._store.find_run(point.run_id), self._question.id)
            resolved = with_stored_values(self._question, trials[0].question)
            if resolved.missing and self._fresh is not None:
                resolved = with_stored_values(resolved.question, self._fresh)
                computed += not resolved.missing
            if resolved.missing:
                without_value += 1
                continue
            after = mean_score([grader.grade(resolved.question, trial.replies).total for trial in trials])
            before = point.score
            if not self._new_function(trials[0].question):
                before = mean_score([grader.grade(trial.question, trial.replies).total for trial in trials])
            other_settings += before != point.score
            other_wording += trials[0].question.ask_hash != self._question.ask_hash
            yield Rescored(point.run_id, point.run_name, before, after)
        if without_value:
            self.notes.append(
                f"{without_value} of {len(self._history)} runs not scored: they computed no value for what you changed. "
                + self._why_not_computed
            )
        if computed:
            self.notes.append(
                "What you changed was computed now; the data may be other than when the runs asked."
            )
        if other_settings:
            self.notes.append(
                f"{other_settings} of these runs were scored with other settings or by a judge, so both columns differ from "
                "the run's own score."
            )
        if other_wording:
            self.notes.append(
                f"{other_wording} of these runs asked another wording: their replies answer that one."
            )
        if not self._history:
            self.notes.append("No run has asked this question.")

    @cached_property
    def _fresh(self) -> Question | None:
        """The question with values that are computed now; None if that is not allowed or not possible."""
        if not self._may_compute:
            self._why_not_computed = f"They are not computed here, because {_WHO_COMPUTES}."
            return None
        try:
            resolved = _computed_now(self._question, self._settings)
        except AnswerkeyError as error:
            self._why_not_computed = str(error)
            return None
        self._why_not_computed = "; ".join(resolved.problems)
        return resolved.questions.questions[0]

    def _new_function(self, question: Question) -> str:
        """A function that the question is checked by, but that the golden set does not name: it is not called for everybody."""
        return next(
            (
                str(check.expected)
                for turn in question.asks
                for check in turn.checks
                if check.kind == "python" and check not in self._known_checks and not self._may_compute
            ),
            "",
        )


_WHO_COMPUTES = (
    "queries and functions are only evaluated for admins of a server that was started with --allow-run"
)


def _computed_now(question: Question, settings: Settings) -> Resolved:
    return resolve(QuestionSet(questions=(question,)), settings.truth, (), settings.folder)


def _computed(question: Question) -> list[ComputedExpectation]:
    expected = [one for turn in question.asks for one in (*turn.expected_keywords, *turn.forbidden_keywords)]
    return [one for one in expected if isinstance(one, ComputedExpectation)]


def _golden_line(file: EditableRows, row: EditableRow) -> GoldenLine:
    shown = file.text_of(row)
    return GoldenLine(row.line, shown, _digest(shown))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
