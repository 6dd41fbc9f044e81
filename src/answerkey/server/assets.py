"""What pages load besides themselves: style sheets, the script, charts, whole replies and files to download."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from answerkey.errors import UnknownNameError
from answerkey.evaluation.proposals import proposed_cases
from answerkey.report.markup import compact_css, report_style
from answerkey.report.table import ENDINGS, Column, write_table
from answerkey.report.value_wording import name_words
from answerkey.server.cached_figures import feedback_figures
from answerkey.server.charts import Chart, draw_chart
from answerkey.server.query import read_query
from answerkey.server.theme import theme_sheet
from answerkey.server.views.compare import CompareQuery, exported_pairs
from answerkey.server.views.question import load_full_reply
from answerkey.server.views.question_table import QuestionFilter, exported_questions
from answerkey.server.views.runs import TrendPoint, load_trend
from answerkey.store.feedback_book import Day, FeedbackFilter
from answerkey.store.question_list import HistoryPoint, QuestionList
from answerkey.store.sql import SqlStore
from answerkey.text.moments import local_time

__all__ = ["asset_routes", "draw_charts"]

# What the dashboard adds to the report's style sheet; a later one overrides those before it.
_SHEETS = ("frame.css", "lists.css", "trial.css", "compare.css", "judging.css", "media.css", "work_table.css")
# The colour of each tenth of the score is that of its grade.
_TINTS = ("F", "F", "F", "F", "F", "F", "D", "C", "B", "A")
_TENTHS = tuple(f"{step * 10}–{step * 10 + 10}%" for step in range(10))


class _ChartQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How a chart is drawn, and of what."""

    theme: Literal["light", "dark"] = "light"
    size: Literal["wide", "half", "small"] = "half"
    set: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    run: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    question: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None
    since: Day | None = None
    until: Day | None = None


class _ReplyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which reply in full."""

    trial: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    turn: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1


def asset_routes() -> list[Route]:
    """The routes of everything that is not a page."""
    return [
        Route("/static/{name}", _give_static_file, methods=["GET"]),
        Route("/charts/{name}.svg", _give_chart, methods=["GET"]),
        Route("/runs/{run}/replies/{question:id}", _give_whole_reply, methods=["GET"]),
        Route("/runs/{run}/questions.{ending}", _give_questions, methods=["GET"]),
        Route("/compare.{ending}", _give_pairs, methods=["GET"]),
        Route("/feedback/golden.jsonl", _give_proposed_cases, methods=["GET"]),
        Route("/healthz", lambda _: Response("ok\n", media_type="text/plain"), methods=["GET"]),
    ]


def _give_static_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _static_files():
        raise UnknownNameError(f"there is no file {name[:80]!r}")
    content, kind = _static_files()[name]
    return _tagged(request, content.encode(), kind)


def _give_chart(request: Request) -> Response:
    query = read_query(request, _ChartQuery)
    name = request.path_params["name"]
    if name not in _CHARTS:
        raise UnknownNameError(f"there is no chart {name[:80]!r}")
    picture = draw_chart(_CHARTS[name](request.app.state.holder.get(), query), query.theme, query.size)
    answer = _tagged(request, picture, "image/svg+xml")
    # A chart opened by itself carries its own style, and still can run and load nothing.
    answer.headers["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return answer


def _give_whole_reply(request: Request) -> Response:
    query = read_query(request, _ReplyQuery)
    store = request.app.state.holder.get()
    text = load_full_reply(store, **request.path_params, trial=query.trial, turn=query.turn)
    return Response(text.encode("utf-8", "replace"), media_type="text/plain")


def _give_questions(request: Request) -> Response:
    query, run = read_query(request, QuestionFilter), request.path_params["run"]
    columns, rows = exported_questions(request.app.state.holder.get(), query, run)
    return _table_file(request, columns, rows, f"questions-of-{run}")


def _give_pairs(request: Request) -> Response:
    columns, rows = exported_pairs(request.app.state.holder.get(), read_query(request, CompareQuery))
    return _table_file(request, columns, rows, "comparison")


def _table_file(
    request: Request, columns: Sequence[Column], rows: Iterable[Sequence[Any]], name: str
) -> Response:
    """Exactly what a page's table shows, as a file to keep."""
    ending = request.path_params["ending"]
    if ending not in ENDINGS:
        raise UnknownNameError(f"there is no .{ending[:20]} of this table: {', '.join(ENDINGS)}")
    kept = re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)[:80]
    return StreamingResponse(
        write_table(columns, rows, ending),
        media_type={"csv": "text/csv", "jsonl": "application/jsonl"}.get(
            ending, "application/vnd.apache.parquet"
        ),
        headers={"content-disposition": f'attachment; filename="{kept}.{ending}"'},
    )


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
    sheet = "\n".join(map(_read, _SHEETS))
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


def _score_trend(store: SqlStore, query: _ChartQuery) -> Chart:
    points = load_trend(store, query.set or "")
    names = dict.fromkeys(name for point in points for name in point.components)
    series = (
        ("score", tuple(point.score for point in points)),
        *((name_words(name), tuple(point.components.get(name) for point in points)) for name in names),
    )
    return Chart(series=series, labels=_labels(points), top=1.0)


def _latency_trend(store: SqlStore, query: _ChartQuery) -> Chart:
    points = load_trend(store, query.set or "")
    series = (
        ("typical (p50)", tuple(point.latency_p50 for point in points)),
        ("slow (p95)", tuple(point.latency_p95 for point in points)),
    )
    return Chart(series=series, labels=_labels(points), unit="ms")


def _cost_trend(store: SqlStore, query: _ChartQuery) -> Chart:
    points = load_trend(store, query.set or "")
    series = (("cost of the run", tuple(point.cost for point in points)),)
    return Chart(series=series, labels=_labels(points), unit="money")


def _distribution(store: SqlStore, query: _ChartQuery) -> Chart:
    counts = QuestionList(store).distribution(store.find_run(query.run or "latest"))
    return Chart(kind="Bar", series=(("", tuple(counts)),), labels=_TENTHS, unit="count", tints=_TINTS)


def _history(store: SqlStore, query: _ChartQuery) -> Chart:
    points = QuestionList(store).history(query.question or "")[::-1]
    return Chart(series=(("score", tuple(point.score for point in points)),), labels=_labels(points), top=1.0)


def _feedback(store: SqlStore, query: _ChartQuery) -> Chart:
    days = feedback_figures(store, FeedbackFilter(since=query.since, until=query.until)).days
    # One day alone would fill the picture.
    before = max(0, 7 - len(days))
    series = (
        ("thumbs up", (*[0.0] * before, *(float(day.positive) for day in days))),
        ("thumbs down", (*[0.0] * before, *(float(day.feedback - day.positive) for day in days))),
    )
    labels = (*[""] * before, *(day.day[5:] for day in days))
    return Chart(kind="StackedBar", series=series, labels=labels, unit="count", tints=("A", "F"))


_CHARTS: dict[str, Callable[[SqlStore, _ChartQuery], Chart]] = {
    "score": _score_trend,
    "latency": _latency_trend,
    "cost": _cost_trend,
    "distribution": _distribution,
    "history": _history,
    "feedback": _feedback,
}


def draw_charts(store: SqlStore, run: str, question: str) -> None:
    """Draw each chart once, which loads the library that draws them."""
    for read in _CHARTS.values():
        draw_chart(read(store, _ChartQuery(run=run or None, question=question)), "light", "half")


def _labels(points: Sequence[TrendPoint | HistoryPoint]) -> tuple[str, ...]:
    """What tells runs apart in the least space: the day, the hour of one day, or else their names."""
    moments = [local_time(point.created_at, zone=False) for point in points]
    days = tuple(moment[5:10] for moment in moments)
    hours = tuple(moment[11:16] for moment in moments)
    if len(set(days)) == len(points):
        return days
    if len(set(days)) == 1 and len(set(hours)) == len(points):
        return hours
    return tuple(point.name if isinstance(point, TrendPoint) else point.run_name for point in points)
