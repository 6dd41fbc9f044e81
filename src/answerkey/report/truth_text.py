"""The result of `truth` on the terminal."""

from rich.text import Text

from answerkey.report.terminal import make_console
from answerkey.report.wording import count
from answerkey.text.normalise import one_line
from answerkey.truth.resolve import Resolved

_SHOWN = 200


def print_truth(resolved: Resolved) -> None:
    """Print the preconditions, then every computed value with its query, then what is wrong."""
    console = make_console()
    for check in resolved.truth.world:
        mark = ("✓", "green") if check.holds else ("✗", "bold red")
        value = "nothing" if check.value is None else check.value
        line = Text.assemble("  ", mark, f" {one_line(check.name, 80)}: {value} (expected {check.expect})")
        console.print(line, soft_wrap=True)
    for key in resolved.keys[:_SHOWN]:
        value = ", ".join(map(str, key.value)) if isinstance(key.value, list) else str(key.value)
        line = Text.assemble(
            (f"  {one_line(key.id, 40)}  ", "bold"),
            one_line(value, 80),
            (f"  {key.source}: {one_line(key.expression, 100)}", "dim"),
        )
        console.print(line, soft_wrap=True)
    if len(resolved.keys) > _SHOWN:
        console.print(Text(f"  and {len(resolved.keys) - _SHOWN:,} more (--json lists all)", style="dim"))
    if not resolved.keys and not resolved.truth.world:
        console.print(
            "Nothing is computed: the set has no computed expectation and the configuration no [[world]]."
        )
        return
    for problem in resolved.problems:
        console.print(Text(problem, style="bold red"), soft_wrap=True)
    questions = len({key.id for key in resolved.keys})
    console.print(
        f"{count(len(resolved.keys), 'value')} for {count(questions, 'question')}, "
        f"{count(len(resolved.problems), 'problem')}."
    )
