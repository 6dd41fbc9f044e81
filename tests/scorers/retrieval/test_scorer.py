"""Retrieval quality of replies: sources against relevant documents, and what is odd about sources."""

import random

import pytest

from answerkey.errors import ConfigError, UnknownNameError
from answerkey.model.question import Question
from answerkey.model.reply import Evidence, Reply, Source, ToolCall
from answerkey.scorers.evidence import RetrievalQuality, SourceHygiene, evaluate_runs, parse_measures


def ask(**relevant):
    return Question(id="q", question="?", relevant_documents=relevant)


def found(*ids, **fields):
    return Reply(text="…", sources=tuple(Source(id=name) for name in ids), **fields)


def values(scores):
    return {score.name: score.value for score in scores}


def test_the_default_measures_of_a_ranking():
    scores = values(RetrievalQuality().score(ask(a=1.0, b=1.0), found("x", "a", "y", "b")))
    assert scores == {
        "precision": 0.5,
        "recall": 1.0,
        "F1": pytest.approx(2 / 3),
        "RR": 0.5,
        "nDCG@10": pytest.approx((1 / 1.5849625 + 1 / 2.321928) / (1 + 1 / 1.5849625), abs=1e-6),
    }


def test_named_measures_keep_the_names_as_written():
    scorer = RetrievalQuality(["nDCG@3", "P@5", "hit_rate@1"])
    assert values(scorer.score(ask(a=2.0, b=1.0), found("a"))) == {
        "nDCG@3": pytest.approx(2 / (2 + 1 / 1.5849625), abs=1e-6),
        "P@5": 0.2,
        "hit_rate@1": 1.0,
    }
    with pytest.raises(UnknownNameError):
        RetrievalQuality(["nDCQ@3"])


def test_a_question_without_relevant_documents_gets_no_score():
    assert RetrievalQuality().score(ask(), found("a")) == ()


def test_unobserved_sources_have_no_value_but_an_empty_list_is_zero():
    (score,) = RetrievalQuality(["P@5"]).score(ask(a=1.0), Reply(text="…"))
    assert (score.value, score.reason) == (None, "sources were not observed")
    empty = Reply(text="…", evidence=Evidence(sources_observed=True))
    assert values(RetrievalQuality(["P@5", "RR"]).score(ask(a=1.0), empty)) == {"P@5": 0.0, "RR": 0.0}


def test_sources_without_ids_are_never_a_silent_zero():
    (score,) = RetrievalQuality(["RR"]).score(
        ask(a=1.0), Reply(sources=(Source(text="one"), Source(text="two")))
    )
    assert score.value is None
    assert "no source has an id" in score.reason
    (score,) = RetrievalQuality(["RR"]).score(ask(a=1.0), Reply(sources=(Source(text="one"), Source(id="a"))))
    assert score.value == 0.5
    assert "1 sources without an id" in score.reason
    by_title = Reply(sources=(Source(title="Lease"),))
    assert values(RetrievalQuality(["RR"]).score(ask(Lease=1.0), by_title)) == {"RR": 1.0}


def test_ranks_decide_where_all_have_one_and_equal_ranks_keep_their_order():
    ranked = Reply(sources=(Source(id="a", rank=3), Source(id="b", rank=1), Source(id="c", rank=1)))
    assert values(RetrievalQuality(["RR"]).score(ask(c=1.0), ranked)) == {"RR": 0.5}
    partly = Reply(sources=(Source(id="a", rank=3), Source(id="b")))
    assert values(RetrievalQuality(["RR"]).score(ask(a=1.0), partly)) == {"RR": 1.0}


def test_grades_that_trec_eval_cannot_use_are_said():
    for grade, words in ((0.5, "not a whole number"), (5000.0, "above 1000"), (0.0, "every grade is 0")):
        (score,) = RetrievalQuality(["nDCG"]).score(ask(a=grade), found("a"))
        assert score.value is None
        assert words in score.reason


def test_chunks_count_as_their_document_once():
    reply = found("lease.pdf#3", "lease.pdf#7", "deed::chunk-1", "tax_chunk_2", "plan.pdf#page=4", "MED-10")
    question = Question(id="q", question="?", relevant_documents={"deed": 1.0, "MED-10": 1.0})
    assert values(RetrievalQuality(["RR", "P"]).score(question, reply)) == {"RR": 0.5, "P": 0.4}
    judged_chunk = Question(id="q", question="?", relevant_documents={"lease.pdf#7": 1.0})
    assert values(RetrievalQuality(["RR"]).score(judged_chunk, reply)) == {"RR": 0.5}
    own = RetrievalQuality(["RR"], chunk_pattern=r"-\d+$")
    assert values(own.score(ask(MED=1.0), found("MED-10"))) == {"RR": 1.0}
    with pytest.raises(ConfigError, match="chunk_pattern"):
        RetrievalQuality(["RR"], chunk_pattern="(")


def test_hygiene_counts_repeats_uncited_and_unretrieved():
    reply = Reply(
        text="The rent is due on the 1st [1]. See [5] and old-lease.pdf.",
        sources=(Source(id="lease.pdf#1"), Source(id="lease.pdf#2"), Source(id="deed")),
    )
    scores = {score.name: score for score in SourceHygiene().score(ask(), reply)}
    assert scores["duplicate_sources"].value == 1
    assert scores["duplicate_sources"].details == {"documents": ["lease.pdf"]}
    assert scores["uncited_sources"].details == {"documents": ["lease.pdf#2", "deed"]}
    assert scores["unretrieved_citations"].details == {"citations": ["[5]", "old-lease.pdf"]}


def test_a_document_that_a_tool_returned_was_retrieved():
    reply = Reply(
        text="Source: lease.pdf",
        sources=(Source(id="deed", cited=False),),
        tool_calls=(ToolCall(name="search", result=[{"file": "lease.pdf"}], result_seen=True),),
    )
    assert values(SourceHygiene().score(ask(), reply))["unretrieved_citations"] == 0


def test_citations_that_cannot_be_observed_have_no_value():
    assert values(SourceHygiene().score(ask(), found("d1"))) == {
        "duplicate_sources": 0.0,
        "uncited_sources": None,
        "unretrieved_citations": None,
    }
    assert SourceHygiene().score(ask(), Reply(text="…")) == ()


def test_scores_of_the_same_grades_in_the_same_places_are_shared_but_right():
    names = ["P", "RR", "nDCG@10", "P(rel=2)@5"]
    scorer, draw = RetrievalQuality(names), random.Random(7)
    for _ in range(400):
        relevant = {
            f"d{draw.randrange(30)}": float(draw.choice([0, 1, 1, 2, 3])) for _ in range(draw.randint(1, 6))
        }
        if not any(relevant.values()):
            continue
        listed = draw.sample([f"d{number}" for number in range(30)], draw.randint(1, 12))
        run = {name: float(len(listed) - place) for place, name in enumerate(listed)}
        qrels = {name: int(grade) for name, grade in relevant.items()}
        expected = evaluate_runs(parse_measures(names), {"q": qrels}, {"q": run})["q"]
        assert values(scorer.score(ask(**relevant), found(*listed))) == expected


def test_a_measure_of_ir_measures_beside_the_built_in_ones():
    pytest.importorskip("ir_measures", reason="needs the extra 'retrieval'")
    scorer = RetrievalQuality(["Judged@2", "RR"])
    assert values(scorer.score(ask(a=1.0, b=2.0), found("x", "a"))) == {"Judged@2": 0.5, "RR": 0.5}


def test_replies_with_ranks_out_of_order_share_nothing_with_their_listing():
    scorer = RetrievalQuality(["RR"])
    ranked = Reply(text="…", sources=(Source(id="x", rank=2), Source(id="a", rank=1)))
    assert values(scorer.score(ask(a=1.0), ranked)) == {"RR": 1.0}
    assert values(scorer.score(ask(a=1.0), found("x", "a"))) == {"RR": 0.5}


def test_why_there_is_no_value_is_listed_once():
    unseen = RetrievalQuality(["RR", "AP"]).score(ask(a=1.0), Reply(text="…"))
    assert [score.details for score in unseen] == [{"unscored": "sources were not observed"}, {}]
    partly = Reply(text="…", sources=(Source(text="no id"), Source(id="a")))
    assert RetrievalQuality(["RR"]).score(ask(a=1.0), partly)[0].details == {"sources_without_id": 1}
