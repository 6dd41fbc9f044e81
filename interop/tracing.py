"""Runs an instrumented agent under a `traceparent`, has its spans sent to answerkey's receiver, and keeps them for the tests."""

import asyncio
import base64
import gzip
import inspect
import json
import os
import re
import sys
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from recordings import heading, keep
from recording import QUESTION, Seen, problem_with

from answerkey.model.options import Options
from answerkey.model.reply import Reply
from answerkey.observe.observers import ObservedTarget, Observers
from answerkey.protocols import Ask, BaseTarget
from answerkey.targets.python_target import PythonTarget

__all__ = ["ADDRESS", "export_logs", "export_spans", "run_traced"]

_FOLDER = Path(__file__).parent.parent / "tests" / "observe" / "interop"
_BODIES: list[dict[str, Any]] = []
# Where the receiver is, once it listens.
_FORWARD: list[str] = []


# Where the agents run: an exporter that blocks must not block the receiver, and clients keep to one loop.
_LOOP = asyncio.new_event_loop()
threading.Thread(target=_LOOP.run_forever, daemon=True).start()


class _Recorder(BaseHTTPRequestHandler):
    """Keeps what is sent and hands it on, byte for byte."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self._body()
        signal = "logs" if "logs" in self.path else "traces"
        kind, encoding = self.headers["Content-Type"], self.headers.get("Content-Encoding")
        kept = gzip.decompress(body) if encoding == "gzip" else body
        # The machine's name is private; the length stays, which protobuf counts on.
        kept = re.sub(
            rb'(?<=File ")[^"]+|(?<=file://)[^\s:)]+|(?<=\()/[^\s:)]+',
            lambda found: b"p" * len(found[0]),
            kept,
        )
        trace = "received" if _FORWARD else "in process"
        _BODIES.append(
            {"signal": signal, "type": kind, "body": base64.b64encode(kept).decode(), "trace": trace}
        )
        if _FORWARD:
            headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
            request = urllib.request.Request(f"{_FORWARD[0]}/v1/{signal}", body, headers)
            urllib.request.urlopen(request).read()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        # Node sends in chunks, each with its length before and a line's end behind it.
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

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


class _Agent(BaseTarget):
    """An instrumented agent as a target, under the trace of the question."""

    name = fingerprint = "agent"

    def __init__(self, agent: Callable[[str], Any], flush: Callable[[], Any]) -> None:
        self._agent, self._flush = agent, flush

    async def ask(self, ask: Ask) -> Reply:
        asked = _under(str(ask.traceparent), self._agent, ask.question, self._flush)
        return Reply(text=str(await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, _LOOP))))


async def _received(agent: Callable[[str], Any], flush: Callable[[], Any], traceparent: str) -> Reply:
    """The reply with what answerkey's receiver was sent."""
    target = ObservedTarget(_Agent(agent, flush), Observers(Options(traces=0, trace_patience=3)))
    async with target:
        _FORWARD.append(target.addresses["traces"])
        ask = Ask(question=QUESTION, conversation_id="c1", traceparent=traceparent)
        reply = await target.observe(ask, await target.ask(ask))
        _FORWARD.clear()
    return reply


async def _in_process(agent: Callable[[str], Any]) -> Reply:
    """The reply with what is seen in the process of a Python chatbot."""

    async def answer(question: str) -> str:
        said = agent(question)
        return str(await said if inspect.isawaitable(said) else said)

    async with PythonTarget(answer) as target:
        return await target.ask(
            Ask(question=QUESTION, conversation_id="c1", traceparent=f"00-{'ef' * 16}-{'cd' * 8}-01")
        )


async def _both(
    agent: Callable[[str], Any], flush: Callable[[], Any], traceparent: str
) -> tuple[Reply, Reply]:
    received = await _received(agent, flush, traceparent)
    return received, await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_in_process(agent), _LOOP))


def run_traced(
    package: str,
    agent: Callable[[str], Any],
    seen: Seen,
    *,
    case: str = "",
    flush: Callable[[], Any] = lambda: None,
    in_process: Seen | Literal["a part"] | None = None,
    npm_version: str = "",
) -> None:
    """Ask the agent, and exit with 1 if its calls are read wrongly from its spans, sent or seen in process."""
    traceparent = f"00-{'ab' * 16}-{'cd' * 8}-01"
    sent, local = asyncio.run(_both(agent, flush, traceparent))
    problems = [problem_with(sent, seen)]
    if in_process == "a part":
        problems.append("is said to be complete" if local.evidence.tools_observed else None)
    else:
        problems.append(problem_with(local, in_process or seen))
    release = npm_version or version(package)
    name = f"{package} {release} {case}".strip()
    print(
        f"{name}: spans received: {problems[0] or f'{seen} seen'}; in process: {problems[1] or f'{in_process or seen} seen'}"
    )
    document = {"package": package, "version": release, "case": case, "seen": seen}
    kept = [body for body in _BODIES if body["trace"] == "received"]
    requests = [{name: body[name] for name in ("signal", "type", "body")} for body in kept]
    line = json.dumps({**document, "traceparent": traceparent, "requests": requests}, separators=(",", ":"))
    keep(_FOLDER / f"{package}{f'-{case}' if case else ''}.json", f"{line}\n".encode(), heading)
    sys.exit(any(problem is not None for problem in problems))
