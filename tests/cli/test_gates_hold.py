"""Gates hold: after rescoring, with names that the golden set does not have, and without a deleted baseline."""

import pytest

BOT = """
from pathlib import Path

def answer(question):
    with Path("asked.txt").open("a") as file:
        file.write(question)
    return {"answer": "It costs 12 euros.", "tools_used": []}
"""
ROWS = [
    {
        "id": "a",
        "question": "What does the small box cost?",
        "category": "prices",
        "expected_keywords": ["12"],
    },
    {
        "id": "b",
        "question": "What does the large box cost?",
        "category": "prices",
        "expected_keywords": ["34", "99"],
    },
    {
        "id": "c",
        "question": "When do you open?",
        "category": "hours",
        "expected_keywords": ["9:00", "Monday"],
    },
]


@pytest.fixture
def bot(tmp_path, write_rows):
    (tmp_path / "bot.py").write_text(BOT)
    write_rows("golden.jsonl", *ROWS)
    return ("golden.jsonl", "--target", "bot.py:answer")


def test_a_rescored_run_evaluates_its_own_gates_again(bot, command):
    ran = command("run", *bot, "--gate", "score >= 0.99", "--gate", "coverage == 1", "--json")
    again = command("rescore", "--json")
    assert ran.code == again.code == 1
    assert again.document["gates"] == ran.document["gates"]
    [before] = again.document["run"]["rescored"]
    assert (before["match"], before["score"]) == ("standard", ran.document["summary"]["score"])
    shown = command("show").out
    assert "score >= 0.99   FAILED" in shown
    assert "rescored" in shown
    assert "by the same settings" in shown
    command("rescore", "--match", "literal")
    assert "by match standard" in command("show").out
    assert len(command("show", "--json").document["run"]["rescored"]) == 2


def test_a_rescored_run_keeps_its_baseline_beside_its_gates(bot, command):
    command("run", *bot, "--name", "base")
    ran = command(
        "run", *bot, "--baseline", "base", "--gate", "no regression", "--gate", "score >= 0.99", "--json"
    )
    again = command("rescore", "--json")
    assert again.code == 1
    assert again.document["gates"] == ran.document["gates"]
    assert again.document["comparison"]["base"]["name"] == "base"


def test_a_baseline_does_not_change_in_silence(bot, command):
    command("run", *bot)
    command("baseline", "set", "production", "latest")
    assert command("rescore", "production").code == 0
    refused = command("rescore", "production", "--match", "literal")
    assert refused.code == 2
    assert "is the baseline 'production'" in refused.err
    assert "--change-baseline" in refused.err
    assert command("show", "--json").document["run"]["match"] == "standard"
    assert command("rescore", "production", "--match", "literal", "--change-baseline").code == 0
    assert command("show", "--json").document["run"]["match"] == "literal"


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (
            'category "Prices" >= 0.8',
            "there is no category 'Prices'; did you mean 'prices'? known: hours, prices",
        ),
        ('question "d" >= 0.8', "there is no question 'd'"),
        ('tag "new" >= 0.8', "there is no tag 'new'"),
        ("every persona >= 0.8", "no question has a persona"),
    ],
)
def test_slices_are_checked_before_the_first_question(bot, command, tmp_path, gate, message):
    refused = command("run", *bot, "--gate", gate)
    assert refused.code == 2
    assert message in refused.err
    assert not (tmp_path / "asked.txt").exists()


def test_an_experiment_checks_slices_before_the_first_question(bot, command, tmp_path):
    refused = command("ab", bot[0], "--a", bot[2], "--b", bot[2], "--gate", 'category "Prices" >= 0.8')
    assert refused.code == 2
    assert "did you mean 'prices'" in refused.err
    assert not (tmp_path / "asked.txt").exists()


def test_what_only_a_log_knows_fails_its_gate_and_keeps_the_others(command, write_rows):
    write_rows("log.jsonl", *({**row, "reply": "It costs 12 euros."} for row in ROWS))
    scored = command(
        "score", "log.jsonl", "--gate", 'category "Prices" >= 0.8', "--gate", "coverage == 1", "--json"
    )
    assert scored.code == 1
    wrong, right = scored.document["gates"]
    assert not wrong["passed"]
    assert "did you mean 'prices'" in wrong["reason"]
    assert right["passed"]


def test_without_its_baseline_a_run_keeps_its_other_gates(bot, command):
    command("run", *bot, "--name", "base")
    command("run", *bot, "--baseline", "base", "--gate", "coverage == 1", "--gate", "difference >= 0")
    assert command("runs", "rm", "base", "--yes").code == 0
    document = command("show", "--json").document
    assert [(gate["gate"], gate["passed"]) for gate in document["gates"]] == [
        ("coverage == 1", True),
        ("difference >= 0", False),
    ]
    assert "cannot be evaluated any more" in document["gates"][1]["reason"]


def test_satisfaction_of_a_log_that_is_not_stored_is_unknown(command, write_rows):
    write_rows("log.jsonl", *({**row, "reply": "It costs 12 euros."} for row in ROWS))
    gate = ("score", "log.jsonl", "--gate", "satisfaction >= 0.6", "--json")
    [alone] = command(*gate).document["gates"]
    assert not alone["passed"]
    assert "this log is not stored" in alone["reason"]
    assert "--name N" in alone["reason"]
    [stored] = command(*gate, "--name", "november").document["gates"]
    assert stored["reason"] == "the store has no feedback of users"


def test_satisfaction_is_a_gate_of_a_run_as_of_its_feedback(bot, command):
    """The verdicts of users on stored replies decide it, whatever the run scores."""
    gates = ("--gate", "satisfaction >= 0.6", "--gate", "satisfaction.low >= 0.5")
    none = command("run", *bot, "--name", "first", *gates, "--json")
    assert none.code == 1
    assert [gate["reason"] for gate in none.document["gates"]] == ["the store has no feedback of users"] * 2
    for question, verdict in (("a", "up"), ("b", "up"), ("c", "down")):
        assert command("feedback", "add", "first", question, verdict).code == 0
    stats = command("feedback", "stats", *gates, "--json").document["gates"]
    ran = command("run", *bot, *gates, "--json").document["gates"]
    assert [(gate["passed"], gate["value"]) for gate in ran] == [
        (gate["passed"], gate["value"]) for gate in stats
    ]
    assert [gate["passed"] for gate in ran] == [True, False]
    assert ran[0]["value"] == pytest.approx(2 / 3)
    # Questions without a reply do not decide it.
    assert command("run", *bot, "--gate", "satisfaction > 60%").code == 0
    assert command("show", "first", "--json").document["gates"][0]["passed"]
    assert "satisfaction" in command("run", *bot, "--gate", "satisfied > 0.6").err
