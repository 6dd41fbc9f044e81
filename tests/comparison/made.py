"""Runs made from scores, on real records."""

from collections.abc import Mapping, Sequence
from typing import Any

from answerkey.model.judgement import CanaryResult, JudgeRecord, RubricRecord
from answerkey.model.question import Question
from answerkey.model.reply import Failure, Reply, Timings, Usage
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import DEFAULT_WEIGHTS, Score, Scorecard, Trial, letter_grade
from answerkey.model.tally import summarise


def make_run(
    scores: Mapping[str, float | Sequence[float]],
    *,
    name: str = "run",
    category: Mapping[str, str] | None = None,
    metadata: Mapping[str, dict[str, Any]] | None = None,
    errors: Mapping[str, Any] | None = None,
    components: Sequence[str] = tuple(DEFAULT_WEIGHTS),
    wording: Mapping[str, str] | None = None,
    latency_ms: float = 100.0,
    cost: float | None = None,
) -> Run:
    """A run in which each question has the given score, or one score per trial."""
    results = []
    for identity, given in scores.items():
        question = Question(
            id=identity,
            question=(wording or {}).get(identity, f"What about {identity}?"),
            category=(category or {}).get(identity, "all"),
            metadata=(metadata or {}).get(identity, {}),
        )
        trials = given if isinstance(given, Sequence) else [given]
        for trial, score in enumerate(trials, start=1):
            kind = (errors or {}).get(identity)
            failure = None if kind is None else Failure(kind, "went wrong")
            results.append(
                Trial(
                    question=question,
                    number=trial,
                    replies=(
                        Reply(
                            text="a reply",
                            failure=failure,
                            timings=Timings(latency_ms=latency_ms + 10 * trial),
                            usage=None if cost is None else Usage(cost=cost),
                        ),
                    ),
                    scorecard=Scorecard(
                        components={
                            c: Score(c, score, "because", DEFAULT_WEIGHTS.get(c, 0.0)) for c in components
                        },
                        total=score,
                        grade=letter_grade(score),
                        passed=score >= 0.7,
                        metrics={"f1": score},
                        error=failure,
                    ),
                )
            )
    repeat = max(len(s) if isinstance(s, Sequence) else 1 for s in scores.values()) if scores else 1
    info = RunInfo(
        id=f"{name}-id",
        name=name,
        status="complete",
        created_at="2026-01-01T00:00:00+00:00",
        target="made",
        target_hash="t",
        question_set="set",
        question_set_hash="h",
        repeat=repeat,
        weights=dict(DEFAULT_WEIGHTS),
        scoring_hash="s",
    )
    return Run(
        info=info,
        summary=summarise(results, planned=len(results)),
        results=results,
    )


def judge_record(model: str = "one", **changes: Any) -> JudgeRecord:
    """A judge's record of a run, with changes."""
    plain: dict[str, Any] = {"endpoint": "api.example.com", "prompt_hash": "p"}
    rubric = RubricRecord("standard", "r", {})
    return JudgeRecord(model=model, models=tuple(model.split(" + ")), rubric=rubric, **(plain | changes))


def canary(
    score: float, *, model: str = "one", kind: str = "sound answer", passed: bool = True
) -> CanaryResult:
    """A judge's verdict on a canary."""
    return CanaryResult(kind=kind, model=model, score=score, passed=passed)
