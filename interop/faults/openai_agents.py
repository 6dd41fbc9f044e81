# /// script
# requires-python = ">=3.11"
# dependencies = ["openai-agents==0.24.0", "aiohttp"]
# ///
"""Faults in the OpenAI Agents SDK: chat, Responses, and streamed."""

import sys
from pathlib import Path

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
from faulted import get_balance, get_owner, run_faulted

set_tracing_disabled(True)
TOOLS = [function_tool(get_balance), function_tool(get_owner)]


async def chat(base: str, question: str) -> object:
    model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=f"{base}/v1", api_key="none"))
    return (await Runner.run(Agent(name="a", model=model, tools=TOOLS), question)).final_output


async def responses(base: str, question: str) -> object:
    model = OpenAIResponsesModel("m", AsyncOpenAI(base_url=f"{base}/v1", api_key="none"))
    return (await Runner.run(Agent(name="r", model=model, tools=TOOLS), question)).final_output


async def streamed(base: str, question: str) -> object:
    model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=f"{base}/v1", api_key="none"))
    run = Runner.run_streamed(Agent(name="s", model=model, tools=TOOLS), question)
    async for _ in run.stream_events():
        pass
    return run.final_output


if __name__ == "__main__":
    cases = {"chat": chat, "responses": responses, "streamed": streamed}
    run_faulted("openai-agents", "openai", cases, parallel=cases)
