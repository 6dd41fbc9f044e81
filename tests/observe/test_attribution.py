"""Twenty questions at once through the proxy: no call is given to a trial that did not make it.

`python tests/observe/test_attribution.py 1000 1` (trials, seed) runs as many trials and prints what became of them.
"""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import aiohttp
from aiohttp import web

from answerkey.model.options import Options
from answerkey.model.reply import Failure, Reply
from answerkey.observe.observers import ObservedTarget, Observers
from answerkey.protocols import Ask, AskAgainError, BaseTarget

AT_ONCE = 20
# Some are a part of others, and several run at the same time.
QUESTIONS = (
    *(
        "lease",
        "lease of the cabin",
        "What is the total?",
        "What is the total? And of last year?",
        "Who pays?",
    ),
    *(f"How much was paid in month {month}?" for month in range(1, 13)),
)
WAYS = ("plain", "few-shot", "planner", "short", "template", "timeout", "blocked", "traceparent")
TOOLS = [{"type": "function", "function": {"name": "lookup"}}]


async def model(request: web.Request) -> web.Response:
    """Calls a tool with the trial that asks, then answers; who asks is in a header, by which the proxy cannot go."""
    body = await request.json()
    await asyncio.sleep(random.random() / 100)
    answered = any(message["role"] == "tool" for message in body["messages"])
    call = {
        "id": f"call_{random.getrandbits(64):x}",
        "type": "function",
        "function": {"name": "lookup", "arguments": f'{{"trial": "{request.headers["X-Trial"]}"}}'},
    }
    message: dict[str, Any] = {"role": "assistant", "content": "Done." if answered else None}
    message |= {} if answered else {"tool_calls": [call]}
    return web.json_response(
        {"id": f"r{random.getrandbits(64):x}", "choices": [{"index": 0, "message": message}]}
    )


class Agent(BaseTarget):
    """A chatbot whose way of asking its model is drawn for each trial."""

    name = fingerprint = "agent"

    def __init__(self, seed: int, ways: Sequence[str]) -> None:
        self.random = random.Random(seed)
        self._ways = ways
        self.proxy = ""
        self.ways: Counter[str] = Counter()
        self.tasks: set[asyncio.Task[None]] = set()

    async def ask(self, ask: Ask) -> Reply:
        way = self.random.choice(self._ways)
        self.ways[way] += 1
        work = asyncio.create_task(self._work(ask, way))
        self.tasks.add(work)
        if way == "timeout":
            await asyncio.sleep(self.random.random() / 50)
            # The chatbot continues.
            raise asyncio.CancelledError
        if way == "blocked":
            # It continues as well, and is asked again.
            await asyncio.sleep(self.random.random() / 50)
            raise AskAgainError(Failure("local_resources", "blocked"), still_works=True)
        await asyncio.shield(work)
        return Reply(text="Done.")

    async def _work(self, ask: Ask, way: str) -> None:
        if way == "blocked":
            await asyncio.sleep(self.random.random() / 20)
        other = self.random.choice(QUESTIONS)
        system = f"Example: {other}" if way == "few-shot" else "You are a bookkeeper."
        asked = f"Context: none. Question: {ask.question}" if way == "template" else ask.question
        sub_tasks = {"planner": [other], "short": [f"Sub-task: {other} of the cabin"]}.get(way, [])
        headers = {"X-Trial": str(ask.traceparent)}
        if way == "traceparent":
            headers["traceparent"] = str(ask.traceparent)
        for text in (*sub_tasks, asked):
            await self._converse(
                [{"role": "system", "content": system}, {"role": "user", "content": text}], headers
            )

    async def _converse(self, messages: list[dict[str, Any]], headers: dict[str, str]) -> None:
        async with aiohttp.ClientSession(headers=headers) as session:
            for _ in range(2):
                body = {"messages": messages, "tools": TOOLS}
                async with session.post(f"{self.proxy}/openai/v1/chat/completions", json=body) as answer:
                    message = (await answer.json())["choices"][0]["message"]
                messages.append(message)
                for call in message.get("tool_calls", ()):
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": "4"})


async def run_trials(
    trials: int, seed: int, ways: Sequence[str] = WAYS, *, distinct: bool = False, at_once: int = AT_ONCE
) -> tuple[Counter[str], Counter[str]]:
    """What became of the trials, and how many went which way."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    agent = Agent(seed, ways)
    options = Options(proxy=0, trace_quiet=0.05, upstreams={"openai": f"http://127.0.0.1:{port}/v1"})
    target = ObservedTarget(agent, Observers(options))
    became: Counter[str] = Counter()
    slots = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        question = f"What is number {number} of the list?" if distinct else agent.random.choice(QUESTIONS)
        async with slots:
            for attempt in count(1):
                trace_id = f"{attempt:016x}{number:016x}"
                ask = Ask(
                    question=question,
                    conversation_id=f"c{number}",
                    traceparent=f"00-{trace_id}-{'ab' * 8}-01",
                )
                try:
                    reply = await target.ask(ask)
                except AskAgainError:
                    continue
                except asyncio.CancelledError:
                    reply = Reply(failure=Failure("timeout", "no reply"))
                break
            seen = await target.observe(ask, reply)
        made_by = [(call.arguments or {}).get("trial") for call in seen.tool_calls]
        became["calls"] += len(made_by)
        became["of another trial"] += sum(trial != ask.traceparent for trial in made_by)
        became["complete" if seen.evidence.tools_observed else "partial or unobserved"] += 1
        if seen.evidence.tools_observed and reply.failure is None:
            became["complete, but calls are missing"] += not made_by

    async with target:
        agent.proxy = target.addresses["proxy"]
        await asyncio.gather(*(one(number) for number in range(1, trials + 1)))
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*agent.tasks, return_exceptions=True)
    await runner.cleanup()
    return became, agent.ways


async def test_no_call_is_given_to_another_trial() -> None:
    became, ways = await run_trials(140, seed=7)
    assert set(ways) == set(WAYS)
    assert became["of another trial"] == 0, became
    assert became["complete, but calls are missing"] == 0, became
    assert became["calls"] > 0


async def test_calls_of_an_attempt_that_was_asked_again_are_not_the_next_ones() -> None:
    became, ways = await run_trials(20, seed=7, ways=("plain", "blocked"), distinct=True, at_once=1)
    assert ways["blocked"] > 0
    assert became["of another trial"] == 0, became


async def test_plain_agents_with_other_questions_are_seen_completely() -> None:
    """It is not by giving up that no call is attributed wrongly."""
    became, _ = await run_trials(40, seed=7, ways=("plain", "few-shot", "traceparent"), distinct=True)
    assert (became["of another trial"], became["complete"]) == (0, 40), became


if __name__ == "__main__":
    for result in asyncio.run(run_trials(int(sys.argv[1]), seed=int(sys.argv[2]))):
        print(dict(result))
