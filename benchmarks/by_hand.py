"""The job of `answerkey run`, written by hand on aiohttp: ask, score to the standard, keep JSON Lines, print the mean."""

import asyncio
import json
import sys

import aiohttp


def score(question: dict, reply: dict) -> float:
    tools = all(tool in reply.get("tools_used", []) for tool in question["expected_tools"])
    text = reply["answer"].lower()
    keywords = question["expected_keywords"]
    quality = sum(keyword.lower() in text for keyword in keywords) / len(keywords)
    return 0.4 * tools + 0.4 * quality + 0.2 * (not reply.get("error"))


async def main(path: str, url: str, concurrency: int) -> None:
    scores = []
    questions = iter([json.loads(line) for line in open(path)])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:
        with open(path + ".out", "w") as out:

            async def work() -> None:
                for question in questions:
                    async with session.post(url, json={"question": question["question"]}) as response:
                        reply = await response.json()
                    points = score(question, reply)
                    scores.append(points)
                    out.write(json.dumps({"id": question["id"], "score": points, "reply": reply}) + "\n")

            await asyncio.gather(*(work() for _ in range(concurrency)))
    print(json.dumps({"score": sum(scores) / len(scores)}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
