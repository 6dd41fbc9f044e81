"""Whatever a model's server sends: a step is read, and what goes back can be sent."""

import copy
import json
import random
from typing import Any

import pytest

from answerkey.model.reply import ERROR_KINDS
from answerkey.providers import KNOWN_APIS, Prompt, read_step
from answerkey.transcripts.streams import assemble_events

from .scripted_model import Model, calling, completion
from .test_model_providers import SERVER

CALL = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hm"}]}
WANTED = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "t", "arguments": "{}"}
PARTS = [{"text": "Hm", "thought": True}, {"text": "x"}, {"functionCall": {"name": "t", "args": {}}}]
# An answer of each API with a bit of everything in it.
ANSWERS: dict[str, dict[str, Any]] = {
    "openai": {
        "id": "1",
        "choices": [
            {
                "message": {"content": "x", "reasoning_content": "Hm", "tool_calls": [CALL]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    },
    "openai-responses": {
        "object": "response",
        "output": [{"type": "reasoning", "id": "r", "summary": []}, SAID, WANTED],
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "incomplete_details": {"reason": "max_output_tokens"},
    },
    "anthropic": {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "s"},
            {"type": "text", "text": "x"},
            {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
    },
    "ollama": {
        "message": {"role": "assistant", "content": "x", "thinking": "Hm", "tool_calls": [CALL]},
        "done": True,
        "done_reason": "stop",
    },
}
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1e308, "", "junk", "\ud800", "a\0b", [], {}, [None], {"": None}),
    *([[]], {"type": 7}, {"text": {}}, [{"type": "tool_use"}], {"error": {"code": 429}}, "{" * 50),
)


def spoil(value: Any, chance: random.Random) -> Any:
    """The same with junk in some places."""
    if chance.random() < 0.08:
        return copy.deepcopy(chance.choice(JUNK))
    if isinstance(value, dict):
        kept = {name: spoil(part, chance) for name, part in value.items() if chance.random() > 0.05}
        return {**kept, "odd": chance.choice(JUNK)} if chance.random() < 0.1 else kept
    if isinstance(value, list):
        return [spoil(part, chance) for part in value for _ in range(chance.choice((1, 1, 1, 2)))]
    return value


@pytest.mark.parametrize("name", KNOWN_APIS)
def test_spoilt_answers_are_read_and_what_goes_back_is_json(name: str) -> None:
    api = KNOWN_APIS[name]
    whole = read_step(api, ANSWERS[name])
    assert [call.name for call in whole.calls] == ["t"]
    assert (whole.reply.text, whole.reply.reasoning) in (("x", "Hm"), ("Hm", None))
    chance = random.Random(7)
    for _ in range(600):
        step = read_step(api, spoil(ANSWERS[name], chance))
        failure = step.reply.failure
        assert failure is None or failure.kind in ERROR_KINDS
        messages = [
            api.write_message("user", "q"),
            *step.history,
            *(api.results(step.calls) if step.calls else ()),
        ]
        sent = json.loads(json.dumps(api.body(Prompt(model="m", messages=messages))))
        assert len(sent.get("messages") or sent.get("input") or sent.get("contents")) == len(messages)


EVENTS = {
    "openai": SERVER._chat_chunks,
    "openai-responses": SERVER._response_events,
    "anthropic": SERVER._anthropic_events,
    "gemini": lambda answered: [SERVER._gemini(answered)] * 2,
    "ollama": lambda answered: [{**SERVER._ollama(answered), "done": False}, SERVER._ollama(answered)],
}


@pytest.mark.parametrize("name", KNOWN_APIS)
def test_spoilt_streams_are_put_together_and_read(name: str) -> None:
    api = KNOWN_APIS[name]
    chance = random.Random(8)
    for number in range(400):
        events = spoil(list(EVENTS[name](number % 2 == 0)), chance)
        if not isinstance(events, list):
            continue
        if number % 5 == 0:
            chance.shuffle(events)
        document, _ = assemble_events(events)
        for event in events:
            api.speaks(event if isinstance(event, dict) else {})
        step = read_step(api, document)
        json.dumps([*step.history, *api.results(step.calls)])


@pytest.mark.parametrize("name", KNOWN_APIS)
def test_every_call_that_goes_back_has_its_result_beside_it(name: str) -> None:
    api = KNOWN_APIS[name]
    step = read_step(api, ANSWERS[name])
    sent = json.dumps([*step.history, *api.results(step.calls)])
    assert sent.count('"t"') == {"gemini": 2, "ollama": 2}.get(name, 1), (
        "the name, in a result where there is no id"
    )
    assert sent.count('"c1"') == {"gemini": 0, "ollama": 1}.get(name, 2)


def test_calls_without_end_are_ended() -> None:
    wanted = [(f"t{number}", "{}") for number in range(500)]
    model = Model(*[calling(*wanted)] * 3)
    (reply,) = model.ask(max_turns=3, tools=[{"name": "t1", "result": 1}])
    assert reply.failure is not None
    assert reply.failure.message == "the model still called tools after 3 turns"
    assert len(reply.tool_calls) == 1500
    assert sum(call.error is None for call in reply.tool_calls) == 3


def test_arguments_of_every_odd_kind() -> None:
    given = [
        '{"a": NaN}',
        '{"a": 1e999}',
        "null",
        '"text"',
        "{'a': 1}",
        '{"a": 1',
        "[" * 5000,
        "{}" * 2,
        '{"\ud800": 1}',
    ]
    model = Model(calling(*(("echo", text) for text in given)), completion({"content": "ok"}))
    (reply,) = model.ask(tools=[{"name": "echo", "result": 1}])
    assert reply.text == "ok"
    assert len(reply.tool_calls) == len(given)
    assert [call.error is None for call in reply.tool_calls] == [
        *(True, True, False, False, False, False, False, False, True)
    ]
