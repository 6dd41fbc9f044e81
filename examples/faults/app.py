"""A FastAPI chatbot whose tools `answerkey faults` can break.

pip install fastapi uvicorn answerkey
ANSWERKEY_FAULTS=1 uvicorn app:app --port 8000 &
answerkey faults golden.jsonl --target http://localhost:8000/chat
"""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

import answerkey

app = FastAPI(title="Shop assistant")
ORDERS = {
    "1001": {"order": "1001", "status": "delivered", "date": "2025-05-03"},
    "1002": {"order": "1002", "status": "on its way", "date": "2025-05-09"},
    "1003": {"order": "1003", "status": "packed", "date": "2025-05-12"},
}


class Prompt(BaseModel):
    """What the chat page sends."""

    question: str


@app.middleware("http")
async def faults(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Break a tool as the header says; without ANSWERKEY_FAULTS=1 the header is ignored."""
    with answerkey.fault_scope(request.headers.get("Answerkey-Fault")) as scope:
        try:
            response = await answer(request)
        except Exception:
            if not scope.landed:
                raise
            # A crash over a broken tool is a result as well.
            response = Response(status_code=500)
    response.headers.update(scope.headers)
    return response


@answerkey.fault_point("order_status")
def order_status(number: str) -> dict[str, str]:
    """The record of an order."""
    return ORDERS[number]


@app.post("/chat")
def chat(prompt: Prompt) -> dict[str, object]:
    """Answer one question; an order that cannot be looked up is not guessed."""
    number = next((number for number in ORDERS if number in prompt.question), None)
    if number is None:
        return {"answer": "I can help with orders.", "tool_calls": []}
    call: dict[str, object] = {"name": "order_status", "arguments": {"number": number}}
    try:
        record = order_status(number)
        answer = f"Order {number} is {record['status']}, dated {record['date']}."
        call["result"] = record
    except (RuntimeError, TimeoutError) as error:
        answer = f"I could not look up order {number} just now. Please try again later."
        call["error"] = str(error)
    return {"answer": answer, "tool_calls": [call]}
