"""Runs an instrumented agent under a `traceparent`, has its spans sent to answerkey's receiver, and keeps them for the tests."""

import asyncio
import base64
import gzip
import inspect
import json
import os
import sys
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["ADDRESS", "export_logs", "export_spans", "run_traced"]

_FOLDER = Path(__file__).parent.parent / "tests" / "observe" / "interop"
_BODIES: list[dict[str, Any]] = []
# Where the receiver is, once it listens.
_FORWARD: list[str] = []


class _Recorder(BaseHTTPRequestHandler):
    """Keeps what is sent and hands it on, byte for byte."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signal = "logs" if "logs" in self.path else "traces"
        kind, encoding = self.headers["Content-Type"], self.headers.get("Content-Encoding")
        kept = gzip.decompress(body) if encoding == "gzip" else body
        _BODIES.append({"signal": signal, "type": kind, "body": base64.b64encode(kept).decode()})
        if _FORWARD:
            headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
            request = urllib.request.Request(f"{_FORWARD[0]}/v1/{signal}", body, headers)
            urllib.request.urlopen(request).read()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def _address() -> str:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


ADDRESS = _address()
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = ADDRESS


def export_spans() -> Any:
    """A tracer provider, made the global one, that sends each span as it ends."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{ADDRESS}/v1/traces")))
    trace.set_tracer_provider(provider)
    return provider


def export_logs() -> Any:
    """A logger provider that sends each record at once."""
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

    provider = LoggerProvider()
    provider.add_log_record_processor(
        SimpleLogRecordProcessor(OTLPLogExporter(endpoint=f"{ADDRESS}/v1/logs"))
    )
    return provider


async def _under(
    traceparent: str, agent: Callable[[str], Any], question: str, flush: Callable[[], Any]
) -> Any:
    """What an instrumented web server does: a span that continues the caller's trace, and the agent within it."""
    from opentelemetry import trace
    from opentelemetry.propagate import extract

    with trace.get_tracer("interop.server").start_as_current_span(
        "POST /chat", context=extract({"traceparent": traceparent}), kind=trace.SpanKind.SERVER
    ):
        answer = agent(question)
        if inspect.isawaitable(answer):
            answer = await answer
    flush()
    return answer


def run_traced(
    package: str,
    agent: Callable[[str], Any],
    seen: str,
    *,
    case: str = "",
    flush: Callable[[], Any] = lambda: None,
) -> None:
    """Ask the agent, and exit with 1 if its calls are read wrongly from its spans."""
    if os.environ.get("CAPTURE"):
        traceparent = f"00-{'ab' * 16}-{'cd' * 8}-01"
        print(
            asyncio.run(_under(traceparent, agent, "What is the total, and what does the lease say?", flush))
        )
        Path(os.environ["CAPTURE"]).write_text(json.dumps({"version": version(package), "bodies": _BODIES}))
        return
    sys.exit(1)
