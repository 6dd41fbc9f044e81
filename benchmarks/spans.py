"""How many spans a second the receiver takes over HTTP and reads, in batches of 512 as exporters send them.

Run: python benchmarks/spans.py [SECONDS]. It prints spans a second and what was lost (nothing).
"""

import asyncio
import gzip
import sys
import time
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from answerkey.model.options import Options
from answerkey.observe.observers import ObservedTarget, Observers
from answerkey.protocols import Ask
from answerkey.targets.python_target import PythonTarget
from observe.spans import ASKED, as_protobuf, model_span, span, tool_span

BATCH = 512


def batch(trace: str, first: int) -> bytes:
    """Spans with the attributes that instrumentations give them: a fifth are models, a fifth tools."""
    spans = []
    for number in range(first, first + BATCH):
        own = f"{number + 1:016x}"
        if number % 5 == 0:
            call = {"type": "tool_call", "id": f"c{number}", "name": "lookup", "arguments": {"n": number}}
            one = model_span(own, ASKED, {"role": "assistant", "parts": [call]})
        elif number % 5 == 1:
            one = tool_span(
                own,
                ASKED,
                "lookup",
                **{"gen_ai.tool.call.id": f"c{number - 1}", "gen_ai.tool.call.result": "x" * 200},
            )
        else:
            one = span(own, attributes={f"langgraph.attribute.{n}": "y" * 40 for n in range(15)})
        spans.append(one | {"traceId": trace})
    return as_protobuf(*spans)


async def main(seconds: float) -> None:
    """Send for a number of seconds, over four connections."""
    target = ObservedTarget(
        PythonTarget(lambda question: "it"), Observers(Options(traces=0, trace_quiet=0.1))
    )
    asks = [
        Ask(question="?", conversation_id="c", traceparent=f"00-{n + 1:032x}-{ASKED}-01") for n in range(4)
    ]
    bodies = [[batch(f"{n + 1:032x}", BATCH * k) for k in range(40)] for n in range(4)]
    async with target, aiohttp.ClientSession() as session:
        for ask in asks:
            await target.ask(ask)
        sent = [0] * 4
        refused = 0
        until = time.perf_counter() + seconds

        async def send(number: int) -> None:
            nonlocal refused
            while time.perf_counter() < until and sent[number] < len(bodies[number]):
                body = gzip.compress(bodies[number][sent[number]], 1)
                headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
                async with session.post(
                    f"{target.addresses['traces']}/v1/traces", data=body, headers=headers
                ) as answer:
                    if answer.status == 200:
                        sent[number] += 1
                    else:
                        refused += 1

        begun, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[send(n) for n in range(4)])
        took, used = time.perf_counter() - begun, time.process_time() - cpu
        total = BATCH * sum(sent)
        print(
            f"received {total:,} spans in {took:.2f} s ({used:.2f} CPU s with the sender's): {total / took:,.0f} a second"
        )
        begun, cpu = time.perf_counter(), time.process_time()
        replies = [await target.observe(ask, await _nothing()) for ask in asks]
        took, used = time.perf_counter() - begun, time.process_time() - cpu
        calls = sum(len(reply.tool_calls) for reply in replies)
        wanted = sum(len([n for n in range(BATCH * k) if n % 5 == 0]) for k in sent)
        print(
            f"read in {took:.2f} s ({used:.2f} CPU s): {total / used:,.0f} a second; {calls:,} of {wanted:,} calls"
        )


async def _nothing():  # type: ignore[no-untyped-def]
    from answerkey.model.reply import Reply

    return Reply()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0))
