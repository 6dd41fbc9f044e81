"""Keys computed from the demo's tables: they agree with the typed ones, and no seeded fault of the data goes unseen."""

import csv
import datetime
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.config import Settings, load_settings
from answerkey.datasets.golden_sets import read_questions
from answerkey.match.keywords import find_keywords
from answerkey.model.question import (
    DateExpectation,
    Expectation,
    NumberExpectation,
    describe_expectation,
    expected_options,
)
from answerkey.runs.context import with_truth
from answerkey_demo import database_path, golden_set_path

# The keys of the bundled set as they were typed before they were computed.
TYPED = Path(__file__).parent / "typed_keys.jsonl"
BOT = """
from pathlib import Path
from answerkey_demo import open_chatbot

async def answer(question):
    return await open_chatbot(data=Path("{data}")).ask({question})
"""
CONFIG = """
questions = "golden.jsonl"
target = "bot.py:answer"

[truth.demo]
url = "sqlite:///books.db"

[[world]]
name = "transactions are loaded"
from = "demo"
sql = "SELECT COUNT(*) FROM transactions"
expect = "> 500"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The bundled golden set, computed from a copy of the chatbot's data, and a chatbot that reads this copy."""
    shutil.copytree(golden_set_path().parent, tmp_path / "data")
    monkeypatch.setenv("ANSWERKEY_CACHE_DIR", str(tmp_path / "cache"))
    # Without the conversations: the chatbot below has no memory.
    rows = [line for line in golden_set_path().read_text().splitlines() if "turns" not in json.loads(line)]
    (tmp_path / "golden.jsonl").write_text("\n".join(rows))
    (tmp_path / "answerkey.toml").write_text(CONFIG)
    use_chatbot(tmp_path)
    build_database(tmp_path)
    return tmp_path


def use_chatbot(project: Path, data: str = "data", question: str = "question") -> None:
    (project / "bot.py").write_text(BOT.format(data=data, question=question))


def build_database(project: Path) -> None:
    """Build the database of the keys from the tables."""
    shutil.copyfile(database_path(project / "data"), project / "books.db")


def edit_table(data: Path, name: str, change: Callable[[dict[str, str]], dict[str, str] | None]) -> None:
    """Rewrite a table row by row; a row that becomes None is left out."""
    path = data / "tables" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(changed for row in rows if (changed := change(row)) is not None)
    if data.name == "data":
        build_database(data.parent)


def separate_data(project: Path) -> Path:
    """Give the chatbot a copy of the data of its own, and return its folder."""
    shutil.copytree(project / "data", project / "old")
    use_chatbot(project, data="old")
    return project / "old"


def test_computed_and_typed_keys_agree() -> None:
    """The queries were written from the questions and the tables; every typed figure, date and name is among the values."""
    resolved, truth = with_truth(read_questions(golden_set_path()), Settings())
    assert truth is not None
    assert truth.computed == 83
    computed = {turn.question: turn for question in resolved for turn in question.asks}
    typed = list(read_questions(TYPED).questions)
    assert len(typed) >= 57
    for question in typed:
        values = "; ".join(
            form for one in computed[question.question].expected_keywords for form in key_forms(one)
        )
        missing = [
            keyword
            for keyword, match in zip(
                question.expected_keywords, find_keywords(question.expected_keywords, values), strict=True
            )
            if not match.found
        ]
        assert missing == [], (question.question, values)


def key_forms(one: Expectation) -> list[str]:
    """A value as a reply may state it."""
    if isinstance(one, DateExpectation):
        day = datetime.date.fromisoformat(one.date)
        return [f"{day:%B} {day.day}, {day.year}"]
    if isinstance(one, NumberExpectation):
        return [f"{one.number:.2f}", f"{one.number:.1f}%"]
    return [
        option if isinstance(option, str) else describe_expectation(option)
        for option in expected_options(one)
    ]


def test_the_clean_chatbot_fails_only_what_it_cannot_do(project: Path) -> None:
    run = answerkey.evaluate(settings=load_settings(project))
    assert {trial.question.id for trial in run.results if not trial.passed} == CANNOT
    assert run.summary.strength is not None
    assert run.summary.strength.value >= 0.95
    assert run.summary.metrics["abstained"] == 1.0


# Questions that need two sources combined.
CANNOT = {"max-increase", "spending-limit", "vacancy-loss"}


def failing(command: Callable[..., Any]) -> set[str]:
    done = command("run", "--json")
    return {result["id"] for result in done.document["results"] if not result["passed"]} - CANNOT


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


def test_the_wrong_month_fails(project: Path, command: Callable[..., Any]) -> None:
    use_chatbot(
        project, question='question.replace("August 2024", "July 2024").replace("April 2023", "May 2023")'
    )
    # The rent of July 2024 was the same as that of August: the month is part of the key.
    assert failing(command) == {"rent-aug-2024", "rent-april-2023", "gas-summer"}


def test_another_property_fails(project: Path, command: Callable[..., Any]) -> None:
    use_chatbot(
        project, question='question.replace("fourplex", "duplex").replace("the cabin", "the fourplex")'
    )
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
