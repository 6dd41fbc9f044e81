"""Evaluating: a run flows one way, from question set over target and store to scorecards and summary."""

from typing import Any

from answerkey.model.run import GateResults, Run


def _check_conditions(run: Run, *conditions: str) -> GateResults:
    # Loaded where there are conditions.
    from answerkey.runs.verdicts import check

    return check(run, *conditions)


_run: Any = Run
_run.condition_checker = staticmethod(_check_conditions)
