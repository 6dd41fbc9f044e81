# /// script
# requires-python = ">=3.11"
# dependencies = ["mlflow-tracing==3.17.2", "langgraph", "langchain", "langchain-openai",
#     "opentelemetry-exporter-otlp-proto-http"]
# ///
"""MLflow's tracing of LangChain by OTLP, on a LangGraph agent that continues the caller's trace as MLflow's manual says.

Its tracer provider is its own, so that nothing is seen of it in process.
"""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from opentelemetry.propagate import inject
from tracing import ADDRESS, export_spans, run_traced

export_spans()
# With it, MLflow would send metrics too, and by gRPC.
del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
os.environ |= {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Nothing is sent there; the database that it would be otherwise needs more packages.
    "MLFLOW_TRACKING_URI": "http://127.0.0.1:9",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{ADDRESS}/v1/traces",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
}

import mlflow.langchain
from langgraph_agent import agent, asked
from mlflow.tracing import set_tracing_context_from_http_request_headers

mlflow.langchain.autolog()


def answer(question: str) -> str:
    headers: dict[str, str] = {}
    inject(headers)
    with set_tracing_context_from_http_request_headers(headers):
        return str(agent.invoke(asked(question))["messages"][-1].content)


if __name__ == "__main__":
    run_traced("mlflow-tracing", answer, "everything", in_process="nothing")
