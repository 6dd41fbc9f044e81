"""Objects that can be run as chatbots: which of their methods takes the question, and in which form.

The frameworks' agents are known by the names of their types; none of the frameworks is imported.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any

from answerkey.protocols import Ask

__all__ = ["as_function"]

_Call = Callable[[Ask], object]
# Methods that take the question, asynchronous ones first.
_METHODS = ("ainvoke", "invoke", "arun", "run", "achat", "chat", "aquery", "query", "ask")


def as_function(found: Any) -> Callable[..., object] | None:
    """The function that asks an object: itself if it is one, a way to run an agent or a runnable; None if there is none."""
    if inspect.isroutine(found):
        return found
    run = _agent(found) or _runnable(found)
    if run is not None:
        return _named(run, found)
    if callable(found):
        return found  # type: ignore[no-any-return]
    return next((one for name in _METHODS if callable(one := getattr(found, name, None))), None)


def _named(run: _Call, found: object) -> Callable[[Ask], object]:
    """The function as a target takes it: its one parameter is called `ask`, so that it is given all of it."""
    if inspect.iscoroutinefunction(run):

        async def asking(ask: Ask) -> object:
            result: object = await run(ask)
            return result

    else:

        def asking(ask: Ask) -> object:  # type: ignore[misc]
            return run(ask)

    asking.__qualname__ = type(found).__qualname__
    asking.__module__ = type(found).__module__
    return asking


def _agent(found: Any) -> _Call | None:
    """How an agent of a framework is run: by the package and name of one of its classes."""
    for cls in type(found).__mro__:
        make = _AGENTS.get((cls.__module__.partition(".")[0], cls.__name__))
        if make is not None:
            return make(found)
    return None


def _openai_agent(agent: Any) -> _Call:
    runner = sys.modules[type(agent).__module__.partition(".")[0]].Runner

    async def run(ask: Ask) -> object:
        return await runner.run(agent, ask.question)

    return run


def _pydantic_agent(agent: Any) -> _Call:
    async def run(ask: Ask) -> object:
        return await agent.run(ask.question)

    return run


def _autogen_agent(agent: Any) -> _Call:
    async def run(ask: Ask) -> object:
        return await agent.run(task=ask.question)

    return run


def _llama_index_agent(agent: Any) -> _Call:
    async def run(ask: Ask) -> object:
        return await agent.run(user_msg=ask.question)

    return run


def _crew(crew: Any) -> _Call:
    async def run(ask: Ask) -> object:
        return await crew.kickoff_async(inputs={"question": ask.question})

    return run


def _smolagent(agent: Any) -> _Call:
    return lambda ask: agent.run(ask.question, reset=not ask.turn, return_full_result=True)


_AGENTS: dict[tuple[str, str], Callable[[Any], _Call]] = {
    ("agents", "AgentBase"): _openai_agent,
    ("agents", "Agent"): _openai_agent,
    ("pydantic_ai", "AbstractAgent"): _pydantic_agent,
    ("pydantic_ai", "Agent"): _pydantic_agent,
    ("autogen_agentchat", "TaskRunner"): _autogen_agent,
    ("autogen_agentchat", "BaseChatAgent"): _autogen_agent,
    ("autogen_agentchat", "BaseGroupChat"): _autogen_agent,
    ("llama_index", "BaseWorkflowAgent"): _llama_index_agent,
    ("llama_index", "AgentWorkflow"): _llama_index_agent,
    ("crewai", "Crew"): _crew,
    ("smolagents", "MultiStepAgent"): _smolagent,
}


def _runnable(found: Any) -> _Call | None:
    """LangChain's protocol: `ainvoke(input, config)`, whose input is text, messages or an object with one of them."""
    invoke, ainvoke = getattr(found, "invoke", None), getattr(found, "ainvoke", None)
    if not callable(invoke) and not callable(ainvoke):
        return None
    fill = _input_of(found)
    takes_config = _takes(ainvoke or invoke, "config")

    def given(ask: Ask) -> tuple[object, ...]:
        config = {"configurable": {"thread_id": ask.conversation_id}}
        return (fill(ask.question), config) if takes_config else (fill(ask.question),)

    if not callable(ainvoke):
        return lambda ask: found.invoke(*given(ask))

    async def run(ask: Ask) -> object:
        result: object = await ainvoke(*given(ask))
        return result

    return run


def _input_of(found: Any) -> Callable[[str], object]:
    """What a runnable takes, by the schema or keys that it gives of its input; without them, the question itself."""
    schema = getattr(found, "get_input_jsonschema", None)
    fields = (
        schema().get("properties")
        if callable(schema)
        else dict.fromkeys(getattr(found, "input_keys", None) or ())
    )
    if not isinstance(fields, dict) or not fields:
        return lambda question: question
    if "messages" in fields:
        return lambda question: {"messages": [{"role": "user", "content": question}]}
    known = [name for name in ("question", "input", "query", "prompt", "text") if name in fields]
    name = (known or list(fields))[0]
    return lambda question: {name: question}


def _takes(function: Any, name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
