# /// script
# requires-python = ">=3.11"
# dependencies = ["opentelemetry-instrumentation-langchain==0.62.4", "langgraph", "langchain", "langchain-openai",
#     "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Traceloop's instrumentation of LangChain, on a LangGraph agent."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from tracing import export_spans, run_traced

LangchainInstrumentor().instrument(tracer_provider=export_spans())

from langgraph_agent import agent, asked

if __name__ == "__main__":
    run_traced(
        "opentelemetry-instrumentation-langchain",
        lambda question: agent.invoke(asked(question))["messages"][-1].content,
        "everything",
    )
