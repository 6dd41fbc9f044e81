# /// script
# requires-python = ">=3.11"
# dependencies = ["semantic-kernel==1.45.0", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Semantic Kernel's own spans."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

import os

os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"] = "true"
export_spans()

from semantic_kernel_agent import agent


async def answer(question: str) -> Any:
    return str((await agent().get_response(question)).message)


if __name__ == "__main__":
    run_traced("semantic-kernel", answer, "no errors")
