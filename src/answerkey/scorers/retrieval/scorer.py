"""The retrieval scorer: measures of a reply's ranked sources against the question's relevant documents."""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from answerkey.errors import ConfigError, MissingExtraError
from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source
from answerkey.model.scorecard import Score
from answerkey.protocols import Direction, Need
from answerkey.scorers.retrieval.citations import find_citations
from answerkey.scorers.retrieval.retrieval_measures import DEFAULT_MEASURES, Evaluator, parse_measures

# "doc#3", "doc.pdf#page=4", "doc::chunk-3", "doc_chunk_3", "doc (part 2)": what follows the document's own id.
CHUNK_PATTERN = (
    r"(?:#|::)(?:[A-Za-z]+[-_=: ]?)?[0-9]+$"
    r"|[-_:/. ](?:chunk|part|passage|paragraph|segment|split)s?[-_=: ]?[0-9]+$"
    r"| \((?:chunk|part|page|passage) [0-9]+\)$"
)


class Ranking(msgspec.Struct, frozen=True):
    """The documents that were retrieved, best first."""

    # Each document once, at its best rank; None: a source that has no id and so can match nothing.
    documents: tuple[str | None, ...]
    # Documents that were retrieved more than once, in order of their first rank.
    duplicates: tuple[str, ...]
    # Sources beyond the first of their document.
    repeats: int
    # Sources without an id, a uri and a title.
    nameless: int


def compile_chunk_pattern(pattern: str) -> "re.Pattern[str] | None":
    """The pattern of what is cut from a chunk's id; "" switches folding off."""
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"[scoring] chunk_pattern = {pattern!r}: not a regular expression: {error}"
        ) from None


def source_id(source: Source) -> str | None:
    """By what a source is known: its id, else its uri, else its title."""
    return source.id or source.uri or source.title or None


def rank_documents(
    sources: Sequence[Source], known: Container[str], chunk_pattern: "re.Pattern[str] | None"
) -> Ranking:
    """Order sources and fold chunks into documents.

    Sources stand in the order of their ranks if every one has a rank, else in the order in which the reply lists
    them; equal ranks keep the listed order. Scores are not looked at. An id in `known` (the judged documents) is
    never folded, so that chunks may be judged as well as documents.
    """
    documents: list[str | None] = []
    seen: set[str] = set()
    duplicates: dict[str, None] = {}
    nameless = 0
    for source in _ordered(sources):
        identifier = source.id or source.uri or source.title
        if not identifier:
            nameless += 1
            documents.append(None)
            continue
        if chunk_pattern is not None and identifier not in known:
            identifier = _folded(chunk_pattern, identifier)
        if identifier in seen:
            duplicates[identifier] = None
            continue
        seen.add(identifier)
        documents.append(identifier)
    return Ranking(tuple(documents), tuple(duplicates), len(sources) - len(documents), nameless)


class Ranker:
    """Ranks the sources of a reply once for all scorers that share it."""

    def __init__(self, chunk_pattern: str = CHUNK_PATTERN) -> None:
        self.chunk_pattern = chunk_pattern
        self._compiled = compile_chunk_pattern(chunk_pattern)
        self._last: tuple[Sequence[Source], Container[str], Ranking] | None = None

    def rank(self, sources: Sequence[Source], known: Container[str]) -> Ranking:
        """The ranking of sources; that of the last ones is kept."""
        last = self._last
        if last is not None and last[0] is sources and last[1] is known:
            return last[2]
        ranking = rank_documents(sources, known, self._compiled)
        self._last = (sources, known, ranking)
        return ranking


def _ordered(sources: Sequence[Source]) -> Sequence[Source]:
    """Sources by rank if every one has a rank; most come in that order already."""
    before = None
    in_order = True
    for source in sources:
        rank = source.rank
        if rank is None:
            return sources
        if before is not None and rank < before:
            in_order = False
        before = rank
    return sources if in_order else sorted(sources, key=lambda source: source.rank or 0)


# The same documents come up in many replies.
@lru_cache(maxsize=65_536)
def _folded(chunk_pattern: "re.Pattern[str]", identifier: str) -> str:
    return chunk_pattern.sub("", identifier) or identifier


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
