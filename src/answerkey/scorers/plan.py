"""Which scorers a run uses: the three components, and metrics beside them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from answerkey.config import Settings
from answerkey.model.options import Scoring
from answerkey.protocols import Scorer
from answerkey.scorers.grader import Grader
from answerkey.scorers.groundedness import Groundedness
from answerkey.scorers.retrieval.ranking import CHUNK_PATTERN, Ranker
from answerkey.scorers.retrieval.scorer import RetrievalQuality, SourceHygiene

if TYPE_CHECKING:
    from answerkey.judge.judge import Judge

__all__ = ["make_grader"]


def make_grader(
    scoring: Scoring,
    settings: Settings | None = None,
    *,
    judge: "Judge | None" = None,
    scorers: Sequence[Scorer] = (),
) -> Grader:
    """The grader for a scoring under the settings in force; with a judge, one that takes its scores."""
    ranker = Ranker(CHUNK_PATTERN if scoring.chunk_pattern is None else scoring.chunk_pattern)
    metrics: list[Scorer] = [
        RetrievalQuality(scoring.retrieval, ranker=ranker),
        SourceHygiene(ranker=ranker),
    ]
    if scoring.groundedness:
        metrics.append(Groundedness())
    return Grader(scoring, metrics=[*metrics, *scorers], judge=judge)
