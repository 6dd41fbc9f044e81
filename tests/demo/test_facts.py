"""The facts come from the data through the tools: change the data and the answer changes."""

import sqlite3
from pathlib import Path

import pytest

from answerkey_demo import open_chatbot


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_changed_row_changes_the_answer(data: Path) -> None:
    question = "What was my rental income in August 2024?"
    assert "$16,144" in open_chatbot(data=data).ask_sync(question)["answer"]
    with (data / "tables" / "transactions.csv").open("a", encoding="utf-8") as file:
        file.write("T9999,2024-08-30,P1,income,rent,100.50,Marisol Quintana,Unit A rent\n")
    assert "$16,244.50" in open_chatbot(data=data).ask_sync(question)["answer"]


def test_a_changed_address_and_basis_change_the_answers(data: Path) -> None:
    replace(data / "tables" / "properties.csv", "900 S 9th St", "17 Alder Way")
    replace(data / "tables" / "properties.csv", "84500,338800", "90000,338800")
    bot = open_chatbot(data=data)
    assert "17 Alder Way" in bot.ask_sync("What is our property address?")["answer"]
    assert "$447,800" in bot.ask_sync("What is the total basis of 17 Alder Way?")["answer"]


def test_a_changed_sentence_changes_the_quote(data: Path) -> None:
    question = "When is there a quorum at a members' meeting?"
    assert "70%" in open_chatbot(data=data).ask_sync(question)["answer"]
    replace(data / "documents" / "operating-agreement.md", "at least 70% of", "at least 62% of")
    answer = open_chatbot(data=data).ask_sync(question)["answer"]
    assert "62%" in answer
    assert "70%" not in answer


def test_a_removed_document_is_not_on_record_any_more(data: Path) -> None:
    lines = (data / "tables" / "documents.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("house-rules")]
    (data / "tables" / "documents.csv").write_text("".join(kept), encoding="utf-8")
    bot = open_chatbot(data=data)
    assert "Not on record" in bot.ask_sync("Which days is trash collected?")["answer"]
    assert "House Rules" not in bot.ask_sync("What documents do we have?")["answer"]


def test_a_row_changed_in_the_built_database_shows_at_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not the database that other tests read: it is built from the same data.
    monkeypatch.setenv("ANSWERKEY_CACHE_DIR", str(tmp_path / "own cache"))
    bot = open_chatbot(data=data)
    assert bot.knowledge.database.is_relative_to(tmp_path)
    assert "$430,000" in bot.ask_sync("What did we pay for 900 S 9th St?")["answer"]
    with sqlite3.connect(bot.knowledge.database) as db:
        db.execute("UPDATE properties SET purchase_price = 431000 WHERE id = 'P1'")
    db.close()
    assert "$431,000" in bot.ask_sync("What did we pay for 900 S 9th St?")["answer"]


def test_the_facts_of_the_methodology_hold() -> None:
    bot = open_chatbot()
    assert "900 S 9th St, Montrose, CO 81401" in bot.ask_sync("What is our property address?")["answer"]
    basis = bot.ask_sync("What is our property's total basis?")["answer"]
    assert all(part in basis for part in ("$442,300", "land", "building", "furniture", "depreciation"))
    assert "83-4567890" in bot.ask_sync("What is our EIN?")["answer"]
    assert "$16,144" in bot.ask_sync("What was my rental income in August 2024?")["answer"]
