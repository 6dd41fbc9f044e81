"""The OTLP receiver: real requests over HTTP, waiting for a whole trace, and everything that can be wrong with a request."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from answerkey.errors import UsageError
from answerkey.model.options import Options
from answerkey.model.reply import Reply
from answerkey.observe.observers import MOST_BYTES, ObservedTarget, Observers, Receiver, TraceBook
from answerkey.protocols import Ask
from answerkey.targets.python_target import PythonTarget

from .spans import ASKED, TRACE, TRACEPARENT, as_json, as_protobuf, field, model_span, span, tool_span

PROTOBUF = {"Content-Type": "application/x-protobuf"}
WHOLE = (span("01" * 8), tool_span("02" * 8, "01" * 8, "lookup"))
OTHER = "99" * 16
ASK = Ask(question="What is it?", conversation_id="c1", traceparent=TRACEPARENT)
Send = Callable[..., Awaitable[int]]


def options(**more: Any) -> Options:
    return Options(traces=0, trace_quiet=0.05, trace_patience=more.pop("patience", 5.0), **more)


async def asked(bot: Callable[[Send], Awaitable[Any]], **more: Any) -> tuple[Reply, list[str]]:
    """The reply of a chatbot that sends spans by itself while it is asked."""
    target: ObservedTarget

    async def answer(question: str) -> str:
        async with aiohttp.ClientSession() as session:

            async def send(body: bytes, headers: dict[str, str] = PROTOBUF, path: str = "/v1/traces") -> int:
                async with session.post(
                    target.addresses["traces"] + path, data=body, headers=headers
                ) as response:
                    return response.status

            await bot(send)
        return "it"

    target = ObservedTarget(PythonTarget(answer), Observers(options(**more)))
    async with target:
        reply = await target.observe(ASK, await target.ask(ASK))
    return reply, target.warnings()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (as_protobuf(*WHOLE), PROTOBUF),
        (gzip.compress(as_protobuf(*WHOLE)), PROTOBUF | {"Content-Encoding": "gzip"}),
        (as_json(*WHOLE), {"Content-Type": "application/json"}),
        (gzip.compress(as_json(*WHOLE)), {"Content-Type": "application/json", "Content-Encoding": "gzip"}),
    ],
)
async def test_every_encoding_over_http(body: bytes, headers: dict[str, str]) -> None:
    async def bot(send: Send) -> None:
        assert await send(body, headers) == 200
        assert await send(b"", path="/v1/metrics") == 200

    reply, warnings = await asked(bot)
    assert [(call.name, call.start_ms) for call in reply.tool_calls] == [("lookup", 0.0)]
    assert (reply.evidence.kind, reply.evidence.completeness, reply.evidence.tools_observed) == (
        "otel",
        "complete",
        True,
    )
    assert warnings == []


async def test_a_log_record_belongs_to_the_span_that_it_names() -> None:
    choice = {
        "index": 0,
        "finish_reason": "tool_calls",
        "message": {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"n": 1}'}}
            ],
        },
    }
    record = {"traceId": TRACE, "spanId": "01" * 8, "eventName": "gen_ai.choice", "body": _any(choice)}
    loose = {"body": {"stringValue": "hello"}}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, loose]}]}]}
    model = span(
        "01" * 8,
        attributes={"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["tool_calls"]},
    )

    async def bot(send: Send) -> None:
        assert await send(json.dumps(logs).encode(), {"Content-Type": "application/json"}, "/v1/logs") == 200
        assert await send(as_protobuf(model)) == 200

    reply, _ = await asked(bot)
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [("c1", "lookup", {"n": 1})]
    assert reply.evidence.tools_observed


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": _any(one)} for key, one in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(one) for one in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


async def test_spans_that_come_after_the_reply_are_waited_for() -> None:
    later: list[asyncio.Task[None]] = []

    async def answer(question: str) -> str:
        async def after() -> None:
            async with (
                aiohttp.ClientSession() as session,
                session.post(
                    f"{target.addresses['traces']}/v1/traces", data=as_protobuf(WHOLE[0]), headers=PROTOBUF
                ) as response,
            ):
                assert response.status == 200

        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{target.addresses['traces']}/v1/traces", data=as_protobuf(WHOLE[1]), headers=PROTOBUF
            ) as response,
        ):
            assert response.status == 200
        later.append(asyncio.get_running_loop().create_task(after()))
        return "it"

    target = ObservedTarget(PythonTarget(answer), Observers(options(patience=60.0)))
    async with target:
        reply = await target.observe(ASK, await target.ask(ASK))
    assert reply.evidence.completeness == "complete"
    assert [call.name for call in reply.tool_calls] == ["lookup"]


@pytest.mark.parametrize(
    ("spans", "missing"),
    [
        ((WHOLE[1],), ("the span that continues the trace did not arrive", "1 parent span did not arrive")),
        ((span("01" * 8), tool_span("02" * 8, "07" * 8, "lookup")), ("1 parent span did not arrive",)),
    ],
)
async def test_half_a_trace_is_partial_and_rules_nothing_out(spans: Any, missing: tuple[str, ...]) -> None:
    reply, _ = await asked(lambda send: send(as_protobuf(*spans)), patience=0.1)
    assert [call.name for call in reply.tool_calls] == ["lookup"]
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)
    assert reply.evidence.unread == missing


async def test_spans_of_unknown_traces_are_counted_and_not_used() -> None:
    reply, warnings = await asked(
        lambda send: send(as_protobuf(tool_span("02" * 8, ASKED, "lookup") | {"traceId": OTHER})),
        patience=0.1,
    )
    assert (reply.tool_calls, reply.evidence.tools_observed) == ((), False)
    assert [line.split(":")[1][:10] for line in warnings] == [" 1 questio", " 1 span(s)"]


async def test_a_trace_that_links_to_the_callers_is_its_own() -> None:
    other = tool_span("02" * 8, "", "lookup") | {"traceId": OTHER, "links": [{"traceId": TRACE}]}
    for body, headers in (
        (as_protobuf(other), PROTOBUF),
        (as_json(other), {"Content-Type": "application/json"}),
    ):
        reply, _ = await asked(lambda send, body=body, headers=headers: send(body, headers))  # type: ignore[misc]
        assert [call.name for call in reply.tool_calls] == ["lookup"]
        assert reply.evidence.tools_observed


async def test_a_clock_that_is_hours_off_moves_no_call_before_the_question() -> None:
    year_off = [
        one
        | {
            "startTimeUnixNano": str(4_000_000_000_000_000_000 + n),
            "endTimeUnixNano": str(4_000_000_000_005_000_000 + n),
        }
        for n, one in enumerate(WHOLE)
    ]
    reply, _ = await asked(lambda send: send(as_json(*year_off), {"Content-Type": "application/json"}))
    assert [(call.start_ms, call.duration_ms) for call in reply.tool_calls] == [(0.0, 5.0)]


async def test_a_chatbot_that_sends_nothing_is_waited_for_once() -> None:
    target = ObservedTarget(PythonTarget(lambda question: "it"), Observers(options(patience=0.2)))
    loop = asyncio.get_running_loop()
    async with target:
        begun = loop.time()
        for number in range(8):
            ask = Ask(question="?", conversation_id="c", traceparent=f"00-{number + 1:032x}-{ASKED}-01")
            reply = await target.observe(ask, await target.ask(ask))
            assert reply == Reply(text="it", timings=reply.timings)
        assert loop.time() - begun < 8 * 0.2
    assert target.warnings()[0].startswith("traces: 8 question(s) brought no span")


def receive(body: bytes, kind: str = "application/x-protobuf", encoding: str = "") -> int:
    book = TraceBook(quiet_s=0, longest_s=0)
    book.open(TRACEPARENT)
    answer = Receiver(book).receive("traces", kind, encoding, body)
    assert answer.status == 200 or answer.body
    assert answer.status == 200 or not book.counts["taken"]
    return answer.status


def test_what_is_not_otlp_is_refused_and_said() -> None:
    good = as_protobuf(*WHOLE)
    assert receive(good) == 200
    assert receive(good, "text/plain") == 415
    assert receive(good, encoding="br") == 400
    assert receive(good, encoding="gzip") == 400
    assert receive(gzip.compress(good)[:-9], encoding="gzip") == 400
    assert receive(good[:-1]) == 400
    assert receive(b"\xff" * 30) == 400
    assert receive(b"\x0b") == 400
    assert receive(field(1, field(2, field(2, field(1, b"short"))))) == 400
    for wrong in (
        b"",
        b"[]",
        b'{"resourceSpans": 1}',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}',
        b"[" * 10**5,
    ):
        assert receive(wrong, "application/json") == 400
    assert receive(b"{}", "application/json; charset=utf-8") == 200


def test_every_prefix_of_a_request_is_read_or_refused() -> None:
    good = as_protobuf(*WHOLE, model_span("03" * 8, ASKED, {"role": "assistant", "parts": []}))
    assert {receive(good[:length]) for length in range(len(good))} == {200, 400}


def deep(levels: int) -> bytes:
    """An attribute whose value is a list in a list in a list …."""
    value = field(1, b"x")
    for _ in range(levels):
        value = field(5, field(1, value))
    return field(9, field(1, b"deep") + field(2, value))


def own_span(inside: bytes) -> bytes:
    ids = field(1, bytes.fromhex(TRACE)) + field(2, b"\x05" * 8) + field(4, bytes.fromhex(ASKED))
    return field(1, field(2, field(2, ids + inside)))


async def test_a_span_that_is_nested_too_deeply_makes_the_trace_partial() -> None:
    reply, _ = await asked(lambda send: send(as_protobuf(*WHOLE) + own_span(deep(42))))
    assert reply.evidence.unread == ("1 spans could not be read",)
    assert not reply.evidence.tools_observed


@pytest.mark.parametrize("inside", [field(9, b"\xff\xff"), field(5, b"\xff"), deep(200)])
async def test_a_request_that_cannot_be_read_makes_every_open_trace_partial(inside: bytes) -> None:
    async def both(send: Any) -> None:
        await send(as_protobuf(*WHOLE))
        assert await send(as_protobuf(*WHOLE) + own_span(inside)) == 400

    reply, warnings = await asked(both)
    assert reply.evidence.unread == ("an export request could not be read",)
    assert not reply.evidence.tools_observed
    assert "traces: 1 export request(s) could not be read" in warnings


def test_large_bodies_are_taken_and_bombs_are_not() -> None:
    large = as_protobuf(span("01" * 8, attributes={"input.value": "x" * 10 * 1024 * 1024}))
    assert receive(large) == 200
    assert receive(gzip.compress(large, 1), encoding="gzip") == 200
    bomb = zlib.compress(bytes(MOST_BYTES * 20), 9)
    assert len(bomb) < 1024 * 1024
    assert receive(bomb, encoding="deflate") == 413
    assert receive(bytes(MOST_BYTES + 1)) == 413


def test_beyond_its_room_it_refuses_and_loses_nothing_that_it_took() -> None:
    book = TraceBook(quiet_s=0, longest_s=0, most_bytes=20_000)
    book.open(TRACEPARENT)
    receiver = Receiver(book)
    taken = 0
    for number in range(100):
        answer = receiver.receive(
            "traces", PROTOBUF["Content-Type"], "", as_protobuf(tool_span(f"{number + 1:016x}", ASKED, "t"))
        )
        assert answer.status in (200, 503)
        taken += answer.status == 200
        assert answer.status == 200 or answer.headers["Retry-After"]
    assert 10 < taken < 100
    seen = book.close(TRACEPARENT)
    assert seen is not None
    assert len(seen.tool_calls) == taken == book.counts["taken"]
    # Once its question is graded, there is room again.
    book.open(f"00-{'11' * 16}-{ASKED}-01")
    assert (
        receiver.receive(
            "traces",
            "application/x-protobuf",
            "",
            as_protobuf(tool_span("01" * 8, ASKED, "t") | {"traceId": "11" * 16}),
        ).status
        == 200
    )


def test_bodies_that_are_being_read_are_bounded_too() -> None:
    receiver = Receiver(TraceBook(quiet_s=0, longest_s=0))
    while receiver.begin(MOST_BYTES):
        pass
    receiver.end(MOST_BYTES)
    assert receiver.begin(1)


def test_a_run_with_traces(command: Any, write_rows: Any, tmp_path: Path) -> None:
    questions = write_rows(
        "golden.jsonl", {"question": "What is it?", "expected_tools": ["lookup"], "expected_keywords": ["it"]}
    )
    bot = tmp_path / "bot.py"
    bot.write_text(
        "import json, os, urllib.request\n"
        "def answer(question, traceparent):\n"
        "    _, trace, parent, _ = traceparent.split('-')\n"
        "    key = lambda k, v: {'key': k, 'value': {'stringValue': v}}\n"
        "    span = {'traceId': trace, 'spanId': '0a' * 8, 'parentSpanId': parent, 'name': 'lookup', 'attributes': [\n"
        "        key('openinference.span.kind', 'TOOL'), key('tool.name', 'lookup'), key('input.value', '{\"n\": 1}')]}\n"
        "    body = json.dumps({'resourceSpans': [{'scopeSpans': [{'spans': [span]}]}]}).encode()\n"
        "    url = os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/v1/traces'\n"
        "    urllib.request.urlopen(urllib.request.Request(url, body, {'Content-Type': 'application/json'})).read()\n"
        "    return 'it'\n"
    )
    outcome = command("run", questions, "--target", f"{bot}:answer", "--traces", "0", "--json")
    assert outcome.code == 0, outcome.err
    reply = outcome.document["results"][0]["reply"]
    assert reply["tool_calls"][0]["name"] == "lookup"
    assert reply["tool_calls"][0]["arguments"] == {"n": 1}
    assert reply["evidence"]["kind"] == "otel"
    assert outcome.document["results"][0]["components"]["tool_usage"]["score"] == 1.0
    refused = command("run", "--traces", questions)
    assert refused.code == 2
    assert "before --traces" in refused.err


async def test_a_port_that_is_taken_is_said() -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    with pytest.raises(UsageError, match=f"--traces cannot listen on port {port}"):
        async with ObservedTarget(PythonTarget(lambda question: ""), Observers(Options(traces=port))):
            pass
    await runner.cleanup()
