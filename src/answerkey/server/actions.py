"""Requests that change something: verdicts, production replies, baselines, deletion, theme and sign-in."""

from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints
from urllib.parse import quote, urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.judgement import Feedback
from answerkey.model.reply import FAULT_KINDS
from answerkey.model.run import RunInfo
from answerkey.server.access import session_cookie
from answerkey.server.golden_file import LONGEST, ChangedFileError, GoldenForm, GoldenLine, Trial
from answerkey.server.intake import (
    FeedbackBatchReceipt,
    FeedbackReceipt,
    GivenFeedback,
    GivenFeedbackBatch,
    GivenReplies,
    Job,
    JobForm,
    RepliesReceipt,
)
from answerkey.server.questions import (
    CaseForm,
    Precision,
    ReviewVerdict,
    golden_case,
    load_reply,
    save_verdict,
)
from answerkey.server.rendering import (
    THEMES,
    BadRequestError,
    JsonResponse,
    read_body,
    read_mapping,
    read_query,
    refuse,
    render,
)
from answerkey.server.tables import NoQuery
from answerkey.store.feedback import SESSION_SECONDS, Order, SavedViews, Users
from answerkey.store.maintenance import Deleted, delete_reply, delete_runs
from answerkey.store.sql import SqlStore

_YEAR = 365 * 24 * 3600


class GivenBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/baselines`: a name and its run."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    run: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class NamedBaseline(msgspec.Struct, frozen=True):
    """A stored baseline."""

    name: str
    run: str


class _BaselineForm(GivenBaseline, frozen=True, kw_only=True):
    """The run page's form."""

    action: Literal["set", "remove"] = "set"
    # The run that the name refers to now, once the visitor confirmed that it is replaced.
    replaces: Annotated[str, msgspec.Meta(max_length=200)] = ""


class _DeleteForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form that deletes a run or a production reply; `sure` is a required checkbox."""

    kind: Literal["run", "reply"]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
    sure: Literal["yes"]


class _ReviewForm(ReviewVerdict, frozen=True, kw_only=True):
    """The review page's form: the verdict, and where the reviewer is in the queue."""

    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    # Which queue, as in the page's address.
    order: Order = "sample"
    second: bool = False
    precision: Precision = 10
    blind: bool = True
    # The page to go back to; empty: the next reply of the queue.
    next: Annotated[str, msgspec.Meta(max_length=4_000)] = ""


class GivenView(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /views`: save a page under a name, or delete one."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    # The page with its query string.
    address: Annotated[str, msgspec.Meta(max_length=4_000)] = "/"
    action: Literal["save", "delete"] = "save"


class _ThemeForm(msgspec.Struct, frozen=True, kw_only=True):
    """The theme's form."""

    theme: str = "auto"
    next: str = "/"


class _SignInForm(msgspec.Struct, frozen=True, kw_only=True):
    """The sign-in form."""

    token: Annotated[str, msgspec.Meta(max_length=400)] = ""
    next: str = "/"


class Action(NamedTuple):
    """A request that changes something. `act` runs in a thread and gets the body as the type of its parameter `body`."""

    method: str
    path: str
    act: Callable[[Request, Any], Response]
    # For the API's description; empty: not part of the API.
    summary: str = ""
    # The types of the described bodies, and the statuses of success.
    body: type[Any] | None = None
    answer: type[Any] | None = None
    statuses: tuple[str, ...] = ("201",)

    @property
    def route(self) -> Route:
        model = get_type_hints(self.act)["body"]

        async def endpoint(request: Request) -> Response:
            body = None if model is NoneType else await read_body(request, model)
            return await run_in_threadpool(self.act, request, body)

        return Route(self.path, endpoint, methods=[self.method])


def action_routes() -> list[Route]:
    spans = [Route(path, _receive_spans, methods=["POST"]) for path in ("/v1/traces", "/v1/logs")]
    return [*spans, *(action.route for action in ACTIONS)]


def _store(request: Request) -> SqlStore:
    store: SqlStore = request.app.state.holder.get()
    return store


def _receive_feedback(request: Request, body: GivenFeedback) -> Response:
    key = request.headers.get("idempotency-key")
    if key is not None and len(key) > 400:
        raise BadRequestError("the Idempotency-Key header is longer than 400 characters")
    state = request.scope["state"]
    receipt = request.app.state.intake.feedback(
        _store(request), body, state["who"], foreign=state["foreign"], header_key=key
    )
    return JsonResponse(receipt, status_code=202 if not receipt.matched else 201 if receipt.created else 200)


def _receive_feedback_batch(request: Request, body: GivenFeedbackBatch) -> Response:
    intake, state = request.app.state.intake, request.scope["state"]
    receipts = []
    for number, one in enumerate(body.feedback, start=1):
        try:
            receipts.append(intake.feedback(_store(request), one, state["who"], foreign=state["foreign"]))
        except UsageError as error:
            # Those before are stored; with idempotency keys, all can be sent again.
            raise type(error)(f"feedback {number}, after {number - 1} that were stored: {error}") from None
    return JsonResponse(FeedbackBatchReceipt(receipts=tuple(receipts)), status_code=201)


def _receive_replies(request: Request, body: dict[str, Any]) -> Response:
    rows = read_mapping(body, GivenReplies).replies if "replies" in body else [body]
    receipt = request.app.state.intake.replies(_store(request), rows, request.scope["state"]["who"])
    return JsonResponse(receipt, status_code=201)


async def _receive_spans(request: Request) -> Response:
    payload = await request.body()
    headers = request.headers
    answer = await run_in_threadpool(
        request.app.state.traces.receive,
        request.scope["state"]["who"].sender,
        request.url.path.rpartition("/")[2],
        headers.get("content-type", ""),
        headers.get("content-encoding", ""),
        payload,
    )
    return Response(
        answer.body, answer.status, headers={"content-type": answer.content_type, **answer.headers}
    )


def _save_verdict(request: Request, body: ReviewVerdict) -> Response:
    kept = save_verdict(_store(request), body, _author(request))
    return Response(status_code=204) if kept is None else JsonResponse(kept, status_code=201)


def _save_verdict_by_form(request: Request, body: _ReviewForm) -> Response:
    kept = save_verdict(_store(request), body, _author(request))
    if body.next:
        return RedirectResponse(_path_inside(body.next), status_code=303)
    back: dict[str, Any] = {"run": body.run, "at": body.at}
    if body.order != "sample":
        back["order"] = body.order
    if body.second:
        back["second"] = "true"
    if not body.blind:
        back["blind"] = "false"
    if body.precision != 10:
        back["precision"] = body.precision
    if kept is not None:
        # So that the page can offer to undo it.
        back |= {"last": body.question[:200], "last_trial": body.trial}
    return RedirectResponse("/review?" + urlencode(back), status_code=303)


def _set_baseline(request: Request, body: GivenBaseline) -> Response:
    run = _store(request).name_baseline(body.name, body.run).id
    return JsonResponse(NamedBaseline(body.name, run), status_code=201)


def _remove_baseline(request: Request, body: None) -> Response:
    name = request.path_params["name"]
    if not _store(request).remove_baseline(name):
        raise UnknownNameError(f"no baseline {name[:80]!r}; `answerkey baseline list` shows them")
    return Response(status_code=204)


def _change_baseline_by_form(request: Request, body: _BaselineForm) -> Response:
    store = _store(request)
    if body.action == "set":
        run, known = store.find_run(body.run).id, store.baselines().get(body.name)
        if known not in (None, run, body.replaces):
            page = render(
                "confirm.html.j2",
                request.scope,
                name=body.name,
                run=store.find_run(run),
                current=store.find_run(known or ""),
            )
            return HTMLResponse(page, status_code=409)
        store.name_baseline(body.name, run)
    else:
        run = store.find_run(body.run).id
        if store.baselines().get(body.name) == run:
            store.remove_baseline(body.name)
    return RedirectResponse(f"/runs/{quote(run, safe='')}", status_code=303)


def _delete_run(request: Request, body: None) -> Response:
    return JsonResponse(_delete_the_run(request, request.path_params["run"]))


def _delete_reply(request: Request, body: None) -> Response:
    identity = request.path_params["reply"].replace("\x00", "")
    return JsonResponse(delete_reply(_store(request), identity))


def _delete_by_form(request: Request, body: _DeleteForm) -> Response:
    if body.kind == "run":
        _delete_the_run(request, body.id)
    else:
        delete_reply(_store(request), body.id)
    return RedirectResponse("/" if body.kind == "run" else "/replies", status_code=303)


def _delete_the_run(request: Request, identity: str) -> Deleted:
    """Delete by the full id: `latest` or a name may refer to another run by the time the request arrives."""
    store = _store(request)
    info = store.find_run(identity)
    if info.id != identity:
        raise UsageError(f"use the full id to delete a run: {info.id}")
    return delete_runs(store, [info])


def _make_golden_case(request: Request, body: CaseForm) -> Response:
    case = golden_case(_store(request), request.path_params["reply"].replace("\x00", ""), body)
    headers = {"content-disposition": 'attachment; filename="golden-case.jsonl"'}
    return Response(msgspec.json.encode(case) + b"\n", media_type="application/jsonl", headers=headers)


class _GoldenQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which question to edit: of the file by its id, or a new one from a production reply or a draft."""

    id: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None
    reply: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None
    draft: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None
    saved: bool = False


def _show_golden(request: Request, body: None) -> Response:
    query, golden = read_query(request, _GoldenQuery), request.app.state.golden
    exists = False
    if query.id is not None:
        line = golden.get(query.id)
        text = line.text
    elif query.reply is not None:
        draft = load_reply(_store(request), NoQuery(), query.reply)
        known = golden.find(question=draft.row.question)
        exists = known is not None
        form = CaseForm(
            expected_tools="\n".join(draft.draft.expected_tools),
            category=draft.draft.category,
            reference_answer=draft.draft.reference_answer,
        )
        case = golden_case(_store(request), query.reply, form)
        line = known or GoldenLine(0, "", "")
        text = line.text or golden.encode(msgspec.to_builtins(case))
    elif query.draft is not None:
        text = golden.encode(golden.draft(query.draft).row)
        return _golden_page(request, GoldenLine(0, "", ""), text, draft=query.draft)
    elif request.app.state.settings.drafts is not None:
        return HTMLResponse(render("drafts.html.j2", request.scope, drafts=golden.drafts()))
    else:
        raise UsageError("which question? give its id, or a production reply")
    if len(text) > LONGEST:
        raise UsageError(
            f"this question has {len(text):,} characters; more than {LONGEST:,} are edited in the file"
        )
    return _golden_page(request, line, text, exists=exists, saved=query.saved)


def _golden_page(
    request: Request,
    line: GoldenLine,
    text: str,
    *,
    trial: Trial | None = None,
    exists: bool = False,
    saved: bool = False,
    draft: str = "",
    status: int = 200,
) -> Response:
    path = request.app.state.golden.path
    page = render(
        "golden.html.j2",
        request.scope,
        line=line,
        text=text,
        trial=trial,
        exists=exists,
        saved=saved,
        draft=request.app.state.golden.draft(draft) if draft else None,
        file="" if path is None else path.name,
        format=request.app.state.golden.format,
    )
    return HTMLResponse(page, status_code=status)


def _change_golden(request: Request, body: GoldenForm) -> Response:
    golden, who = request.app.state.golden, request.scope["state"]["who"]
    may_save = request.app.state.settings.allow_run and who.role == "admin"
    if body.action == "try":
        trial = golden.attempt(_store(request), body, may_compute=may_save)
        return _golden_page(
            request, GoldenLine(body.line, "", body.digest), body.text, trial=trial, draft=body.draft
        )
    if not may_save:
        message = "only admins of a server that was started with --allow-run may save to the golden set"
        return refuse(request.scope, 403, "not_allowed", message)
    if body.action == "reject":
        golden.reject(body.draft)
        return RedirectResponse("/golden", status_code=303)
    try:
        question = golden.accept(body, who.name) if body.draft else golden.save(body)
    except ChangedFileError:
        raise
    except UsageError as error:
        line = GoldenLine(body.line, "", body.digest)
        trial = Trial(problem=str(error))
        return _golden_page(request, line, body.text, trial=trial, draft=body.draft, status=400)
    return RedirectResponse("/golden?" + urlencode({"id": question.id, "saved": "true"}), status_code=303)


def _jobs(request: Request) -> list[tuple[Job, RunInfo | None]]:
    queue, store = request.app.state.jobs, _store(request)
    return [(job, queue.run_of(store, job)) for job in queue.jobs]


def _show_jobs(request: Request, body: None) -> Response:
    targets = request.app.state.jobs.targets
    return HTMLResponse(
        render("jobs.html.j2", request.scope, jobs=_jobs(request), targets=targets, kinds=FAULT_KINDS)
    )


def _change_jobs(request: Request, body: JobForm) -> Response:
    if not request.app.state.settings.allow_run:
        message = "runs cannot be started here; start the server with answerkey serve --allow-run"
        return refuse(request.scope, 403, "not_allowed", message)
    queue = request.app.state.jobs
    if body.action == "cancel":
        queue.cancel(body.job)
    else:
        queue.start(_store(request), body, _author(request))
    return RedirectResponse("/jobs", status_code=303)


def _choose_theme(request: Request, body: _ThemeForm) -> Response:
    if body.theme not in THEMES:
        raise UsageError(f"theme {body.theme[:40]!r}: choose auto, light or dark")
    answer = RedirectResponse(_path_inside(body.next), status_code=303)
    answer.set_cookie("theme", body.theme, max_age=_YEAR, samesite="lax", path="/")
    return answer


def _change_view(request: Request, body: GivenView) -> Response:
    views, address = (
        SavedViews(_store(request), request.scope["state"]["who"].sender),
        _path_inside(body.address),
    )
    if body.action == "save":
        views.save(body.name, address)
    else:
        views.delete(body.name)
    return RedirectResponse(address, status_code=303)


def _show_sign_in(request: Request, body: None) -> Response:
    target = _path_inside(request.query_params.get("next", "/"))
    return HTMLResponse(render("login.html.j2", request.scope, next=target, wrong=False))


def _sign_in(request: Request, body: _SignInForm) -> Response:
    secret, target = body.token.strip(), _path_inside(body.next)
    users = Users(_store(request))
    user = users.find_by_secret(secret)
    if user is None or user.role == "site":
        page = render("login.html.j2", request.scope, next=target, wrong=True)
        return HTMLResponse(page, status_code=401)
    answer = RedirectResponse(target, status_code=303)
    answer.set_cookie(
        session_cookie(request.scope["scheme"]),
        # A new id at every sign-in prevents session fixation.
        users.sign_in(user),
        max_age=int(SESSION_SECONDS),
        httponly=True,
        # Lax, so that links from elsewhere open signed in. Changes are protected by the origin check.
        samesite="lax",
        secure=request.scope["scheme"] == "https",
        path="/",
    )
    return answer


def _sign_out(request: Request, body: None) -> Response:
    scheme = request.scope["scheme"]
    session = request.cookies.get(session_cookie(scheme))
    if session is not None:
        Users(_store(request)).sign_out(session)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(
        session_cookie(scheme), path="/", secure=scheme == "https", httponly=True, samesite="lax"
    )
    return answer


def _author(request: Request) -> str:
    who = getattr(request.state, "who", None)
    return who.name if who is not None and who.name else "local"


def _path_inside(target: str) -> str:
    """A path of this server; anything that leads elsewhere becomes the home page."""
    leads_away = not target.startswith("/") or target.startswith(("//", "/\\"))
    return "/" if leads_away or any(ord(sign) < 32 for sign in target) else target


ACTIONS = (
    Action(
        "POST",
        "/api/feedback",
        _receive_feedback,
        "Send a verdict on a reply",
        GivenFeedback,
        FeedbackReceipt,
        ("200", "201", "202"),
    ),
    Action(
        "POST",
        "/api/feedback/batch",
        _receive_feedback_batch,
        "Send several verdicts",
        GivenFeedbackBatch,
        FeedbackBatchReceipt,
    ),
    Action(
        "POST",
        "/api/replies",
        _receive_replies,
        "Send replies that the chatbot gave in production",
        GivenReplies,
        RepliesReceipt,
    ),
    Action(
        "POST", "/api/review", _save_verdict, "Save or remove a reviewer's verdict", ReviewVerdict, Feedback
    ),
    Action("POST", "/api/baselines", _set_baseline, "Make a run a baseline", GivenBaseline, NamedBaseline),
    Action(
        "DELETE",
        "/api/baselines/{name}",
        _remove_baseline,
        "Remove a baseline name; the run stays",
        statuses=("204",),
    ),
    Action(
        "DELETE",
        "/api/runs/{run}",
        _delete_run,
        "Delete a run by its full id, with its replies, scores and feedback",
        answer=Deleted,
        statuses=("200",),
    ),
    Action(
        "DELETE",
        "/api/replies/{reply:id}",
        _delete_reply,
        "Delete a production reply and its feedback",
        answer=Deleted,
        statuses=("200",),
    ),
    Action("POST", "/delete", _delete_by_form),
    Action("POST", "/baselines", _change_baseline_by_form),
    Action("POST", "/replies/{reply:id}", _make_golden_case),
    Action("POST", "/review", _save_verdict_by_form),
    Action("GET", "/golden", _show_golden),
    Action("POST", "/golden", _change_golden),
    Action("GET", "/jobs", _show_jobs),
    Action("POST", "/jobs", _change_jobs),
    Action("POST", "/theme", _choose_theme),
    Action("POST", "/views", _change_view),
    Action("GET", "/login", _show_sign_in),
    Action("POST", "/login", _sign_in),
    Action("POST", "/logout", _sign_out),
)
