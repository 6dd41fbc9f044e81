"""The findings of `lint` and the result of `audit` on the terminal."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from answerkey.evaluation.audit import Audit
from answerkey.golden.findings import SEVERITIES, Finding
from answerkey.model.question import QuestionSet
from answerkey.report.terminal import emit, make_console
from answerkey.report.value_wording import count, score_text
from answerkey.text.sanitise import one_line

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_LISTED = 20


def print_findings(findings: Sequence[Finding], questions: QuestionSet) -> None:
    """Print findings as `file:line: severity code id: message`, each with its remedy below."""
    console = make_console()
    name = one_line(_shown(questions), 200)
    for finding in findings:
        where = f"{name}:{finding.line}" if finding.line is not None else name
        line = Text.assemble(
            f"{where}: ",
            (finding.severity, _STYLES[finding.severity]),
            (f" {finding.code} ", "bold"),
            ("" if finding.id is None else f"[{one_line(finding.id, 60)}] ", "dim"),
            finding.message,
        )
        remedy = Text(f"    → {finding.remedy}", style="dim")
        if console.is_terminal:
            console.print(line, soft_wrap=True)
            console.print(remedy, soft_wrap=True)
        else:
            # A set of ten thousand has as many lines, and a pipe has no colours to work out.
            console.file.write(f"{line.plain}\n{remedy.plain}\n")
    counts = Counter(finding.severity for finding in findings)
    words = [
        count(counts[severity], severity, severity if severity == "info" else None)
        for severity in SEVERITIES
        if counts[severity]
    ]
    console.print(f"{', '.join(words) or 'nothing to complain of'} in {count(len(questions), 'question')}")


def _shown(questions: QuestionSet) -> str:
    """The set's file as the user would type it."""
    if questions.path is None:
        return questions.name
    try:
        return str(Path(questions.path).resolve().relative_to(Path.cwd()))
    except ValueError:
        return questions.path


def print_audit(audit: Audit, questions: QuestionSet) -> None:
    """Print the floor, the bots, and the questions that give most away."""
    console = make_console()
    passed = [question for question in audit.questions if question.passed]
    best = max(audit.bots, key=lambda bot: bot.score)
    passes = f" ({best.name}) and passes {len(best.passed):,} of {count(len(questions), 'question')}."
    head = Text.assemble("  A bot that knows nothing scores ", (score_text(audit.floor), "bold"), passes)
    console.print("", head, "", sep="\n", soft_wrap=True)
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(width=0)
    for _ in range(3):
        table.add_column(no_wrap=True)
    for bot in audit.bots:
        table.add_row("", bot.name, score_text(bot.score), f"passes {len(bot.passed):,}")
    emit(console, table)
    free = _free(audit)
    worst = sorted(audit.questions, key=lambda question: -question.floor)
    worst = [question for question in worst if question.passed or question.floor > free][:_LISTED]
    if worst:
        console.print()
        title = f"Questions that give themselves away ({len(passed):,} can be passed knowing nothing)"
        console.print(Text(title, style="bold"))
        for question in worst:
            floor = (score_text(question.floor), "bold red" if question.passed else "yellow")
            line = Text.assemble("  ", floor, (f"  {one_line(question.id, 60)}  ", "bold"), question.because)
            console.print(line, soft_wrap=True)
    console.print()
    console.print(Text(_verdict(audit, len(passed), len(questions)), style="dim"), soft_wrap=True)


def _free(audit: Audit) -> float:
    """What most questions give any bot; only more than this is worth a line."""
    floors = Counter(question.floor for question in audit.questions)
    return floors.most_common(1)[0][0] if floors else 1.0


def _verdict(audit: Audit, passed: int, total: int) -> str:
    if passed == 0:
        return "No question can be passed without knowing something."
    share = passed / total
    if share > 0.2:
        return "This set measures little: make keywords specific, and expect tools or keywords of every question."
    return "Most questions need knowledge; repair those above: `answerkey lint` names remedies."
