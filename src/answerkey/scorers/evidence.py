"""Scorers of what a reply is based on: retrieved documents, cited sources, links into its evidence, and `groundedness`.

`cited`: which of its sources a reply cites, and which documents it cites that were never retrieved. `linked` and `novelty`
describe a reply beside its evidence; an entailment model decides `groundedness`.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from math import log2
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import ConfigError, MissingExtraError, UnknownNameError, UsageError, nearest_name
from answerkey.model.judgement import NOT_CALIBRATED, SentenceCalibration, read_calibration
from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source
from answerkey.model.scorecard import Score, round_score
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.text.patterns import lazy

# [1], [2, 3] and 【4†source】 refer to a source by its number.
_NUMBERED = lazy(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\](?!\()|【(\d{1,3})(?::\d+)?†[^】]*】")
# "Source: lease.pdf", "(source: Lease 2024)", "[lease.pdf]": a document called by name.
_LABELLED = lazy(r"(?i)\b(?:sources?|according to document)\s*:\s*\**\[?([^\n\]\)\*;,]{2,120})")
_FILE = lazy(
    r"(?<![\w/.])([\w][\w\-.]*\.(?:pdf|docx?|xlsx?|csv|txt|md|html?|pptx?|eml|json))(?!\w)", re.IGNORECASE
)


_POINT = lazy(r"\w\.\w")


class Citations(msgspec.Struct, frozen=True):
    """What a reply cites."""

    # False: neither the sources nor the text say what is cited, so citations are unknown.
    observed: bool
    # Sources that are cited, and those that are not, by number (0 is the first).
    cited: tuple[int, ...]
    uncited: tuple[int, ...]
    # Documents that the text cites and that are neither among the sources nor in a tool's result.
    unretrieved: tuple[str, ...]


def find_citations(reply: Reply) -> Citations:
    """Match the citations in a reply's text, and the flags of its sources, with what was retrieved."""
    sources = reply.sources
    text = reply.text or ""
    cited = {number for number, source in enumerate(sources) if source.cited}
    observed = any(source.cited is not None for source in sources)
    unretrieved: dict[str, None] = {}
    for found in _NUMBERED.finditer(text) if "[" in text or "【" in text else ():
        for written in re.split(r"\s*,\s*", found[1] or found[2]):
            number = int(written)
            observed = True
            if 1 <= number <= len(sources):
                cited.add(number - 1)
            else:
                unretrieved[f"[{number}]"] = None
    lowered = text.lower()
    for number, source in enumerate(sources):
        for name in (source.id, source.uri, source.title):
            if name and len(name) > 2 and name.lower() in lowered and _mentions(lowered, name):
                cited.add(number)
                observed = True
                break
    # A label has the word, a file's name has a point within it.
    labels = _labels(text) if "source" in lowered or "document" in lowered or _POINT.search(text) else ()
    retrieved = _retrieved_text(reply) if labels else ""
    for label in labels:
        observed = True
        if (
            not any(_same(label, name) for source in sources for name in _names(source))
            and label.lower() not in retrieved
        ):
            unretrieved[label] = None
    return Citations(
        observed,
        tuple(sorted(cited)),
        tuple(number for number in range(len(sources)) if number not in cited),
        tuple(unretrieved),
    )


def _labels(text: str) -> Sequence[str]:
    labels = [found[1].strip(" .\"'`“”_") for found in _LABELLED.finditer(text)]
    labels = [label for label in labels if label and not label[0].isdigit() and "http" not in label.lower()]
    named = [found[1] for found in _FILE.finditer(text)]
    # A file's name says more than the words around it.
    return list(
        dict.fromkeys(named + [label for label in labels if not any(name in label for name in named)])
    )


def _names(source: Source) -> Sequence[str]:
    return [name for name in (source.id, source.uri, source.title) if name and len(name) > 2]


def _mentions(lowered: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", lowered) is not None


def _same(label: str, name: str) -> bool:
    one, other = label.lower(), name.lower()
    return one in other or other in one


def _retrieved_text(reply: Reply) -> str:
    """All texts in the tools' results and the sources, lower case: what a citation may refer to."""
    parts: list[str] = []
    pending: list[Any] = [call.result for call in reply.tool_calls]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            parts.append(value)
        elif isinstance(value, dict):
            pending.extend(value.keys())
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)
    parts.extend(source.text or "" for source in reply.sources)
    return "\n".join(parts).lower()


# Retrieval measures by name (`nDCG@10`, `P@5`, `F1@3`, `RR`, …), each equal to trec_eval's.
#
# Other measures that ir_measures knows (`ERR@20`, `RBP`, `Bpref`, `Judged@10`, …) are computed through it.


DEFAULT_MEASURES = ("precision", "recall", "F1", "RR", "nDCG@10")

# The grades of a ranking, best document first; None: not judged.
Ranked = Sequence[float | None]


def _precision(hits: Sequence[bool], relevant: int, cutoff: int | None) -> float:
    return _ratio(sum(hits[:cutoff]), cutoff or len(hits))


def _recall(hits: Sequence[bool], relevant: int, cutoff: int | None) -> float:
    return _ratio(sum(hits[:cutoff]), relevant)


def _f1(hits: Sequence[bool], relevant: int, cutoff: int | None) -> float:
    precision, recall = _precision(hits, relevant, cutoff), _recall(hits, relevant, cutoff)
    return _ratio(2 * precision * recall, precision + recall)


def _success(hits: Sequence[bool], relevant: int, cutoff: int | None) -> float:
    return float(any(hits[:cutoff]))


def _reciprocal_rank(hits: Sequence[bool], relevant: int, cutoff: int | None) -> float:
    return next((1 / rank for rank, hit in enumerate(hits[:cutoff], start=1) if hit), 0.0)


def _average_precision(hits: Sequence[bool], relevant: int, cutoff: int | None) -> float:
    ranks = [rank for rank, hit in enumerate(hits[:cutoff], start=1) if hit]
    return _ratio(sum(number / rank for number, rank in enumerate(ranks, start=1)), relevant)


def _r_precision(hits: Sequence[bool], relevant: int, cutoff: int | None) -> float:
    return _ratio(sum(hits[:relevant]), relevant)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _discounted_gain(grades: Iterable[float]) -> float:
    return sum(grade / log2(rank + 1) for rank, grade in enumerate(grades, start=1) if grade > 0)


# Measure → its value for whether each document of the ranking is relevant, and how many documents are.
_FORMULAS: dict[str, Callable[[Sequence[bool], int, int | None], float]] = {
    "P": _precision,
    "R": _recall,
    "F1": _f1,
    "Success": _success,
    "RR": _reciprocal_rank,
    "AP": _average_precision,
    "Rprec": _r_precision,
}
# Measure → its accepted spellings, lower case and without "_", "-" and spaces.
_SPELLINGS = {
    "P": ("p", "prec", "precision"),
    "R": ("r", "recall"),
    "F1": ("f", "f1", "fmeasure"),
    "Success": ("success", "hit", "hits", "hitrate"),
    "RR": ("rr", "mrr", "reciprank"),
    "AP": ("ap", "map"),
    "nDCG": ("ndcg",),
    "Rprec": ("rprec", "rprecision"),
}
_KINDS = {spelling: kind for kind, spellings in _SPELLINGS.items() for spelling in spellings}
_WRITTEN = lazy(
    r"(?P<name>[A-Za-z][A-Za-z_\- ]*?[A-Za-z]?1?)(?:\(rel=(?P<rel>\d+)\))?(?:(?:@|_cut_|_)(?P<cutoff>\d+))?"
)


class Measure(msgspec.Struct, frozen=True):
    """One retrieval measure."""

    # As the user wrote it: the key under which it is reported.
    name: str
    # The measure's own name; None: known to ir_measures only.
    kind: str | None
    # Counts only the first `cutoff` documents; None: all retrieved ones.
    cutoff: int | None = None
    # Lowest grade that counts as relevant (nDCG uses the grades themselves).
    relevant_from: int = 1

    def value(self, ranked: Ranked, judged: Sequence[float]) -> float:
        """The measure of a ranking, given the grades of all judged documents."""
        if self.kind == "nDCG":
            ideal = sorted(judged, reverse=True)[: self.cutoff]
            return _ratio(
                _discounted_gain(grade or 0 for grade in ranked[: self.cutoff]), _discounted_gain(ideal)
            )
        hits = [grade is not None and grade >= self.relevant_from for grade in ranked]
        relevant = sum(grade >= self.relevant_from for grade in judged)
        return _FORMULAS[self.kind or ""](hits, relevant, self.cutoff)


def parse_measures(names: str | Iterable[str]) -> tuple[Measure, ...]:
    """The measures of a list of names, or of one text with commas between them."""
    listed = re.split(r",(?![^(]*\))", names) if isinstance(names, str) else names
    return tuple([parse_measure(name) for name in dict.fromkeys(map(str.strip, listed)) if name])


@lru_cache
def parse_measure(name: str) -> Measure:
    """The measure of this name."""
    written = _WRITTEN.fullmatch(name)
    kind = _KINDS.get(re.sub(r"[_\- ]", "", written["name"].lower())) if written else None
    if written is None or kind is None:
        return _of_ir_measures(name)
    cutoff = int(written["cutoff"]) if written["cutoff"] else None
    if cutoff == 0 or (cutoff is not None and cutoff > 1_000_000):
        raise UnknownNameError(
            f"retrieval measure {name!r}: the number after @ must be between 1 and 1000000"
        )
    if cutoff is not None and kind == "Rprec":
        raise UnknownNameError(f"retrieval measure {name!r}: {kind} takes no cut-off; write {kind}")
    return Measure(name, kind, cutoff, int(written["rel"] or 1))


def _of_ir_measures(name: str) -> Measure:
    known = ["P@5", "R@5", "F1@5", "Success@5", "RR", "AP", "nDCG@10", "Rprec"]
    close = nearest_name(name, known)
    hint = f"did you mean {close}?" if close else f"use names such as {', '.join(known)}"
    try:
        import ir_measures
    except ImportError:
        raise MissingExtraError(
            f"retrieval measure {name!r} ({hint}) is not built in; it", "retrieval"
        ) from None
    pipeline: Any = ir_measures.DefaultPipeline
    try:
        supported = pipeline.supports(ir_measures.parse_measure(name))
    except (NameError, ValueError, SyntaxError, KeyError, AttributeError, TypeError):
        raise UnknownNameError(f"unknown retrieval measure {name!r}; {hint}") from None
    if not supported:
        raise UnknownNameError(
            f"retrieval measure {name!r} needs a package that is not installed; leave it out"
        )
    return Measure(name, None)


def evaluate_runs(
    measures: Sequence[Measure], qrels: Mapping[str, dict[str, int]], run: Mapping[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Query id → measure's name → value, for the queries that both sides have."""
    values: dict[str, dict[str, float]] = {}
    for query in run:
        judged = qrels.get(query)
        if judged:
            ranked = [judged.get(document) for document in _by_score(run[query])]
            grades = list(judged.values())
            values[query] = {one.name: one.value(ranked, grades) for one in measures if one.kind}
    others = [measure.name for measure in measures if not measure.kind]
    if others:
        import ir_measures

        parsed = {ir_measures.parse_measure(name): name for name in others}
        both = {query: qrels[query] for query in values}
        for metric in ir_measures.iter_calc(list(parsed), both, {query: run[query] for query in values}):
            values[metric.query_id][parsed[metric.measure]] = float(metric.value)
    return values


def _by_score(scores: Mapping[str, float]) -> list[str]:
    """Documents in trec_eval's order: by score, which it reads in single precision, then the greater id first."""
    ranked = sorted(zip(array("f", scores.values()), scores, strict=True), reverse=True)
    return [document for _, document in ranked]


# The retrieval scorer: measures of a reply's ranked sources against the question's relevant documents.


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

    Sources are in the order of their ranks if every one has a rank, else in the order in which the reply lists
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


# Grades must fit trec_eval's table of grades (see datasets/evals_and_trec.py).
_MOST_GRADE = 1000
# The number of rankings whose scores are remembered.
_MOST_KNOWN = 20_000


class RetrievalQuality(BaseScorer):
    """Retrieval measures by name, for questions with `relevant_documents`; all others get no score."""

    name = "retrieval"
    needs: frozenset[Need] = frozenset({"sources"})
    silent_without = "relevant_documents"

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
        self._measures = parse_measures(names)
        # Rankings with the same grades in the same places have the same scores, and most have few relevant documents.
        self._known: dict[tuple[tuple[float | None, ...], tuple[float, ...], int], Sequence[Score]] = {}
        self.version = f"retrieval/2/{','.join(names)}/{self._ranker.chunk_pattern}"

    def score(self, question: Question, reply: Reply) -> Sequence[Score]:
        """One score per measure."""
        relevant = question.relevant_documents
        if not relevant:
            return ()
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
        return self._scores_from({}, reason, {"unscored": reason})

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
        """The scores of every reply with these grades in this order."""
        if all(measure.kind for measure in self._measures):
            values = {measure.name: measure.value(found, grades) for measure in self._measures}
        else:
            values = self._evaluated_by_name(found, grades)
        relevant = sum(grade >= 1 for grade in grades)
        hits = sum(grade is not None and grade >= 1 for grade in found)
        reason = f"{hits} of {relevant} relevant documents among {len(found)} retrieved"
        if not nameless:
            return self._scores_from(values, reason, {})
        reason += f"; {nameless} sources without an id count as not relevant"
        return self._scores_from(values, reason, {"sources_without_id": nameless})

    def _evaluated_by_name(self, found: Ranked, grades: Sequence[float]) -> dict[str, float]:
        """The values under made-up document names, which ir_measures needs."""
        missed = Counter(grades)
        missed.subtract(grade for grade in found if grade is not None)
        qrels = {f"r{place}": int(grade) for place, grade in enumerate(found) if grade is not None}
        qrels |= {f"m{place}": int(grade) for place, grade in enumerate(missed.elements())}
        run = {f"r{place}": float(len(found) - place) for place in range(len(found))}
        return evaluate_runs(self._measures, {"q": qrels}, {"q": run}).get("q", {})

    def _scores_from(
        self, values: Mapping[str, float], reason: str, details: dict[str, Any]
    ) -> Sequence[Score]:
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


class SourceHygiene(BaseScorer):
    """Counts what is odd about a reply's sources: repeated documents, uncited ones, citations of unseen ones."""

    name = "source_hygiene"
    version = "source_hygiene/1"
    direction: Mapping[str, Direction] = dict.fromkeys(
        ("duplicate_sources", "uncited_sources", "unretrieved_citations"), "lower"
    )
    needs: frozenset[Need] = frozenset({"sources"})
    silent_without = "sources"

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


_NOT_OBSERVED = "not observed: no tool result and no source's text was recorded"
Earlier = Sequence[tuple[Question, Reply]]


class LinksIntoEvidence(BaseScorer):
    """How many of a reply's figures, dates, names, ids and quotes have a link, and how many of its words are new."""

    name = "linked"
    version = "links/2"
    direction: Mapping[str, Direction] = {"linked": "higher", "novelty": "lower"}
    needs: frozenset[Need] = frozenset({"evidence", "earlier"})

    def score(self, question: Question, reply: Reply, *, earlier: Earlier = ()) -> Sequence[Score]:
        """`linked` and `novelty`; nothing for a reply without text or tool calls and sources."""
        shown = [reply, *(before for _, before in earlier)]
        if not (reply.text or "").strip() or not any(one.tool_calls or one.sources for one in shown):
            return ()
        if not any(map(has_evidence, shown)):
            return tuple(Score(name, None, _NOT_OBSERVED) for name in self.direction)
        # Loaded by the first reply that has something to look up: many chatbots never show their evidence.
        from answerkey.evidence.links import TooLargeError, find_links

        try:
            links, novelty = find_links(question, reply, earlier)
        except TooLargeError as error:
            reason = f"not scored: too large: {error}"
            return tuple(Score(name, None, reason, details={"reason": reason}) for name in self.direction)
        with_link = sum(bool(item.where) for item in links)
        linked = with_link / len(links) if links else None
        reason = f"{with_link} of {len(links)} figures, dates, names, ids and quotes have a link"
        return (
            Score("linked", linked, reason, details={"links": msgspec.to_builtins(links)}),
            Score("novelty", novelty, "the share of content words that occur nowhere in the evidence"),
        )


class Groundedness(BaseScorer):
    """Supported ÷ claimed sentences by an entailment model, with how reliable the model was on labelled sentences."""

    name = "groundedness"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset({"evidence", "earlier"})

    def __init__(self, model: str = "", calibration: str = "", folder: Path = Path()) -> None:
        if not model:
            raise UsageError(
                "groundedness needs a judge (--judge MODEL) or an entailment model ([grounded] model)"
            )
        self._model = model
        self._folder = folder
        self._calibration: SentenceCalibration | None = (
            read_calibration(folder / calibration, model) if calibration else None
        )

    @property
    def version(self) -> str:
        """Changes with the model and with the threshold that it is used with."""
        return f"groundedness/4/{self._model}/{self._threshold}"

    @property
    def _threshold(self) -> float:
        return 0.5 if self._calibration is None else self._calibration.threshold

    @cached_property
    def _encoder(self):  # type: ignore[no-untyped-def]  # loaded by the first reply, in the process that scores
        from answerkey.evidence.links import load_cross_encoder

        return load_cross_encoder(self._model, self._folder)

    def score(self, question: Question, reply: Reply, *, earlier: Earlier = ()) -> Sequence[Score]:
        """`groundedness`; nothing for a reply without text or evidence."""
        if not (reply.text or "").strip() or not any(
            map(has_evidence, (reply, *(one for _, one in earlier)))
        ):
            return ()
        from answerkey.evidence.links import claimed_sentences, verify_sentences

        sentences = claimed_sentences(reply.text or "")
        reliability = NOT_CALIBRATED if self._calibration is None else self._calibration.in_words
        claims = [
            {"claim": text, "supported": probability >= self._threshold, "evidence": note}
            for text, probability, note in verify_sentences(
                self._encoder, question, reply, earlier, sentences=sentences
            )
        ]
        supported = sum(bool(claim["supported"]) for claim in claims)
        value = round_score(supported / len(claims)) if claims else None
        reason = f"{supported} of {len(claims)} claims supported" if claims else "the reply claims nothing"
        details = {
            "score": value,
            "claims": claims,
            "model": self._model,
            "reason": reason,
            "reliability": reliability,
        }
        return (Score(self.name, value, f"{reason} ({reliability})", details=details),)


def has_evidence(reply: Reply) -> bool:
    """Whether a tool's result or a source's text was observed."""
    return any(call.result_seen or call.result is not None for call in reply.tool_calls) or any(
        source.text for source in reply.sources
    )
