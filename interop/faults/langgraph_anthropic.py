# /// script
# requires-python = ">=3.11"
# dependencies = ["langgraph==1.2.20", "langchain", "langchain-anthropic", "aiohttp"]
# ///
"""Faults in LangGraph on Anthropic's API."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from faulted import get_balance, run_faulted
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import StructuredTool


async def agent(base: str, question: str) -> object:
    model = ChatAnthropic(model_name="m", base_url=base, api_key="none")
    graph = create_agent(model, [StructuredTool.from_function(get_balance)])
    state = await graph.ainvoke({"messages": [{"role": "user", "content": question}]})
    return str(state["messages"][-1].content)


if __name__ == "__main__":
    run_faulted("langgraph", "anthropic", {"agent": agent})
