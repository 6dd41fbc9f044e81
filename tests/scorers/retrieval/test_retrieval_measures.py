"""Retrieval measures equal trec_eval's: its own code on generated runs, and definitions written out by hand."""

import math
import random
import sys

import msgspec
import pytest

from answerkey.errors import InputError, MissingExtraError, UnknownNameError
from answerkey.runs.api import evaluate_trec_run
from answerkey.scorers.evidence import evaluate_runs, parse_measure, parse_measures


def written_out(name, cutoff, grades, scores):
    """The measures by their definitions, in the order of trec_eval: score, then the greater document id."""
    order = sorted(scores, key=lambda document: document, reverse=True)
    order.sort(key=lambda document: scores[document], reverse=True)
    gains = [max(grades.get(document, 0), 0) for document in order]
    relevant = sum(grade > 0 for grade in grades.values())
    top = gains[:cutoff] if cutoff else gains
    hits = sum(gain > 0 for gain in top)
    if name == "P":
        return hits / (cutoff or len(gains))
    if name == "R":
        return hits / relevant if relevant else 0.0
    if name == "F1":
        p, r = written_out("P", cutoff, grades, scores), written_out("R", cutoff, grades, scores)
        return 2 * p * r / (p + r) if p + r else 0.0
    if name == "Success":
        return float(hits > 0)
    if name == "RR":
        return next((1 / rank for rank, gain in enumerate(top, start=1) if gain), 0.0)
    if name == "AP":
        precisions = [sum(g > 0 for g in top[:rank]) / rank for rank, gain in enumerate(top, start=1) if gain]
        return sum(precisions) / relevant if relevant else 0.0
    if name == "Rprec":
        return sum(gain > 0 for gain in gains[:relevant]) / relevant if relevant else 0.0
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    ideal = ideal[:cutoff] if cutoff else ideal
    best = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal, start=1))
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(top, start=1)) / best if best else 0.0


def generated(seed):
    """A run and judgements with ties, negative grades, unjudged documents, and queries on one side only."""
    draw = random.Random(seed)
    qrels, run = {}, {}
    for query in range(30):
        documents = [f"D{number:03}" for number in range(40)]
        if query % 10 != 3:
            qrels[str(query)] = {
                doc: draw.choice([-1, 0, 0, 1, 1, 2, 3]) for doc in draw.sample(documents, 15)
            }
        if query % 10 != 7:
            run[str(query)] = {doc: draw.choice([0.5, 1, 1.5, 2.25, 3]) for doc in draw.sample(documents, 25)}
    return qrels, run


def save(tmp_path, qrels, run, seed):
    draw = random.Random(seed)
    judged = [f"{query} 0\t{doc}  {grade}" for query, docs in qrels.items() for doc, grade in docs.items()]
    found = [
        f"{query} Q0 {doc} {draw.randint(0, 99)} {score} tag"
        for query, docs in run.items()
        for doc, score in docs.items()
    ]
    draw.shuffle(found)
    (tmp_path / "qrels").write_text("\n".join(judged) + "\n")
    (tmp_path / "run").write_text("\n".join(found) + "\n")
    return tmp_path / "run", tmp_path / "qrels"


NAMES = [
    "nDCG@10",
    "nDCG",
    "P@5",
    "P@7",
    "P",
    "R@5",
    "R",
    "F1@5",
    "F1",
    "Success@1",
    "RR",
    "RR@3",
    "AP",
    "AP@10",
    "Rprec",
]


@pytest.mark.parametrize("seed", range(5))
def test_means_equal_the_definitions_to_many_decimals(tmp_path, seed):
    qrels, run = generated(seed)
    document = evaluate_trec_run(*save(tmp_path, qrels, run, seed), NAMES)
    both = [query for query in run if query in qrels]
    assert document["queries"] == len(both) == 24
    assert document["queries_without_judgements"] == document["queries_not_retrieved"] == 3
    assert list(document["metrics"]) == NAMES
    for name in NAMES:
        measure = parse_measure(name)
        wanted = [written_out(measure.kind, measure.cutoff, qrels[query], run[query]) for query in both]
        assert document["metrics"][name] == pytest.approx(sum(wanted) / len(wanted), abs=1e-9), name


# trec_eval's name of a value to ours.
TREC_EVAL = {
    "map": "AP",
    "map_cut_7": "AP@7",
    "P_5": "P@5",
    "P_10": "P_10",
    "set_P": "precision",
    "set_recall": "recall",
    "recall_5": "recall_5",
    "recip_rank": "RR",
    "ndcg_cut_10": "ndcg_cut_10",
    "ndcg": "ndcg",
    "Rprec": "Rprec",
    "success_5": "success_5",
}


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_every_query_equals_trec_eval(seed, level):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="needs the extra 'retrieval'")
    qrels, run = generated(seed)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(TREC_EVAL), relevance_level=level).evaluate(run)
    measures = [
        msgspec.structs.replace(parse_measure(ours), relevant_from=level) for ours in TREC_EVAL.values()
    ]
    ours = evaluate_runs(measures, qrels, run)
    assert ours.keys() == theirs.keys()
    for query, values in theirs.items():
        for trec_name, name in TREC_EVAL.items():
            assert ours[query][name] == pytest.approx(values[trec_name], abs=1e-9), (query, name)


def test_every_other_measure_that_ir_measures_knows_is_computed_through_it():
    pytest.importorskip("ir_measures", reason="needs the extra 'retrieval'")
    values = evaluate_runs(parse_measures("Judged@2,P@1"), {"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}})
    assert values == {"q": {"Judged@2": 0.5, "P@1": 1.0}}


def test_the_usual_measures_need_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    monkeypatch.setitem(sys.modules, "pytrec_eval", None)
    assert evaluate_runs(parse_measures("RR,F1"), {"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}) == {
        "q": {"RR": 0.5, "F1": pytest.approx(2 / 3)}
    }
    # A measure that no other test parses, since parsed ones are remembered.
    with pytest.raises(MissingExtraError, match=r"'Judged@3' .*answerkey\[retrieval\]"):
        parse_measures("Judged@3")


def test_a_relevance_level_may_be_named():
    values = evaluate_runs(
        parse_measures("P(rel=2)@2,P@2"), {"q": {"a": 1, "b": 2}}, {"q": {"a": 2.0, "b": 1.0}}
    )
    assert values == {"q": {"P(rel=2)@2": 0.5, "P@2": 1.0}}


@pytest.mark.parametrize(
    ("written", "kind", "cutoff"),
    [
        ("nDCG@10", "nDCG", 10),
        ("ndcg_cut_10", "nDCG", 10),
        ("precision@5", "P", 5),
        ("P_5", "P", 5),
        ("hit_rate@3", "Success", 3),
        ("MRR", "RR", None),
        ("MRR@10", "RR", 10),
        ("map", "AP", None),
        ("F1@3", "F1", 3),
        ("R-precision", "Rprec", None),
        ("recall", "R", None),
    ],
)
def test_measures_have_the_names_that_people_use(written, kind, cutoff):
    measure = parse_measure(written)
    assert (measure.name, measure.kind, measure.cutoff) == (written, kind, cutoff)


@pytest.mark.parametrize("wrong", ["nDGC@10", "accuracy", "P@0", "Rprec@5", "", "P@@5", "__import__('os')"])
def test_an_unknown_measure_is_refused(wrong):
    with pytest.raises(UnknownNameError):
        parse_measure(wrong)


def test_no_query_in_common_is_an_error_and_not_zero(tmp_path):
    run, qrels = save(tmp_path, {"1": {"a": 1}}, {"q1": {"a": 1.0}}, 0)
    with pytest.raises(InputError, match="no query is in both"):
        evaluate_trec_run(run, qrels, "P@5")
