"""What to do next, on the terminal: how many questions to ask, and how to weigh components."""

from itertools import groupby

from rich.text import Text

from answerkey.comparison.planning import Plan
from answerkey.report.terminal import emit, make_console, plain_table
from answerkey.report.value_wording import count, name_words, percent
from answerkey.stats.weights_fit import WeightsFit
from answerkey.text.sanitise import one_line


def print_plan(plan: Plan) -> None:
    """Print what there is, what it can show, and what the wanted difference needs."""
    console = make_console()
    repeats = f", each asked {plan.repeat} times" if plan.repeat > 1 else ""
    wanted = f"{100 * plan.wanted.difference:.1f} points"
    grouped = f" in {plan.units:,} units" if plan.units < plan.questions else ""
    lines = [f"You have {count(plan.questions, 'question')}{grouped}{repeats}."]
    if plan.detectable is not None:
        lines.append(
            f"Comparing two versions on them detects ≥ {100 * plan.detectable:.1f} points with {plan.wanted.power:.0%} power; "
            f"a difference of {wanted} would show in {plan.power:.0%} of such comparisons."
        )
    options = [
        f"{row.questions:,} questions asked {'once' if row.repeat == 1 else f'{row.repeat} times'}"
        f"{'' if row.high is None else f' ({row.low:,} to {row.high:,})'}"
        for row in plan.needed
        if row.questions
    ]
    lines.append(
        f"A difference of {wanted} needs {' or '.join(options)}."
        if options
        else f"No feasible number of questions shows a difference of {wanted}."
    )
    if any(row.high is not None for row in plan.needed):
        lines.append("In brackets: what another pilot of this size would have said, 19 times in 20.")
    emit(console, "", *(Text(line) for line in lines))
    between, within = plan.variance.between_questions, plan.variance.between_repeats
    if within is not None and between is not None and between + within > 0:
        share = within / (between + within)
        emit(
            console,
            Text(f"{share:.0%} of the variance of scores is between repeats, the rest between questions."),
        )
    columns = sorted({row.repeat for row in plan.table})
    heads = ["asked once" if repeat == 1 else f"{repeat} times" for repeat in columns]
    table = plain_table("difference", *heads, right=heads)
    for difference, rows in groupby(plan.table, key=lambda row: row.difference or 0.0):
        found = {row.repeat: row.questions for row in rows}
        cells = ["–" if found[repeat] is None else f"{found[repeat]:,}" for repeat in columns]
        points = round(100 * difference)
        table.add_row(f"{points} point{'s' if points > 1 else ''}", *cells)
    emit(console, "", Text(f"Questions needed for {plan.wanted.power:.0%} power", style="bold"), table)
    if plan.flaky:
        emit(console, "", Text("Flaky questions: their repeats differ most", style="bold"))
        for question in plan.flaky[:10]:
            emit(console, Text(f"  ±{question.deviation:.2f}  {one_line(question.id, 60)}"))
    emit(console, "", *(Text(f"Assumed: {assumption}", style="dim") for assumption in plan.assumptions), "")


def print_weights(fit: WeightsFit) -> None:
    """Print how well the weights in force do, and whether others would do better."""
    console = make_console()
    lines = [
        f"{count(fit.verdicts, 'verdict')} on {count(fit.questions, 'question')}, {percent(fit.positive)} positive.",
        f"With the weights in force a liked reply outscores a disliked one in {percent(fit.current_auc)} of pairs "
        f"(50% is guessing); with weights fitted to other replies in {percent(fit.fitted_auc)}.",
    ]
    table = plain_table("component", "in force", "fitted", "95% interval")
    for name, weight in fit.current.items():
        interval = f"{fit.fitted_low[name]:.2f} to {fit.fitted_high[name]:.2f}"
        if name in fit.constant:
            interval = "never varies: cannot be told"
        table.add_row(name_words(name), f"{weight:.2f}", f"{fit.fitted[name]:.2f}", interval)
    emit(console, "", *(Text(line) for line in lines), "", table, "")
    if fit.verdict == "better":
        emit(console, Text("The fitted weights predict verdicts clearly better:", style="bold green"))
        emit(console, Text("  [scoring.weights]"))
        for name, weight in rounded(fit.fitted).items():
            emit(console, Text(f"  {name} = {weight:.2f}"))
    else:
        emit(console, Text("No clear reason to change the weights.", style="bold"))
    emit(console, "")


def rounded(weights: dict[str, float]) -> dict[str, float]:
    """Weights in hundredths that still add up to 1."""
    cents = {name: int(100 * weight) for name, weight in weights.items()}
    left = 100 - sum(cents.values())
    for name in sorted(weights, key=lambda name: 100 * weights[name] - cents[name], reverse=True)[:left]:
        cents[name] += 1
    return {name: value / 100 for name, value in cents.items()}
