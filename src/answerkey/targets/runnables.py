"""Objects that can be run as chatbots: which of their methods takes the question, and in which form.

The frameworks' agents are known by the names of their types; none of the frameworks is imported.
"""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from answerkey.protocols import Ask

# Begins to ask, and whether what it gives is to be awaited.
_Asking = tuple[Callable[[Ask], Any], bool]
# Methods that take the question, asynchronous ones first.
_METHODS = ("ainvoke", "invoke", "arun", "run", "achat", "chat", "aquery", "query", "ask")


def as_function(found: Any) -> Callable[..., object] | None:
    """The function that asks an object: itself if it is one, a way to run an agent or a runnable; None if there is none."""
    if inspect.isroutine(found):
        return found
    asking = _agent(found) or _runnable(found)
    if asking is not None:
        return _named(asking, found)
    if callable(found):
        return found  # type: ignore[no-any-return]
    return next((one for name in _METHODS if callable(one := getattr(found, name, None))), None)


def _named(asking: _Asking, found: object) -> Callable[[Ask], object]:
    """The function as a target takes it: its one parameter is called `ask`, so that it is given all of it."""
    begin, is_async = asking

    def called(ask: Ask) -> object:
        return begin(ask)

    async def awaited(ask: Ask) -> object:
        return await begin(ask)

    function = awaited if is_async else called
    function.__qualname__ = type(found).__qualname__
    function.__module__ = type(found).__module__
    return function


def _agent(found: Any) -> _Asking | None:
    """How an agent of a framework is run: by the package and name of one of its classes."""
    for cls in type(found).__mro__:
        package = cls.__module__.partition(".")[0]
        begin = _AGENTS.get((package, cls.__name__))
        if begin is not None:
            return partial(begin, found), package != "smolagents"
    return None


def _openai_agent(agent: Any, ask: Ask) -> object:
    return sys.modules[type(agent).__module__.partition(".")[0]].Runner.run(agent, ask.question)


_BY_QUESTION, _BY_TASK, _BY_MESSAGE = (
    lambda agent, ask: agent.run(ask.question),
    lambda agent, ask: agent.run(task=ask.question),
    lambda agent, ask: agent.run(user_msg=ask.question),
)
_AGENTS: dict[tuple[str, str], Callable[[Any, Ask], object]] = {
    ("agents", "AgentBase"): _openai_agent,
    ("agents", "Agent"): _openai_agent,
    ("pydantic_ai", "AbstractAgent"): _BY_QUESTION,
    ("pydantic_ai", "Agent"): _BY_QUESTION,
    ("autogen_agentchat", "TaskRunner"): _BY_TASK,
    ("autogen_agentchat", "BaseChatAgent"): _BY_TASK,
    ("autogen_agentchat", "BaseGroupChat"): _BY_TASK,
    ("llama_index", "BaseWorkflowAgent"): _BY_MESSAGE,
    ("llama_index", "AgentWorkflow"): _BY_MESSAGE,
    ("crewai", "Crew"): lambda crew, ask: crew.kickoff_async(inputs={"question": ask.question}),
    ("smolagents", "MultiStepAgent"): lambda agent, ask: agent.run(
        ask.question, reset=not ask.turn, return_full_result=True
    ),
}


def _runnable(found: Any) -> _Asking | None:
    """LangChain's protocol: `ainvoke(input, config)`, whose input is text, messages or an object with one of them."""
    invoke, ainvoke = getattr(found, "invoke", None), getattr(found, "ainvoke", None)
    run = ainvoke if callable(ainvoke) else invoke
    if not callable(run):
        return None
    fill, takes_config = _input_of(found), _takes(run, "config")

    def begin(ask: Ask) -> object:
        config = {"configurable": {"thread_id": ask.conversation_id}}
        return run(fill(ask.question), config) if takes_config else run(fill(ask.question))

    return begin, run is ainvoke


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
