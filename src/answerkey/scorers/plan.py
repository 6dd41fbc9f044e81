"""Which scorers a run uses: the three components, and metrics beside them."""

from answerkey.config import Scoring, Settings
from answerkey.protocols import Scorer
from answerkey.scorers.grader import Grader

__all__ = ["make_grader"]


def make_grader(scoring: Scoring, settings: Settings | None = None) -> Grader:
    """The grader for a scoring under the settings in force."""
    metrics: list[Scorer] = []
    return Grader(scoring, metrics=metrics)
