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
    asking_flags,
    fail_on_flag,
    flag,
    gate_flag,
    judge_flags,
    margin_flag,
    opened_store,
    questions_argument,
    store_flag,
    with_store,
)
from answerkey.cli.outcome import (
    Answer,
    answers,
    gates_with,
    print_gates,
    progress_for_terminal,
    stopped_like_ctrl_c,
    verdict_code,
)
from answerkey.config import Settings, load_settings
from answerkey.errors import UsageError
from answerkey.model.options import Options

if TYPE_CHECKING:
    from answerkey.comparison.run_comparison import Columns
    from answerkey.gates import Gate
    from answerkey.judge.pairwise import Pairwise
    from answerkey.judge.session import Judge
    from answerkey.model.run import GateResult, RunInfo
    from answerkey.report.html_file import Sheet
    from answerkey.runs.experiment import Experiment
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
    from answerkey.gates import parse_gate
    from answerkey.report.html_file import check_sheet_output

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
        from answerkey.report.html_file import comparison_sheet, ranking_sheet

        make: Any = comparison_sheet if isinstance(self.found, Comparison) else ranking_sheet
        sheet: Sheet = make(self.found)
        return sheet

    def write(self, outputs: Sequence[Path]) -> None:
        """To files."""
        from answerkey.report.html_file import write_sheet

        for path in outputs:
            write_sheet(self.sheet, self.document, path)

    def show(self, *, markdown: bool) -> None:
        """To people."""
        from answerkey.model.comparison import Comparison
        from answerkey.report.html_file import sheet_markdown
        from answerkey.report.terminal_texts import pairwise_lines, print_comparison, print_ranking

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
    from answerkey.comparison.run_comparison import columns_from_store
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
    from answerkey.runs.verdicts import gates_of_stored, with_wordings

    base, candidate = columns
    comparison = with_wordings(compare_runs(base, candidate, margin=margin), store, infos[1])
    results = gates_of_stored(store, infos[1], gates, comparison)
    judged = None
    if pair_judge is not None:
        from answerkey.runs.judging import judge_runs
        from answerkey.runs.progress import wait_for

        judged = wait_for(judge_runs(store, infos[0], infos[1], pair_judge))
    document = comparison.to_dict() | {"gates": results} | ({} if judged is None else {"judge": judged})
    return _Shown(comparison, document, comparison.verdict, results, judged)


def _ranked(
    store: "SqlStore", infos: "Sequence[RunInfo]", columns: "Sequence[Columns]", gates: "Sequence[Gate]"
) -> _Shown:
    """Many runs, each with its gates; those on a comparison hold it against the first."""
    from answerkey.comparison import compare_runs
    from answerkey.comparison.run_ranking import rank_runs
    from answerkey.runs.verdicts import gates_of_stored

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


# `answerkey ab`: two targets side by side.


@click.command()
@questions_argument
@flag("--a T", "The target that is in use.", "first")
@flag("--b T", "The target that might take its place.", "second")
@flag("--early-stop", "Stop as soon as the difference is shown; looking costs nothing.", is_flag=True)
@flag("--looks N", "Stop, if the difference is shown, at one of N planned looks.", type=click.IntRange(min=2))
@flag("--resume RUN", "Go on with an interrupted experiment: the id of either of its runs.")
@fail_on_flag
# Not `gates`: those of the configuration are for runs.
@flag("--gate EXPR", "A condition on b against a.", "conditions", multiple=True)
@answers
@asking_flags("A name: the runs are called N-a and N-b.")
def ab(
    questions: Path | None,
    first: str | None,
    second: str | None,
    early_stop: bool,
    looks: int | None,
    resume: str | None,
    fail_on: str | None,
    conditions: tuple[str, ...],
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    quiet: bool,
) -> Answer:
    """Ask two targets the same questions, interleaved in random order, and say whether b is better than a.

    With --judge, a model grades the replies while they come in, as in run, and then says of each pair which is better;
    the judge's budget is shared out among the three. --budget counts both targets, and stops both after the same questions.

    \b
    Examples:
      answerkey ab golden.jsonl --a http://localhost:8000/chat --b http://localhost:8001/chat
      answerkey ab --a demo --b demo:flaky --early-stop --seed 7 --json
      answerkey ab --resume 4f2a
    """
    from answerkey.runs.api import ab as run_ab

    if resume is not None and not (questions is None and first is None and second is None):
        raise UsageError("--resume goes on as the experiment began; give neither questions nor targets")
    judge = _shared(judge, settings.judge.budget)
    pair_judge = judge.pair_judge(settings)
    with stopped_like_ctrl_c():
        experiment = run_ab(
            questions,
            first,
            second,
            msgspec.structs.replace(options, judge=judge.settings(settings.judge)),
            early_stop=early_stop,
            looks=looks or 0,
            resume=resume,
            gates=gates_with(fail_on, conditions),
            settings=settings,
            progress=progress_for_terminal(quiet=quiet),
        )
    judged: Pairwise | None = None
    if pair_judge is not None:
        from answerkey.runs.judging import judge_runs
        from answerkey.runs.progress import wait_for

        a, b = (run.info for run in experiment.runs)
        with opened_store(options.store) as store:
            judged = wait_for(judge_runs(store, a, b, pair_judge))
    document: dict[str, Any] = experiment.to_dict() | ({} if judged is None else {"judge": judged})
    code = verdict_code(experiment.verdict, fail_on, experiment.gates)
    return Answer(document, lambda: _show(experiment, judged), code)


def _show(experiment: "Experiment", judged: "Pairwise | None") -> None:
    """What the experiment found, and what a judge says of its pairs."""
    from answerkey.report.terminal_texts import pairwise_lines, print_experiment

    print_experiment(experiment)
    if judged is not None:
        click.echo("\n".join(pairwise_lines(judged)))
    print_gates(experiment.gates)


def _shared(judge: JudgeFlags, configured: float | None) -> JudgeFlags:
    """The judge with the part of the budget that each has of those it judges for: the two runs, and the pairs."""
    budget = configured if judge.budget is None else judge.budget
    parts = 3 if judge.model else 2
    return msgspec.structs.replace(judge, budget=None if budget is None else budget / parts)


# `answerkey plan`: how many questions and repeats a difference needs.


_ENDINGS = (".jsonl", ".json", ".yaml", ".yml", ".csv", ".parquet")


@click.command()
@click.argument("sources", nargs=-1, metavar="[QUESTIONS | RUN [RUN]]")
@flag("--difference", "The smallest difference that matters.", type=float, default=0.05, show_default=True)
@flag("--power", "The wanted chance to show it.", type=float, default=0.8, show_default=True)
@flag("--deviation", "Without a run: the spread of question scores (0.3).", type=float)
@flag("--correlation", "Without two runs: how alike two versions do on a question (0.5).", type=float)
@store_flag
@answers
def plan(
    sources: tuple[str, ...],
    difference: float,
    power: float,
    deviation: float | None,
    correlation: float | None,
    store: str | None,
) -> Answer:
    """Say how many questions and repeats a difference needs, and what those at hand can show.

    Best from two runs over the same questions; one run tells the spread of scores, and with --repeat also how much
    of it is noise and which questions are flaky; a golden set alone gives a guess. Without arguments: the latest run.

    \b
    Examples:
      answerkey plan latest~1 latest --difference 0.03
      answerkey plan latest --difference 0.02 --power 0.9
      answerkey plan golden.jsonl --json
    """
    from answerkey.comparison.planning import (
        GUESSED_CORRELATION,
        GUESSED_DEVIATION,
        plan_from_pair,
        plan_from_run,
    )
    from answerkey.comparison.planning import plan as plan_questions
    from answerkey.comparison.run_comparison import columns_from_store
    from answerkey.datasets.golden_sets import read_questions
    from answerkey.report.terminal_texts import print_plan

    _check(difference, power, deviation, correlation)
    if len(sources) > 2:
        raise UsageError("a plan is made from a golden set, from one run or from two; not from more")
    deviation = GUESSED_DEVIATION if deviation is None else deviation
    correlation = GUESSED_CORRELATION if correlation is None else correlation
    aim = {"wanted": difference, "power": power}
    first = sources[0] if sources else "latest"
    if len(sources) == 1 and (first.endswith(_ENDINGS) or Path(first).is_file()):
        made = plan_questions(
            read_questions(first, registry=load_settings().scorer_registry),
            deviation=deviation,
            correlation=correlation,
            difference=difference,
            power=power,
        )
    else:
        with opened_store(store) as opened:
            columns = columns_from_store(opened, map(opened.find_run, sources or (first,)))
        if len(columns) == 2:
            made = plan_from_pair(columns[0], columns[1], **aim)
        else:
            made = plan_from_run(columns[0], correlation=correlation, **aim)
    return Answer(made, lambda: print_plan(made))


def _check(difference: float, power: float, deviation: float | None, correlation: float | None) -> None:
    """Refuse figures that mean nothing."""
    if not 0 < difference < 1:
        raise UsageError(
            f"--difference {difference:g}: write points as a share, between 0 and 1; 0.05 is five points"
        )
    if not 0 < power < 1:
        raise UsageError(f"--power {power:g}: must be between 0 and 1")
    if deviation is not None and not 0 < deviation <= 0.5:
        raise UsageError(f"--deviation {deviation:g}: scores between 0 and 1 spread by at most 0.5")
    if correlation is not None and not -1 < correlation < 1:
        raise UsageError(f"--correlation {correlation:g}: must be between -1 and 1")


# `answerkey baseline`: names for runs to compare with.


@click.group()
def baseline() -> None:
    """Name runs that others are compared with.

    \b
    Examples:
      answerkey baseline set production latest
      answerkey run golden.jsonl --baseline production --gate "no regression"
      answerkey baseline list
    """


@baseline.command("set")
@click.argument("name")
@click.argument("run", default="latest")
@with_store()
def set_(name: str, run: str, store: "SqlStore") -> None:
    """Call a run NAME; a name that is taken moves to this run.

    \b
    Example:
      answerkey baseline set production latest
    """
    from answerkey.text.normalise import one_line

    info = store.name_baseline(name, run)
    click.echo(f"{one_line(name, 60)} is run {info.id} ({one_line(info.name, 60)})")


@baseline.command("list")
@with_store()
@answers
def list_(store: "SqlStore") -> Answer:
    """List baselines.

    \b
    Example:
      answerkey baseline list --json
    """
    from answerkey.text.normalise import one_line

    names = dict(sorted(store.baselines().items()))
    lines = [f"{one_line(name, 60)}  {run_id}" for name, run_id in names.items()]
    nothing = "no baselines yet; answerkey baseline set NAME RUN makes one"
    return Answer({"baselines": names}, "\n".join(lines) or nothing)


@baseline.command("remove")
@click.argument("name")
@with_store()
def remove(name: str, store: "SqlStore") -> None:
    """Forget a baseline's name; the run stays.

    \b
    Example:
      answerkey baseline remove production
    """
    from answerkey.errors import UnknownNameError

    if not store.remove_baseline(name):
        raise UnknownNameError(f"no baseline {name!r}; answerkey baseline list shows them")
