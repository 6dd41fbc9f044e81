"""answerkey grades tool-using chatbots against an answer key.

import answerkey

run = answerkey.evaluate("questions.jsonl", target=my_bot)
run.summary.score, run.summary.grade
answerkey.compare(base, run).verdict
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from answerkey.comparison import Comparison, compare
    from answerkey.config import JudgePrices, JudgeSettings, Options, Scoring
    from answerkey.evaluation.api import evaluate, evaluate_async, score, score_replies
    from answerkey.question import ExpectedTool, Question, QuestionSet
    from answerkey.reply import Evidence, Failure, Reply, Source, Timings, ToolCall, Usage
    from answerkey.run import Run
    from answerkey.scorecard import Score, Scorecard
    from answerkey.summary import Result, Summary

__version__ = "0.1.0"

# Name → where it lives; nothing is imported until it is used.
_LOCATIONS = {
    "Comparison": "answerkey.comparison",
    "Evidence": "answerkey.reply",
    "ExpectedTool": "answerkey.question",
    "Failure": "answerkey.reply",
    "JudgePrices": "answerkey.config",
    "JudgeSettings": "answerkey.config",
    "Options": "answerkey.config",
    "Question": "answerkey.question",
    "QuestionSet": "answerkey.question",
    "Reply": "answerkey.reply",
    "Result": "answerkey.summary",
    "Run": "answerkey.run",
    "Score": "answerkey.scorecard",
    "Scorecard": "answerkey.scorecard",
    "Scoring": "answerkey.config",
    "Source": "answerkey.reply",
    "Summary": "answerkey.summary",
    "Timings": "answerkey.reply",
    "ToolCall": "answerkey.reply",
    "Usage": "answerkey.reply",
    "compare": "answerkey.comparison",
    "evaluate": "answerkey.evaluation.api",
    "evaluate_async": "answerkey.evaluation.api",
    "score": "answerkey.evaluation.api",
    "score_replies": "answerkey.evaluation.api",
}

__all__ = [
    "Comparison",
    "Evidence",
    "ExpectedTool",
    "Failure",
    "JudgePrices",
    "JudgeSettings",
    "Options",
    "Question",
    "QuestionSet",
    "Reply",
    "Result",
    "Run",
    "Score",
    "Scorecard",
    "Scoring",
    "Source",
    "Summary",
    "Timings",
    "ToolCall",
    "Usage",
    "compare",
    "evaluate",
    "evaluate_async",
    "score",
    "score_replies",
]


def __getattr__(name: str) -> Any:
    if name not in _LOCATIONS:
        raise AttributeError(f"module 'answerkey' has no attribute {name!r}")
    value = getattr(import_module(_LOCATIONS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
