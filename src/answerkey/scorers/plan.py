"""Which scorers a run uses: the three components, and metrics beside them."""

from answerkey.config import Scoring, Settings
from answerkey.protocols import Scorer
from answerkey.scorers.grader import Grader
from answerkey.scorers.retrieval.ranking import CHUNK_PATTERN
from answerkey.scorers.retrieval.scorer import RetrievalQuality, SourceHygiene

__all__ = ["make_grader"]


def make_grader(scoring: Scoring, settings: Settings | None = None) -> Grader:
    """The grader for a scoring under the settings in force."""
    pattern = CHUNK_PATTERN if scoring.chunk_pattern is None else scoring.chunk_pattern
    metrics: list[Scorer] = [
        RetrievalQuality(scoring.retrieval, chunk_pattern=pattern),
        SourceHygiene(chunk_pattern=pattern),
    ]
    return Grader(scoring, metrics=metrics)
