"""The telemetry of the npm package `ai`: node/telemetry.mjs in a process of its own, whatever the version."""

from node_programs import npm_version, run_node
from opentelemetry.propagate import inject
from tracing import ADDRESS, export_spans, run_traced

__all__ = ["trace_ai_sdk"]


def trace_ai_sdk(case: str) -> None:
    """Ask the program of the version that is installed, and read its spans."""
    export_spans()
    # Its process is not this one.
    run_traced("ai", _agent, "everything", case=case, in_process="nothing", npm_version=npm_version("ai"))


def _agent(question: str) -> str:
    headers: dict[str, str] = {}
    inject(headers)
    return run_node("telemetry.mjs", question, ADDRESS, headers.get("traceparent", "")).strip()
