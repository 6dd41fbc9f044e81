# /// script
# requires-python = ">=3.11"
# dependencies = ["google-adk==2.13.0"]
# ///
"""Google ADK: the events of a run, as a stream, as a list, and as JSON."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from model_server import serve_model

os.environ |= {"GOOGLE_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": serve_model()}

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from recording import case, query_database, record, search_document_content


def failed(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
    return {"error": str(error)}


async def events(question: str) -> AsyncIterator[Any]:
    agent = LlmAgent(
        name="bookkeeper",
        model="gemini-scripted",
        tools=[query_database, search_document_content],
        on_tool_error_callback=failed,
    )
    runner = InMemoryRunner(agent=agent, app_name="interop")
    session = await runner.session_service.create_session(app_name="interop", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=question)])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        yield event


case("everything")(events)


@case("everything")
async def event_json(question: str) -> Any:
    return [event.model_dump(mode="json") async for event in events(question)]


@case("everything")
async def event_list(question: str) -> Any:
    return [event async for event in events(question)]


if __name__ == "__main__":
    record("google-adk")
