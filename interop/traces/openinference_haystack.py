# /// script
# requires-python = ">=3.11"
# dependencies = ["haystack-ai==3.4.0", "openinference-instrumentation-haystack==0.1.46",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Haystack with OpenInference. Its release does not instrument this version, so no span comes."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

provider = export_spans()

from openinference.instrumentation.haystack import HaystackInstrumentor

HaystackInstrumentor().instrument(tracer_provider=provider)

from haystack_agent import run


def answer(question: str) -> Any:
    return run(question)["last_message"].text


if __name__ == "__main__":
    run_traced("openinference-instrumentation-haystack", answer, "nothing")
