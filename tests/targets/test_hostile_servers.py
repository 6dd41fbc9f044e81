"""Forty hostile servers: each reply is read exactly or failed by name, in bounded memory, and the next question is not harmed."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable, Callable

import pytest

from answerkey.engine import LocalEngine
from answerkey.model.options import Options
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.targets.http_target import HttpSettings, HttpTarget

from .hostile_server import Connection, answer, serving

YES = b'{"answer": "yes"}'
GOOD = answer(YES)
ZIPPED = gzip.compress(YES)
HUGE = 64 * 1024
BOMB = zlib.compress(b"x" * (64 * 1024 * 1024), 9)
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def headed(*headers: bytes, body: bytes = YES, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, *headers, b"", b""]) + body


# Bytes that the server sends before it hangs up → the text that is read, or the kind of failure.
SENT: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "!connection"),
    "half a status line": (b"HTTP/1.1 20", "!malformed"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Type: appl", "!malformed"),
    "a head and no body": (headed(b"Content-Length: 17", body=b""), "!connection"),
    "half a body": (headed(b"Content-Length: 17", body=YES[:8]), "!connection"),
    "a body longer than it says": (headed(b"Content-Length: 10"), '={"answer":'),
    "a length of letters": (headed(b"Content-Length: many"), "!malformed"),
    "a negative length": (headed(b"Content-Length: -1"), "!malformed"),
    "two lengths": (headed(b"Content-Length: 17", b"Content-Length: 5"), "!malformed"),
    "the same length twice": (headed(b"Content-Length: 17", b"Content-Length: 17"), "=yes"),
    "an astronomical length": (headed(b"Content-Length: " + b"9" * 40), "!malformed"),
    "no length": (headed(b"Content-Type: application/json"), "=yes"),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\n" + YES, "=yes"),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 17\r\n\r\n" + YES, "=yes"),
    "lines that end in LF": (b"HTTP/1.1 200 OK\nContent-Length: 17\n\n" + YES, "=yes"),
    "folded headers": (headed(b"X-Old: one", b"  two", b"Content-Length: 17"), "=yes"),
    "a header without a colon": (headed(b"garbage", b"Content-Length: 17"), "!malformed"),
    "a huge header": (headed(b"X-Big: " + b"x" * HUGE, b"Content-Length: 17"), "!malformed"),
    "ten thousand headers": (headed(*[b"X: y"] * 20_000, b"Content-Length: 17"), "!malformed"),
    "HTTP/2 in the clear": (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00" * 18, "!malformed"),
    "garbage": (b"\xff\xfe\x00SSH-2.0-OpenSSH_9.9\r\n\r\n", "!malformed"),
    "a TLS alert": (b"\x15\x03\x03\x00\x02\x02\x28", "!malformed"),
    "a status of words": (b"HTTP/1.1 FINE OK\r\nContent-Length: 17\r\n\r\n" + YES, "!malformed"),
    "a status that does not exist": (b"HTTP/1.1 000 X\r\nContent-Length: 17\r\n\r\n" + YES, "!malformed"),
    "100 before the reply": (b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD, "=yes"),
    "early hints": (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + GOOD, "=yes"),
    "endless 1xx": (b"HTTP/1.1 102 Processing\r\n\r\n" * 50, "!malformed"),
    "switching protocols": (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "!malformed"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", "="),
    "chunks": (CHUNKED + b'8\r\n{"answer\r\n9;x=y\r\n": "yes"}\r\n0\r\nTrailer: 1\r\n\r\n', "=yes"),
    "half a chunk": (CHUNKED + b"11\r\n" + YES[:5], "!connection"),
    "no last chunk": (CHUNKED + b"11\r\n" + YES + b"\r\n", "!connection"),
    "a chunk longer than it says": (CHUNKED + b"4\r\n" + YES + b"\r\n0\r\n\r\n", "!malformed"),
    "a chunk size of words": (CHUNKED + b"many\r\n" + YES, "!malformed"),
    "a negative chunk": (CHUNKED + b"-5\r\n" + YES, "!malformed"),
    "an endless chunk line": (CHUNKED + b"1" + b";" + b"x" * 10_000, "!malformed"),
    "gzip": (answer(ZIPPED, b"Content-Encoding: gzip"), "=yes"),
    "deflate": (answer(zlib.compress(YES), b"Content-Encoding: deflate"), "=yes"),
    "deflate without a frame": (answer(zlib.compress(YES)[2:-4], b"Content-Encoding: deflate"), "=yes"),
    "half a gzip": (answer(ZIPPED[:-10], b"Content-Encoding: gzip"), "!connection"),
    "what is no gzip": (answer(YES, b"Content-Encoding: gzip"), "!malformed"),
    "a gzip bomb": (answer(BOMB, b"Content-Encoding: deflate"), "!malformed"),
    "an encoding nobody asked for": (answer(YES, b"Content-Encoding: br"), "!malformed"),
    "a charset that lies": (
        answer(b'{"answer": "\xff"}', kind=b"application/json; charset=utf-8"),
        "!malformed",
    ),
    "a redirect to itself": (answer(b"", b"Location: /chat", status=b"307 Again"), "!http"),
    "an error page that breaks off": (headed(b"Content-Length: 900", status=b"500 Oh"), "!http"),
}


def ask(behave: Callable[[Connection], Awaitable[None]], count: int = 1, **settings: object) -> list[Reply]:
    """The replies to questions that are asked one after the other."""
    given = {"max_reply_mb": 4.0, **settings}
    timeout = float(str(given.pop("timeout", 30.0)))

    async def run() -> list[Reply]:
        async with serving(behave) as url, HttpTarget(HttpSettings(url=url, **given)) as target:  # type: ignore[arg-type]
            engine = LocalEngine(Options(concurrency=1, timeout=timeout, retries=0))
            trials = [Trial(Question(id=f"q{n}", question=f"Q{n}?"), 1, n) for n in range(count)]
            return [trial.reply async for trial in engine.ask_all([target], trials)]

    return asyncio.run(run())


def check(reply: Reply, expected: str) -> None:
    if expected.startswith("!"):
        assert reply.failure is not None
        assert reply.failure.kind == expected[1:], reply.failure
    else:
        assert (reply.text or "") == expected[1:]


@pytest.mark.parametrize("name", SENT)
def test_what_is_sent_before_hanging_up(name: str) -> None:
    content, expected = SENT[name]
    if name == "a body longer than it says":
        # Cut where it says: JSON that breaks off.
        expected = "!malformed"

    async def behave(connection: Connection) -> None:
        if b"Q0?" in await connection.request():
            await connection.send(content)
        else:
            # The next question finds a server that is well again.
            await connection.send(GOOD)

    if name == "a body longer than it says":
        content = content.replace(b"Content-Length", b"Content-Type: application/json\r\nContent-Length")
    hostile, after = ask(behave, 2)
    check(hostile, expected)
    assert after.text == "yes"


async def _reset_after_request(connection: Connection) -> None:
    await connection.request()
    connection.reset()


async def _reset_in_the_body(connection: Connection) -> None:
    await connection.request()
    await connection.send(GOOD[:-5])
    connection.reset()


async def _reset_at_once(connection: Connection) -> None:
    connection.reset()


async def _drip(connection: Connection) -> None:
    await connection.request()
    for byte in GOOD:
        await connection.send(bytes([byte]))
        await asyncio.sleep(0)


async def _stall(connection: Connection) -> None:
    await connection.request()
    await connection.send(GOOD[:-5])
    await asyncio.Event().wait()


async def _stall_before_the_head(connection: Connection) -> None:
    await connection.request()
    await asyncio.Event().wait()


async def _endless(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await connection.send(b"x" * 65536)


async def _endless_head(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await connection.send(b"X-More: yes\r\n" * 1000)


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (_reset_after_request, "!connection"),
        (_reset_in_the_body, "!connection"),
        (_reset_at_once, "!connection"),
        (_drip, "=yes"),
        (_endless, "!malformed"),
        (_endless_head, "!malformed"),
    ],
)
def test_what_is_done_to_a_connection(behave: Callable[[Connection], Awaitable[None]], expected: str) -> None:
    (reply,) = ask(behave)
    check(reply, expected)


@pytest.mark.parametrize("behave", [_stall, _stall_before_the_head])
def test_a_server_that_stalls_is_a_timeout(behave: Callable[[Connection], Awaitable[None]]) -> None:
    (reply,) = ask(behave, timeout=0.2)
    check(reply, "!timeout")


def closing_after(replies: int, *, by_reset: bool) -> Callable[[Connection], Awaitable[None]]:
    """A server that keeps a connection alive and then drops the next request on it without a word."""

    async def behave(connection: Connection) -> None:
        for _ in range(replies):
            if not await connection.request():
                return
            await connection.send(GOOD)
        # It takes the next request and hangs up on it.
        await connection.reader.read(1)
        if by_reset:
            connection.reset()
        else:
            connection.hang_up()

    return behave


@pytest.mark.parametrize("by_reset", [False, True])
def test_what_dies_on_a_kept_alive_connection_is_sent_again_once_and_recorded(by_reset: bool) -> None:
    replies = ask(closing_after(2, by_reset=by_reset), 9)
    assert [reply.text for reply in replies] == ["yes"] * 9
    assert [reply.timings.attempts for reply in replies] == [1, 1, 2, 1, 2, 1, 2, 1, 2]


def test_a_chatbot_that_must_get_nothing_twice_has_a_connection_for_each_question() -> None:
    connections: list[int] = []

    async def behave(connection: Connection) -> None:
        if await connection.request():
            connections.append(connection.number)
            await connection.send(GOOD)
            assert not await connection.request()

    replies = ask(behave, 5, retry_reused=False)
    assert [reply.text for reply in replies] == ["yes"] * 5
    assert [reply.timings.attempts for reply in replies] == [1] * 5
    assert len(set(connections)) == 5


def test_a_crash_on_every_connection_is_the_chatbots_after_one_more_try() -> None:
    async def behave(connection: Connection) -> None:
        while content := await connection.request():
            if b"Q1?" in content:
                return
            await connection.send(GOOD)

    first, crash, after = ask(behave, 3)
    assert (first.text, after.text) == ("yes", "yes")
    check(crash, "!connection")


def test_words_that_nobody_asked_for_never_become_the_next_reply() -> None:
    async def behave(connection: Connection) -> None:
        while content := await connection.request():
            said = json.dumps({"answer": json.loads(content)["question"]}).encode()
            # Every reply is followed by another one.
            await connection.send(answer(said) + answer(b'{"answer": "stray"}'))

    replies = ask(behave, 5)
    assert [reply.text for reply in replies] == [f"Q{n}?" for n in range(5)]
