# /// script
# requires-python = ">=3.11"
# dependencies = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""The telemetry of the npm package `ai` up to version 6: node/telemetry.mjs in a process of its own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from opentelemetry.propagate import inject
from node_programs import npm_version, run_node
from tracing import ADDRESS, export_spans, run_traced

export_spans()


def agent(question: str) -> str:
    headers: dict[str, str] = {}
    inject(headers)
    return run_node("telemetry.mjs", question, ADDRESS, headers.get("traceparent", "")).strip()


if __name__ == "__main__":
    # Its process is not this one.
    run_traced("ai", agent, "everything", case="6", in_process="nothing", npm_version=npm_version("ai"))
