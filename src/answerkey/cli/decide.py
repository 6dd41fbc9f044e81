"""`answerkey compare`, `why`, `ab`, `plan` and `baseline`: decide between two versions of a chatbot."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from answerkey.cli.command import (
    FILE,
    Answer,
    JudgeFlags,
    answers,
    asking_flags,
    fail_on_flag,
    flag,
    gate_flag,
    gates_with,
    grouped,
    interruptible,
    judge_flags,
    margin_flag,
    opened_store,
    option,
    print_gates,
    progress_for_terminal,
    questions_argument,
    shared,
    store_flag,
    verdict_code,
    with_store,
)
from answerkey.config import Settings, load_settings
from answerkey.errors import UsageError
from answerkey.model.options import Options
from answerkey.text.normalise import one_line

if TYPE_CHECKING:
    from answerkey.comparison.columns import Columns
    from answerkey.gates import Gate
    from answerkey.judge.session import Judge
    from answerkey.model.run import GateResult, RunInfo
    from answerkey.report.sheets import Sheet
    from answerkey.report.wording import ScoreWords
    from answerkey.runs.judging import Pairwise
    from answerkey.runs.run_variants import Experiment
    from answerkey.store.sql import SqlStore


class CompareFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `compare`, except those of the judge."""

    fail_on: str | None = shared(fail_on_flag)
    gates: tuple[str, ...] = shared(gate_flag)
    margin: float | None = shared(margin_flag)
    group: str | None = option(
        "--group FIELD",
        "Count questions with the same value of this field as one unit (default: group, template, cluster, "
        "conversation).",
    )
    markdown: bool = option("--markdown", "Print Markdown, for a pull request.", is_flag=True)
    outputs: tuple[Path, ...] = option(
        "-o, --output",
        "Write a report: .html .md .json (repeatable).",
        "outputs",
        multiple=True,
        type=FILE,
    )
    store: str | None = shared(store_flag)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="BASE CANDIDATE [MORE ...]")
@grouped(CompareFlags, "flags")
@judge_flags
@answers
def compare(runs: tuple[str, ...], flags: CompareFlags, judge: JudgeFlags) -> Answer:
    """Decide whether the candidate is better than the base: paired by question, with an interval.

    More than two runs are ranked; gates on a comparison then compare each run with the first. With --judge, a model also
    picks the better reply of each pair.

    \b
    Examples:
      answerkey compare latest~1 latest
      answerkey compare production latest --fail-on regression
      answerkey compare production latest --margin 0.02 -o comparison.md
      answerkey compare latest~1 latest --judge gpt-4o-mini
      answerkey compare gpt-small gpt-large local --json
    """
    from answerkey.gates import parse_gate
    from answerkey.report.sheets import check_sheet_output, scores_in, sheet_markdown, write_sheet
    from answerkey.report.wording import score_text

    if len(runs) < 2:
        raise UsageError("compare needs two runs, e.g. answerkey compare latest~1 latest")
    if len(runs) > 2 and (flags.fail_on or flags.margin or judge.model):
        raise UsageError("--fail-on, --margin and --judge need exactly two runs")
    gates = [parse_gate(gate) for gate in gates_with(flags.fail_on, flags.gates)]
    for path in flags.outputs:
        check_sheet_output(path)
    pair_judge = judge.pair_judge(load_settings())
    with opened_store(flags.store) as store:
        infos = [store.find_run(reference) for reference in runs]
        if len({info.id for info in infos}) < len(infos):
            raise UsageError("these references name the same run; name different runs")
        columns = _columns(store, infos, flags.group)
        if len(columns) > 2:
            outcome = _rank(store, infos, columns, gates)
        else:
            outcome = _compare_pair(store, infos, columns, gates, flags.margin, pair_judge)
    for path in flags.outputs:
        write_sheet(outcome.sheet(scores_in(path)), outcome.document, path)

    def print_markdown() -> None:
        sys.stdout.buffer.write(sheet_markdown(outcome.sheet(score_text)).encode())

    code = verdict_code(outcome.verdict, flags.fail_on, outcome.gates)
    return Answer(outcome.document, print_markdown if flags.markdown else outcome.show, code)


class _Outcome(NamedTuple):
    """A comparison of two runs or a ranking of several."""

    # What `--json` prints.
    document: Any
    # The outcome as a page, and on the terminal.
    sheet: "Callable[[ScoreWords], Sheet]"
    show: "Callable[[], None]"
    gates: "Sequence[GateResult]"
    verdict: str = ""


def _print_pairwise(judged: "Pairwise | None") -> None:
    from answerkey.report.terminal_texts import pairwise_lines

    if judged is not None:
        click.echo("\n".join(pairwise_lines(judged)))


def _judge_pairs(
    store: "SqlStore", base: "RunInfo", candidate: "RunInfo", pair_judge: "Judge | None"
) -> "Pairwise | None":
    """Let a judge pick the better reply of each pair; None without a judge."""
    if pair_judge is None:
        return None
    from answerkey.runs.context import wait_for
    from answerkey.runs.judging import judge_runs

    return wait_for(judge_runs(store, base, candidate, pair_judge))


def _load_numpy() -> None:
    """Import numpy without threads for its matrices: starting them takes a quarter of the import, and these are small."""
    name = "OPENBLAS_NUM_THREADS"
    if name not in os.environ:
        os.environ[name] = "1"
        import numpy  # noqa: F401  # for what is imported after it

        del os.environ[name]


def _columns(store: "SqlStore", infos: "Sequence[RunInfo]", group: str | None) -> "list[Columns]":
    _load_numpy()
    from answerkey.comparison.columns import columns_from_store
    from answerkey.model.question import GROUP_FIELDS

    fields = GROUP_FIELDS if group is None else (group,)
    columns = columns_from_store(store, infos, group_fields=fields)
    if group is not None and all(column.groups is None for column in columns):
        raise UsageError(f"--group {group}: no question of these runs has this field")
    return columns


def _compare_pair(
    store: "SqlStore",
    infos: "Sequence[RunInfo]",
    columns: "Sequence[Columns]",
    gates: "Sequence[Gate]",
    margin: float | None,
    pair_judge: "Judge | None",
) -> _Outcome:
    from answerkey.comparison import compare_runs
    from answerkey.report.sheets import comparison_sheet
    from answerkey.report.terminal_texts import print_comparison
    from answerkey.runs.stored import gates_of_stored, with_wordings

    base, candidate = columns
    comparison = with_wordings(compare_runs(base, candidate, margin=margin), store, infos[1])
    results = gates_of_stored(store, infos[1], gates, comparison)
    judged = _judge_pairs(store, infos[0], infos[1], pair_judge)
    document = comparison.to_dict() | {"gates": results} | ({} if judged is None else {"judge": judged})

    def show() -> None:
        print_comparison(comparison, failed=[gate for gate in results if not gate.passed])
        _print_pairwise(judged)
        print_gates(results)

    return _Outcome(document, partial(comparison_sheet, comparison), show, results, comparison.verdict)


def _rank(
    store: "SqlStore", infos: "Sequence[RunInfo]", columns: "Sequence[Columns]", gates: "Sequence[Gate]"
) -> _Outcome:
    """Rank many runs, each with its gates; gates on a comparison compare it with the first run."""
    from answerkey.comparison import compare_runs
    from answerkey.comparison.run_ranking import rank_runs
    from answerkey.report.sheets import ranking_sheet
    from answerkey.report.terminal_texts import print_ranking
    from answerkey.runs.stored import gates_of_stored

    ranking = rank_runs(columns)
    results = {}
    for info, own in zip(infos, columns, strict=True):
        is_first = own is columns[0]
        comparison = None if is_first or not gates else compare_runs(columns[0], own)
        applicable = [gate for gate in gates if not (is_first and gate.needs_comparison)]
        results[info.id] = tuple(gates_of_stored(store, info, applicable, comparison))
    ranking = msgspec.structs.replace(
        ranking, runs=tuple(msgspec.structs.replace(run, gates=results[run.id]) for run in ranking.runs)
    )
    all_results = [result for run in ranking.runs for result in run.gates]
    show = partial(print_ranking, ranking)
    return _Outcome(msgspec.to_builtins(ranking), partial(ranking_sheet, ranking), show, all_results)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="BASE [CANDIDATE]")
@flag("-o, --output", "Write a report: .html .md .json (repeatable).", "outputs", multiple=True, type=FILE)
@store_flag
@answers
def why(runs: tuple[str, ...], outputs: tuple[Path, ...], store: str | None) -> Answer:
    """Say where the difference of two runs comes from: key, truth, error, tools, arguments, tool results, text or judge.

    Questions with the same cause are one group. Slices (category, persona, tag, tool, length, turns, language) are listed
    if they are worse than the rest. With one run, say why it lost points.

    \b
    Examples:
      answerkey why latest~1 latest
      answerkey why production latest --json
      answerkey why latest -o why.md
    """
    from answerkey.comparison.columns import columns_from_store
    from answerkey.report.command_results import causes_sheet, why_sheet
    from answerkey.report.sheets import check_sheet_output, scores_in, write_sheet
    from answerkey.report.terminal import print_sheet
    from answerkey.report.wording import score_text
    from answerkey.runs.causes import causes
    from answerkey.runs.why import check_different, explain

    if len(runs) > 2:
        raise UsageError("why takes one run or two, e.g. answerkey why latest~1 latest")
    for path in outputs:
        check_sheet_output(path)
    with opened_store(store) as opened:
        infos = [opened.find_run(reference) for reference in runs]
        if len(infos) == 1:
            found = causes(opened.load_run(infos[0]))
            document, sheet_by = found.to_dict(), partial(causes_sheet, found)
        else:
            check_different(*infos)
            base, candidate = map(opened.load_run, infos)
            result = explain(base, candidate, *columns_from_store(opened, infos))
            document, sheet_by = result.to_dict(), partial(why_sheet, result)
    for path in outputs:
        write_sheet(sheet_by(scores_in(path)), document, path)
    return Answer(document, lambda: print_sheet(sheet_by(score_text)))


class BisectFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `bisect` that are not those of a run."""

    target: str | None = option("--target T", "The chatbot (default: the configured one).")
    questions: Path | None = option("--questions Q", "Golden set (default: the configured one).", type=FILE)
    repository: Path | None = option(
        "--repo DIR", "The chatbot's git repository (default: the project's).", "repository", type=FILE
    )
    setup: str | None = option(
        "--setup COMMAND", 'Run once in each checkout, e.g. "npm ci"; a commit at which it fails is skipped.'
    )
    start: str | None = option(
        "--start COMMAND", "Start the chatbot's server in a checkout; needed for a target with a URL."
    )
    fail_on: str | None = option(
        "--fail-on", "inconclusive: exit 4 if no single commit is named.", type=click.Choice(["inconclusive"])
    )


@click.command()
@click.argument("good")
@click.argument("bad")
@grouped(BisectFlags, "flags")
@answers
@asking_flags("Name of the stored runs (default: bisect).")
def bisect(
    good: str,
    bad: str,
    flags: BisectFlags,
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    quiet: bool,
) -> Answer:
    """Find the commit between GOOD and BAD that made the chatbot worse, or say that there is none.

    GOOD and BAD are commits of the chatbot's repository, or stored runs of commits. The target is started in a temporary
    checkout (git worktree) of each commit that is tried. Only questions that flipped are asked, as often as a sequential
    test needs; a commit that does not start is skipped. The named commit and the one before it are asked once more, in
    turns, so that luck and drift are not blamed on a commit. After an interruption, run the same command again to continue.

    \b
    Examples:
      answerkey bisect v1.4 HEAD
      answerkey bisect production latest --json
      answerkey bisect HEAD~20 HEAD --setup "npm ci" --start "npm start" --target http://localhost:8000/chat
    """
    from answerkey.report.terminal_texts import print_bisection
    from answerkey.runs.api import bisect as run_bisect

    with interruptible():
        result = run_bisect(
            good,
            bad,
            flags.questions,
            flags.target,
            msgspec.structs.replace(options, judge=judge.settings(settings.judge)),
            repository=flags.repository,
            setup=flags.setup,
            start=flags.start,
            note=lambda line: None if quiet else click.echo(one_line(line, 100), err=True),
            settings=settings,
        )
    code = 4 if result.commit is None and flags.fail_on == "inconclusive" else 0
    return Answer(result.to_dict(), lambda: print_bisection(result), code)


class AbFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `ab` that are not those of a run."""

    first: str | None = option("--a T", "Baseline target.", "first")
    second: str | None = option("--b T", "Candidate target.", "second")
    early_stop: bool = option(
        "--early-stop", "Stop as soon as the result is significant (anytime-valid).", is_flag=True
    )
    looks: int | None = option(
        "--looks N",
        "Check N times, as planned, whether the result is significant, and stop then.",
        type=click.IntRange(min=2),
    )
    resume: str | None = option(
        "--resume RUN", "Resume an interrupted experiment: the id of either of its runs."
    )
    fail_on: str | None = shared(fail_on_flag)
    # Not `gates`: those of the configuration are for runs.
    conditions: tuple[str, ...] = option(
        "--gate EXPR", "Fail unless this holds for b against a (repeatable).", "conditions", multiple=True
    )


@click.command()
@questions_argument
@grouped(AbFlags, "flags")
@answers
@asking_flags("Name of the experiment; its runs are called N-a and N-b.")
def ab(
    questions: Path | None,
    flags: AbFlags,
    options: Options,
    judge: JudgeFlags,
    settings: Settings,
    quiet: bool,
) -> Answer:
    """Ask two targets the same questions, interleaved in random order, and decide whether b is better than a.

    With --judge, a model grades the replies as in `run`, and then picks the better reply of each pair; the judge's budget
    is divided among the three. --budget covers both targets, and stops both after the same questions.

    \b
    Examples:
      answerkey ab golden.jsonl --a http://localhost:8000/chat --b http://localhost:8001/chat
      answerkey ab --a demo --b demo:flaky --early-stop --seed 7 --json
      answerkey ab --resume 4f2a
    """
    from answerkey.runs.api import ab as run_ab

    if flags.resume is not None and not (questions is None and flags.first is None and flags.second is None):
        raise UsageError("--resume cannot be combined with questions or targets")
    judge = _with_shared_budget(judge, settings.judge.budget)
    pair_judge = judge.pair_judge(settings)
    with interruptible():
        experiment = run_ab(
            questions,
            flags.first,
            flags.second,
            msgspec.structs.replace(options, judge=judge.settings(settings.judge)),
            early_stop=flags.early_stop,
            looks=flags.looks or 0,
            resume=flags.resume,
            judge=judge.settings,
            gates=gates_with(flags.fail_on, flags.conditions),
            settings=settings,
            progress=progress_for_terminal(quiet=quiet),
        )
    judged: Pairwise | None = None
    if pair_judge is not None:
        a, b = (run.info for run in experiment.runs)
        with opened_store(options.store) as store:
            judged = _judge_pairs(store, a, b, pair_judge)
    document: dict[str, Any] = experiment.to_dict() | ({} if judged is None else {"judge": judged})
    code = verdict_code(experiment.verdict, flags.fail_on, experiment.gates)
    return Answer(document, partial(_print_experiment, experiment, judged), code)


def _print_experiment(experiment: "Experiment", judged: "Pairwise | None") -> None:
    from answerkey.report.terminal_texts import print_experiment

    print_experiment(experiment)
    _print_pairwise(judged)
    print_gates(experiment.gates)


def _with_shared_budget(judge: JudgeFlags, configured: float | None) -> JudgeFlags:
    """Divide the judge's budget among the two runs and, with --judge, the pairs."""
    budget = configured if judge.budget is None else judge.budget
    parts = 3 if judge.model else 2
    return msgspec.structs.replace(judge, budget=None if budget is None else budget / parts)


_GOLDEN_SET_ENDINGS = (".jsonl", ".json", ".yaml", ".yml", ".csv", ".parquet")


@click.command()
@click.argument("sources", nargs=-1, metavar="[QUESTIONS | RUN [RUN]]")
@flag("--difference", "Smallest difference that matters.", type=float, default=0.05, show_default=True)
@flag("--power", "Probability of detecting it.", type=float, default=0.8, show_default=True)
@flag("--margin", 'Also plan the verdict "same": versions within ±M (0.02 = 2 points).', type=float)
@flag("--deviation", "Without a run: standard deviation of question scores (default 0.3).", type=float)
@flag("--correlation", "Without two runs: correlation of two versions' scores (default 0.5).", type=float)
@store_flag
@answers
def plan(
    sources: tuple[str, ...],
    difference: float,
    power: float,
    margin: float | None,
    deviation: float | None,
    correlation: float | None,
    store: str | None,
) -> Answer:
    """Estimate how many questions and repeats a difference needs, and what the existing ones can detect.

    Two runs over the same questions give the best estimate. One run gives the spread of scores and, with --repeat, how
    much of it is noise and which questions are flaky. A golden set alone gives a guess. Without arguments, uses the
    latest run.

    \b
    Examples:
      answerkey plan latest~1 latest --difference 0.03
      answerkey plan latest --difference 0.02 --power 0.9
      answerkey plan latest~1 latest --margin 0.02
      answerkey plan golden.jsonl --json
    """
    from answerkey.comparison.columns import columns_from_store
    from answerkey.comparison.run_ranking import (
        GUESSED_CORRELATION,
        GUESSED_DEVIATION,
        PlanGoal,
        plan_from_pair,
        plan_from_run,
    )
    from answerkey.comparison.run_ranking import plan as plan_questions
    from answerkey.datasets.golden_sets import read_questions
    from answerkey.report.terminal_texts import print_plan

    _check_figures(difference, power, margin, deviation, correlation)
    if len(sources) > 2:
        raise UsageError("plan takes a golden set, one run or two runs")
    deviation = GUESSED_DEVIATION if deviation is None else deviation
    correlation = GUESSED_CORRELATION if correlation is None else correlation
    goal = PlanGoal(difference, power, margin)
    first = sources[0] if sources else "latest"
    if len(sources) == 1 and (first.endswith(_GOLDEN_SET_ENDINGS) or Path(first).is_file()):
        made = plan_questions(
            read_questions(first, registry=load_settings().scorer_registry),
            deviation=deviation,
            correlation=correlation,
            difference=difference,
            power=power,
            margin=margin,
        )
    else:
        with opened_store(store) as opened:
            columns = columns_from_store(opened, map(opened.find_run, sources or (first,)))
        if len(columns) == 2:
            made = plan_from_pair(columns[0], columns[1], goal)
        else:
            made = plan_from_run(columns[0], goal, correlation=correlation)
    return Answer(made, lambda: print_plan(made))


def _check_figures(
    difference: float,
    power: float,
    margin: float | None,
    deviation: float | None,
    correlation: float | None,
) -> None:
    if not 0 < difference < 1:
        raise UsageError(f"--difference {difference:g}: must be between 0 and 1; 0.05 is 5 points")
    if not 0 < power < 1:
        raise UsageError(f"--power {power:g}: must be between 0 and 1")
    if margin is not None and not 0 < margin < 1:
        raise UsageError(f"--margin {margin:g}: must be between 0 and 1; 0.02 is 2 points")
    if deviation is not None and not 0 < deviation <= 0.5:
        raise UsageError(f"--deviation {deviation:g}: must be between 0 and 0.5")
    if correlation is not None and not -1 < correlation < 1:
        raise UsageError(f"--correlation {correlation:g}: must be between -1 and 1")


@click.group()
def baseline() -> None:
    """Name runs to compare with.

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
    """Name a run; an existing name is moved.

    \b
    Example:
      answerkey baseline set production latest
    """

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

    names = dict(sorted(store.baselines().items()))
    lines = [f"{one_line(name, 60)}  {run_id}" for name, run_id in names.items()]
    nothing = "no baselines; create one with: answerkey baseline set NAME RUN"
    return Answer({"baselines": names}, "\n".join(lines) or nothing)


@baseline.command("remove")
@click.argument("name")
@with_store()
def remove(name: str, store: "SqlStore") -> None:
    """Remove a baseline's name; the run is kept.

    \b
    Example:
      answerkey baseline remove production
    """
    from answerkey.errors import UnknownNameError

    if not store.remove_baseline(name):
        raise UnknownNameError(f"no baseline {name!r}; list them with: answerkey baseline list")
