import pytest

from answerkey.transcripts.fields import classify_error, kind_of_status


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("DatabaseError: Connection refused", "connection"),
        ("ToolExecutionError: Document not found", "tool"),
        ("ToolExecutionError: connection refused", "tool"),
        ("ToolException: bad arguments", "tool"),
        ("Tool 'query_database' failed: no such table", "tool"),
        ("Error executing tool search_documents", "tool"),
        ("TimeoutError", "timeout"),
        ("asyncio.exceptions.TimeoutError: ", "timeout"),
        ("Request timed out after 30 s", "timeout"),
        ("504 Deadline Exceeded: context deadline exceeded", "timeout"),
        ("httpx.ReadTimeout: ", "timeout"),
        ("MemoryError", "memory"),
        ("CUDA out of memory. Tried to allocate 2 GiB", "memory"),
        ("429 Too Many Requests", "rate_limit"),
        ("openai.RateLimitError: Error code: 429 - slow down", "rate_limit"),
        ("You exceeded your current quota, please check your plan", "rate_limit"),
        ("HTTP 429", "rate_limit"),
        ("HTTP 500: Internal Server Error", "http"),
        ("Client error '404 Not Found' for url 'http://x/y'", "http"),
        ("status code 502", "http"),
        ("HTTP 504 Gateway Timeout", "http"),
        (
            "psycopg.OperationalError: connection to server at 127.0.0.1, port 5432 failed: refused",
            "connection",
        ),
        ("ConnectionRefusedError: [Errno 111] Connect call failed", "connection"),
        ("getaddrinfo ENOTFOUND api.example.com", "connection"),
        ("Could not reconnect to the database", "connection"),
        ("sqlite3.OperationalError: unable to open database file", "connection"),
        ("ValueError: bad input", "exception"),
        ("Invoice 429 was not found", "exception"),
        ("KeyError: 'memory'", "exception"),
        ("something went wrong", "exception"),
        ("", "exception"),
    ],
)
def test_classify_error(message: str, kind: str) -> None:
    assert classify_error(message) == kind


def test_a_huge_message_is_classified_by_its_start() -> None:
    assert classify_error("TimeoutError: " + "x" * 10_000_000) == "timeout"


def test_status() -> None:
    assert kind_of_status(429) == "rate_limit"
    assert kind_of_status(503) == "http"
