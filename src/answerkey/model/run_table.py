"""A run as people look at it in Python: a row for each result, a DataFrame, and a page's worth of HTML in a notebook."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from answerkey.errors import UsageError
from answerkey.model.run_document import result_document
from answerkey.model.scorecard import shown_score

if TYPE_CHECKING:
    from answerkey.model.run import Run
    from answerkey.model.trial import Trial

# Rows that a notebook shows; all of them are in `rows()`.
_MOST_ROWS = 20
_STYLE = "text-align:left;padding:2px 8px"


def result_row(trial: "Trial") -> dict[str, Any]:
    """A result as one flat row, under the names of the run document; components and metrics are columns."""
    document = result_document(trial)
    reply, error = document["reply"], document["reply"]["error"] or {}
    return {
        **{
            name: document[name]
            for name in ("id", "trial", "category", "question", "score", "grade", "passed")
        },
        **{name: part["score"] for name, part in document["components"].items()},
        "answer": reply["text"],
        "tools_used": reply["tools_used"],
        "error": error.get("kind"),
        "error_message": error.get("message"),
        "latency_ms": reply["latency_ms"],
        **{name: value for name, value in document["metrics"].items() if name not in document["components"]},
    }


def data_frame(run: "Run") -> Any:
    """The rows as a pandas DataFrame."""
    try:
        import pandas  # an optional dependency, and heavy
    except ImportError:
        raise UsageError(
            "to_pandas needs pandas: pip install pandas; rows() gives plain dictionaries"
        ) from None
    return pandas.DataFrame(run.rows())


def run_html(run: "Run") -> str:
    """The grade, the components, the gates, and the results that lost most."""
    return "".join(_parts(run))


def _parts(run: "Run") -> Iterator[str]:
    summary = run.summary
    interval = summary.interval
    spread = (
        ""
        if interval is None
        else f", {interval.level:.0%} interval {shown_score(interval.low)}–{shown_score(interval.high)}"
    )
    yield f"<b>{escape(run.info.name)}</b> ({escape(run.info.target)}): "
    yield f"{shown_score(summary.score)} {summary.grade or ''}{spread}; "
    yield f"{summary.passed} of {summary.questions} questions passed"
    yield from _table(
        [(name, shown_score(value)) for name, value in summary.components.items()], ("component", "score")
    )
    if run.gates:
        checked = [(gate.gate, "passed" if gate.passed else f"failed{gate.because}") for gate in run.gates]
        yield from _table(checked, ("gate", ""))
    worst = sorted(run.results, key=lambda trial: -1.0 if trial.score is None else trial.score)[:_MOST_ROWS]
    rows = [
        (
            trial.id,
            shown_score(trial.score),
            trial.question.question,
            trial.reply.text or str(trial.error or ""),
        )
        for trial in worst
    ]
    yield from _table(rows, ("id", "score", "question", "reply"))


def _table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f'<th style="{_STYLE}">{escape(name)}</th>' for name in head) + "</tr>"
    for row in rows:
        cells = (escape(cell if len(cell) <= 200 else f"{cell[:199]}…") for cell in row)
        yield "<tr>" + "".join(f'<td style="{_STYLE}">{cell}</td>' for cell in cells) + "</tr>"
    yield "</table>"
