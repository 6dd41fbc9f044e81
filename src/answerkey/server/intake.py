"""What programs and people hand to the server: feedback, production replies, spans, and runs to start.

Runs that are started on the dashboard are in one queue, one child process at a time, by the same command as on a terminal. A
chatbot's code never runs in the server's process. Only targets and the golden set of the configuration can be used.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock, Thread
from typing import Annotated, Any, Literal

import msgspec

from answerkey.config import Settings
from answerkey.datasets.conversion import Scale, plain_feedback
from answerkey.datasets.golden_sets import EXPECTATION_FIELDS
from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.judgement import COMMENT_LIMIT, Feedback, ProductionReply
from answerkey.model.reply import FaultKind, Reply
from answerkey.model.run import RunInfo
from answerkey.observe.observations import Unread, join_observations
from answerkey.observe.observers import Answer, HeldTrace, OverfullError, Receiver
from answerkey.runs.production import ProductionGrading
from answerkey.server.access import Visitor
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, new_id
from answerkey.store.production import METADATA_WIDTH, ProductionReplies
from answerkey.store.sql import RunFilter, RunTable, SqlStore
from answerkey.text.dates import read_moment
from answerkey.text.normalise import one_line
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import NAMES_READ, reply_from_payload

# Jobs that are remembered, and that may wait.
_MOST = 50
_MOST_WAITING = 10
# Characters of what a failed command printed last.
_ENDING = 600
# How the tag begins by which the run of a job is found.
JOB_TAG = "job-"


class JobForm(msgspec.Struct, frozen=True, kw_only=True):
    """What to start or to cancel."""

    action: Literal["run", "faults", "resume", "again", "align", "cancel"]
    # run and faults: a configured target.
    target: Annotated[str, msgspec.Meta(max_length=200)] = ""
    name: Annotated[str, msgspec.Meta(max_length=80)] = ""
    # faults: the number of faults for each question.
    repeat: Annotated[int, msgspec.Meta(ge=1, le=20)] = 1
    # faults: one kind only.
    kind: FaultKind | Literal[""] = ""
    # resume and again: a run; again: one of its questions.
    run: Annotated[str, msgspec.Meta(max_length=200)] = ""
    question: Annotated[str, msgspec.Meta(max_length=2_000)] = ""
    # align: the edited rubric of a run's judge, as JSON.
    rubric: Annotated[str, msgspec.Meta(max_length=20_000)] = ""
    # cancel: a job.
    job: Annotated[str, msgspec.Meta(max_length=40)] = ""


class Job(msgspec.Struct, kw_only=True):
    """A command of the queue."""

    id: str
    # What it does.
    words: str
    arguments: tuple[str, ...]
    author: str
    created_at: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
    # What a failed one printed last.
    problem: str = ""
    # The run that it resumes, or whose judge it measures; otherwise its run has the tag.
    run: str = ""
    # A rubric that it grades by.
    rubric: str = ""

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("waiting", "running")


class JobQueue:
    """Runs jobs one after another."""

    def __init__(self, settings: Settings, store_url: str | None) -> None:
        self._settings = settings
        self._store_url = store_url
        self._lock = Lock()
        self._jobs: list[Job] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._busy = False

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that may be asked: those of the configuration."""
        default = [] if self._settings.target is None else [self._settings.target]
        return tuple(dict.fromkeys([*default, *self._settings.targets]))

    @property
    def jobs(self) -> list[Job]:
        """All jobs, newest first."""
        with self._lock:
            return self._jobs[::-1]

    def run_of(self, store: SqlStore, job: Job) -> RunInfo | None:
        """The run of a job, once it has begun."""
        if job.run:
            return store.find_run(job.run)
        # Runs of faults have no tags: the job is in their names.
        faulted = job.arguments[0] == "faults"
        wanted = RunFilter(text=f"{job.id}-faulted") if faulted else RunFilter(tag=f"{JOB_TAG}{job.id}")
        rows, _ = RunTable(store).page(wanted, limit=1)
        return rows[0].info if rows else None

    def active_job(self, info: RunInfo) -> Job | None:
        """The job that asks a run's questions now."""
        return next((job for job in self.jobs if job.active and _asks(job, info)), None)

    def start(self, store: SqlStore, form: JobForm, author: str) -> Job:
        """Add a job; raises UsageError for what is not configured."""
        job_id = secrets.token_hex(4)
        if form.action == "resume":
            info = store.find_run(form.run)
            self._check_target(info.target_spec or info.target)
            words, link = f"resume {one_line(info.name, 60)}", info.experiment
            # One of the two runs of a pass cannot go on alone.
            command = ("resume",) if link is None else ("faults" if link.faults else "ab", "--resume")
            return self._add(job_id, words, (*command, info.id), author, run=info.id)
        if form.action == "align":
            info = store.find_run(form.run)
            _check_rubric(form.rubric)
            words = f"grade labelled replies of {one_line(info.name, 60)} by an edited rubric"
            return self._add(
                job_id, words, ("judge", "align", info.id), author, run=info.id, rubric=form.rubric
            )
        chosen: tuple[str, ...] = ()
        if form.action == "again":
            info = store.find_run(form.run)
            target = info.target_spec or info.target
            words = f"ask {one_line(form.question, 60)} again, {form.repeat} times"
            # A name may hold anything: it is one argument, and never a shell's.
            chosen = ("--where", f"id={form.question}")
        else:
            target, words = form.target, f"run {one_line(form.target, 60)}"
        self._check_target(target)
        if self._settings.questions is None:
            raise UsageError("no golden set is configured: set `questions` in answerkey.toml")
        if form.action == "faults":
            name = f"{form.name.strip() or 'faults'} {job_id}"
            kinds = ("--kinds", form.kind) if form.kind else ()
            words = f"faults of {one_line(target, 60)}"
            arguments = (
                "faults",
                "--target",
                target,
                *kinds,
                "--per-question",
                str(form.repeat),
                "--name",
                name,
            )
            return self._add(job_id, words, arguments, author)
        named = ("--name", form.name) if form.name.strip() else ()
        arguments = ("run", "--target", target, *chosen, "--repeat", str(form.repeat), *named)
        return self._add(job_id, words, (*arguments, "--tag", f"{JOB_TAG}{job_id}"), author)

    def cancel(self, job_id: str) -> None:
        """Stop a job; its run can be resumed."""
        with self._lock:
            job = next((one for one in self._jobs if one.id == job_id), None)
            if job is None:
                raise UnknownNameError(f"no job {job_id!r}")
            if job.active:
                running = job.state == "running"
                job.state = "cancelled"
                if running and self._child is not None:
                    # As Ctrl-C on a terminal.
                    self._child.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Cancel everything; interrupted runs can be resumed."""
        for job in self.jobs:
            if job.active:
                self.cancel(job.id)

    def _check_target(self, target: str) -> None:
        if target not in self.targets:
            known = ", ".join(self.targets) or "none is; add one under [targets] in answerkey.toml"
            raise UsageError(f"target {target[:80]!r} is not configured; configured: {known}")

    def _add(
        self, job_id: str, words: str, arguments: Sequence[str], author: str, run: str = "", rubric: str = ""
    ) -> Job:
        job = Job(
            id=job_id,
            words=words,
            # No argument of a command has a NUL.
            arguments=tuple(argument.replace("\x00", "") for argument in arguments),
            author=author,
            created_at=now(),
            run=run,
            rubric=rubric,
        )
        with self._lock:
            if sum(one.active for one in self._jobs) >= _MOST_WAITING:
                raise UsageError(f"{_MOST_WAITING} jobs wait already; cancel one first")
            ended = [one for one in self._jobs if not one.active]
            for old in ended[: max(0, len(self._jobs) - _MOST + 1)]:
                self._jobs.remove(old)
            self._jobs.append(job)
            if not self._busy:
                self._busy = True
                Thread(target=self._work, daemon=True).start()
        return job

    def _work(self) -> None:
        while True:
            with self._lock:
                job = next((one for one in self._jobs if one.state == "waiting"), None)
                if job is None:
                    self._busy = False
                    return
                job.state = "running"
            self._run(job)

    def _run(self, job: Job) -> None:
        command = [sys.executable, "-m", "answerkey", *job.arguments]
        # Not as an argument: the address may have a password, and arguments are visible to other users of the machine.
        store = {} if self._store_url is None else {"ANSWERKEY_STORE": self._store_url}
        # A file, not a pipe: an unread pipe would stop the child.
        with TemporaryFile() as printed, TemporaryDirectory() as folder:
            if job.rubric:
                rubric = Path(folder, "edited.json")
                rubric.write_text(job.rubric, encoding="utf-8")
                command += ["--judge-rubric", str(rubric)]
            with self._lock:
                if job.state == "cancelled":
                    return
                self._child = subprocess.Popen(  # noqa: S603 - a list of arguments, without a shell
                    command,
                    cwd=Path(self._settings.folder).resolve(),
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C on the server's terminal is not meant for it.
                    start_new_session=True,
                    env={**os.environ, "NO_COLOR": "1", **store},
                )
            status = self._child.wait()
            with self._lock:
                self._child = None
                # 1: a gate failed, 4: inconclusive; the run ended, also if it was cancelled too late.
                if status in (0, 1, 4):
                    job.state = "done"
                elif job.state == "running":
                    job.state = "failed"
                if job.state == "failed":
                    size = printed.seek(0, os.SEEK_END)
                    printed.seek(max(0, size - _ENDING))
                    job.problem = one_line(printed.read().decode("utf-8", "replace"), _ENDING)


def _asks(job: Job, info: RunInfo) -> bool:
    """Whether a run is that of a job; a run of faults has the job's id in its name."""
    return job.run == info.id or f"{JOB_TAG}{job.id}" in info.tags or f" {job.id}-" in info.name


def _check_rubric(text: str) -> None:
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"the rubric is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise UsageError("the rubric must be a JSON object with criteria")


_MOST_REPLIES = 500
# In a reply, `tools` are the tools that it used.
_EXPECTATIONS = EXPECTATION_FIELDS - {"tools"}
_NAME_LIMIT = 200
_ID_LIMIT = 400
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=_ID_LIMIT)]
_MOST_BYTES = 64 * 1024 * 1024
# Seconds that a trace waits for its reply.
_HELD_S = 900.0


class KeyUsedError(UsageError):
    """A sender's idempotency key was used before, for something else."""


class GivenFeedback(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/feedback`: a verdict, and at least one id of the reply that it is about."""

    # "up", "down", true, false, or a number from 0 to 1.
    value: str | float | bool
    # The chatbot's own id of the reply; `reply_id` and `message_id` are the same.
    response_id: _Id | None = None
    reply_id: _Id | None = None
    message_id: _Id | None = None
    trace_id: _Id | None = None
    # The last reply of the conversation is meant.
    conversation_id: _Id | None = None
    comment: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] | None = None
    # What the reply should have been.
    correction: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] | None = None
    author: _Id | None = None
    question: Annotated[str, msgspec.Meta(max_length=COMMENT_LIMIT)] | None = None
    category: _Id | None = None
    # The time of the verdict in ISO 8601; default: now.
    created_at: Annotated[str, msgspec.Meta(max_length=_NAME_LIMIT)] | None = None
    # The reply itself, as in `POST /api/replies`; stored unless the store has it.
    reply: dict[str, Any] | None = None
    # A repeated key of the same sender refers to the same verdict.
    idempotency_key: _Id | None = None


class FeedbackReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The response: how the verdict was stored."""

    id: str
    # False: the sender used the idempotency key before.
    created: bool
    # False: no stored reply has this id yet; the verdict is linked when the reply arrives.
    matched: bool
    value: float
    question: str | None = None
    note: str | None = None


class GivenFeedbackBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/feedback/batch`: verdicts that a server forwards together."""

    feedback: Annotated[list[GivenFeedback], msgspec.Meta(min_length=1, max_length=_MOST_REPLIES)]


class FeedbackBatchReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The response: how each verdict was stored, in the order of the request."""

    receipts: tuple[FeedbackReceipt, ...]


class GivenReplies(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/replies`: several replies; a single one may also be sent as the body itself."""

    replies: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=_MOST_REPLIES)]


class RepliesReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """The response: the ids of the replies, and how many earlier verdicts were linked to them."""

    ids: tuple[str, ...]
    # Those that were already stored; they are not changed.
    known: tuple[str, ...]
    feedback_matched: int
    # Replies that are errors, by the same detector that grades runs.
    errors: int


class TraceIntake:
    """Recently received traces, held until their replies arrive."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], HeldTrace] = {}
        self._bytes = 0
        self._lock = Lock()

    def receive(self, sender: str, signal: str, content_type: str, encoding: str, body: bytes) -> Answer:
        """The answer to an export request."""
        return Receiver(_FromSender(self, sender)).receive(signal, content_type, encoding, body)

    def take(self, sender: str, items: list[Unread]) -> None:
        """Hold spans, all or none; raises OverfullError if there is no room."""
        with self._lock:
            self._drop_old()
            if self._bytes + sum(item.size for item in items) > _MOST_BYTES:
                raise OverfullError
            for item in items:
                held = self._held.setdefault((sender, item.trace_id), HeldTrace(None))
                before = held.size
                held.add(item)
                self._bytes += held.size - before

    def join(self, sender: str, reply: Reply) -> Reply:
        """A reply with the spans of its trace that the same sender sent before."""
        with self._lock:
            # Not removed: the reply may be sent again if another one in the same request is refused.
            held = self._held.get((sender, (reply.trace_id or "").lower()))
            seen = None if held is None else held.read(held.lacks()).observation
        return reply if seen is None else join_observations(reply, [seen])

    def _drop_old(self) -> None:
        oldest = time.monotonic() - _HELD_S
        for key in [key for key, held in self._held.items() if held.last < oldest]:
            self._bytes -= self._held.pop(key).size


class _FromSender:
    """The intake of one sender."""

    def __init__(self, intake: TraceIntake, sender: str) -> None:
        self._intake = intake
        self._sender = sender

    def take(self, items: list[Unread], without_span: int = 0) -> None:
        self._intake.take(self._sender, items)


class Intake:
    """Stores feedback and replies."""

    def __init__(self, grading: ProductionGrading, traces: TraceIntake) -> None:
        self._grading = grading
        self._traces = traces

    def feedback(
        self,
        store: SqlStore,
        feedback_body: GivenFeedback,
        who: Visitor,
        *,
        foreign: bool = False,
        header_key: str | None = None,
    ) -> FeedbackReceipt:
        """Store a verdict, whether or not its reply is known. A site or a `foreign` page cannot change an earlier one."""
        row = _without_nul(msgspec.to_builtins(feedback_body))
        row["idempotency_key"] = row["idempotency_key"] or (header_key or "").replace("\x00", "") or None
        sent_reply = row.pop("reply")
        sent_at = row.pop("created_at")
        read = plain_feedback(row, Scale())
        fresh = msgspec.structs.replace(
            read,
            id=new_id(),
            created_at=_event_time(sent_at),
            source="user",
            sender=who.sender,
            idempotency_key=row["idempotency_key"],
        )
        if sent_reply is not None:
            self._store_sent_reply(store, sent_reply, fresh, who)
        may_change = who.role != "site" and not foreign
        saved, created = FeedbackStore(store).add(fresh, change=may_change)
        if not created and not may_change and not _same_verdict(saved, fresh):
            raise KeyUsedError("this idempotency key was used for another verdict, which is not changed")
        note = (
            None
            if saved.matched
            else "no stored reply has this id; the verdict is stored and will be matched when the reply arrives"
        )
        return FeedbackReceipt(
            id=saved.id,
            created=created,
            matched=saved.matched,
            value=saved.value,
            question=saved.question,
            note=note,
        )

    def replies(self, store: SqlStore, rows: Sequence[Mapping[str, Any]], who: Visitor) -> RepliesReceipt:
        """Grade and store new production replies."""
        self._grading.refresh()
        read = [self._reply(row, who, f"reply {number}: ") for number, row in enumerate(rows, start=1)]
        added = ProductionReplies(store).add(read)
        new = set(added.new)
        return RepliesReceipt(
            ids=tuple(reply.id for reply in read),
            known=tuple(reply.id for reply in read if reply.id not in new),
            feedback_matched=added.linked,
            errors=sum(reply.scorecard is not None and reply.scorecard.error is not None for reply in read),
        )

    def _store_sent_reply(
        self, store: SqlStore, sent_reply: dict[str, Any], verdict: Feedback, who: Visitor
    ) -> None:
        """Store the reply that was sent with a verdict, unless the store has it."""
        if verdict.response_id is None:
            raise UsageError("a verdict with a reply needs the reply's response_id")
        if FeedbackStore(store).knows_reply(verdict.response_id):
            return
        ids = {"response_id": verdict.response_id, "trace_id": verdict.trace_id}
        ids["conversation_id"] = verdict.conversation_id
        row = {**sent_reply, **{name: value for name, value in ids.items() if value is not None}}
        row.setdefault("question", verdict.question)
        ProductionReplies(store).add([self._reply(row, who, "reply: ")])

    def _reply(self, row: Mapping[str, Any], who: Visitor, prefix: str) -> ProductionReply:
        asked = row.get("question")
        if not isinstance(asked, str) or not asked.strip():
            raise UsageError(f'{prefix}"question" is missing; send what the user asked')
        expected = next((name for name in sorted(_EXPECTATIONS) if row.get(name)), None)
        if expected is not None:
            # A sender must not decide the score, nor send expensive patterns.
            raise UsageError(
                f"{prefix}{expected} is not accepted from senders; replies are graded by the golden set in "
                "[server] questions"
            )
        payload = {name: value for name, value in row.items() if name != "question"}
        reply = self._traces.join(who.sender, reply_from_payload(payload, context=QuestionContext(asked)))
        identity = reply.response_id or _first_text(row, "reply_id", "message_id", "id") or new_id()
        sent_at = row.get("created_at")
        if sent_at is not None and not isinstance(sent_at, str):
            raise UsageError(f"{prefix}created_at: use a time such as 2026-11-16T08:30:00Z")
        return self._grading.grade(
            ProductionReply(
                id=_plain(identity, _ID_LIMIT),
                created_at=_event_time(sent_at, prefix),
                received_at=now(),
                sender=who.sender,
                model=_short_text(row, "model"),
                version=_short_text(row, "version"),
                question=_plain(asked, COMMENT_LIMIT),
                reply=msgspec.structs.replace(reply, response_id=_plain(identity, _ID_LIMIT)),
                category=_short_text(row, "category"),
                metadata=_metadata(row),
            )
        )


def _event_time(sent_at: str | None, prefix: str = "") -> str:
    """The time of an event as sent; raises UsageError if it is in the future."""
    if sent_at is None:
        return now()
    try:
        moment = read_moment(sent_at)
    except UsageError as error:
        raise UsageError(f"{prefix}{error}") from None
    if moment > (datetime.now(UTC) + timedelta(days=1)).isoformat():
        raise UsageError(f"{prefix}created_at {sent_at[:60]!r} is in the future")
    return moment


def _same_verdict(stored: Feedback, fresh: Feedback) -> bool:
    fields = ("value", "comment", "correction", "response_id", "trace_id", "conversation_id")
    return all(getattr(stored, name) == getattr(fresh, name) for name in fields)


def _without_nul(row: dict[str, Any]) -> dict[str, Any]:
    """Remove NUL, which databases refuse, rather than refuse the verdict."""
    return {
        name: value.replace("\x00", "") if isinstance(value, str) else value for name, value in row.items()
    }


def _plain(text: str, limit: int) -> str:
    # No database takes a lone surrogate, and PostgreSQL no NUL.
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:limit]


# Fields of a reply that are read, or refused.
_READ = (
    NAMES_READ
    | EXPECTATION_FIELDS
    | {
        *(
            "id",
            "reply_id",
            "message_id",
            "question",
            "created_at",
            "model",
            "version",
            "category",
            "metadata",
        ),
    }
)
_MOST_METADATA = 20


def _metadata(row: Mapping[str, Any]) -> dict[str, str]:
    """What else was sent: the plain values of `metadata`, and of fields that mean nothing here."""
    given = row.get("metadata")
    listed = [*(given.items() if isinstance(given, dict) else ())]
    listed += [(name, value) for name, value in row.items() if name not in _READ]
    plain = [
        (str(name), str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in listed
        if isinstance(value, str | int | float) and value != ""
    ]
    return {
        one_line(_plain(name, METADATA_WIDTH), METADATA_WIDTH): one_line(
            _plain(value, METADATA_WIDTH), METADATA_WIDTH
        )
        for name, value in plain[:_MOST_METADATA]
    }


def _short_text(row: Mapping[str, Any], name: str) -> str | None:
    found = _first_text(row, name)
    return None if found is None else _plain(found, _NAME_LIMIT) or None


def _first_text(row: Mapping[str, Any], *names: str) -> str | None:
    return next(
        (str(row[name]) for name in names if isinstance(row.get(name), str | int) and row[name] != ""), None
    )
