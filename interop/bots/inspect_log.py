# /// script
# requires-python = ">=3.11"
# dependencies = ["inspect-ai==0.3.285", "pyarrow"]
# ///
"""Inspect: whole logs, as an archive and as JSON, of a task that it ran itself."""

import sys
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import tiktoken
from inspect_ai import Task
from inspect_ai import eval as run_task
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, get_model
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolCall, ToolError, tool
from recordings import keep
from model_server import ANSWER, CALLS
from recording import QUESTION, problem_with

from answerkey.transcripts.recorded_rows import reply_in_row
from answerkey.transcripts.row_files import read_rows


class Words:
    """Counts words as tokens: the real encoding would have to be downloaded."""

    def encode(self, text: str, **more: Any) -> list[str]:
        return text.split()


tiktoken.get_encoding = lambda name: Words()  # type: ignore[assignment, return-value]
FOLDER = Path(__file__).parents[2] / "tests" / "transcripts" / "interop"


@tool
def query_database() -> Any:
    async def execute(sql: str) -> str:
        """Query the database.

        Args:
            sql: The statement.
        """
        return "442300"

    return execute


@tool
def search_document_content() -> Any:
    async def execute(query: str) -> str:
        """Search the documents.

        Args:
            query: The words.
        """
        raise ToolError("index offline")

    return execute


def output(messages: Any, *more: Any) -> ModelOutput:
    if any(message.role == "tool" for message in messages):
        return ModelOutput.from_content("scripted", ANSWER)
    calls = [ToolCall(id=one, function=name, arguments=given) for one, name, given in CALLS]
    said = ChatMessageAssistant(content="", tool_calls=calls)
    return ModelOutput(
        model="scripted", choices=[ChatCompletionChoice(message=said, stop_reason="tool_calls")]
    )


def written_by(data: bytes, kind: str) -> str:
    """The version that wrote a log."""
    with tempfile.NamedTemporaryFile(suffix=f".{kind}") as file:
        file.write(data)
        file.flush()
        return str(read_eval_log(file.name, header_only=True).eval.packages)


def main() -> int:
    wrong = 0
    for kind in ("eval", "json"):
        solver = [use_tools([query_database(), search_document_content()]), generate()]
        task = Task(dataset=[Sample(id="q1", input=QUESTION, target="442300")], solver=solver)
        model = get_model("mockllm/model", custom_outputs=output, memoize=False)
        with tempfile.TemporaryDirectory() as place:
            run_task(task, model=model, epochs=2, log_format=kind, log_dir=place, display="none")
            (log,) = Path(place).glob(f"*.{kind}")
            keep(FOLDER / f"inspect-ai.{kind}", log.read_bytes(), partial(written_by, kind=kind))
        for _, row in read_rows(FOLDER / f"inspect-ai.{kind}"):
            reply = reply_in_row(row, QUESTION)
            problem = "no reply" if reply is None else problem_with(reply, "everything")
            wrong += problem is not None
            print(
                f"inspect-ai {version('inspect-ai')} .{kind} epoch {row['trial']}: {problem or 'everything seen'}"
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
