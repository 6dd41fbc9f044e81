"""A run's results for other tools: OpenTelemetry evaluation events, Langfuse scores, an MLflow run.

Each file is the body of the tool's own request, so that `curl --data @file` sends it; answerkey sends nothing itself.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from answerkey.model.reply import Json
from answerkey.model.result_rows import encode
from answerkey.model.run import Run
from answerkey.model.scorecard import UNNUMBERED, Trial, round_score

_LONGEST_EXPLANATION = 2_000
# MLflow refuses more characters in one tag.
_LONGEST_TAG = 5_000


def write_otlp(run: Run, file: BinaryIO) -> None:
    """Write OTLP/JSON log records, one `gen_ai.evaluation.result` event for each score: POST them to /v1/logs.

    An event belongs to the trace of its reply, or names its response id.
    """
    resource = _attributes(
        {"service.name": "answerkey", "answerkey.run": run.id, "answerkey.target": run.info.target}
    )
    head = {"resource": {"attributes": resource}, "scopeLogs": []}
    file.write(b'{"resourceLogs":[' + encode(head)[:-2])
    file.write(b'{"scope":{"name":"answerkey"},"logRecords":[')
    nanoseconds = str(int(_time(run).timestamp() * 1000) * 1_000_000)
    _write_list(file, (event for trial in run.results for event in _events(trial, nanoseconds)))
    file.write(b"]}]}]}\n")


def _events(trial: Trial, nanoseconds: str) -> Iterator[Json]:
    for name, score, reason in _scores(trial):
        values: dict[str, Any] = {
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.value": float(score),
            "gen_ai.evaluation.explanation": reason,
            "gen_ai.response.id": trial.reply.response_id,
            "answerkey.question": trial.id,
            "answerkey.trial": _number(trial),
        }
        if name == "score":
            values["gen_ai.evaluation.score.label"] = "pass" if trial.passed else "fail"
        if trial.error is not None:
            values["error.type"] = trial.error.kind
        event: dict[str, Json] = {
            "timeUnixNano": nanoseconds,
            "eventName": "gen_ai.evaluation.result",
            "attributes": _attributes(values),
        }
        if _is_trace_id(trial.reply.trace_id):
            event["traceId"] = trial.reply.trace_id
        yield event


def _attributes(values: dict[str, Any]) -> list[Json]:
    """OTLP's form of attributes; None and empty ones are left out."""
    listed: list[Json] = []
    for name, value in values.items():
        if value is None or value == "":
            continue
        kind: dict[str, Json] = {"stringValue": str(value)}
        if isinstance(value, float):
            kind = {"doubleValue": value}
        elif isinstance(value, int):
            kind = {"intValue": str(value)}
        listed.append({"key": name, "value": kind})
    return listed


def _is_trace_id(text: str | None) -> bool:
    return text is not None and len(text) == 32 and all(one in "0123456789abcdef" for one in text)


def write_langfuse(run: Run, file: BinaryIO) -> None:
    """Write a Langfuse ingestion batch of scores: POST it to /api/public/ingestion.

    A score belongs to the trace of its reply; scores of replies without a trace id are left out, since Langfuse needs one.
    """
    file.write(b'{"batch":[')
    timestamp = _time(run).isoformat()
    _write_list(
        file, (score for trial in run.results for score in _langfuse_scores(trial, run.id, timestamp))
    )
    file.write(b"]}\n")


def _langfuse_scores(trial: Trial, run_id: str, timestamp: str) -> Iterator[Json]:
    if trial.reply.trace_id is None:
        return
    for name, score, reason in _scores(trial):
        # The same for the same score, so that sending a file twice changes nothing.
        identity = f"{run_id}-{trial.id}-{_number(trial)}-{name}"
        yield {
            "id": identity,
            "timestamp": timestamp,
            "type": "score-create",
            "body": {
                "id": identity,
                "traceId": trial.reply.trace_id,
                "name": name,
                "value": score,
                "dataType": "NUMERIC",
                "comment": reason,
                "metadata": {"run": run_id, "question": trial.id, "trial": _number(trial)},
            },
        }


def write_mlflow(run: Run, file: BinaryIO) -> None:
    """Write an MLflow run: `create` is the body of runs/create, `log_batch` that of runs/log-batch without its run_id."""
    info, summary = run.info, run.summary
    milliseconds = int(_time(run).timestamp() * 1000)
    figures: dict[str, float | int | None] = {
        "score": summary.score,
        **summary.components,
        **summary.metrics,
        "pass_rate": summary.pass_rate,
        "error_rate": summary.error_rate,
        "coverage": summary.coverage,
    }
    if summary.latency_ms is not None:
        figures |= {"latency_ms_p50": summary.latency_ms.p50, "latency_ms_p95": summary.latency_ms.p95}
    params = {
        "target": info.target,
        "target_version": info.target_version.words,
        "question_set": info.question_set,
        "question_set_hash": info.question_set_hash,
        "repeat": str(info.repeat),
        "match": info.match,
    }
    tags = {
        "answerkey.run": info.id,
        "answerkey.grade": summary.grade or "",
        "answerkey.tags": ", ".join(info.tags),
    }
    document: Json = {
        "create": {
            "experiment_id": "0",
            "run_name": info.name or info.id,
            "start_time": milliseconds,
            "tags": [_pair("mlflow.runName", info.name or info.id)],
        },
        "log_batch": {
            "metrics": [
                {"key": name, "value": float(value), "timestamp": milliseconds, "step": 0}
                for name, value in figures.items()
                if value is not None
            ],
            "params": [_pair(name, value) for name, value in params.items() if value],
            "tags": [_pair(name, value) for name, value in tags.items() if value],
        },
    }
    file.write(encode(document) + b"\n")


def _pair(key: str, value: str) -> Json:
    return {"key": key, "value": value[:_LONGEST_TAG]}


class _ExportedScore(NamedTuple):
    """One score of a reply."""

    name: str
    value: float
    reason: str = ""


def _scores(trial: Trial) -> Iterator[_ExportedScore]:
    """The score, its components and metrics, those that have a value."""
    if trial.score is not None:
        yield _ExportedScore("score", trial.score)
    for name, score in trial.components.items():
        if score.value is not None:
            yield _ExportedScore(name, round_score(score.value), score.reason[:_LONGEST_EXPLANATION])
    for name, value in trial.metrics.items():
        if value is not None:
            yield _ExportedScore(name, round_score(float(value)))


def _number(trial: Trial) -> int:
    return 1 if trial.number == UNNUMBERED else trial.number


def _time(run: Run) -> datetime:
    return datetime.fromisoformat(run.info.finished_at or run.info.created_at)


def _write_list(file: BinaryIO, items: Iterator[Json]) -> None:
    before = b"\n"
    for item in items:
        file.write(before + encode(item))
        before = b",\n"
