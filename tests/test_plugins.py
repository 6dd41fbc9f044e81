"""Parts that a configuration names belong to that configuration, not to the process."""

from pathlib import Path
from typing import Any

import pytest

import answerkey as ak
from answerkey import plugins
from answerkey.config import Settings, load_settings
from answerkey.datasets.golden_sets import parse_question, read_questions
from answerkey.errors import InputError, UnknownNameError
from answerkey.runs.api import evaluate, score_replies
from answerkey.runs.audit import audit_questions
from answerkey.scorers.grader import grader_by, make_grader

QUESTION = parse_question({"id": "q", "question": "Hello?"})
REPLY = ak.Reply(text="Yes, please.")
DECORATED = "import answerkey\n\n\n@answerkey.scorer\n"


def project(folder: Path, value: float, *, reference: str = "checks.py:polite", head: str = "") -> Settings:
    """A project whose scorer `polite` always gives one value."""
    folder.mkdir()
    file = reference.partition(":")[0].removesuffix(".py") + ".py"
    (folder / file).write_text(f"{head}def polite(question, reply):\n    return {value}\n")
    (folder / "answerkey.toml").write_text(f'[scorers.polite]\npython = "{reference}"\n')
    return load_settings(folder)


def polite(grader: Any, question: ak.Question = QUESTION) -> float | None:
    value: float | None = grader.grade(question, (REPLY,)).metrics["polite"]
    return value


@pytest.mark.parametrize("head", ["", DECORATED])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("checks.py:polite", "checks.py:polite"),
        ("checks:polite", "checks:polite"),
        ("a.py:polite", "b.py:polite"),
    ],
)
def test_two_configurations_keep_their_own_scorers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, head: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    one = project(tmp_path / "one", 1.0, reference=first, head=head)
    grader_before = make_grader(one.scoring, one)
    two = project(tmp_path / "two", 0.0, reference=second, head=head)
    other_grader = make_grader(two.scoring, two)
    grader_after = make_grader(one.scoring, one)
    assert [polite(grader) for grader in (grader_before, other_grader, grader_after)] == [1.0, 0.0, 1.0]
    assert "polite" not in plugins.scorers.names()
    assert "polite" in one.scorer_registry.names()
    with pytest.raises(UnknownNameError, match="unknown scorer 'polite'"):
        plugins.scorers.get("polite")


@pytest.mark.parametrize("head", ["", DECORATED])
def test_a_grading_process_gets_the_scorers_of_its_configuration(tmp_path: Path, head: str) -> None:
    one = project(tmp_path / "one", 1.0, head=head)
    two = project(tmp_path / "two", 0.0, head=head)
    recipes = [make_grader(settings.scoring, settings).recipe for settings in (one, two)]
    assert [recipe is not None and polite(grader_by(recipe)) for recipe in recipes] == [1.0, 0.0]


def test_checks_name_the_scorers_of_their_configuration(tmp_path: Path) -> None:
    one, two = project(tmp_path / "one", 1.0), project(tmp_path / "two", 0.0)
    golden = tmp_path / "golden.jsonl"
    golden.write_text('{"id": "q", "question": "Hello?", "checks": [{"polite": {}}]}\n')
    values = [
        evaluate(golden, lambda question: "Yes, please.", settings=settings, store=str(tmp_path / "runs.db"))
        .results[0]
        .scorecard.metrics["checks"]
        for settings in (one, two)
    ]
    assert values == [1.0, 0.0]
    with pytest.raises(InputError, match="unknown kind of check 'polite'"):
        read_questions(golden)


def test_an_audit_uses_the_scorers_of_its_configuration(tmp_path: Path) -> None:
    one, two = project(tmp_path / "one", 1.0), project(tmp_path / "two", 0.0)
    golden = tmp_path / "golden.jsonl"
    golden.write_text('{"id": "q", "question": "Hello?", "checks": [{"polite": {}}]}\n')
    floors = []
    for settings in (one, two):
        weights = {"tool_usage": 0.5, "polite": 0.5}
        scoring = ak.Scoring(weights=weights)
        questions = read_questions(golden, registry=settings.scorer_registry)
        floors.append(audit_questions(questions, scoring, settings).floor)
    assert floors == [1.0, 0.5]


def test_rows_of_a_log_name_the_scorers_of_their_configuration(tmp_path: Path) -> None:
    one, two = project(tmp_path / "one", 1.0), project(tmp_path / "two", 0.0)
    log = tmp_path / "log.jsonl"
    log.write_text('{"id": "q", "question": "Hello?", "answer": "Yes.", "checks": [{"polite": {}}]}\n')
    values = [score_replies(log, settings=settings).summary.metrics["checks"] for settings in (one, two)]
    assert values == [1.0, 0.0]
