"""1,000 judged replies with a judge that takes 100 ms, 50 at once: wall time beside the ideal and a bare aiohttp client.

python benchmarks/judging.py [--replies 1000] [--delay 100] [--concurrency 50] [--rounds 3]
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

import answerkey

JUDGE = Path(__file__).parent.parent / "tests" / "judge" / "scripted_judge.py"


def start_judge() -> tuple[subprocess.Popen, str]:
    judge = subprocess.Popen([sys.executable, JUDGE], stdout=subprocess.PIPE, text=True)
    assert judge.stdout is not None
    return judge, f"http://127.0.0.1:{judge.stdout.readline().split()[1]}/v1"


def answer(question: str) -> str:
    return f"The answer to {question!r} is 900 S 9th St, Montrose, Colorado."


def judged(count: int, base_url: str, delay: int, concurrency: int) -> tuple[float, answerkey.Run]:
    """Seconds from the first question to the summary, everything stored."""
    questions = [
        {"id": f"q{n}", "question": f"Where is property {n}?", "reference_answer": "900 S 9th St, Montrose."}
        for n in range(count)
    ]
    settings = answerkey.JudgeSettings(model=f"delay:{delay}", base_url=base_url, concurrency=concurrency)
    begun = time.perf_counter()
    run = answerkey.evaluate(questions, answer, judge=settings)
    return time.perf_counter() - begun, run


async def by_hand(count: int, base_url: str, delay: int, concurrency: int) -> float:
    """The same calls without anything around them: no cache, no store, no parsing of verdicts."""
    system = "- accuracy: ?\n" + "x" * 3000
    slots = asyncio.Semaphore(concurrency)

    async def call(session: aiohttp.ClientSession, number: int) -> None:
        user = "<<<DATA 00>>>\n" + json.dumps({"reply": f"reply {number}"}) + "\n<<<END DATA 00>>>\n"
        body = {
            "model": f"delay:{delay}",
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        }
        async with slots, session.post(f"{base_url}/chat/completions", json=body) as response:
            await response.json()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        begun = time.perf_counter()
        await asyncio.gather(*(call(session, number) for number in range(count)))
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
    ratios = []
    for number in range(1, given.rounds + 1):
        judge, base_url = start_judge()
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                hand = asyncio.run(by_hand(given.replies, base_url, given.delay, given.concurrency))
                cpu = time.process_time()
                taken, run = judged(given.replies, base_url, given.delay, given.concurrency)
                cpu = time.process_time() - cpu
                again, rerun = judged(given.replies, base_url, given.delay, given.concurrency)
                os.chdir("/")
        finally:
            judge.terminate()
            judge.wait()
        assert run.info.judge["judged"] == given.replies
        assert rerun.info.judge["cached"] == given.replies
        ratios.append(taken / ideal)
        print(
            f"round {number}: judged in {taken:.2f} s, ideal {ideal:.2f} s, ratio {taken / ideal:.3f}; "
            f"bare aiohttp {hand:.2f} s; {cpu:.2f} CPU s; again from the cache {again:.2f} s"
        )
    print(f"best ratio to the ideal {min(ratios):.3f}, worst {max(ratios):.3f}")


if __name__ == "__main__":
    main()
