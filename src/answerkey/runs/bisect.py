"""`bisect`: which version of several in a row made a chatbot worse, found in spite of flaky replies.

Each commit's chatbot is started in a git worktree of its own and asked by the one run pipeline.
The user's own checkout is never touched. Each commit and set of questions is one stored run that grows by rounds, so that the
same command continues an interrupted bisection: it makes the same choices from the stored replies.

Questions that flipped between the ends are asked again there first, so that chance flips drop out; then every version is decided
by a sequential test (`stats/paired.py`) of whether its replies are nearer to the good or to the bad end. At last the named
version and the one before it are asked again, in turns: a difference between them now is not drift of a model or of data in
the meantime, and without it no version is named.
"""

import asyncio
import math
import random
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from signal import SIGTERM
from statistics import fmean
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import msgspec

from answerkey.config import settings_hash
from answerkey.errors import InterruptedRunError, TargetUnreachableError, UnknownNameError, UsageError
from answerkey.model.question import QuestionSet
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.observe.observations import child_environment
from answerkey.protocols import NO_PROGRESS, BaseTarget
from answerkey.runs.context import RunContext
from answerkey.runs.recorder import replay_journal
from answerkey.runs.run import Arm, ask_arm, new_run, reopen_run
from answerkey.runs.stored import BISECT_TAG, is_of_bisection, load_stored_run, open_configured_store
from answerkey.stats.paired import AnytimeTest
from answerkey.store.database import claim_run
from answerkey.store.sql import SqlStore
from answerkey.targets.command_target import end_session, ended_within
from answerkey.targets.resolve import kind_and_rest, run_git

# Chance of naming a wrong commit.
ERROR_RATE = 0.05
# Most replies of one commit in one test, and about how many are asked at a time.
_MOST_REPLIES = 120
_BLOCK = 10
# Looks at both ends that show which questions flip again: most questions, those that lost most, and rounds. Further looks are
# left out once all questions flip each time.
_SCREENING = ((30, 2), (30, 2), (10, 4), (10, 8))
_MOST_QUESTIONS = 10
# A smaller difference of the ends, as a share of what the questions lost at first, is not worth more replies.
_LEAST_DIFFERENCE = 0.25
# A commit with a smaller share of the whole difference is not the single cause.
_LEAST_SHARE = 0.5


class UntestableCommitError(TargetUnreachableError):
    """A commit whose chatbot cannot be asked, so that the bisection skips it."""


class Commit(msgspec.Struct, frozen=True):
    """A commit."""

    hash: str
    subject: str

    @property
    def short(self) -> str:
        return self.hash[:10]


class TestedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that was tested, and what came out."""

    # Not collected by pytest.
    __test__ = False
    commit: str
    subject: str
    verdict: Literal["good", "bad", "unclear", "skipped"]
    # Mean of its scores, 0 as at the bad end and 1 as at the good one; None if it was skipped.
    like_good: float | None = None
    replies: int = 0
    # Why it was skipped.
    because: str = ""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The named commit and the one before it, asked in turns after the search."""

    before: str
    # Of the scores as shares of what the questions lost: the commit before minus the named one.
    difference: float
    low: float
    high: float
    # Part of the difference of both ends that the named commit makes.
    share: float


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a bisection."""

    good: Commit
    bad: Commit
    # None: no single commit.
    commit: Commit | None
    posterior: float | None
    because: str
    # The commits that may have made the difference.
    candidates: tuple[Commit, ...]
    questions: tuple[str, ...]
    tested: tuple[TestedCommit, ...]
    control: Control | None
    # Replies that were used, those from the store included.
    replies: int
    error_rate: float

    def to_dict(self) -> dict[str, Any]:
        """The document of `bisect --json`."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        return document


# The search, over commits as positions from 0 (good) to `last` (bad).

# Question → its score in one round; None if it could not be scored.
Round = Mapping[str, float | None]


class Asker(Protocol):
    """Asks commits."""

    async def ask(self, position: int, questions: tuple[str, ...], rounds: int) -> list[Round]:
        """The scores of the next rounds of these questions; raises UntestableCommitError."""


class _NoSingleCommitError(Exception):
    """The search ends without a commit; the message says why."""


class Search:
    """A bisection of positions."""

    def __init__(self, asker: Asker, last: int, *, error_rate: float = ERROR_RATE, seed: int = 0) -> None:
        self._asker = asker
        self._last = last
        self._error_rate = error_rate
        self._seed = seed
        self.questions: tuple[str, ...] = ()
        # Question → its mean scores so far at both ends: the scale on which new scores are 1 or 0.
        self._ends: dict[str, tuple[float, float]] = {}
        # Position → scores on that scale.
        self.values: dict[int, list[float]] = {}
        self.verdicts: dict[int, Literal["good", "bad", "unclear", "skipped"]] = {0: "good", last: "bad"}
        # Position → why it was skipped.
        self.skipped: dict[int, str] = {}
        # The positions that may be the first bad one.
        self.candidates = range(1, last + 1)
        self.control: tuple[AnytimeTest, float] | None = None
        self.because = ""

    async def run(self, flipped: Mapping[str, tuple[float, float]]) -> int | None:
        """The first bad position, from questions with their mean scores at both ends; None: no single one."""
        try:
            return await self._run(flipped)
        except _NoSingleCommitError as reason:
            self.because = str(reason)
            return None

    async def _run(self, flipped: Mapping[str, tuple[float, float]]) -> int:
        if not flipped:
            raise _NoSingleCommitError("no question is worse at the bad commit")
        await self._screen(flipped)
        ends = await self._compare(0, self._last)
        if not ends.decided:
            raise _NoSingleCommitError("the difference of the good and the bad commit did not show up again")
        whole = self._mean(0) - self._mean(self._last)
        found = await self._halve((self._mean(0) + self._mean(self._last)) / 2)
        test = await self._compare(found - 1, found)
        self.control = test, test.mean / whole
        if not test.decided:
            raise _NoSingleCommitError(
                "the last commit before it and the first bad one did not differ when they were asked again: a model or data "
                "may have changed meanwhile"
            )
        if test.mean < _LEAST_SHARE * whole:
            raise _NoSingleCommitError("the score fell in several steps, none of them most of the difference")
        if self.posterior(found) < 1.0 - self._error_rate:
            raise _NoSingleCommitError("the replies do not single one out")
        return found

    async def _screen(self, flipped: Mapping[str, tuple[float, float]]) -> None:
        """Drop questions that flipped by chance; their replies so far chose them, and do not count as evidence."""
        drops = {name: good - bad for name, (good, bad) in flipped.items()}
        chosen = sorted(drops, key=lambda name: -drops[name])
        seen: dict[int, dict[str, list[float]]] = {0: {}, self._last: {}}
        for most, rounds in _SCREENING:
            self.questions = tuple(sorted(chosen[:most]))
            for position, scores in seen.items():
                for one in await self._asker.ask(position, self.questions, rounds):
                    for name, score in one.items():
                        if score is not None:
                            scores.setdefault(name, []).append(score)
            for name in self.questions:
                if all(name in scores for scores in seen.values()):
                    good, bad = (fmean(seen[position][name]) for position in (0, self._last))
                    self._ends[name] = good, bad
                else:
                    self._ends[name] = (0.0, 0.0)
            chosen = [name for name in self.questions if self._drop(name) >= 0.5 * drops[name] - 1e-9]
            chosen.sort(key=lambda name: -self._drop(name))
            if not chosen:
                raise _NoSingleCommitError("no question that flipped did so again")
            if all(self._drop(name) >= drops[name] - 1e-9 for name in chosen):
                break
        self.questions = tuple(sorted(chosen[:_MOST_QUESTIONS]))

    def _drop(self, name: str) -> float:
        good, bad = self._ends[name]
        return good - bad

    async def _compare(self, first: int, second: int) -> AnytimeTest:
        """Ask two positions in turns, until their difference is clear or is surely small."""
        test = AnytimeTest(level=1.0 - self._error_rate)
        for _ in range(self._most_blocks):
            pairs = zip(await self._values(first), await self._values(second), strict=True)
            for before, after in pairs:
                if before is not None and after is not None:
                    test.add(before - after)
            if test.decided or test.interval().high < _LEAST_DIFFERENCE:
                break
        if test.verdict == "worse":
            raise _NoSingleCommitError("the bad commit is better now")
        return test

    async def _halve(self, middle: float) -> int:
        """Halve the range between the last good and the first bad position; returns the first bad one."""
        low, high = 0, self._last
        level = 1.0 - self._error_rate / max(1, math.ceil(math.log2(self._last + 1)))
        while open_positions := [one for one in range(low + 1, high) if one not in self.skipped]:
            position = min(open_positions, key=lambda one: abs(2 * one - low - high))
            try:
                verdict = await self._decide(position, middle, level)
            except UntestableCommitError as error:
                verdict, self.skipped[position] = "skipped", str(error)
            self.verdicts[position] = verdict
            if verdict == "good":
                low = position
            elif verdict == "bad":
                high = position
            self.candidates = range(low + 1, high + 1)
            if verdict == "unclear":
                raise _NoSingleCommitError("a commit is neither like the good one nor like the bad one")
        if high - low > 1:
            raise _NoSingleCommitError(
                "the commits between the last good and the first bad one cannot be asked"
            )
        return high

    async def _decide(
        self, position: int, middle: float, level: float
    ) -> Literal["good", "bad", "unclear", "skipped"]:
        test = AnytimeTest(level=level)
        reach = max(middle, 1.0 - middle)
        for _ in range(self._most_blocks):
            for value in await self._values(position):
                if value is not None:
                    test.add((value - middle) / reach)
            if test.decided:
                return "good" if test.verdict == "better" else "bad"
        return "unclear"

    @property
    def _block_rounds(self) -> int:
        return -(-_BLOCK // len(self.questions))

    @property
    def _most_blocks(self) -> int:
        return -(-_MOST_REPLIES // (self._block_rounds * len(self.questions)))

    async def _values(self, position: int) -> list[float | None]:
        """The next block of scores, on the scale of the ends.

        They are in one random order at every position: drawing questions without replacement never raises the expected
        wealth of a bet above that of independent draws (Maclaurin's inequality).
        """
        rounds = await self._asker.ask(position, self.questions, self._block_rounds)
        values: list[float | None] = []
        for one in rounds:
            values += [self._value(name, one.get(name)) for name in self.questions]
        self.values.setdefault(position, []).extend(value for value in values if value is not None)
        order = list(range(len(values)))
        random.Random(self._seed).shuffle(order)
        return [values[index] for index in order]

    def _value(self, name: str, score: float | None) -> float | None:
        good, bad = self._ends[name]
        return None if score is None else min(1.0, max(0.0, (score - bad) / (good - bad)))

    def _mean(self, position: int) -> float:
        return fmean(self.values[position])

    def posterior(self, position: int) -> float:
        """The probability that the change is at a position, given all replies.

        A reply is like the good end or not, with one unknown rate (uniform prior) before the change and one after it. No
        change at all has probability 1/2 at first, each position an equal part of the other half.
        """
        weights = [math.log(0.5) + self._log_likelihood(range(self._last + 1))]
        for change in range(1, self._last + 1):
            parts = range(change), range(change, self._last + 1)
            weights.append(math.log(0.5 / self._last) + math.fsum(map(self._log_likelihood, parts)))
        top = max(weights)
        return math.exp(weights[position] - top) / math.fsum(math.exp(weight - top) for weight in weights)

    def _log_likelihood(self, positions: range) -> float:
        values = [value for position in positions for value in self.values.get(position, ())]
        like_good = sum(value >= 0.5 for value in values)
        return (
            math.lgamma(like_good + 1)
            + math.lgamma(len(values) - like_good + 1)
            - math.lgamma(len(values) + 2)
        )


# How long `start` may take until the chatbot answers, and then to end.
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_END_SECONDS = 5.0
_SETUP_SECONDS = 1800.0
_GIT_SECONDS = 300.0


class Checkouts:
    """Git worktrees of commits in a temporary folder; the user's own checkout is never touched."""

    def __init__(self, folder: Path, setup: str | None = None) -> None:
        try:
            self.root = Path(run_git(folder, "rev-parse", "--show-toplevel").strip()).resolve()
        except (OSError, subprocess.SubprocessError):
            raise UsageError(
                f"{folder} is not in a git repository; name the chatbot's with --repo DIR"
            ) from None
        self.setup = setup
        self._folder = Path()
        # Hash → its worktree, or why it has none.
        self._made: dict[str, Path | str] = {}

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="answerkey-bisect-")).resolve()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError, subprocess.SubprocessError):
            run_git(self.root, "worktree", "prune", seconds=_GIT_SECONDS)

    def find(self, reference: str) -> str | None:
        """The hash of a commit; None if there is none of this name."""
        with suppress(subprocess.CalledProcessError):
            name = f"{reference}^{{commit}}"
            return run_git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", name).strip()
        return None

    def history(self, good: str, bad: str) -> list[Commit]:
        """The commits from good to bad, each the first parent of the next one."""
        try:
            run_git(self.root, "merge-base", "--is-ancestor", good, bad, seconds=_GIT_SECONDS)
        except subprocess.CalledProcessError:
            raise UsageError(
                f"{good[:10]} is not an ancestor of {bad[:10]}; GOOD comes first, then BAD"
            ) from None
        log = ("log", "--first-parent", "--reverse", "--format=%H%x00%s", f"{good}..{bad}")
        first = run_git(self.root, "log", "-1", "--format=%H%x00%s", good)
        lines = (first + run_git(self.root, *log, seconds=_GIT_SECONDS)).splitlines()
        commits = [Commit(*line.split("\0", 1)) for line in lines if line]
        if len(commits) < 2:
            raise UsageError("GOOD and BAD are the same commit; name two")
        return commits

    def path(self, commit: Commit) -> Path:
        """The worktree of a commit, set up."""
        if commit.hash not in self._made:
            self._made[commit.hash] = self._make(commit)
        made = self._made[commit.hash]
        if isinstance(made, str):
            raise UntestableCommitError(made)
        return made

    def _make(self, commit: Commit) -> Path | str:
        path = self._folder / commit.short
        try:
            add = ("worktree", "add", "--detach", "--quiet", str(path), commit.hash)
            run_git(self.root, *add, seconds=_GIT_SECONDS)
        except subprocess.CalledProcessError as error:
            raise UsageError(f"git cannot check out {commit.short}: {_last_line(error.stderr)}") from None
        if self.setup is None:
            return path
        try:
            subprocess.run(  # noqa: S603 - the user's own command
                shlex.split(self.setup),
                cwd=path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SETUP_SECONDS,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            return f"--setup failed: {_last_line(error.stderr or error.stdout)}"
        except (OSError, subprocess.SubprocessError) as error:
            return f"--setup failed: {error}"
        return path


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "no message"


class CommitAsker:
    """Asks the chatbot of each commit: one stored run for each commit and set of questions, which grows by rounds."""

    def __init__(
        self,
        context: RunContext,
        store: SqlStore,
        questions: QuestionSet,
        spec: str,
        checkouts: Checkouts,
        history: Sequence[Commit],
        start: str | None,
        note: Callable[[str], object],
    ) -> None:
        self._context = context
        self._store = store
        self._questions = questions
        self._spec = spec
        self._checkouts = checkouts
        self._history = history
        self._start = start
        self._note = note
        settings = context.settings
        self._table = dict(settings.targets.get(spec) or [kind_and_rest(spec)])
        # Whether answerkey starts it from files.
        self._has_code = "python" in self._table or "cmd" in self._table
        configured = spec in settings.targets or spec == settings.target
        folder = (settings.folder if configured else Path()).resolve()
        inside = folder.is_relative_to(checkouts.root)
        # Where the target's paths begin in a checkout.
        self._place = folder.relative_to(checkouts.root) if inside else Path()
        # Commit → its running chatbot.
        self._open: dict[str, tuple[RunContext, BaseTarget]] = {}
        self._until_closed = AsyncExitStack()
        self._used: dict[tuple[int, tuple[str, ...]], int] = {}
        self._costs: dict[str, float] = {}
        self._runs = {_key(info): info for info in store.list_infos() if is_of_bisection(info)}
        # Positions of which every reply was an error.
        self._failing: set[int] = set()
        self.replies = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._until_closed.aclose()

    async def ask(self, position: int, questions: tuple[str, ...], rounds: int) -> list[Round]:
        """The scores of the next rounds."""
        begin = self._used.get((position, questions), 0)
        end = begin + rounds
        run = await self._run(self._history[position], questions, end)
        self._used[position, questions] = end
        trials = [trial for trial in run.results if begin < trial.number <= end]
        self.replies += len(trials)
        self._check_working(position, run, trials)
        scores: list[dict[str, float | None]] = [{} for _ in range(rounds)]
        for trial in trials:
            scores[trial.number - begin - 1][trial.question.id] = trial.score
        return list(scores)

    def _check_working(self, position: int, run: Run, trials: Sequence[Trial]) -> None:
        """A commit of which nothing works has another fault than the bad one, of which something does."""
        failures = [reply.failure for trial in trials for reply in trial.replies if reply.failure is not None]
        if failures and len(failures) >= sum(len(trial.replies) for trial in trials):
            self._failing.add(position)
        last = len(self._history) - 1
        if run.misconfigured or (
            position in self._failing and last not in self._failing and position != last
        ):
            message = failures[0].message if failures else "it is not configured"
            raise UntestableCommitError(f"every reply is an error: {message}")

    async def _run(self, commit: Commit, names: tuple[str, ...], repeat: int) -> Run:
        wanted = set(names)
        questions = self._questions.subset([one for one in self._questions if one.id in wanted])
        version = settings_hash("bisect", [commit.hash, self._table, self._start, self._checkouts.setup])
        info = self._runs.get((questions.hash, version))
        unchanged = info is not None and info.scoring_hash == self._context.grader.hash
        if info is not None and unchanged and info.status == "complete" and info.repeat >= repeat:
            return self._counted(load_stored_run(self._store, info.id))
        self._note(f"asking {commit.short} {commit.subject}")
        async with AsyncExitStack() as until_asked:
            context, target = await self._chatbot(commit, until_asked)
            run = await self._ask(
                context,
                target,
                questions,
                info or self._new(context, target, questions, commit, version),
                repeat,
            )
        self._runs[questions.hash, version] = run.info
        if run.info.stopped:
            raise InterruptedRunError(f"{run.info.stopped}; give a larger --budget")
        return self._counted(run)

    def _counted(self, run: Run) -> Run:
        """The run, with its cost noted for the budget."""
        self._costs[run.id] = math.fsum(trial.cost or 0.0 for trial in run.results)
        return run

    def _new(
        self, context: RunContext, target: BaseTarget, questions: QuestionSet, commit: Commit, version: str
    ) -> RunInfo:
        """The run of a commit that has none yet; without rounds."""
        name = f"{context.options.name or 'bisect'} {commit.short}"
        info = new_run(context, target, None, questions, name=name)
        seen = msgspec.structs.replace(info.target_version, commit=commit.short, changed=False)
        return msgspec.structs.replace(
            info, repeat=0, target_hash=version, target_version=seen, tags=(*info.tags, BISECT_TAG)
        )

    async def _ask(
        self, context: RunContext, target: BaseTarget, questions: QuestionSet, info: RunInfo, repeat: int
    ) -> Run:
        """Ask the rounds that a run lacks."""
        is_new = info.repeat == 0
        budget = context.options.budget
        if budget is not None:
            others = math.fsum(cost for run_id, cost in self._costs.items() if run_id != info.id)
            options = msgspec.structs.replace(context.options, budget=max(0.0, budget - others))
            context = msgspec.structs.replace(context, options=options)
        with claim_run(self._store.database, info.id) as lease:
            if not is_new:
                replay_journal(self._store, info)
                info = reopen_run(info, context)
            info = msgspec.structs.replace(info, repeat=max(repeat, info.repeat))
            arm = Arm(info=info, target=target, lease=lease, is_new=is_new)
            return await ask_arm(context, self._store, questions, arm)

    async def _chatbot(self, commit: Commit, until_asked: AsyncExitStack) -> tuple[RunContext, BaseTarget]:
        """The running chatbot of a commit. Servers and observers have one address, so that only one may run; others stay."""
        options = self._context.options
        if self._start is not None or options.traces is not None or options.proxy is not None:
            return await until_asked.enter_async_context(self._opened(commit))
        if commit.hash not in self._open:
            self._open[commit.hash] = await self._until_closed.enter_async_context(self._opened(commit))
        return self._open[commit.hash]

    @asynccontextmanager
    async def _opened(self, commit: Commit) -> AsyncIterator[tuple[RunContext, BaseTarget]]:
        """The chatbot of a commit, running in its checkout."""
        checkout = self._checkouts.path(commit)
        place = checkout / self._place
        settings = self._context.settings
        context = msgspec.structs.replace(
            self._context,
            progress=NO_PROGRESS,
            settings=msgspec.structs.replace(
                settings,
                path=str(place / "answerkey.toml"),
                targets={**settings.targets, self._spec: self._table},
            ),
        )
        async with AsyncExitStack() as stack:
            try:
                target = context.target(self._spec)
                if self._start is None:
                    self._check_code(target, checkout)
                elif self._has_code:
                    raise _UnsuitableTargetError(
                        f"target {self._spec} is started without --start; leave it out"
                    )
                else:
                    await stack.enter_async_context(_started(self._start, place, context, self._spec))
                opened = await stack.enter_async_context(target)
            except UntestableCommitError:
                raise
            except (UsageError, TargetUnreachableError) as error:
                if isinstance(error, _UnsuitableTargetError):
                    raise
                raise UntestableCommitError(f"it does not start: {error}") from None
            yield context, opened

    def _check_code(self, target: BaseTarget, checkout: Path) -> None:
        """Refuse a target that would be the same at every commit."""
        if target.code is None and self._has_code:
            raise UntestableCommitError(f"it has no {self._spec}")
        if target.code is None:
            raise _UnsuitableTargetError(
                f"target {self._spec} is not started from a checkout, so every commit would be the same; give the command "
                'that starts it there, e.g. --start "python server.py"'
            )
        if not target.code.resolve().is_relative_to(checkout):
            raise _UnsuitableTargetError(
                f"target {self._spec} runs {target.code}, which is not in the checkout of a commit; use a path relative to the "
                "repository"
            )


def _key(info: RunInfo) -> tuple[str, str]:
    return info.question_set_hash, info.target_hash


class _UnsuitableTargetError(UsageError):
    """A target that is the same at every commit."""


@asynccontextmanager
async def _started(command: str, folder: Path, context: RunContext, spec: str) -> AsyncIterator[None]:
    """A server that runs in a checkout, once it answers."""
    if await _answers(context, spec):
        raise _UnsuitableTargetError(
            f"something answers at target {spec} already; stop it, so that each commit is asked"
        )
    with tempfile.TemporaryFile() as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *shlex.split(command),
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=child_environment(),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UntestableCommitError(f"--start failed: {error}") from None
        try:
            deadline = asyncio.get_running_loop().time() + _START_SECONDS
            while not await _answers(context, spec):
                if process.returncode is not None:
                    output.seek(0)
                    said = _last_line(output.read())
                    raise UntestableCommitError(f"--start ended with exit code {process.returncode}: {said}")
                if asyncio.get_running_loop().time() > deadline:
                    raise UntestableCommitError(f"nothing answers {_START_SECONDS:g} seconds after --start")
                await asyncio.sleep(_POLL_SECONDS)
            yield
        finally:
            end_session(process, SIGTERM)
            await ended_within(process, _END_SECONDS)
            end_session(process)
            await process.wait()


async def _answers(context: RunContext, spec: str) -> bool:
    with suppress(TargetUnreachableError):
        return await context.target(spec).check_reachable()
    return False


# The command


async def find_commit(
    context: RunContext,
    questions: QuestionSet,
    spec: str,
    good: str,
    bad: str,
    *,
    repository: Path | None = None,
    setup: str | None = None,
    start: str | None = None,
    note: Callable[[str], object] = lambda line: None,
) -> Bisection:
    """Find the commit between two, each a commit or a stored run of one; `note` gets a line for each that is asked."""
    store = open_configured_store(context.settings, context.options.store)
    with Checkouts((repository or context.settings.folder).resolve(), setup) as checkouts:
        runs = [_run_named(store, checkouts, reference) for reference in (good, bad)]
        hashes = [
            _commit_of(checkouts, reference, run) for reference, run in zip((good, bad), runs, strict=True)
        ]
        history = checkouts.history(*hashes)
        last = len(history) - 1
        try:
            async with CommitAsker(context, store, questions, spec, checkouts, history, start, note) as asker:
                flipped = await _flipped(asker, questions, last, runs, context)
                search = Search(asker, last, seed=context.options.seed)
                found = await search.run(flipped)
        except UntestableCommitError as error:
            # Of the good or the bad commit: one in the middle is skipped.
            raise TargetUnreachableError(f"{good} and {bad} cannot both be asked: {error}") from None
        except (asyncio.CancelledError, InterruptedRunError) as error:
            # The command that a single run is continued with does not continue the search.
            reason = str(error).partition("; continue with: ")[0] or "interrupted"
            raise InterruptedRunError(f"{reason}; run the same command again to continue") from None
    return _result(search, history, found, asker.replies)


def _run_named(store: SqlStore, checkouts: Checkouts, reference: str) -> Run | None:
    """The stored run of a name that is not a commit's."""
    if checkouts.find(reference) is not None:
        return None
    try:
        return load_stored_run(store, reference)
    except UnknownNameError:
        raise UnknownNameError(f"{reference} is neither a commit of {checkouts.root} nor a run") from None


def _commit_of(checkouts: Checkouts, reference: str, run: Run | None) -> str:
    version = None if run is None else run.info.target_version
    if version is not None and version.changed:
        raise UsageError(f"run {reference} was asked with uncommitted changes; name a commit")
    name = reference if version is None else version.commit
    commit = None if name is None else checkouts.find(name)
    if commit is None:
        raise UsageError(f"run {reference} is of no commit of {checkouts.root}; name a commit")
    return commit


async def _flipped(
    asker: CommitAsker, questions: QuestionSet, last: int, runs: Sequence[Run | None], context: RunContext
) -> dict[str, tuple[float, float]]:
    """The questions that pass at the good end only, else those that score lower at the bad end, with both means."""
    names = tuple(question.id for question in questions)
    means: list[dict[str, float]] = []
    for position, run in zip((0, last), runs, strict=True):
        if run is not None:
            known = {question.content_hash: question.id for question in questions}
            scores = [(known.get(trial.question.content_hash), trial.score) for trial in run.results]
        else:
            rounds = await asker.ask(position, names, context.options.repeat)
            scores = [pair for one in rounds for pair in one.items()]
        by_name: dict[str, list[float]] = {}
        for name, score in scores:
            if name is not None and score is not None:
                by_name.setdefault(name, []).append(score)
        means.append({name: fmean(values) for name, values in by_name.items()})
    good, bad = means
    worse = {
        name: (good[name], bad[name]) for name in names if name in bad and good.get(name, 0.0) > bad[name]
    }
    mark = context.options.scoring.pass_mark
    return {name: ends for name, ends in worse.items() if ends[0] >= mark > ends[1]} or worse


def _result(search: Search, history: Sequence[Commit], found: int | None, replies: int) -> Bisection:
    tested = []
    for position in sorted(search.verdicts):
        values = search.values.get(position)
        tested.append(
            TestedCommit(
                commit=history[position].hash,
                subject=history[position].subject,
                verdict=search.verdicts[position],
                like_good=round(fmean(values), 6) if values else None,
                replies=len(values or ()),
                because=search.skipped.get(position, ""),
            )
        )
    control = None
    if search.control is not None:
        test, share = search.control
        interval = test.interval()
        control = Control(
            before=history[search.candidates[-1] - 1].hash,
            difference=round(test.mean, 6),
            low=round(interval.low, 6),
            high=round(interval.high, 6),
            share=round(share, 6),
        )
    return Bisection(
        good=history[0],
        bad=history[-1],
        commit=None if found is None else history[found],
        posterior=None if found is None else round(search.posterior(found), 6),
        because=search.because,
        candidates=tuple(history[position] for position in search.candidates),
        questions=search.questions,
        tested=tuple(tested),
        control=control,
        replies=replies,
        error_rate=ERROR_RATE,
    )
