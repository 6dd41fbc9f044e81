"""The service: what each address accepts and answers, how a failure becomes a status, and thumbs up and down."""

import contextlib
import json
import sqlite3
import threading
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

from answerkey_demo.chatbot import Chatbot, post_json
from answerkey_demo.tools import TOOL_SCHEMAS, ToolExecutionError, headers_of, read_fault

_PAGES, _ASSETS = Path(__file__).parent / "pages", ("/chat.js", "/chat.css", "/icon.svg")
_MAX_BODY, _MAX_ID, _MAX_COMMENT = 64 * 1024, 200, 4_000
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
_TEXTS = ("response_id", "conversation_id", "question", "answer", "value", "comment", "idempotency_key")
_COLUMNS = ("id", "at", *_TEXTS, "forwarded")


class FeedbackLog:
    """Appends verdicts to a file; the same idempotency key is kept once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS feedback (id INTEGER PRIMARY KEY, at TEXT NOT NULL, response_id TEXT,"
            " conversation_id TEXT, question TEXT, answer TEXT, value TEXT NOT NULL, comment TEXT,"
            " idempotency_key TEXT UNIQUE, forwarded INTEGER NOT NULL DEFAULT 0)"
        )

    def add(self, verdict: dict[str, Any]) -> tuple[int, bool]:
        """Keep a verdict; gives its number and whether it is new."""
        values = {"at": datetime.now(UTC).isoformat()} | {name: verdict.get(name) for name in _TEXTS}
        marks = ", ".join(f":{name}" for name in values)
        with self._lock, self._db:
            insert = f"INSERT INTO feedback ({', '.join(values)}) VALUES ({marks})"
            added = self._db.execute(f"{insert} ON CONFLICT DO NOTHING RETURNING id", values).fetchone()
            known = "SELECT id FROM feedback WHERE idempotency_key = :idempotency_key"
            row = added or self._db.execute(known, values).fetchone()
            return int(row[0]), added is not None

    def mark_forwarded(self, number: int) -> None:
        """Note that the harness has it too."""
        with self._lock, self._db:
            self._db.execute("UPDATE feedback SET forwarded = 1 WHERE id = ?", [number])

    def latest(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest verdicts first."""
        newest = f"SELECT {', '.join(_COLUMNS)} FROM feedback ORDER BY id DESC LIMIT ?"
        with self._lock:
            return [dict(zip(_COLUMNS, row, strict=True)) for row in self._db.execute(newest, [limit])]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def create_app(
    chatbot: Chatbot, feedback: FeedbackLog, *, feedback_url: str | None = None, loopback: bool = True
) -> Starlette:
    """The service around a chatbot.

    Verdicts go to `feedback`, and to the harness at `feedback_url` if given. `loopback`: it is served on this machine
    only, so that a request for any other host name comes from a page that tricked the browser (DNS rebinding).
    """
    service, company = _Service(chatbot, feedback, feedback_url), chatbot.knowledge.company
    templates = Environment(loader=FileSystemLoader(_PAGES), autoescape=True)
    api = json.loads((_PAGES / "openapi.json").read_text(encoding="utf-8").replace("COMPANY", company))
    shown: dict[str, Any] = {"company": company, "variant": chatbot.variant.name, "examples": _EXAMPLES}
    shown |= {"api": api, "tools": TOOL_SCHEMAS}

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
            Route("/feedback", lambda _: JSONResponse({"feedback": feedback.latest()})),
            Route("/health", lambda _: JSONResponse({"status": "ok", "variant": chatbot.variant.name})),
            Route("/openapi.json", lambda _: JSONResponse(api)),
            Route("/", lambda _: HTMLResponse(templates.get_template("chat.html").render(shown))),
            Route("/docs", lambda _: HTMLResponse(templates.get_template("docs.html").render(shown))),
            *(Route(path, lambda request: FileResponse(_PAGES / request.url.path[1:])) for path in _ASSETS),
        ],
    )


class _Service:
    """What is sent to it: questions, and verdicts on the replies."""

    def __init__(self, chatbot: Chatbot, feedback: FeedbackLog, feedback_url: str | None) -> None:
        self._chatbot = chatbot
        self._feedback = feedback
        self._feedback_url = feedback_url
        # response id → (question, reply), so that a verdict is kept and passed on with what it is about
        self._replies: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()

    async def chat(self, request: Request) -> Response:
        given = await _texts(request, question=_MAX_BODY, conversation_id=_MAX_ID)
        question, conversation_id = given.values()
        if question is None:
            raise HTTPException(400, 'the field "question" is missing')
        fault = read_fault(request.headers.get("answerkey-fault"))
        try:
            reply = await self._chatbot.ask(question, conversation_id, fault=fault)
        except Exception as error:  # noqa: BLE001 (whatever the assistant raises is reported, never hidden)
            failed = _failure(error, conversation_id)
            failed.headers.update(headers_of(fault))
            return failed
        said = {**reply, "question": question, "created_at": datetime.now(UTC).isoformat()}
        self._replies[reply["response_id"]] = (question, said)
        if len(self._replies) > _REMEMBERED:
            self._replies.popitem(last=False)
        return JSONResponse(reply, headers=headers_of(fault))

    async def judge(self, request: Request) -> Response:
        ids = dict.fromkeys(("value", "response_id", "conversation_id", "idempotency_key"), _MAX_ID)
        verdict = await _texts(request, comment=_MAX_COMMENT, **ids)
        if verdict["value"] not in ("up", "down"):
            raise HTTPException(400, '"value" must be "up" or "down"')
        if verdict["response_id"] is None and verdict["conversation_id"] is None:
            raise HTTPException(400, '"response_id" or "conversation_id" must say which reply is meant')
        question, reply = self._replies.get(verdict["response_id"] or "", (None, {}))
        number, new = self._feedback.add(verdict | {"question": question, "answer": reply.get("answer")})
        outcome: dict[str, Any] = {"id": number, "stored": True, "new": new}
        if self._feedback_url and new:
            problem = await _forward(self._feedback_url, verdict, reply)
            outcome |= {"forwarded": problem is None} | ({"reason": problem} if problem else {})
            if problem is None:
                self._feedback.mark_forwarded(number)
        return JSONResponse(outcome, status_code=201 if new else 200)


async def _texts(request: Request, **limits: int) -> dict[str, str | None]:
    """The fields of a request's JSON object, each a text of limited length, or None."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send the request as application/json")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise HTTPException(413, f"the body is larger than {_MAX_BODY:,} bytes")
    try:
        document = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise HTTPException(400, "the body is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise HTTPException(400, f"the body is not valid JSON {where}") from None
    except RecursionError:
        raise HTTPException(400, "the body is not valid JSON: it is nested too deeply") from None
    if not isinstance(document, dict):
        raise HTTPException(400, 'the body must be a JSON object like {"question": "…"}')
    given = {name: document.get(name) for name in limits}
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise HTTPException(400, f'"{name}" must be a string')
        if value and len(value) > limits[name]:
            raise HTTPException(400, f'"{name}" is longer than {limits[name]:,} characters')
        if value and any(0xD800 <= ord(c) < 0xE000 for c in value):
            raise HTTPException(400, f'"{name}" contains half of a surrogate pair')
    return given


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


async def _forward(url: str, verdict: dict[str, Any], reply: dict[str, Any]) -> str | None:
    """Send a verdict and, if it is known, its reply to a harness's feedback endpoint; gives the reason if that fails."""
    given = {**verdict, "reply_id": verdict["response_id"], "response_id": None, "reply": reply or None}
    body = {name: value for name, value in given.items() if value is not None}
    try:
        status, _ = await post_json(url, body, seconds=5)
        return None if status < 400 else f"{url} answered {status}"
    except (OSError, ValueError) as error:
        return f"{url} could not be reached: {type(error).__name__}"
