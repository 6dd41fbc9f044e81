"""Computed expectations and preconditions through the commands: what is refused, graded, stored and recomputed."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.golden.truth import with_stored_values
from answerkey.model.question import ComputedExpectation, Question

CONFIG = """
questions = "golden.jsonl"
target = "bot.py:answer"

[truth.books]
url = "sqlite:///books.db"

[[world]]
name = "reservations are loaded"
from = "books"
sql = "SELECT COUNT(*) FROM reservations"
expect = "> 0"
"""
# Reads the same database as the key.
BOT = """
import re, sqlite3
def answer(question):
    month = {"July": "2025-07", "August": "2025-08"}[re.search("July|August", question)[0]]
    with sqlite3.connect("books.db") as db:
        total = db.execute("SELECT SUM(gross) FROM reservations WHERE month = ?", (month,)).fetchone()[0]
    return f"You took in ${total or 0:,.2f} in that month."
"""
TOTAL = {"sql": "SELECT SUM(gross) FROM reservations WHERE month = :month", "from": "books", "must": True}
QUESTIONS = [
    {"id": "july", "question": "What did we earn in July?", "month": "2025-07", "expected_keywords": [TOTAL]},
    {
        "id": "august",
        "question": "What did we earn in August?",
        "expected_keywords": [{**TOTAL, "params": {"month": "2025-08"}}],
    },
]


@pytest.fixture
def project(tmp_path: Path, write_rows: Callable[..., Path]) -> Path:
    (tmp_path / "answerkey.toml").write_text(CONFIG)
    (tmp_path / "bot.py").write_text(BOT)
    write_rows("golden.jsonl", *QUESTIONS)
    fill(tmp_path, ("2025-07", 3000.5), ("2025-07", 959.5), ("2025-08", 9209.0))
    return tmp_path


def fill(folder: Path, *rows: tuple[str, float]) -> None:
    connection = sqlite3.connect(folder / "books.db")
    with connection:
        connection.execute("CREATE TABLE IF NOT EXISTS reservations (month TEXT, gross REAL)")
        connection.execute("DELETE FROM reservations")
        connection.executemany("INSERT INTO reservations VALUES (?, ?)", rows)
    connection.close()


def test_a_bot_that_reads_the_data_passes(command: Callable[..., Any], project: Path) -> None:
    run = command("run", "--json").document
    assert run["summary"]["score"] == 1.0
    assert run["summary"]["truth"]["computed"] == 2
    assert run["summary"]["truth"]["world"] == [
        {"name": "reservations are loaded", "value": 3, "expect": "> 0", "holds": True}
    ]
    quality = run["results"][0]["components"]["response_quality"]
    assert quality["found"] == ["3960"]
    assert quality["expected"][0]["computed"] is True


@pytest.mark.parametrize(
    ("value", "reply", "score"),
    [
        ("16:30", "Until 4:30 pm.", 1.0),
        ("16:30", "Until 16.30 Uhr.", 1.0),
        ("16:30:00", "Half past four.", 1.0),
        ("08:00", "From 8 am.", 1.0),
        ("12:30", "At 12:30 am.", 0.6),
        ("08:00", "At 08:00 pm.", 0.6),
        ("8:00", "At 18:00.", 0.6),
        ("2025-04-09 12:30", "On 9 April 2025 at 12:30.", 1.0),
        ("2025-04-09T12:30:00", "On 9 April 2025 at 2:30 pm.", 0.6),
    ],
)
def test_a_computed_time_is_expected_as_a_time(
    command: Callable[..., Any],
    project: Path,
    write_rows: Callable[..., Path],
    value: str,
    reply: str,
    score: float,
) -> None:
    expected = {"sql": f"SELECT '{value}'", "from": "books", "must": True}
    golden = write_rows("times.jsonl", {"id": "t", "question": "When?", "expected_keywords": [expected]})
    replies = write_rows("replies.jsonl", {"id": "t", "answer": reply, "tools_used": []})
    done = command("score", replies, "--questions", golden, "--json")
    assert done.document["summary"]["score"] == score, done.document["results"]


def test_a_bot_that_invents_a_figure_fails(command: Callable[..., Any], project: Path) -> None:
    (project / "bot.py").write_text("def answer(question):\n    return 'It was $1 in total, I think.'\n")
    run = command("run", "--json").document
    assert all(result["score"] < 0.7 for result in run["results"])


def test_an_empty_database_ends_the_run_before_the_first_question(
    command: Callable[..., Any], project: Path
) -> None:
    fill(project)
    (project / "bot.py").write_text(
        "import pathlib\ndef answer(question):\n    pathlib.Path('asked').touch()\n    return 'The total was $0.'\n"
    )
    refused = command("run")
    assert refused.code == 3
    assert "reservations are loaded: expected > 0, found 0" in refused.err
    assert "golden.jsonl:1: july: sql" in refused.err
    assert "gives NULL" in refused.err
    assert "golden.jsonl:2: august" in refused.err
    assert "Traceback" not in refused.err
    assert not (project / "asked").exists()
    assert not (project / ".answerkey").exists()


def test_a_world_without_computed_keys_is_checked_too(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    write_rows(
        "golden.jsonl", {"id": "a", "question": "What did we earn in July?", "expected_keywords": ["3,960"]}
    )
    assert command("run").code == 0
    fill(project)
    assert command("run").code == 3


def test_a_log_is_checked_in_the_same_way(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    log = write_rows("log.jsonl", {"id": "july", "answer": "$3,960"}, {"id": "august", "answer": "$1"})
    scored = command("score", log, "--questions", "golden.jsonl", "--json").document
    assert [result["score"] for result in scored["results"]] == [1.0, 0.6]
    fill(project)
    assert command("score", log, "--questions", "golden.jsonl").code == 3


def test_truth_prints_every_value_with_its_query(command: Callable[..., Any], project: Path) -> None:
    document = command("truth", "--json").document
    assert document["world"] == [
        {"name": "reservations are loaded", "value": 3, "expect": "> 0", "holds": True}
    ]
    assert [(key["id"], key["from"], key["value"], key["rows"]) for key in document["keys"]] == [
        ("july", "books", 3960.0, 1),
        ("august", "books", 9209.0, 1),
    ]
    assert all(key["expression"].startswith("SELECT") and key["ms"] >= 0 for key in document["keys"])
    shown = command("truth")
    assert shown.code == 0
    assert "3960" in shown.out
    fill(project)
    assert command("truth", "--json").code == 3


def test_rescore_keeps_the_stored_values_unless_told(command: Callable[..., Any], project: Path) -> None:
    assert command("run").code == 0
    fill(project, ("2025-07", 100.0), ("2025-08", 9209.0))
    assert command("rescore", "latest", "--json").document["summary"]["score"] == 1.0
    recomputed = command("rescore", "latest", "--recompute-truth", "--json").document
    assert [result["score"] for result in recomputed["results"]] == [0.6, 1.0]


def test_rescoring_by_the_unchanged_file_keeps_the_stored_values(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    # Of next month there is no row: this one stays without a value.
    empty = {"sql": "SELECT gross FROM reservations WHERE month = '2025-09'", "on_empty": "abstain"}
    last = {"id": "last", "question": "What did we earn in August after tax?", "expected_keywords": [empty]}
    write_rows("golden.jsonl", *QUESTIONS, last)
    ran = command("run", "--name", "a", "--json").document
    fill(project, ("2025-07", 100.0), ("2025-08", 1.0))
    command("baseline", "set", "production", "a")
    for _ in range(2):
        again = command("rescore", "a", "--questions", "golden.jsonl", "--json").document
        assert again["results"] == ran["results"]
        assert again["run"]["question_set_hash"] == ran["run"]["question_set_hash"]


def test_rescoring_by_an_edited_file_applies_what_needs_no_value(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    command("run", "--name", "a")
    fill(project, ("2025-07", 100.0), ("2025-08", 1.0))
    july = {**QUESTIONS[0], "expected_keywords": [{**TOTAL, "must": False}, "by the end of the month"]}
    write_rows("golden.jsonl", july, QUESTIONS[1])
    rescored = command("rescore", "a", "--questions", "golden.jsonl", "--json").document
    quality = rescored["results"][0]["components"]["response_quality"]
    assert (quality["found"], quality["missing"]) == (["3960"], ["by the end of the month"])
    assert rescored["results"][1]["score"] == 1.0


@pytest.mark.parametrize(
    "row",
    [
        {**QUESTIONS[0], "month": "2025-08"},
        {**QUESTIONS[0], "expected_keywords": [{**TOTAL, "sql": "SELECT MAX(gross) FROM reservations"}]},
        {**QUESTIONS[0], "id": "new"},
    ],
    ids=["named field", "expression", "new question"],
)
def test_rescoring_refuses_an_expectation_without_a_stored_value(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path], row: dict[str, Any]
) -> None:
    command("run", "--name", "a")
    before = command("show", "a", "--json").document
    write_rows("golden.jsonl", row, QUESTIONS[1])
    refused = command("rescore", "a", "--questions", "golden.jsonl")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert f"golden.jsonl:1: {row['id']}: sql " in refused.err
    assert "--recompute-truth" in refused.err
    assert command("show", "a", "--json").document == before
    computed = command("rescore", "a", "--questions", "golden.jsonl", "--recompute-truth", "--json").document
    assert computed["run"]["question_set_hash"] != before["run"]["question_set_hash"]


def test_rescoring_says_that_the_golden_file_has_changed(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    def warning() -> str:
        return next(
            (one for one in command("rescore", "a", "--json").document["warnings"] if "golden" in one), ""
        )

    command("run", "--name", "a")
    fill(project, ("2025-07", 100.0), ("2025-08", 1.0))
    assert warning() == ""
    # Another set does not change the file of the run.
    other = write_rows("other.jsonl", {**QUESTIONS[0], "expected_keywords": ["3,960"]})
    command("rescore", "a", "--questions", str(other))
    assert warning() == ""
    write_rows("golden.jsonl", {**QUESTIONS[0], "expected_keywords": ["$3,960"]}, QUESTIONS[1])
    assert "has changed since the run" in warning()
    assert "golden.jsonl" in warning().partition("--questions ")[2]
    command("rescore", "a", "--questions", "golden.jsonl", "--recompute-truth")
    assert warning() == ""
    (project / "golden.jsonl").write_text("{")
    assert "has changed since the run" in warning()
    (project / "golden.jsonl").unlink()
    assert warning() == ""


def test_reuse_asks_again_where_the_truth_moved(command: Callable[..., Any], project: Path) -> None:
    (project / "bot.py").write_text(
        BOT.replace(
            "def answer(question):", "def answer(question):\n    open('asked', 'a').write(question + '\\n')"
        )
    )
    assert command("run").code == 0
    (project / "asked").unlink()
    fill(project, ("2025-07", 100.0), ("2025-08", 9209.0))
    run = command("run", "--reuse", "--json").document
    assert run["summary"]["score"] == 1.0
    assert (project / "asked").read_text() == "What did we earn in July?\n"


def test_resume_keeps_the_values_of_the_run(command: Callable[..., Any], project: Path) -> None:
    first = command("run", "--json").document["run"]["id"]
    fill(project, ("2025-07", 100.0), ("2025-08", 1.0))
    resumed = command("resume", first, "--json")
    assert resumed.code == 0
    assert resumed.document["summary"]["score"] == 1.0


@pytest.mark.parametrize(
    ("reply", "score", "quality"),
    [("There is no record of that.", 1.0, 1.0), ("It was $4,210 in August of last year.", 0.8, 0.0)],
)
def test_a_question_without_a_value_can_be_one_to_decline(
    command: Callable[..., Any],
    project: Path,
    write_rows: Callable[..., Path],
    reply: str,
    score: float,
    quality: float,
) -> None:
    september = {
        "id": "september",
        "question": "What did we earn in August of last year?",
        "expected_keywords": [{**TOTAL, "params": {"month": "2024-08"}, "on_empty": "abstain"}],
    }
    write_rows("golden.jsonl", QUESTIONS[0], september)
    (project / "bot.py").write_text(
        f"def answer(question):\n    return {reply!r} if 'last year' in question else 'It was $3,960.'\n"
    )
    document = command("run", "--json").document
    assert document["summary"]["score"] == score
    result = next(one for one in document["results"] if one["id"] == "september")
    assert result["components"]["response_quality"]["score"] == quality
    metrics = document["summary"]["metrics"]
    assert (metrics["abstained"], metrics["over_refused"]) == (quality, 0.0)


def test_what_is_forbidden_and_has_no_value_forbids_nothing(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    old = {**TOTAL, "params": {"month": "2024-08"}, "on_empty": "abstain"}
    write_rows("golden.jsonl", {**QUESTIONS[0], "forbidden_keywords": [old]})
    (project / "bot.py").write_text("def answer(question):\n    return 'It was $3,960.'\n")
    assert command("run", "--json").document["summary"]["score"] == 1.0
    rescored = command("rescore", "latest", "--questions", "golden.jsonl", "--json")
    assert rescored.document["summary"]["score"] == 1.0


def test_a_value_that_is_yet_to_be_computed_leaves_the_question_answerable() -> None:
    new = ComputedExpectation(method="sql", expression="SELECT 1", on_empty="abstain")
    case = Question(id="q", question="How much?", expected_keywords=(new,))
    found = with_stored_values(case, Question(id="q", question="How much?"))
    assert (found.missing, found.question) == ([new], case)


NEVER_ENDS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT COUNT(*) FROM n WHERE x > 0"
)
MANY = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000) SELECT x FROM n"


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ({"sql": "SELECT gross FROM nowhere", "from": "books"}, "no such table"),
        ({"sql": "SELECT 1", "from": "boks"}, "there is no [truth.boks]"),
        ({"sql": "UPDATE reservations SET gross = 0", "from": "books"}, "read-only"),
        ({"sql": "ATTACH 'other.db' AS other", "from": "books"}, "read-only"),
        ({"sql": "SELECT 1; SELECT 2", "from": "books"}, "several statements"),
        ({"sql": NEVER_ENDS, "from": "books"}, "took longer than 0.5 s"),
        ({"sql": MANY, "from": "books"}, "more than 10,000 rows"),
        (
            {"sql": "SELECT month, gross FROM reservations", "from": "books"},
            "returns 2 columns (month, gross)",
        ),
        ({"sql": "SELECT x'00ff'", "from": "books"}, "binary (a BLOB)"),
        ({"sql": "SELECT 9e999", "from": "books"}, "inf, which is not a number"),
        ({"sql": "SELECT gross FROM reservations WHERE month = 'x'", "from": "books"}, "gives no row"),
        ({"sql": "SELECT NULL", "from": "books"}, "gives NULL"),
        ({"sql": "SELECT :year", "from": "books"}, "no value for :year"),
        ({"fact": "a.b", "from": "books"}, "computes 'sql', not 'fact'"),
        ({"fact": "entity.founded", "from": "facts"}, "no value at 'entity.founded'; entity has formed"),
        ({"fact": "entity", "from": "facts"}, "is an object with formed"),
        ({"python": "total"}, "functions.py has no 'total'; it has fails, nan, gone, many"),
        ({"python": "fails"}, "fails() raised ZeroDivisionError: division by zero"),
        ({"python": "nan"}, "the value is nan, which is not a number"),
        ({"python": "gone"}, "gives NULL"),
        ({"python": "many"}, "gives 20,000 values, more than 10,000; aggregate them, or raise max_rows"),
        ({"python": "fails", "args": {"month": 1}}, "fails() raised TypeError"),
    ],
)
def test_a_key_that_cannot_be_computed_is_one_line(
    expectation: dict[str, Any],
    message: str,
    command: Callable[..., Any],
    project: Path,
    write_rows: Callable[..., Path],
) -> None:
    (project / "facts.yml").write_text("entity:\n  formed: 2019-04-01\n")
    (project / "functions.py").write_text(
        "def fails():\n    return 1 / 0\n\ndef nan():\n    return float('nan')\n\ndef gone():\n    return None\n"
        "\ndef many():\n    return list(range(20_000))\n"
    )
    sources = '[truth.facts]\ndocument = "facts.yml"\n[truth.rules]\npython = "functions.py"\n'
    (project / "answerkey.toml").write_text(
        CONFIG.replace('books.db"\n', 'books.db"\ntimeout = 0.5\n') + sources
    )
    (project / "bot.py").write_text("raise SystemExit('the chatbot was started')\n")
    write_rows(
        "golden.jsonl", QUESTIONS[0], {"id": "b", "question": "What?", "expected_keywords": [expectation]}
    )
    refused = command("run")
    assert refused.code in (2, 3)
    assert message in refused.err
    assert "golden.jsonl:2: b:" in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert not (project / ".answerkey").exists()
    assert command("truth").code == 3


def test_sources_that_cannot_be_opened_are_one_line(command: Callable[..., Any], project: Path) -> None:
    def refusal(source: str) -> str:
        (project / "answerkey.toml").write_text(
            f'questions = "golden.jsonl"\ntarget = "bot.py:answer"\n[truth.books]\n{source}\n'
        )
        done = command("run")
        assert done.code in (2, 3)
        assert not (project / ".answerkey").exists()
        lines = done.err.strip().splitlines()
        # One line for each of the two questions, or one for the configuration.
        assert [line.count("golden.jsonl:") for line in lines] in ([1, 1], [0]), done.err
        return str(lines[0])

    assert "no such file" in refusal('url = "sqlite:///missing.db"')
    assert "use sqlite:///path or postgresql://" in refusal('url = "mysql://localhost/books"')
    assert "[truth.books] url: " in refusal('url = "postgresql://127.0.0.1:9/books"')
    assert "no such file" in refusal('files = { reservations = "missing_*.csv" }')
    (project / "reservations.csv").write_bytes(b"\xff\xfe\x00broken")
    assert "use .csv, .tsv, .parquet, .json or .jsonl" in refusal('files = { reservations = "books.db" }')
    assert "exactly one of url, files, document, python" in refusal(
        'url = "sqlite:///books.db"\npython = "t.py"'
    )
    locked = sqlite3.connect(project / "books.db", isolation_level=None)
    locked.execute("BEGIN EXCLUSIVE")
    try:
        assert "locked" in refusal('url = "sqlite:///books.db"')
    finally:
        locked.close()


def test_the_users_rows_name_a_function(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    (project / "truth.py").write_text(
        "import csv\n"
        "def total(month):\n"
        "    rows = csv.DictReader(open('airbnb.csv'))\n"
        "    return sum(float(row['amount']) for row in rows if row['checkout'].startswith(month))\n"
        "def guests(month):\n"
        "    rows = csv.DictReader(open('airbnb.csv'))\n"
        "    return [row['guest'] for row in rows if row['checkout'].startswith(month)]\n"
    )
    (project / "airbnb.csv").write_text(
        "guest,amount,checkout\nAnn Lee,3000.50,2025-07-04\nBen Roe,959.50,2025-07-30\n"
    )
    (project / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\ntarget = "bot.py:answer"\n[truth.rules]\npython = "truth.py"\n'
        'rows = { function = "validation_type", args = "validation_params" }\n'
    )
    write_rows(
        "golden.jsonl",
        {
            "id": "a",
            "question": "July?",
            "validation_type": "total",
            "validation_params": {"month": "2025-07"},
        },
        {
            "id": "b",
            "question": "Who?",
            "validation_type": "guests",
            "validation_params": {"month": "2025-07"},
        },
    )
    (project / "bot.py").write_text("def answer(question):\n    return 'It was $1 in total, I think.'\n")
    assert all(result["score"] < 0.7 for result in command("run", "--json").document["results"])
    (project / "bot.py").write_text("def answer(question):\n    return 'Ann Lee and Ben Roe paid $3,960.'\n")
    assert command("run", "--json").document["summary"]["score"] == 1.0


def test_a_health_endpoint_is_a_precondition(
    command: Callable[..., Any], project: Path, chatbot: Callable[..., Any]
) -> None:
    bot = chatbot(lambda body: {"answer": "You took in $3,960.00 in July and $9,209 in August."})
    health = '[[world]]\nname = "documents"\nget = "{}"\nvalue = "documents.count"\nexpect = "> 0"\n'

    def refusal(address: str) -> str:
        text = CONFIG.replace("bot.py:answer", bot.url) + health.format(address)
        (project / "answerkey.toml").write_text(text)
        done = command("run")
        assert (done.code, len(bot.asked)) == (3, 0), done.err
        assert len(done.err.strip().splitlines()) == 1
        return str(done.err)

    bot.health = {"documents": {"count": 0}}
    assert "world: documents: expected > 0, found 0" in refusal(bot.health_url)
    bot.health = {"state": "starting"}
    assert "world: documents: expected > 0, found nothing" in refusal(bot.health_url)
    assert "HTTP 404 Not Found" in refusal(bot.health_url + "/nowhere")
    assert "http://127.0.0.1:9/health" in refusal("http://127.0.0.1:9/health")
    bot.health = {"documents": {"count": 12}}
    (project / "answerkey.toml").write_text(
        CONFIG.replace("bot.py:answer", bot.url) + health.format(bot.health_url)
    )
    done = command("run", "--json")
    assert done.code == 0
    assert done.document["summary"]["truth"]["world"][1] == {
        "name": "documents",
        "value": 12,
        "expect": "> 0",
        "holds": True,
    }


def test_doctor_checks_truth_and_world(command: Callable[..., Any], project: Path) -> None:
    shown = command("doctor")
    assert "2 values computed, 1 of 1 preconditions hold" in shown.out
    fill(project)
    shown = command("doctor")
    assert shown.code == 1
    assert "reservations are loaded: expected > 0, found 0; and 2 more" in shown.out


def test_ten_thousand_keys_share_their_query(project: Path) -> None:
    from answerkey.config import load_settings
    from answerkey.datasets.golden_sets import parse_question
    from answerkey.model.question import QuestionSet
    from answerkey.runs.context import with_truth

    rows = [
        {
            **QUESTIONS[1],
            "id": f"q{n}",
            "expected_keywords": [{**TOTAL, "params": {"month": "2025-08", "n": n}}],
        }
        for n in range(2_000)
    ]
    questions = QuestionSet(questions=tuple(parse_question(row) for row in rows))
    resolved, truth = with_truth(questions, load_settings(project))
    assert truth is not None
    assert truth.computed == 2_000
    assert json.loads(json.dumps([question.computed_values for question in resolved]))[0]


def test_compare_lists_changed_truth_apart_from_edits(
    command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]
) -> None:
    assert command("run", "--name", "before").code == 0
    fill(project, ("2025-07", 100.0), ("2025-08", 9209.0))
    assert command("run", "--name", "after").code == 0
    document = command("compare", "before", "after", "--json").document
    assert document["truth_changed"] == [{"id": "july", "from": "3960", "to": "100"}]
    assert document["edited"] == []
    assert document["difference"]["mean"] == 0.0
    assert "july (3960 → 100)" in " ".join(command("compare", "before", "after").out.split())
    write_rows("golden.jsonl", {**QUESTIONS[0], "question": "What was earned in July?"}, QUESTIONS[1])
    assert command("run", "--name", "edited").code == 0
    edited = command("compare", "after", "edited", "--json").document
    assert (edited["truth_changed"], edited["edited"]) == ([], ["july"])


def test_a_twin_tells_reading_from_remembering(command: Callable[..., Any], project: Path) -> None:
    made = command("truth", "--twin", "twin", "--json").document
    assert made["columns"] == ["books.reservations.gross"]
    assert made["changed"] == [
        {"id": "july", "from": 3960.0, "to": pytest.approx(3960 * 1.37 + 6, abs=0.02)},
        {"id": "august", "from": 9209.0, "to": pytest.approx(9209 * 1.37 + 3, abs=0.02)},
    ]
    # The data itself stays as it was.
    assert command("truth", "--json").document["keys"][0]["value"] == 3960.0
    bot = project / "bot.py"
    reading = BOT.replace("books.db", "twin/books.db")
    bot.write_text(reading)
    assert command("run", "twin/golden.jsonl", "--gate", "score == 1").code == 0
    bot.write_text("def answer(question):\n    return '$3,960 in July, $9,209 in August.'\n")
    assert command("run", "--gate", "score == 1").code == 0
    remembered = command("run", "twin/golden.jsonl", "--json").document
    assert [result["passed"] for result in remembered["results"]] == [False, False]
    again = command("truth", "--twin", "twin")
    assert (again.code, "exists already" in again.err) == (2, True)


def test_a_twin_of_files(command: Callable[..., Any], project: Path, write_rows: Callable[..., Path]) -> None:
    (project / "airbnb.csv").write_text(
        "id,guest,year,amount\n1,Ann Lee,2025,3000.50\n2,Ben Roe,2025,959.50\n3,Cy Poe,2024,10\n"
    )
    (project / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\n[truth.airbnb]\nfiles = { stays = "airbnb.csv" }\n'
    )
    total = {"sql": "SELECT SUM(amount) FROM stays WHERE year = 2025", "must": True}
    guests = {"sql": "SELECT guest FROM stays WHERE year = 2025"}
    write_rows(
        "golden.jsonl",
        {"id": "total", "question": "How much?", "expected_keywords": [total]},
        {"id": "guests", "question": "Who?", "expected_keywords": [guests]},
    )
    made = command("truth", "--twin", "twin", "--json").document
    # Another year would leave no row.
    assert made["columns"] == ["airbnb.stays.amount"]
    assert made["unchanged"] == ["guests"]
    [row] = [json.loads(line) for line in (project / "twin/golden.jsonl").read_text().splitlines()]
    assert row["expected_keywords"] == [
        {"number": pytest.approx(5431.2, abs=0.02), "tolerance": 0.005, "must": True}
    ]


def test_a_command_with_files_as_truth_reports_nothing_else(project: Path) -> None:
    (project / "airbnb.csv").write_text("guest,amount\nAnn Lee,3000.50\n")
    (project / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\n[truth.airbnb]\nfiles = { stays = "airbnb.csv" }\n'
    )
    total = {"sql": "SELECT SUM(amount) FROM stays"}
    case = {"id": "total", "question": "How much?", "expected_keywords": [total]}
    (project / "golden.jsonl").write_text(json.dumps(case))
    done = subprocess.run(
        [sys.executable, "-m", "answerkey", "truth"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "3000.5" in done.stdout
    assert done.stderr == ""


def test_a_twin_needs_data(command: Callable[..., Any], project: Path) -> None:
    (project / "answerkey.toml").write_text('questions = "golden.jsonl"\n')
    refused = command("truth", "--twin", "twin")
    assert refused.code == 2
    assert "needs a source under [truth]" in refused.err
    assert not (project / "twin").exists()


def test_a_missing_value_is_said_to_be_computed(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text('{"rent": 1420.5}')
    (tmp_path / "golden.jsonl").write_text(
        '{"id": "rent", "question": "Rent?", "expected_keywords": [{"fact": "rent", "must": true}]}\n'
    )
    (tmp_path / "bot.py").write_text("def answer(question):\n    return 'It is $9.'\n")
    (tmp_path / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\ntarget = "bot.py:answer"\n[truth.facts]\ndocument = "facts.json"\n'
    )
    done = command("run", "--json")
    [result] = done.document["results"]
    quality = result["components"]["response_quality"]
    assert quality["reason"] == "missing 1420.50 (computed), which is essential"
    assert quality["expected"][0]["computed"]
    assert "missing keywords: 1420.50 (computed)" in command("show", "--failures").out
