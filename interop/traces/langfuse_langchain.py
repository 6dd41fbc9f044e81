# /// script
# requires-python = ">=3.11"
# dependencies = ["langfuse==5.0.4", "langgraph", "langchain", "langchain-openai", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Langfuse's callback handler, on a LangGraph agent."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from tracing import ADDRESS, export_spans, run_traced

client = Langfuse(
    public_key="pk-lf-none", secret_key="sk-lf-none", host=ADDRESS, tracer_provider=export_spans()
)

from langgraph_agent import agent, asked

if __name__ == "__main__":
    run_traced(
        "langfuse",
        lambda question: (
            agent.invoke(asked(question), config={"callbacks": [CallbackHandler()]})["messages"][-1].content
        ),
        "everything",
        flush=client.flush,
    )
