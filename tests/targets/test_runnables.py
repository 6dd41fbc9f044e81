"""Objects of many kinds as Python targets; the frameworks' own agents are run by `make interop`."""

import sys
from types import ModuleType
from typing import Any

import pytest

from answerkey.errors import UsageError
from answerkey.targets.resolve import resolve_target

from .asking import ask


class Graph:
    """As LangGraph's compiled graphs are: asynchronous, with a schema and a configuration."""

    def get_input_jsonschema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"messages": {"type": "array"}}}

    async def ainvoke(self, state: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        thread = config["configurable"]["thread_id"]
        return {"messages": [*state["messages"], {"role": "assistant", "content": f"Here, in {thread}."}]}


class Chain:
    def get_input_jsonschema(self) -> dict[str, Any]:
        return {"properties": {"question": {"type": "string"}, "history": {"type": "array"}}}

    def invoke(self, given: dict[str, str]) -> dict[str, str]:
        return {"answer": f"{given['question']} Here."}


class Runs:
    def run(self, question: str) -> str:
        return f"{question} Here."


class AsksItself:
    async def arun(self, question: str) -> str:
        return f"{question} Here."


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (Graph(), "Here, in c-1."),
        (Chain(), "Where? Here."),
        (Runs(), "Where? Here."),
        (AsksItself(), "Where? Here."),
        (lambda question: f"{question} Here.", "Where? Here."),
    ],
)
def test_whatever_can_be_run(target: Any, text: str) -> None:
    reply = ask(resolve_target(target), "Where?")
    assert (reply.text, reply.failure) == (text, None)


def test_an_agent_is_known_by_its_type_and_run_by_its_frameworks_runner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Runner:
        @staticmethod
        async def run(agent: Any, question: str) -> dict[str, Any]:
            return {
                "messages": [
                    {"role": "user", "content": question},
                    {"role": "assistant", "content": agent.name},
                ]
            }

    framework = ModuleType("agents")
    framework.Runner = Runner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agents", framework)
    agent_type = type("Agent", (), {"__module__": "agents.agent", "name": "clerk"})
    assert ask(resolve_target(agent_type()), "Where?").text == "clerk"


def test_what_cannot_be_run_is_said() -> None:
    with pytest.raises(UsageError, match="not a object"):
        resolve_target(object())  # type: ignore[arg-type]
