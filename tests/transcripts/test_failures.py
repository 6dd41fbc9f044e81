import asyncio
import http.client
import socket
import sqlite3
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from answerkey.model.reply import Failure
from answerkey.protocols import RetryableError
from answerkey.transcripts.fields import failure_message
from answerkey.transcripts.payloads import failure_from_exception, retryable_from_exception
from free_ports import free_port


def refused() -> None:
    socket.create_connection(("127.0.0.1", free_port()), timeout=5)


def unresolvable() -> None:
    socket.getaddrinfo("no-such-host.invalid", 80)


def no_database() -> None:
    sqlite3.connect("/no/such/folder/x.db")


def locked_database() -> None:
    raise sqlite3.OperationalError("database is locked")


def bad_statement() -> None:
    sqlite3.connect(":memory:").execute("select * from nowhere")


def not_a_database() -> None:
    path = Path("/tmp")
    path.read_bytes()


def client_refused() -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            await session.get(f"http://127.0.0.1:{free_port()}")

    asyncio.run(ask())


def timed_out() -> None:
    async def wait() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(1)

    asyncio.run(wait())


def no_memory() -> None:
    bytearray(2**62)


def wrapped() -> None:
    try:
        refused()
    except OSError as error:
        raise RuntimeError("could not answer") from error


def bad_certificate() -> None:
    raise ssl.SSLCertVerificationError("certificate verify failed")


def hung_up() -> None:
    raise http.client.RemoteDisconnected("Remote end closed connection without response")


@pytest.mark.parametrize(
    ("raises", "kind"),
    [
        (refused, "connection"),
        (unresolvable, "connection"),
        (no_database, "connection"),
        (locked_database, "connection"),
        (bad_statement, "exception"),
        (not_a_database, "exception"),
        (client_refused, "connection"),
        (timed_out, "timeout"),
        (no_memory, "memory"),
        (wrapped, "connection"),
        (bad_certificate, "connection"),
        (hung_up, "connection"),
    ],
)
def test_real_exceptions(raises: Callable[[], None], kind: str) -> None:
    with pytest.raises(Exception) as caught:  # any of them
        raises()
    failure = failure_from_exception(caught.value)
    assert failure.kind == kind
    assert failure.message.startswith(type(caught.value).__name__)
    assert "\n" not in failure.message


def named(name: str, message: str = "x", base: type[Exception] = Exception, **attributes: Any) -> Exception:
    return type(name, (base,), attributes)(message)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (named("ToolExecutionError", "Document not found"), "tool"),
        (named("ToolException"), "tool"),
        (named("RateLimitError", status_code=429), "rate_limit"),
        (named("APIStatusError", status_code=500), "http"),
        (named("ReadTimeout"), "timeout"),
        (named("DatabaseError", "Connection refused"), "connection"),
        (named("OperationalError", "server closed the connection unexpectedly"), "connection"),
        (named("Derived", base=type("APIConnectionError", (Exception,), {})), "connection"),
        (ValueError("nope"), "exception"),
        (KeyError("tool"), "exception"),
    ],
)
def test_exceptions_by_the_names_of_their_classes(error: Exception, kind: str) -> None:
    assert failure_from_exception(error).kind == kind


def test_messages_are_one_clean_line_without_secrets() -> None:
    error = ValueError("bad\n\x1b[31mkey\x1b[0m \u202e s3cr3t" + "x" * 2000)
    failure = failure_from_exception(error, lambda text: text.replace("s3cr3t", "${KEY}"))
    assert failure.message.startswith("ValueError: bad [31mkey[0m ${KEY}xxx")
    assert len(failure.message) == 500
    assert failure.message.isprintable()
    assert failure_message("a\t b\r\n\x00c") == "a b c"
    assert failure_from_exception(TimeoutError()) == Failure("timeout", "TimeoutError")


def test_what_may_be_retried() -> None:
    busy = named("HTTPError", code=503, headers={"Retry-After": "2"})
    retryable = retryable_from_exception(busy)
    assert retryable is not None
    assert retryable.retry_after == 2.0
    assert retryable_from_exception(retryable) is retryable
    assert failure_from_exception(retryable) is retryable.failure
    assert retryable_from_exception(named("APIStatusError", status_code=500)) is None
    assert retryable_from_exception(ConnectionResetError()) is None
    assert isinstance(retryable_from_exception(ConnectionRefusedError()), RetryableError)
