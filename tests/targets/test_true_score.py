"""A server whose true score is known, and which drops, fails, stalls and lies in twenty ways: what is measured is the truth.

ANSWERKEY_ROUNDS=10 asks it ten times.
"""

import asyncio
import gzip
import json
import os
from pathlib import Path

import pytest

import answerkey as ak

from .hostile_server import Connection, answer, serving

RIGHT, WRONG, FAILED = 1.0, 0.6, 0.4
LEDGER = "yes\n" + "\n".join(f"2024-08-{n % 28 + 1:02} | rent {n} | ${n * 1144:,}.00" for n in range(100))
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

# What is done with a question → what its reply is truly worth.
WAYS = {
    "answers": RIGHT,
    "answers and closes": RIGHT,
    "answers and resets": RIGHT,
    "drops what comes on a used connection": RIGHT,
    "resets what comes on a used connection": RIGHT,
    "is busy at first (429)": RIGHT,
    "is away at first (503)": RIGHT,
    "drips": RIGHT,
    "sends chunks": RIGHT,
    "compresses": RIGHT,
    "says 100 first": RIGHT,
    "lies about the kind of its reply": RIGHT,
    "goes on talking": RIGHT,
    "sends a ledger": RIGHT,
    "does not know": WRONG,
    "says null": FAILED,
    "fails (500) and closes": FAILED,
    "breaks off": FAILED,
    "sends garbage": FAILED,
    "stalls": FAILED,
}


class Server:
    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    async def behave(self, connection: Connection) -> None:
        used = 0
        while content := await connection.request():
            question = json.loads(content)["question"]
            self.asked[question] = self.asked.get(question, 0) + 1
            if not await self.reply(connection, question, used):
                return
            used += 1

    async def reply(self, connection: Connection, question: str, used: int) -> bool:
        """Answer one question; whether the connection goes on."""
        number, _, way = question.partition(": ")
        good = json.dumps({"answer": f"yes, invoice {number} is paid"}).encode()
        first = self.asked[question] == 1
        if used and way.endswith("on a used connection"):
            connection.reset() if way.startswith("resets") else connection.hang_up()
            return False
        if first and way.endswith("(429)"):
            await connection.send(answer(b"{}", b"Retry-After: 0", status=b"429 Busy"))
        elif first and way.endswith("(503)"):
            await connection.send(answer(b"{}", b"Retry-After: 0", status=b"503 Away"))
        elif way == "drips":
            for byte in answer(good):
                await connection.send(bytes([byte]))
        elif way == "sends chunks":
            await connection.send(CHUNKED + b"%x\r\n" % len(good) + good + b"\r\n0\r\n\r\n")
        elif way == "compresses":
            await connection.send(answer(gzip.compress(good), b"Content-Encoding: gzip"))
        elif way == "says 100 first":
            await connection.send(b"HTTP/1.1 100 Continue\r\n\r\n" + answer(good))
        elif way == "lies about the kind of its reply":
            await connection.send(answer(good, kind=b"text/html; charset=utf-8"))
        elif way == "goes on talking":
            await connection.send(answer(good) + answer(b'{"answer": "stray"}'))
        elif way == "sends a ledger":
            await connection.send(answer(json.dumps({"answer": LEDGER}).encode()))
        elif way == "does not know":
            await connection.send(answer(b'{"answer": "It is in the second folder."}'))
        elif way == "says null":
            await connection.send(answer(b'{"answer": null}'))
        elif way.startswith("fails"):
            await connection.send(answer(b'{"detail": "boom"}', status=b"500 Internal Server Error"))
            return False
        elif way == "breaks off":
            await connection.send(answer(good)[:-4])
            return False
        elif way == "sends garbage":
            await connection.send(b"\x16\x03\x01 what?\r\n\r\n")
            return False
        elif way == "stalls":
            await connection.send(answer(good)[:-4])
            await asyncio.Event().wait()
        else:
            await connection.send(answer(good))
            if way == "answers and resets":
                connection.reset()
            return way != "answers and closes"
        return True


@pytest.mark.parametrize("seed", range(int(os.environ.get("ANSWERKEY_ROUNDS", "1"))))
def test_what_is_measured_is_the_truth(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"{way} {n}", "question": f"{n}: {way}", "expected_keywords": ["yes"], "category": way}
        for n in range(5)
        for way in WAYS
    ]
    # Every round has them in another order, and so other neighbours on the connections.
    rows = rows[seed * 7 % len(rows) :] + rows[: seed * 7 % len(rows)]

    async def run() -> ak.Run:
        server = Server()
        async with serving(server.behave) as url:
            return await ak.evaluate_async(rows, url, concurrency=10, timeout=5.0)

    measured = asyncio.run(run())
    assert {part.name: part.score for part in measured.summary.categories} == WAYS
    assert measured.summary.coverage == 1.0
    assert measured.summary.errors == {"connection": 5, "http": 5, "malformed": 5, "null": 5, "timeout": 5}
    assert measured.summary.harness == {}
    assert measured.summary.score == pytest.approx(sum(WAYS.values()) / len(WAYS))
