"""The results of `audit` and `truth` on the terminal: strength of the key, floor of trivial bots, computed values."""

from collections import Counter

from rich.console import Console
from rich.text import Text

from answerkey.golden.wrong_replies import APART, COUNTED, Family
from answerkey.model.question import QuestionSet
from answerkey.model.run import GateResult
from answerkey.report.terminal import make_console
from answerkey.report.wording import count, gate_words, percent, score_text
from answerkey.runs.audit import Audit, KeyTest, QuestionStrength
from answerkey.text.normalise import one_line
from answerkey.truth.resolve import Resolved

_LISTED = 15
_VALUES_SHOWN = 200
# Family of wrong replies → how it is named.
FAMILY_WORDS: dict[Family, str] = {
    "fact": "a wrong figure, date or name",
    "subject": "another question's reply",
    "nothing": "no answer at all",
    "wrong_tool": "the right text without its tool",
    "adversarial": "the right reply denied, or everything listed",
}


def print_audit(audit: Audit, questions: QuestionSet, gates: list[GateResult]) -> None:
    """Print the strength of the key, the floor, the weakest questions and the gates."""
    console = make_console()
    console.print()
    if audit.key is not None:
        _print_strength(audit.key, console)
    _print_floor(audit, len(questions), console)
    if audit.key is not None:
        _print_weak(audit.key, console)
    for gate in gates:
        style = "green" if gate.passed else "bold red"
        console.print(
            Text(f"{'passed' if gate.passed else 'FAILED'}  {gate_words(gate)}", style=style), soft_wrap=True
        )


def _print_strength(key: KeyTest, console: Console) -> None:
    strength = key.strength
    if strength is None:
        line = "Key strength: not measured, because no question has an answer to make wrong replies from."
        console.print(Text(line, style="yellow"), "", sep="\n", soft_wrap=True)
        return
    weak = strength.questions - strength.strong
    interval = f"{percent(strength.low)}–{percent(strength.high)}"
    head = Text.assemble(
        "Key strength ",
        (percent(strength.value), "bold"),
        f" ({interval}): {strength.strong:,} of {count(strength.questions, 'question')} "
        "refused every wrong reply that was tried",
        f"; {weak:,} let one pass." if weak else ".",
    )
    console.print(head, soft_wrap=True)
    if key.always_wrong_score is not None:
        console.print(
            f"A chatbot with the right tools and every fact wrong would score {score_text(key.always_wrong_score)}.",
            soft_wrap=True,
        )
    for beginning, names in (("Refused", COUNTED), ("Not counted in the strength, refused", APART)):
        refused = [
            f"{FAMILY_WORDS[family.name]} {percent(family.refused / family.mutants)}"
            for family in key.families
            if family.mutants and family.name in names
        ]
        if refused:
            console.print(Text(f"{beginning}: {' · '.join(refused)}.", style="dim"), soft_wrap=True)
    if any(family.name == "adversarial" and family.refused < family.mutants for family in key.families):
        note = "  No keyword sees that the right value is denied or hidden in a list; a judge does (--judge MODEL)."
        console.print(Text(note, style="yellow"), soft_wrap=True)
    console.print()


def _print_floor(audit: Audit, total: int, console: Console) -> None:
    floor = audit.trivial
    passed = len(floor.best.passed)
    line = Text.assemble(
        "Floor ",
        (score_text(floor.value), "bold"),
        f": a bot that {floor.best.description} passes {passed:,} of {count(total, 'question')}.",
    )
    console.print(line, soft_wrap=True)
    usual = Counter(question.floor for question in floor.questions).most_common(1)
    free = usual[0][0] if usual else 1.0
    easy = [question for question in floor.questions if question.passed or question.floor > free]
    easy.sort(key=lambda question: -question.floor)
    for question in easy[:_LISTED]:
        mark = (score_text(question.floor), "bold red" if question.passed else "yellow")
        text = Text.assemble("  ", mark, (f"  {one_line(question.id, 60)}  ", "bold"), question.because)
        console.print(text, soft_wrap=True)
    if len(easy) > _LISTED:
        console.print(Text(f"  and {len(easy) - _LISTED:,} more (--json lists all)", style="dim"))
    if not any(question.passed for question in floor.questions):
        console.print(Text("No trivial bot passes any question.", style="dim"))
    console.print()


def _print_weak(key: KeyTest, console: Console) -> None:
    weak = [question for question in key.questions if question.survivors]
    if not weak:
        return
    console.print(Text(f"Questions that let a wrong reply pass ({len(weak):,})", style="bold"))
    for question in sorted(weak, key=lambda question: -len(question.survivors))[:_LISTED]:
        _print_question(question, console)
    if len(weak) > _LISTED:
        console.print(Text(f"  and {len(weak) - _LISTED:,} more (--json lists all)", style="dim"))
    if any(question.fixes for question in weak):
        note = "Nothing is changed by itself: `audit -o proposals.jsonl` writes the proposed questions."
        console.print("", Text(note, style="dim"), sep="\n", soft_wrap=True)


def _print_question(question: QuestionStrength, console: Console) -> None:
    worst = max(question.survivors, key=lambda survivor: survivor.score)
    line = Text.assemble(
        (f"  {one_line(question.id, 60)}  ", "bold"),
        f"“{one_line(worst.reply, 100)}” scores {score_text(worst.score)} ({worst.operator})",
    )
    console.print(line, soft_wrap=True)
    if question.fixes:
        fix = question.fixes[0]
        stops = f"stops {fix.gain} of {len(question.survivors)} wrong replies"
        lost = "keeps every right reply"
        if fix.right_replies_lost:
            lost = f"refuses {count(fix.right_replies_lost, 'right reply', 'right replies')}"
        console.print(Text(f"      → {fix.change} ({stops}, {lost})", style="cyan"), soft_wrap=True)


def print_truth(resolved: Resolved) -> None:
    """Print the preconditions, then every computed value with its query, then what is wrong."""
    console = make_console()
    for check in resolved.truth.world:
        mark = ("✓", "green") if check.holds else ("✗", "bold red")
        value = "nothing" if check.value is None else check.value
        line = Text.assemble("  ", mark, f" {one_line(check.name, 80)}: {value} (expected {check.expect})")
        console.print(line, soft_wrap=True)
    for key in resolved.keys[:_VALUES_SHOWN]:
        value = ", ".join(map(str, key.value)) if isinstance(key.value, list) else str(key.value)
        line = Text.assemble(
            (f"  {one_line(key.id, 40)}  ", "bold"),
            one_line(value, 80),
            (f"  {key.source}: {one_line(key.expression, 100)}", "dim"),
        )
        console.print(line, soft_wrap=True)
    if len(resolved.keys) > _VALUES_SHOWN:
        console.print(
            Text(f"  and {len(resolved.keys) - _VALUES_SHOWN:,} more (--json lists all)", style="dim")
        )
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
