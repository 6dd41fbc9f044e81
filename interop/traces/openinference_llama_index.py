# /// script
# requires-python = ">=3.11"
# dependencies = ["llama-index-core", "llama-index-llms-openai-like", "openinference-instrumentation-llama-index",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""LlamaIndex with OpenInference."""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

provider = export_spans()

from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

LlamaIndexInstrumentor().instrument(tracer_provider=provider)

from llama_index_agent import output


async def answer(question: str) -> Any:
    return (await output(question)).response.content


if __name__ == "__main__":
    run_traced("openinference-instrumentation-llama-index", answer, "everything")
