# /// script
# requires-python = ">=3.11"
# dependencies = ["litellm==1.106.2"]
# ///
"""LiteLLM: completions, whole and streamed."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import litellm
from model_server import serve_model
from recording import case, record

BASE = f"{serve_model()}/v1"


def complete(question: str, **more: Any) -> Any:
    messages = [{"role": "user", "content": question}]
    return litellm.completion("openai/scripted", messages=messages, api_base=BASE, api_key="none", **more)


@case("calls")
def completion(question: str) -> Any:
    return complete(question)


@case("calls")
def completion_stream(question: str) -> Any:
    return complete(question, stream=True)


if __name__ == "__main__":
    record("litellm")
