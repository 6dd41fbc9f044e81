# /// script
# requires-python = ">=3.11"
# dependencies = ["google-genai==3.1.0"]
# ///
"""The Google Gen AI SDK: responses, automatic function calling, streams and histories."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from google import genai
from google.genai import types
from model_server import serve_model
from recording import case, query_database, record, search_document_content

client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=serve_model()))
TOOLS: Any = [query_database, search_document_content]
BY_HAND = types.GenerateContentConfig(
    tools=TOOLS, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
)


def history(question: str) -> list[Any]:
    asked = types.Content(role="user", parts=[types.Part(text=question)])
    said = (
        client.models.generate_content(model="scripted", contents=[asked], config=BY_HAND)
        .candidates[0]
        .content
    )
    brought = [
        types.Part.from_function_response(name="query_database", response={"output": "442300"}),
        types.Part.from_function_response(
            name="search_document_content", response={"error": "index offline"}
        ),
    ]
    return [asked, said, types.Content(role="user", parts=brought)]


@case()
def automatic_calls(question: str) -> Any:
    config = types.GenerateContentConfig(tools=TOOLS)
    return client.models.generate_content(model="scripted", contents=question, config=config)


@case("calls")
def response_calls(question: str) -> Any:
    return client.models.generate_content(model="scripted", contents=question, config=BY_HAND)


@case("nothing")
def response_answer(question: str) -> Any:
    return client.models.generate_content(model="scripted", contents=history(question), config=BY_HAND)


@case("calls")
def response_stream(question: str) -> Any:
    return client.models.generate_content_stream(model="scripted", contents=question, config=BY_HAND)


@case()
def contents(question: str) -> Any:
    given = history(question)
    answer = client.models.generate_content(model="scripted", contents=given, config=BY_HAND)
    return [*given, answer.candidates[0].content]


if __name__ == "__main__":
    record("google-genai")
