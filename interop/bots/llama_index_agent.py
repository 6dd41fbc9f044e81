# /// script
# requires-python = ">=3.11"
# dependencies = ["llama-index-core==0.14.25", "llama-index-llms-openai-like"]
# ///
"""LlamaIndex: the output of an agent's run."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from model_server import serve_model
from recording import case, query_database, record, search_document_content

llm = OpenAILike(
    model="scripted",
    api_base=f"{serve_model()}/v1",
    api_key="none",
    is_chat_model=True,
    is_function_calling_model=True,
)


agent = FunctionAgent(tools=[query_database, search_document_content], llm=llm, streaming=False)


@case()
async def output(question: str) -> Any:
    return await agent.run(question)


if __name__ == "__main__":
    record("llama-index-core", "agent")
