"""The Markdown report: for pull requests, job summaries and wikis. No text of a chatbot becomes markup."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from answerkey.model.run import GateResult, Run
from answerkey.model.summary import Latency, Summary
from answerkey.report.comparison_sheet import (
    comparison_sheet,
    sheet_markdown,
    table_markdown,
    trend_table,
)
from answerkey.report.story import story_sentences
from answerkey.report.value_wording import (
    cost_line,
    count,
    gate_value,
    judge_line,
    metric_range_text,
    metric_text,
    milliseconds,
    name_words,
    percent,
    points,
    range_text,
    rate_range_text,
    score_percent,
    score_text,
    time_range_text,
)
from answerkey.report.view import ReportView, build_view
from answerkey.text.sanitise import for_markdown, one_line

# A pull request's comment holds 65,536 characters; this many questions stay well below.
_WORST = 25
_PARTS = 40


def write_markdown(run: Run, file: BinaryIO) -> None:
    """Write the report of a run."""
    file.write(markdown_report(run).encode("utf-8"))


def markdown_report(run: Run) -> str:
    """The report of a run as Markdown; the verdict against its baseline first, where it has one."""
    verdict = "" if run.comparison is None else sheet_markdown(comparison_sheet(run.comparison)) + "\n"
    lines = [*_lines(build_view(run, worst=_WORST))]
    if (trend := trend_table(run)) is not None:
        lines[-2:-2] = ["", f"## {trend.title}", *table_markdown(trend)]
    return verdict + "\n".join(lines) + "\n"


def _lines(view: ReportView) -> Iterator[str]:
    summary = view.summary
    interval = (
        f" ({summary.interval.level:.0%} interval {range_text(summary.interval)})" if summary.interval else ""
    )
    yield f"# {_safe(view.title)}: {summary.grade or '–'} · {score_text(summary.score)}{interval}"
    yield ""
    yield _safe(" ".join(story_sentences(view)), 2000)
    if view.warnings:
        yield ""
        yield from (f"> ⚠️ {_safe(warning, 500)}  " for warning in view.warnings)
    if view.gates:
        yield ""
        yield "## Gates"
        yield ""
        yield from gate_lines(view.gates)
    yield from _table(
        "Components",
        ("component", "weight", "score", "95% interval"),
        (
            (
                name_words(part.name),
                percent(part.weight, 0),
                score_text(part.score),
                range_text(part.interval),
            )
            for part in view.components
        ),
    )
    yield from _table(
        "Categories, weakest first",
        ("category", "grade", "score", "95% interval", "passed", "p95"),
        (
            (
                _safe(part.name),
                part.grade or "–",
                score_text(part.score),
                range_text(part.interval),
                f"{part.passed:,}/{part.questions:,}",
                milliseconds(part.latency_ms.p95 if part.latency_ms else None),
            )
            for part in view.categories[:_PARTS]
        ),
    )
    yield from _metrics(summary)
    if line := cost_line(summary.cost):
        yield ""
        yield f"Cost: {line}."
    if line := judge_line(view.info.judge):
        yield ""
        yield _safe(line[:1].upper() + line[1:], 300) + "."
    yield from _latency(view)
    yield from _worst(view)
    yield ""
    passed = f"{percent(summary.pass_rate)} passed{rate_range_text(summary.pass_interval)}"
    asked = f"{count(summary.questions, 'question')} · {passed} · coverage {score_percent(summary.coverage)}"
    yield f"<sub>run {_safe(view.info.id)} · {asked}</sub>"


def gate_lines(gates: Iterable[GateResult]) -> Iterator[str]:
    """Gates as a list, with what each saw."""
    for gate in gates:
        value = _safe(gate_value(gate.value))
        sign, outcome = ("✅", "passed") if gate.passed else ("❌", "failed")
        yield f"- {sign} {_safe(gate.gate)}: {outcome} with {value}{_safe(gate.because)}"


def _safe(text: str, width: int = 200) -> str:
    return for_markdown(one_line(text, width))


def _table(title: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    heads = tuple(heads)
    yield ""
    yield f"## {title}"
    yield ""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' if index == 0 else '---:' for index in range(len(heads)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _metrics(summary: Summary) -> Iterator[str]:
    if summary.metrics:
        yield from _table(
            "Beside the score",
            ("metric", "mean", "95% interval"),
            (
                (
                    _safe(name_words(name)),
                    metric_text(value),
                    metric_range_text(summary.metric_intervals.get(name)).strip(" ()"),
                )
                for name, value in summary.metrics.items()
            ),
        )


def _latency(view: ReportView) -> Iterator[str]:
    latency = view.summary.latency_ms
    if latency is None:
        return
    tools = [(f"tool {_safe(name)}", taken) for name, taken in view.summary.tool_latency_ms.items()]
    rows = []
    for name, taken in [("replies", latency), *tools]:
        mean, *rest = (milliseconds(getattr(taken, figure)) for figure in Latency.FIGURES)
        rows.append((name, mean, time_range_text(taken.mean_interval), *rest))
    yield from _table("Latency", ("", "mean", "95% interval", *Latency.FIGURES[1:]), rows)


def _worst(view: ReportView) -> Iterator[str]:
    if not view.worst:
        return
    yield ""
    more = f" ({len(view.worst)} of {view.imperfect:,})" if view.imperfect > len(view.worst) else ""
    yield f"## {'Replies' if view.worst_are_replies else 'Questions'} that lost points{more}"
    yield ""
    for question in view.worst:
        trials = f" ({question.trials_passed}/{question.trials} trials passed)" if question.trials > 1 else ""
        head = f"**{question.grade or '–'} {score_text(question.score)}** {_safe(question.id, 60)}"
        yield f"- {head}{trials}: {_safe(question.question, 160)}"
        for loss in question.losses[:10]:
            yield f"  - {_safe(loss.words, 300)} {points(loss.points)}".rstrip()
