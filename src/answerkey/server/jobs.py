"""Runs that are started on the dashboard: one queue, one child process at a time, the same command as on a terminal.

A chatbot's code never runs in the server's process. Only targets and the golden set of the configuration can be used.
"""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Lock, Thread
from typing import Annotated, Literal

import msgspec

from answerkey.config import Settings
from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.fault import FaultKind
from answerkey.model.run import RunInfo
from answerkey.store.database import now
from answerkey.store.sql import RunFilter, RunTable, SqlStore
from answerkey.text.normalise import one_line

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
