"""A reply that has arrived beats the timeout."""

import asyncio
import socket
import time

import pytest

from answerkey.engine import Deadline


def test_what_arrived_while_the_loop_was_busy_counts() -> None:
    def hold(end: socket.socket) -> None:
        # Something holds the loop until long after the time is up; the reply lies in the socket by then.
        time.sleep(0.3)
        end.sendall(b"hello\n")

    async def run() -> bytes:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        with theirs:
            with Deadline(0.1):
                asyncio.get_running_loop().call_soon(hold, theirs)
                said = await reader.readline()
            writer.close()
        return said

    assert asyncio.run(run()) == b"hello\n"


def test_what_never_comes_is_a_timeout() -> None:
    async def run() -> None:
        with Deadline(0.05):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(run())


def test_cancelled_from_outside_it_stays_cancelled() -> None:
    async def wait() -> None:
        with Deadline(30):
            await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())


def test_each_wait_has_its_own_time_and_one_that_is_over_ends_no_other() -> None:
    async def ask(begun: float, comes: float) -> str:
        await asyncio.sleep(begun)
        try:
            with Deadline(0.2):
                await asyncio.sleep(comes)
        except TimeoutError:
            return "timeout"
        return "reply"

    async def run() -> list[str]:
        return await asyncio.gather(ask(0.0, 30), ask(0.0, 0.01), ask(0.1, 0.15), ask(0.1, 30))

    assert asyncio.run(run()) == ["timeout", "reply", "reply", "timeout"]
