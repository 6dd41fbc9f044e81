# /// script
# requires-python = ">=3.11"
# dependencies = ["langgraph==1.2.20", "langchain", "langchain-openai"]
# ///
"""LangGraph and LangChain: an agent's result, its streams in every mode, and the three serialisations of messages."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain.agents import create_agent
from langchain_core.load import dumpd
from langchain_core.messages import messages_to_dict
from langchain_core.tools import StructuredTool, ToolException
from langchain_openai import ChatOpenAI
from model_server import serve_model
from recording import case, query_database, record


def search_document_content(query: str) -> str:
    """Search the documents."""
    raise ToolException("index offline")


TOOLS = [
    StructuredTool.from_function(query_database),
    StructuredTool.from_function(search_document_content, handle_tool_error=True),
]
model = ChatOpenAI(model="scripted", base_url=f"{serve_model()}/v1", api_key="none")  # type: ignore[arg-type]
agent = create_agent(model, TOOLS)


def asked(question: str) -> Any:
    return {"messages": [{"role": "user", "content": question}]}


@case()
def state(question: str) -> Any:
    return agent.invoke(asked(question))


@case()
def thread_state(question: str) -> Any:
    return {"values": agent.invoke(asked(question)), "next": [], "checkpoint": {}}


@case("nothing")
def message(question: str) -> Any:
    return agent.invoke(asked(question))["messages"][-1]


@case()
def as_dicts(question: str) -> Any:
    return messages_to_dict(agent.invoke(asked(question))["messages"])


@case()
def as_constructors(question: str) -> Any:
    return {"messages": dumpd(agent.invoke(asked(question))["messages"])}


@case()
def stream_updates(question: str) -> Any:
    return agent.stream(asked(question), stream_mode="updates")


@case()
def stream_values(question: str) -> Any:
    return agent.stream(asked(question), stream_mode="values")


@case()
def stream_messages(question: str) -> Any:
    return agent.stream(asked(question), stream_mode="messages")


@case()
def stream_two_modes(question: str) -> Any:
    return agent.stream(asked(question), stream_mode=["updates", "messages"])


@case("calls")
def model_stream(question: str) -> Any:
    return model.bind_tools(TOOLS).stream(question)


@case()
def runnable(question: str) -> Any:
    return agent.ainvoke(asked(question))


if __name__ == "__main__":
    record("langgraph", "agent")
