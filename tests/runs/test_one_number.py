"""One scoring: the same trials get the same numbers through every entry and every output."""

import csv
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import answerkey as ak
from answerkey.config import load_settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.model.judgement import ProductionReply
from answerkey.runs.api import rescore, score_replies
from answerkey.runs.log_rows import RowReader
from answerkey.runs.logs import LogScoring
from answerkey.runs.production import ProductionGrading
from answerkey.transcripts.recorded_rows import reply_in_row

COMPONENTS = ("tool_usage", "response_quality", "error_handling")
GOLDEN = [
    {
        "id": f"q{n}",
        "question": f"What is the rent of unit {n}?",
        "category": "AB"[n % 2],
        "expected_keywords": [["rent"], ["1200", "Rent"], ["1,200.00", "zürich", "7%"], []][n % 4],
        "expected_tools": [[], ["db"], ["db", "web"]][n % 3],
        "group": f"g{n // 4}" if n % 5 else None,
    }
    for n in range(12)
]
ANSWERS = [
    *(
        None,
        "",
        "  ",
        "The rent is $1,200.",
        "Die Miete in Zürich beträgt 1.200,00 €, also 7 %.",
        "nul\0 1200",
    ),
    *(
        "Something went wrong.",
        "I do not know.",
        "家賃は1,200ドルです。",
        "Traceback (most recent call last):\n  x",
    ),
]
# Every way in which a row can tell of tools, alone and against another.
TOOLS: list[dict[str, Any]] = [
    *({}, {"tools_used": None}, {"tools_used": []}, {"tools_used": ["db"]}, {"tools_used": ["süd", "db"]}),
    {"tool_calls": ["db"]},
    {"tool_calls": [{"name": "db", "arguments": {"q": 1}, "result": "x"}, "web"]},
    {"tool_calls": [{"name": "db", "error": "refused"}]},
    {"tools_used": ["db", "web"], "tool_calls": ["search"]},
    {"tools_used": ["web"], "tool_calls": []},
    {"tools_used": ["web"], "tool_calls": [{"name": "db", "duration_ms": 12.5}]},
    {"tools_used": [], "toolCalls": ["db"]},
]
BESIDE: list[dict[str, Any]] = [
    {},
    {"sources": []},
    {"sources": ["a.pdf"], "conversation_id": "c 1"},
    {"usage": {"input_tokens": 7, "completion_tokens": 2}},
    {"usage": {"input_tokens": 7, "cost": 1}},
    {"error": "TimeoutError: late"},
    {"evidence": {"kind": "log", "completeness": "partial", "tools_observed": False}},
    {"at": "2026-11-01", "user": {"name": "Ann"}},
]


def generated_rows(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Rows of a log with random combinations of fields; each names its question by id, by wording, or both."""
    chosen = random.Random(seed)
    for _ in range(count):
        case = chosen.choice(GOLDEN)
        row = chosen.choice([{"id": case["id"]}, {"question": case["question"]}, dict(case)])
        row = {**row, chosen.choice(["answer", "response", "output_text"]): chosen.choice(ANSWERS)}
        row |= chosen.choice(TOOLS)
        row |= chosen.choice(BESIDE)
        if chosen.random() < 0.5:
            row["latency_ms"] = chosen.choice([5, 17.25, round(chosen.uniform(1, 9e4), 2)])
        yield row


Numbers = list[tuple[Any, ...]]


def numbers(results: Any) -> Numbers:
    """What is compared of each result of a run document: identity, score, components, error."""
    return [
        (
            *(row["id"], row["trial"], row["score"], row["grade"], row["passed"]),
            *(row["components"][name]["score"] for name in COMPONENTS),
            (row["error"] or {}).get("kind"),
        )
        for row in results
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("golden", [True, False], ids=["golden set", "inline"])
@pytest.mark.parametrize("seed", range(4))
def test_a_log_gets_one_number_through_every_entry(
    folder: Path, write_rows: Callable[..., Path], command: Any, seed: int, golden: bool
) -> None:
    rows = list(generated_rows(seed, 80))
    if not golden:
        rows = [row for row in rows if "expected_keywords" in row]
    log = write_rows("log.jsonl", *rows)
    questions = write_rows("golden.jsonl", *GOLDEN) if golden else None
    flags = ("--questions", "golden.jsonl") if golden else ()

    document = command("score", "log.jsonl", *flags, "--json").document
    expected, summary = numbers(document["results"]), document["summary"]
    assert len(expected) == len(rows)

    run = score_replies(log, questions)
    assert numbers(run.to_dict()["results"]) == expected
    for how in (LogScoring(results="nothing"), LogScoring(processes=2), LogScoring(results="lines")):
        assert score_replies(log, questions, how=how).summary == run.summary

    for ending in ("json", "jsonl", "parquet", "csv", "html", "md", "xlsx", "junit.xml"):
        done = command("score", "log.jsonl", *flags, "-o", f"x.{ending}", "--json")
        assert done.document["summary"] == summary
    assert numbers(json.loads((folder / "x.json").read_text())["results"]) == expected
    assert numbers(map(json.loads, (folder / "x.jsonl").read_text().splitlines())) == expected
    assert numbers(pyarrow.parquet.read_table("x.parquet").to_pylist()) == expected
    with (folder / "x.csv").open(encoding="utf-8-sig", newline="") as file:
        table = [(row["id"], int(row["trial"]), row["passed"] == "true") for row in csv.DictReader(file)]
    assert table == [(one[0], one[1], one[4]) for one in expected]

    for row, one in zip(rows, expected, strict=True):
        case = next(case for case in GOLDEN if case["id"] == one[0])
        card = ak.score(case, reply_in_row(row, case["question"]))
        assert (card.score, *(card.components[name].score for name in COMPONENTS)) == (one[2], *one[5:8])


def test_asked_replayed_rescored_and_in_production_the_numbers_are_the_same(
    folder: Path, write_rows: Callable[..., Path], command: Any, chatbot: Callable[..., Any]
) -> None:
    answered = {str(row.get("id") or row.get("question")): row for row in generated_rows(7, 200)}
    rows = [
        {**answered.get(case["id"], answered.get(case["question"], {})), "id": case["id"]} for case in GOLDEN
    ]
    write_rows("log.jsonl", *rows)
    write_rows("golden.jsonl", *GOLDEN)
    scored = command("score", "log.jsonl", "--questions", "golden.jsonl", "--name", "log", "--json").document
    expected = numbers(scored["results"])

    asked = command(
        "run", "golden.jsonl", "--target", "replay:log.jsonl", "--name", "asked", "--json"
    ).document
    assert numbers(asked["results"]) == expected
    means = ("score", "components", "passed", "pass_rate", "trials_passed", "errors", "grades")
    assert [asked["summary"][name] for name in means] == [scored["summary"][name] for name in means]
    for name in ("log", "asked"):
        assert numbers(command("show", name, "--json").document["results"]) == expected
        assert numbers(rescore(name).to_dict()["results"]) == expected

    by_id = {row["id"]: row for row in rows}

    def bot(question: str) -> Any:
        case = next(case for case in GOLDEN if case["question"] == question)
        return reply_in_row(by_id[case["id"]], question)

    live = ak.evaluate("golden.jsonl", bot)
    assert numbers(live.to_dict()["results"]) == expected

    # Over HTTP, alone and as both arms of an experiment.
    def body(request: dict[str, Any]) -> dict[str, Any]:
        row = by_id[next(case["id"] for case in GOLDEN if case["question"] == request["question"])]
        return {name: value for name, value in row.items() if name not in GOLDEN[0]}

    url = chatbot(body).url
    served = command("run", "golden.jsonl", "--target", url, "--name", "served", "--json").document
    assert numbers(served["results"]) == expected
    ab = command("ab", "golden.jsonl", "--a", url, "--b", "replay:log.jsonl", "--name", "pair", "--json")
    assert ab.document["comparison"]["difference"]["mean"] == 0
    for arm in ("pair-a", "pair-b"):
        assert numbers(command("show", arm, "--json").document["results"]) == expected

    grading = ProductionGrading(load_settings(), "golden.jsonl")
    for case, one in zip(GOLDEN, expected, strict=True):
        item = ProductionReply(
            id=case["id"],
            created_at="2026-11-18T12:00:00+00:00",
            question=case["question"],
            reply=bot(case["question"]),
        )
        card = grading.grade(item).scorecard
        assert card is not None
        assert (card.score, *(card.components[name].score for name in COMPONENTS)) == (one[2], *one[5:8])


@pytest.mark.parametrize("ending", ["html", "jsonl", "md"])
def test_names_only_in_tool_calls_do_not_overrule_tools_used(
    folder: Path, write_rows: Callable[..., Path], command: Any, ending: str
) -> None:
    row = {"question": "Where?", "expected_tools": ["db"], "answer": "Rome", "tools_used": ["db"]}
    write_rows("log.jsonl", {**row, "tool_calls": ["search"]})
    gate = ("--gate", "score >= 0.85")
    assert command("score", "log.jsonl", *gate).code == 0
    assert command("score", "log.jsonl", *gate, "-o", f"x.{ending}").code == 0


@pytest.mark.parametrize("golden", [True, False], ids=["golden set", "inline"])
def test_plain_rows_are_read_as_all_rows_are(golden: bool) -> None:
    """The typed decoder gives the very trials, or leaves the row to the reader of all rows."""
    chosen = random.Random(26)
    values: dict[str, list[Any]] = {
        "id": ["q1", "unknown", "", 7, 2.0, True, None],
        "question": ["What is the rent of unit 2?", "Else?", " ", None, ["a"]],
        "answer": [*ANSWERS, 12, ["text"]],
        "category": ["A", "", None, 4],
        "expected_tools": [["db"], [], [""], None, "db", [{"name": "db"}]],
        "expected_keywords": [["rent", "1200"], [" "], [], None, [["a", "b"]], [5]],
        "tools_used": [["db", "süd"], [], None, "db", [None]],
        "latency_ms": [5, 17.25, -1, 1e300, "12", None, True],
        "trial": [0, 3, -1, 2**31, 1.0, None, "1"],
        "error": [None, "", "late"],
        "note": ["x"],
    }
    weights = [5, 4, 9, 2, 2, 2, 3, 2, 1, 1, 1]
    golden_set = [parse_question(case) for case in GOLDEN] if golden else None
    read_plain = 0
    for index in range(3000):
        names = [name for name, weight in zip(values, weights, strict=True) if chosen.random() < weight / 9]
        row = {name: chosen.choice(values[name][: chosen.choice([1, 2, 9])]) for name in names}
        reader = RowReader(golden_set)
        plain = reader._plain_trial(json.dumps(row).encode(), index, 4)
        if plain is not None:
            read_plain += 1
            assert plain == RowReader(golden_set).trial(row, index, 4), row
    assert read_plain > 300


def test_ray_gives_the_same_document_and_nothing_beside_it(
    folder: Path, write_rows: Callable[..., Path], command: Any
) -> None:
    """Without an address: on the cluster of this machine, or on a local one that is started and said so."""
    write_rows("log.jsonl", *generated_rows(11, 300))
    write_rows("golden.jsonl", *GOLDEN)
    flags = ("score", "log.jsonl", "--questions", "golden.jsonl", "--json")
    here = command(*flags).document
    done = subprocess.run(
        [sys.executable, "-m", "answerkey", *flags, "--engine", "ray"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["summary"], document["results"]) == (here["summary"], here["results"])
    assert not done.stderr or done.stderr.startswith("no Ray cluster is running here: starting a local one")
