# /// script
# requires-python = ">=3.11"
# dependencies = ["anthropic==2.8.0", "google-genai==3.1.0", "ollama==0.6.3", "openai==3.49.0", "pydantic>=2"]
# ///
"""What answerkey sends to the providers, checked against the types of their own SDKs; exit 1 if one does not take it."""

import sys
from importlib.metadata import version
from typing import Any

import anthropic.types
import ollama
import openai.types.chat
import openai.types.responses
from google.genai import types as gemini
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from answerkey.model.reply import ToolCall
from answerkey.providers import KNOWN_APIS
from answerkey.providers import Prompt, ToolSpec, read_step

SCHEMA: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
USAGE = {"input_tokens": 1, "output_tokens": 1}
# A step of each in which the model thinks, speaks and calls.
STEPS: dict[str, Any] = {
    "openai": {
        "choices": [
            {
                "message": {
                    "content": "Let me see.",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
                    ],
                }
            }
        ]
    },
    "openai-responses": {
        "object": "response",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "t", "arguments": "{}"},
        ],
    },
    "anthropic": {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "c1", "name": "t", "input": {}},
        ],
        "usage": USAGE,
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"functionCall": {"id": "c1", "name": "t", "args": {}}, "thoughtSignature": "c2ln"},
                    ],
                }
            }
        ]
    },
    "ollama": {
        "message": {
            "content": "",
            "thinking": "Hm.",
            "tool_calls": [{"function": {"name": "t", "arguments": {}}}],
        },
        "done": True,
    },
}


class Gemini(BaseModel):
    """The body of generateContent by its parts: the SDK has no type for the whole."""

    model_config = ConfigDict(extra="forbid")
    contents: list[gemini.Content]
    system_instruction: gemini.Content = Field(alias="systemInstruction")
    tools: list[gemini.Tool]
    generation_config: gemini.GenerationConfig = Field(alias="generationConfig")


TYPES: dict[str, Any] = {
    "openai": openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming,
    "openai-responses": openai.types.responses.response_create_params.ResponseCreateParamsNonStreaming,
    "anthropic": anthropic.types.message_create_params.MessageCreateParamsNonStreaming,
    "gemini": Gemini,
    "ollama": ollama._types.ChatRequest,
}


def problem_with(name: str) -> str | None:
    """What the SDK's types say against a request with a history."""
    api = KNOWN_APIS[name]
    step = read_step(api, STEPS[name])
    done = [ToolCall(name="t", id=step.calls[0].id, result={"a": 1}, result_seen=True)]
    failed = [ToolCall(name="t", id=step.calls[0].id, error="no")]
    messages = [
        api.write_message("user", "Hello"),
        *step.history,
        *api.results(done),
        *step.history,
        *api.results(failed),
    ]
    prompt = Prompt(
        model="m",
        messages=messages,
        system="Be exact.",
        tools=[ToolSpec("t", "A tool.", SCHEMA)],
        # Anthropic's SDK knows no temperature any more: its newer models take none.
        parameters={"max_tokens": 100} | ({} if name == "anthropic" else {"temperature": 0, "top_p": 1}),
        schema=SCHEMA,
    )
    body = api.body(prompt)
    # A typed dict says nothing against further fields.
    unknown = body.keys() - TYPES[name].__annotations__.keys()
    if unknown and name not in ("gemini", "ollama"):
        return f"unknown: {unknown}"
    try:
        TypeAdapter(TYPES[name]).validate_python(body)
    except ValidationError as error:
        return str(error)
    return None


if __name__ == "__main__":
    found = {name: problem_with(name) for name in KNOWN_APIS}
    for name, problem in found.items():
        package = "google-genai" if name == "gemini" else name.removesuffix("-responses")
        print(f"{package} {version(package)} request: {problem or 'as its SDK has it'}")
    sys.exit(any(found.values()))
