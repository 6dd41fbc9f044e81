"""What the dashboard changes: verdicts, production replies, baselines, what is deleted, the theme, and who is signed in."""

from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, Literal, get_type_hints
from urllib.parse import quote, urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from answerkey.errors import UnknownNameError, UsageError
from answerkey.server.access import session_cookie
from answerkey.server.intake import GivenFeedback, GivenReplies
from answerkey.server.rendering import THEMES, BadRequestError, JsonResponse, read_body, read_mapping, render
from answerkey.server.views.questions import Precision, ReviewVerdict, save_verdict
from answerkey.server.views.replies import GivenCase, golden_case
from answerkey.store.maintenance import Deleted, delete_reply, delete_runs
from answerkey.store.review import Order
from answerkey.store.sql import SqlStore
from answerkey.store.users import SESSION_SECONDS, SavedViews, Users

_YEAR = 365 * 24 * 3600


class GivenBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/baselines`: the run that a name stands for from now on."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    run: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class _BaselineForm(GivenBaseline, frozen=True, kw_only=True):
    """The run page's form."""

    action: Literal["set", "remove"] = "set"


class _DeleteForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form that deletes a run or a production reply; `sure` is a box that must be ticked."""

    kind: Literal["run", "reply"]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
    sure: Literal["yes"]


class _ReviewForm(ReviewVerdict, frozen=True, kw_only=True):
    """The review page's form: the verdict, and where the reviewer is in the queue."""

    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    # Of which queue, as in the page's address.
    order: Order = "sample"
    second: bool = False
    precision: Precision = 10


class GivenView(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /views`: a page to keep under a name, or the name of one to forget."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    # Where the form was, with everything that is chosen there.
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


def action_routes() -> list[Route]:
    """The routes of everything that is not just looking."""
    return [
        _route("POST", "/api/feedback", _give_feedback),
        _route("POST", "/api/replies", _give_replies),
        *(Route(path, _receive_spans, methods=["POST"]) for path in ("/v1/traces", "/v1/logs")),
        _route("POST", "/api/review", _judge),
        _route("POST", "/api/baselines", _set_baseline),
        _route("DELETE", "/api/baselines/{name}", _remove_baseline),
        _route("DELETE", "/api/runs/{run}", _delete_run),
        _route("DELETE", "/api/replies/{reply:id}", _delete_reply),
        _route("POST", "/delete", _delete_by_form),
        _route("POST", "/baselines", _change_baseline_by_form),
        _route("POST", "/replies/{reply:id}", _make_golden_case),
        _route("POST", "/review", _judge_by_form),
        _route("POST", "/theme", _choose_theme),
        _route("POST", "/views", _change_view),
        _route("GET", "/login", _show_sign_in),
        _route("POST", "/login", _sign_in),
        _route("POST", "/logout", _sign_out),
    ]


def _route(method: str, path: str, act: Callable[[Request, Any], Response]) -> Route:
    """A route to an action, which runs in a thread and gets the body as the type that its parameter `given` has."""
    model = get_type_hints(act)["given"]

    async def endpoint(request: Request) -> Response:
        given = None if model is NoneType else await read_body(request, model)
        return await run_in_threadpool(act, request, given)

    return Route(path, endpoint, methods=[method])


def _store(request: Request) -> SqlStore:
    store: SqlStore = request.app.state.holder.get()
    return store


def _give_feedback(request: Request, given: GivenFeedback) -> Response:
    key = request.headers.get("idempotency-key")
    if key is not None and len(key) > 400:
        raise BadRequestError("the Idempotency-Key header is longer than 400 characters")
    state = request.scope["state"]
    receipt = request.app.state.intake.feedback(
        _store(request), given, state["who"], foreign=state["foreign"], header_key=key
    )
    return JsonResponse(receipt, status_code=202 if not receipt.matched else 201 if receipt.created else 200)


def _give_replies(request: Request, given: dict[str, Any]) -> Response:
    rows = read_mapping(given, GivenReplies).replies if "replies" in given else [given]
    receipt = request.app.state.intake.replies(_store(request), rows, request.scope["state"]["who"])
    return JsonResponse(receipt, status_code=201)


async def _receive_spans(request: Request) -> Response:
    body = await request.body()
    headers = request.headers
    answer = await run_in_threadpool(
        request.app.state.traces.receive,
        request.scope["state"]["who"].sender,
        request.url.path.rpartition("/")[2],
        headers.get("content-type", ""),
        headers.get("content-encoding", ""),
        body,
    )
    return Response(
        answer.body, answer.status, headers={"content-type": answer.content_type, **answer.headers}
    )


def _judge(request: Request, given: ReviewVerdict) -> Response:
    kept = save_verdict(_store(request), given, _author(request))
    return Response(status_code=204) if kept is None else JsonResponse(kept, status_code=201)


def _judge_by_form(request: Request, given: _ReviewForm) -> Response:
    kept = save_verdict(_store(request), given, _author(request))
    back: dict[str, Any] = {"run": given.run, "at": given.at}
    if given.order != "sample":
        back["order"] = given.order
    if given.second:
        back["second"] = "true"
    if given.precision != 10:
        back["precision"] = given.precision
    if kept is not None:
        # So that the page can offer to take it back.
        back |= {"last": given.question[:200], "last_trial": given.trial}
    return RedirectResponse("/review?" + urlencode(back), status_code=303)


def _set_baseline(request: Request, given: GivenBaseline) -> Response:
    run = _store(request).name_baseline(given.name, given.run).id
    return JsonResponse(GivenBaseline(name=given.name, run=run), status_code=201)


def _remove_baseline(request: Request, given: None) -> Response:
    name = request.path_params["name"]
    if not _store(request).remove_baseline(name):
        raise UnknownNameError(f"no baseline {name[:80]!r}; `answerkey baseline list` shows them")
    return Response(status_code=204)


def _change_baseline_by_form(request: Request, given: _BaselineForm) -> Response:
    store = _store(request)
    if given.action == "set":
        run = store.name_baseline(given.name, given.run).id
    else:
        run = store.find_run(given.run).id
        if store.baselines().get(given.name) == run:
            store.remove_baseline(given.name)
    return RedirectResponse(f"/runs/{quote(run, safe='')}", status_code=303)


def _delete_run(request: Request, given: None) -> Response:
    return JsonResponse(_delete_the_run(request, request.path_params["run"]))


def _delete_reply(request: Request, given: None) -> Response:
    identity = request.path_params["reply"].replace("\x00", "")
    return JsonResponse(delete_reply(_store(request), identity))


def _delete_by_form(request: Request, given: _DeleteForm) -> Response:
    if given.kind == "run":
        _delete_the_run(request, given.id)
    else:
        delete_reply(_store(request), given.id)
    return RedirectResponse("/" if given.kind == "run" else "/replies", status_code=303)


def _delete_the_run(request: Request, identity: str) -> Deleted:
    """By its whole id: what `latest` or a name stands for may change before the request arrives."""
    store = _store(request)
    info = store.find_run(identity)
    if info.id != identity:
        raise UsageError(f"to delete it, name the run by its whole id: {info.id}")
    return delete_runs(store, [info])


def _make_golden_case(request: Request, given: GivenCase) -> Response:
    case = golden_case(_store(request), request.path_params["reply"].replace("\x00", ""), given)
    headers = {"content-disposition": 'attachment; filename="golden-case.jsonl"'}
    return Response(msgspec.json.encode(case) + b"\n", media_type="application/jsonl", headers=headers)


def _choose_theme(request: Request, given: _ThemeForm) -> Response:
    if given.theme not in THEMES:
        raise UsageError(f"theme {given.theme[:40]!r}: choose auto, light or dark")
    answer = RedirectResponse(_path_inside(given.next), status_code=303)
    answer.set_cookie("theme", given.theme, max_age=_YEAR, samesite="lax", path="/")
    return answer


def _change_view(request: Request, given: GivenView) -> Response:
    views, address = (
        SavedViews(_store(request), request.scope["state"]["who"].sender),
        _path_inside(given.address),
    )
    if given.action == "save":
        views.save(given.name, address)
    else:
        views.delete(given.name)
    return RedirectResponse(address, status_code=303)


def _show_sign_in(request: Request, given: None) -> Response:
    target = _path_inside(request.query_params.get("next", "/"))
    return HTMLResponse(render("login.html.j2", request.scope, next=target, wrong=False))


def _sign_in(request: Request, given: _SignInForm) -> Response:
    secret, target = given.token.strip(), _path_inside(given.next)
    users = Users(_store(request))
    user = users.find_by_secret(secret)
    if user is None or user.role == "site":
        page = render("login.html.j2", request.scope, next=target, wrong=True)
        return HTMLResponse(page, status_code=401)
    answer = RedirectResponse(target, status_code=303)
    answer.set_cookie(
        session_cookie(request.scope["scheme"]),
        # A new one at every sign-in: nobody can have set it before.
        users.sign_in(user),
        max_age=int(SESSION_SECONDS),
        httponly=True,
        # Lax: who follows a link that a colleague has sent is signed in. What changes something is guarded by its origin.
        samesite="lax",
        secure=request.scope["scheme"] == "https",
        path="/",
    )
    return answer


def _sign_out(request: Request, given: None) -> Response:
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
    """A path of this server; anything that would lead elsewhere becomes the first page."""
    leads_away = not target.startswith("/") or target.startswith(("//", "/\\"))
    return "/" if leads_away or any(ord(sign) < 32 for sign in target) else target
