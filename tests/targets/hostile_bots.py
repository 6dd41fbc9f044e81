"""Chatbots that do what no chatbot should: each question names a misdeed, any other question is answered with itself."""

import asyncio
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any


class OddError(BaseException):
    pass


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    @property
    def code(self) -> int:
        raise KeyError("no code")


def _deep(depth: int) -> list[Any]:
    return [] if depth == 0 else [_deep(depth - 1)]


def _recurse(count: int) -> int:
    return _recurse(count + 1) + 1


def _endless() -> Iterator[str]:
    while True:
        yield "x" * 10_000


def _leave_threads() -> str:
    for _ in range(3):
        threading.Thread(target=threading.Event().wait).start()
    return "left"


def _fork() -> str:
    # Both processes go on from here and would answer.
    os.fork()
    return "forked"


def _write_everywhere() -> str:
    # As many as a process may have: the socket has the number that it had in the process which opened it.
    for number in range(3, 4096):
        try:
            os.write(number, b"\xff" * 100)
        except OSError:
            continue
    threading.Event().wait()
    return "written"


def _raise(error: BaseException) -> str:
    raise error


MISDEEDS: dict[str, Any] = {
    "print": lambda: print("printed by the chatbot") or "printed",  # type: ignore[func-returns-value]
    "write to 1": lambda: os.write(1, b"written by the chatbot\n") and "written",
    "exit": lambda: os._exit(0),
    "sys.exit": lambda: sys.exit(0),
    "cancelled": lambda: _raise(asyncio.CancelledError()),
    "base exception": lambda: _raise(OddError("odd")),
    "exception without text": lambda: _raise(MuteError()),
    "keyboard": lambda: _raise(KeyboardInterrupt()),
    "generator exit": lambda: _raise(GeneratorExit()),
    "huge": lambda: "x" * 200_000_000,
    "huge dict": lambda: {"answer": "a", "tool_calls": [{"name": "t", "result": "x" * 3_000_000}]},
    "endless": _endless,
    "recursion": lambda: str(_recurse(0)),
    "fork": _fork,
    "segfault": lambda: ctypes.string_at(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "kill group": lambda: os.killpg(os.getpgrp(), signal.SIGTERM) or threading.Event().wait(),  # type: ignore[func-returns-value]
    "threads": _leave_threads,
    "close everything": lambda: os.closerange(3, 200) or threading.Event().wait(),  # type: ignore[func-returns-value]
    "write everywhere": _write_everywhere,
    "hang": lambda: threading.Event().wait(),
    "nan": lambda: float("nan"),
    "bytes": lambda: b"\xff\xfe",
    "object": object,
    "surrogate": lambda: "a \ud800 b",
    "nul": lambda: {"answer": "a \0 b", "id": "\0", "tool_calls": [{"name": "t\0", "result": {"\0": "\0"}}]},
    "deep": lambda: {"answer": "a", "tool_calls": [{"name": "t", "result": _deep(400)}]},
}


def bot(question: str, conversation_id: str) -> Any:
    return MISDEEDS[question]() if question in MISDEEDS else question


def careless(question: str) -> str:
    """Harms the process that it is in, without ending it."""
    if question == "chdir":
        os.chdir("/")
    if question == "close stdout":
        sys.stdout.close()
        os.close(1)
    return question


async def async_bot(question: str) -> Any:
    if question == "block":
        time.sleep(60)  # noqa: ASYNC251  # the misdeed
    if question == "swallow":
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
    if question == "wait":
        await asyncio.sleep(60)
    if question == "exit":
        os._exit(3)
    if question == "cancelled":
        raise asyncio.CancelledError
    return f"{question} {os.getpid()}"


async def async_endless(question: str) -> AsyncIterator[str]:
    while True:
        yield "x" * 10_000


_heard: dict[str, list[str]] = {}


def remembering(question: str, conversation_id: str) -> str:
    if question == "exit":
        os._exit(0)
    if question == "hang":
        threading.Event().wait()
    heard = _heard.setdefault(conversation_id, [])
    heard.append(question)
    return " ".join(heard)
