"""Runs: ask or read trials, grade them, store them, sum up."""

from typing import Any

from answerkey.model.run import GateResults, Run


def _check_conditions(run: Run, *conditions: str) -> GateResults:
    # Loaded only when a run is checked.
    from answerkey.runs.verdicts import check

    return check(run, *conditions)


# `Run.check` needs the gates, which `model` may not import.
_run: Any = Run
_run.condition_checker = staticmethod(_check_conditions)
