"""The job of `answerkey run`, written by hand on aiohttp: ask, score to the standard, write a file, print the mean.

    python by_hand.py QUESTIONS URL CONCURRENCY [light|heavy]

light: tools, keywords and an error field; JSON Lines. heavy: also what a careful author would add: a timeout and retries,
three patterns for errors in the text, latencies with percentiles, means by category, and each reply durable in SQLite.
"""

import asyncio
import json
import re
import sqlite3
import sys
import time
from collections import defaultdict
from pathlib import Path

import aiohttp

TRACE = re.compile(r"Traceback \(most recent call last\)|\w+(?:Error|Exception):", re.IGNORECASE)
FAILED = re.compile(r"\b(?:an error occurred|internal server error|bad gateway|timed out)\b", re.IGNORECASE)
SORRY = re.compile(
    r"\b(?:sorry|unable|cannot|could not)\b.{0,40}\b(?:process|access|complete)\b", re.IGNORECASE
)


def score(question: dict, reply: dict, wrong: bool) -> float:
    tools = all(tool in reply.get("tools_used", []) for tool in question["expected_tools"])
    text = reply["answer"].lower()
    keywords = question["expected_keywords"]
    quality = sum(keyword.lower() in text for keyword in keywords) / len(keywords)
    return 0.4 * tools + 0.4 * quality + 0.2 * (not wrong)


async def light(session: aiohttp.ClientSession, path: str, url: str, concurrency: int) -> list[float]:
    scores = []
    questions = iter([json.loads(line) for line in Path(path).open()])
    with open(path + ".out", "w") as out:

        async def work() -> None:
            for question in questions:
                async with session.post(url, json={"question": question["question"]}) as response:
                    reply = await response.json()
                points = score(question, reply, bool(reply.get("error")))
                scores.append(points)
                out.write(json.dumps({"id": question["id"], "score": points, "reply": reply}) + "\n")

        await asyncio.gather(*(work() for _ in range(concurrency)))
    return scores


async def heavy(session: aiohttp.ClientSession, path: str, url: str, concurrency: int) -> list[float]:
    scores, latencies, by_category = [], [], defaultdict(list)
    questions = iter([json.loads(line) for line in Path(path).open()])
    Path(path + ".db").unlink(missing_ok=True)
    store = sqlite3.connect(path + ".db")
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA synchronous = FULL")
    store.execute("CREATE TABLE replies (id TEXT PRIMARY KEY, score REAL, latency REAL, reply TEXT)")

    async def ask(question: dict) -> dict:
        for _ in range(3):
            async with (
                asyncio.timeout(60),
                session.post(url, json={"question": question["question"]}) as response,
            ):
                if response.status not in (429, 503):
                    return await response.json()
            await asyncio.sleep(1)
        return {"answer": "", "error": "gave up"}

    async def work() -> None:
        for question in questions:
            begun = time.perf_counter()
            reply = await ask(question)
            latencies.append(time.perf_counter() - begun)
            text = reply["answer"]
            wrong = bool(
                reply.get("error") or TRACE.search(text) or FAILED.search(text) or SORRY.search(text)
            )
            points = score(question, reply, wrong)
            scores.append(points)
            by_category[question["category"]].append(points)
            store.execute(
                "INSERT INTO replies VALUES (?, ?, ?, ?)",
                (question["id"], points, latencies[-1], json.dumps(reply)),
            )
            if len(scores) % 500 == 0:
                store.commit()

    await asyncio.gather(*(work() for _ in range(concurrency)))
    store.commit()
    latencies.sort()
    print({name: sum(points) / len(points) for name, points in by_category.items()}, file=sys.stderr)
    print([latencies[int(len(latencies) * share)] for share in (0.5, 0.95, 0.99)], file=sys.stderr)
    return scores


async def main(path: str, url: str, concurrency: int, kind: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        scores = await {"light": light, "heavy": heavy}[kind](session, path, url, concurrency)
    print(json.dumps({"score": sum(scores) / len(scores)}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "light"))
