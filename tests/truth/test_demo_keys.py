"""Keys computed from the demo's tables: they agree with the typed ones, and no seeded fault of the data goes unseen."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.config import load_settings
from answerkey.datasets.golden_sets import read_questions
from answerkey.model.reply import Evidence, Reply, ToolCall
from answerkey.runs.truth import with_truth
from answerkey.scorers.plan import make_grader
from answerkey_demo import golden_set_path

EXAMPLE = Path(__file__).parents[2] / "examples" / "computed_key"
pytest.importorskip("duckdb", reason="computes keys from files with DuckDB")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    shutil.copytree(golden_set_path().parent, tmp_path / "data")
    monkeypatch.setenv("ANSWERKEY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def edit_table(data: Path, name: str, change: Callable[[dict[str, str]], dict[str, str] | None]) -> None:
    """Rewrite a table row by row; a row that becomes None is left out."""
    path = data / "tables" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(changed for row in rows if (changed := change(row)) is not None)


def separate_data(project: Path) -> Path:
    """Give the chatbot a copy of the data of its own, and return its folder."""
    shutil.copytree(project / "data", project / "old")
    bot = project / "bot.py"
    bot.write_text(bot.read_text().replace('Path("data")', 'Path("old")'))
    return project / "old"


def test_computed_and_typed_keys_agree(project: Path) -> None:
    settings = load_settings(project)
    resolved, truth = with_truth(read_questions(project / "golden.jsonl"), settings)
    assert truth is not None
    assert truth.computed == 48
    assert all(check.holds for check in truth.world)
    typed = {question.id: question for question in read_questions(golden_set_path())}
    grader = make_grader()
    for question in resolved:
        text = typed[question.id].reference_answer
        assert typed[question.id].question == question.question
        calls = tuple(ToolCall(name=tool.name) for tool in question.expected_tools)
        card = grader.grade(
            question, [Reply(text=text, tool_calls=calls, evidence=Evidence(tools_observed=True))]
        )
        assert card.passed, (question.id, text, card.components["response_quality"])


def test_the_clean_chatbot_passes(project: Path) -> None:
    run = answerkey.evaluate(settings=load_settings(project))
    assert [trial.question.id for trial in run.results if not trial.passed] == []
    assert run.summary.strength is not None
    assert run.summary.strength.value >= 0.95
    assert run.summary.metrics["abstained"] == 1.0


def failing(command: Callable[..., Any]) -> set[str]:
    done = command("run", "--json")
    return {result["id"] for result in done.document["results"] if not result["passed"]}


def test_an_empty_database_is_refused(project: Path, command: Callable[..., Any]) -> None:
    edit_table(project / "data", "transactions", lambda row: None)
    (project / "data" / "tables" / "transactions.csv").write_text(
        "id,date,property_id,kind,category,amount,party,description\n"
    )
    refused = command("run")
    assert refused.code == 3
    assert "transactions are loaded: expected > 500, found 0" in refused.err


def test_a_chatbot_on_an_empty_database_fails(project: Path, command: Callable[..., Any]) -> None:
    edit_table(separate_data(project), "transactions", lambda row: row if row["id"] == "T0001" else None)
    on_transactions = {"rent-aug-2024", "repairs-2024", "net-2024", "plumber-count", "tax-by-property"}
    assert failing(command) >= on_transactions


def test_a_stale_copy_fails(project: Path, command: Callable[..., Any]) -> None:
    separate_data(project)

    def corrected(row: dict[str, str]) -> dict[str, str]:
        is_changed = row["category"] in ("rent", "repairs") and row["date"].startswith("2024")
        return row | {"amount": f"{float(row['amount']) + 10:.2f}"} if is_changed else row

    edit_table(project / "data", "transactions", corrected)
    assert failing(command) == {"rent-aug-2024", "repairs-2024", "net-2024", "avg-rent-2024"}


REPLACED = """
import re
from answerkey_demo import open_chatbot
from pathlib import Path

async def answer(question):
    return await open_chatbot(data=Path("data")).ask({change})
"""


def test_the_wrong_month_fails(project: Path, command: Callable[..., Any]) -> None:
    change = 'question.replace("August 2024", "July 2024").replace("April 2023", "May 2023")'
    (project / "bot.py").write_text(REPLACED.format(change=change))
    # The rent of July 2024 was the same as that of August: the month is part of the key.
    assert failing(command) == {"rent-aug-2024", "rent-april-2023", "gas-summer"}


def test_another_property_fails(project: Path, command: Callable[..., Any]) -> None:
    change = 'question.replace("fourplex", "duplex").replace("the cabin", "the fourplex")'
    (project / "bot.py").write_text(REPLACED.format(change=change))
    assert failing(command) >= {"loan-balance", "equity", "rent-april-2023", "depreciation-2024"}


def test_hard_coded_answers_fail_when_the_data_changes(project: Path, command: Callable[..., Any]) -> None:
    """A chatbot that remembers its answers passes, until the data is another."""
    run = answerkey.evaluate(settings=load_settings(project))
    answers = {
        trial.question.question: (trial.replies[0].text, trial.replies[0].tools_used) for trial in run.results
    }
    (project / "answers.json").write_text(json.dumps(answers))
    (project / "bot.py").write_text(
        "import json\n\ndef answer(question):\n"
        "    text, tools = json.load(open('answers.json'))[question]\n"
        "    return {'answer': text, 'tools_used': tools}\n"
    )
    assert failing(command) == set()
    edit_table(
        project / "data",
        "transactions",
        lambda row: row | {"amount": f"{float(row['amount']) * 1.1:.2f}"},
    )
    assert failing(command) >= {
        "rent-aug-2024",
        "repairs-2024",
        "net-2024",
        "insurance-change",
        "tax-by-property",
    }
