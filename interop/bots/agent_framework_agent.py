# /// script
# requires-python = ">=3.11"
# dependencies = ["agent-framework-core==1.23.0", "agent-framework-openai==1.17.0"]
# ///
"""Microsoft Agent Framework: the response of a run, as an object, as its own JSON, and as a stream of updates."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from model_server import serve_model
from recording import case, query_database, record, search_document_content

client = OpenAIChatCompletionClient(model="scripted", api_key="none", base_url=f"{serve_model()}/v1")
client.function_invocation_configuration["include_detailed_errors"] = True


def agent() -> Any:
    return Agent(client, name="bookkeeper", tools=[query_database, search_document_content])


@case("everything")
async def result(question: str) -> Any:
    return await agent().run(question)


@case("everything")
async def result_json(question: str) -> Any:
    return json.loads((await agent().run(question)).to_json())


@case("everything")
async def stream(question: str) -> AsyncIterator[Any]:
    async for update in agent().run(question, stream=True):
        yield update


if __name__ == "__main__":
    record("agent-framework-core")
