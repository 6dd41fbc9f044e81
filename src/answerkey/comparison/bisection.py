"""Which version of several in a row made a chatbot worse: a bisection that withstands flaky replies.

Questions that flipped between the ends are asked again there first, so that chance flips drop out; then every version is decided
by a sequential test (`stats/paired.py`) of whether its replies are nearer to the good or to the bad end. At last the named
version and the one before it are asked again, in turns: a difference between them now is not drift of a model or of data in
the meantime, and without it no version is named.
"""

import math
import random
from collections.abc import Mapping
from statistics import fmean
from typing import Any, Literal, Protocol

import msgspec

from answerkey.errors import TargetUnreachableError
from answerkey.stats.paired import AnytimeTest

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
        """The beginning of its hash."""
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
