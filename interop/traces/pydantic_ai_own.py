# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic-ai-slim[openai]==2.66.0",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Pydantic AI's own instrumentation, which is Logfire's."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

export_spans()

from pydantic_ai import Agent
from pydantic_ai_agent import agent

Agent.instrument_all()


async def answer(question: str) -> Any:
    return (await agent.run(question)).output


if __name__ == "__main__":
    run_traced("pydantic-ai-slim", answer, "everything")
