# /// script
# requires-python = ">=3.11"
# dependencies = ["openai-agents==0.24.0"]
# ///
"""The OpenAI Agents SDK: the result of a run, its items, and its stream."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from agents import (
    Agent,
    AsyncOpenAI,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from model_server import serve_model
from recording import case, query_database, record, search_document_content

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=f"{serve_model()}/v1", api_key="none")
TOOLS = [
    function_tool(query_database),
    function_tool(search_document_content, failure_error_function=lambda context, error: f"Error: {error}"),
]
agent = Agent(name="a", model=OpenAIChatCompletionsModel("scripted", client), tools=TOOLS)
responding = Agent(name="r", model=OpenAIResponsesModel("scripted", client), tools=TOOLS)


@case()
async def result(question: str) -> Any:
    return await Runner.run(agent, question)


@case()
async def result_of_responses(question: str) -> Any:
    return await Runner.run(responding, question)


@case()
async def input_list(question: str) -> Any:
    return (await Runner.run(agent, question)).to_input_list()


@case()
async def stream_events(question: str) -> Any:
    async for event in Runner.run_streamed(agent, question).stream_events():
        yield event


@case()
async def stream_of_responses(question: str) -> Any:
    async for event in Runner.run_streamed(responding, question).stream_events():
        yield event


if __name__ == "__main__":
    record("openai-agents", "agent")
