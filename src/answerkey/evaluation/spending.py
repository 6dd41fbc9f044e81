"""Spending: what a run has cost so far, and whether its budget allows another question."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from answerkey.model.trial import Trial

if TYPE_CHECKING:
    from answerkey.judge.session import JudgingSession

__all__ = ["Spending"]


class Spending:
    """Counts what replies cost, and with them what judging them does."""

    def __init__(
        self,
        budget: float | None,
        before: Iterable[Trial],
        judging: "Sequence[JudgingSession | None]",
    ) -> None:
        self._budget = budget
        self._judging = judging
        self._spent = 0.0
        self._answered = self._under_way = 0
        self._unknown = False
        # Why no more is asked; empty: nothing forbids it.
        self.stopped = ""
        for trial in before:
            self._count(trial)

    def allowed(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Trials as long as the budget covers the next one and those under way, by what the others cost on average."""
        for trial in trials:
            if not self.begin(1):
                return
            yield trial

    def begin(self, trials: int) -> bool:
        """Whether the budget covers so many more, which are then under way."""
        self.stopped = self._reason(trials)
        if not self.stopped:
            self._under_way += trials
        return not self.stopped

    def add(self, trial: Trial) -> None:
        """Count a trial that has just been answered."""
        self._under_way -= 1
        self._count(trial)

    def _count(self, trial: Trial) -> None:
        if self._budget is None:
            return
        self._answered += 1
        cost = trial.cost
        if cost is not None:
            self._spent += cost
        elif any(reply.failure is None for reply in trial.replies):
            self._unknown = True

    def _reason(self, more: int) -> str:
        if self._budget is None:
            return ""
        if self._unknown:
            return (
                f"the budget of {self._budget:g} cannot be kept, since what a reply cost is not known; give the "
                "chatbot's or its model's price under [prices]"
            )
        judge = sum(session.cost for session in self._judging if session is not None)
        usual = self._spent / self._answered if self._answered else 0.0
        spent = self._spent + judge
        if spent + (self._under_way + more) * usual > self._budget or spent >= self._budget:
            return f"the budget of {self._budget:g} is used up ({spent:.4g} spent, {self._under_way} questions under way)"
        return ""
