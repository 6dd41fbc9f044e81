"""Requests and responses: typed queries and bodies, cached comparisons, themes, JSON, pages and errors."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, Response

from answerkey.comparison import compare_runs
from answerkey.comparison.columns import Columns, columns_from_store
from answerkey.comparison.run_ranking import Ranking, rank_runs
from answerkey.errors import AnswerkeyError, UnknownNameError, UsageError
from answerkey.model.comparison import Causes, Comparison
from answerkey.model.judgement import FeedbackStats
from answerkey.model.run import Run, RunInfo
from answerkey.report.markup import compact_css, make_environment, report_asset
from answerkey.runs.causes import causes
from answerkey.runs.production import ProductionSeries, production_series
from answerkey.runs.stored import decided, load_stored_run, with_causes
from answerkey.store.feedback import FeedbackFilter, ReviewQueue
from answerkey.store.production import ProductionFilter, feedback_state, feedback_stats
from answerkey.store.sql import SqlStore
from answerkey.text.dates import zone_name
from answerkey.transcripts.json_values import decode_strict_json

if TYPE_CHECKING:
    from jinja2 import Environment


Model = TypeVar("Model", bound=msgspec.Struct)
Value = TypeVar("Value")


class BadRequestError(UsageError):
    """An invalid request."""


def read_query(request: Request, model: type[Model]) -> Model:
    """The query string as `model`; empty and unknown parameters are ignored."""
    lists = {field.name for field in msgspec.structs.fields(model) if field.default == ()}
    given: dict[str, Any] = {}
    for name in model.__struct_fields__:
        values = [_clean(value) for value in request.query_params.getlist(name) if value != ""]
        if values:
            given[name] = values if name in lists else values[-1]
    try:
        return msgspec.convert(given, model, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"in the address: {_explain(error)}") from None


async def read_body(request: Request, model: type[Any]) -> Any:
    """The body as `model`: a JSON object or, for a struct, a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" and hasattr(model, "__struct_fields__"):
        return read_mapping(_form(await request.body()), model, strict=False)
    # Pages may send JSON as plain text to avoid a preflight request.
    if kind not in ("application/json", "text/plain", ""):
        raise BadRequestError(f"content type {kind[:60]!r}: send application/json")
    try:
        value = decode_strict_json(await request.body())
    except ClientDisconnect:
        raise BadRequestError("the connection ended before the body did") from None
    except ValueError as error:
        raise BadRequestError(f"the body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequestError("the body must be a JSON object")
    return read_mapping(value, model)


def read_mapping(value: Mapping[str, Any], model: type[Value], *, strict: bool = True) -> Value:
    try:
        return msgspec.convert(dict(value), model, strict=strict)
    except msgspec.ValidationError as error:
        raise BadRequestError(_explain(error)) from None


def _form(body: bytes) -> dict[str, str]:
    try:
        fields = parse_qsl(body.decode("utf-8", "replace"), max_num_fields=100)
        return {name: _clean(value) for name, value in fields}
    except ValueError:
        raise BadRequestError("the form has too many fields") from None


def _clean(value: str) -> str:
    # No database accepts lone surrogates, and PostgreSQL no NUL.
    return value.replace("\x00", "").encode("utf-8", "replace").decode()


# msgspec's names of types → words for readers who do not know them.
_EXPECTED = (
    (re.compile(r"`str` matching regex '\^\\+d\{4\}[^']*'"), "a day, e.g. 2026-11-18"),
    (re.compile("`int`"), "a whole number"),
    (re.compile("`float`"), "a number"),
    (re.compile("`str`"), "a text"),
    (re.compile("Invalid enum value"), "unknown value"),
)


def _explain(error: msgspec.ValidationError) -> str:
    message = str(error)
    for kind, words in _EXPECTED:
        message = kind.sub(words, message)
    if " - at `$." in message:
        what, _, where = message.partition(" - at `$.")
        return f"{where.rstrip('`')}: {what[:200]}"
    return message[:260]


class _AnyId(Convertor[str]):
    """The rest of a path, as `{name:id}`; Starlette's own `path` ends at a line break."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """Remove NUL, which databases refuse."""
        return value.replace("\x00", "")

    def to_string(self, value: str) -> str:
        return value


def register_id_convertor() -> None:
    """Register the `{name:id}` converter for routes."""
    register_url_convertor("id", _AnyId())


# Cached comparisons and feedback statistics


Made = TypeVar("Made")
# What a value was computed from; None: it cannot be cached.
Key = tuple[str, ...] | None


class SizedCache(Generic[Made]):
    """What was made last, up to a total size."""

    def __init__(self, most: int, size: Callable[[Made], int] = lambda _: 1) -> None:
        self._most = most
        self._measure = size
        self._size = 0
        self._items: OrderedDict[Key, Made] = OrderedDict()
        self._lock = Lock()

    def known(self, key: Key) -> Made | None:
        """The value for a key, if it was made."""
        with self._lock:
            return self._items.get(key)

    def get(self, key: Key, make: Callable[[], Made]) -> Made:
        """The value for a key, computed if needed; the least recently used values are dropped for it."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        made = make()
        if key is not None:
            with self._lock:
                if key not in self._items:
                    self._items[key] = made
                    self._size += self._measure(made)
                while self._size > self._most:
                    self._size -= self._measure(self._items.popitem(last=False)[1])
        return made


# Some 200 bytes for each question.
_columns: SizedCache[Columns] = SizedCache(300_000, lambda columns: len(columns.scores))
# What a comparison keeps of single questions are those that flipped or stand alone.
_comparisons: SizedCache[Comparison] = SizedCache(
    300_000,
    lambda comparison: 100 + len(comparison.flips) + len(comparison.unpaired) + len(comparison.edited),
)
_explained: SizedCache[Comparison] = SizedCache(100)
_causes: SizedCache[Causes] = SizedCache(200_000, lambda found: 100 + found.questions)
_rankings: SizedCache[Ranking] = SizedCache(200)
_decided: SizedCache[Run] = SizedCache(1_000)
_reviews: SizedCache[int] = SizedCache(1_000)
_feedback: SizedCache[FeedbackStats] = SizedCache(8)
_series: SizedCache[ProductionSeries] = SizedCache(50)
# Figures of very many replies, with the time at which they were computed, are used for a while although replies arrive.
_expensive: dict[tuple[str, ...], tuple[float, ProductionSeries]] = {}
_EXPENSIVE_S = 0.2
_REUSED_S = 60.0


def compare_stored(store: SqlStore, base: RunInfo, candidate: RunInfo) -> Comparison:
    """As `answerkey compare` does; raises UsageError where the runs have no scored question in common."""
    infos = (base, candidate)
    return _comparisons.get(_key(store, infos), lambda: compare_runs(*_read(store, infos)))


def explained_stored(store: SqlStore, base: RunInfo, candidate: RunInfo) -> Comparison:
    """The same with the causes of lost points."""
    return _explained.get(
        _key(store, (base, candidate)),
        lambda: with_causes(compare_stored(store, base, candidate), store, candidate),
    )


def causes_stored(store: SqlStore, info: RunInfo) -> Causes:
    """As `answerkey why` says of one run."""
    return _causes.get(_key(store, (info,)), lambda: causes(store.load_run(info)))


# Seconds of processor time that one visit spends on the verdicts of a trend.
_TREND_S = 0.3
_filling = Lock()


def compare_in_turn(store: SqlStore, pairs: Sequence[tuple[RunInfo, RunInfo]]) -> list[Comparison | None]:
    """Comparisons of (base, candidate) in this order; None: not comparable, or computed after the visit for the next one."""
    begun = time.thread_time()
    compared: list[Comparison | None] = []
    missing = []
    for infos in pairs:
        known = _comparisons.known(_key(store, infos))
        late = _filling.locked() or time.thread_time() - begun > _TREND_S
        if known is None and late:
            missing.append(infos)
        else:
            known = known or _comparison_if_any(store, infos)
        compared.append(known)
    if missing:
        Thread(target=_fill, args=(store, missing), daemon=True).start()
    return compared


def _fill(store: SqlStore, pairs: Sequence[tuple[RunInfo, RunInfo]]) -> None:
    """Compute what a visit left out, unless another thread does so already."""
    if not _filling.acquire(blocking=False):
        return
    try:
        # The next visitor gets the error if the store cannot be read.
        with suppress(AnswerkeyError):
            for infos in pairs:
                _comparison_if_any(store, infos)
    finally:
        _filling.release()


def _comparison_if_any(store: SqlStore, infos: tuple[RunInfo, RunInfo]) -> Comparison | None:
    try:
        return compare_stored(store, *infos)
    except UsageError:
        return None


def rank_stored(store: SqlStore, infos: Sequence[RunInfo]) -> Ranking:
    """As `answerkey compare` ranks more than two runs; raises UsageError where they share no scored question."""
    return _rankings.get(_key(store, infos), lambda: rank_runs(_read(store, infos)))


def decide_stored(store: SqlStore, info: RunInfo) -> Run:
    """A run with its gates and the comparison with its baseline, as `answerkey show` decides them; without results."""
    infos = [info]
    if info.options.baseline is not None:
        with suppress(UnknownNameError):
            infos.append(store.find_run(info.options.baseline))

    def decide() -> Run:
        return msgspec.structs.replace(decided(load_stored_run(store, info.id), store), results=())

    return _decided.get(_key(store, infos), decide)


def waiting_reviews(store: SqlStore, info: RunInfo, feedback: tuple[str, ...]) -> int:
    """How many replies of a run wait for a review; `feedback` is the store's `feedback_state`."""
    key = _key(store, (info,))
    return _reviews.get(
        None if key is None else (*key, *feedback), lambda: ReviewQueue(store, info).counts()[0]
    )


def feedback_figures(store: SqlStore, criteria: FeedbackFilter | None = None) -> FeedbackStats:
    """What `answerkey feedback stats` says of the days that are wanted."""
    days = ("", "") if criteria is None else (criteria.since or "", criteria.until or "")
    key = (store.address, *days, *feedback_state(store))
    return _feedback.get(key, lambda: feedback_stats(store, criteria=criteria))


def series_stored(store: SqlStore, criteria: ProductionFilter, by: str | None = None) -> ProductionSeries:
    """The figures of the production replies that meet a filter, by day and facet."""
    plain = msgspec.structs.replace(criteria, sort=ProductionFilter().sort, columns=())
    name = (store.address, by or "", plain.query_string())

    def compute() -> ProductionSeries:
        begun = time.thread_time()
        series = production_series(store, criteria, by)
        if time.thread_time() - begun > _EXPENSIVE_S:
            if len(_expensive) > 50:
                _expensive.clear()
            _expensive[name] = (time.monotonic(), series)
        return series

    made, series = _expensive.get(name, (0.0, None))
    if series is not None and time.monotonic() - made < _REUSED_S:
        return series
    _expensive.pop(name, None)
    return _series.get((*name, *feedback_state(store)), compute)


def _read(store: SqlStore, infos: Sequence[RunInfo]) -> list[Columns]:
    """Columns cached by run: reading them takes the most time, and most comparisons share a run with the one before."""
    return [
        _columns.get(_key(store, (info,)), lambda info=info: columns_from_store(store, [info])[0])  # type: ignore[misc]
        for info in infos
    ]


def _key(store: SqlStore, infos: Sequence[RunInfo]) -> Key:
    """A key that changes whenever one of the runs does; None while one of them is running."""
    states = []
    for info in infos:
        state = store.finished_state(info.id)
        if state is None or info.status == "running":
            return None
        states.append(blake2b(f"{store.address}\n{state}".encode(), digest_size=16).hexdigest())
    return tuple(states)


# Themes


THEMES = ("auto", "light", "dark")
# The next theme of the theme button, and the button's label.
THEME_AFTER = {"auto": "dark", "dark": "light", "light": "auto"}
THEME_SIGNS = {"auto": "◐", "dark": "☾", "light": "☀"}

_BLOCK = re.compile(r":root\s*\{([^}]*)\}")


@cache
def _blocks() -> tuple[str, str]:
    """The light and the dark block of the report's colours."""
    found = _BLOCK.findall(compact_css(report_asset("tokens.css")))
    return found[0].strip(), found[1].strip()


@cache
def theme_sheet() -> str:
    """CSS that overrides the system's theme."""
    light, dark = _blocks()
    return (
        f':root[data-theme="light"] {{ color-scheme: light; {light} }}\n'
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}\n'
    )


# Responses


# The pages of the navigation.
_NAVIGATION = (
    ("/", "Runs"),
    ("/compare", "Compare"),
    ("/review", "Review"),
    ("/replies", "Replies"),
    ("/feedback", "Feedback"),
)

_TITLES = {
    400: "Bad request",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed here",
    409: "Conflict",
    413: "Too large",
    421: "Wrong address",
    429: "Too many requests",
    500: "Internal error",
    503: "Store unavailable",
}


class JsonResponse(Response):
    """A JSON response."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode; NaN and infinity become null."""
        return msgspec.json.encode(content)


def render(template: str, scope: Any, **context: Any) -> str:
    state = scope.get("state") or {}
    path = scope["path"]
    query = scope.get("query_string", b"").decode("latin-1")
    return (
        _environment()
        .get_template(template)
        .render(
            who=state.get("who"),
            signed_in=bool(state.get("needs_token")),
            theme=_theme(scope),
            navigation=[(address, name, _is_here(address, path)) for address, name in _NAVIGATION],
            path=path,
            here=path + (f"?{query}" if query else ""),
            link=_Linker(path, query),
            zone=zone_name(),
            allow_run=bool(state.get("allow_run")),
            active_job=scope["app"].state.jobs.active_job if "app" in scope else None,
            has_drafts=bool(state.get("has_drafts")),
            edits_golden=bool(state.get("edits_golden")),
            # For examples that can be copied.
            address=state.get("address", "http://127.0.0.1:8765"),
            **context,
        )
    )


def refuse(scope: Any, status: int, code: str, message: str) -> Response:
    """An error response: JSON under /api/, a page elsewhere."""
    if scope["path"].startswith("/api/"):
        return JsonResponse({"error": {"code": code, "message": message}}, status_code=status)
    title = _TITLES.get(status, "Error")
    page = render("error.html.j2", scope, title=title, message=message, status=status)
    return HTMLResponse(page, status_code=status)


def _is_here(address: str, path: str) -> bool:
    """Whether a path belongs to a page of the navigation; runs belong to the first."""
    return path == "/" or path.startswith("/runs") if address == "/" else path.startswith(address)


def _theme(scope: Any) -> str:
    chosen = HTTPConnection(scope).cookies.get("theme")
    return chosen if chosen in THEMES else "auto"


class _Linker:
    """Makes the address of this page with changed parameters: `link(page=2)`; None removes one."""

    def __init__(self, path: str, query: str) -> None:
        self._path = path
        self._query = [(name, value) for name, value in parse_qsl(query) if name != "theme"]

    def fields(self, *without: str) -> list[tuple[str, str]]:
        """The parameters of this page as form fields, without those that the form sets."""
        return [(name, value) for name, value in self._query if name not in without]

    def __call__(self, **changes: Any) -> str:
        unchanged = [(name, value) for name, value in self._query if name not in changes]
        given = [(name, value) for name, value in changes.items() if value not in (None, "")]
        query = urlencode(unchanged + given, doseq=True)
        return f"{quote(self._path)}?{query}" if query else quote(self._path)


@cache
def _environment() -> "Environment":
    environment = make_environment(_source)
    environment.globals.update(theme_after=THEME_AFTER, theme_signs=THEME_SIGNS)
    return environment


@cache
def _source(name: str) -> str | None:
    path = files("answerkey.server") / "templates" / name
    return path.read_text("utf-8") if path.is_file() else None
