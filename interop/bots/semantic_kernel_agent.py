# /// script
# requires-python = ">=3.11"
# dependencies = ["semantic-kernel==1.45.0"]
# ///
"""Semantic Kernel: the response of an agent, the messages of its thread, and its stream."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from model_server import serve_model
from openai import AsyncOpenAI
from recording import case, record
from recording import query_database as query
from recording import search_document_content as search
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

client = AsyncOpenAI(api_key="none", base_url=f"{serve_model()}/v1")


class Books:
    """The tools, as a plug-in."""

    @kernel_function
    def query_database(self, sql: str) -> str:
        """Query the database."""
        return query(sql)

    @kernel_function
    def search_document_content(self, query: str) -> str:
        """Search the documents."""
        return search(query)


def agent() -> Any:
    service = OpenAIChatCompletion(ai_model_id="scripted", async_client=client)
    return ChatCompletionAgent(service=service, name="bookkeeper", plugins=[Books()])


# The last message alone; the calls are in the thread.
@case("nothing")
async def result(question: str) -> Any:
    return await agent().get_response(question)


@case("no errors")
async def thread(question: str) -> Any:
    thread = ChatHistoryAgentThread()
    await agent().get_response(question, thread=thread)
    return {"messages": [message.to_dict() async for message in thread.get_messages()]}


@case("no errors")
async def thread_json(question: str) -> Any:
    thread = ChatHistoryAgentThread()
    await agent().get_response(question, thread=thread)
    return {"messages": [message.model_dump(mode="json") async for message in thread.get_messages()]}


@case("nothing")
async def stream(question: str) -> AsyncIterator[Any]:
    async for piece in agent().invoke_stream(question):
        yield piece


if __name__ == "__main__":
    record("semantic-kernel")
