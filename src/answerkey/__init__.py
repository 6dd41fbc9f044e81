"""answerkey grades tool-using chatbots against an answer key.

import answerkey

run = answerkey.evaluate("questions.jsonl", target=my_bot)
run.summary.score, run.summary.grade
answerkey.compare(base, run).verdict
"""

# Nothing is imported here, not even typing: until the command line is loaded, Ctrl-C would be a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from answerkey.comparison.run_ranking import plan, rank
    from answerkey.fault_points import fault_point, fault_scope
    from answerkey.model.comparison import Comparison
    from answerkey.model.options import JudgeSettings, Options, Price, Scoring
    from answerkey.model.question import ExpectedTool, Question, QuestionSet
    from answerkey.model.reply import Evidence, Failure, Reply, Source, Timings, ToolCall, Usage
    from answerkey.model.run import Run, Summary
    from answerkey.model.scorecard import Score, Scorecard, Trial
    from answerkey.runs.api import (
        ab,
        compare,
        evaluate,
        evaluate_async,
        faults,
        rescore,
        resume,
        score,
        score_replies,
    )
    from answerkey.runs.audit import audit
    from answerkey.runs.judging import calibrate
    from answerkey.runs.run_variants import Experiment
    from answerkey.runs.stored import check
    from answerkey.runs.why import why
    from answerkey.scorers.user_scorers import scorer

__version__ = "0.2.0.dev0"

# Module → the names that it provides; a module is imported when one of its names is used.
_PROVIDERS = {
    "comparison.run_ranking": "plan rank",
    "fault_points": "fault_point fault_scope",
    "model.comparison": "Comparison",
    "model.options": "JudgeSettings Options Price Scoring",
    "model.question": "ExpectedTool Question QuestionSet",
    "model.reply": "Evidence Failure Reply Source Timings ToolCall Usage",
    "model.run": "Run Summary",
    "model.scorecard": "Score Scorecard Trial",
    "runs.api": "ab compare evaluate evaluate_async faults rescore resume score score_replies",
    "runs.audit": "audit",
    "runs.run_variants": "Experiment",
    "runs.judging": "calibrate",
    "runs.stored": "check",
    "runs.why": "why",
    "scorers.user_scorers": "scorer",
}

__all__ = [
    "Comparison",
    "Evidence",
    "ExpectedTool",
    "Experiment",
    "Failure",
    "JudgeSettings",
    "Options",
    "Price",
    "Question",
    "QuestionSet",
    "Reply",
    "Run",
    "Score",
    "Scorecard",
    "Scoring",
    "Source",
    "Summary",
    "Timings",
    "ToolCall",
    "Trial",
    "Usage",
    "ab",
    "audit",
    "calibrate",
    "check",
    "compare",
    "evaluate",
    "evaluate_async",
    "fault_point",
    "fault_scope",
    "faults",
    "plan",
    "rank",
    "rescore",
    "resume",
    "score",
    "score_replies",
    "scorer",
    "why",
]


def __getattr__(name: str) -> "Any":
    module = next((module for module, names in _PROVIDERS.items() if name in names.split()), None)
    if module is None:
        raise AttributeError(f"module 'answerkey' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"answerkey.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
