"""What a conversation needs besides its turns: cookies, an id that the server issues, a login, a WebSocket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import WSMsgType, web

from answerkey.errors import ConfigError, TargetUnreachableError
from answerkey.model.reply import Reply
from answerkey.protocols import Ask, RetryableError, TargetContext
from answerkey.targets.http_target import HttpSettings, make_http_target

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def converse(handler: Handler, *asks: Ask, scheme: str = "http", **settings: Any) -> list[Reply]:
    """The replies to asks one after the other; PORT stands for the server's."""

    async def run() -> list[Reply]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        given = {"url": f"{scheme}://127.0.0.1:PORT/chat", **settings}
        table = json.loads(json.dumps(given).replace("PORT", str(runner.addresses[0][1])))
        try:
            async with make_http_target("", TargetContext(settings=table, name="bot")) as target:
                return [await target.ask(one) for one in asks]
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def turns(conversation: str, count: int) -> list[Ask]:
    return [Ask(question=f"q{n}", conversation_id=conversation, turn=n) for n in range(count)]


def test_cookies_stay_within_their_conversation() -> None:
    async def chat(request: web.Request) -> web.Response:
        response = web.json_response({"answer": request.headers.get("Cookie", "none")})
        if "Cookie" not in request.headers:
            asked = (await request.json())["conversation_id"]
            response.set_cookie("session", asked, httponly=True)
            response.set_cookie("gone", "x", max_age=0)
        return response

    first, other = turns("a", 3), turns("b", 2)
    replies = converse(chat, first[0], other[0], first[1], other[1], first[2])
    assert [reply.text for reply in replies] == ["none", "none", "session=a", "session=b", "session=a"]


def test_an_id_that_the_server_issues_is_used_from_the_second_turn_on() -> None:
    count = 0

    async def chat(request: web.Request) -> web.Response:
        nonlocal count
        given = (await request.json())["thread"]
        if given is None:
            count += 1
        return web.json_response({"answer": str(given), "meta": {"thread": given or f"t-{count}"}})

    replies = converse(
        chat,
        *turns("a", 3),
        *turns("b", 2),
        body={"q": "{{question}}", "thread": "{{conversation_id}}"},
        reply={"conversation_id": "meta.thread"},
    )
    assert [reply.text for reply in replies] == ["None", "t-1", "t-1", "None", "t-2"]
    assert [reply.conversation_id for reply in replies] == ["t-1", "t-1", "t-1", "t-2", "t-2"]


class Guarded:
    """A chatbot that wants a token, which runs out after so many questions."""

    def __init__(self, lasts: int) -> None:
        self.lasts = lasts
        self.logins: list[dict[str, str]] = []
        self.left = 0

    async def __call__(self, request: web.Request) -> web.Response:
        if request.path == "/login":
            self.logins.append(await request.json())
            if self.logins[-1]["password"] != "hunter22":
                return web.json_response({"detail": "who are you?"}, status=401)
            self.left = self.lasts
            response = web.json_response({"data": {"token": f"token-number-{len(self.logins)}"}})
            response.set_cookie("sid", "s1")
            return response
        wanted = f"Bearer token-number-{len(self.logins)}"
        if not self.left or request.headers.get("Authorization") != wanted:
            return web.json_response({"detail": "log in first"}, status=401)
        self.left -= 1
        return web.json_response({"answer": f"{request.headers['Authorization']} {request.cookies['sid']}"})


LOGIN = {
    "url": "http://127.0.0.1:PORT/login",
    "body": {"user": "bob", "password": "${BOT_PASSWORD}"},
    "token": "data.token",
}


def test_a_login_gives_the_token_and_is_made_again_when_that_runs_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOT_PASSWORD", "hunter22")
    bot = Guarded(lasts=2)
    asks = [Ask(question="q", conversation_id=f"c{n}") for n in range(5)]
    replies = converse(bot, *asks, login=LOGIN)
    assert [reply.failure for reply in replies] == [None] * 5
    # The token is a secret like any other.
    assert {reply.text for reply in replies} == {"Bearer ${LOGIN_TOKEN} s1"}
    assert bot.logins == [{"user": "bob", "password": "hunter22"}] * 3


def test_a_login_that_is_refused_stops_before_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_PASSWORD", "wrong-password")
    with pytest.raises(
        TargetUnreachableError, match=r"\[targets.bot.login\] cannot log in: HTTP 401"
    ) as caught:
        converse(Guarded(lasts=2), *turns("a", 1), login=LOGIN)
    assert "wrong-password" not in str(caught.value)
    monkeypatch.setenv("BOT_PASSWORD", "hunter22")
    with pytest.raises(TargetUnreachableError, match="finds no token"):
        converse(Guarded(lasts=2), *turns("a", 1), login={**LOGIN, "token": "token"})


def test_a_login_that_fails_in_the_middle_is_not_the_chatbots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT_PASSWORD", "hunter22")
    bot = Guarded(lasts=1)

    async def locked_out(request: web.Request) -> web.Response:
        if bot.logins and request.path == "/login":
            return web.json_response({"detail": "too often"}, status=403)
        return await bot(request)

    with pytest.raises(RetryableError) as caught:
        converse(locked_out, *turns("a", 2), login=LOGIN)
    assert caught.value.failure.kind == "login"
    assert "too often" in caught.value.failure.message


async def talk(request: web.Request) -> web.WebSocketResponse:
    """A chatbot on a WebSocket that counts what was said on its connection, and answers in pieces if it is told."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    count = 0
    async for message in socket:
        if message.type is not WSMsgType.TEXT:
            break
        count += 1
        question = json.loads(message.data)["question"]
        if question == "hang up":
            break
        if question == "long":
            await socket.send_str("x" * 300_000)
        elif question == "lost":
            await socket.send_json({"text": "Hel", "tools_used": []})
            assert request.transport is not None
            request.transport.close()
        elif question == "closed":
            await socket.send_json({"text": "Hello", "tools_used": []})
            break
        elif question == "pieces":
            for piece in ("Hel", "lo"):
                await socket.send_json({"text": piece})
            await socket.send_json({"type": "end"})
        else:
            await socket.send_json({"answer": f"{question} is number {count}", "tools_used": []})
    return socket


def test_a_websocket_has_a_connection_for_each_conversation() -> None:
    replies = converse(talk, *turns("a", 2), *turns("b", 1), scheme="ws")
    assert [reply.text for reply in replies] == ["q0 is number 1", "q1 is number 2", "q0 is number 1"]
    assert all(reply.evidence.tools_observed for reply in replies)
    assert all(reply.timings.latency_ms is not None for reply in replies)


def test_a_websocket_whose_reply_comes_in_pieces() -> None:
    (reply,) = converse(talk, Ask(question="pieces", conversation_id="a"), scheme="ws", last="type == 'end'")
    assert reply.text == "Hello"
    with pytest.raises(ConfigError, match="not a JMESPath expression"):
        converse(talk, *turns("a", 1), scheme="ws", last="type ==")


def test_a_websocket_that_is_lost_within_its_reply_does_not_show_all_calls() -> None:
    lost, closed = converse(
        talk,
        Ask(question="lost", conversation_id="a"),
        Ask(question="closed", conversation_id="b"),
        scheme="ws",
        last="type == 'end'",
    )
    assert (lost.text, lost.evidence.completeness, lost.evidence.tools_observed) == ("Hel", "partial", False)
    assert (closed.text, closed.evidence.completeness, closed.evidence.tools_observed) == (
        "Hello",
        "complete",
        True,
    )


@pytest.mark.parametrize(("question", "kind"), [("hang up", "connection"), ("long", "malformed")])
def test_what_goes_wrong_on_a_websocket_is_the_replys_failure(question: str, kind: str) -> None:
    hurt, after = converse(
        talk,
        Ask(question=question, conversation_id="a"),
        Ask(question="next", conversation_id="b"),
        scheme="ws",
        max_reply_mb=0.1,
    )
    assert hurt.failure is not None
    assert hurt.failure.kind == kind
    assert after.text == "next is number 1"


def test_settings_are_read_strictly() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"url": "http://x", "login": {"url": "http://x", "tokn": "a"}}, HttpSettings)
