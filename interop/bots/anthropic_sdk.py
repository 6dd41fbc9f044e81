# /// script
# requires-python = ">=3.11"
# dependencies = ["anthropic==2.8.0"]
# ///
"""The Anthropic SDK: messages, whole and streamed, and the history of an agent loop."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import anthropic
from model_server import serve_model
from recording import case, query_database, record, search_document_content

client = anthropic.Anthropic(base_url=serve_model(), api_key="none")


def ask(messages: list[Any], **more: Any) -> Any:
    return client.messages.create(model="scripted", max_tokens=100, messages=messages, **more)


def history(question: str) -> list[Any]:
    message = ask([{"role": "user", "content": question}])
    results = []
    for block in message.content:
        try:
            content = {"query_database": query_database}.get(block.name, search_document_content)(
                **block.input
            )
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": content})
        except ValueError as error:
            failed = {"type": "tool_result", "tool_use_id": block.id, "content": str(error), "is_error": True}
            results.append(failed)
    said = {"role": "assistant", "content": message.content}
    return [{"role": "user", "content": question}, said, {"role": "user", "content": results}]


@case("calls")
def message_calls(question: str) -> Any:
    return ask([{"role": "user", "content": question}])


@case("nothing")
def message_answer(question: str) -> Any:
    return ask(history(question))


@case()
def message_history(question: str) -> Any:
    messages = history(question)
    return {"messages": [*messages, {"role": "assistant", "content": ask(messages).content}]}


@case()
def message_objects(question: str) -> Any:
    messages = history(question)
    return [*messages, ask(messages)]


@case("calls")
def message_stream(question: str) -> Any:
    return ask([{"role": "user", "content": question}], stream=True)


@case("calls")
def stream_helper(question: str) -> Any:
    messages: Any = [{"role": "user", "content": question}]
    with client.messages.stream(model="scripted", max_tokens=100, messages=messages) as stream:
        yield from stream


if __name__ == "__main__":
    record("anthropic")
