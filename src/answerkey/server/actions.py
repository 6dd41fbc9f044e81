"""What the dashboard changes: verdicts, production replies, baselines, the theme, and signing in and out."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote, urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from answerkey.errors import UnknownNameError, UsageError
from answerkey.server.gatekeeper import COOKIE
from answerkey.server.intake import GivenFeedback, GivenReplies, Intake
from answerkey.server.query import BadRequestError, read_body, read_mapping, read_object
from answerkey.server.refusal import JsonResponse
from answerkey.server.rendering import render
from answerkey.server.theme import THEMES
from answerkey.server.views.replies import GivenCase, golden_case
from answerkey.server.views.review import ReviewVerdict, keep_verdict
from answerkey.store.tokens import AccessTokens

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore

__all__ = ["GivenBaseline", "action_routes"]

_YEAR = 365 * 24 * 3600


class GivenBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /api/baselines`: the run that a name stands for from now on."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    run: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class _BaselineForm(GivenBaseline, frozen=True, kw_only=True):
    """The run page's form."""

    action: Literal["set", "remove"] = "set"


class _ReviewForm(ReviewVerdict, frozen=True, kw_only=True):
    """The review page's form: the verdict, and where the reviewer is in the queue."""

    at: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The theme's form."""

    theme: str = "auto"
    next: str = "/"


class _Login(msgspec.Struct, frozen=True, kw_only=True):
    """The sign-in form."""

    token: Annotated[str, msgspec.Meta(max_length=400)] = ""
    next: str = "/"


def action_routes(get_store: "Callable[[], SqlStore]", intake: Intake) -> list[Route]:
    """The routes of everything that is not just looking."""

    async def give_feedback(request: Request) -> Response:
        given = await read_body(request, GivenFeedback)
        key = request.headers.get("idempotency-key")
        if key is not None and len(key) > 400:
            raise BadRequestError("the Idempotency-Key header is longer than 400 characters")
        receipt = await run_in_threadpool(lambda: intake.feedback(get_store(), given, header_key=key))
        status = 202 if not receipt.matched else 201 if receipt.created else 200
        return JsonResponse(receipt, status_code=status)

    async def give_replies(request: Request) -> Response:
        fields = await read_object(request)
        given = read_mapping(fields, GivenReplies).replies if "replies" in fields else [fields]
        receipt = await run_in_threadpool(lambda: intake.replies(get_store(), given))
        return JsonResponse(receipt, status_code=201)

    async def judge(request: Request) -> Response:
        given = await read_body(request, ReviewVerdict)
        kept = await run_in_threadpool(lambda: keep_verdict(get_store(), given, _author(request)))
        return JsonResponse(kept, status_code=201)

    async def judge_by_form(request: Request) -> Response:
        given = await read_body(request, _ReviewForm)
        await run_in_threadpool(lambda: keep_verdict(get_store(), given, _author(request)))
        return RedirectResponse("/review?" + urlencode({"run": given.run, "at": given.at}), status_code=303)

    async def set_baseline(request: Request) -> Response:
        given = await read_body(request, GivenBaseline)

        def name() -> dict[str, str]:
            return {"name": given.name, "run": get_store().name_baseline(given.name, given.run).id}

        return JsonResponse(await run_in_threadpool(name), status_code=201)

    async def forget_baseline(request: Request) -> Response:
        name = request.path_params["name"]
        if not await run_in_threadpool(lambda: get_store().remove_baseline(name)):
            raise UnknownNameError(f"no baseline {name[:80]!r}; `answerkey baseline list` shows them")
        return Response(status_code=204)

    async def baseline_by_form(request: Request) -> Response:
        given = await read_body(request, _BaselineForm)

        def change() -> str:
            store = get_store()
            if given.action == "set":
                return store.name_baseline(given.name, given.run).id
            info = store.find_run(given.run)
            if store.baselines().get(given.name) == info.id:
                store.remove_baseline(given.name)
            return info.id

        run = await run_in_threadpool(change)
        return RedirectResponse(f"/runs/{quote(run, safe='')}", status_code=303)

    async def promote(request: Request) -> Response:
        given = await read_body(request, GivenCase)
        identity = request.path_params["reply"].replace("\x00", "")
        case = await run_in_threadpool(lambda: golden_case(get_store(), identity, given))
        headers = {"content-disposition": 'attachment; filename="golden-case.jsonl"'}
        return Response(msgspec.json.encode(case) + b"\n", media_type="application/jsonl", headers=headers)

    async def choose_theme(request: Request) -> Response:
        choice = await read_body(request, _Choice)
        if choice.theme not in THEMES:
            raise UsageError(f"theme {choice.theme[:40]!r}: choose auto, light or dark")
        answer = RedirectResponse(_inside(choice.next), status_code=303)
        answer.set_cookie("theme", choice.theme, max_age=_YEAR, samesite="lax", path="/")
        return answer

    async def sign_in_page(request: Request) -> Response:
        target = _inside(request.query_params.get("next", "/"))
        return HTMLResponse(render("login.html.j2", request.scope, next=target, wrong=False))

    async def sign_in(request: Request) -> Response:
        given = await read_body(request, _Login)
        known = await run_in_threadpool(lambda: AccessTokens(get_store()).check(given.token.strip()))
        if known is None or known.role == "sender":
            page = render("login.html.j2", request.scope, next=_inside(given.next), wrong=True)
            return HTMLResponse(page, status_code=401)
        answer = RedirectResponse(_inside(given.next), status_code=303)
        answer.set_cookie(
            COOKIE,
            given.token.strip(),
            max_age=30 * 24 * 3600,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path="/",
        )
        return answer

    async def sign_out(request: Request) -> Response:
        answer = RedirectResponse("/login", status_code=303)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    return [
        Route("/api/feedback", give_feedback, methods=["POST"]),
        Route("/api/replies", give_replies, methods=["POST"]),
        Route("/api/review", judge, methods=["POST"]),
        Route("/api/baselines", set_baseline, methods=["POST"]),
        Route("/api/baselines/{name}", forget_baseline, methods=["DELETE"]),
        Route("/baselines", baseline_by_form, methods=["POST"]),
        Route("/replies/{reply:path}", promote, methods=["POST"]),
        Route("/review", judge_by_form, methods=["POST"]),
        Route("/theme", choose_theme, methods=["POST"]),
        Route("/login", sign_in_page, methods=["GET"]),
        Route("/login", sign_in, methods=["POST"]),
        Route("/logout", sign_out, methods=["POST"]),
    ]


def _author(request: Request) -> str:
    who = getattr(request.state, "who", None)
    return who.name if who is not None and who.name else "local"


def _inside(target: str) -> str:
    """A path of this server; anything that would lead elsewhere becomes the first page."""
    if (
        not target.startswith("/")
        or target.startswith(("//", "/\\"))
        or any(ord(sign) < 32 for sign in target)
    ):
        return "/"
    return target
