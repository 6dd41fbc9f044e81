"""A model's tools on MCP servers, over pipes and HTTP. `make interop` does the same with the protocol's own package."""

import sys
from pathlib import Path

import pytest

from answerkey.errors import ConfigError, TargetUnreachableError
from answerkey.model.reply import Reply

from .mcp_server import SCHEMA, serve_mcp
from .scripted_model import Model, calling, completion

PROGRAM = f"{sys.executable} {Path(__file__).with_name('mcp_server.py')}"
CALLS = (("query_database", '{"sql": "x"}'), ("search", "{}"), ("picture", "{}"))


def check(reply: Reply) -> None:
    assert (reply.text, reply.failure) == ("Done.", None)
    database, search, picture = reply.tool_calls
    assert (database.result, database.error, database.arguments) == ("442300 for x", None, {"sql": "x"})
    assert (search.result, search.result_seen, search.error) == (None, True, "index offline")
    assert picture.result == [{"type": "image", "data": "AA==", "mimeType": "image/png"}]


@pytest.mark.parametrize("quirk", ["plain", "noisy", "pages", "stateless"])
def test_a_program(quirk: str) -> None:
    model = Model(calling(*CALLS), completion({"content": "Done."}))
    (reply,) = model.ask(tools=[{"mcp": f"{PROGRAM} {quirk}"}])
    check(reply)
    told = [tool["function"] for tool in model.requests[0]["tools"]]
    assert [tool["name"] for tool in told] == ["query_database", "search", "picture"]
    assert told[0] == {"name": "query_database", "description": "Runs a query.", "parameters": SCHEMA}


@pytest.mark.parametrize("quirk", ["plain", "json", "pages", "stateless", "forgets"])
def test_an_address(quirk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOOKS_TOKEN", "secret-of-the-books")
    seen: list[dict[str, str]] = []
    url, server = serve_mcp(quirk, seen)
    try:
        model = Model(calling(*CALLS), completion({"content": "Done."}))
        headers = {"Authorization": "Bearer ${BOOKS_TOKEN}"}
        (reply,) = model.ask(tools=[{"mcp": url, "headers": headers}])
    finally:
        server.shutdown()
        server.server_close()
    check(reply)
    assert all(one["authorization"] == "Bearer secret-of-the-books" for one in seen)
    last = seen[-1]
    if quirk == "stateless":
        assert (last["mcp-protocol-version"], last["mcp-method"]) == ("2026-07-28", "tools/call")
        assert "mcp-session-id" not in last
    else:
        assert (last["mcp-protocol-version"], last["mcp-session-id"]) == (
            "2025-11-25",
            "s1" if quirk == "forgets" else "s0",
        )


def test_a_server_that_ends_is_started_again_and_the_model_is_told() -> None:
    calls = [calling(("query_database", '{"sql": "x"}'))] * 2
    model = Model(*calls, completion({"content": "Sorry."}))
    (reply,) = model.ask(tools=[{"mcp": f"{PROGRAM} dies"}])
    assert reply.text == "Sorry."
    assert [call.error for call in reply.tool_calls] == ["the program ended with exit code 1: disk full"] * 2


def test_some_of_a_servers_tools() -> None:
    model = Model(completion({"content": "Done."}))
    model.ask(tools=[{"mcp": f"{PROGRAM} plain", "only": ["search"]}])
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["search"]
    with pytest.raises(ConfigError, match="has no tool 'serach'; there are picture, query_database, search"):
        Model().ask(tools=[{"mcp": f"{PROGRAM} plain", "only": ["serach"]}])
    with pytest.raises(ConfigError, match="two tools have the same name: search"):
        Model().ask(tools=[{"name": "search", "result": 1}, {"mcp": f"{PROGRAM} plain"}])


def test_servers_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetUnreachableError, match=r"cannot be used: the program ended .* out of licences"):
        Model().ask(tools=[{"mcp": f"{PROGRAM} silent"}])
    with pytest.raises(TargetUnreachableError, match="no program 'no-such-server'"):
        Model().ask(tools=[{"mcp": "no-such-server --flag"}])
    monkeypatch.setenv("PLACE", "http://127.0.0.1:9/mcp?key=secret-key")
    with pytest.raises(TargetUnreachableError) as caught:
        Model().ask(tools=[{"mcp": "${PLACE}"}])
    assert "secret-key" not in str(caught.value)
    with pytest.raises(ConfigError, match="a tool needs a name"):
        Model().ask(tools=[{"result": 1}])
