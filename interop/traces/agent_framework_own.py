# /// script
# requires-python = ">=3.11"
# dependencies = ["agent-framework-core==1.23.0", "agent-framework-openai==1.17.0",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Spans of Microsoft Agent Framework."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

export_spans()

from agent_framework.observability import enable_instrumentation
from agent_framework_agent import agent

enable_instrumentation(enable_sensitive_data=True)


async def answer(question: str) -> Any:
    return (await agent().run(question)).text


if __name__ == "__main__":
    run_traced("agent-framework-core", answer, "everything")
