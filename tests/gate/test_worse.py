"""Gates on questions whose score fell, on every question, and on latency."""

from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import UsageError
from answerkey.gates import GateSubject, check_gates, evaluate_gates, parse_gate
from answerkey.model.comparison import AskedAgain, Confirmation
from answerkey.runs.api import compare
from comparison.made import make_run

# Two keywords and a tool a question: one lost keyword is 0.80, above the pass mark.
BEFORE = {f"q{number}": 1.0 for number in range(10)}
AFTER = BEFORE | {"q1": 0.8, "q2": 0.6}


def test_a_lower_score_is_worse_although_nothing_flipped() -> None:
    found = compare(make_run(BEFORE), make_run(AFTER))
    assert (found.broken, found.worse, found.flaky) == (1, 2, 0)
    assert [(change.id, change.kind) for change in found.fallen] == [("q2", "broken"), ("q1", "worse")]
    document = found.to_dict()
    assert (document["broken"], document["worse"], document["pass_rate"]["broken"]) == (1, 2, 1)
    assert [(loss["id"], loss["from"], loss["to"]) for loss in document["losses"]] == [("q1", "pass", "pass")]


def test_a_difference_below_rounding_is_not_worse() -> None:
    assert compare(make_run(BEFORE), make_run(BEFORE | {"q1": 1.0 - 1e-12})).worse == 0


def test_what_asking_again_does_not_confirm_is_flaky_everywhere() -> None:
    asked = [("q2", "broken", 5), ("q1", "worse", 0)]
    confirmation = Confirmation(
        times=5,
        deterministic=False,
        questions=tuple(
            AskedAgain(id=name, kind=kind, candidate_passed=count, base_passed=None, confirmed=not count)  # type: ignore[arg-type]
            for name, kind, count in asked
        ),
    )
    found = compare(make_run(BEFORE), make_run(AFTER)).with_confirmation(confirmation)
    assert (found.broken, found.worse, found.flaky) == (0, 1, 1)
    assert found.to_dict()["pass_rate"]["broken"] == 0
    assert [flip["kind"] for flip in found.to_dict()["flips"]] == ["flaky"]
    assert not found.regression


def _evaluate(gate: str, **subject: Any) -> Any:
    [result] = evaluate_gates([parse_gate(gate)], GateSubject(numbers={}, **subject))
    return result


def test_worse_and_flaky_can_be_gated() -> None:
    comparison = compare(make_run(BEFORE), make_run(AFTER))
    assert (_evaluate("worse == 0", comparison=comparison).passed) is False
    assert _evaluate("worse == 0", comparison=comparison).value == 2
    assert _evaluate("flaky == 0", comparison=comparison).passed
    with pytest.raises(UsageError, match="needs a baseline"):
        check_gates(["worse == 0"], ())


def test_every_question_names_those_that_fail() -> None:
    run = make_run(AFTER)
    [result] = evaluate_gates([parse_gate("every question >= 0.9")], GateSubject.of_run(run))
    assert (result.passed, result.value) == (False, {"q2": 0.6, "q1": 0.8})
    [result] = evaluate_gates([parse_gate("every question >= 0.6")], GateSubject.of_run(run))
    assert result.passed
    [result] = evaluate_gates([parse_gate('question "q1" >= 0.9')], GateSubject.of_run(run))
    assert result.value == {"q1": 0.8}


@pytest.mark.parametrize(
    ("before", "after", "factor", "passes"),
    [
        ((40, 80), (80, 160), 1.5, False),
        ((40, 80), (80, 160), 2.0, True),
        ((40, 80), (41, 125), 1.5, False),  # only the slowest are slower
        ((40, 80), (59, 119), 1.5, True),
        ((1, 2), (4, 8), 1.5, True),  # a few milliseconds are noise
    ],
)
def test_latency_may_grow_by_the_declared_factor(
    before: tuple[float, float], after: tuple[float, float], factor: float, passes: bool
) -> None:
    from msgspec.structs import replace

    found = compare(make_run(BEFORE), make_run(BEFORE))
    sides = [
        replace(found.base, latency_ms={"mean": p50, "p50": p50, "p95": p95}) for p50, p95 in (before, after)
    ]
    comparison = replace(found, base=sides[0], candidate=sides[1])
    result = _evaluate("no regression in latency", comparison=comparison, latency_factor=factor)
    assert result.passed is passes
    assert f"{after[1]:.0f} ms" in result.reason


def test_a_run_without_latency_cannot_pass_a_gate_on_it() -> None:
    from msgspec.structs import replace

    found = compare(make_run(BEFORE), make_run(BEFORE))
    comparison = replace(found, candidate=replace(found.candidate, latency_ms=None))
    result = _evaluate("no regression in latency", comparison=comparison)
    assert (result.passed, result.reason) == (False, "a run has no latency")


@pytest.mark.parametrize(
    ("gate", "remedy"),
    [
        ("score > 85", "write score > 85%"),
        ("error_rate < 2", "write error_rate < 2%"),
        ("pass_rate >= 1000", "write a share such as 0.85 or 85%"),
        ("difference > -2", "write difference > -2%"),
        ("every category >= 70", "write score >= 70%"),
        ("tool_usage >= 90", "write tool_usage >= 90%"),
    ],
)
def test_a_bound_that_decides_nothing_is_refused_with_what_was_meant(gate: str, remedy: str) -> None:
    with pytest.raises(UsageError, match="decides nothing") as raised:
        parse_gate(gate)
    assert remedy in str(raised.value)
    parse_gate(remedy.removeprefix("write ")) if "%" in remedy and "such" not in remedy else None


@pytest.mark.parametrize(("gate", "hint"), [("broken = 0", "write =="), ("score => 0.8", "write >=")])
def test_a_wrong_operator_gets_a_hint(gate: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        parse_gate(gate)


def test_a_missing_baseline_stops_a_run_before_it_asks(command: Any) -> None:
    arguments = ("run", "demo", "--sample", "3", "--baseline", "production", "--gate", "worse == 0")
    stopped = command(*arguments)
    assert (stopped.code, stopped.out) == (2, "")
    assert "baseline 'production' does not exist, so nothing can be compared" in stopped.err
    assert "--allow-missing-baseline" in stopped.err
    assert not Path(".answerkey").exists()
    allowed = command(*arguments, "--confirm", "2", "--allow-missing-baseline", "--json")
    assert allowed.code == 0
    assert "baseline 'production' does not exist yet: nothing was compared" in allowed.document["warnings"]
    [gate] = allowed.document["gates"]
    assert (gate["passed"], gate["reason"]) == (True, "there is no baseline: nothing was compared")
    # The stored run says the same.
    [gate] = command("show", "--json").document["gates"]
    assert gate["reason"] == "there is no baseline: nothing was compared"


def test_the_latency_factor_is_a_setting(command: Any) -> None:
    Path("answerkey.toml").write_text('target = "demo"\n[gates]\nlatency_factor = 0.5\n')
    done = command("run")
    assert (done.code, "latency_factor = 0.5: must be 1 or more" in done.err) == (2, True)
    from answerkey.config import load_settings

    Path("answerkey.toml").write_text('target = "demo"\n[gates]\nlatency_factor = 3\n')
    assert load_settings().options().latency_factor == 3


def test_confirmed_breakage_is_the_headline(command: Any, write_rows: Any, tmp_path: Path) -> None:
    write_rows(
        "g.jsonl",
        *({"id": f"q{n}", "question": f"Price {n}?", "expected_keywords": [str(n)]} for n in range(30)),
    )
    (tmp_path / "bot.py").write_text(
        "def good(question):\n    return 'It is ' + question.split()[1].rstrip('?')\n\n"
        "def bad(question):\n    return 'Hello.' if '7?' in question else good(question)\n"
    )
    command("run", "g.jsonl", "--target", "bot.py:good", "--name", "base")
    done = command(
        "run",
        "g.jsonl",
        "--target",
        "bot.py:bad",
        "--baseline",
        "base",
        "--confirm",
        "5",
        "-o",
        "c.comment.md",
    )
    assert done.code == 1
    headline = " worse  3 questions confirmed broken; mean: no clear difference: -4.0 points"
    assert headline in done.out
    assert "whether that is chance" not in done.out
    assert "worse: 3 questions confirmed broken" in (tmp_path / "c.comment.md").read_text()
    # Without it, the report says how to find out.
    again = command("run", "g.jsonl", "--target", "bot.py:bad", "--baseline", "base").out
    assert "whether that is chance: answerkey run --baseline" in again
