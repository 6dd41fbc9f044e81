"""What verdicts say about weights, on the terminal."""

from rich.text import Text

from answerkey.report.terminal import emit, make_console, plain_table
from answerkey.report.value_wording import count, name_words, percent
from answerkey.stats.weights_fit import WeightsFit

__all__ = ["print_weights"]


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
