import pytest

from answerkey.errors import UsageError
from answerkey.gates import parse_gate


@pytest.mark.parametrize(
    ("text", "name", "operator", "bound"),
    [
        ("score >= 0.85", "score", ">=", 0.85),
        ("score>=85%", "score", ">=", 0.85),
        ("tool_usage >= .90", "tool_usage", ">=", 0.9),
        ("error_rate < 2 %", "error_rate", "<", 0.02),
        ("p95_latency_ms < 3000", "p95_latency_ms", "<", 3000),
        ("coverage == 1", "coverage", "==", 1),
        ("errors.timeout != 3", "errors.timeout", "!=", 3),
        ("nDCG@10 > 0.5", "nDCG@10", ">", 0.5),
        ("  difference > -0.02  ", "difference", ">", -0.02),
        ("difference.tool_usage > -1e-3", "difference.tool_usage", ">", -0.001),
        ("grade >= B", "grade", ">=", 3),
    ],
)
def test_conditions(text: str, name: str, operator: str, bound: float) -> None:
    gate = parse_gate(text)
    assert (gate.name, gate.operator, gate.bound) == (name, operator, pytest.approx(bound))


def test_slices() -> None:
    gate = parse_gate("every category >= 0.70")
    assert (gate.kind, gate.slice_name, gate.name) == ("category", None, "score")
    gate = parse_gate('category "Tax basis" tool_usage >= 0.9')
    assert (gate.kind, gate.slice_name, gate.name) == ("category", "Tax basis", "tool_usage")


def test_regression_needs_a_comparison() -> None:
    assert parse_gate("no regression").needs_comparison
    assert parse_gate("no regression in response_quality").name == "regression.response_quality"
    assert not parse_gate("score > 0").needs_comparison


@pytest.mark.parametrize(
    ("text", "position", "what"),
    [
        ("", 1, "empty"),
        ("score", 6, "found the end"),
        ("score >=", 9, "expected a number, found the end"),
        ("score => 0.8", 7, "cannot read"),
        ("score = 0.8", 7, "cannot read"),
        ("score >= 0.8.5", 10, "cannot read"),
        ("score >= high", 10, "expected a number, found 'high'"),
        ("score >= 0.8 and coverage == 1", 14, "as a separate gate"),
        ("score >= 0.8 0.9", 14, "expected the end"),
        (">= 0.8", 1, "expected a name"),
        ("0.8 <= score", 1, "expected a name"),
        ("every >= 0.7", 7, "expected one of question, category"),
        ("every planet >= 0.7", 7, "found 'planet'"),
        ("no regressions", 4, "expected 'regression'"),
        ("no regression today", 15, "'in'"),
        ("grade >= E", 10, "expected a grade"),
        ("every category difference > 0", 27, "has no value per category"),
        ("score >= 0.8 ; rm", 14, "cannot read"),
    ],
)
def test_a_mistake_is_named_by_its_position(text: str, position: int, what: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_gate(text)
    message = str(raised.value)
    assert f"position {position}:" in message
    assert what in message
    assert "\n" not in message
