# /// script
# requires-python = ">=3.11"
# dependencies = ["ag-ui-protocol==1.0.0"]
# ///
"""AG-UI: the events of a run as objects and as they are sent."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import json

from ag_ui import core
from model_server import ANSWER, CALLS
from recording import case, record

RESULTS = {"call_1": "442300", "call_2": "Error: index offline"}


def run_events() -> list[Any]:
    made: list[Any] = [core.RunStartedEvent(thread_id="t", run_id="r")]
    for identity, name, given in CALLS:
        text = json.dumps(given)
        made.append(core.ToolCallStartEvent(tool_call_id=identity, tool_call_name=name))
        made += [core.ToolCallArgsEvent(tool_call_id=identity, delta=piece) for piece in (text[:4], text[4:])]
        made.append(core.ToolCallEndEvent(tool_call_id=identity))
    for number, (identity, content) in enumerate(RESULTS.items()):
        result = core.ToolCallResultEvent(message_id=f"t{number}", tool_call_id=identity, content=content)
        made.append(result)
    made.append(core.TextMessageStartEvent(message_id="m1"))
    made += [core.TextMessageContentEvent(message_id="m1", delta=piece) for piece in (ANSWER[:9], ANSWER[9:])]
    return [
        *made,
        core.TextMessageEndEvent(message_id="m1"),
        core.RunFinishedEvent(thread_id="t", run_id="r"),
    ]


@case()
def events(question: str) -> Any:
    return iter(run_events())


@case()
def sent_events(question: str) -> Any:
    return iter(
        [json.loads(event.model_dump_json(by_alias=True, exclude_none=True)) for event in run_events()]
    )


@case()
def event_list(question: str) -> Any:
    return run_events()


if __name__ == "__main__":
    record("ag-ui-protocol")
