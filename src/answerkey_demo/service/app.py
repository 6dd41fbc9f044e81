"""The application: routes, headers, and how a failure of the assistant becomes a status."""

import contextlib
import json
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from answerkey_demo.chatbot import Chatbot
from answerkey_demo.service.feedback import FeedbackLog, forward
from answerkey_demo.service.requests import read_chat, read_feedback
from answerkey_demo.tools.database import ToolExecutionError
from answerkey_demo.tools.turn import TOOL_SCHEMAS

__all__ = ["create_app"]

_HERE = Path(__file__).parent
_PAGES = _HERE / "pages"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# replies that a verdict may be about
_REMEMBERED = 10_000
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
_EXAMPLES = [
    "What is our property's total basis?",
    "What was my rental income in August 2024?",
    "Is anything overdue?",
    "What does the operating agreement say about selling real estate?",
    "How much did we pay for insurance in 2024, and what is the deductible of the landlord policy?",
]
# What the assistant may raise → the kind of error and the status of the reply.
_FAILURES: list[tuple[tuple[type[Exception], ...], str, int]] = [
    ((TimeoutError,), "timeout", 504),
    ((ConnectionError, sqlite3.OperationalError), "connection", 503),
    ((MemoryError,), "memory", 500),
    ((ToolExecutionError,), "tool", 500),
    ((Exception,), "exception", 500),
]


def create_app(
    chatbot: Chatbot, feedback: FeedbackLog, *, feedback_url: str | None = None, loopback: bool = True
) -> Starlette:
    """The service around a chatbot.

    Verdicts go to `feedback`, and to the harness at `feedback_url` if given. `loopback`: it is served on this machine
    only, so that a request for any other host name comes from a page that tricked the browser (DNS rebinding).
    """
    service = _Service(chatbot, feedback, feedback_url)

    async def guard(request: Request, answer: RequestResponseEndpoint) -> Response:
        refused = _refused(request, loopback=loopback)
        response = _problem(403, refused) if refused else await answer(request)
        response.headers.update(_HEADERS)
        return response

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        feedback.close()

    return Starlette(
        lifespan=lifespan,
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
        exception_handlers={HTTPException: _refusal},
        routes=[
            Route("/chat", service.chat, methods=["POST"]),
            Route("/feedback", service.judge, methods=["POST"]),
            Route("/feedback", service.verdicts),
            Route("/health", service.health),
            Route("/openapi.json", service.openapi),
            Route("/", service.page),
            Route("/docs", service.docs),
            *(Route(f"/{name}", _asset) for name in ("chat.js", "chat.css", "icon.svg")),
        ],
    )


class _Service:
    """What each address answers."""

    def __init__(self, chatbot: Chatbot, feedback: FeedbackLog, feedback_url: str | None) -> None:
        self._chatbot = chatbot
        self._feedback = feedback
        self._feedback_url = feedback_url
        self._templates = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
        api = (
            (_HERE / "openapi.json").read_text(encoding="utf-8").replace("COMPANY", chatbot.knowledge.company)
        )
        self._api = json.loads(api)
        # response id → (question, reply), so that a verdict is kept and passed on with what it is about
        self._replies: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()

    async def chat(self, request: Request) -> Response:
        question, conversation_id = await read_chat(request)
        try:
            reply = await self._chatbot.ask(question, conversation_id)
        except Exception as error:  # noqa: BLE001 (whatever the assistant raises is told, never hidden)
            return _failure(error, conversation_id)
        said = {**reply, "question": question, "created_at": datetime.now(UTC).isoformat()}
        self._replies[reply["response_id"]] = (question, said)
        if len(self._replies) > _REMEMBERED:
            self._replies.popitem(last=False)
        return JSONResponse(reply)

    async def judge(self, request: Request) -> Response:
        verdict = await read_feedback(request)
        question, reply = self._replies.get(verdict["response_id"] or "", (None, {}))
        number, new = self._feedback.add({**verdict, "question": question, "answer": reply.get("answer")})
        outcome: dict[str, Any] = {"id": number, "stored": True, "new": new}
        if self._feedback_url and new:
            problem = await forward(self._feedback_url, verdict, reply)
            outcome |= {"forwarded": problem is None} | ({"reason": problem} if problem else {})
            if problem is None:
                self._feedback.mark_forwarded(number)
        return JSONResponse(outcome, status_code=201 if new else 200)

    async def verdicts(self, request: Request) -> Response:
        return JSONResponse({"feedback": self._feedback.latest()})

    async def page(self, request: Request) -> Response:
        bot = self._chatbot
        values = {"company": bot.knowledge.company, "variant": bot.variant.name, "examples": _EXAMPLES}
        return HTMLResponse(self._templates.get_template("chat.html").render(values))

    async def docs(self, request: Request) -> Response:
        page = self._templates.get_template("docs.html")
        return HTMLResponse(page.render(api=self._api, tools=TOOL_SCHEMAS))

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(self._api)

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "variant": self._chatbot.variant.name})


async def _asset(request: Request) -> Response:
    return FileResponse(_PAGES / request.url.path.rpartition("/")[2])


async def _refusal(request: Request, error: Exception) -> Response:
    """What a request that is not understood gets; an address or a method that does not exist is explained."""
    status, reason = getattr(error, "status_code", 400), getattr(error, "detail", "")
    missing = {404: "there is nothing at this address; see /docs", 405: "this address takes another method"}
    return _problem(status, missing.get(status, reason))


def _refused(request: Request, *, loopback: bool) -> str:
    """Why a page of another site must not use the service through a visitor's browser, or ""."""
    if loopback and request.url.hostname not in _LOOPBACK:
        return "this service answers to localhost only; start it with --host for others"
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host"):
        return "requests from pages of other origins are refused"
    return ""


def _problem(status: int, reason: str) -> Response:
    return JSONResponse({"error": {"kind": "request", "message": reason}}, status_code=status)


def _failure(error: Exception, conversation_id: str | None) -> Response:
    """The reply document of a failed turn: no answer, the tools that were called, and what went wrong."""
    kind, status = next((kind, status) for types, kind, status in _FAILURES if isinstance(error, types))
    calls = getattr(error, "tool_calls", [])
    reply = {
        "answer": None,
        "tools_used": list(dict.fromkeys(call["name"] for call in calls)),
        "tool_calls": calls,
        "sources": [],
        "error": {"kind": kind, "message": f"{type(error).__name__}: {error}"},
        "conversation_id": conversation_id,
        "response_id": None,
    }
    return JSONResponse(reply, status_code=status)
