# /// script
# requires-python = ">=3.11"
# dependencies = ["strands-agents[openai]==1.62.0",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Strands' own spans."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

export_spans()

from strands_agent import agent


def answer(question: str) -> Any:
    return str(agent()(question)).strip()


if __name__ == "__main__":
    run_traced("strands-agents", answer, "everything")
