"""The small protocols that everything plugs into; each has a registry in `answerkey.plugins`. And progress callbacks."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, Self, TypeAlias, runtime_checkable

import msgspec

from answerkey.model.options import Options
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Failure, Fault, Json, JsonObject, Reply
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Score, ScoreBatch, Scorecard, Trial


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to ask a target."""

    question: str
    # The same for all turns of a conversation, different for every trial.
    conversation_id: str
    # 0 for the first turn.
    turn: int = 0
    # The golden case, for targets that look replies up; a chatbot never sees it.
    question_id: str = ""
    trial: int = 1
    context: str | None = None
    # W3C trace context of this attempt, which identifies the chatbot's spans.
    traceparent: str | None = None
    # What to do to a tool result on purpose; only in a run of `faults`.
    fault: Fault | None = None


class RetryableError(Exception):
    """Raised by a target when asking again may help: the chatbot refused the question before it worked on it.

    Examples are 429, 503 and a refused connection. A target never retries by itself. One that works in steps continues
    from the step that failed when it is asked again.
    """

    def __init__(
        self, failure: Failure, retry_after: float | None = None, so_far: Reply | None = None
    ) -> None:
        super().__init__(failure, retry_after, so_far)
        # The failure of the reply if the retries are used up.
        self.failure = failure
        # Seconds that the chatbot asked to wait; None: unknown.
        self.retry_after = retry_after
        # Steps that are done and not repeated: part of the reply if the retries are used up. Its latency is that of this
        # attempt.
        self.so_far = so_far

    def __str__(self) -> str:
        return self.failure.message


class AskAgainError(RetryableError):
    """Raised by a target when an attempt failed because of another question: it is always asked again.

    Example: a process or event loop that several questions share ended or was blocked by one of them.
    """

    def __init__(
        self,
        failure: Failure,
        retry_after: float | None = None,
        so_far: Reply | None = None,
        *,
        still_works: bool = False,
    ) -> None:
        super().__init__(failure, retry_after, so_far)
        # Whether the chatbot may still work on this attempt.
        self.still_works = still_works


@runtime_checkable
class Target(Protocol):
    """The chatbot under test, as a plug-in or a caller may write it: a question in, a Reply out.

    Inside answerkey every target is a `BaseTarget`: derive from it to get its optional abilities with their defaults.
    A target that does not is adapted once, by `resolve_target`, with whichever of them it has.
    """

    @property
    def name(self) -> str:
        """The name in reports; never contains a secret."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of everything that answerkey knows about it; replies are stored under it."""
        ...

    async def __aenter__(self) -> "Target":
        """Open connections and processes; raises TargetUnreachableError if it cannot be reached at all."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close them."""
        ...

    async def ask(self, ask: Ask) -> Reply:
        """Ask once. A failure may be a Reply with a Failure, or an exception, which the engine turns into one."""
        ...


class BaseTarget(ABC):
    """Base class of all targets, with a default for every optional ability.

    A subclass sets `name` and `fingerprint` and implements `ask`. Wrappers derive from `TargetWrapper`, which forwards
    every member defined here.
    """

    # The name in reports; never contains a secret.
    name: str
    # Hash of everything that answerkey knows about it; replies are stored under it.
    fingerprint: str
    # How many questions it can work on at once; None: any number.
    capacity: int | None = None
    # Replies are recordings that carry their own timings.
    replays: bool = False
    # File or folder of its code, whose git commit identifies the version.
    code: Path | None = None
    # The model and its address, by which the price is found.
    model: str | None = None
    base_url: str = ""
    # Identify the versions of its instructions and of the tools that it is given.
    prompt_hash: str | None = None
    tools_hash: str | None = None
    # Whether it can break a tool of the chatbot (`Ask.fault`) without a proxy.
    takes_faults: bool = False

    async def __aenter__(self) -> Self:
        """Open connections and processes; raises TargetUnreachableError if it cannot be reached at all."""
        return self

    async def __aexit__(self, *exc: object) -> None:  # noqa: B027  # few have anything to close
        """Close them."""

    async def check_reachable(self) -> bool:
        """Connect and disconnect, without sending anything or running code; False: only asking shows whether it works.

        Raises TargetUnreachableError.
        """
        return False

    async def wait_for_room(self, ask: Ask) -> None:  # noqa: B027  # most always have room
        """Wait until it can work on the question; called before the clock of the question starts."""

    @abstractmethod
    async def ask(self, ask: Ask) -> Reply:
        """Ask once. A failure may be a Reply with a Failure, or an exception, which the engine turns into one."""

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        """Add to the reply what was seen from outside; called after the clock has stopped."""
        return reply

    async def so_far(self, ask: Ask) -> Reply | None:
        """The calls and usage of a question that timed out; None if they are unknown."""
        return None

    def warnings(self) -> list[str]:
        """Warnings for the reader of the run."""
        return []


def _forwarded(name: str) -> Any:
    return property(attrgetter(f"target.{name}"))


class TargetWrapper(BaseTarget):
    """Base class of targets that wrap another one: forwards every member of BaseTarget to `target`."""

    name = _forwarded("name")
    fingerprint = _forwarded("fingerprint")
    capacity = _forwarded("capacity")
    replays = _forwarded("replays")
    code = _forwarded("code")
    model = _forwarded("model")
    base_url = _forwarded("base_url")
    prompt_hash = _forwarded("prompt_hash")
    tools_hash = _forwarded("tools_hash")
    takes_faults = _forwarded("takes_faults")

    def __init__(self, target: BaseTarget) -> None:
        self.target = target

    async def __aenter__(self) -> Self:
        await self.target.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.target.__aexit__(*exc)

    async def check_reachable(self) -> bool:
        return await self.target.check_reachable()

    async def wait_for_room(self, ask: Ask) -> None:
        await self.target.wait_for_room(ask)

    async def ask(self, ask: Ask) -> Reply:
        return await self.target.ask(ask)

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        return await self.target.observe(ask, reply)

    async def so_far(self, ask: Ask) -> Reply | None:
        return await self.target.so_far(ask)

    def warnings(self) -> list[str]:
        return self.target.warnings()


class TargetContext(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a target, for kinds that need more than the text after the colon."""

    # The table `[targets.NAME]`; {KIND: REST} for a target on the command line.
    settings: Mapping[str, Json]
    # NAME; None for a target on the command line.
    name: str | None = None
    # Folder of relative paths; None: the working directory.
    folder: Path | None = None
    # Number of questions asked concurrently.
    concurrency: int = 10


# Makes the targets of one kind; registered in `plugins.targets` and under the entry point group `answerkey.targets`.
# Called with REST of `--target KIND:REST` or of `KIND = "REST"` in `[targets.NAME]`. A factory with a parameter `context`
# also gets that, with the other settings of the table.
TargetFactory: TypeAlias = Callable[..., Target]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an importer."""

    # Rows of a golden set, or of recorded replies with their expectations inline.
    rows: Iterable[JsonObject]
    # What the rows are.
    kind: Literal["questions", "replies"]
    # What was left out or added, shown to the user.
    notes: tuple[str, ...] = ()


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set in another tool's files."""

    # File name → its content; several files go to a folder.
    files: Mapping[str, Iterable[bytes]]
    # Number of questions.
    count: int
    # What could not be exported, shown to the user.
    notes: tuple[str, ...] = ()


# Registered in `plugins.importers`, `plugins.exporters` and `plugins.reports` (by file ending, e.g. ".html") and
# under the entry point groups `answerkey.importers`, `answerkey.exporters` and `answerkey.reports`.
# An importer gets the paths; one with a parameter `fields` also gets the `--map` options, field → JMESPath.
Importer: TypeAlias = Callable[..., Imported]
Exporter: TypeAlias = Callable[[QuestionSet], Exported]
ReportWriter: TypeAlias = Callable[[Run, BinaryIO], None]


# Which way a value is better.
Direction = Literal["higher", "lower"]
# What a scorer requires: a judge; a tool's result or a source's text; sources; the turns before this one.
Need = Literal["judge", "evidence", "sources", "earlier"]


class Scorer(Protocol):
    """One component or metric, or several that are computed together."""

    @property
    def name(self) -> str:
        """The key under which its score is reported."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same reply could get another score."""
        ...

    @property
    def direction(self) -> Direction | Mapping[str, Direction]:
        """Which way its value is better; for a scorer with several values, name → direction."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """What a reply or run must have to be scored."""
        ...

    @property
    def score(self) -> Callable[..., Score | Sequence[Score]]:
        """Score one reply to one turn: `score(question, reply)`.

        A scorer that needs "earlier" also gets `earlier=`, the turns before this one with their replies.
        A scorer that needs a "judge" also gets `judged=`, the judgement of this reply.
        """
        ...

    def prepare(self) -> None:
        """Load what scoring the first reply would load, before anything is timed."""
        ...


class BaseScorer:
    """Base class of scorers, with a default for what is optional."""

    # A field of the question ("checks", "relevant_documents") or of the reply ("sources") without which it gives no score.
    silent_without: Literal["checks", "relevant_documents", "sources"] | None = None

    def prepare(self) -> None:
        """Load what scoring the first reply would load, before anything is timed."""


class Engine(Protocol):
    """Asks targets many questions, as a plug-in may write it; derive from `BaseEngine` for what is optional."""

    def ask_all(
        self,
        targets: Sequence[BaseTarget],
        trials: Iterable[Trial],
        journal: Callable[[Trial], None] | None = None,
    ) -> AsyncIterator[Trial]:
        """Yield trials as they are answered, in any order. A trial is asked of `targets[trial.arm]`.

        Call `journal` for each trial as soon as it is answered, before anything else is awaited: it survives a killed
        process.
        """
        ...


class BaseEngine(ABC):
    """Base class of engines, with a default for what is optional."""

    def place_target(self, target: BaseTarget, make: Callable[[], BaseTarget]) -> BaseTarget:
        """The target to open and ask; an engine that asks from other machines calls `make` there."""
        return target

    @abstractmethod
    def ask_all(
        self,
        targets: Sequence[BaseTarget],
        trials: Iterable[Trial],
        journal: Callable[[Trial], None] | None = None,
    ) -> AsyncIterator[Trial]:
        """Yield trials as they are answered, in any order; see `Engine.ask_all`."""


# Makes an engine; registered in `plugins.engines` and under the entry point group `answerkey.engines`.
EngineFactory: TypeAlias = Callable[[Options], Engine]


# A store from a plug-in is registered in `plugins.stores` or under the entry point group `answerkey.stores` as a function
# `open(address, folder=None, create=True)` that returns an SqlStore over its own Database (`store/database.py`).
class ScoreSource(Protocol):
    """What a comparison reads of a store, as columns; every SqlStore is one."""

    def questions(self, set_hash: str) -> Iterator[Question]:
        """A stored question set, in order."""
        ...

    def score_batches(self, info: RunInfo) -> Iterator[ScoreBatch]:
        """The run's scores column by column, in the set's order, trial by trial."""
        ...

    def question_groups(self, set_hash: str, fields: Sequence[str]) -> Iterator[tuple[bytes, str]]:
        """(content hash, group) of the questions that have one of the fields."""
        ...


class Progress:
    """Progress callbacks, which do nothing by themselves."""

    def begin(self, info: RunInfo, *, planned: int | None, done: int) -> None:
        """The run starts; `done` of the planned trials are done already. `planned` is None for a log of unknown length."""

    def advance(self, running: "RunningScore") -> None:
        """Another trial was scored."""

    def end(self) -> None:
        """The run has ended."""


NO_PROGRESS = Progress()


class RunningScore:
    """The score so far, for display; the summary at the end is computed separately."""

    def __init__(self) -> None:
        self.done = 0
        self.errors = 0
        # Estimated number of trials of a log; None: unknown, or planned.
        self.expected: int | None = None
        self._sum = 0.0

    def add(self, card: Scorecard) -> None:
        """Add one scorecard."""
        self.done += 1
        self.errors += card.error is not None
        self._sum = fsum((self._sum, card.total or 0.0))

    def add_part(self, done: int, errors: int, points: float) -> None:
        """Add many at once."""
        self.done += done
        self.errors += errors
        self._sum += points

    @property
    def score(self) -> float | None:
        """Mean of the trials scored so far."""
        return self._sum / self.done if self.done else None
