"""What real packages' own objects and streams serialise to, recorded by `make interop`: each is read exactly.

The truth in all of them: `query_database` succeeded, `search_document_content` failed, and ANSWER was said. A format that
does not tell of its calls must say that they were not observed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.transcripts.formats import formats_of
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import Streamed, reply_from_object
from answerkey.transcripts.recorded_rows import reply_in_row
from answerkey.transcripts.row_files import read_rows

FOLDER = Path(__file__).parent / "interop"
PATHS = [path for path in sorted(FOLDER.glob("*.json")) if path.stem != "inspect-ai"]
RECORDED = {path.stem: json.loads(path.read_text()) for path in PATHS}
ANSWER = "The total is 442300; the lease could not be searched."
CALLS = [("query_database", {"sql": "SELECT total"}), ("search_document_content", {"query": "lease"})]


def check(reply: Reply, seen: str) -> None:
    assert reply.failure is None
    assert reply.evidence.unread == ()
    if seen == "nothing":
        assert (reply.text, reply.tool_calls, reply.evidence.tools_observed) == (ANSWER, (), False)
        return
    assert [(call.name, call.arguments) for call in reply.tool_calls] == CALLS
    assert reply.evidence.tools_observed
    assert reply.text == ANSWER or (seen == "calls" and reply.text is None)
    if seen == "everything":
        found, failed = reply.tool_calls
        assert (found.result, found.error) == ("442300", None)
        assert "index offline" in str(failed.error)


@pytest.mark.parametrize("name", RECORDED)
def test_a_packages_own_objects(name: str) -> None:
    recorded = RECORDED[name]
    payload: Any = Streamed(recorded["payload"]) if recorded["streams"] else recorded["payload"]
    check(reply_from_object(payload, context=QuestionContext(recorded["question"])), recorded["seen"])
    check(reply_from_object(payload), recorded["seen"])
    if name == "openai-agents-result":
        usage = reply_from_object(payload).usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens) == (22, 14)


@pytest.mark.parametrize(
    "name", ["agent-framework-core-stream", "ai-full_stream", "mastra-full_stream", "langgraph-model_stream"]
)
def test_the_events_of_a_stream_as_a_json_list_are_read_like_the_stream(name: str) -> None:
    recorded = RECORDED[name]
    context = QuestionContext(recorded["question"])
    check(reply_from_object(recorded["payload"], context=context), recorded["seen"])


@pytest.mark.parametrize(
    "name",
    [
        *("autogen-agentchat-stream", "google-adk-events", "claude-agent-sdk-messages"),
        *("langgraph-stream_updates", "langgraph-stream_values", "openai-agents-stream_events"),
    ],
)
def test_an_agents_stream_that_ends_before_its_answer_does_not_show_all_calls(name: str) -> None:
    recorded = RECORDED[name]
    events = recorded["payload"]
    reply = reply_from_object(Streamed(events[: len(events) * 2 // 3]))
    assert reply.text is None
    assert reply.tool_calls[0].name == "query_database"
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)


@pytest.mark.parametrize("name", ["agent-framework-core-stream", "langgraph-stream_messages"])
def test_a_stream_that_ends_within_the_answer_is_partial(name: str) -> None:
    events = RECORDED[name]["payload"]
    reply = reply_from_object(Streamed(events[: len(events) * 2 // 3]))
    assert reply.text is not None
    assert ANSWER.startswith(reply.text)
    assert reply.text != ANSWER
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_whole_logs_of_inspect(ending: str) -> None:
    rows = [row for _, row in read_rows(FOLDER / f"inspect-ai.{ending}")]
    assert sorted((row["id"], row["trial"]) for row in rows) == [("q1", 1), ("q1", 2)]
    for row in rows:
        assert row["reference_answer"] == "442300"
        reply = reply_in_row(row, str(row["question"]))
        assert reply is not None
        check(reply, "everything")


def test_every_package_of_the_table_is_there() -> None:
    packages = {recorded["package"] for recorded in RECORDED.values()}
    assert packages == {
        *("agent-framework-core", "google-adk", "semantic-kernel", "mastra"),
        *("openai", "anthropic", "google-genai", "ollama", "langgraph", "litellm", "openai-agents"),
        *("pydantic-ai-slim", "claude-agent-sdk", "llama-index-core", "smolagents", "autogen-agentchat"),
        *("crewai", "mcp", "ag-ui-protocol", "a2a-sdk", "ai", "strands-agents", "haystack-ai", "dspy"),
    }


def test_no_two_rows_of_the_table_claim_the_same_payload_equally() -> None:
    for recorded in RECORDED.values():
        if isinstance(recorded["payload"], dict):
            claims = [len(row.marks) for row in formats_of(recorded["payload"])]
            assert len(claims) < 2 or claims[0] > claims[1], recorded["case"]
