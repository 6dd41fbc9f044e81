"""The bundled golden set: complete, consistent with the data, and graded by the harness itself."""

import json
from collections import Counter
from typing import Any

import pytest

import answerkey
from answerkey.datasets.golden_sets import read_questions
from answerkey.golden.lint import lint_questions
from answerkey.runs.audit import audit_document
from answerkey_demo import golden_set_path
from answerkey_demo.knowledge import open_knowledge
from answerkey_demo.tools import TOOL_SCHEMAS

CASES = [json.loads(line) for line in golden_set_path().read_text(encoding="utf-8").splitlines()]
ASKED = [(case, part) for case in CASES for part in case.get("turns", [case])]
CATEGORIES = (
    "property_info property_financials transactions documents formation aggregations compliance hybrid governance tax "
    "unanswerable out_of_scope"
)


def words(keyword: Any) -> list[str]:
    return (
        [w for k in keyword for w in words(k)]
        if isinstance(keyword, list)
        else [keyword]
        if isinstance(keyword, str)
        else []
    )


def test_is_large_and_covers_every_category_and_persona() -> None:
    assert len(CASES) >= 75
    assert set(Counter(case["category"] for case in CASES)) == set(CATEGORIES.split())
    assert len({case["persona"] for case in CASES}) == 4
    assert sum("turns" in case for case in CASES) >= 4
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_case_is_complete(case: dict[str, Any]) -> None:
    known_tools = {schema["name"] for schema in TOOL_SCHEMAS}
    documents = {row["id"] for row in open_knowledge().read("SELECT id FROM documents")}
    assert case["reference_answer"]
    for part in case.get("turns", [case]):
        tools = part.get("expected_tools", [])
        assert tools or part.get("tools") == "none"
        assert set(tools) | set(part.get("forbidden_tools", [])) <= known_tools
        assert part["expected_keywords"]
        for keyword in part["expected_keywords"]:
            assert not any(word.lower() in part["question"].lower() for word in words(keyword))
        if "search_document_content" in tools and case["category"] != "unanswerable":
            assert part["relevant_documents"]
        assert set(part.get("relevant_documents", [])) <= documents


def test_keywords_are_specific() -> None:
    counts = Counter(
        word.lower() for _, part in ASKED for keyword in part["expected_keywords"] for word in words(keyword)
    )
    assert [word for word, count in counts.items() if count > 2] == []


def test_lint_has_no_warning() -> None:
    findings = lint_questions(read_questions(golden_set_path()))
    assert findings == []


def test_a_bot_that_knows_nothing_scores_little() -> None:
    document = audit_document(answerkey.audit(str(golden_set_path())))
    assert document["floor"] < 0.60
    # Reciting the keywords of all other questions finds values that a few questions share, and to say that nothing is on
    # record is right where there is no answer.
    answerable = {case["id"] for case in CASES if case["category"] not in ("unanswerable", "out_of_scope")}
    assert not any(
        answerable.intersection(bot["passed"])
        for bot in document["bots"]
        if not bot["name"].endswith("parrot")
    )
    assert document["strength"]["value"] >= 0.95


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, answerkey.Run]:
    """Three variants over the bundled set."""
    store = str(tmp_path_factory.mktemp("store") / "runs.db")
    return {
        name: answerkey.evaluate(str(golden_set_path()), target=target, store=store)
        for name, target in {
            "demo": "demo",
            "basic": "demo:basic",
            "flaky": "demo:flaky?rate=0.5&seed=3",
        }.items()
    }


@pytest.fixture(scope="module")
def runs(evaluated: dict[str, answerkey.Run]) -> dict[str, dict[str, Any]]:
    """Their run documents."""
    return {name: run.to_dict() for name, run in evaluated.items()}


def test_a_comparison_finds_the_difference(evaluated: dict[str, answerkey.Run]) -> None:
    assert answerkey.compare(evaluated["basic"], evaluated["demo"]).verdict == "better"
    assert answerkey.compare(evaluated["demo"], evaluated["flaky"]).verdict == "worse"


def test_the_demo_earns_an_a_and_the_basic_version_ten_points_less(runs: dict[str, dict[str, Any]]) -> None:
    good, weak = runs["demo"]["summary"], runs["basic"]["summary"]
    assert good["grade"] == "A"
    assert good["coverage"] == 1.0
    assert good["score"] - weak["score"] >= 0.10
    assert good["score"] < 1.0, "a set that nobody can fail measures nothing"


def test_the_flaky_version_loses_its_points_under_error_handling(runs: dict[str, dict[str, Any]]) -> None:
    summary = runs["flaky"]["summary"]
    assert set(summary["errors"]) == {
        "connection",
        "tool",
        "timeout",
        "memory",
        "empty",
        "null",
        "error_text",
        "trace",
    }
    assert summary["components"]["error_handling"] < 0.7
    assert runs["demo"]["summary"]["components"]["error_handling"] == 1.0
    for result in runs["flaky"]["results"]:
        if result["reply"]["error"] is None:
            assert result["components"]["error_handling"]["score"] == 1.0
