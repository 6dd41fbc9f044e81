"""The web application: pages, files, API description and error handling; and what a server does by itself.

By itself it maintains production replies, sends alerts about them, and asks nightly runs.
"""

import hashlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from itertools import chain, islice
from threading import Event, Lock
from typing import Annotated, Any, get_type_hints

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from answerkey.config import NotifySettings, Settings
from answerkey.errors import AnswerkeyError, StoreError, UnknownNameError, UsageError
from answerkey.report.markup import compact_css, report_asset, report_style
from answerkey.report.result_files import ENDINGS, write_table
from answerkey.report.wording import Notice, feedback_notice, send_notice
from answerkey.runs.production import ProductionGrading, proposed_cases
from answerkey.server.access import Gatekeeper, ServerSettings, Visitor, visitor
from answerkey.server.actions import ACTIONS, action_routes
from answerkey.server.comparisons import CompareQuery, export_pairs, load_alignment, load_compare
from answerkey.server.golden_file import ChangedFileError, GoldenFile
from answerkey.server.intake import Intake, JobForm, JobQueue, KeyUsedError, TraceIntake
from answerkey.server.questions import (
    load_feedback,
    load_full_reply,
    load_question,
    load_replies,
    load_reply,
    load_review,
)
from answerkey.server.rendering import (
    JsonResponse,
    feedback_figures,
    read_query,
    refuse,
    register_id_convertor,
    render,
    theme_sheet,
)
from answerkey.server.runs import (
    FEWEST_VERDICTS,
    load_faults,
    load_progress,
    load_run,
    load_runs,
    production_needs,
)
from answerkey.server.tables import export_questions, export_replies, export_runs
from answerkey.store.feedback import FeedbackFilter, SavedViews, Users
from answerkey.store.maintenance import delete_production
from answerkey.store.production import ProductionFilter
from answerkey.store.questions import QuestionFilter, QuestionTable
from answerkey.store.sql import RunFilter, SqlStore
from answerkey.store.table_query import TableFilter

# Between two maintenance runs.
_MAINTENANCE_SECONDS = 20.0
# What is still so is sent again after a week.
_REMINDED = timedelta(days=7)


def run_maintenance_loop(app: Starlette, stopped: Event) -> None:
    """Run maintenance until shutdown; a problem is printed once."""
    printed = None
    while not stopped.is_set():
        problem = run_maintenance(app)
        if problem is not None and problem != printed:
            sys.stderr.write(f"answerkey: maintenance failed: {problem}\n")
        printed = problem
        stopped.wait(_MAINTENANCE_SECONDS)


def run_maintenance(app: Starlette) -> str | None:
    """Delete production replies that are too old, grade the others by the current golden set, send alerts, start runs.

    Returns:
        What went wrong, or None.
    """
    days = app.state.settings.production_days
    try:
        store = app.state.holder.get()
        if days is not None:
            delete_production(store, older_than_days=days)
        app.state.grading.regrade(store)
        app.state.nightly.start_due(store, datetime.now())
        problems = app.state.alerts.send_new(store, datetime.now())
    except AnswerkeyError as error:
        return str(error)
    problem: str | None = app.state.grading.problem
    return problem or next(iter(problems), None)


class ProductionAlerts:
    """Notices about production replies, `[notify]`: each once, and again after a week or once it was better in between."""

    def __init__(self, settings: NotifySettings, address: str) -> None:
        self._settings = settings
        # The public address of this server, for links.
        self._address = address
        # What was sent → when. A restarted server sends it again.
        self._sent: dict[str, datetime] = {}

    def send_new(self, store: SqlStore, moment: datetime) -> list[str]:
        """Send what was not sent yet; returns a line for each place that could not be reached."""
        if not self._settings.configured:
            return []
        found = self._notices(store, moment)
        # What is over may happen again.
        self._sent = {name: sent for name, sent in self._sent.items() if name in found}
        problems: list[str] = []
        for name, notice in found.items():
            if moment - self._sent.get(name, datetime.min) < _REMINDED:
                continue
            self._sent[name] = moment
            problems += send_notice(notice, self._settings)
        return problems

    def _notices(self, store: SqlStore, moment: datetime) -> dict[str, Notice]:
        """What is wrong in production now, by a name."""
        notices: dict[str, Notice] = {
            need.kind: Notice(
                events=(need.kind,),
                title=f"answerkey: {need.words}",
                lines=(f"{self._address}{need.address}",),
            )
            for need in production_needs(store, moment.date())
            if need.kind in self._settings.on
        }
        week = FeedbackFilter(since=str(moment.date() - timedelta(days=6)))
        figures = feedback_figures(store, week)
        low = None if figures.feedback < FEWEST_VERDICTS else feedback_notice(figures, (), self._settings)
        return notices if low is None else {**notices, "satisfaction below its bound": low}


class Nightly:
    """Starts runs at a time of day, `[server] nightly`. A time at which no server ran is not made up for."""

    def __init__(self, settings: ServerSettings, jobs: JobQueue) -> None:
        self._time = settings.nightly_time
        self._targets = settings.nightly_targets
        self._jobs = jobs
        self._next = None if self._time is None else self._after(datetime.now())

    def _after(self, moment: datetime) -> datetime:
        assert self._time is not None
        today = datetime.combine(moment.date(), self._time)
        return today if today > moment else today + timedelta(days=1)

    def start_due(self, store: SqlStore, moment: datetime) -> None:
        """Start the runs if it is time."""
        if self._next is None or moment < self._next:
            return
        day = f"{self._next:%Y-%m-%d}"
        self._next = self._after(moment)
        for target in self._targets or self._jobs.targets[:1]:
            form = JobForm(action="run", target=target, name=f"nightly {day}")
            self._jobs.start(store, form, "nightly")


# Style sheets added to the report's; later ones override earlier ones.
_SHEETS = ("frame.css", "work_table.css", "pages.css")
_MEDIA_TYPES = {"csv": "text/csv", "jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


class _ReplyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which reply to return in full."""

    trial: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    turn: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1


def asset_routes() -> list[Route]:
    return [
        Route("/static/{name}", _static_file, methods=["GET"]),
        Route("/runs/{run}/replies/{question:id}", _full_reply, methods=["GET"]),
        _table_route(
            "/runs/{run}/questions.{ending}", export_questions, QuestionFilter, "questions-of-{run}"
        ),
        _table_route("/compare.{ending}", export_pairs, CompareQuery, "comparison"),
        _table_route("/runs.{ending}", export_runs, RunFilter, "runs"),
        _table_route("/replies.{ending}", export_replies, ProductionFilter, "replies"),
        Route("/feedback/golden.jsonl", _proposed_cases, methods=["GET"]),
        Route("/healthz", lambda _: Response("ok\n", media_type="text/plain"), methods=["GET"]),
    ]


def _static_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _static_files():
        raise UnknownNameError(f"no file {name[:80]!r}")
    content, kind = _static_files()[name]
    return _tagged(request, content.encode(), kind)


def _full_reply(request: Request) -> Response:
    query = read_query(request, _ReplyQuery)
    store = request.app.state.holder.get()
    text = load_full_reply(store, **request.path_params, trial=query.trial, turn=query.turn)
    return Response(text.encode("utf-8", "replace"), media_type="text/plain")


def _table_route(path: str, export: Callable[..., Any], model: type[TableFilter], name: str) -> Route:
    """A route that exports a page's table as a file."""

    def export_table(request: Request) -> Response:
        parts = dict(request.path_params)
        ending = parts.pop("ending")
        if ending not in ENDINGS:
            raise UnknownNameError(f"no .{ending[:20]} of this table; use {', '.join(ENDINGS)}")
        columns, rows = export(request.app.state.holder.get(), read_query(request, model), **parts)
        # What is wrong with the query is answered as an error, not as a file that ends before its first row.
        remaining = iter(rows)
        rows = chain(list(islice(remaining, 1)), remaining)
        filename = re.sub(r"[^\w.-]", "-", name.format(**parts), flags=re.ASCII)[:80]
        return StreamingResponse(
            write_table(columns, rows, ending),
            media_type=_MEDIA_TYPES[ending],
            headers={"content-disposition": f'attachment; filename="{filename}.{ending}"'},
        )

    return Route(path, export_table, methods=["GET"])


def _proposed_cases(request: Request) -> Response:
    cases = proposed_cases(request.app.state.holder.get())
    return StreamingResponse(
        (msgspec.json.encode(case) + b"\n" for case in cases),
        media_type="application/jsonl",
        headers={"content-disposition": 'attachment; filename="golden-from-feedback.jsonl"'},
    )


@cache
def _static_files() -> dict[str, tuple[str, str]]:
    """Name → content and media type of the files that every page loads."""
    sheet = "\n".join((report_asset("charts.css"), *map(_read, _SHEETS)))
    return {
        "report.css": (report_style(), "text/css"),
        "theme.css": (theme_sheet(), "text/css"),
        "dashboard.css": (compact_css(sheet), "text/css"),
        "dashboard.js": (_read("dashboard.js"), "text/javascript"),
        "widths.js": (_read("widths.js"), "text/javascript"),
        "icon.svg": (_read("icon.svg"), "image/svg+xml"),
    }


def _read(name: str) -> str:
    return (files("answerkey.server") / "static" / name).read_text("utf-8")


def _tagged(request: Request, content: bytes, kind: str) -> Response:
    """The content, or status 304 if the browser's copy is current."""
    tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)


# Pages: each has a path, the same data under /api/, a template, and a function that loads it.


class Page:
    """A page; `load` takes the store, the query, and the variable parts of the path as keyword arguments."""

    def __init__(self, path: str, template: str | None, load: Callable[..., Any], summary: str) -> None:
        self.path = path
        self.api = "/api/runs" if path == "/" else f"/api{path}"
        # None: API only.
        self.template = template
        self.load = load
        # For the API's description.
        self.summary = summary
        types = get_type_hints(load)
        # The types of its query string and its data.
        self.query: type[Any] = types["query"]
        self.view: type[Any] = types["return"]

    @property
    def path_names(self) -> list[str]:
        return re.findall(r"\{(\w+)", self.path)


PAGES = (
    Page("/", "runs.html.j2", load_runs, "Runs, newest first, and their trend"),
    Page("/runs/{run}", "run.html.j2", load_run, "A run: its summary and a page of its questions"),
    Page("/runs/{run}/faults", "faults.html.j2", load_faults, "A run of faults: outcomes by tool and kind"),
    Page(
        "/runs/{run}/judge",
        "alignment.html.j2",
        load_alignment,
        "A judge against people: disagreements, rubrics",
    ),
    Page("/runs/{run}/progress", None, load_progress, "The progress of a run"),
    Page(
        "/runs/{run}/questions/{question:id}",
        "question.html.j2",
        load_question,
        "A question in a run: every trial in full, and its history over runs",
    ),
    Page("/compare", "compare.html.j2", load_compare, "Runs side by side: verdict, differences and replies"),
    Page("/review", "review.html.j2", load_review, "The next reply to review"),
    Page("/replies", "replies.html.j2", load_replies, "Production replies in figures, and a page of them"),
    Page("/replies/{reply:id}", "reply.html.j2", load_reply, "A production reply in full, with its feedback"),
    Page("/feedback", "feedback.html.j2", load_feedback, "Feedback in figures, and a page of verdicts"),
)


# Warm-up


# Runs with more questions are not compared in advance.
_MAX_WARMED_QUESTIONS = 20_000


def warm_up(app: Starlette) -> None:
    """Load every page of the newest run once, so that imports, templates and statements are ready."""
    try:
        store = app.state.holder.get()
        latest = store.list_infos(limit=1)
        run = latest[0].id if latest else ""
        rows = QuestionTable(store, latest[0]).page(QuestionFilter(), limit=1)[0] if latest else []
        question = rows[0].id if rows else ""
        for page in PAGES:
            _visit(store, page, page.query(), run, question)
            if page.query is CompareQuery and _is_small(store):
                _visit(store, page, CompareQuery(run=("latest~1", "latest")), run, question)
    except AnswerkeyError:
        # The next visitor gets an error if the store cannot be read.
        return


def _is_small(store: SqlStore) -> bool:
    """Whether comparing the newest two runs is cheap."""
    return all(
        store.count_questions(info.question_set_hash) <= _MAX_WARMED_QUESTIONS
        for info in store.list_infos(limit=2)
    )


def _visit(store: SqlStore, page: Page, query: Any, run: str, question: str) -> None:
    known = {"run": run, "question": question, "reply": ""}
    try:
        view = page.load(store, query, **{name: known[name] for name in page.path_names})
    except AnswerkeyError:
        # An empty store has no run to show.
        return
    if page.template is not None:
        render(
            page.template, {"type": "http", "path": page.path, "query_string": b"", "headers": []}, view=view
        )


# The API's description (OpenAPI 3.1), generated from the types that the server reads and writes.


class Problem(msgspec.Struct, frozen=True):
    """An error."""

    # For programs.
    code: str
    # For people.
    message: str


class ProblemReport(msgspec.Struct, frozen=True):
    """The body of every error response."""

    error: Problem


_ERRORS = {
    "400": "the request is invalid",
    "401": "a token is needed",
    "403": "the token or the origin does not allow it",
    "404": "no such run, question, reply or baseline",
    "409": "the idempotency key was used for another verdict",
    "413": "the body is too large",
    "429": "too many requests",
    "503": "the store cannot be used right now",
}
_PARAMETER = re.compile(r"\{(\w+)(?::id)?\}")


@cache
def openapi_document() -> dict[str, Any]:
    """The document under /api/openapi.json."""
    described = [action for action in ACTIONS if action.summary]
    models = [page.view for page in PAGES] + [ProblemReport]
    models += [model for action in described for model in (action.body, action.answer) if model is not None]
    schemas, components = msgspec.json.schema_components(models, ref_template="#/components/schemas/{name}")
    known = dict(zip(models, schemas, strict=True))
    problems = {status: _answer(words, known[ProblemReport]) for status, words in _ERRORS.items()}
    paths: dict[str, dict[str, Any]] = {}
    for page in PAGES:
        paths.setdefault(_PARAMETER.sub(r"{\1}", page.api), {})["get"] = {
            "summary": page.summary,
            "parameters": _path_parameters(page.api) + _query_parameters(page.query),
            "responses": {"200": _answer("done", known[page.view])} | problems,
        }
    for action in described:
        done = {"description": "done"} if action.answer is None else _answer("done", known[action.answer])
        operation: dict[str, Any] = {
            "summary": action.summary,
            "parameters": _path_parameters(action.path),
            "responses": dict.fromkeys(action.statuses, done) | problems,
        }
        if action.body is not None:
            content = {"application/json": {"schema": known[action.body]}}
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(_PARAMETER.sub(r"{\1}", action.path), {})[action.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "answerkey",
            "version": version("answerkey"),
            "description": "Everything that the dashboard shows, and where chat pages send feedback and replies.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # On loopback no token is needed; elsewhere one is.
        "security": [{}, {"token": []}],
    }


def _path_parameters(path: str) -> list[dict[str, Any]]:
    words = {
        "run": "an id, a unique prefix of one, a name, `latest` or `latest~1`",
        "question": "a question's id",
        "name": "a baseline's name",
        "reply": "a production reply's id",
    }
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": words[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PARAMETER.findall(path)
    ]


def _query_parameters(model: type[Any]) -> list[dict[str, Any]]:
    (_,), components = msgspec.json.schema_components([model], ref_template="#/{name}")
    return [
        {"name": name, "in": "query", "required": False, "schema": _not_null(schema)}
        for name, schema in components[model.__name__]["properties"].items()
    ]


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's schema without null: it is present or absent."""
    plain = {key: value for key, value in schema.items() if key != "default"}
    if "anyOf" in plain:
        options = [option for option in plain["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            plain.pop("anyOf")
            plain |= options[0]
    if "enum" in plain:
        plain["enum"] = [value for value in plain["enum"] if value is not None]
    return plain


def _answer(words: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


# The application


class StoreHolder:
    """Opens the store on first use, and tries again on the next use if that fails."""

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
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def by_secret(self, secret: str) -> Visitor | None:
        """The user with a token or key that a program sends."""
        return visitor(Users(self.get()).find_by_secret(secret))

    def by_session(self, session: str) -> Visitor | None:
        return visitor(Users(self.get()).find_by_session(session))


def create_app(
    opener: Callable[[], SqlStore],
    settings: ServerSettings | None = None,
    configured: Settings | None = None,
    store_url: str | None = None,
) -> Starlette:
    """The dashboard over the store that `opener` opens; `store_url` is where runs that are started here are stored."""
    served = settings or ServerSettings()
    holder = StoreHolder(opener)
    register_id_convertor()
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
            # Pages contain no secrets that compressed sizes could reveal.
            Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5),
        ],
        exception_handlers={AnswerkeyError: _known_error, HTTPException: _http_error, Exception: _bug},
    )
    app.state.holder = holder
    app.state.settings = served
    grading = ProductionGrading(configured or Settings(), served.questions)
    app.state.grading = grading
    app.state.golden = GoldenFile(configured or Settings(), served.questions, served.drafts)
    app.state.jobs = JobQueue(configured or Settings(), store_url)
    app.state.nightly = Nightly(served, app.state.jobs)
    app.state.alerts = ProductionAlerts((configured or Settings()).notify, served.public_origin or "")
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

    def show_json(request: Request) -> Response:
        return JsonResponse(load(request))

    yield Route(page.api, show_json, methods=["GET"])
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
    if isinstance(error, ChangedFileError):
        return refuse(request.scope, 409, "file_changed", message)
    status = 400 if isinstance(error, UsageError) else 500
    return refuse(request.scope, status, "bad_request" if status == 400 else "failed", message)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "no such page", 405: f"{request.method} is not allowed here"}
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "failed")
    refusal = refuse(request.scope, status, code, words.get(status, "the request failed"))
    for name, value in (getattr(error, "headers", None) or {}).items():
        refusal.headers[name] = value
    return refusal


async def _bug(request: Request, error: Exception) -> Response:
    # Details go to the server's terminal, not to the visitor.
    sys.stderr.write("".join(traceback.format_exception(error)))
    return refuse(request.scope, 500, "internal_error", "internal error; see the server's terminal")
