"""Retrieval measures by name (`nDCG@10`, `P@5`, `F1@3`, `RR`, …), computed by trec_eval's own code in pytrec_eval.

Other measures that ir_measures knows (`ERR@20`, `RBP`, `Judged@10`, …) are computed through it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from answerkey.errors import MissingExtraError, UnknownNameError

DEFAULT_MEASURES = ("precision", "recall", "F1", "RR", "nDCG@10")

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
    "Bpref": ("bpref",),
}
_KINDS = {spelling: kind for kind, spellings in _SPELLINGS.items() for spelling in spellings}
_WRITTEN = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z_\- ]*?[A-Za-z]?1?)(?:\(rel=(?P<rel>\d+)\))?(?:(?:@|_cut_|_)(?P<cutoff>\d+))?"
)
_WITHOUT_CUTOFF = ("Rprec", "Bpref")
# Measure → what trec_eval calls the values that it is made of: with a cut-off, and without one.
_TREC_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "P": (("P_{}",), ("set_P",)),
    "R": (("recall_{}",), ("set_recall",)),
    "F1": (("P_{}", "recall_{}"), ("set_P", "set_recall")),
    "Success": (("success_{}",), ("recip_rank",)),
    "AP": (("map_cut_{}",), ("map",)),
    "nDCG": (("ndcg_cut_{}",), ("ndcg",)),
    "RR": (("recip_rank",), ("recip_rank",)),
    "Bpref": ((), ("bpref",)),
    "Rprec": ((), ("Rprec",)),
}


class Measure(msgspec.Struct, frozen=True):
    """One retrieval measure."""

    # As the user wrote it: the key under which it is reported.
    name: str
    # The measure's own name; None: known to ir_measures only.
    kind: str | None
    # Only the first so many documents count; None: all that were retrieved.
    cutoff: int | None = None
    # A document counts as relevant from this grade on (nDCG uses the grades themselves).
    relevant_from: int = 1


def parse_measures(names: str | Iterable[str]) -> tuple[Measure, ...]:
    """The measures of a list of names, or of one text with commas between them."""
    listed = re.split(r",(?![^(]*\))", names) if isinstance(names, str) else list(names)
    return tuple(parse_measure(name) for name in dict.fromkeys(name.strip() for name in listed) if name)


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
    if cutoff is not None and kind in _WITHOUT_CUTOFF:
        raise UnknownNameError(f"retrieval measure {name!r}: {kind} takes no cut-off; write {kind}")
    return Measure(name, kind, cutoff, int(written["rel"] or 1))


def _of_ir_measures(name: str) -> Measure:
    *_, ir_measures = _libraries()
    try:
        measure = ir_measures.parse_measure(name)
        supported = ir_measures.DefaultPipeline.supports(measure)
    except (NameError, ValueError, SyntaxError, KeyError, AttributeError, TypeError):
        known = ["P@5", "R@5", "F1@5", "Success@5", "RR", "AP", "nDCG@10", "Rprec", "Bpref"]
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"use names such as {', '.join(known)}"
        raise UnknownNameError(f"unknown retrieval measure {name!r}; {hint}") from None
    if not supported:
        raise UnknownNameError(
            f"retrieval measure {name!r} needs a package that is not installed; leave it out"
        )
    return Measure(name, None)


def _libraries() -> tuple[Any, Any, Any]:
    try:
        import ir_measures
        import pytrec_eval
        import pytrec_eval_ext
    except ImportError:
        raise MissingExtraError("retrieval quality", "retrieval") from None
    return pytrec_eval, pytrec_eval_ext, ir_measures


class Evaluator:
    """Computes a fixed list of measures for many queries at once or one at a time."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        self.measures = tuple(measures)
        pytrec_eval, extension, self._ir_measures = _libraries()
        self._trec_eval = extension.RelevanceEvaluator
        # trec_eval has one relevance level per call, so the measures are grouped by it, each with its values' names.
        self._made: dict[int, list[tuple[Measure, list[str]]]] = defaultdict(list)
        for measure in self.measures:
            if measure.kind is not None:
                cut, whole = _TREC_KEYS[measure.kind]
                names = [name.format(measure.cutoff) for name in (cut if measure.cutoff else whole)]
                self._made[measure.relevant_from].append((measure, names))
        # pytrec_eval's Python layer spends most of its time on taking the names apart; that is done once here.
        self._combined = {}
        for level, made in self._made.items():
            keys = {name for _, names in made for name in names}
            evaluator = pytrec_eval.RelevanceEvaluator({"": {"": 1}}, keys)
            self._combined[level] = evaluator._combine_measures(keys)
        self._others = {
            self._ir_measures.parse_measure(measure.name): measure.name
            for measure in self.measures
            if not measure.kind
        }

    def evaluate(
        self, qrels: Mapping[str, dict[str, int]], run: Mapping[str, dict[str, float]]
    ) -> dict[str, dict[str, float]]:
        """Query id → measure's name → value, for the queries that both sides have."""
        values: dict[str, dict[str, float]] = {}
        # trec_eval's code cannot take a query without judgements.
        judged = qrels if all(qrels.values()) else {query: found for query, found in qrels.items() if found}
        for level, keys in self._combined.items():
            found = self._trec_eval(
                query_relevance=judged, measures=keys, relevance_level=level, judged_docs_only_flag=False
            ).evaluate(run)
            for query, raw in found.items():
                mine = values.setdefault(query, {})
                for measure, names in self._made[level]:
                    mine[measure.name] = _value(measure, [raw[name] for name in names])
        if self._others:
            both = {query: qrels[query] for query in run if query in qrels}
            for metric in self._ir_measures.iter_calc(list(self._others), both, run):
                values.setdefault(metric.query_id, {})[self._others[metric.measure]] = float(metric.value)
        return values


def _value(measure: Measure, values: Sequence[float]) -> float:
    """A measure from trec_eval's values; most are one of those themselves."""
    first = values[0]
    if measure.kind == "F1":
        recall = values[1]
        return 2 * first * recall / (first + recall) if first + recall else 0.0
    if measure.kind == "Success" and not measure.cutoff:
        return 1.0 if first > 0 else 0.0
    if measure.kind == "RR" and measure.cutoff:
        # 1/rank of the first relevant document, if that rank is within the cut-off.
        return first if first and round(1 / first) <= measure.cutoff else 0.0
    return first
