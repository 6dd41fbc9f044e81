"""`answerkey faults`: break the chatbot's tools, and decide what it makes of that."""

from dataclasses import dataclass
from pathlib import Path

import click

from answerkey.cli.flags import (
    FILE,
    JudgeFlags,
    asking_flags,
    grouped,
    option,
    questions_argument,
)
from answerkey.cli.outcome import Answer, answers, interruptible, progress_for_terminal
from answerkey.config import Settings
from answerkey.errors import TargetUnreachableError, UsageError
from answerkey.model.options import Options


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


@dataclass(frozen=True, kw_only=True)
class FaultFlags:
    """The options of `faults` that are not those of a run."""

    target: str | None = option("--target T", "The chatbot.")
    kinds: tuple[str, ...] = option(
        "--kinds K,...",
        "Kinds of faults: error, timeout, empty, truncated, garbage, rate_limit, wrong_record, stale, injection (default: all).",
        callback=_names,
    )
    tools: tuple[str, ...] = option(
        "--tools N,...", "Tools to break (default: those that the clean replies used).", callback=_names
    )
    per_question: int = option(
        "--per-question K", "Faults for each question (default 1).", default=1, type=click.IntRange(min=1)
    )
    again: int = option(
        "--confirm K",
        "Ask each question that was not handled K more times with the same fault.",
        "again",
        default=0,
        type=click.IntRange(min=0),
    )
    conditions: tuple[str, ...] = option(
        "--gate EXPR",
        'Fail unless this holds, e.g. "resilience >= 0.8", "fabricated == 0", "landed >= 20" (repeatable).',
        "conditions",
        multiple=True,
    )
    resume: str | None = option("--resume RUN", "Resume an interrupted run: the id of either of its runs.")
    written: tuple[Path, ...] = option(
        "-o, --output",
        "Write a report: .html .md .json .junit.xml (repeatable).",
        "written",
        multiple=True,
        type=FILE,
    )


@click.command()
@questions_argument
@grouped(FaultFlags, "flags")
@answers
@asking_flags("Name of the run; its two runs are called N-clean and N-faulted.")
def faults(
    questions: Path | None,
    flags: FaultFlags,
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    quiet: bool,
) -> Answer:
    """Ask each question twice, clean and with a broken tool result, and decide what the chatbot makes of it.

    The answer key, the recorded calls and the evidence decide: recovered, honest, partial; fabricated, misled, remembered,
    looped, crashed, obeyed; unclear. Resilience is the share of the first three. A fault that did not reach the chatbot is
    not counted. With --proxy, any agent can be tested without a change.

    \b
    Examples:
      answerkey faults --target demo
      answerkey faults golden.jsonl --target http://localhost:8000/chat --proxy --gate "fabricated == 0"
      answerkey faults golden.jsonl --target file.py:bot --kinds error,empty --per-question 2 -o faults.html
      answerkey faults --resume 4f2a
    """
    from answerkey.report.fault_sheet import check_fault_output, print_faults, write_faults
    from answerkey.runs.api import faults as run_faults

    if flags.resume is not None and not (questions is None and flags.target is None):
        raise UsageError("--resume cannot be combined with questions or --target")
    for path in flags.written:
        check_fault_output(path)
    with interruptible():
        result = run_faults(
            questions,
            flags.target,
            options,
            kinds=flags.kinds,
            tools=flags.tools,
            per_question=flags.per_question,
            confirm=flags.again,
            resume=flags.resume,
            gates=flags.conditions,
            judge=judge.settings,
            settings=settings,
            progress=progress_for_terminal(quiet=quiet),
        )
    for path in flags.written:
        write_faults(result, path)
    error, code = "", int(not all(gate.passed for gate in result.gates))
    if not result.summary.landed:
        reason = next(iter(result.not_landed), "no question was asked")
        error, code = f"no fault landed: {reason}", TargetUnreachableError.exit_code
    return Answer(result.to_dict(), lambda: print_faults(result), code, error)
