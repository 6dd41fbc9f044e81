# /// script
# requires-python = ">=3.11"
# dependencies = ["autogen-agentchat==0.7.5", "autogen-ext[openai]"]
# ///
"""AutoGen: the result of a task and its stream."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from model_server import serve_model
from recording import case, query_database, record, search_document_content

BASE = f"{serve_model()}/v1"
INFO: Any = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "family": "unknown",
    "structured_output": False,
}


def agent() -> Any:
    client = OpenAIChatCompletionClient(model="scripted", base_url=BASE, api_key="none", model_info=INFO)
    tools: Any = [query_database, search_document_content]
    return AssistantAgent("assistant", client, tools=tools, reflect_on_tool_use=True)


assistant = agent()


@case()
async def result(question: str) -> Any:
    return await agent().run(task=question)


@case()
async def stream(question: str) -> Any:
    async for event in agent().run_stream(task=question):
        yield event


if __name__ == "__main__":
    record("autogen-agentchat", "assistant")
