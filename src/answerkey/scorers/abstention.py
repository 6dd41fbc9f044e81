"""Metrics beside the score: unanswerable questions that were declined, and answerable ones that were."""

from collections.abc import Mapping, Sequence
from typing import Any

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.scorers.response_quality import ResponseQuality, is_declined


class Abstention(BaseScorer):
    """`abstained` of an unanswerable question, `over_refused` of an answerable one: 1.0 if the reply declines, else 0.0."""

    name = "abstention"
    version = "abstention/1"
    direction: Mapping[str, Direction] = {"abstained": "higher", "over_refused": "lower"}
    needs: frozenset[Need] = frozenset()

    def __init__(self, **quality: Any) -> None:
        """`quality` are the arguments of ResponseQuality."""
        # Whether answerable questions are measured too: only beside unanswerable ones, since it takes time for every reply.
        self.measures_answerable = False
        self._quality = ResponseQuality(**quality)

    def score(self, question: Question, reply: Reply) -> Sequence[Score]:
        """One of the two metrics, or none."""
        if question.answerable and not self.measures_answerable:
            return ()
        declined = reply.failure is None and is_declined(question, reply.text)
        if not question.answerable:
            return (Score("abstained", float(declined)),)
        # "None" and "no late fees" are answers where the key expects them.
        is_right = (
            declined
            and not question.expects_nothing_of_text
            and self._quality.score(question, reply).value == 1.0
        )
        return (Score("over_refused", float(declined and not is_right)),)
