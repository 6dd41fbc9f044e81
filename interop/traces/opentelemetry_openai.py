# /// script
# requires-python = ">=3.11"
# dependencies = ["opentelemetry-instrumentation-openai-v2==2.3b0", "openai==3.49.0", "wrapt<2", "httpx",
#     "opentelemetry-exporter-otlp-proto-http"]
# ///
"""OpenTelemetry's own instrumentation of the OpenAI SDK: by default it reports only that there were calls."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from tracing import export_spans, run_traced

OpenAIInstrumentor().instrument(tracer_provider=export_spans())

from openai_sdk import chat, history

if __name__ == "__main__":
    run_traced(
        "opentelemetry-instrumentation-openai-v2",
        lambda question: chat(history(question)).choices[0].message.content,
        "nothing",
    )
