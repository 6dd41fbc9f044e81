"""The application: routes, headers, and how a failure of the assistant becomes a status."""

import contextlib
import json
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from answerkey_demo.chatbot import Chatbot
from answerkey_demo.service.feedback import FeedbackLog, forward
from answerkey_demo.service.requests import BadRequest, read_chat, read_feedback, read_json
from answerkey_demo.tools.failure import ToolExecutionError
from answerkey_demo.tools.toolbox import TOOL_SCHEMAS

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
_Handler = Callable[[Request], Awaitable[Response]]


def create_app(
    chatbot: Chatbot, feedback: FeedbackLog, *, feedback_url: str | None = None, loopback: bool = True
) -> Starlette:
    """The service around a chatbot.

    Verdicts go to `feedback`, and to the harness at `feedback_url` if given. `loopback`: it is served on this machine
    only, so that a request for any other host name comes from a page that tricked the browser (DNS rebinding).
    """
    templates = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
    api = json.loads((_HERE / "openapi.json").read_text(encoding="utf-8").replace("COMPANY", chatbot.company))
    # response id → (question, answer), so that a verdict is kept with what it is about
    replies: OrderedDict[str, tuple[str, str | None]] = OrderedDict()

    async def chat(request: Request) -> Response:
        question, conversation_id = read_chat(await read_json(request))
        try:
            reply = await chatbot.ask(question, conversation_id)
        except Exception as error:  # noqa: BLE001 (whatever the assistant raises is told, never hidden)
            return _failure(error, conversation_id)
        replies[reply["response_id"]] = (question, reply["answer"])
        if len(replies) > _REMEMBERED:
            replies.popitem(last=False)
        return JSONResponse(reply)

    async def judge(request: Request) -> Response:
        verdict = read_feedback(await read_json(request))
        question, answer = replies.get(verdict["response_id"] or "", (None, None))
        number, new = feedback.add({**verdict, "question": question, "answer": answer})
        outcome: dict[str, Any] = {"id": number, "stored": True, "new": new}
        if feedback_url and new:
            problem = await forward(feedback_url, verdict)
            outcome["forwarded"] = problem is None
            if problem is None:
                feedback.mark_forwarded(number)
            else:
                outcome["reason"] = problem
        return JSONResponse(outcome, status_code=201 if new else 200)

    async def verdicts(request: Request) -> Response:
        return JSONResponse({"feedback": feedback.latest()})

    async def page(request: Request) -> Response:
        values = {"company": chatbot.company, "variant": chatbot.variant.name, "examples": _EXAMPLES}
        return HTMLResponse(templates.get_template("chat.html").render(values))

    async def docs(request: Request) -> Response:
        return HTMLResponse(templates.get_template("docs.html").render(api=api, tools=TOOL_SCHEMAS))

    async def openapi(request: Request) -> Response:
        return JSONResponse(api)

    async def health(request: Request) -> Response:
        state = {"status": "ok", "variant": chatbot.variant.name, "notice": chatbot.notice or None}
        return JSONResponse(state)

    async def asset(request: Request) -> Response:
        return FileResponse(_PAGES / request.url.path.rpartition("/")[2])

    async def missing(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        reason = {405: "this address takes another method"}.get(status, "nothing is here; see /docs")
        return _problem(status, reason)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await chatbot.warm_up()
        yield
        feedback.close()

    def guarded(handler: _Handler) -> _Handler:
        async def call(request: Request) -> Response:
            try:
                _check_origin(request, loopback=loopback)
                response = await handler(request)
            except BadRequest as refused:
                return _problem(refused.status, refused.reason)
            response.headers.update(_HEADERS)
            return response

        return call

    pages: dict[str, _Handler] = {"/": page, "/docs": docs, "/openapi.json": openapi, "/health": health}
    pages |= {"/feedback": verdicts, "/chat.js": asset, "/chat.css": asset, "/icon.svg": asset}
    return Starlette(
        lifespan=lifespan,
        exception_handlers={404: missing, 405: missing},
        routes=[
            Route("/chat", guarded(chat), methods=["POST"]),
            Route("/feedback", guarded(judge), methods=["POST"]),
            *(Route(path, guarded(handler)) for path, handler in pages.items()),
        ],
    )


def _check_origin(request: Request, *, loopback: bool) -> None:
    """A page of another site must not use the service through a visitor's browser."""
    if loopback and request.url.hostname not in _LOOPBACK:
        raise BadRequest("this service answers to localhost only; start it with --host for others", 403)
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host"):
        raise BadRequest("requests from pages of other origins are refused", 403)


def _problem(status: int, reason: str) -> Response:
    error = {"kind": "request", "message": reason}
    return JSONResponse({"error": error}, status_code=status, headers=_HEADERS)


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
