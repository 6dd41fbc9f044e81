# /// script
# requires-python = ">=3.11"
# dependencies = ["strands-agents[openai]==1.62.0", "aiohttp"]
# ///
"""Faults in a Strands agent, which streams every step."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from faulted import get_balance, run_faulted
from strands import Agent, tool
from strands.models.openai import OpenAIModel


async def agent(base: str, question: str) -> object:
    model = OpenAIModel(client_args={"api_key": "none", "base_url": f"{base}/v1"}, model_id="m")
    return str(
        await Agent(model=model, tools=[tool(get_balance)], callback_handler=None).invoke_async(question)
    )


if __name__ == "__main__":
    run_faulted("strands-agents", "openai", {"streamed": agent})
