"""1,000 judged replies with a judge that takes 100 ms, 50 at once: wall time beside the ideal and a bare aiohttp client.

python benchmarks/judging.py [--replies 1000] [--delay 100] [--concurrency 50] [--rounds 3]

The time is that of the whole run: canaries, asking, judging, storing every reply, answer and scorecard, the summary.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# This folder has files named like modules of the standard library.
sys.path.pop(0)

import aiohttp

import answerkey


def start_judge(delay: int) -> tuple[subprocess.Popen, str]:
    server = Path(__file__).parent / "judge_server.py"
    judge = subprocess.Popen([sys.executable, server, str(delay)], stdout=subprocess.PIPE, text=True)
    assert judge.stdout is not None
    return judge, f"http://127.0.0.1:{judge.stdout.readline().strip()}/v1"


async def answer(question: str) -> str:
    return f"The answer to {question!r} is 900 S 9th St, Montrose, Colorado."


def judged(
    count: int, base_url: str, concurrency: int, *, model: str = "benchmark"
) -> tuple[float, answerkey.Run]:
    """Seconds that a judged run takes, everything stored, and the run."""
    questions = [
        {"id": f"q{n}", "question": f"Where is property {n}?", "reference_answer": "900 S 9th St, Montrose."}
        for n in range(count)
    ]
    settings = answerkey.JudgeSettings(model=model, base_url=base_url, concurrency=concurrency)
    begun = time.perf_counter()
    run = answerkey.evaluate(questions, answer, judge=settings)
    return time.perf_counter() - begun, run


async def by_hand(count: int, base_url: str, concurrency: int) -> float:
    """The same calls with nothing around them: no cache, no store, no verdicts read."""
    slots = asyncio.Semaphore(concurrency)
    messages = [{"role": "system", "content": "x" * 3000}, {"role": "user", "content": "y" * 500}]

    async def call(session: aiohttp.ClientSession) -> None:
        body = {"model": "benchmark", "messages": messages}
        async with slots, session.post(f"{base_url}/chat/completions", json=body) as response:
            await response.json()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        begun = time.perf_counter()
        await asyncio.gather(*(call(session) for _ in range(count)))
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replies", type=int, default=1000)
    parser.add_argument("--delay", type=int, default=100, help="milliseconds that the judge takes")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    ideal = given.replies * given.delay / 1000 / given.concurrency
    judge, base_url = start_judge(given.delay)
    ratios = []
    try:
        for number in range(given.rounds + 1):
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                if number == 0:
                    # Once for the imports, which a process pays once.
                    judged(given.concurrency, base_url, given.concurrency)
                    continue
                hand = asyncio.run(by_hand(given.replies, base_url, given.concurrency))
                cpu = time.process_time()
                taken, run = judged(given.replies, base_url, given.concurrency)
                cpu = time.process_time() - cpu
                again, rerun = judged(given.replies, base_url, given.concurrency)
                os.chdir("/")
            assert run.info.judge["judged"] == given.replies
            assert rerun.info.judge["cached"] == given.replies
            ratios.append(taken / ideal)
            print(
                f"round {number}: judged in {taken:.2f} s, ideal {ideal:.2f} s, ratio {taken / ideal:.3f}; "
                f"bare aiohttp {hand:.2f} s; {cpu:.2f} CPU s; from the cache {again:.2f} s"
            )
    finally:
        judge.terminate()
        judge.wait()
    print(f"ratio to the ideal: best {min(ratios):.3f}, worst {max(ratios):.3f}")


if __name__ == "__main__":
    main()
