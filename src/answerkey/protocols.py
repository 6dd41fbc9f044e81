"""The small protocols that everything plugs into; each has a registry in `answerkey.plugins`."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from answerkey.model.options import Options
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Failure, Json, JsonObject, Reply
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Score, ScoreBatch, Trial


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a target gets: one thing said to the chatbot."""

    question: str
    # The same for all turns of a conversation, different for every trial.
    conversation_id: str
    # 0 for the first turn.
    turn: int = 0
    # The golden case, for targets that look replies up; a chatbot never sees it.
    question_id: str = ""
    trial: int = 1
    context: str | None = None
    # W3C trace context for this attempt, so that a chatbot's spans can be told apart.
    traceparent: str | None = None


class RetryableError(Exception):
    """How a target tells the engine that asking again may help: the chatbot turned the question away before it worked on it.

    That is 429, 503 or a refused connection. A target never retries itself. One that works in steps goes on, when it is
    asked again, from the step that failed.
    """

    def __init__(
        self, failure: Failure, retry_after: float | None = None, so_far: Reply | None = None
    ) -> None:
        super().__init__(failure.message)
        # What the reply's failure is if the retries are used up.
        self.failure = failure
        # Seconds that the chatbot asked to wait; None if it did not say.
        self.retry_after = retry_after
        # What was done by then and will not be done again: the reply's if the retries are used up. Its latency is that
        # of this attempt's part.
        self.so_far = so_far


class AskAgainError(RetryableError):
    """How a target tells the engine that an attempt ended through no fault of the question: it is asked again in any case.

    That is when what it shared with others (a process, an event loop) ended or stood still because of one of them.
    """


@runtime_checkable
class Target(Protocol):
    """The chatbot under test: anything that takes a question and gives a Reply.

    It may have more that the engine looks for: `capacity`, how many questions it can work on at once; `replays`, if its
    replies bring their own timings; `wait_for_room(ask)`, awaited before the clock of a question starts;
    `observe(ask, reply)`, awaited after it has stopped, which gives the reply with what was seen from outside; `so_far(ask)`,
    what was done until a timeout, as a Reply or None.
    """

    @property
    def name(self) -> str:
        """How reports call it; never holds a secret."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of all that answerkey knows of it: replies are kept by it."""
        ...

    async def __aenter__(self) -> "Target":
        """Open what it needs; raises TargetUnreachableError if it cannot be reached at all."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close it."""
        ...

    async def ask(self, ask: Ask) -> Reply:
        """Ask once. A failure may be a Reply with a Failure or an exception: the engine makes it one."""
        ...


class TargetContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a target is made from, for kinds that need more than the text after the colon."""

    # The table `[targets.NAME]`; for one that is written on the command line, {KIND: REST}.
    settings: Mapping[str, Json]
    # NAME; None for one that is written on the command line.
    name: str | None = None
    # Where its relative paths start; None: from where the user is.
    folder: Path | None = None
    # How many questions will be under way at once.
    concurrency: int = 10


# Makes the targets of one kind: what is registered in `plugins.targets` and under the entry point group `answerkey.targets`.
# Called with REST of `--target KIND:REST` or of `KIND = "REST"` in `[targets.NAME]`; a factory that has a parameter
# called `context` gets that too, and with it the other settings of the table.
TargetFactory: TypeAlias = Callable[..., Target]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an importer read."""

    # Rows of a golden set, or of recorded replies with their expectations inline.
    rows: Iterable[JsonObject]
    # What the rows are.
    kind: Literal["questions", "replies"]
    # What was left out or made up, for the user to know.
    notes: tuple[str, ...] = ()


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A golden set in another tool's files."""

    # File name → its content; several files go to a folder.
    files: Mapping[str, Iterable[bytes]]
    # How many questions are in them.
    count: int
    # What could not be carried over, for the user to know.
    notes: tuple[str, ...] = ()


# What is registered in `plugins.importers`, `plugins.exporters` and `plugins.reports` (there by the file's ending, as ".html")
# and under the entry point groups `answerkey.importers`, `answerkey.exporters` and `answerkey.reports`.
# An importer gets the paths; one with a parameter `fields` also gets what `--map` says, field → JMESPath.
Importer: TypeAlias = Callable[..., Imported]
Exporter: TypeAlias = Callable[[QuestionSet], Exported]
ReportWriter: TypeAlias = Callable[[Run, BinaryIO], None]


# Which way a value is better.
Direction = Literal["higher", "lower"]
# What a scorer cannot do without: a judge; a tool's result or a source's text; sources; the turns before this one.
Need = Literal["judge", "evidence", "sources", "earlier"]


class Scorer(Protocol):
    """One component or metric, or several that are found together.

    It may have `prepare()`, which loads what its first reply would load.
    """

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
        """Which way its value is better; of a scorer with several, each one's name with its direction."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """What a reply or run must have so that it can say anything."""
        ...

    @property
    def score(self) -> Callable[..., Score | Sequence[Score]]:
        """Score one reply to one turn: `score(question, reply)`.

        One that needs "earlier" is given `earlier=` as well: the turns before this one, with their replies.
        One that needs a "judge" is given `judged=` beside it: what the judge said of this reply.
        """
        ...


class Engine(Protocol):
    """Asks a target many questions.

    It may have `placed(target, make)`, which gives the target as it is to be opened and asked: one that asks from other
    machines makes it there by `make`.
    """

    def ask_all(
        self, target: Target, trials: Iterable[Trial], journal: Callable[[Trial], None] | None = None
    ) -> AsyncIterator[Trial]:
        """Yield trials as they are answered, in any order.

        `journal` is to be told of each the moment it is answered, before it waits for anybody: it survives a killed process.
        """
        ...


# Makes an engine: what is registered in `plugins.engines` and under the entry point group `answerkey.engines`.
EngineFactory: TypeAlias = Callable[[Options], Engine]


# What is registered in `plugins.stores` and under the entry point group `answerkey.stores` opens a store:
# `open(address, folder=None, create=True)` gives an SqlStore over a Database of its own (`store/database.py`).
class Store(Protocol):
    """Where runs last, as comparisons see it."""

    def score_batches(self, info: RunInfo) -> Iterator[ScoreBatch]:
        """The run's scores column by column, in the set's order, trial by trial."""
        ...

    def question_groups(self, set_hash: str, fields: Sequence[str]) -> Iterator[tuple[bytes, str]]:
        """(content hash, group) of the questions that have one of the fields."""
        ...
