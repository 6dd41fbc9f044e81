"""The latencies that a bare aiohttp loop measures, which does nothing but ask: `python bare_loop.py GOLDEN URL CONCURRENCY`."""

import asyncio
import json
import sys
import time

import aiohttp


async def main(path: str, url: str, concurrency: int) -> None:
    taken = []
    questions = iter([json.loads(line) for line in open(path)])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def work() -> None:
            for question in questions:
                begun = time.perf_counter()
                async with session.post(url, json={"question": question["question"]}) as response:
                    await response.read()
                taken.append(1000 * (time.perf_counter() - begun))

        await asyncio.gather(*(work() for _ in range(concurrency)))
    taken.sort()
    print(json.dumps({"p50": taken[len(taken) // 2], "p95": taken[int(0.95 * (len(taken) - 1))]}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
