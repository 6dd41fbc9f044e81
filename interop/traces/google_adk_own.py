# /// script
# requires-python = ">=3.11"
# dependencies = ["google-adk==2.13.0", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Google ADK's own spans."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

import os

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
export_spans()

from google_adk_agent import events


async def answer(question: str) -> Any:
    texts = [part.text async for event in events(question) for part in event.content.parts if part.text]
    return texts[-1]


if __name__ == "__main__":
    run_traced("google-adk", answer, "everything")
