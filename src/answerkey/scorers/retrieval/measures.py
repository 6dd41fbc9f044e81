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

__all__ = ["DEFAULT_MEASURES", "Evaluator", "Measure", "parse_measure", "parse_measures"]

DEFAULT_MEASURES = ("precision", "recall", "F1", "RR", "nDCG@10")

# Every accepted spelling, lower case and without "_", "-" and spaces → the measure's own name.
_SPELLINGS = {
    "p": "P",
    "prec": "P",
    "precision": "P",
    "r": "R",
    "recall": "R",
    "f": "F1",
    "f1": "F1",
    "fmeasure": "F1",
    "success": "Success",
    "hit": "Success",
    "hits": "Success",
    "hitrate": "Success",
    "rr": "RR",
    "mrr": "RR",
    "reciprank": "RR",
    "ap": "AP",
    "map": "AP",
    "ndcg": "nDCG",
    "rprec": "Rprec",
    "rprecision": "Rprec",
    "bpref": "Bpref",
}
_WRITTEN = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z_\- ]*?[A-Za-z]?1?)(?:\(rel=(?P<rel>\d+)\))?(?:(?:@|_cut_|_)(?P<cutoff>\d+))?"
)
_WITHOUT_CUTOFF = ("Rprec", "Bpref")


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
    kind = _SPELLINGS.get(re.sub(r"[_\- ]", "", written["name"].lower())) if written else None
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
        # trec_eval has one relevance level per call, so the measures are grouped by it.
        self._keys: dict[int, set[str]] = defaultdict(set)
        # Level → values taken as they are, and measures that are made of several or of changed values.
        self._direct: dict[int, list[tuple[str, str]]] = defaultdict(list)
        self._made: dict[int, list[tuple[Measure, tuple[str, ...]]]] = defaultdict(list)
        for measure in self.measures:
            if measure.kind is None:
                continue
            names = _trec_keys(measure)
            self._keys[measure.relevant_from].update(names)
            if _is_direct(measure):
                self._direct[measure.relevant_from].append((measure.name, names[0]))
            else:
                self._made[measure.relevant_from].append((measure, names))
        # pytrec_eval's Python layer spends most of its time on taking the names apart; that is done once here.
        self._combined = {
            level: pytrec_eval.RelevanceEvaluator({"": {"": 1}}, keys)._combine_measures(keys)
            for level, keys in self._keys.items()
        }
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
                for name, key in self._direct[level]:
                    mine[name] = raw[key]
                for measure, names in self._made[level]:
                    mine[measure.name] = _made_of(measure, [raw[key] for key in names])
        if self._others:
            both = {query: qrels[query] for query in run if query in qrels}
            for metric in self._ir_measures.iter_calc(list(self._others), both, run):
                values.setdefault(metric.query_id, {})[self._others[metric.measure]] = float(metric.value)
        return values


def _trec_keys(measure: Measure) -> tuple[str, ...]:
    """What trec_eval calls the values that a measure is made of."""
    cutoff = measure.cutoff
    match measure.kind:
        case "P":
            return (f"P_{cutoff}",) if cutoff else ("set_P",)
        case "R":
            return (f"recall_{cutoff}",) if cutoff else ("set_recall",)
        case "F1":
            return (f"P_{cutoff}", f"recall_{cutoff}") if cutoff else ("set_P", "set_recall")
        case "Success":
            return (f"success_{cutoff}",) if cutoff else ("recip_rank",)
        case "AP":
            return (f"map_cut_{cutoff}",) if cutoff else ("map",)
        case "nDCG":
            return (f"ndcg_cut_{cutoff}",) if cutoff else ("ndcg",)
        case "RR":
            return ("recip_rank",)
        case "Bpref":
            return ("bpref",)
        case _:
            return ("Rprec",)


def _is_direct(measure: Measure) -> bool:
    """Whether trec_eval has the measure itself."""
    if measure.kind == "F1":
        return False
    return not (measure.kind == "Success" and not measure.cutoff) and not (
        measure.kind == "RR" and measure.cutoff
    )


def _made_of(measure: Measure, values: Sequence[float]) -> float:
    first = values[0]
    if measure.kind == "F1":
        recall = values[1]
        return 2 * first * recall / (first + recall) if first + recall else 0.0
    if measure.kind == "Success":
        return 1.0 if first > 0 else 0.0
    # RR with a cut-off: 1/rank of the first relevant document, if that rank is within it.
    return first if first and round(1 / first) <= (measure.cutoff or 0) else 0.0
