"""A chatbot behind FastAPI whose replies have a shape of their own; answerkey.toml says where their parts are.

pip install fastapi uvicorn
uvicorn app:app --port 8000 &
answerkey run
"""

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI(title="Shop assistant")
ORDERS = {"1001": "was delivered on May 3", "1002": "is on its way and arrives on May 9"}
POLICIES = {
    "return": "You can return anything within 30 days.",
    "shipping": "Shipping is free from 50 euros, otherwise 4.90.",
}


class Prompt(BaseModel):
    """What the chat page sends."""

    text: str
    session: str


@app.post("/v1/assistant")
def assistant(prompt: Prompt) -> dict[str, object]:
    """Answer one message."""
    for number, status in ORDERS.items():
        if number in prompt.text:
            return reply(f"Order {number} {status}.", tool="order_status", arguments={"order": number})
    for word, policy in POLICIES.items():
        if word in prompt.text.lower():
            return reply(policy, tool="search_policies", arguments={"query": word})
    return reply("I can help with orders, returns and shipping.")


def reply(text: str, tool: str | None = None, arguments: dict[str, str] | None = None) -> dict[str, object]:
    """The reply's shape."""
    steps = [{"kind": "tool", "tool": tool, "input": arguments}] if tool else []
    return {"data": {"final": {"text": text}, "steps": steps}}
