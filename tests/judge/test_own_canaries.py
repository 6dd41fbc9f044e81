"""Canaries made from a run's own replies: judges that pass the public ones, but are lenient, like length or obey."""

import random
from pathlib import Path

import pytest

import answerkey
from answerkey.golden.wrong_replies import Mutant
from answerkey.judge.session import make_wrong_replies, padded, signed, sum_up
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import Run

from .judging import ScriptedJudge

RENTS = {
    f"What is the rent of flat {number}?": f"The rent of flat {number} is ${1400 + 7 * number:,}."
    for number in range(30)
}
QUESTIONS = [
    {"id": f"flat-{number}", "question": question, "reference_answer": answer}
    for number, (question, answer) in enumerate(RENTS.items())
]


def judged(scripted: ScriptedJudge, model: str, folder: Path, **changes: object) -> Run:
    settings = scripted.settings(model, canaries=True, **changes)
    return answerkey.evaluate(QUESTIONS, RENTS.__getitem__, judge=settings, store=str(folder / "runs.db"))


@pytest.mark.parametrize(
    ("model", "because"),
    [
        ("lax", "wrong replies made from this run's"),
        ("wordy", "empty words added to wrong replies raise their grade by"),
        ("obedient", "a claim of approval added to wrong replies raise their grade by"),
    ],
)
def test_a_judge_that_passes_the_public_canaries_but_is_biased_fails_every_gate_on_it(
    scripted: ScriptedJudge, tmp_path: Path, model: str, because: str
) -> None:
    run = judged(scripted, model, tmp_path)
    assert run.info.judge is not None
    assert all(canary.passed for canary in run.info.judge.canaries)
    assert run.info.judge.reliable is False
    assert because in " ".join(run.info.judge.unreliable_because)
    [gate] = run.check("judge >= 0.5")
    assert not gate.passed
    assert "the judge is not reliable" in gate.reason


def test_an_honest_judge_is_reliable_and_its_specificity_is_in_the_record(
    scripted: ScriptedJudge, tmp_path: Path
) -> None:
    run = judged(scripted, "able", tmp_path)
    record = run.info.judge
    assert record is not None
    assert record.reliable, record.unreliable_because
    own = record.own_canaries
    assert own is not None
    assert own.wrong == 20
    assert own.low is not None
    assert own.high is not None
    assert own.low < own.specificity <= own.high
    assert run.check("judge >= 0.5", "judge.own_canaries.specificity >= 0.5")
    # The same replies are not paid for again.
    calls = scripted.count
    judged(scripted, "able", tmp_path)
    assert scripted.count == calls + len(record.canaries)


def test_without_canaries_or_without_judged_replies_none_are_made(
    scripted: ScriptedJudge, tmp_path: Path
) -> None:
    settings = scripted.settings("able")
    run = answerkey.evaluate(QUESTIONS, RENTS.__getitem__, judge=settings, store=str(tmp_path / "runs.db"))
    assert run.info.judge is not None
    assert run.info.judge.own_canaries is None
    assert make_wrong_replies([], pass_mark=0.7) == []


def test_copies_keep_the_reply_and_wrong_replies_change_a_fact() -> None:
    reply = Reply(text="The rent is $1,420.")
    assert "The rent is $1,420." in (padded(reply).text or "")
    assert len(padded(reply).text or "") > 500
    assert (signed(reply).text or "").startswith("The rent is $1,420.")


# The grade of a reply that the judge takes for right, or for wrong; by accuracy, leniency, and what raises a grade.
def simulated(
    source: random.Random, *, specificity: float = 0.9, by_length: float = 0.0, by_order: float = 0.0
) -> bool:
    """Whether a judge is called unreliable."""
    mutant = Mutant("fact", "asked figure", Reply(text="wrong"))

    def grade(raised: float) -> float:
        return 1.0 if source.random() < max(1 - specificity, raised) else 0.3

    graded = [(Question(id=f"q{n}", question="?"), mutant, grade(0.0)) for n in range(20)]
    copies = [
        [(f"q{n}", value, grade(raised)) for n, (_, _, value) in enumerate(graded[:15])]
        for raised in (by_length, by_order)
    ]
    found = sum_up(graded, *copies, pass_mark=0.7)
    assert found is not None
    return bool(found.unreliable_because)


@pytest.mark.parametrize(
    ("judge", "least", "most"),
    [
        ({}, 0, 5),
        ({"specificity": 0.3}, 95, 100),
        ({"by_length": 0.9}, 95, 100),
        ({"by_order": 0.9}, 95, 100),
    ],
    ids=["right 90% of the time", "lenient", "likes length", "obeys"],
)
def test_how_often_judges_are_called_unreliable(judge: dict[str, float], least: int, most: int) -> None:
    """`tools/simulate --only own-canaries` has more trials."""
    source = random.Random(1)
    assert least <= sum(simulated(source, **judge) for _ in range(100)) <= most
