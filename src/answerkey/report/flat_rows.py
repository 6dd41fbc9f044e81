"""A reply as one flat row, for tables that people open: flat columns first, then the nested fields as JSON."""

from answerkey.model.result_rows import encode, row_document
from answerkey.model.run import RunInfo
from answerkey.model.trial import Trial
from answerkey.report.losses import losses_of

__all__ = ["flat_columns", "flat_row"]

_FIRST = ("id", "trial", "category", "question", "score", "grade", "passed")
_LAST = (
    "lost_points",
    "error_kind",
    "error_message",
    "latency_ms",
    "tools_used",
    "reply",
    "components",
    "error",
    "metrics",
)


def flat_columns(info: RunInfo) -> list[str]:
    """The columns' names; a run's components stand between the score and the reasons."""
    return [*_FIRST, *info.weights, *_LAST]


def flat_row(result: Trial, info: RunInfo) -> list[object]:
    """A value for each column."""
    row = row_document(result)
    reply, error = row["reply"], row["error"] or {}
    parts = row["components"]
    return [
        *(row[name] for name in _FIRST),
        *(parts[name]["score"] if name in parts else None for name in info.weights),
        "; ".join(str(loss) for loss in losses_of(result.scorecard)),
        error.get("kind"),
        error.get("message"),
        reply["latency_ms"],
        ", ".join(reply["tools_used"]),
        reply["text"],
        encode(parts).decode(),
        encode(row["error"]).decode(),
        encode(row["metrics"]).decode(),
    ]
