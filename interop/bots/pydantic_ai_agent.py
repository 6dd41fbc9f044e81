# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic-ai-slim[openai]==2.66.0"]
# ///
"""Pydantic AI: the result of a run, its messages, and its events."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import json

from model_server import serve_model
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from recording import case, query_database, record

model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=f"{serve_model()}/v1", api_key="none"))


def search_document_content(query: str) -> str:
    """Search the documents."""
    raise ModelRetry("index offline")


agent = Agent(model, tools=[query_database, search_document_content], instructions="Help.", retries=3)


@case()
async def result(question: str) -> Any:
    return await agent.run(question)


@case()
async def all_messages(question: str) -> Any:
    return (await agent.run(question)).all_messages()


@case()
async def all_messages_json(question: str) -> Any:
    return json.loads((await agent.run(question)).all_messages_json())


@case()
async def stream_events(question: str) -> Any:
    async with agent.run_stream_events(question) as events:
        async for event in events:
            yield event


if __name__ == "__main__":
    record("pydantic-ai-slim", "agent")
