import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

import answerkey
from answerkey.errors import ConfigError
from answerkey.model.options import Price
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.protocols import Ask, BaseTarget, RetryableError
from answerkey.targets.resolve import PricedTarget, resolve_target

from .asking import ask
from .scripted_model import Model, calling, completion


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "my_tools_for_models.py"
    path.write_text(
        "def add(a: int, b: int = 1):\n    'Adds two numbers.'\n    return {'sum': a + b}\n"
        "async def wait(text: str):\n    return text\n"
        "def fail(**anything):\n    raise KeyError('missing')\n",
    )
    return str(path)


def test_a_plain_answer() -> None:
    model = Model(completion({"content": "Hello."}))
    (reply,) = model.ask(system="Be kind.", parameters={"temperature": 0})
    assert reply.text == "Hello."
    assert reply.tool_calls == ()
    assert reply.evidence.tools_observed, "the loop is ours, so no call means no call"
    (request,) = model.requests
    assert request["model"] == "test-model"
    assert request["temperature"] == 0
    assert request["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What?"},
    ]
    assert "tools" not in request
    assert "Authorization" not in model.headers[0]


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("BASE/", "/v1/chat/completions"),
        ("BASE/chat/completions", "/v1/chat/completions"),
        (
            "BASE/deployments/m?api-version=2026-01-01",
            "/v1/deployments/m/chat/completions?api-version=2026-01-01",
        ),
    ],
)
def test_addresses_as_people_write_them(address: str, asked: str) -> None:
    model = Model(completion({"content": "Hello."}))
    model.ask(base_url=address)
    assert model.paths == [asked]


@pytest.mark.parametrize("text", ["<think>5?\nNo.</think>\n\nFour.", "5?\nNo.\n</think>Four."])
def test_thoughts_within_the_text_are_not_the_answer(text: str) -> None:
    (reply,) = Model(completion({"content": text})).ask()
    assert (reply.text, reply.reasoning) == ("Four.", "5?\nNo.")


def test_a_call_in_the_old_form_is_made() -> None:
    asked = completion({"content": None, "function_call": {"name": "fixed", "arguments": "{}"}})
    model = Model(asked, completion({"content": "Four."}))
    (reply,) = model.ask(tools=[{"name": "fixed", "result": 4}])
    assert (reply.text, reply.tools_used) == ("Four.", ("fixed",))


def test_the_loop_over_tools(tools: str) -> None:
    model = Model(
        calling(("add", '{"a": 2, "b": 3}'), ("wait", '{"text": "x"}')),
        calling(("double", '{"n": 4}'), ("fixed", "{}")),
        completion({"content": "5 and 8."}),
    )
    (reply,) = model.ask(
        tools=[
            {"name": "add", "python": f"{tools}:add"},
            {"name": "wait", "python": f"{tools}:wait"},
            {"name": "double", "url": "BASE/tool", "parameters": {"type": "object"}},
            {"name": "fixed", "result": [1, 2]},
        ],
        api_key="sk-literal-key-123",
    )
    assert reply.text == "5 and 8."
    assert reply.tools_used == ("add", "wait", "double", "fixed")
    assert [call.result for call in reply.tool_calls] == [
        {"sum": 5},
        "x",
        {"doubled": 8, "auth": None},
        [1, 2],
    ]
    assert all(call.duration_ms is not None and call.result_seen for call in reply.tool_calls)
    assert reply.usage is not None
    assert reply.usage.total_tokens == 45, "summed over the calls of the model"
    definition = model.requests[0]["tools"][0]["function"]
    assert definition["description"] == "Adds two numbers."
    assert definition["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    sent_back = [message for message in model.requests[1]["messages"] if message["role"] == "tool"]
    assert sent_back == [
        {"role": "tool", "tool_call_id": "call_0", "content": '{"sum": 5}'},
        {"role": "tool", "tool_call_id": "call_1", "content": "x"},
    ]
    assert model.headers[0]["Authorization"] == "Bearer sk-literal-key-123"


def test_tools_that_fail_are_told_to_the_model(tools: str) -> None:
    model = Model(
        calling(("fail", "{}"), ("unknown", "{}"), ("fail", "not json"), ("remote", '{"fail": true}')),
        completion({"content": "Sorry."}),
    )
    (reply,) = model.ask(
        tools=[{"name": "fail", "python": f"{tools}:fail"}, {"name": "remote", "url": "BASE/tool"}]
    )
    assert reply.text == "Sorry."
    assert reply.failure is None
    errors = [call.error or "" for call in reply.tool_calls]
    assert errors[0] == "KeyError: 'missing'"
    assert errors[1] == "there is no tool 'unknown'"
    assert errors[2].startswith("the arguments are not a JSON object")
    assert errors[3].startswith("RuntimeError: HTTP 500")
    assert [message["content"] for message in model.requests[1]["messages"][-4:]] == [
        f"Error: {error}" for error in errors
    ]


def test_a_model_that_never_answers() -> None:
    model = Model(*[calling(("fixed", "{}"))] * 3)
    (reply,) = model.ask(tools=[{"name": "fixed", "result": 1}], max_turns=3)
    assert reply.failure is not None
    assert "after 3 turns" in reply.failure.message
    assert reply.tools_used == ("fixed",) * 3


def test_turns_of_a_conversation() -> None:
    model = Model(completion({"content": "one"}), completion({"content": "two"}))
    model.ask(*[Ask(question=f"q{turn}", conversation_id="c", turn=turn) for turn in range(2)])
    assert [message["content"] for message in model.requests[1]["messages"]] == ["q0", "one", "q1"]


def test_errors_of_the_api() -> None:
    refused = web.json_response(
        {"error": {"message": "bad model", "type": "invalid_request_error"}}, status=404
    )
    (reply,) = Model(refused).ask()
    assert reply.failure is not None
    assert reply.failure.kind == "http"
    assert reply.failure.message == "HTTP 404: invalid_request_error: bad model"
    limited = web.json_response({"error": {"message": "slow"}}, status=429, headers={"Retry-After": "3"})
    with pytest.raises(RetryableError) as caught:
        Model(limited).ask()
    assert (caught.value.failure.kind, caught.value.retry_after) == ("rate_limit", 3.0)
    for broken in (web.Response(text="<html>"), web.json_response({"hello": 1})):
        (reply,) = Model(broken).ask()
        assert reply.failure is not None
        assert reply.failure.kind == "malformed"


def test_the_key_comes_from_the_environment_and_stays_out_of_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-1")
    model = Model(completion({"content": "my key is sk-very-secret-1"}))
    (reply,) = model.ask()
    assert model.headers[0]["Authorization"] == "Bearer sk-very-secret-1"
    assert reply.text == "my key is ${OPENAI_API_KEY}"
    assert "sk-very" not in json.dumps(msgspec.to_builtins(reply))


def test_settings_that_are_wrong() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY, which is not set"):
        ask(resolve_target("openai:gpt-x"))
    with pytest.raises(ConfigError, match="needs exactly one of python, url, result and mcp"):
        Model().ask(tools=[{"name": "a"}])
    with pytest.raises(ConfigError, match="two tools have the same name"):
        Model().ask(tools=[{"name": "a", "result": 1}, {"name": "a", "result": 2}])


def turned_away(status: int = 429) -> web.Response:
    return web.json_response({"error": {"message": "slow"}}, status=status, headers={"Retry-After": "0"})


async def broken_off(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.fixture
def counter(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A tool with an effect: it writes a line each time that it is called."""
    log = tmp_path / "log"
    path = tmp_path / "my_tool_with_an_effect.py"
    path.write_text(f"def book(n: int):\n    open({str(log)!r}, 'a').write(f'{{n}}\\n')\n    return n * 2\n")
    return log, {"name": "book", "python": f"{path}:book"}


def test_a_step_that_is_turned_away_is_made_again_and_tools_run_once(
    counter: tuple[Path, dict[str, str]],
) -> None:
    log, tool = counter
    model = Model(
        calling(("book", '{"n": 1}')),
        turned_away(429),
        turned_away(500),
        broken_off,
        calling(("book", '{"n": 2}')),
        turned_away(529),
        completion({"content": "Both are booked."}),
    )
    (reply,) = model.ask_in_a_run(tools=[tool], retries=4)
    assert log.read_text() == "1\n2\n"
    assert (reply.text, reply.failure) == ("Both are booked.", None)
    assert [(call.arguments, call.result) for call in reply.tool_calls] == [({"n": 1}, 2), ({"n": 2}, 4)]
    assert reply.usage is not None
    assert reply.usage.total_tokens == 45, "what was turned away used nothing"
    assert reply.timings.attempts == 5
    tools_ms = sum(call.duration_ms or 0.0 for call in reply.tool_calls)
    assert (reply.timings.latency_ms or 0.0) > tools_ms, "the work of earlier attempts counts"


def test_retries_that_are_used_up_keep_what_was_done(counter: tuple[Path, dict[str, str]]) -> None:
    log, tool = counter
    model = Model(calling(("book", '{"n": 1}')), *[turned_away() for _ in range(3)])
    (reply,) = model.ask_in_a_run(tools=[tool], retries=2)
    assert reply.failure is not None
    assert reply.failure.kind == "rate_limit"
    assert reply.tools_used == ("book",)
    assert reply.evidence.tools_observed
    assert log.read_text() == "1\n"


def test_a_quota_that_is_used_up_is_not_asked_again() -> None:
    used_up = web.json_response({"error": {"message": "pay", "type": "insufficient_quota"}}, status=429)
    model = Model(used_up)
    (reply,) = model.ask_in_a_run()
    assert reply.failure is not None
    assert reply.failure.message == "HTTP 429: insufficient_quota: pay"
    assert len(model.requests) == 1


def test_later_turns_are_sent_the_tool_messages_of_earlier_ones() -> None:
    model = Model(
        calling(("fixed", '{"a": 1}')),
        completion({"content": "one"}),
        turned_away(),
        calling(("fixed", "{}")),
        completion({"content": "two"}),
    )
    turns = tuple(Question(id=f"c#{n}", question=f"q{n}") for n in range(2))
    replies = model.ask_in_a_run(
        Question(id="c", question="q0", turns=turns), tools=[{"name": "fixed", "result": 7}]
    )
    assert [reply.text for reply in replies] == ["one", "two"]
    assert [reply.tools_used for reply in replies] == [("fixed",), ("fixed",)], "each turn has its own calls"
    sent = model.requests[-1]["messages"]
    assert [message["role"] for message in sent] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool"),
    ]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "fixed", "arguments": '{"a": 1}'}
    assert sent[2] == {"role": "tool", "tool_call_id": "call_0", "content": "7"}


def test_how_a_model_ended_is_marked() -> None:
    def ended(finish: str, **message: Any) -> dict[str, Any]:
        whole = completion(message)
        whole["choices"][0]["finish_reason"] = finish
        return whole

    (reply,) = Model(ended("length", content="The total is 44")).ask()
    assert (reply.text, reply.finish, reply.failure) == ("The total is 44", "length", None)
    (reply,) = Model(ended("length", content=None)).ask()
    assert reply.failure is not None
    assert (reply.failure.kind, reply.finish) == ("empty", "length")
    (reply,) = Model(ended("stop", content=None, refusal="I cannot help with that.")).ask()
    assert (reply.text, reply.finish) == ("I cannot help with that.", "refusal")
    (reply,) = Model(ended("content_filter", content="")).ask()
    assert reply.failure is not None
    assert (reply.failure.kind, reply.finish) == ("exception", "filter")
    (reply,) = Model(completion({"content": "All."})).ask()
    assert reply.finish is None


def test_a_call_that_was_cut_off_is_not_made(counter: tuple[Path, dict[str, str]]) -> None:
    log, tool = counter
    whole = calling(("book", '{"n": 1}'))
    whole["choices"][0]["finish_reason"] = "length"
    (reply,) = Model(whole).ask(tools=[tool])
    assert not log.exists()
    assert reply.failure is not None
    assert reply.failure.message == "the call was cut off at the model's limit of tokens"
    assert reply.tools_used == ("book",)


def test_reasoning_is_kept_apart_and_goes_back_while_the_turn_goes_on() -> None:
    wanted = calling(("fixed", "{}"))
    wanted["choices"][0]["message"]["reasoning_content"] = "I need the tool."
    model = Model(wanted, completion({"content": "7.", "reasoning": "It says 7."}))
    (reply,) = model.ask(tools=[{"name": "fixed", "result": 7}])
    assert (reply.text, reply.reasoning) == ("7.", "I need the tool.\n\nIt says 7.")
    assert model.requests[1]["messages"][1]["reasoning_content"] == "I need the tool."


def test_output_of_a_model_that_makes_no_sense() -> None:
    odd = completion(
        {
            "content": None,
            "tool_calls": [
                {"type": "function", "function": {"name": "fixed", "arguments": {"a": 1}}},
                {"function": {"name": None, "arguments": "["}},
                {"id": 7, "function": {"name": "fixed", "arguments": "[1]"}},
                "what?",
                {"id": "x"},
            ],
        }
    )
    model = Model(odd, completion({"content": [{"type": "text", "text": "done"}]}))
    (reply,) = model.ask(tools=[{"name": "fixed", "result": 1}])
    assert reply.text == "done"
    assert [(call.name, call.error) for call in reply.tool_calls] == [
        ("fixed", None),
        ("(unnamed)", "there is no tool '(unnamed)'"),
        ("fixed", "the arguments are not a JSON object: [1]"),
        ("(unnamed)", "there is no tool '(unnamed)'"),
    ]
    sent = model.requests[1]["messages"]
    assert [message["tool_call_id"] for message in sent[2:]] == ["call_0", "call_1", "call_2", "x"]
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["call_0", "call_1", "call_2", "x"]
    for payload in ([], "text", None, {"choices": []}, {"choices": [None]}, {"choices": "x"}):
        (reply,) = Model(web.json_response(payload)).ask()
        assert reply.failure is not None
        assert reply.failure.kind == "malformed"


def test_tokens_cost_what_the_price_says_even_where_the_turn_fails() -> None:
    price = Price(input=100.0, output=1000.0)
    model = Model(calling(("fixed", "{}")), completion({"content": "7"}))
    (reply,) = model.ask_in_a_run(price=price, tools=[{"name": "fixed", "result": 7}])
    assert reply.usage is not None
    assert reply.usage.cost == pytest.approx((20 * 100 + 10 * 1000) / 1e6), "of both steps"
    model = Model(calling(("fixed", "{}")), turned_away(), turned_away())
    (reply,) = model.ask_in_a_run(price=price, retries=1, tools=[{"name": "fixed", "result": 7}])
    assert reply.failure is not None
    assert reply.usage is not None
    assert reply.usage.cost == pytest.approx((10 * 100 + 5 * 1000) / 1e6)


def test_a_run_warns_of_replies_that_were_cut_off(write_rows: Any, command: Any) -> None:
    cut = completion({"content": "The total is 44", "reasoning_content": "Add them up."})
    cut["choices"][0]["finish_reason"] = "length"
    questions = write_rows("g.jsonl", {"id": "q", "question": "Total?", "expected_keywords": ["44"]})

    async def run(target: BaseTarget) -> Any:
        return await answerkey.evaluate_async(questions, target)

    done = Model(cut).use(run)
    assert any("1 of 1 reply was cut off at the model's token limit" in line for line in done.warnings)
    assert done.summary.finishes == {"length": 1}
    shown = command("show", done.id, "--question", "q").out
    assert "was truncated at its token limit" in shown
    assert "Add them up." in shown


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_a_turn_that_is_given_up_keeps_the_calls_that_were_made(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "slow_tool.py").write_text(
        f"import pathlib, time\ndef slow():\n    pathlib.Path({str(begun)!r}).touch()\n    time.sleep(1)\n"
    )
    tools = [{"name": "quick", "result": 7}, {"name": "slow", "python": f"{tmp_path / 'slow_tool.py'}:slow"}]
    question = Ask(question="What?", conversation_id="c")

    async def give_up(target: BaseTarget) -> Reply | None:
        priced = PricedTarget(target, Price(input=100.0, output=1000.0))
        assert await priced.so_far(question) is None, "nothing was asked"
        asking = asyncio.create_task(priced.ask(question))
        await asyncio.to_thread(wait_for, begun)
        asking.cancel()
        await asyncio.wait({asking})
        return await priced.so_far(question)

    model = Model(calling(("quick", "{}")), calling(("slow", "{}")))
    reply = model.use(give_up, tools=tools)
    assert reply.tools_used == ("quick", "slow")
    assert [call.result_seen for call in reply.tool_calls] == [True, False]
    assert reply.evidence.tools_observed
    assert reply.usage.cost == pytest.approx((20 * 100 + 10 * 1000) / 1e6)


def test_a_long_conversation_is_sent_whole() -> None:
    script: list[Any] = []
    for turn in range(40):
        script += [calling(("fixed", f'{{"turn": {turn}}}')), completion({"content": f"answer {turn}"})]
    model = Model(*script)
    turns = tuple(Question(id=f"c#{n}", question=f"q{n}") for n in range(40))
    replies = model.ask_in_a_run(
        Question(id="c", question="q0", turns=turns), tools=[{"name": "fixed", "result": "x" * 2000}]
    )
    assert [reply.text for reply in replies] == [f"answer {turn}" for turn in range(40)]
    sent = model.requests[-1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant"] * 39 + [
        *("user", "assistant", "tool")
    ]
    assert [message["content"] for message in sent if message["role"] == "user"] == [
        f"q{n}" for n in range(40)
    ]
