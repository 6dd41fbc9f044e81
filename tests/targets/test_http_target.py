import asyncio
import json
import shlex
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from answerkey.config import Secrets
from answerkey.errors import ConfigError, TargetUnreachableError
from answerkey.model.reply import Reply
from answerkey.protocols import Ask, RetryableError
from answerkey.targets.http_target import HttpSettings, HttpTarget
from answerkey.transcripts.payloads import ReplyMapping
from free_ports import free_port

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def ask_server(handler: Handler, *asks: Ask, secrets: Secrets | None = None, **settings: Any) -> list[Reply]:
    """The replies of a real server on loopback."""

    async def run() -> list[Reply]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        url = settings.pop("url", "http://127.0.0.1:PORT/chat").replace("PORT", str(port))
        try:
            target = HttpTarget(msgspec.convert({"url": url, **settings}, HttpSettings), secrets=secrets)
            async with target:
                return [
                    await target.ask(one) for one in asks or [Ask(question="What?", conversation_id="c-1")]
                ]
        finally:
            await runner.cleanup()

    return asyncio.run(run())


async def echo(request: web.Request) -> web.Response:
    body = await request.text()
    return web.json_response(
        {
            "answer": json.dumps(
                {
                    "method": request.method,
                    "body": json.loads(body) if body else None,
                    "query": dict(request.query),
                    "headers": dict(request.headers),
                },
            ),
            "tools_used": [],
        },
    )


def test_the_contract() -> None:
    (reply,) = ask_server(
        echo,
        Ask(question='a "quoted" question', conversation_id="c-9", traceparent="00-" + "a" * 32 + "-b-01"),
    )
    seen = json.loads(reply.text or "")
    assert seen["method"] == "POST"
    assert seen["body"] == {"question": 'a "quoted" question', "conversation_id": "c-9"}
    assert seen["headers"]["Content-Type"] == "application/json"
    assert seen["headers"]["traceparent"].startswith("00-aaaa")
    assert reply.evidence.tools_observed
    assert reply.timings.latency_ms is not None
    assert reply.timings.first_byte_ms is not None
    assert reply.timings.first_byte_ms <= reply.timings.latency_ms


def test_a_body_template_is_filled_as_a_structure() -> None:
    body = {
        "input": {"text": "Q: {{question}}", "turn": "{{turn}}"},
        "history": "{{messages}}",
        "fixed": [1, None],
    }
    question = '","admin":true,"x":"{{conversation_id}}'
    (reply,) = ask_server(echo, Ask(question=question, conversation_id="c"), body=body)
    sent = json.loads(reply.text or "")["body"]
    assert sent["input"] == {"text": f"Q: {question}", "turn": 0}
    assert sent["history"] == [{"role": "user", "content": question}]
    assert sent["fixed"] == [1, None]


def test_a_body_as_json_text_and_one_that_is_not() -> None:
    (reply,) = ask_server(echo, body='{"q": "{{question}}"}')
    assert json.loads(reply.text or "")["body"] == {"q": "What?"}
    with pytest.raises(ConfigError, match="body is not JSON"):
        ask_server(echo, body="q={{question}}")
    with pytest.raises(
        ConfigError, match=r"uses \{\{qestion\}\}, which is unknown; did you mean \{\{question\}\}"
    ):
        ask_server(echo, body={"q": "{{qestion}}"})


def test_the_messages_of_a_conversation_are_sent_again() -> None:
    turns = [Ask(question=f"q{n}", conversation_id="c", turn=n) for n in range(3)]

    async def chat(request: web.Request) -> web.Response:
        messages = (await request.json())["messages"]
        return web.json_response({"answer": " | ".join(message["content"] for message in messages)})

    replies = ask_server(chat, *turns, body={"messages": "{{messages}}"})
    assert [reply.text for reply in replies] == ["q0", "q0 | q0 | q1", "q0 | q0 | q1 | q0 | q0 | q1 | q2"]


def test_get_with_a_query() -> None:
    (reply,) = ask_server(echo, method="get", query={"q": "{{question}}", "n": 3})
    seen = json.loads(reply.text or "")
    assert (seen["method"], seen["query"], seen["body"]) == ("GET", {"q": "What?", "n": "3"}, None)


def test_where_the_configuration_says() -> None:
    async def nested(request: web.Request) -> web.Response:
        return web.json_response({"data": {"said": "yes", "used": ["a"]}})

    (reply,) = ask_server(nested, reply={"text": "data.said", "tool_calls": "data.used"})
    assert (reply.text, reply.tools_used) == ("yes", ("a",))
    assert isinstance(HttpSettings(url="http://x", reply=ReplyMapping(text="a")).reply, ReplyMapping)


def test_plain_text_and_broken_json() -> None:
    async def plain(request: web.Request) -> web.Response:
        return web.Response(text="just text")

    async def broken(request: web.Request) -> web.Response:
        return web.Response(text='{"answer": "cut o', content_type="application/json")

    async def null(request: web.Request) -> web.Response:
        return web.json_response(None)

    async def binary(request: web.Request) -> web.Response:
        return web.Response(body=b"\xff\xfe\x00\x81", content_type="application/json")

    assert ask_server(plain)[0].text == "just text"
    assert ask_server(null)[0].text is None
    for handler in (broken, binary):
        failure = ask_server(handler)[0].failure
        assert failure is not None
        assert failure.kind == "malformed"


def test_an_error_status_is_a_failure_with_the_bodys_reason() -> None:
    async def failing(request: web.Request) -> web.Response:
        document = {
            "error": {"type": "DatabaseError", "message": "Connection refused"},
            "tools_used": ["query_database"],
        }
        return web.json_response(document, status=500)

    async def page(request: web.Request) -> web.Response:
        return web.Response(
            text="<html><style>b{}</style><h1>Bad\n gateway</h1>", status=502, content_type="text/html"
        )

    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("http://user:pw@elsewhere/chat/")

    (reply,) = ask_server(failing)
    assert reply.failure is not None
    assert (reply.failure.kind, reply.failure.message) == (
        "http",
        "HTTP 500: DatabaseError: Connection refused",
    )
    assert reply.tools_used == ("query_database",)
    (reply,) = ask_server(page)
    assert reply.failure is not None
    assert reply.failure.message == "HTTP 502: Bad gateway"
    (reply,) = ask_server(moved)
    assert reply.failure is not None
    assert (
        reply.failure.message
        == "HTTP 307: redirected to http://elsewhere/chat/; use that address as the target"
    )


@pytest.mark.parametrize(
    ("body", "is_answer"),
    [
        ("<!DOCTYPE html>\n<html lang=en><head><title>Sign\n in</title></head><body>…</body></html>", False),
        ("\ufeff<!-- proxy --><html><body><h1>Sign in</h1></body></html>", False),
        ("<html><title>Sign &#105;n</title><p>Please log in", False),
        ("The rent is <b>900</b>.", True),
        ("<p>The rent is 900.</p>", True),
        ("<html> is the first element; <head> and <body> follow.", True),
        ("<!DOCTYPE html> is the first line of a page such as <html></html>.", True),
        ("```html\n<!DOCTYPE html><html><head><title>Sign in</title></head></html>\n```", True),
    ],
)
def test_a_web_page_is_not_an_answer_but_text_with_its_type_is(body: str, is_answer: bool) -> None:
    async def chat(request: web.Request) -> web.Response:
        return web.Response(text=body, content_type="text/html")

    (reply,) = ask_server(chat)
    if is_answer:
        assert (reply.text, reply.failure) == (body, None)
    else:
        assert reply.text is None
        assert reply.failure is not None
        assert (reply.failure.kind, reply.failure.message) == (
            "http",
            "HTTP 200: a web page (text/html), titled 'Sign in', not an answer",
        )


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (503, "http")])
def test_429_and_503_are_for_the_engine_to_retry(status: int, kind: str) -> None:
    async def busy(request: web.Request) -> web.Response:
        return web.json_response({"detail": "slow down"}, status=status, headers={"Retry-After": "1.5"})

    with pytest.raises(RetryableError) as caught:
        ask_server(busy)
    assert caught.value.failure.kind == kind
    assert caught.value.failure.message == f"HTTP {status}: slow down"
    assert caught.value.retry_after == 1.5


def test_a_reply_that_is_too_large() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
        except ConnectionResetError:
            return response

    (reply,) = ask_server(endless, max_reply_mb=0.25)
    assert reply.failure is not None
    assert reply.failure.kind == "malformed"
    assert "larger than 0.25 MB" in reply.failure.message


def test_a_server_that_hangs_up() -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    (reply,) = ask_server(hang_up)
    assert reply.failure is not None
    assert reply.failure.kind == "connection"


def test_a_closed_port_stops_before_the_first_question() -> None:
    target = HttpTarget(HttpSettings(url=f"http://bob:hunter22@127.0.0.1:{free_port()}/chat"))

    async def open_it() -> None:
        async with target:
            pass

    with pytest.raises(TargetUnreachableError, match="connection refused") as caught:
        asyncio.run(open_it())
    assert caught.value.exit_code == 3
    assert "hunter22" not in str(caught.value)


def test_a_name_that_does_not_resolve() -> None:
    async def open_it() -> None:
        async with HttpTarget(HttpSettings(url="http://no-such-host.invalid/chat")):
            pass

    with pytest.raises(TargetUnreachableError, match=r"nothing answers at http://no-such-host\.invalid/chat"):
        asyncio.run(open_it())


def test_a_server_that_goes_away_is_for_the_engine_to_retry() -> None:
    async def run() -> None:
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with HttpTarget(HttpSettings(url=f"http://127.0.0.1:{port}/chat")) as target:
            server.close()
            await server.wait_closed()
            await target.ask(Ask(question="q", conversation_id="c"))

    with pytest.raises(RetryableError) as caught:
        asyncio.run(run())
    assert caught.value.failure.kind == "connection"


def test_secrets_reach_the_server_and_nothing_else() -> None:
    secrets = Secrets({"BOT_KEY": "s3cr3t-value-1", "TENANT": "acme"})
    (reply,) = ask_server(
        echo,
        secrets=secrets,
        headers={"Authorization": "Bearer ${BOT_KEY}"},
        body={"tenant": "${TENANT}", "q": "{{question}}"},
        url="http://127.0.0.1:PORT/chat?key=${BOT_KEY}",
    )
    seen = json.loads(reply.text or "")
    assert seen["headers"]["Authorization"] == "Bearer ${BOT_KEY}", (
        "an echoed secret is taken out of the reply"
    )
    assert seen["query"] == {"key": "${BOT_KEY}"}
    assert seen["body"]["tenant"] == "${TENANT}", "what stands in the body is a secret like any other"


def test_what_is_kept_of_a_target_holds_no_secret() -> None:
    url = "https://bob:hunter22@example.com/chat?api_key=abcdef&lang=en&token=${TOKEN}"
    target = HttpTarget(HttpSettings(url=url, headers={"X-Key": "${BOT_KEY}"}))
    assert target.name == "https://example.com/chat?api_key=***&lang=en&token=${TOKEN}"
    same = HttpTarget(HttpSettings(url=url.replace("hunter22", "other"), headers={"X-Key": "${BOT_KEY}"}))
    assert target.fingerprint == same.fingerprint
    assert target.fingerprint != HttpTarget(HttpSettings(url=url)).fingerprint


def test_a_variable_that_is_not_set() -> None:
    with pytest.raises(ConfigError, match="headers needs the environment variable BOT_KEY, which is not set"):
        ask_server(echo, secrets=Secrets({}), headers={"Authorization": "${BOT_KEY}"})


def test_a_stream_with_its_first_byte() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in ("Hel", "lo"):
            event = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": piece}}]}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
            await asyncio.sleep(0.05)
        await response.write(b"data: [DONE]\n\n")
        # A server that does not hang up: the client must not wait for it.
        await asyncio.sleep(30)
        return response

    (reply,) = ask_server(stream)
    assert reply.text == "Hello"
    assert reply.evidence.kind == "stream"
    assert reply.evidence.completeness == "complete"
    assert reply.timings.first_byte_ms is not None
    assert reply.timings.latency_ms is not None
    assert reply.timings.latency_ms - reply.timings.first_byte_ms > 50


def test_a_stream_that_breaks_off_keeps_what_arrived() -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices": [{"delta": {"content": "Half"}}]}\n\n')
        assert request.transport is not None
        request.transport.abort()
        return response

    (reply,) = ask_server(stream)
    assert reply.text == "Half"
    assert reply.failure is not None
    assert reply.failure.kind == "connection"
    assert reply.evidence.completeness == "partial"


def test_the_line_protocol_of_the_ai_sdk_is_known_by_its_header() -> None:
    async def stream(request: web.Request) -> web.Response:
        return web.Response(text='0:"Two "\n0:"hits."\n', headers={"X-Vercel-AI-Data-Stream": "v1"})

    (reply,) = ask_server(stream)
    assert (reply.text, reply.evidence.kind) == ("Two hits.", "stream")


def test_lines_of_json() -> None:
    async def stream(request: web.Request) -> web.Response:
        lines = [{"message": {"content": "a"}, "done": False}, {"message": {"content": "b"}, "done": True}]
        return web.Response(
            text="\n".join(json.dumps(line) for line in lines), content_type="application/x-ndjson"
        )

    assert ask_server(stream)[0].text == "ab"


def test_json_that_only_a_lax_reader_takes_can_be_kept() -> None:
    async def lax(request: web.Request) -> web.Response:
        text = '{"answer": "half \\ud83d pair", "tool_calls": [{"name": "a", "result": ["\\ud83d", NaN, 1e999]}]}'
        return web.Response(text=text, content_type="application/json")

    (reply,) = ask_server(lax)
    assert reply.failure is None
    assert reply.tools_used == ("a",)
    msgspec.json.encode(reply)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that no authority signed, and its key beside it."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=localhost"
    )
    command += " -addext subjectAltName=DNS:localhost"
    try:
        subprocess.run(shlex.split(command), cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip(reason="there is no openssl to make a certificate with")
    return folder / "cert.pem"


def ask_over_tls(
    certificate: Path | None, *, scheme: str = "https", wants_client: bool = False, **settings: Any
) -> Reply:
    """Ask a server that shows the certificate, or speaks plain HTTP."""

    async def run() -> Reply:
        context = None
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate, certificate.with_name("key.pem"))
            if wants_client:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(certificate)
        app = web.Application()
        app.router.add_post("/", echo)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        url = f"{scheme}://localhost:{runner.addresses[0][1]}/"
        try:
            made = msgspec.convert({"url": url, **settings}, HttpSettings)
            async with HttpTarget(made) as target:
                return await target.ask(Ask(question="q", conversation_id="c"))
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def test_certificates(certificate: Path) -> None:
    with pytest.raises(TargetUnreachableError, match=r"certificate is not trusted .*ca_file under"):
        ask_over_tls(certificate)
    assert ask_over_tls(certificate, verify_tls=False).failure is None
    assert ask_over_tls(certificate, ca_file=str(certificate)).failure is None
    assert ask_over_tls(certificate, tls={"ca_file": str(certificate)}).failure is None
    with pytest.raises(ConfigError, match=r"ca_file /no/such\.pem cannot be used"):
        ask_over_tls(certificate, ca_file="/no/such.pem")


def test_a_client_certificate(certificate: Path) -> None:
    key = str(certificate.with_name("key.pem"))
    own = {"ca_file": str(certificate), "cert_file": str(certificate), "key_file": key}
    assert ask_over_tls(certificate, wants_client=True, tls=own).failure is None
    refused = ask_over_tls(certificate, wants_client=True, ca_file=str(certificate)).failure
    assert refused is not None
    assert (refused.kind, "cert_file" in refused.message) == ("configuration", True)
    with pytest.raises(ConfigError, match=r"cert_file .* cannot be used"):
        ask_over_tls(certificate, tls={"cert_file": key})


def test_the_wrong_scheme(certificate: Path) -> None:
    with pytest.raises(TargetUnreachableError, match="does not speak TLS at this port; write http://"):
        ask_over_tls(None)
    wrong = ask_over_tls(certificate, scheme="http").failure
    assert wrong is not None
    assert (wrong.kind, "write https://" in wrong.message) == ("configuration", True)
