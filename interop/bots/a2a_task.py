# /// script
# requires-python = ">=3.11"
# dependencies = ["a2a-sdk==1.3.0"]
# ///
"""A2A: a task and a message of an agent, as they are sent."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from a2a import types
from google.protobuf.json_format import MessageToDict
from model_server import ANSWER
from recording import case, record

PART = types.Part(text=ANSWER)
MESSAGE = types.Message(message_id="m1", role=types.Role.ROLE_AGENT, parts=[PART], context_id="c1")


def task_of(**more: Any) -> Any:
    return types.Task(id="t1", context_id="c1", **more)


@case("nothing")
def task(question: str) -> Any:
    status = types.TaskStatus(state=types.TaskState.TASK_STATE_COMPLETED)
    artifacts = [types.Artifact(artifact_id="a1", parts=[PART])]
    return MessageToDict(task_of(status=status, artifacts=artifacts))


@case("nothing")
def task_with_a_message(question: str) -> Any:
    status = types.TaskStatus(state=types.TaskState.TASK_STATE_COMPLETED, message=MESSAGE)
    return {"jsonrpc": "2.0", "id": 1, "result": {"task": MessageToDict(task_of(status=status))}}


@case("nothing")
def message(question: str) -> Any:
    return MessageToDict(MESSAGE)


if __name__ == "__main__":
    record("a2a-sdk")
