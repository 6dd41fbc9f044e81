"""Results for other tools: bodies that their APIs take."""

import json
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

import answerkey as ak
from answerkey.protocols import Ask, BaseTarget

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Traced(BaseTarget):
    name = fingerprint = "traced"

    async def ask(self, ask: Ask) -> ak.Reply:
        if "second" in ask.question:
            return ak.Reply(text="The rent is 900.", response_id="r2")
        return ak.Reply(text="", response_id="r1", trace_id=TRACE)


def make_run(tmp_path: Path) -> ak.Run:
    rows = [
        {"id": name, "question": f"What is the {name} rent?", "expected_keywords": ["900"]}
        for name in ("first", "second")
    ]
    return ak.evaluate(rows, Traced(), store=str(tmp_path / "runs.db"))


def written(run: ak.Run, path: Path) -> Any:
    from answerkey.report.result_files import write_report

    write_report(run, path)
    return json.loads(path.read_text())


def test_otlp_events_belong_to_their_traces(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    document = written(run, tmp_path / "events.otlp.json")
    # As a collector reads it.
    ParseDict(document, ExportLogsServiceRequest())
    [resource] = document["resourceLogs"]
    records = resource["scopeLogs"][0]["logRecords"]
    events = [
        {part["key"]: next(iter(part["value"].values())) for part in record["attributes"]}
        | {"event": record["eventName"], "trace": record.get("traceId")}
        for record in records
    ]
    assert {event["event"] for event in events} == {"gen_ai.evaluation.result"}
    first, second = (
        next(e for e in events if e["answerkey.question"] == name and e["gen_ai.evaluation.name"] == "score")
        for name in ("first", "second")
    )
    assert (first["trace"], first["error.type"]) == (TRACE, "empty")
    assert (second["trace"], second["gen_ai.response.id"]) == (run.results[1].reply.trace_id, "r2")
    assert second["gen_ai.evaluation.score.value"] == 1.0
    assert second["gen_ai.evaluation.score.label"] == "pass"
    quality = next(e for e in events if e["gen_ai.evaluation.name"] == "response_quality")
    assert quality["gen_ai.evaluation.explanation"] == "0 of 1 keywords found; missing 900"


def test_langfuse_scores_and_an_mlflow_run(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    batch = written(run, tmp_path / "scores.langfuse.json")["batch"]
    assert {score["body"]["traceId"] for score in batch} == {one.reply.trace_id for one in run.results}
    assert {score["type"] for score in batch} == {"score-create"}
    assert (
        next(score["body"]["value"] for score in batch if score["body"]["name"] == "score")
        == run.results[0].score
    )
    assert len({score["id"] for score in batch}) == len(batch)
    document = written(run, tmp_path / "run.mlflow.json")
    metrics = {metric["key"]: metric["value"] for metric in document["log_batch"]["metrics"]}
    assert metrics["score"] == run.score
    assert {"key": "target", "value": "traced"} in document["log_batch"]["params"]
    assert document["create"]["run_name"] == run.info.name
