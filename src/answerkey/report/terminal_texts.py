"""Everything but runs on the terminal: comparisons, rankings, plans, calibrations, lint, audit, single questions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from answerkey.model.comparison import Comparison, Measure, QuestionChange, cause_lines
from answerkey.model.judgement import RubricRecord, RubricVersion
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import GateResult, Run, RunInfo
from answerkey.model.scorecard import Trial
from answerkey.report.layout import Console, Indented, Table, Text, cell_len, make_console
from answerkey.report.terminal import add_row, emit, failed_gate_lines, plain_table, print_trial
from answerkey.report.wording import (
    change_counts,
    comparison_facts,
    comparison_headline,
    confirmation_lines,
    count,
    family_verdict,
    gate_words,
    measure_words,
    milliseconds,
    name_words,
    score_text,
)
from answerkey.stats.intervals import Interval
from answerkey.text.normalise import for_terminal, one_line

if TYPE_CHECKING:
    from answerkey.comparison.run_ranking import Plan, Ranking
    from answerkey.golden.lint import Finding
    from answerkey.judge.calibration import Calibration, Disagreement, Rate
    from answerkey.report.sheets import SheetTable
    from answerkey.runs.bisect import Bisection
    from answerkey.runs.judging import PairBias, Pairwise, Preference
    from answerkey.runs.run_variants import Experiment
    from answerkey.runs.setup import AskResult
    from answerkey.stats.paired import Confusion, Corrected


COLOURS = {"better": "green", "worse": "red", "same": "cyan", "no clear difference": "yellow"}
_CHANGES_SHOWN = 20
_CHANGE_COLOURS = {"fixed": "green", "broken": "red", "worse": "red", "flaky": "yellow"}
_UNPAIRED_SHOWN = 10
# Space between columns, and the shortest width of a row's name.
_GAP = 2
_SHORTEST_NAMES = 14


def print_comparison(
    comparison: Comparison,
    *,
    file: TextIO | None = None,
    width: int | None = None,
    causes: bool = True,
    failed: Sequence[GateResult] = (),
) -> None:
    """Print the verdict, then its figures; `causes` are left out where the run's report has them.

    Gates that failed are printed first, and the causes of a regression before its verdict.
    """
    console = make_console(file, width=width)
    base, candidate = comparison.base, comparison.candidate
    verdict = comparison.verdict
    head = _verdict(verdict, comparison_headline(comparison).removeprefix(verdict).lstrip(":"))
    runs = f"{one_line(base.name, 30)} ({base.id}) → {one_line(candidate.name, 30)} ({candidate.id})"
    lines = cause_lines(comparison.causes, comparison.lost) if causes else []
    reasons = [Text(f"  {line}", style="bold") for line in lines]
    emit(console, "", Text(runs, style="dim"), "", *failed_gate_lines(failed))
    if failed or comparison.regression:
        emit(console, *reasons, *([""] if reasons or failed else []), head)
    else:
        emit(console, head, *reasons)
    for line in (*comparison_facts(comparison), *comparison.reasons, *confirmation_lines(comparison)):
        emit(console, Text(line))
    for note in comparison.notes:
        emit(console, Text(f"! {one_line(note, 200)}", style="yellow"))
    for title, measures in (("Components", comparison.components), ("Categories", comparison.categories)):
        if measures:
            emit(console, "", _table(title, measures))
    if comparison.metrics:
        emit(console, "", _table("Metrics", comparison.metrics))
    if comparison.unpaired:
        emit(console, "", Text(f"Not compared: {count(len(comparison.unpaired), 'question')}", style="bold"))
        for item in comparison.unpaired[:_UNPAIRED_SHOWN]:
            emit(console, Text(f"  {one_line(item.id, 60)}: {item.reason}"))
        _print_rest(console, len(comparison.unpaired) - _UNPAIRED_SHOWN)
    # Last, so that it is on the screen when the command ends.
    _print_changes(comparison, console)
    emit(console, "")


def _print_changes(comparison: Comparison, console: Console) -> None:
    """Print the questions that got worse, each with its reason, then the fixed ones."""
    changes = (*comparison.fallen, *(flip for flip in comparison.flips if flip.kind == "fixed"))
    if not changes:
        return
    emit(console, "", Text(f"Changed questions: {change_counts(comparison)}", style="bold"))
    for change in changes[:_CHANGES_SHOWN]:
        _print_change(change, console)
    _print_rest(console, len(changes) - _CHANGES_SHOWN)


def _print_change(change: QuestionChange, console: Console) -> None:
    line = f"  {change.kind:7}{score_text(change.score_from)} → {score_text(change.score_to)}  "
    text = Text(line + one_line(change.id, 60), style=_CHANGE_COLOURS[change.kind])
    if (room := console.width - cell_len(text.plain) - 2) > 0:
        text.append(f"  {one_line(change.question, room)}", style="dim")
    emit(console, text)
    if change.because:
        emit(console, Indented(Text(one_line(change.because, 200)), 9))


def print_failed_gates(run: Run, console: Console) -> None:
    """Print the failed gates: the last lines of a run, where the eye is."""
    failed = [gate for gate in run.gates if not gate.passed]
    if not failed:
        return
    title = f"{len(failed)} of {count(len(run.gates), 'gate')} failed"
    emit(console, "", Text(title, style="bold red"))
    for gate in failed:
        emit(console, Text(f"  ✗ {one_line(gate_words(gate), 200)}", style="red"))


def _verdict(verdict: str, words: str) -> Text:
    return Text.assemble((f" {verdict} ", f"bold reverse {COLOURS[verdict]}"), (words, "bold"))


def _print_rest(console: Console, left_out: int) -> None:
    if left_out > 0:
        emit(console, Text(f"  … and {left_out:,} more; --json lists all", style="dim"))


def _table(title: str, measures: Sequence[Measure]) -> Table:
    change = "change" if any(measure.counted for measure in measures) else "points"
    table = plain_table(title, "from → to", change, "95% interval", "p alone", "verdict")
    for measure in measures:
        add_row(
            table,
            one_line(measure.name if title == "Categories" else name_words(measure.name), 24),
            *measure_words(measure),
            Text(family_verdict(measure, len(measures)), style=COLOURS[measure.verdict]),
        )
    return table


def print_experiment(experiment: "Experiment") -> None:
    """Print the result of an experiment, then the comparison of its two runs."""
    console = make_console()
    asked = f"{experiment.asked:,} of {experiment.planned:,} trials asked"
    emit(console, "", Text(f"{asked}{', stopped early' if experiment.stopped_early else ''}", style="dim"))
    emit(console, *(Text(f"! {one_line(note, 300)}", style="yellow") for note in experiment.warnings))
    print_comparison(experiment.comparison, failed=[gate for gate in experiment.gates if not gate.passed])


def print_ranking(ranking: "Ranking", *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print runs best first, a column for each."""
    console = make_console(file, width=width)
    from answerkey.report.sheets import ranking_sheet  # rankings are few

    sheet = ranking_sheet(ranking)
    [matrix] = sheet.tables
    emit(console, "", Text(sheet.title, style="bold"), "")
    for table in _fitting_tables(matrix, console.width):
        emit(console, table, "")
    emit(console, *(Text(line, style="dim") for line in sheet.lines))
    emit(console, *(Text(f"! {one_line(note, 400)}", style="yellow") for note in sheet.warnings), "")


def _fitting_tables(matrix: "SheetTable", width: int) -> Iterator[Table]:
    """Split a matrix into tables that fit the width; names may be cut, figures never."""
    columns = list(zip(matrix.heads, *matrix.rows, strict=True))
    names, runs = columns[0], columns[1:]
    widths = [max(map(cell_len, column)) + _GAP for column in runs]
    if max(map(cell_len, names)) + sum(widths) > width:
        widths = [max(map(cell_len, column[1:])) + _GAP for column in runs]
    start = 0
    while start < len(runs):
        end = start + 1
        while end < len(runs) and _SHORTEST_NAMES + sum(widths[start : end + 1]) <= width:
            end += 1
        shown = [names, *runs[start:end]]
        table = plain_table(*(column[0] for column in shown))
        table.columns[0].settings["max_width"] = max(_SHORTEST_NAMES, width - sum(widths[start:end]))
        for column, taken in zip(table.columns[1:], widths[start:end], strict=True):
            column.settings["width"] = taken - _GAP
        for row in zip(*(column[1:] for column in shown), strict=True):
            add_row(table, *row)
        yield table
        start = end


def print_bisection(result: "Bisection") -> None:
    """Print the commit that made the chatbot worse, or why none is named; then what was tested."""
    console = make_console()
    if result.commit is not None and result.posterior is not None:
        verdict = (
            f"{result.commit.short} is the first bad commit (probability {min(result.posterior, 0.999):.1%})"
        )
        emit(console, Text(verdict, style="bold red"), Text(f"  {one_line(result.commit.subject, 100)}"))
    else:
        emit(console, Text(f"no single commit: {result.because}", style="bold yellow"))
    if (control := result.control) is not None:
        figures = f"{control.difference:.0%} (95% interval {control.low:.0%} to {control.high:.0%})"
        emit(
            console,
            Text(f"  {control.before[:10]}, the commit before it, asked again in turns: better by {figures}"),
        )
    names = ", ".join(one_line(name, 40) for name in result.questions[:_CHANGES_SHOWN])
    asked = f"{count(len(result.questions), 'question')} that flipped"
    in_all = f"{result.replies:,} replies, those that chose the questions included"
    emit(console, Text(f"  {asked}: {names}; {in_all}" if names else f"  {in_all}"))
    table = plain_table(
        "commit", "verdict", "like good", "replies", "subject", right=["like good", "replies"]
    )
    for tested in result.tested:
        like = "–" if tested.like_good is None else f"{tested.like_good:.0%}"
        what = f"{tested.verdict}: {tested.because}" if tested.because else tested.verdict
        subject = one_line(tested.subject, 60)
        add_row(table, tested.commit[:10], one_line(what, 60), like, str(tested.replies), subject)
    emit(console, "", table)
    if result.commit is None and any(one.verdict == "skipped" for one in result.tested):
        emit(console, Text(f"candidates: {', '.join(one.short for one in result.candidates)}"))


def print_plan(plan: "Plan") -> None:
    """Print what the existing questions can detect, and how many a difference needs."""
    console = make_console()
    repeats = f", each asked {plan.repeat} times" if plan.repeat > 1 else ""
    grouped = f" in {plan.units:,} units" if plan.units < plan.questions else ""
    lines = [f"You have {count(plan.questions, 'question')}{grouped}{repeats}."]
    if plan.is_guess:
        why = (
            "there is no run"
            if plan.source == "guess"
            else f"{plan.units:,} are too few to measure how versions differ"
        )
        lines.append(f"This plan is a guess: {why}. Plan again from a run of 50 or more questions.")
    emit(console, "", *(Text(line) for line in (*lines, *_needed_lines(plan))))
    between, within = plan.variance.between_questions, plan.variance.between_repeats
    if within is not None and between is not None and between + within > 0:
        share = within / (between + within)
        emit(
            console,
            Text(f"{share:.0%} of the variance of scores is between repeats, the rest between questions."),
        )
    columns = sorted({row.repeat for row in plan.table})
    one_way = " if all changes go one way," if plan.scenarios else ""
    heads = ["asked once" if repeat == 1 else f"{repeat} times" for repeat in columns]
    table = plain_table("difference", *heads, right=heads)
    for difference, rows in groupby(plan.table, key=lambda row: row.difference or 0.0):
        found = {row.repeat: row.questions for row in rows}
        cells = ["–" if found[repeat] is None else f"{found[repeat]:,}" for repeat in columns]
        points = round(100 * difference)
        add_row(table, f"{points} point{'s' if points > 1 else ''}", *cells)
    emit(console, "", Text(f"Questions needed{one_way} for {plan.goal.power:.0%} power", style="bold"), table)
    if plan.flaky:
        emit(console, "", Text("Flaky questions (repeats differ most)", style="bold"))
        for question in plan.flaky[:10]:
            emit(console, Text(f"  ±{question.deviation:.2f}  {one_line(question.id, 60)}"))
    emit(console, "", *(Text(f"Assumed: {assumption}", style="dim") for assumption in plan.assumptions), "")


_SCENARIOS = {
    "one way": "If all changes go one way (a tool breaks, and nothing else changes)",
    "as these two": "If versions differ as these two do (some questions better, some worse)",
}


def _needed_lines(plan: "Plan") -> Iterator[str]:
    """What a plan finds, in each of its scenarios."""
    from answerkey.comparison.run_ranking import Scenario  # for this text only

    wanted = f"{100 * plan.goal.difference:.1f} points"
    scenarios = plan.scenarios or (
        Scenario(name="one way", needed=plan.needed, detectable=plan.detectable, power=plan.power),
    )
    for scenario in scenarios:
        options = [
            f"{row.questions:,} questions asked {'once' if row.repeat == 1 else f'{row.repeat} times'}"
            f"{'' if row.high is None else f' ({row.low:,} to {row.high:,})'}"
            for row in scenario.needed
            if row.questions
        ]
        needs = (
            f"needs {' or '.join(options)}"
            if options
            else "cannot be detected with any feasible number of questions"
        )
        if plan.scenarios:
            yield ""
            yield f"{_SCENARIOS[scenario.name]}:"
        yield f"A difference of {wanted} {needs}."
        if scenario.detectable is not None:
            yield (
                f"Your questions detect {100 * scenario.detectable:.1f} points or more with {plan.goal.power:.0%} power, "
                f"and {wanted} with {scenario.power:.0%} power."
            )
    if plan.scenarios:
        yield "These figures are from how the questions changed; `compare` has its own from the width of its interval."
    if any(row.high is not None for row in plan.needed):
        yield "In brackets: 95% range of this estimate, given the size of the pilot."
    if plan.same is not None:
        points = f"±{100 * plan.same.margin:g} points"
        yield ""
        yield f'The verdict "same" within {points} needs at least {plan.same.least:,} questions, even if nothing changes.'
        if plan.same.questions is not None:
            yield (
                f"For equal versions that differ as assumed here: {plan.same.questions:,} questions "
                f"for {plan.goal.power:.0%} power."
            )


_DISAGREEMENTS_SHOWN = 5
# Names for agreement beyond chance (Landis and Koch), from each value upwards.
_WORDS = ((0.8, "almost perfect"), (0.6, "substantial"), (0.4, "moderate"), (0.2, "fair"), (0.0, "slight"))


def calibration_lines(calibration: "Calibration", *, judge: str, run: str) -> Iterator[str]:
    """How well the judge agrees with people, then its corrected pass rate."""
    table = calibration.confusion
    yield f"{one_line(judge, 60)} against people · {one_line(run, 60)}"
    yield (
        f"{calibration.labelled} labelled replies ({one_line(calibration.source, 60)}), {calibration.unlabelled} only judged"
        + (f", {calibration.unjudged} not judged" if calibration.unjudged else "")
        + f"; the judge passes from {calibration.pass_mark:g}"
    )
    yield ""
    yield f"{'':22}{'people: right':>15}{'people: wrong':>15}"
    yield f"{'judge passes':22}{table.true_positive:>15}{table.false_positive:>15}"
    yield f"{'judge fails':22}{table.false_negative:>15}{table.true_negative:>15}"
    yield ""
    yield f"{'agreement':22}{_rate(calibration.agreement)}"
    if calibration.kappa is None:
        yield f"{'Cohen κ':22}undefined: {_constant(table)} gave every reply the same verdict"
    else:
        word = next((word for least, word in _WORDS if calibration.kappa.value >= least), "none")
        yield f"{'Cohen κ':22}{calibration.kappa.value:.2f} {_within(calibration.kappa.interval, '.2f')}  {word}"
    for name, rate in (("sensitivity", calibration.sensitivity), ("specificity", calibration.specificity)):
        if rate is not None:
            yield f"{name:22}{_rate(rate)}"
    yield f"{'bias':22}{calibration.bias:+.1%} {_within(calibration.bias_interval)}  {_direction(calibration)}"
    if calibration.verbosity is not None:
        ends = calibration.verbosity.interval
        pays = "the judge prefers longer replies" if ends and ends.low > 0 else "no clear effect of length"
        if ends is None:
            pays = "no interval: the replies are on one line"
        yield f"{'verbosity r':22}{_rate(calibration.verbosity, form='+.2f')}  {pays}"
    yield ""
    yield "Pass rate"
    yield f"{'  people, labelled':22}{_rate(calibration.human_rate)}"
    yield f"{'  judge, all':22}{_rate(calibration.judge_rate)}"
    yield f"{'  corrected (PPI++)':22}{_rate(calibration.prediction_powered, 'needs labelled and unlabelled replies')}"
    yield f"{'  corrected (R–G)':22}{_rate(calibration.rogan_gladen, 'the judge is not better than chance')}"
    yield ""
    yield "Mean"
    yield f"{'  judge, all':22}{_rate(calibration.judge_mean)}"
    yield f"{'  corrected (PPI++)':22}{_rate(calibration.corrected_mean, 'needs labelled and unlabelled replies')}"
    if calibration.change is not None:
        change, lacking = calibration.change, "needs labelled and unlabelled replies of both runs"
        yield ""
        yield "Change from the base"
        yield f"{'  pass rate, judge':22}{change.judge_rate:+.1%}"
        yield f"{'  corrected (PPI++)':22}{_rate(change.rate, lacking, '+.1%')}"
        yield f"{'  mean, judge':22}{change.judge_mean:+.1%}"
        yield f"{'  corrected (PPI++)':22}{_rate(change.mean, lacking, '+.1%')}"
    yield ""
    yield _needed(calibration)
    yield from _disagreement_lines(calibration.disagreements)
    for warning in calibration.warnings:
        yield f"! {warning}"


def _disagreement_lines(disagreements: "Sequence[Disagreement]") -> Iterator[str]:
    for one in disagreements[:_DISAGREEMENTS_SHOWN]:
        passes = "the judge fails it, people: right" if one.right else "the judge passes it, people: wrong"
        yield f"  {one_line(one.id, 40)}: {passes} ({one.judge:.2f})  “{one_line(one.reply, 60)}”"
        if one.because:
            yield f"      {one_line(one.because, 110)}"
    if len(disagreements) > _DISAGREEMENTS_SHOWN:
        yield f"  … {len(disagreements)} disagreements; --json lists all"


def rubric_lines(rows: Sequence[tuple[RunInfo, RubricRecord, RubricVersion | None]]) -> Iterator[str]:
    """Stored rubrics, one a line, with the agreement on held-out labels of those that were tried on a run."""
    for info, rubric, tried in rows:
        line = f"{rubric.hash[:8]}  {one_line(rubric.name, 24):24}  {one_line(info.name, 24):24}"
        if tried is None:
            yield f"{line}  of the run"
            continue
        after = tried.held_out.after or tried.held_out.before
        yield f"{line}  tried {tried.at[:16]}: held out {tried.held_out.before.share:.1%} → {after.share:.1%}"
    if not rows:
        yield "no judged run in this store; judge one with: answerkey rescore RUN --judge MODEL"


def _constant(table: "Confusion") -> str:
    """Who gave every reply the same verdict."""
    passes, right = table.true_positive + table.false_positive, table.true_positive + table.false_negative
    constant = [name for name, yes in (("the judge", passes), ("people", right)) if yes in (0, table.n)]
    return " and ".join(constant)


def _needed(calibration: "Calibration") -> str:
    """How many more labels are needed."""
    aim = f"± {100 * calibration.half_width:g} points"
    if calibration.labels_needed is None:
        return f"A corrected pass rate within {aim} is not possible with this run; ask more questions."
    more = calibration.labels_needed - calibration.labelled
    return f"{aim}: " + (f"label about {more} more replies" if more > 0 else "there are enough labels")


def pairwise_lines(pairwise: "Pairwise") -> Iterator[str]:
    """The judge's verdict on pairs of replies, then its figures."""
    yield f"Judged by {one_line(pairwise.model, 60)}, in both orders: {pairwise.verdict}"
    yield f"  candidate wins {pairwise.wins}, loses {pairwise.losses}, ties {pairwise.ties} of {pairwise.pairs} pairs"
    if pairwise.win_rate is not None and pairwise.interval is not None:
        p_value = "" if pairwise.p_value is None else f", p = {pairwise.p_value:.3g}"
        yield f"  win rate {pairwise.win_rate:.1%} {_within(pairwise.interval)}{p_value} (ties count half)"
    if pairwise.self_consistency is not None:
        steady = f"{pairwise.self_consistency:.1%} {_within(pairwise.consistency_interval)}"
        yield f"  self-consistency {steady} (same verdict with the order swapped)"
    if pairwise.bias is not None:
        yield from _bias_lines(pairwise.bias)
    if pairwise.canaries:
        passed = sum(canary.passed is True for canary in pairwise.canaries)
        yield f"  canaries: {passed} of {len(pairwise.canaries)} pairs with a known answer decided correctly"
    cost = "" if pairwise.cost is None else f", cost {pairwise.cost:.4f}"
    yield f"  {pairwise.calls} calls, {pairwise.cached} answers from the cache{cost}"
    for warning in pairwise.warnings:
        yield f"! {one_line(warning, 300)}"


def _bias_lines(bias: "PairBias") -> Iterator[str]:
    def lean_text(words: str, lean: "Preference") -> str:
        return f"  {words} {lean.share:.0%} {_within(lean.interval, '.0%')} of {lean.n}"

    if bias.position is not None:
        preferred = f"; it prefers the {bias.prefers}" if bias.prefers else ""
        yield lean_text("verdicts that depend on the order: the first reply won", bias.position) + preferred
    if bias.length is not None:
        yield lean_text("the longer reply won", bias.length) + " pairs with equal scores"
    for own in bias.self_preference:
        line = lean_text(f"{one_line(own.judge, 40)} chose its own family ({own.own}) in", own.lean)
        others = "" if own.others is None else f", the other judges in {own.others.share:.0%}"
        yield f"{line} pairs with equal scores{others}"


def _direction(calibration: "Calibration") -> str:
    if calibration.bias_p_value is None or calibration.bias_p_value > 0.05:
        return "no clear bias"
    return "the judge is lenient" if calibration.bias > 0 else "the judge is harsh"


def _rate(rate: "Rate | Corrected | None", otherwise: str = "", form: str = ".1%") -> str:
    return otherwise if rate is None else f"{rate.value:{form}} {_within(rate.interval, form)}"


def _within(interval: Interval | None, form: str = ".1%") -> str:
    return "" if interval is None else f"[{interval.low:{form}}, {interval.high:{form}}]"


_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_LISTED = 20


def print_findings(findings: "Sequence[Finding]", questions: QuestionSet) -> None:
    """Print findings as `file:line: severity code [id] message`, each with its remedy below."""
    from answerkey.golden.lint import SEVERITIES  # for this text only

    console = make_console()
    name = one_line(_shown_path(questions), 200)
    for finding in findings:
        where = f"{name}:{finding.line}" if finding.line is not None else name
        line = Text.assemble(
            f"{where}: ",
            (finding.severity, _STYLES[finding.severity]),
            (f" {finding.code} ", "bold"),
            ("" if finding.id is None else f"[{one_line(finding.id, 60)}] ", "dim"),
            finding.message,
        )
        console.print(line, soft_wrap=True)
        console.print(Text(f"    → {finding.remedy}", style="dim"), soft_wrap=True)
    counts = Counter(finding.severity for finding in findings)
    words = [
        count(counts[severity], severity, severity if severity == "info" else None)
        for severity in SEVERITIES
        if counts[severity]
    ]
    console.print(f"{', '.join(words) or 'no findings'} in {count(len(questions), 'question')}")


def _shown_path(questions: QuestionSet) -> str:
    """The set's file, relative to the current folder if possible."""
    if questions.path is None:
        return questions.name
    try:
        return str(Path(questions.path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return questions.path


# Lines of a raw reply; --raw prints all.
_MOST_LINES = 60
_MOST_UNREAD = 12


def raw_text(result: "AskResult") -> str:
    """The raw reply: JSON indented, anything else unchanged."""
    if isinstance(result.raw, str):
        return for_terminal(result.raw)
    import json  # slow to load

    return for_terminal(json.dumps(result.raw, indent=2, ensure_ascii=False))


def print_asked(result: "AskResult", console: Console) -> None:
    """Print the question, the raw reply and how it was read."""
    took = milliseconds(result.reply.timings.latency_ms)
    asks = one_line(result.question.asks[-1].question, 200)
    emit(
        console,
        Text.assemble(
            ("asked   ", "dim"), (asks, "bold"), (f"  {one_line(result.target, 80)}, {took}", "dim")
        ),
    )
    _print_raw(result, console)
    emit(console, Text("read as", style="bold"))
    for line in _parts(result):
        emit(console, Indented(line, 2))
    if result.unread:
        emit(console, Text("not read", style="bold"))
        shown = ", ".join(result.unread[:_MOST_UNREAD])
        more = f" and {len(result.unread) - _MOST_UNREAD} more" if len(result.unread) > _MOST_UNREAD else ""
        emit(console, Indented(Text(for_terminal(shown + more), style="dim"), 2))
    if result.proposed:
        emit(console, Text("suggested mapping for answerkey.toml:", style="bold"))
        # Not wrapped, so that it can be copied.
        console.print(
            "\n".join(f"  {line}" for line in mapping_lines("NAME", result.proposed)), soft_wrap=True
        )
    if result.scorecard is not None:
        console.print()
        print_trial(Trial(result.question, replies=(result.reply,), scorecard=result.scorecard), console)


def mapping_lines(name: str, expressions: Mapping[str, str]) -> Iterator[str]:
    """A mapping in the syntax of answerkey.toml."""
    import json

    yield f"[targets.{name}.reply]"
    for part, expression in expressions.items():
        yield for_terminal(f"{part} = {json.dumps(expression, ensure_ascii=False)}")


def _print_raw(result: "AskResult", console: Console) -> None:
    emit(console, Text("raw reply", style="bold"))
    lines = raw_text(result).split("\n") if result.raw is not None else ["none"]
    for line in lines[:_MOST_LINES]:
        console.print(f"  {one_line(line, 500) if len(line) > 500 else line}", style="dim", soft_wrap=True)
    if len(lines) > _MOST_LINES:
        console.print(f"  … {len(lines) - _MOST_LINES} more lines; --raw prints them all", style="dim")


def _parts(result: "AskResult") -> Iterator[Text]:
    reply, read = result.reply, result.read
    for part, value in _values(reply).items():
        where = read.get(part, "")
        style = "red" if part == "error" and reply.failure else "" if value else "yellow"
        shown = one_line(value, 160) if value else _MISSING.get(part, "not found")
        yield Text.assemble(
            (f"{part:<13}", "dim"),
            (shown, style),
            (f"  from {one_line(where, 120)}" if where else "", "cyan"),
        )


_MISSING = {
    "text": "no text found",
    "tool_calls": "no tool calls found: they are not observed",
    "sources": "no sources found: they are not observed",
}


def _values(reply: Reply) -> dict[str, str]:
    """The main parts, found or not, and the others that were found."""
    seen = reply.evidence
    usage = (
        "" if reply.usage is None else f"{reply.usage.total_tokens or reply.usage.output_tokens or 0} tokens"
    )
    values = {
        "text": reply.text or "",
        "tool_calls": ", ".join(reply.tools_used) or ("none called" if seen.tools_observed else ""),
        "sources": ", ".join(source.id or source.title or "a passage" for source in reply.sources)
        or ("none" if seen.sources_observed else ""),
    }
    others = {
        "error": f"{reply.failure.kind}: {reply.failure.message}" if reply.failure else "",
        "usage": usage,
        "response_id": reply.response_id or "",
    }
    return {**values, **{part: value for part, value in others.items() if value}}
