"""Stores with a few runs in them, made the way a run makes them: real questions, replies, scorecards and summaries."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from answerkey.model.options import Scoring
from answerkey.model.question import ExpectedTool, Question, QuestionSet
from answerkey.model.reply import Evidence, Failure, Reply, Timings, ToolCall, Usage
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.model.tally import summarise
from answerkey.scorers.grader import make_grader
from answerkey.store.database import claim_run
from answerkey.store.sql import SqlStore

START = datetime(2026, 11, 1, tzinfo=UTC)


def golden(number: int = 6) -> QuestionSet:
    """Questions of three categories, each with two keywords and a tool."""
    names = ("property", "tax", "documents")
    return QuestionSet(
        name="golden",
        questions=tuple(
            Question(
                id=f"q{index}",
                question=f"What is fact {index} of the {names[index % 3]} file?",
                category=names[index % 3],
                expected_keywords=(f"fact{index}", "Montrose"),
                expected_tools=(ExpectedTool("query_database"),),
            )
            for index in range(number)
        ),
    )


def good_reply(question: Question, trial: int = 1) -> Reply:
    """A reply that gets every point."""
    return Reply(
        text=f"It is fact{question.id.removeprefix('q')} in Montrose.",
        tool_calls=(
            ToolCall(
                name="query_database",
                arguments={"sql": "select 1"},
                result=[{"a": 1}],
                result_seen=True,
                duration_ms=12.5,
            ),
        ),
        evidence=Evidence(tools_observed=True, sources_observed=True),
        timings=Timings(latency_ms=100.0 + 10 * len(question.id) + trial),
        usage=Usage(input_tokens=100, output_tokens=20, cost=0.001),
        response_id=f"resp-{question.id}-{trial}",
        trace_id=f"trace-{question.id}-{trial}",
        conversation_id=f"conv-{question.id}-{trial}",
    )


def uneven_reply(question: Question, trial: int = 1) -> Reply:
    """Every third question fails, every third lacks a keyword (0.80) or a tool and a keyword (0.40)."""
    number = int(question.id.removeprefix("q"))
    good = good_reply(question, trial)
    if number % 3 == 0:
        return good
    if number % 3 == 1:
        return Reply(
            text=f"It is fact{number}.",
            evidence=Evidence(tools_observed=True),
            timings=Timings(latency_ms=300.0),
            response_id=f"resp-{question.id}-{trial}",
        )
    return Reply(failure=Failure("timeout", "no reply in 60 s"), timings=Timings(latency_ms=60_000.0))


def add_run(
    store: SqlStore,
    run_id: str,
    reply: Callable[[Question, int], Reply] = uneven_reply,
    *,
    questions: QuestionSet | None = None,
    repeat: int = 1,
    day: int = 0,
    finish: bool = True,
    asked: int | None = None,
    name: str | None = None,
) -> RunInfo:
    """A stored run."""
    chosen = questions or golden()
    grader = make_grader(Scoring())
    info = RunInfo(
        id=run_id,
        name=name or f"run {run_id}",
        status="running",
        created_at=(START + timedelta(days=day)).isoformat(timespec="microseconds"),
        target="python:bot",
        target_hash="t",
        question_set=chosen.name,
        question_set_hash=chosen.hash,
        repeat=repeat,
        weights=grader.scoring.weights,
        scoring_hash=grader.hash,
    )
    if not finish:
        # Whoever runs the tests is asking.
        claim_run(store.database, run_id)
    store.create_run(info, chosen)
    results: list[Trial] = []
    graded: list[Trial] = []
    for position, question in enumerate(list(chosen)[:asked]):
        for trial in range(1, repeat + 1):
            replies = (reply(question, trial),)
            card = grader.grade(question, replies)
            graded.append(Trial(question, trial, position, replies, card))
            results.append(Trial(question=question, number=trial, replies=replies, scorecard=card))
    store.add(info, graded)
    if finish:
        info = finished(info)
        store.finish_run(info, summarise(results, planned=len(chosen) * repeat))
    return info


def finished(info: RunInfo) -> RunInfo:
    """The same run, complete."""
    import msgspec

    return msgspec.structs.replace(info, status="complete", finished_at=info.created_at)


def texts(items: Iterable[object]) -> list[str]:
    """Their texts."""
    return [str(item) for item in items]
