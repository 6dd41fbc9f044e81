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

    from answerkey.comparison import Comparison, compare
    from answerkey.comparison.planning import plan
    from answerkey.comparison.run_ranking import rank
    from answerkey.fault_points import fault_point, fault_scope
    from answerkey.model.options import JudgeSettings, Options, Price, Scoring
    from answerkey.model.question import ExpectedTool, Question, QuestionSet
    from answerkey.model.reply import Evidence, Failure, Reply, Source, Timings, ToolCall, Usage
    from answerkey.model.run import Run
    from answerkey.model.scorecard import Score, Scorecard, Trial
    from answerkey.model.summary import Summary
    from answerkey.runs.api import ab, evaluate, evaluate_async, faults, rescore, resume, score, score_replies
    from answerkey.runs.audit import audit
    from answerkey.runs.experiment import Experiment
    from answerkey.runs.judging import calibrate
    from answerkey.runs.verdicts import check
    from answerkey.runs.why import why
    from answerkey.scorers.own import scorer

__version__ = "0.2.0.dev0"

# Name → where it lives; nothing is imported until it is used.
_LOCATIONS = {
    "Comparison": "answerkey.comparison",
    "Evidence": "answerkey.model.reply",
    "Experiment": "answerkey.runs.experiment",
    "ExpectedTool": "answerkey.model.question",
    "Failure": "answerkey.model.reply",
    "JudgeSettings": "answerkey.model.options",
    "Options": "answerkey.model.options",
    "Price": "answerkey.model.options",
    "Question": "answerkey.model.question",
    "QuestionSet": "answerkey.model.question",
    "Reply": "answerkey.model.reply",
    "Trial": "answerkey.model.scorecard",
    "Run": "answerkey.model.run",
    "Score": "answerkey.model.scorecard",
    "Scorecard": "answerkey.model.scorecard",
    "Scoring": "answerkey.model.options",
    "Source": "answerkey.model.reply",
    "Summary": "answerkey.model.summary",
    "Timings": "answerkey.model.reply",
    "ToolCall": "answerkey.model.reply",
    "Usage": "answerkey.model.reply",
    "ab": "answerkey.runs.api",
    "audit": "answerkey.runs.audit",
    "calibrate": "answerkey.runs.judging",
    "check": "answerkey.runs.verdicts",
    "compare": "answerkey.comparison",
    "evaluate": "answerkey.runs.api",
    "plan": "answerkey.comparison.planning",
    "rank": "answerkey.comparison.run_ranking",
    "evaluate_async": "answerkey.runs.api",
    "fault_point": "answerkey.fault_points",
    "fault_scope": "answerkey.fault_points",
    "faults": "answerkey.runs.api",
    "rescore": "answerkey.runs.api",
    "resume": "answerkey.runs.api",
    "score": "answerkey.runs.api",
    "scorer": "answerkey.scorers.own",
    "score_replies": "answerkey.runs.api",
    "why": "answerkey.runs.why",
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
    if name not in _LOCATIONS:
        raise AttributeError(f"module 'answerkey' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_LOCATIONS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
