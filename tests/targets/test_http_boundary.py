"""What HTTP servers send, however odd its encoding or markup, is read in linear time and can be kept; secrets are not."""

import json
import time
from typing import Any

import pytest
from aiohttp import web

from answerkey.config import Secrets
from answerkey.targets.http_target import _without_tags

from .test_http_target import ask_server


def serving(body: bytes, content_type: str, status: int = 200) -> Any:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body, status=status, headers={"Content-Type": content_type})

    return handler


@pytest.mark.parametrize("charset", ["utf-7", "punycode", "idna", "unicode_escape", "no-such"])
@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
def test_a_server_cannot_choose_a_codec_that_no_server_uses(charset: str, kind: str) -> None:
    body = json.dumps({"answer": "+2AA- Zürich"}, ensure_ascii=False).encode()
    (reply,) = ask_server(serving(body, f"{kind}; charset={charset}"))
    assert (reply.text, reply.failure) == ("+2AA- Zürich", None)


def test_bytes_in_no_encoding_are_malformed_and_kept() -> None:
    (reply,) = ask_server(serving(b"caf\xe9", "text/plain; charset=utf-7"))
    assert reply.text == "caf\ufffd"
    assert reply.failure is not None
    assert reply.failure.kind == "malformed"
    assert "'utf-7', which is not read" in reply.failure.message


def test_surrogates_and_nul_are_replaced_wherever_they_stand() -> None:
    body = rb'{"answer": "a\ud800\u0000", "id": "\u0000", "tool_calls": [{"name": "t", "result": {"\u0000": "\udfff"}}]}'
    (reply,) = ask_server(serving(body, "application/json"))
    assert (reply.text, reply.response_id) == ("a\ufffd\ufffd", "\ufffd")
    assert reply.tool_calls[0].result == {"\ufffd": "\ufffd"}


def test_an_error_page_says_what_it_says_without_its_markup() -> None:
    page = "<html><style>p { color: red }</style><SCRIPT>if (a < b) x()</SCRIPT><p>It <b>broke</b></html>"
    (reply,) = ask_server(serving(page.encode(), "text/html", 500))
    assert reply.failure is not None
    assert reply.failure.message == "HTTP 500: It broke"


@pytest.mark.parametrize("unit", ["<", "<a ", "<script>", "</script>", "<script", "<style></script", "a>"])
def test_a_page_of_unclosed_tags_is_read_in_linear_time(unit: str) -> None:
    def seconds(length: int) -> float:
        page = unit * (length // len(unit))
        times = []
        for _ in range(3):
            began = time.process_time()
            _without_tags(page)
            times.append(time.process_time() - began)
        return min(times)

    # Sixteen times the text: a quadratic way would take 256 times as long.
    assert seconds(1_000_000) < 64 * (seconds(62_500) + 0.0005)


SECRETS = {"TENANT_KEY": "pa$$w1", "TOKEN": "tok/en+0123456789", "PIN": "4821"}


async def repeat_everything(request: web.Request) -> web.Response:
    asked = await request.json()
    value = asked["key"]
    return web.json_response(
        {
            "answer": f"You sent {value} and {request.headers['X-Token']} with {request.query['pin']}.",
            "tool_calls": [{"name": "look", "arguments": {"key": value}, "result": [{"used": value}]}],
            "sources": [{"id": "s", "text": f"see {value}", "uri": f"http://x/{request.headers['X-Token']}"}],
            "id": value,
        },
        status=int(asked.get("status", 200)),
    )


@pytest.mark.parametrize("status", [200, 500])
def test_no_secret_that_is_echoed_is_kept(status: int) -> None:
    (reply,) = ask_server(
        repeat_everything,
        secrets=Secrets(SECRETS),
        body={"key": "${TENANT_KEY}", "status": status, "q": "{{question}}"},
        headers={"X-Token": "${TOKEN}"},
        query={"pin": "${PIN}"},
    )
    kept = repr(reply)
    assert not any(value in kept for value in SECRETS.values())
    assert reply.tool_calls[0].result == [{"used": "${TENANT_KEY}"}]
    if status == 200:
        assert reply.text == "You sent ${TENANT_KEY} and ${TOKEN} with ${PIN}."
        assert reply.sources[0].text == "see ${TENANT_KEY}"


def test_a_secret_that_a_stream_sends_in_pieces_is_not_kept() -> None:
    pieces = b"".join(
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": part}}]}).encode() + b"\n\n"
        for part in ["your key is tok/en", "+01234", "56789."]
    )
    (reply,) = ask_server(
        serving(pieces + b"data: [DONE]\n\n", "text/event-stream"),
        secrets=Secrets(SECRETS),
        headers={"X-Token": "${TOKEN}"},
    )
    assert reply.text == "your key is ${TOKEN}."
