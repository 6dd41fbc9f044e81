"""The application: routes, what happens when something goes wrong, and the store that all of it reads."""

import sys
import traceback
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from answerkey.config import Settings
from answerkey.errors import AnswerkeyError, StoreError, UnknownNameError, UsageError
from answerkey.evaluation.production_grading import ProductionGrading
from answerkey.server.actions import action_routes
from answerkey.server.assets import asset_routes
from answerkey.server.gatekeeper import Gatekeeper
from answerkey.server.intake import Intake, KeyUsedError, TraceIntake
from answerkey.server.openapi import openapi_document
from answerkey.server.pages import PAGES, Page
from answerkey.server.query import know_any_id, read_query
from answerkey.server.rendering import JsonResponse, refuse, render
from answerkey.server.roles import Visitor, person_visiting, site_sending
from answerkey.server.settings import ServerSettings
from answerkey.store.people import People, SavedViews, Sites
from answerkey.store.sql import SqlStore


class StoreHolder:
    """Opens the store when it is first needed, and again as long as that fails."""

    def __init__(self, opener: Callable[[], SqlStore]) -> None:
        self._opener = opener
        self._store: SqlStore | None = None
        self._lock = Lock()

    def get(self) -> SqlStore:
        """The open store; raises StoreError while it cannot be opened."""
        with self._lock:
            if self._store is None:
                self._store = self._opener()
                self._store.tune_for_serving()
            return self._store

    def close(self) -> None:
        """Give it back."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def by_secret(self, secret: str) -> Visitor | None:
        """Who a program's secret belongs to: a person's token, or a site's key."""
        store = self.get()
        return person_visiting(People(store).holder_of(secret)) or site_sending(
            Sites(store).holder_of(secret)
        )

    def by_session(self, session: str) -> Visitor | None:
        """Who is signed in."""
        return person_visiting(People(self.get()).in_session(session))


def create_app(
    opener: Callable[[], SqlStore],
    settings: ServerSettings | None = None,
    configured: Settings | None = None,
) -> Starlette:
    """The dashboard over the store that `opener` opens."""
    served = settings or ServerSettings()
    holder = StoreHolder(opener)
    know_any_id()
    routes = [
        Route("/api/openapi.json", _openapi, methods=["GET"]),
        *asset_routes(),
        *action_routes(),
        *(route for page in PAGES for route in _page_routes(page, holder)),
    ]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Gatekeeper, settings=served, by_secret=holder.by_secret, by_session=holder.by_session),
            # No page holds a secret, so that its size tells none.
            Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5),
        ],
        exception_handlers={AnswerkeyError: _known_error, HTTPException: _http_error, Exception: _bug},
    )
    app.state.holder = holder
    app.state.settings = served
    grading = ProductionGrading(configured or Settings(), served.questions)
    app.state.grading = grading
    app.state.traces = TraceIntake()
    app.state.intake = Intake(grading, app.state.traces)
    return app


def _page_routes(page: Page, holder: StoreHolder) -> Iterator[Route]:
    def load(request: Request) -> Any:
        parts = {name: str(value).replace("\x00", "") for name, value in request.path_params.items()}
        return page.load(holder.get(), read_query(request, page.query), **parts)

    def show_html(request: Request) -> Response:
        views = SavedViews(holder.get(), request.scope["state"]["who"].sender).all()
        return HTMLResponse(render(page.template or "", request.scope, view=load(request), views=views))

    def give_json(request: Request) -> Response:
        return JsonResponse(load(request))

    yield Route(page.api, give_json, methods=["GET"])
    if page.template is not None:
        yield Route(page.path, show_html, methods=["GET"])


def _openapi(request: Request) -> Response:
    return JsonResponse(openapi_document())


async def _known_error(request: Request, error: Exception) -> Response:
    message = str(error)
    if isinstance(error, StoreError):
        refusal = refuse(request.scope, 503, "store_unavailable", message)
        refusal.headers["retry-after"] = "5"
        return refusal
    if isinstance(error, UnknownNameError):
        return await run_in_threadpool(refuse, request.scope, 404, "not_found", message)
    if isinstance(error, KeyUsedError):
        return refuse(request.scope, 409, "key_used", message)
    status = 400 if isinstance(error, UsageError) else 500
    return refuse(request.scope, status, "bad_request" if status == 400 else "failed", message)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is no such page", 405: f"{request.method} is not possible here"}
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "failed")
    refusal = refuse(request.scope, status, code, words.get(status, "the request failed"))
    for name, value in (getattr(error, "headers", None) or {}).items():
        refusal.headers[name] = value
    return refusal


async def _bug(request: Request, error: Exception) -> Response:
    # The reader gets no insides; whoever runs the server does.
    sys.stderr.write("".join(traceback.format_exception(error)))
    return refuse(
        request.scope, 500, "internal_error", "an error in answerkey; the server's terminal shows where"
    )
