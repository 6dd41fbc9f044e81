# /// script
# requires-python = ">=3.11"
# dependencies = ["smolagents[openai]==1.26.0", "openinference-instrumentation-smolagents==0.1.43",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""smolagents with OpenInference."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

provider = export_spans()

from openinference.instrumentation.smolagents import SmolagentsInstrumentor

SmolagentsInstrumentor().instrument(tracer_provider=provider)

from smolagents_agent import agent


def answer(question: str) -> Any:
    return agent().run(question)


if __name__ == "__main__":
    run_traced("openinference-instrumentation-smolagents", answer, "everything")
