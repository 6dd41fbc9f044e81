# /// script
# requires-python = ">=3.11"
# dependencies = ["ollama==0.6.3"]
# ///
"""The Ollama SDK: chats, whole and streamed, and the history of an agent loop, which has no ids."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import ollama
from model_server import serve_model
from recording import case, record

client = ollama.Client(host=serve_model())


def history(question: str) -> list[Any]:
    asked = {"role": "user", "content": question}
    brought = [
        {"role": "tool", "tool_name": "query_database", "content": "442300"},
        {"role": "tool", "tool_name": "search_document_content", "content": "Error: index offline"},
    ]
    return [asked, client.chat(model="scripted", messages=[asked]).message, *brought]


@case("calls")
def chat_calls(question: str) -> Any:
    return client.chat(model="scripted", messages=[{"role": "user", "content": question}])


@case("nothing")
def chat_answer(question: str) -> Any:
    return client.chat(model="scripted", messages=history(question))


@case("calls")
def chat_stream(question: str) -> Any:
    return client.chat(model="scripted", messages=[{"role": "user", "content": question}], stream=True)


@case()
def chat_history(question: str) -> Any:
    messages = history(question)
    return [*messages, client.chat(model="scripted", messages=messages).message]


if __name__ == "__main__":
    record("ollama")
