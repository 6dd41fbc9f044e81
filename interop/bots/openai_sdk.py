# /// script
# requires-python = ">=3.11"
# dependencies = ["openai==3.49.0"]
# ///
"""The OpenAI SDK: chat completions and responses, whole and streamed, and the histories that agent loops keep."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import openai
from model_server import serve_model
from recording import case, query_database, record, search_document_content

client = openai.OpenAI(base_url=f"{serve_model()}/v1", api_key="none")
TOOLS: Any = [{"type": "function", "function": {"name": "query_database", "parameters": {"type": "object"}}}]


def call(name: str, arguments: str) -> str:
    try:
        return {"query_database": query_database, "search_document_content": search_document_content}[name](
            **json.loads(arguments)
        )
    except ValueError as error:
        return f"Error: {error}"


def chat(messages: list[Any], **more: Any) -> Any:
    return client.chat.completions.create(model="scripted", messages=messages, tools=TOOLS, **more)


def history(question: str) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": question}]
    message = chat(messages).choices[0].message
    messages.append(message)
    for made in message.tool_calls:
        content = call(made.function.name, made.function.arguments)
        messages.append({"role": "tool", "tool_call_id": made.id, "content": content})
    return messages


@case("calls")
def chat_calls(question: str) -> Any:
    return chat([{"role": "user", "content": question}])


@case("nothing")
def chat_answer(question: str) -> Any:
    return chat(history(question))


@case()
def chat_history(question: str) -> Any:
    messages = history(question)
    return [*messages, chat(messages).choices[0].message]


@case("calls")
def chat_stream(question: str) -> Any:
    return chat([{"role": "user", "content": question}], stream=True)


@case("nothing")
def chat_stream_answer(question: str) -> Any:
    return chat(history(question), stream=True)


def items(question: str) -> list[Any]:
    given: list[Any] = [{"role": "user", "content": question}]
    output = client.responses.create(model="scripted", input=given).output
    given += output
    for item in output:
        brought = call(item.name, item.arguments)
        given.append({"type": "function_call_output", "call_id": item.call_id, "output": brought})
    return given


@case("calls")
def responses_calls(question: str) -> Any:
    return client.responses.create(model="scripted", input=question)


@case("nothing")
def responses_answer(question: str) -> Any:
    return client.responses.create(model="scripted", input=items(question))


@case()
def responses_history(question: str) -> Any:
    given = items(question)
    return [*given, *client.responses.create(model="scripted", input=given).output]


@case("calls")
def responses_stream(question: str) -> Any:
    return client.responses.create(model="scripted", input=question, stream=True)


@case("nothing")
def responses_stream_answer(question: str) -> Any:
    return client.responses.create(model="scripted", input=items(question), stream=True)


if __name__ == "__main__":
    record("openai")
