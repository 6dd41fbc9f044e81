"""The retrieval scorer: measures of a reply's ranked sources against the question's relevant documents."""

from collections.abc import Sequence
from typing import Any

from answerkey.errors import MissingExtraError
from answerkey.question import Question
from answerkey.reply import Reply
from answerkey.scorecard import Score
from answerkey.scorers.retrieval.citations import find_citations
from answerkey.scorers.retrieval.measures import DEFAULT_MEASURES, Evaluator, parse_measures
from answerkey.scorers.retrieval.ranking import (
    CHUNK_PATTERN,
    Ranking,
    compile_chunk_pattern,
    rank_documents,
    source_id,
)

__all__ = ["RetrievalQuality", "SourceHygiene"]

# Grades must fit trec_eval's table of grades (see datasets/trec.py).
_MOST_GRADE = 1000


class RetrievalQuality:
    """Retrieval measures by name, for questions with `relevant_documents`; all others get no score."""

    name = "retrieval"

    def __init__(self, measures: Sequence[str] | None = None, *, chunk_pattern: str = CHUNK_PATTERN) -> None:
        names = tuple(DEFAULT_MEASURES if measures is None else measures)
        self._names = names
        self._chunk_pattern = compile_chunk_pattern(chunk_pattern)
        self._missing: MissingExtraError | None = None
        self._evaluator: Evaluator | None = None
        self.version = f"retrieval/1/{','.join(names)}/{chunk_pattern}"
        if measures is not None:
            # Named measures are checked at once: a wrong name or a missing package ends the command, not each score.
            self._evaluator = Evaluator(parse_measures(names))

    def score(self, question: Question, reply: Reply) -> Sequence[Score]:
        """One score per measure."""
        relevant = question.relevant_documents
        if not relevant:
            return ()
        if self._evaluator is None and self._missing is None:
            try:
                self._evaluator = Evaluator(parse_measures(self._names))
            except MissingExtraError as error:
                self._missing = error
        if self._evaluator is None:
            return (Score(self.name, None, str(self._missing)),)
        problem = _problem(relevant, reply)
        if problem:
            return self._unscored(problem)
        ranking = rank_documents(reply.sources, relevant, self._chunk_pattern)
        if ranking.documents and ranking.nameless == len(ranking.documents):
            return self._unscored(
                "no source has an id, a uri or a title to compare with the relevant documents"
            )
        return self._scored(relevant, ranking)

    def _unscored(self, reason: str) -> Sequence[Score]:
        return tuple(Score(name, None, reason) for name in self._names)

    def _scored(self, relevant: dict[str, float], ranking: Ranking) -> Sequence[Score]:
        count = len(ranking.documents)
        # trec_eval orders by score; a nameless source keeps its place under an id that no document has.
        run = {
            "\0" + str(place) if document is None else document: float(count - place)
            for place, document in enumerate(ranking.documents)
        }
        qrels = {document: int(grade) for document, grade in relevant.items()}
        evaluator = self._evaluator
        values = evaluator.evaluate({"q": qrels}, {"q": run}).get("q", {}) if evaluator is not None else {}
        wanted = {document for document, grade in relevant.items() if grade >= 1}
        reason = (
            f"{len(wanted.intersection(run))} of {len(wanted)} relevant documents among {count} retrieved"
        )
        if ranking.nameless:
            reason += f"; {ranking.nameless} sources without an id count as not relevant"
        return tuple(Score(name, values.get(name), reason) for name in self._names)


def _problem(relevant: dict[str, float], reply: Reply) -> str | None:
    """Why a reply's retrieval cannot be measured: unobserved is not zero."""
    if not reply.sources and not reply.evidence.sources_observed:
        return "sources were not observed"
    for document, grade in relevant.items():
        if grade != int(grade):
            return f"the grade {grade:g} of {document!r} is not a whole number, which nDCG and the like need"
        if grade > _MOST_GRADE:
            return f"the grade {grade:g} of {document!r} is above {_MOST_GRADE}"
    if all(grade < 1 for grade in relevant.values()):
        return "no document is relevant to this question: every grade is 0"
    return None


class SourceHygiene:
    """Counts what is odd about a reply's sources: repeated documents, uncited ones, citations of unseen ones."""

    name = "source_hygiene"
    version = "source_hygiene/1"

    def __init__(self, *, chunk_pattern: str = CHUNK_PATTERN) -> None:
        self._chunk_pattern = compile_chunk_pattern(chunk_pattern)

    def score(self, question: Question, reply: Reply) -> Sequence[Score]:
        """Counts per reply; citations that cannot be observed have no value."""
        if not reply.sources:
            return ()
        ranking = rank_documents(reply.sources, question.relevant_documents, self._chunk_pattern)
        duplicates: dict[str, Any] = {"documents": list(ranking.duplicates)} if ranking.duplicates else {}
        scores = [Score("duplicate_sources", float(ranking.repeats), details=duplicates)]
        citations = find_citations(reply)
        if not citations.observed:
            reason = "the reply does not say which sources it cites"
            return (
                *scores,
                Score("uncited_sources", None, reason),
                Score("unretrieved_citations", None, reason),
            )
        names = [source_id(reply.sources[number]) or f"source {number + 1}" for number in citations.uncited]
        scores.append(
            Score("uncited_sources", float(len(names)), details={"documents": names} if names else {})
        )
        cited: dict[str, Any] = {"citations": list(citations.unretrieved)} if citations.unretrieved else {}
        scores.append(Score("unretrieved_citations", float(len(citations.unretrieved)), details=cited))
        return scores
