"""The application: routes, headers, and how a failure of the assistant becomes a status."""

import contextlib
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
from answerkey_demo.service.openapi import describe
from answerkey_demo.service.requests import BadRequest, read_chat, read_feedback, read_json
from answerkey_demo.tools.failure import ToolExecutionError
from answerkey_demo.tools.toolbox import TOOL_SCHEMAS

__all__ = ["create_app"]

_PAGES = Path(__file__).parent / "pages"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
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


def create_app(
    chatbot: Chatbot, feedback: FeedbackLog, *, feedback_url: str | None = None, loopback: bool = True
) -> Starlette:
    """The service around a chatbot.

    Verdicts go to `feedback`, and to the harness at `feedback_url` if given. `loopback`: it is served on this machine
    only, so that a request for any other host name comes from a page that tricked the browser (DNS rebinding).
    """
    templates = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
    # response id → (question, answer), so that a verdict is kept with what it is about
    replies: OrderedDict[str, tuple[str, str | None]] = OrderedDict()

    async def chat(request: Request) -> Response:
        question, conversation_id = read_chat(await read_json(request))
        try:
            reply = await chatbot.ask(question, conversation_id)
        except Exception as error:  # noqa: BLE001 (whatever the assistant raises is told, never hidden)
            return _failure(error, conversation_id)
        replies[reply["response_id"]] = (question, reply["answer"])
        while len(replies) > _REMEMBERED:
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
        template = templates.get_template("chat.html")
        return HTMLResponse(
            template.render(company=chatbot.company, variant=chatbot.variant.name, examples=_EXAMPLES)
        )

    async def docs(request: Request) -> Response:
        template = templates.get_template("docs.html")
        return HTMLResponse(template.render(api=describe(chatbot.company), tools=TOOL_SCHEMAS))

    async def openapi(request: Request) -> Response:
        return JSONResponse(describe(chatbot.company))

    async def health(request: Request) -> Response:
        return JSONResponse(
            {"status": "ok", "variant": chatbot.variant.name, "notice": chatbot.notice or None}
        )

    async def asset(request: Request) -> Response:
        return FileResponse(_PAGES / request.path_params["name"])

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await chatbot.warm_up()
        yield
        feedback.close()

    def guarded(
        handler: Callable[[Request], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def call(request: Request) -> Response:
            try:
                _check_origin(request, loopback=loopback)
                response = await handler(request)
            except BadRequest as refused:
                response = _problem(refused.status, refused.reason)
            response.headers.update(_HEADERS)
            return response

        return call

    async def missing(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        reason = (
            "this address takes another method"
            if status == 405
            else "there is nothing at this address; see /docs"
        )
        response = _problem(status, reason)
        response.headers.update(_HEADERS)
        return response

    return Starlette(
        lifespan=lifespan,
        exception_handlers={404: missing, 405: missing},
        routes=[
            Route("/", guarded(page)),
            Route("/chat", guarded(chat), methods=["POST"]),
            Route("/feedback", guarded(judge), methods=["POST"]),
            Route("/feedback", guarded(verdicts)),
            Route("/docs", guarded(docs)),
            Route("/openapi.json", guarded(openapi)),
            Route("/health", guarded(health)),
            *(
                Route(f"/{name}", _named(guarded(asset), name))
                for name in ("chat.js", "chat.css", "icon.svg")
            ),
        ],
    )


def _named(
    handler: Callable[[Request], Awaitable[Response]], name: str
) -> Callable[[Request], Awaitable[Response]]:
    async def call(request: Request) -> Response:
        request.path_params["name"] = name
        return await handler(request)

    return call


def _check_origin(request: Request, *, loopback: bool) -> None:
    """A page of another site must not use the service through a visitor's browser."""
    if loopback and request.url.hostname not in _LOOPBACK:
        raise BadRequest("this service answers to localhost only; start it with --host for others", 403)
    origin = request.headers.get("origin")
    if origin and urlsplit(origin).netloc != request.headers.get("host"):
        raise BadRequest("requests from pages of other origins are refused", 403)


def _problem(status: int, reason: str) -> Response:
    return JSONResponse({"error": {"kind": "request", "message": reason}}, status_code=status)


def _failure(error: Exception, conversation_id: str | None) -> Response:
    """The reply document of a failed turn: no answer, the tools that were called, and what went wrong."""
    kind, status = "exception", 500
    if isinstance(error, TimeoutError):
        kind, status = "timeout", 504
    elif isinstance(error, ConnectionError | sqlite3.OperationalError):
        kind, status = "connection", 503
    elif isinstance(error, MemoryError):
        kind = "memory"
    elif isinstance(error, ToolExecutionError):
        kind = "tool"
    calls = getattr(error, "tool_calls", [])
    return JSONResponse(
        {
            "answer": None,
            "tools_used": list(dict.fromkeys(call["name"] for call in calls)),
            "tool_calls": calls,
            "sources": [],
            "error": {"kind": kind, "message": f"{type(error).__name__}: {error}"},
            "conversation_id": conversation_id,
            "response_id": None,
        },
        status_code=status,
    )
