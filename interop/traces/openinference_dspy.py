# /// script
# requires-python = ">=3.11"
# dependencies = ["dspy==3.4.1", "openinference-instrumentation-dspy==0.1.48",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""DSPy with OpenInference."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

provider = export_spans()

from openinference.instrumentation.dspy import DSPyInstrumentor

DSPyInstrumentor().instrument(tracer_provider=provider)

from dspy_react import react


async def answer(question: str) -> Any:
    return (await react(question)).answer


if __name__ == "__main__":
    run_traced("openinference-instrumentation-dspy", answer, "everything")
