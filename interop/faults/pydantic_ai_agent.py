# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic-ai-slim[openai]==2.66.0", "aiohttp"]
# ///
"""Faults in Pydantic AI, whole and streamed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from faulted import get_balance, get_owner, run_faulted
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def agent(base: str, question: str) -> object:
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{base}/v1", api_key="none"))
    return (await Agent(model, tools=[get_balance, get_owner]).run(question)).output


async def streamed(base: str, question: str) -> object:
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{base}/v1", api_key="none"))
    async with Agent(model, tools=[get_balance, get_owner]).run_stream(question) as result:
        return await result.get_output()


if __name__ == "__main__":
    cases = {"agent": agent, "streamed": streamed}
    run_faulted("pydantic-ai-slim", "openai", cases, parallel=cases)
