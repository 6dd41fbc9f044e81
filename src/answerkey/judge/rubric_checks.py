"""Rubric checks: what a golden case asks a judge to look for, each put to the same judges as a rubric of one criterion."""

from answerkey.judge.item import Item
from answerkey.judge.judgement import Judgement, worthless
from answerkey.judge.panel import Panel
from answerkey.judge.rubric import Criterion, Rubric
from answerkey.model.question import RUBRIC_PREFIX, Question
from answerkey.model.scorecard import Score

__all__ = ["RubricChecks"]

# Golden sets repeat their rubrics; one with more different ones makes panels anew.
_MOST_PANELS = 1000


class RubricChecks:
    """Judges replies by the rubrics of their questions' checks."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self._panels: dict[str, Panel] = {}

    async def scores(self, question: Question, item: Item | None) -> tuple[Score, ...]:
        """A score for each rubric, which the question's checks find by its text; no item: there is no text to judge."""
        wanted = [check.expected for check in question.checks if check.kind == "rubric"]
        return tuple([await self._score(text, item) for text in dict.fromkeys(wanted)])

    async def _score(self, text: str, item: Item | None) -> Score:
        panel = self._panels.get(text)
        if panel is None:
            criterion = Criterion(name="rubric", weight=1.0, question=text)
            panel = self._panel.with_rubric(Rubric(name="check", criteria=(criterion,)))
            if len(self._panels) < _MOST_PANELS:
                self._panels[text] = panel
        judgement = worthless(panel.rubric) if item is None else await panel.judge(item)
        return Score(RUBRIC_PREFIX + text, judgement.value, _reason(judgement))


def _reason(judgement: Judgement) -> str:
    """What the first judge said of it; where nobody did, why."""
    for judge in judgement.details.get("judges", ()):
        for sample in judge["samples"]:
            if sample["rubric"]["reason"]:
                return f"{sample['rubric']['score']} of 5: {sample['rubric']['reason']}"
    return judgement.reason
