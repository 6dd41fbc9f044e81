# /// script
# requires-python = ">=3.11"
# dependencies = ["openinference-instrumentation-openai==0.1.66", "openai==3.49.0", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""OpenInference's instrumentation of the OpenAI SDK: no spans of tools, their results are in the next request."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from openinference.instrumentation.openai import OpenAIInstrumentor
from tracing import export_spans, run_traced

OpenAIInstrumentor().instrument(tracer_provider=export_spans())

from openai_sdk import chat, history

if __name__ == "__main__":
    run_traced(
        "openinference-instrumentation-openai",
        lambda question: chat(history(question)).choices[0].message.content,
        "everything",
    )
