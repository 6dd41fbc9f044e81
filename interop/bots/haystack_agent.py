# /// script
# requires-python = ">=3.11"
# dependencies = ["haystack-ai==3.4.0"]
# ///
"""Haystack: the messages of an agent's result, as objects and as dicts."""

import os
import sys
from pathlib import Path
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
sys.path.insert(0, str(Path(__file__).parent.parent))

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from model_server import serve_model
from recording import case, query_database, record, search_document_content

agent = Agent(
    chat_generator=OpenAIChatGenerator(
        model="scripted", api_key=Secret.from_token("none"), api_base_url=f"{serve_model()}/v1"
    ),
    tools=[create_tool_from_function(query_database), create_tool_from_function(search_document_content)],
)


def run(question: str) -> Any:
    return agent.run(messages=[ChatMessage.from_user(question)])


@case("no errors")
def result(question: str) -> Any:
    return run(question)


# That a call failed is read; its error's text is in the result.
@case("no errors")
def message_dicts(question: str) -> Any:
    return {"messages": [message.to_dict() for message in run(question)["messages"]]}


@case("no errors")
def openai_messages(question: str) -> Any:
    return {"messages": [message.to_openai_dict_format() for message in run(question)["messages"]]}


if __name__ == "__main__":
    record("haystack-ai")
