# /// script
# requires-python = ">=3.11"
# dependencies = ["dspy==3.4.1"]
# ///
"""DSPy: a ReAct agent, which writes its calls as text and offers the model no tools."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import dspy
from model_server import serve_model
from recording import case, query_database, record, search_document_content

dspy.configure(lm=dspy.LM("openai/scripted", api_base=f"{serve_model()}/v1", api_key="none", cache=False))


@case("nothing")
async def result(question: str) -> Any:
    agent = dspy.ReAct("question -> answer", tools=[query_database, search_document_content])
    return {"answer": (await agent.acall(question=question)).answer}


def react(question: str) -> Any:
    return dspy.ReAct("question -> answer", tools=[query_database, search_document_content]).acall(
        question=question
    )


@case("everything")
async def prediction(question: str) -> Any:
    return await react(question)


@case("everything")
async def prediction_json(question: str) -> Any:
    return (await react(question)).toDict()


if __name__ == "__main__":
    record("dspy")
