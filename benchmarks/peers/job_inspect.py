"""The job in Inspect: a solver that asks, a scorer of our own, no model, no live view."""

import os
import tempfile

import inspect_ai
import standard
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Target, mean, scorer
from inspect_ai.solver import Generate, TaskState, solver

sessions = []


@solver
def chatbot():
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if not sessions:
            sessions.append(standard.new_session())
        reply = await standard.ask(sessions[0], state.input_text)
        state.output = ModelOutput.from_content("chatbot", reply["answer"])
        state.metadata["reply"] = reply
        return state

    return solve


@scorer(metrics=[mean()])
def standard_score():
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=standard.score(state.metadata["case"], state.metadata["reply"]))

    return score


samples = [
    Sample(input=case["question"], id=case["id"], metadata={"case": case}) for case in standard.questions()
]
task = inspect_ai.Task(dataset=MemoryDataset(samples), solver=chatbot(), scorer=standard_score())
with tempfile.TemporaryDirectory() as folder:
    os.environ["INSPECT_LOG_DIR"] = folder
    (log,) = inspect_ai.eval(
        task,
        model="none/none",
        log_dir=folder,
        display="none",
        max_samples=standard.CONCURRENCY,
        log_realtime=False,
        score_display=False,
    )
    assert log.status == "success", log.error
    standard.print_mean([sample.scores["standard_score"].value for sample in log.samples])
