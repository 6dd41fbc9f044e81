# /// script
# requires-python = ">=3.11"
# dependencies = ["openinference-instrumentation-openai-agents==2.6.0", "openai-agents==0.24.0",
#     "opentelemetry-exporter-otlp-proto-http"]
# ///
"""OpenInference's instrumentation of the OpenAI Agents SDK."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from agents import Runner, set_tracing_disabled
from openai_agents import agent
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from tracing import export_spans, run_traced

OpenAIAgentsInstrumentor().instrument(tracer_provider=export_spans())
set_tracing_disabled(False)


async def answer(question: str) -> Any:
    return (await Runner.run(agent, question)).final_output


if __name__ == "__main__":
    run_traced("openinference-instrumentation-openai-agents", answer, "everything")
