# /// script
# requires-python = ">=3.11"
# dependencies = ["mlflow-skinny", "openai==3.49.0", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""MLflow's tracing: its patch of the OpenAI SDK, and its decorator on the tools."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

import os

from tracing import ADDRESS, run_traced

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{ADDRESS}/v1/traces"
os.environ["MLFLOW_USE_DEFAULT_TRACER_PROVIDER"] = "false"

from tracing import export_spans

export_spans()

import mlflow
import mlflow.openai
import openai_sdk

mlflow.openai.autolog()
openai_sdk.query_database = mlflow.trace(openai_sdk.query_database, span_type="TOOL")
openai_sdk.search_document_content = mlflow.trace(openai_sdk.search_document_content, span_type="TOOL")

if __name__ == "__main__":
    run_traced(
        "mlflow-skinny",
        lambda question: openai_sdk.chat(openai_sdk.history(question)).choices[0].message.content,
        "everything",
    )
