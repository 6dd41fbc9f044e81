"""The checks of a golden case: each decided, and their weighted mean as the metric or component `checks`."""

from collections.abc import Sequence
from math import fsum
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import UsageError
from answerkey.model.question import Check, Question, rubric_name
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.plugins import load_python
from answerkey.protocols import Direction, Need
from answerkey.scorers.check_kinds import DECIDED, Outcome
from answerkey.scorers.own import OwnScorer, make_scorer
from answerkey.text.sanitise import one_line

__all__ = ["Checks"]


class Checks:
    """Decides a question's checks; one that cannot be decided leaves `checks` without a value."""

    name = "checks"
    version = "checks/1"
    direction: Direction = "higher"
    # For checks by scorers that look at the conversation, and for rubrics.
    needs: frozenset[Need] = frozenset({"earlier", "judge"})

    def __init__(self, folder: Path | None = None, *, weighted: bool = False) -> None:
        # Where the files of `python` checks are looked for.
        self._folder = folder
        # As a component, a question without checks has all of them; as a metric, it has none.
        self._without: tuple[Score, ...] = (Score(self.name, 1.0, "no check expected"),) if weighted else ()
        # Scorers that checks name, by kind and arguments; or why there is none.
        self._scorers: dict[bytes, OwnScorer | UsageError] = {}

    def score(
        self,
        question: Question,
        reply: Reply,
        *,
        earlier: Sequence[tuple[Question, Reply]] = (),
        judged: Sequence[Score] = (),
    ) -> Sequence[Score]:
        """The weighted mean, with each check's name, value and reason in the details."""
        if not question.checks:
            return self._without
        found = [(check, self._outcome(check, question, reply, earlier, judged)) for check in question.checks]
        details: dict[str, Any] = {
            "checks": [
                {
                    "name": check.name,
                    "kind": check.kind,
                    "score": value,
                    "weight": check.weight,
                    "reason": reason,
                }
                for check, (value, reason) in found
            ]
        }
        unsure = [f"{check.name}: {reason}" for check, (value, reason) in found if value is None]
        if unsure:
            return (Score(self.name, None, one_line("; ".join(unsure), 300), None, details),)
        values = [(check.weight, value) for check, (value, _) in found if value is not None]
        mean = fsum(weight * value for weight, value in values) / fsum(weight for weight, _ in values)
        failed = [f"{check.name}: {reason}" for check, (value, reason) in found if value != 1.0]
        passed = f"{len(found) - len(failed)} of {len(found)} checks passed"
        reason = one_line("; ".join([passed, *failed]), 300)
        return (Score(self.name, round_score(mean), reason, None, details),)

    def problem(self, question: Question) -> str | None:
        """Why a question's checks can never be decided: a file that is not there, arguments that a scorer does not take."""
        for check in question.checks:
            if check.kind in DECIDED or check.kind == "rubric":
                continue
            made = self._scorer(check)
            if isinstance(made, UsageError):
                return f"check {check.name!r}: {made}"
        return None

    def _outcome(
        self,
        check: Check,
        question: Question,
        reply: Reply,
        earlier: Sequence[tuple[Question, Reply]],
        judged: Sequence[Score],
    ) -> Outcome:
        decide = DECIDED.get(check.kind)
        if decide is not None:
            return decide(check.expected, reply)
        if check.kind == "rubric":
            return _judged_rubric(check, judged)
        made = self._scorer(check)
        if isinstance(made, UsageError):
            return None, str(made)
        scores = made.score(question, reply, earlier=earlier, judged=judged)
        score = next((one for one in scores if one.name == made.name), None)
        if score is None or score.value is None:
            return None, "gave no value" if score is None else score.reason
        if not 0 <= score.value <= 1:
            return None, f"gave {score.value:g}, which is not between 0 and 1"
        return score.value, score.reason

    def _scorer(self, check: Check) -> OwnScorer | UsageError:
        key = msgspec.json.encode([check.kind, check.expected], order="sorted")
        if key not in self._scorers:
            try:
                self._scorers[key] = _made(check, self._folder)
            except UsageError as error:
                self._scorers[key] = error
        return self._scorers[key]


def _made(check: Check, folder: Path | None) -> OwnScorer:
    if check.kind == "python":
        made = make_scorer(load_python(check.expected, folder)[0])
    else:
        made = make_scorer(check.kind, arguments=check.expected)
    if made.direction == "lower":
        raise UsageError(
            f"of the scorer {made.name!r} less is better, and a check must be better when higher"
        )
    return made


def _judged_rubric(check: Check, judged: Sequence[Score]) -> Outcome:
    for score in judged:
        if score.name == rubric_name(check.expected):
            return score.value, score.reason
    return None, "needs a judge: name one with --judge MODEL or [judge] model"
