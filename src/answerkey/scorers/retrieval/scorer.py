"""The retrieval scorer: measures of a reply's ranked sources against the question's relevant documents."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from answerkey.errors import MissingExtraError
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score
from answerkey.protocols import Direction, Need
from answerkey.scorers.retrieval.citations import find_citations
from answerkey.scorers.retrieval.retrieval_measures import DEFAULT_MEASURES, Evaluator, parse_measures
from answerkey.scorers.retrieval.source_ranking import (
    CHUNK_PATTERN,
    Ranker,
    Ranking,
    source_id,
)

__all__ = ["RetrievalQuality", "SourceHygiene"]

# Grades must fit trec_eval's table of grades (see datasets/trec.py).
_MOST_GRADE = 1000
# Scores of so many different rankings are kept.
_MOST_KNOWN = 20_000


class RetrievalQuality:
    """Retrieval measures by name, for questions with `relevant_documents`; all others get no score."""

    name = "retrieval"
    needs: frozenset[Need] = frozenset({"sources"})

    def __init__(
        self,
        measures: Sequence[str] | None = None,
        *,
        chunk_pattern: str = CHUNK_PATTERN,
        ranker: Ranker | None = None,
    ) -> None:
        names = tuple(DEFAULT_MEASURES if measures is None else measures)
        self._names = names
        self.direction: Mapping[str, Direction] = dict.fromkeys(names, "higher")
        self._ranker = ranker or Ranker(chunk_pattern)
        self._missing: MissingExtraError | None = None
        self._evaluator: Evaluator | None = None
        # Rankings with the same grades in the same places have the same scores, and most have few relevant documents.
        self._known: dict[tuple[tuple[float | None, ...], tuple[float, ...], int], Sequence[Score]] = {}
        self.version = f"retrieval/1/{','.join(names)}/{self._ranker.chunk_pattern}"
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
            return self._unscored(str(self._missing))
        problem = _problem(relevant, reply)
        if problem:
            return self._unscored(problem)
        ranking = self._ranker.rank(reply.sources, relevant)
        if ranking.documents and ranking.nameless == len(ranking.documents):
            return self._unscored(
                "no source has an id, a uri or a title to compare with the relevant documents"
            )
        return self._scored(relevant, ranking)

    def _unscored(self, reason: str) -> Sequence[Score]:
        return self._named({}, reason, {"unscored": reason})

    def _scored(self, relevant: dict[str, float], ranking: Ranking) -> Sequence[Score]:
        # All that a measure looks at: the grades in the order of the ranking (None: not judged), and those of the rest.
        grade = relevant.get
        found = tuple(map(grade, ranking.documents))  # type: ignore[arg-type]  # no document is called None
        pattern = (found, tuple(sorted(relevant.values())), ranking.nameless)
        scores = self._known.get(pattern)
        if scores is None:
            scores = self._evaluated(*pattern)
            if len(self._known) < _MOST_KNOWN:
                self._known[pattern] = scores
        return scores

    def _evaluated(
        self, found: Sequence[float | None], grades: Sequence[float], nameless: int
    ) -> Sequence[Score]:
        """The scores of every reply with these grades in this order, from the library, under made-up names."""
        missed = Counter(grades)
        missed.subtract(grade for grade in found if grade is not None)
        qrels = {f"r{place}": int(grade) for place, grade in enumerate(found) if grade is not None}
        qrels |= {f"m{place}": int(grade) for place, grade in enumerate(missed.elements())}
        # trec_eval orders by score.
        run = {f"r{place}": float(len(found) - place) for place in range(len(found))}
        evaluator = self._evaluator
        values = evaluator.evaluate({"q": qrels}, {"q": run}).get("q", {}) if evaluator is not None else {}
        relevant = sum(grade >= 1 for grade in grades)
        hits = sum(grade is not None and grade >= 1 for grade in found)
        reason = f"{hits} of {relevant} relevant documents among {len(found)} retrieved"
        if not nameless:
            return self._named(values, reason, {})
        reason += f"; {nameless} sources without an id count as not relevant"
        return self._named(values, reason, {"sources_without_id": nameless})

    def _named(self, values: Mapping[str, float], reason: str, details: dict[str, Any]) -> Sequence[Score]:
        """One score per measure; what there is to say of all of them is listed with the first."""
        return tuple(
            Score(name, values.get(name), reason, details={} if place else details)
            for place, name in enumerate(self._names)
        )


def _problem(relevant: dict[str, float], reply: Reply) -> str | None:
    """Why a reply's retrieval cannot be measured: unobserved is not zero."""
    if not reply.sources and not reply.evidence.sources_observed:
        return "sources were not observed"
    if not all(map(_GRADES.__contains__, relevant.values())):
        return _wrong_grade(relevant)
    return None


# What grades may be, but for all of them being 0.
_GRADES = frozenset(float(grade) for grade in range(1, _MOST_GRADE + 1))


def _wrong_grade(relevant: dict[str, float]) -> str | None:
    for document, grade in relevant.items():
        if grade != int(grade):
            return f"the grade {grade:g} of {document!r} is not a whole number, which nDCG and the like need"
        if grade > _MOST_GRADE:
            return f"the grade {grade:g} of {document!r} is above {_MOST_GRADE}"
    if all(grade < 1 for grade in relevant.values()):
        return "no document is relevant to this question: every grade is 0"
    return None


_NOT_CITED = tuple(
    Score(name, None, "the reply does not say which sources it cites")
    for name in ("uncited_sources", "unretrieved_citations")
)


class SourceHygiene:
    """Counts what is odd about a reply's sources: repeated documents, uncited ones, citations of unseen ones."""

    name = "source_hygiene"
    version = "source_hygiene/1"
    direction: Mapping[str, Direction] = dict.fromkeys(
        ("duplicate_sources", "uncited_sources", "unretrieved_citations"), "lower"
    )
    needs: frozenset[Need] = frozenset({"sources"})

    def __init__(self, *, chunk_pattern: str = CHUNK_PATTERN, ranker: Ranker | None = None) -> None:
        self._ranker = ranker or Ranker(chunk_pattern)

    def score(self, question: Question, reply: Reply) -> Sequence[Score]:
        """Counts per reply; citations that cannot be observed have no value."""
        if not reply.sources:
            return ()
        ranking = self._ranker.rank(reply.sources, question.relevant_documents)
        duplicates: dict[str, Any] = {"documents": list(ranking.duplicates)} if ranking.duplicates else {}
        scores = [Score("duplicate_sources", float(ranking.repeats), details=duplicates)]
        citations = find_citations(reply)
        if not citations.observed:
            return (*scores, *_NOT_CITED)
        names = [source_id(reply.sources[number]) or f"source {number + 1}" for number in citations.uncited]
        scores.append(
            Score("uncited_sources", float(len(names)), details={"documents": names} if names else {})
        )
        cited: dict[str, Any] = {"citations": list(citations.unretrieved)} if citations.unretrieved else {}
        scores.append(Score("unretrieved_citations", float(len(citations.unretrieved)), details=cited))
        return scores
