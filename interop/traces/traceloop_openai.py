# /// script
# requires-python = ">=3.11"
# dependencies = ["opentelemetry-instrumentation-openai==0.62.4", "openai==3.49.0", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Traceloop's instrumentation of the OpenAI SDK."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from tracing import export_spans, run_traced

OpenAIInstrumentor().instrument(tracer_provider=export_spans())

from openai_sdk import chat, history

if __name__ == "__main__":
    run_traced(
        "opentelemetry-instrumentation-openai",
        lambda question: chat(history(question)).choices[0].message.content,
        "everything",
    )
