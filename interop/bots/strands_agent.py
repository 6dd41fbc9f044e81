# /// script
# requires-python = ">=3.11"
# dependencies = ["strands-agents[openai]==1.62.0"]
# ///
"""Strands: the result of a run as object and JSON, the agent's messages, and its stream."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from model_server import serve_model
from recording import case, query_database, record, search_document_content
from strands import Agent, tool
from strands.models.openai import OpenAIModel

model = OpenAIModel(client_args={"api_key": "none", "base_url": f"{serve_model()}/v1"}, model_id="scripted")


def agent() -> Any:
    return Agent(
        model=model, tools=[tool(query_database), tool(search_document_content)], callback_handler=None
    )


@case("nothing")
def result(question: str) -> Any:
    return agent()(question)


@case("everything")
def messages(question: str) -> Any:
    own = agent()
    own(question)
    return {"messages": own.messages}


@case("nothing")
def result_json(question: str) -> Any:
    return agent()(question).to_dict()


@case("everything")
async def stream(question: str) -> AsyncIterator[Any]:
    async for event in agent().stream_async(question):
        yield event


if __name__ == "__main__":
    record("strands-agents")
