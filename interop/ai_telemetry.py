"""The telemetry of npm packages: a program of `node/` in a process of its own, whose spans go to the receiver."""

from node_programs import npm_version, run_node
from opentelemetry.propagate import inject
from tracing import ADDRESS, export_spans, run_traced

__all__ = ["trace_program"]


def trace_program(name: str, package: str, program: str, *arguments: str, case: str = "") -> None:
    """Ask a program that takes the question, these arguments, the receiver's address and a `traceparent`; read its spans."""

    def agent(question: str) -> str:
        headers: dict[str, str] = {}
        inject(headers)
        return run_node(program, question, *arguments, ADDRESS, headers.get("traceparent", "")).strip()

    export_spans()
    # Its process is not this one.
    run_traced(name, agent, "everything", case=case, in_process="nothing", npm_version=npm_version(package))
