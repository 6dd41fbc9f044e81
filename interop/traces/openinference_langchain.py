# /// script
# requires-python = ">=3.11"
# dependencies = ["openinference-instrumentation-langchain==0.1.80", "langgraph", "langchain", "langchain-openai",
#     "opentelemetry-exporter-otlp-proto-http"]
# ///
"""OpenInference's instrumentation of LangChain, on a LangGraph agent."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from openinference.instrumentation.langchain import LangChainInstrumentor
from tracing import export_spans, run_traced

LangChainInstrumentor().instrument(tracer_provider=export_spans())

from langgraph_agent import agent, asked

if __name__ == "__main__":
    run_traced(
        "openinference-instrumentation-langchain",
        lambda question: agent.invoke(asked(question))["messages"][-1].content,
        "everything",
    )
