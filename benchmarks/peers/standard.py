"""What every peer is given: the questions, a way to ask the chatbot, and the standard score. Nothing but aiohttp is needed."""

import json
import sys
from typing import Any

import aiohttp

PATH, URL, CONCURRENCY = sys.argv[1], sys.argv[2], int(sys.argv[3])


def questions() -> list[dict[str, Any]]:
    """The golden set."""
    with open(PATH) as file:
        return [json.loads(line) for line in file]


def new_session() -> aiohttp.ClientSession:
    """Connections to the chatbot, to be made within the event loop."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY))


async def ask(session: aiohttp.ClientSession, question: str) -> dict[str, Any]:
    """The chatbot's reply."""
    async with session.post(URL, json={"question": question}) as response:
        return await response.json()


def score(question: dict[str, Any], reply: dict[str, Any]) -> float:
    """0.4 for the tools, 0.4 for the keywords, 0.2 for no error."""
    tools = all(tool in reply.get("tools_used", []) for tool in question["expected_tools"])
    text = reply["answer"].lower()
    keywords = question["expected_keywords"]
    quality = sum(keyword.lower() in text for keyword in keywords) / len(keywords)
    return 0.4 * tools + 0.4 * quality + 0.2 * (not reply.get("error"))


def print_mean(scores: list[float]) -> None:
    """What the benchmark reads."""
    print(json.dumps({"score": sum(scores) / len(scores), "replies": len(scores)}))
