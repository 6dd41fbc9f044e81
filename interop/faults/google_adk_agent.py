# /// script
# requires-python = ">=3.11"
# dependencies = ["google-adk==2.13.0", "aiohttp"]
# ///
"""Faults in a Google ADK agent on Gemini's API, whose calls have no ids."""

import sys
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from faulted import get_balance, run_faulted
from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import Client, types


class ProxiedGemini(Gemini):
    """Gemini at another address."""

    address: str

    @cached_property
    def api_client(self) -> Client:
        return Client(api_key="none", http_options=types.HttpOptions(base_url=self.address))


async def agent(base: str, question: str) -> object:
    model = ProxiedGemini(model="m", address=base)
    runner = InMemoryRunner(agent=LlmAgent(name="clerk", model=model, tools=[get_balance]), app_name="faults")
    session = await runner.session_service.create_session(app_name="faults", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=question)])
    texts = [
        part.text
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)
        for part in (event.content.parts if event.content else None) or ()
        if part.text
    ]
    return texts[-1] if texts else ""


if __name__ == "__main__":
    run_faulted("google-adk", "gemini", {"agent": agent})
