"""`answerkey compare`: is one run better than another?"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from answerkey.cli.flags import (
    FILE,
    JudgeFlags,
    fail_on_flag,
    flag,
    gate_flag,
    judge_flags,
    margin_flag,
    opened_store,
    store_flag,
)
from answerkey.cli.outcome import Answer, answers, gates_with, print_gates, verdict_code
from answerkey.config import load_settings
from answerkey.errors import UsageError

if TYPE_CHECKING:
    from answerkey.comparison.columns import Columns
    from answerkey.gate import Gate
    from answerkey.judge.configured_judge import Judge
    from answerkey.judge.pairwise import Pairwise
    from answerkey.model.run import GateResult, RunInfo
    from answerkey.report.comparison_sheet import Sheet
    from answerkey.store.sql import SqlStore


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="BASE CANDIDATE [MORE ...]")
@fail_on_flag
@gate_flag
@margin_flag
@flag(
    "--group FIELD",
    "Questions with the same value of this field of the golden set count as one (default: group, template, "
    "cluster, conversation).",
)
@flag("--markdown", "Print Markdown, for a pull request.", is_flag=True)
@flag("-o, --output", "Write it too: .html .md .json; may be repeated.", "outputs", multiple=True, type=FILE)
@judge_flags
@store_flag
@answers
def compare(
    runs: tuple[str, ...],
    fail_on: str | None,
    gates: tuple[str, ...],
    margin: float | None,
    group: str | None,
    markdown: bool,
    outputs: tuple[Path, ...],
    judge: JudgeFlags,
    store: str | None,
) -> Answer:
    """Say whether the candidate is better than the base: paired by question, with its uncertainty.

    With more than two runs, rank them all; gates on a comparison hold each against the first. With --judge, a model also
    says of each pair of replies which is better.

    \b
    Examples:
      answerkey compare latest~1 latest
      answerkey compare production latest --fail-on regression
      answerkey compare production latest --margin 0.02 -o comparison.md
      answerkey compare latest~1 latest --judge gpt-4o-mini
      answerkey compare gpt-small gpt-large local --json
    """
    from answerkey.gate import parse_gate
    from answerkey.report.comparison_sheet import check_sheet_output

    if len(runs) < 2:
        raise UsageError(
            "compare needs two runs: a base and a candidate, as in: answerkey compare latest~1 latest"
        )
    if len(runs) > 2 and (fail_on or margin or judge.model):
        raise UsageError("--fail-on, --margin and --judge compare two runs; give exactly two")
    parsed = [parse_gate(gate) for gate in gates_with(fail_on, gates)]
    for path in outputs:
        check_sheet_output(path)
    pair_judge = judge.pair_judge(load_settings())
    with opened_store(store) as opened:
        infos = [opened.find_run(reference) for reference in runs]
        if len({info.id for info in infos}) < len(infos):
            raise UsageError("the runs to compare are the same run; name different ones")
        columns = _columns(opened, infos, group)
        if len(columns) > 2:
            shown: _Shown = _ranked(opened, infos, columns, parsed)
        else:
            shown = _compared(opened, infos, columns, parsed, margin, pair_judge)
    shown.write(outputs)
    code = verdict_code(shown.verdict, fail_on, shown.gates)
    return Answer(shown.document, partial(shown.show, markdown=markdown), code)


class _Shown(msgspec.Struct, frozen=True):
    """What was found, ready to be shown."""

    # A Comparison or a Ranking, and the document of it.
    found: Any
    document: Any
    verdict: str
    gates: "Sequence[GateResult]"
    # What a judge says of the pairs.
    judged: "Pairwise | None" = None

    @property
    def sheet(self) -> "Sheet":
        """As a page of its own."""
        from answerkey.model.comparison import Comparison
        from answerkey.report.comparison_sheet import comparison_sheet, ranking_sheet

        make: Any = comparison_sheet if isinstance(self.found, Comparison) else ranking_sheet
        sheet: Sheet = make(self.found)
        return sheet

    def write(self, outputs: Sequence[Path]) -> None:
        """To files."""
        from answerkey.report.comparison_sheet import write_sheet

        for path in outputs:
            write_sheet(self.sheet, self.document, path)

    def show(self, *, markdown: bool) -> None:
        """To people."""
        from answerkey.model.comparison import Comparison
        from answerkey.report.comparison_sheet import sheet_markdown
        from answerkey.report.comparison_text import print_comparison, print_ranking
        from answerkey.report.judge_text import pairwise_lines

        if markdown:
            sys.stdout.buffer.write(sheet_markdown(self.sheet).encode())
        elif not isinstance(self.found, Comparison):
            print_ranking(self.found)
        else:
            print_comparison(self.found)
            if self.judged is not None:
                click.echo("\n".join(pairwise_lines(self.judged)))
            print_gates(self.gates)


def _columns(store: "SqlStore", infos: "Sequence[RunInfo]", group: str | None) -> "list[Columns]":
    from answerkey.comparison.columns import columns_from_store
    from answerkey.model.question import GROUP_FIELDS

    fields = GROUP_FIELDS if group is None else (group,)
    columns = columns_from_store(store, infos, group_fields=fields)
    if group is not None and all(column.groups is None for column in columns):
        raise UsageError(f"--group {group}: no question of these runs has such a field")
    return columns


def _compared(
    store: "SqlStore",
    infos: "Sequence[RunInfo]",
    columns: "Sequence[Columns]",
    gates: "Sequence[Gate]",
    margin: float | None,
    pair_judge: "Judge | None",
) -> _Shown:
    """Two runs."""
    from answerkey.comparison import compare_runs
    from answerkey.evaluation.verdicts import gates_of_stored, with_wordings

    base, candidate = columns
    comparison = with_wordings(compare_runs(base, candidate, margin=margin), store, infos[1])
    results = gates_of_stored(store, infos[1], gates, comparison)
    judged = None
    if pair_judge is not None:
        from answerkey.evaluation.pair_judging import judge_runs
        from answerkey.evaluation.waiting import wait_for

        judged = wait_for(judge_runs(store, infos[0], infos[1], pair_judge))
    document = comparison.to_dict() | {"gates": results} | ({} if judged is None else {"judge": judged})
    return _Shown(comparison, document, comparison.verdict, results, judged)


def _ranked(
    store: "SqlStore", infos: "Sequence[RunInfo]", columns: "Sequence[Columns]", gates: "Sequence[Gate]"
) -> _Shown:
    """Many runs, each with its gates; those on a comparison hold it against the first."""
    from answerkey.comparison import compare_runs
    from answerkey.comparison.run_ranking import rank_runs
    from answerkey.evaluation.verdicts import gates_of_stored

    ranking = rank_runs(columns)
    held = {}
    for info, own in zip(infos, columns, strict=True):
        first = own is columns[0]
        comparison = None if first or not gates else compare_runs(columns[0], own)
        asked = [gate for gate in gates if not (first and gate.needs_comparison)]
        held[info.id] = tuple(gates_of_stored(store, info, asked, comparison))
    ranking = msgspec.structs.replace(
        ranking, runs=tuple(msgspec.structs.replace(run, gates=held[run.id]) for run in ranking.runs)
    )
    results = [result for run in ranking.runs for result in run.gates]
    return _Shown(ranking, msgspec.to_builtins(ranking), "", results)
