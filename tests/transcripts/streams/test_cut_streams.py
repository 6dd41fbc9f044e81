"""Streams that break off after any of their events: what was not seen to its end is never called complete."""

import json
from pathlib import Path
from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.transcripts.formats import streamed
from answerkey.transcripts.payloads import reply_from_object
from answerkey.transcripts.recorded_rows import reply_in_row
from answerkey.transcripts.streams import assemble_events

FOLDER = Path(__file__).parent.parent / "interop"
RECORDED = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
STREAMS = {name: one["payload"] for name, one in sorted(RECORDED.items()) if one.get("streams")}
# Its package writes no mark into its stream by which the end could be known.
WITHOUT_A_MARK = {"semantic-kernel-stream"}


def gemini(text: str, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, **more}]}


def bedrock(index: int, **delta: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


STREAMS |= {
    "gemini, in pieces": [gemini("The "), gemini("total "), gemini("is 3.", finishReason="STOP")],
    "ollama, in pieces": [
        *({"message": {"role": "assistant", "content": text}, "done": False} for text in ("It ", "is 3.")),
        {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
    ],
    "bedrock": [
        {"messageStart": {"role": "assistant"}},
        bedrock(0, text="It is"),
        bedrock(0, text=" 3."),
        {
            "contentBlockStart": {
                "contentBlockIndex": 1,
                "start": {"toolUse": {"name": "add", "toolUseId": "t"}},
            }
        },
        bedrock(1, toolUse={"input": '{"a": 1}'}),
        {"messageStop": {"stopReason": "tool_use"}},
    ],
    "own events": [
        {"tool_calls": [{"name": "add", "arguments": {"a": 1}}]},
        *({"token": text} for text in ("It ", "is ", "3.")),
        {"type": "done"},
    ],
}


def read(events: list[Any], *, closed: bool) -> Reply:
    payload, whole = assemble_events(events, closed=closed)
    return streamed(reply_from_object(payload), whole)


def content(reply: Reply) -> tuple[Any, ...]:
    return reply.text, [(call.name, call.arguments, call.result) for call in reply.tool_calls]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_after_any_event_is_partial_unless_nothing_is_missing(name: str) -> None:
    events = STREAMS[name]
    whole = read(events, closed=False)
    assert (whole.evidence.completeness == "complete") == (name not in WITHOUT_A_MARK)
    for length in range(1, len(events)):
        cut = read(events[:length], closed=False)
        if content(cut) != content(whole):
            evidence = cut.evidence
            assert (evidence.completeness, evidence.tools_observed) == ("partial", False), length


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_whose_transport_ended_is_complete_with_all_of_its_events(name: str) -> None:
    assert read(STREAMS[name], closed=True).evidence.completeness == "complete"


def test_a_reason_in_every_event_does_not_mark_the_end() -> None:
    events = [gemini(text, finishReason="STOP") for text in ("The ", "total ", "is 3.")]
    assert read(events[:2], closed=False).evidence.completeness == "partial"
    assert read(events, closed=True).evidence.completeness == "complete"


def test_in_a_log_nothing_says_that_pieces_of_text_are_all_there() -> None:
    pieces = [{"type": "AIMessageChunk", "content": text, "id": "m"} for text in ("It ", "is 3.")]
    row = {"id": "q", "response": pieces}
    reply = reply_in_row(row, "How many?")
    assert reply is not None
    assert reply.text == "It is 3."
    assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)
    ended = {**pieces[-1], "chunk_position": "last", "content": ""}
    whole = reply_in_row({"id": "q", "response": [*pieces, ended]}, "How many?")
    assert whole is not None
    assert whole.evidence.completeness == "complete"
