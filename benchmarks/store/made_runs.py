"""Runs as a chatbot and the scorers would have made them, for benchmarks of the store: nothing is asked or scored."""

import random
from collections.abc import Iterator, Sequence

import msgspec

from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Evidence, Reply, Timings, ToolCall
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import DEFAULT_WEIGHTS, Score, Scorecard, Trial, letter_grade, total
from answerkey.model.tally import summarise
from answerkey.store.sql import SqlStore

# Replies in a transaction, as a run writes them.
BATCH = 500
TEXT = "Your property is located at 900 S 9th St, Montrose, CO 81401. " + "It was bought in 2019. " * 15
TOOLS = (ToolCall(name="query_database", arguments={"sql": "SELECT address FROM properties"}),)


def made_questions(count: int) -> QuestionSet:
    """A golden set of twelve categories."""
    return QuestionSet(
        name="made",
        questions=tuple(
            Question(id=f"q{i}", question=f"What is the rent of unit {i}?", category=f"c{i % 12}")
            for i in range(count)
        ),
    )


def made_info(number: int, questions: QuestionSet, *, status: str = "running") -> RunInfo:
    """What the run of this number is."""
    return RunInfo(
        id=f"run{number}",
        name=f"made {number}",
        status=status,
        created_at=f"2026-01-01T{number // 60:02}:{number % 60:02}:00.000+00:00",
        target="made",
        target_hash="t",
        question_set="made",
        question_set_hash=questions.hash,
        weights=dict(DEFAULT_WEIGHTS),
        scoring_hash="s",
    )


def made_trials(questions: QuestionSet, *, seed: int, skill: float = 0.9) -> Iterator[Trial]:
    """A reply and a scorecard for each question, with the components and reasons that real scorecards hold."""
    source = random.Random(seed)
    for position, question in enumerate(questions):
        values = {
            "tool_usage": float(source.random() < skill),
            "response_quality": sum(source.random() < skill for _ in range(4)) / 4,
            "error_handling": float(source.random() < 0.98),
        }
        points = total(dict(values), DEFAULT_WEIGHTS) or 0.0
        card = Scorecard(
            components={
                name: Score(
                    name, value, "why it is so, in words", DEFAULT_WEIGHTS[name], {"missing": ["a", "b"]}
                )
                for name, value in values.items()
            },
            total=points,
            grade=letter_grade(points),
            passed=points >= 0.7,
            metrics={"tool_f1": values["tool_usage"]},
        )
        reply = Reply(
            text=f"{TEXT} Unit {position}.",
            tool_calls=TOOLS,
            evidence=Evidence(tools_observed=True),
            timings=Timings(latency_ms=source.uniform(50, 900)),
        )
        yield Trial(question, 1, position, (reply,), card)


def batches_of(trials: Sequence[Trial]) -> Iterator[Sequence[Trial]]:
    """As a run hands them to the store."""
    for start in range(0, len(trials), BATCH):
        yield trials[start : start + BATCH]


def store_run(store: SqlStore, info: RunInfo, questions: QuestionSet, trials: Sequence[Trial]) -> None:
    """As a run does: its questions, its replies batch by batch, and a summary of what is read back."""
    store.create_run(info, questions)
    for part in batches_of(trials):
        store.add(info, part)
    summary = summarise(store.results(info), planned=len(questions))
    store.finish_run(msgspec.structs.replace(info, status="complete"), summary)
