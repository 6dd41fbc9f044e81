"""The small protocols that everything plugs into."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from answerkey.model.question import QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Score
from answerkey.model.summary import Summary
from answerkey.model.trial import Trial

__all__ = ["Ask", "Direction", "Engine", "Need", "Scorer", "Store", "Target"]


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


@runtime_checkable
class Target(Protocol):
    """The chatbot under test: anything that takes a question and gives a Reply."""

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


# Which way a value is better.
Direction = Literal["higher", "lower"]
# What a scorer cannot do without: a judge; a tool's result or a source's text; sources; the turns before this one.
Need = Literal["judge", "evidence", "sources", "earlier"]


class Scorer(Protocol):
    """One component or metric, or several that are found together."""

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
        One that needs a "judge" is given `judged=`: what the judge said of this reply.
        """
        ...


class Engine(Protocol):
    """Asks a target many questions."""

    def ask_all(self, target: Target, trials: Iterable[Trial]) -> AsyncIterator[Trial]:
        """Yield trials as they are answered, in any order."""
        ...


class Store(Protocol):
    """Where a run's replies and scorecards last, as the asking sees it; what reads them is the store's own."""

    def create_run(self, info: RunInfo, questions: QuestionSet) -> None:
        """Begin a run."""
        ...

    def add(self, info: RunInfo, trials: Sequence[Trial], *, with_replies: bool = True) -> None:
        """Keep replies and scorecards, durably, in one transaction."""
        ...

    def add_replies(self, info: RunInfo, trials: Sequence[Trial]) -> None:
        """Keep replies that are scored later, durably, in one transaction."""
        ...

    def finish_run(self, info: RunInfo, summary: Summary) -> None:
        """Keep the run's summary and status."""
        ...
