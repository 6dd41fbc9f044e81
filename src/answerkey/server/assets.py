"""What pages load besides themselves: style sheets, the script, whole replies and files to download."""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from answerkey.errors import UnknownNameError
from answerkey.evaluation.proposals import proposed_cases
from answerkey.report.markup import compact_css, report_asset, report_style
from answerkey.report.table import ENDINGS, write_table
from answerkey.server.query import read_query
from answerkey.server.theme import theme_sheet
from answerkey.server.views.compare import CompareQuery, exported_pairs
from answerkey.server.views.question import load_full_reply
from answerkey.server.views.question_table import exported_questions
from answerkey.server.views.reply_table import exported_replies
from answerkey.server.views.run_table import exported_runs
from answerkey.store.production import ProductionFilter
from answerkey.store.row_filter import Ranged, RowFilter
from answerkey.store.run_list import RunFilter

# What the dashboard adds to the report's style sheet; a later one overrides those before it.
_SHEETS = (
    "frame.css",
    "lists.css",
    "menus.css",
    "trial.css",
    "compare.css",
    "judging.css",
    "media.css",
    "work_table.css",
    "pane.css",
)
_MEDIA_TYPES = {"csv": "text/csv", "jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


class _ReplyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which reply in full."""

    trial: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    turn: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1


def asset_routes() -> list[Route]:
    """The routes of everything that is not a page."""
    return [
        Route("/static/{name}", _give_static_file, methods=["GET"]),
        Route("/runs/{run}/replies/{question:id}", _give_whole_reply, methods=["GET"]),
        _table_route("/runs/{run}/questions.{ending}", exported_questions, RowFilter, "questions-of-{run}"),
        _table_route("/compare.{ending}", exported_pairs, CompareQuery, "comparison"),
        _table_route("/runs.{ending}", exported_runs, RunFilter, "runs"),
        _table_route("/replies.{ending}", exported_replies, ProductionFilter, "replies"),
        Route("/feedback/golden.jsonl", _give_proposed_cases, methods=["GET"]),
        Route("/healthz", lambda _: Response("ok\n", media_type="text/plain"), methods=["GET"]),
    ]


def _give_static_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _static_files():
        raise UnknownNameError(f"there is no file {name[:80]!r}")
    content, kind = _static_files()[name]
    return _tagged(request, content.encode(), kind)


def _give_whole_reply(request: Request) -> Response:
    query = read_query(request, _ReplyQuery)
    store = request.app.state.holder.get()
    text = load_full_reply(store, **request.path_params, trial=query.trial, turn=query.turn)
    return Response(text.encode("utf-8", "replace"), media_type="text/plain")


def _table_route(path: str, export: Callable[..., Any], model: type[Ranged], name: str) -> Route:
    """Exactly what a page's table shows, as a file to keep."""

    def give(request: Request) -> Response:
        place = dict(request.path_params)
        ending = place.pop("ending")
        if ending not in ENDINGS:
            raise UnknownNameError(f"there is no .{ending[:20]} of this table: {', '.join(ENDINGS)}")
        columns, rows = export(request.app.state.holder.get(), read_query(request, model), **place)
        kept = re.sub(r"[^\w.-]", "-", name.format(**place), flags=re.ASCII)[:80]
        return StreamingResponse(
            write_table(columns, rows, ending),
            media_type=_MEDIA_TYPES[ending],
            headers={"content-disposition": f'attachment; filename="{kept}.{ending}"'},
        )

    return Route(path, give, methods=["GET"])


def _give_proposed_cases(request: Request) -> Response:
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
        "icon.svg": (_read("icon.svg"), "image/svg+xml"),
    }


def _read(name: str) -> str:
    return (files("answerkey.server") / "static" / name).read_text("utf-8")


def _tagged(request: Request, content: bytes, kind: str) -> Response:
    """The content, or only that the browser's copy of it is still right."""
    tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)
