# /// script
# requires-python = ">=3.11"
# dependencies = ["langsmith[otel]==0.14.17", "langgraph", "langchain", "langchain-openai",
#     "opentelemetry-exporter-otlp-proto-http"]
# ///
"""LangSmith's export to OpenTelemetry, on a LangGraph agent."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

import os

os.environ |= {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_OTEL_ENABLED": "true",
    "LANGSMITH_OTEL_ONLY": "true",
    "LANGSMITH_API_KEY": "none",
}

from tracing import export_spans, run_traced

provider = export_spans()

from langchain_core.tracers.langchain import wait_for_all_tracers
from langgraph_agent import agent, asked

if __name__ == "__main__":
    run_traced(
        "langsmith",
        lambda question: agent.invoke(asked(question))["messages"][-1].content,
        "everything",
        flush=wait_for_all_tracers,
        # Its spans are made in the background, after the reply.
        in_process="a part",
    )
