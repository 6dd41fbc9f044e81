"""Evaluates a TREC run against qrels, as `trec_eval` does: means over the queries that both files have."""

from math import fsum
from pathlib import Path
from typing import Any

from answerkey.datasets.trec_files import read_qrels, read_trec_run
from answerkey.errors import InputError, UsageError
from answerkey.scorers.retrieval import Evaluator, parse_measures

# What is computed when no measure is named.
TREC_MEASURES = ("nDCG@10", "P@10", "R@10", "AP", "RR")


def evaluate_trec_run(
    run: str | Path, qrels: str | Path, measures: str | list[str] | tuple[str, ...]
) -> dict[str, Any]:
    """The document of `answerkey score RUN --qrels QRELS`: each measure's mean, and over how many queries.

    Queries in only one of the files are left out of the means, as in trec_eval without `-c`, and counted beside them.
    """
    parsed = parse_measures(measures)
    if not parsed:
        raise UsageError("no retrieval measure given; name some, for example --metrics nDCG@10,P@5,AP,RR")
    evaluator = Evaluator(parsed)
    judged, retrieved = read_qrels(qrels), read_trec_run(run)
    values = evaluator.evaluate(judged, retrieved)
    if not values:
        examples = f"{next(iter(retrieved))!r} in the run, {next(iter(judged))!r} in the qrels"
        raise InputError(
            f"no query is in both the run and {qrels} ({examples}); check the query ids", path=run
        )
    return {
        "metrics": {
            measure.name: fsum(found[measure.name] for found in values.values()) / len(values)
            for measure in parsed
        },
        "queries": len(values),
        "queries_without_judgements": len(retrieved.keys() - judged.keys()),
        "queries_not_retrieved": len(judged.keys() - retrieved.keys()),
    }
