# /// script
# requires-python = ">=3.11"
# dependencies = ["smolagents[openai]==1.26.0"]
# ///
"""smolagents: the result of a run and the steps of a streamed one."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from model_server import serve_model
from recording import case, query_database, record, search_document_content
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

query_database.__doc__ = "Query.\n\nArgs:\n    sql: the statement"
search_document_content.__doc__ = "Search.\n\nArgs:\n    query: the words"
model = OpenAIServerModel("scripted", api_base=f"{serve_model()}/v1", api_key="none")


def agent() -> Any:
    return ToolCallingAgent(
        tools=[tool(query_database), tool(search_document_content)], model=model, max_steps=3
    )


runner = agent()


@case("calls")
def result(question: str) -> Any:
    return agent().run(question, return_full_result=True)


@case("calls")
def stream(question: str) -> Any:
    return agent().run(question, stream=True)


if __name__ == "__main__":
    record("smolagents", "runner", "calls")
