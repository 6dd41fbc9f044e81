"""Editing the configured golden set, line by line: nothing else in the file changes, and no other editor is overwritten."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

import msgspec

from answerkey.config import Settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import UnknownNameError, UsageError
from answerkey.golden.lint import Finding, lint_questions
from answerkey.model.question import ComputedExpectation, Question, QuestionSet
from answerkey.model.reply import JsonObject
from answerkey.model.scorecard import mean_score
from answerkey.report.files import atomic_file
from answerkey.runs.context import golden_set
from answerkey.runs.production import same_question
from answerkey.scorers.grader import make_grader
from answerkey.store.questions import question_history
from answerkey.store.sql import SqlStore
from answerkey.transcripts.json_values import as_list, decode_strict_json
from answerkey.transcripts.row_files import read_rows

# Characters of a question that can be edited in a browser.
LONGEST = 200_000
# Runs whose replies are scored again.
_RUNS = 10
_COMPUTED = ('"sql"', '"fact"', '"python"')


class ChangedFileError(UsageError):
    """The file changed since it was read."""


class GoldenForm(msgspec.Struct, frozen=True, kw_only=True):
    """An edited line; `line` and `digest` say which one, 0 for a new one."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    line: Annotated[int, msgspec.Meta(ge=0)] = 0
    digest: Annotated[str, msgspec.Meta(max_length=80)] = ""
    # The id of the draft that it was, and is in the file of drafts until it is saved or rejected.
    draft: Annotated[str, msgspec.Meta(max_length=2_000)] = ""
    action: Literal["try", "save", "reject"] = "try"


class GoldenLine(msgspec.Struct, frozen=True):
    """A line of the file; 0 and an empty digest for a new one."""

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
    """The stored replies of a run to a question, scored as stored and by the edited question."""

    run_id: str
    run_name: str
    before: float | None
    after: float | None


class KnownValue(msgspec.Struct, frozen=True):
    """The value that the newest run computed for an expectation, if it has computed just this one."""

    expression: str
    value: str | None
    run_id: str = ""
    run_name: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What an edit would do."""

    problem: str = ""
    findings: tuple[Finding, ...] = ()
    rescored: tuple[Rescored, ...] = ()
    # What is computed from the data.
    truth: tuple[KnownValue, ...] = ()
    # Why nothing was scored again.
    note: str = ""
    diff: str = ""


class GoldenFile:
    """The configured golden set, where it is a JSON Lines file."""

    def __init__(self, settings: Settings, questions: str | None, drafts: str | None = None) -> None:
        self._settings = settings
        self._drafts: Path | None = None if drafts is None else settings.folder / drafts
        named = questions or settings.questions
        self.path: Path | None = None if named is None else settings.folder / named
        self._lock, self._draft_lock = Lock(), Lock()

    @property
    def editable(self) -> bool:
        """Whether there is a golden set that can be edited here."""
        return self.path is not None and self.path.suffix == ".jsonl" and self.path.is_file()

    def find(self, *, identity: str | None = None, question: str | None = None) -> GoldenLine | None:
        """The line of a question, by its id or else its wording."""
        for line in self._lines():
            row = _row(line.text)
            if identity is not None and row.get("id") == identity:
                return line
            if question is not None and same_question(str(row.get("question", "")), question):
                return line
        return None

    def get(self, identity: str) -> GoldenLine:
        """The line of a question; raises UnknownNameError if the file has none with this id."""
        found = self.find(identity=identity)
        if found is None:
            raise UnknownNameError(f"{self.path}: no question with the id {identity[:120]!r}")
        return found

    def attempt(self, store: SqlStore, form: GoldenForm) -> Trial:
        """What saving would do: problems, findings, and the scores of stored replies by the edited question."""
        try:
            question = self._parse(form.text)
        except UsageError as error:
            return Trial(problem=str(error))
        before = next((line.text for line in self._lines() if line.number == form.line), "")
        diff = unified_diff(
            [before + "\n"] if before else [],
            [_one_line(form.text) + "\n"],
            f"a/{self._name}",
            f"b/{self._name}",
            n=0,
        )
        findings = lint_questions(QuestionSet(name=self._name, questions=(question,)))
        computed = any(sign in form.text for sign in _COMPUTED)
        return Trial(
            findings=tuple(findings),
            truth=tuple(_known_values(store, question)),
            rescored=() if computed else tuple(self._rescore(store, question)),
            note="Computed expectations are evaluated by the next run, not here." if computed else "",
            diff="".join(diff),
        )

    def save(self, form: GoldenForm) -> Question:
        """Write the line; raises ChangedFileError if it is no longer the one that was edited."""
        question, text = self._parse(form.text), _one_line(form.text)
        with self._lock:
            lines = self._read()
            if form.line:
                old = lines[form.line - 1] if form.line <= len(lines) else ""
                body = old.rstrip("\r\n")
                if _digest(body) != form.digest:
                    raise ChangedFileError(
                        f"{self._name}: line {form.line} changed since you opened it; nothing was saved. Open it again"
                    )
                lines[form.line - 1] = text + old[len(body) :]
            else:
                if lines and not lines[-1].endswith("\n"):
                    lines[-1] += "\n"
                lines.append(text + "\n")
            if sum(_row(line).get("id") == question.id for line in lines) > 1:
                raise UsageError(f"{self._name} has another question with the id {question.id[:120]!r}")
            with atomic_file(self._existing()) as file:
                file.write("".join(lines).encode())
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
            self._parse(form.text)
            row = {**json.loads(form.text), "evidence": draft.document.get("evidence")}
            accepted = accepted_case(row, golden_set(self._existing(), self._settings), author)
            question = self.save(GoldenForm(text=json.dumps(accepted, ensure_ascii=False)))
            self._remove_draft(form.draft)
        return question

    def reject(self, identity: str) -> None:
        """Remove a draft."""
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

    def _existing(self) -> Path:
        if self.path is None:
            raise UsageError("no golden set is configured: set `questions` in answerkey.toml")
        if self.path.suffix != ".jsonl":
            raise UsageError(f"{self._name}: only JSON Lines files (.jsonl) can be edited here")
        return self.path

    def _read(self) -> list[str]:
        """The lines with their ends. A line separator of Unicode inside a text ends no line."""
        path = self._existing()
        try:
            return StringIO(path.read_bytes().decode("utf-8"), newline="\n").readlines()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not in UTF-8; it cannot be edited here") from None

    def _lines(self) -> Sequence[GoldenLine]:
        lines = [line.rstrip("\r\n") for line in self._read()]
        return [
            GoldenLine(number, text, _digest(text)) for number, text in enumerate(lines, 1) if text.strip()
        ]

    def _parse(self, text: str) -> Question:
        try:
            row = decode_strict_json(text.encode())
            if not isinstance(row, dict):
                raise ValueError("a question is a JSON object")
            return parse_question(row, registry=self._settings.scorer_registry)
        except ValueError as error:
            raise UsageError(f"invalid question: {error}") from None

    def _rescore(self, store: SqlStore, question: Question) -> list[Rescored]:
        grader = make_grader(self._settings.scoring, self._settings)
        found = []
        for point in question_history(store, question.id, limit=_RUNS):
            trials = store.results_of(store.find_run(point.run_id), question.id)
            totals = [grader.grade(question, trial.replies).total for trial in trials]
            found.append(Rescored(point.run_id, point.run_name, point.score, mean_score(totals)))
        return found


def _known_values(store: SqlStore, question: Question) -> Iterator[KnownValue]:
    """What is computed for a question, with the newest run's values: nothing is queried or called from a browser."""
    expected = [one for turn in question.asks for one in turn.expected_keywords]
    computed = [one.described for one in expected if isinstance(one, ComputedExpectation)]
    newest = next(iter(question_history(store, question.id, limit=1)), None) if computed else None
    known = {}
    if newest is not None:
        [first, *_] = store.results_of(store.find_run(newest.run_id), question.id)
        known = first.question.computed_values
    for expression in computed:
        if newest is None or expression not in known:
            yield KnownValue(expression, None)
        else:
            yield KnownValue(expression, ", ".join(known[expression]), newest.run_id, newest.run_name)


def _one_line(text: str) -> str:
    """A question as one line; one that is a line already stays unchanged."""
    stripped = text.strip()
    if "\n" not in stripped and "\r" not in stripped:
        return stripped
    return json.dumps(json.loads(stripped), ensure_ascii=False)


def _row(text: str) -> dict[str, object]:
    try:
        row = json.loads(text)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
