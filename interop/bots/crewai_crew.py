# /// script
# requires-python = ">=3.11"
# dependencies = ["crewai==1.15.30"]
# ///
"""CrewAI: the output of a crew."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from model_server import serve_model
from recording import case, query_database, record, search_document_content

BASE = f"{serve_model()}/v1"


llm = LLM(model="openai/gpt-4o", base_url=BASE, api_key="none")
tools = [tool("query_database")(query_database), tool("search_document_content")(search_document_content)]
agent = Agent(role="clerk", goal="answer", backstory="none", llm=llm, tools=tools)
crew = Crew(agents=[agent], tasks=[Task(description="{question}", expected_output="an answer", agent=agent)])


@case()
async def output(question: str) -> Any:
    return await crew.kickoff_async(inputs={"question": question})


if __name__ == "__main__":
    record("crewai", "crew")
