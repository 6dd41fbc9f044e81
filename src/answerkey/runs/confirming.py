"""Flipped questions asked again: is one that passed and fails now really broken?

One failure in place of one pass is what a chatbot that varies gives by chance. Each flipped question is asked a few times
more: in the candidate, and in the base where that is another target that still answers. If no question ever answers
differently, the chatbot is taken as deterministic, and one that fails every time is broken. If some do, they tell how
often an unstable question passes; one that fails every time is broken if that many failures of that many flips would be
rarer than one in twenty by instability alone. A question that the base fails as well is not broken by the candidate.
The further replies are scored and counted, and are no part of the run.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from answerkey.errors import AnswerkeyError, UsageError
from answerkey.model.comparison import AskedAgain, Comparison, Confirmation, Flip
from answerkey.model.question import Question
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.protocols import BaseTarget
from answerkey.runs.context import RunContext

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

# The chance of calling an unstable question broken that is accepted, over all flips of a run.
_ALPHA = 0.05
# Flips of either kind that are asked again: more than these are a regression that the mean shows.
_MOST_ASKED = 100


def check_confirm(assembly: RunContext) -> None:
    """Refuse what can never be confirmed, before anything is asked."""
    options = assembly.options
    if options.confirm and options.baseline is None:
        raise UsageError("--confirm asks again what flipped since a baseline: add --baseline RUN")
    if options.confirm and options.scoring.needs_judge:
        raise UsageError(
            "--confirm scores further replies without a judge, but the judge is part of the score; use --repeat instead"
        )


async def confirm_flips(
    run: Run, assembly: RunContext, target: BaseTarget, baseline: RunInfo, store: "SqlStore"
) -> Run:
    """The run, whose comparison says which of the broken questions are broken for sure."""
    comparison, times = run.comparison, assembly.options.confirm
    if comparison is None or not times:
        return run
    flips = [*_first(comparison, "broken"), *_first(comparison, "fixed")]
    wanted = {flip.id for flip in flips}
    questions = [
        question for question in store.questions(run.info.question_set_hash) if question.id in wanted
    ]
    candidate = await _passes(assembly, target, questions, times)
    base: dict[str, int | None] = {}
    if flips and baseline.target_spec is not None and baseline.target_spec != run.info.target_spec:
        try:
            async with assembly.target(baseline.target_spec) as opened:
                base = await _passes(assembly, opened, questions, times)
        except AnswerkeyError:
            # The old version is gone, as it mostly is: the candidate alone must do.
            base = {}
    found = _judged(flips, candidate, base, times)
    info = msgspec.structs.replace(run.info, confirmation=found)
    store.update_run(info)
    return msgspec.structs.replace(
        run, info=info, comparison=msgspec.structs.replace(comparison, confirmation=found)
    )


def _first(comparison: Comparison, kind: str) -> list[Flip]:
    return [flip for flip in comparison.flips if flip.kind == kind][:_MOST_ASKED]


async def _passes(
    assembly: RunContext, target: BaseTarget, questions: Sequence[Question], times: int
) -> dict[str, int | None]:
    """How often each question passes; None if one of its replies could not be scored."""
    trials = (
        Trial(question, number, position)
        for number in range(1, times + 1)
        for position, question in enumerate(questions)
    )
    passed: dict[str, int | None] = dict.fromkeys((question.id for question in questions), 0)
    async for trial in assembly.engine.ask_all([target], trials):
        card = assembly.grader.grade(trial.question, trial.replies)
        count = passed[trial.question.id]
        passed[trial.question.id] = None if card.total is None or count is None else count + card.passed
    return passed


def _judged(
    flips: Iterable[Flip], candidate: dict[str, int | None], base: dict[str, int | None], times: int
) -> Confirmation:
    again = [(flip, candidate.get(flip.id), base.get(flip.id)) for flip in flips]
    # Flips that did not stay as they were: a broken question that passes again, a fixed one that fails again.
    unstable = [
        count
        for flip, count, _ in again
        if count is not None and count != (0 if flip.kind == "broken" else times)
    ]
    # How likely an unstable question is to pass, with one imagined pass and failure (Laplace).
    passing = (sum(unstable) + 1) / (times * len(unstable) + 2)
    by_chance = (1.0 - passing) ** times * len(again) if unstable else 0.0
    return Confirmation(
        times=times,
        deterministic=not unstable,
        questions=tuple(
            AskedAgain(
                id=flip.id,
                kind=flip.kind,
                candidate_passed=count,
                base_passed=before,
                confirmed=flip.kind == "broken"
                and count == 0
                and before in (None, times)
                and by_chance < _ALPHA,
            )
            for flip, count, before in again
        ),
    )
