"""An experiment is a run with two arms: what holds for `run` holds for each arm of `ab`."""

import asyncio
from pathlib import Path

import answerkey as ak
from answerkey.protocols import Ask, BaseTarget
from answerkey.runs.api import ab, evaluate

QUESTIONS = [
    {"id": f"q{number}", "question": f"What is {number}?", "expected_tools": ["query_database"]}
    for number in range(3)
]


class TimesOut(BaseTarget):
    """A chatbot that never answers, and reports the call that it has made."""

    name = fingerprint = "times out"

    async def ask(self, ask: Ask) -> ak.Reply:
        return await asyncio.get_running_loop().create_future()

    async def so_far(self, ask: Ask) -> ak.Reply:
        call = ak.ToolCall(name="query_database")
        usage = ak.Usage(input_tokens=10, output_tokens=5, cost=0.25)
        return ak.Reply(tool_calls=(call,), evidence=ak.Evidence(tools_observed=True), usage=usage)


def test_calls_before_a_timeout_count_in_both_arms(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    alone = evaluate(QUESTIONS, TimesOut(), timeout=0.05, store=store)
    experiment = ab(QUESTIONS, TimesOut(), TimesOut(), timeout=0.05, store=store)
    for run in (alone, *experiment.runs):
        assert run.summary.score == alone.summary.score > 0
        assert run.summary.usage["cost"] == 0.75
        assert [result.reply.tools_used for result in run.results] == 3 * [("query_database",)]


def test_each_trial_is_asked_of_its_arm_with_its_own_number(tmp_path: Path) -> None:
    asked: list[tuple[str, str, int]] = []

    class Noting(BaseTarget):
        def __init__(self, name: str) -> None:
            self.name = self.fingerprint = name

        async def ask(self, ask: Ask) -> ak.Reply:
            asked.append((self.name, ask.question_id, ask.trial))
            return ak.Reply(text=self.name)

    experiment = ab(QUESTIONS, Noting("a"), Noting("b"), repeat=2, store=str(tmp_path / "runs.db"))
    expected = {(arm, question["id"], number) for arm in "ab" for question in QUESTIONS for number in (1, 2)}
    assert (set(asked), len(asked)) == (expected, 12)
    for run, name in zip(experiment.runs, "ab", strict=True):
        assert {result.reply.text for result in run.results} == {name}
        assert [(result.id, result.trial) for result in run.results] == [
            (question["id"], number) for question in QUESTIONS for number in (1, 2)
        ]
