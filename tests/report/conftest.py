"""Runs to report on: built from real records, with every kind of loss, and one with hostile text in every field."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from answerkey.model.question import ExpectedTool, Question
from answerkey.model.reply import Evidence, Failure, Reply, Source, Timings, ToolCall, Usage
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.scorecard import DEFAULT_WEIGHTS, Score, Scorecard, Trial, letter_grade, total
from answerkey.model.tally import summarise
from answerkey.runs.stored import run_warnings

HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=1> \x1b[31mred\x1b]0;title\x07 \u202egnp.exe"
    " \x00NUL ]]> --> | a | [x](javascript:alert(1))"
    " `code` {{7*7}} @everyone https://evil.example \ud800 \ufffe 'q' \"d\" &amp; =1+1"
)


def make_card(
    *,
    missing_tools: Sequence[str] = (),
    found: Sequence[str] = (),
    missing: Sequence[str] = (),
    error: Failure | None = None,
    matches: Sequence[dict[str, Any]] = (),
    findings: dict[str, Any] | None = None,
) -> Scorecard:
    expected = len(found) + len(missing)
    values = {
        "tool_usage": 0.0 if missing_tools else 1.0,
        "response_quality": len(found) / expected if expected else 1.0,
        "error_handling": 1.0 if error is None else 0.0,
    }
    reasons = {
        "tool_usage": f"did not call {', '.join(missing_tools)}"
        if missing_tools
        else "called every expected tool",
        "response_quality": f"{len(found)} of {expected} keywords found",
        "error_handling": "no error" if error is None else f"{error.kind}: {error.message}",
    }
    details: dict[str, dict[str, Any]] = {
        "tool_usage": {"missing": list(missing_tools), "extra": []},
        "response_quality": {"found": list(found), "missing": list(missing), "matches": list(matches)},
        "error_handling": {},
    }
    points = total(dict(values), DEFAULT_WEIGHTS)
    assert points is not None
    return Scorecard(
        components={
            name: Score(name, values[name], reasons[name], DEFAULT_WEIGHTS[name], details[name])
            for name in values
        },
        total=points,
        grade=letter_grade(points),
        passed=points >= 0.7,
        metrics={"tool_f1": values["tool_usage"]},
        findings=findings or {},
        error=error,
    )


def make_result(question: Question, reply: Reply, card: Scorecard, trial: int = 1) -> Trial:
    return Trial(question=question, number=trial, replies=(reply,), scorecard=card)


def make_run(results: Sequence[Trial], *, planned: int | None = None, **changes: Any) -> Run:
    info = RunInfo(
        id="r-20261115-7f3a",
        name=changes.pop("name", "candidate"),
        status="complete" if planned is None else "partial",
        created_at="2026-11-15T23:50:00+00:00",
        target=changes.pop("target", "demo"),
        target_hash="t" * 8,
        question_set="golden",
        question_set_hash="h" * 8,
        repeat=changes.pop("repeat", 1),
        weights=dict(DEFAULT_WEIGHTS),
    )
    summary = summarise(results, planned=planned or len(results))
    warnings = (*changes.pop("warnings", ()), *run_warnings(info, summary))
    return Run(info=info, summary=summary, results=results, warnings=warnings, **changes)


def golden_results() -> list[Trial]:
    """Good answers, each way to lose points, and a question that was answered with an error."""
    results = []
    text = "Your property is located at 900 S 9th St, Montrose, CO 81401."
    for number in range(12):
        question = Question(
            id=f"addr-{number:02d}",
            question=f"What is our property address? (wording {number})",
            category="property",
            persona="owner" if number % 2 else "accountant",
            tags=("smoke",),
            expected_tools=(ExpectedTool("query_database"),),
            expected_keywords=("900", "9th", "Montrose", "CO"),
        )
        call = ToolCall(
            name="query_database",
            arguments={"sql": "select address from properties"},
            result=[{"address": "900 S 9th St"}],
            result_seen=True,
            duration_ms=18.0 + number,
        )
        reply = Reply(
            text=text,
            tool_calls=(call,),
            timings=Timings(latency_ms=90.0 + 7 * number, first_byte_ms=40.0, queue_ms=3.0),
            usage=Usage(input_tokens=420, output_tokens=38, cost=0.0004),
            evidence=Evidence(tools_observed=True),
        )
        matches = [
            {
                "keyword": word,
                "found": True,
                "start": text.index(word),
                "end": text.index(word) + len(word),
                "rule": "exact",
            }
            for word in ("900", "9th", "Montrose", "CO")
        ]
        results.append(
            make_result(question, reply, make_card(found=["900", "9th", "Montrose", "CO"], matches=matches))
        )
    basis = Question(
        id="basis",
        question="What is our property's total depreciable basis, with its land and building components?",
        category="tax",
        expected_tools=(ExpectedTool("query_database"),),
        expected_keywords=("basis", "depreciation", "442300", "land", "building"),
        reference_answer="The depreciable basis is $442,300: land and building, before depreciation.",
    )
    text = "The total basis for your property is $442,300, which includes the land and building components. Bought in 1987."
    start = text.index("Bought")
    results.append(
        make_result(
            basis,
            Reply(
                text=text,
                tool_calls=(
                    ToolCall(name="query_database", arguments={"table": "properties"}, duration_ms=31.5),
                ),
                sources=(
                    Source(
                        id="doc-7",
                        title="Depreciation schedule 2024",
                        text="Basis 442,300 …",
                        score=0.83,
                        cited=True,
                    ),
                ),
                timings=Timings(latency_ms=412.0),
                evidence=Evidence(tools_observed=True, sources_observed=True),
            ),
            make_card(
                found=["basis", "442300", "land", "building"],
                missing=["depreciation"],
                matches=[
                    {
                        "keyword": "442300",
                        "found": True,
                        "start": text.index("$442,300"),
                        "end": text.index("$442,300") + 8,
                        "rule": "number",
                        "why": "442300 = 442,300",
                    },
                    {"keyword": "depreciation", "found": False, "start": None, "end": None, "rule": None},
                ],
                findings={
                    "groundedness": {
                        "model": "model-x",
                        "claims": [
                            {"claim": text[:start].strip(), "supported": True, "evidence": "Basis 442,300"},
                            {
                                "claim": text[start:],
                                "supported": False,
                                "evidence": "no evidence has this date",
                            },
                        ],
                    },
                    "judge": {
                        "value": 0.9,
                        "reason": "accuracy 5/5; completeness 4/5",
                        "judges": [
                            {
                                "model": "model-x",
                                "samples": [{"completeness": {"score": 4, "reason": "omits depreciation"}}],
                            }
                        ],
                    },
                },
            ),
        )
    )
    purpose = Question(
        id="purpose",
        question="What's our business purpose in the operating agreement?",
        category="documents",
        expected_tools=(ExpectedTool("search_document_content"),),
        expected_keywords=("real estate", "rental"),
    )
    results.append(
        make_result(
            purpose,
            Reply(text="I believe it is to make money.", timings=Timings(latency_ms=230.0)),
            make_card(missing_tools=["search_document_content"], missing=["real estate", "rental"]),
        )
    )
    timeout = Failure("timeout", "no answer within 60 s")
    august = Question(
        id="august",
        question="What was my rental income in August 2024?",
        category="tax",
        expected_tools=(ExpectedTool("query_database"),),
        expected_keywords=("16144",),
    )
    results.append(
        make_result(
            august,
            Reply(failure=timeout, timings=Timings(latency_ms=60000.0, attempts=2, retry_ms=900.0)),
            make_card(missing_tools=["query_database"], missing=["16144"], error=timeout),
        )
    )
    return results


def hostile_results() -> list[Trial]:
    question = Question(
        id=f"evil {HOSTILE}",
        question=f"Q {HOSTILE}",
        category=f"cat {HOSTILE}",
        persona=f"persona {HOSTILE}",
        tags=(f"tag {HOSTILE}",),
        expected_tools=(ExpectedTool(f"tool {HOSTILE}"),),
        expected_keywords=(f"kw {HOSTILE}",),
        reference_answer=HOSTILE,
    )
    failure = Failure("error_text", f"msg {HOSTILE}")
    reply = Reply(
        text=f"=cmd|' /C calc'!A0 {HOSTILE}",
        tool_calls=(
            ToolCall(
                name=f"tool {HOSTILE}", arguments={HOSTILE: HOSTILE}, result={"r": HOSTILE}, error=HOSTILE
            ),
        ),
        sources=(Source(id=HOSTILE, title=HOSTILE, text=HOSTILE, uri="javascript:alert(1)"),),
        timings=Timings(latency_ms=5.0),
    )
    long = Question(id="long", question="x" * 1_000_000, category="long")
    long_reply = Reply(text="y" * 1_000_000, timings=Timings(latency_ms=7.0))
    return [
        make_result(question, reply, make_card(missing_tools=[HOSTILE], missing=[HOSTILE], error=failure)),
        make_result(long, long_reply, make_card(missing=["z" * 1_000_000])),
    ]


@pytest.fixture
def golden_run() -> Run:
    return make_run(
        golden_results(),
        gates=(GateResult("score >= 0.85", True, 0.89), GateResult("tax.score >= 0.9", False, 0.46)),
        warnings=("the judge was not available, so its metrics are missing",),
    )


@pytest.fixture
def hostile_run() -> Run:
    return make_run(
        hostile_results(),
        name=f"name {HOSTILE}",
        target=f"target {HOSTILE}",
        warnings=(f"warning {HOSTILE}",),
        gates=(GateResult(f"gate {HOSTILE}", False, HOSTILE),),
    )


@pytest.fixture
def run_of() -> Callable[..., Run]:
    return make_run
