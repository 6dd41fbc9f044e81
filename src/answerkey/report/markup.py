"""HTML of pages: the Jinja2 environment, style sheets, a reply's Markdown as safe markup, and charts as inline SVG.

Horizontal positions in charts are shares of the width, so that text keeps its size on a phone.
"""

import base64
import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from html import escape
from importlib.resources import files
from itertools import accumulate
from math import ceil, floor, log10
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

from answerkey.model.run import RunInfo
from answerkey.model.scorecard import letter_grade
from answerkey.report.detail import Segment
from answerkey.report.result_files import cell_text
from answerkey.report.view import component_words
from answerkey.report.wording import (
    GRADE_MEANINGS,
    change_text,
    cost_line,
    count,
    critical_line,
    gate_value,
    judge_line,
    metric_range_text,
    metric_text,
    milliseconds,
    money,
    name_words,
    p_text,
    percent,
    points_change,
    score_percent,
    time_range_text,
    tone_of,
    used_text,
)
from answerkey.store.sql import Figures, RunRow, figure_of
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_terminal, one_line
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import decode_strict_json

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markupsafe import Markup

# Top and axis in pixels; first and last value in per cent of the width.
_TOP = 14.0
_AXIS = 176.0
_LEFT, _RIGHT = 7.0, 97.0
_STEPS = 4
_LABELS = 12
# Labels of a time axis, each as wide as a date.
_TIMES = 8
# Colours of the series, in order.
_TINTS = ("accent", "A", "D", "violet", "C", "F")
_WORDS: dict[str, Callable[[float], str]] = {
    "percent": score_percent,
    "ms": lambda value: milliseconds(value) if value else "0",
    "money": money,
    "count": "{:,.0f}".format,
}
# The least range of a scale of shares: differences below are noise in most runs.
_LEAST_SHARE = 0.05


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a series; `low` and `high` are the ends of its interval, if it has one."""

    x: float
    y: float
    # Description, for tooltips and screen readers.
    words: str
    address: str | None = None
    low: float | None = None
    high: float | None = None
    # A verdict on it: better or worse.
    tone: str = ""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A line."""

    name: str
    tint: str
    dots: tuple[Dot, ...]


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar, or a part of one."""

    x: float
    y: float
    width: float
    height: float
    tint: str
    words: str
    address: str | None = None


class Rule(msgspec.Struct, frozen=True):
    """A horizontal line: a gate or a baseline. `at` is a value of the scale."""

    at: float
    words: str
    kind: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a series, one for each moment; None: unknown."""

    name: str
    values: Sequence[float | None]
    # Low and high ends; empty: none are known.
    intervals: Sequence[tuple[float, float] | None] = ()


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A position on a time axis, with what is said of its values."""

    # ISO 8601.
    at: str
    name: str
    address: str | None = None
    # The verdict on its first value: better or worse.
    tone: str = ""
    # What changed since the moment before.
    change: str = ""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A drawn chart."""

    # (y, words) of the scale.
    scale: tuple[tuple[float, str], ...]
    # (x, words, whether it is shown on a phone) below the axis.
    labels: tuple[tuple[float, str, bool], ...]
    series: tuple[Series, ...] = ()
    bars: tuple[Bar, ...] = ()
    # (y, words, kind) of horizontal lines.
    rules: tuple[tuple[float, str, str], ...] = ()
    # (x, words) of changes.
    changes: tuple[tuple[float, str], ...] = ()
    axis: float = _AXIS


def line_chart(
    lines: Sequence[Line],
    moments: Sequence[Moment],
    *,
    rules: Sequence[Rule] = (),
    unit: str = "percent",
) -> Chart:
    """Lines over time, on a scale that fits their values and intervals. Moments are in order."""
    words = _WORDS[unit]
    ends = [end for line in lines for pair in line.intervals if pair is not None for end in pair]
    known = [value for line in lines for value in line.values if value is not None]
    scale = _Scale.fitting([*known, *ends, *(rule.at for rule in rules)], shares=unit == "percent")
    places, labels = _time_axis([moment.at for moment in moments])
    drawn = []
    for number, line in enumerate(lines):
        dots = []
        for index, (moment, value) in enumerate(zip(moments, line.values, strict=True)):
            if value is None:
                continue
            likely = line.intervals[index] if line.intervals else None
            interval = "" if likely is None else f", likely {words(likely[0])} to {words(likely[1])}"
            dots.append(
                Dot(
                    x=places[index],
                    y=scale.y(value),
                    words=f"{moment.name}: {line.name} {words(value)}{interval}",
                    address=None if number else moment.address,
                    low=None if likely is None else scale.y(likely[0]),
                    high=None if likely is None else scale.y(likely[1]),
                    tone="" if number else moment.tone,
                )
            )
        tint = _TINTS[number % len(_TINTS)]
        drawn.append(Series(name=line.name, tint=tint, dots=tuple(dots)))
    changed = [
        (round((places[index - 1] + places[index]) / 2, 2), moment.change)
        for index, moment in enumerate(moments)
        if index and moment.change
    ]
    return Chart(
        scale=scale.labels(unit),
        labels=labels,
        series=tuple(drawn),
        rules=tuple((scale.y(rule.at), rule.words, rule.kind) for rule in rules),
        changes=tuple(changed),
    )


class _Scale(msgspec.Struct, frozen=True):
    """A vertical scale from `low` to `high` with round steps."""

    low: float
    high: float
    step: float

    @classmethod
    def fitting(cls, values: Sequence[float], *, shares: bool) -> "_Scale":
        """A scale that holds the values; of shares it need not begin at zero, so that small changes are seen."""
        low, high = (min(values), max(values)) if values and shares else (0.0, max(values, default=1.0))
        if shares and high - low < _LEAST_SHARE:
            low, high = (low + high - _LEAST_SHARE) / 2, (low + high + _LEAST_SHARE) / 2
        if high <= low:
            high = low + 1.0
        unit = 10.0 ** floor(log10(high - low))
        step = next(
            size for times in (0.2, 0.5, 1, 2, 5, 10) if (size := times * unit) * (_STEPS + 1) >= high - low
        )
        low, high = floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
        return cls(max(low, 0.0), min(high, 1.0) if shares else high, step)

    @property
    def ticks(self) -> list[float]:
        """The values with a line and a label."""
        return [
            self.low + index * self.step for index in range(round((self.high - self.low) / self.step) + 1)
        ]

    def labels(self, unit: str) -> tuple[tuple[float, str], ...]:
        """The lines with their values; amounts of money have the digits that distinguish them, and counts no fractions."""
        words = _WORDS[unit]
        if unit == "money":
            digits = 2 if self.step >= 0.01 else max(4, -floor(log10(self.step)))
            words = f"${{:,.{digits}f}}".format
        ticks = [tick for tick in self.ticks if unit != "count" or tick == round(tick)]
        return tuple((self.y(tick), words(tick)) for tick in ticks)

    def y(self, value: float) -> float:
        """The vertical position of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(_AXIS - (_AXIS - _TOP) * min(max(share, 0.0), 1.0), 2)


# Steps of a time axis in hours; beyond them, months.
_HOURS = (1 / 60, 1 / 12, 1 / 4, 1 / 2, 1, 3, 6, 12, 24, 48, 7 * 24, 14 * 24)


def _time_axis(moments: Sequence[str]) -> tuple[list[float], tuple[tuple[float, str, bool], ...]]:
    """The place of each moment, and labels that do not run into each other."""
    times = [datetime.fromisoformat(moment).astimezone() for moment in moments]
    if not times:
        return [], ()
    first, span = times[0], (times[-1] - times[0]).total_seconds()
    if span <= 0:
        middle = (_LEFT + _RIGHT) / 2
        return [middle] * len(times), ((middle, f"{first:%Y-%m-%d}", True),)

    def position(time: datetime) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (time - first).total_seconds() / span, 2)

    marks = [(position(tick), words) for tick, words in _axis_ticks(first, times[-1])]
    # Within a minute, no round time.
    marks = marks or [(_LEFT, f"{first:%H:%M:%S}"), (_RIGHT, f"{times[-1]:%H:%M:%S}")]
    labels = tuple((at, words, number % 3 == 0) for number, (at, words) in enumerate(marks))
    return [position(time) for time in times], labels


def _axis_ticks(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Round times between two moments, in the time zone of this machine."""
    hours = (last - first).total_seconds() / 3600
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    step = next((step for step in _HOURS if hours / step <= _TIMES), None)
    if step is None:
        # The first of a month, every N months.
        months = ceil(hours / (_TIMES * 30.5 * 24))
        begin = midnight.year * 12 + midnight.month - 1
        days = [
            midnight.replace(year=month // 12, month=month % 12 + 1, day=1)
            for month in range(begin, last.year * 12 + last.month)
            if (month - begin) % months == 0
        ]
        return [(day, f"{day:%Y-%m}") for day in days if first <= day <= last]
    count = int(((last - midnight).total_seconds() / 3600) / step) + 1
    ticks = [midnight + timedelta(hours=step) * number for number in range(count)]
    return [
        (tick, f"{tick:%m-%d}" if step >= 24 or tick.hour == tick.minute == 0 else f"{tick:%H:%M}")
        for tick in ticks
        if tick >= first
    ]


def bar_chart(
    bars: Sequence[Sequence[tuple[float, str, str, str | None]]],
    labels: Sequence[str],
) -> Chart:
    """Stacked bars: for each position the parts, as value, colour, words and address."""
    scale = _Scale.fitting([sum(part[0] for part in parts) for parts in bars], shares=False)
    room = (_RIGHT - _LEFT) / max(1, len(bars))
    drawn: list[Bar] = []
    for index, parts in enumerate(bars):
        below = 0.0
        for value, tint, text, address in parts:
            if not value:
                continue
            y = scale.y(below + value)
            drawn.append(
                Bar(
                    x=round(_LEFT + room * (index + 0.12), 2),
                    y=y,
                    width=round(room * 0.76, 2),
                    height=round(scale.y(below) - y, 2),
                    tint=tint,
                    words=text,
                    address=address,
                )
            )
            below += value
    # As many labels as fit, including the first; a phone shows every third of them.
    every = -(-len(labels) // _LABELS)
    shown = [
        (round(_LEFT + room * (index + 0.5), 2), labels[index], index // every % 3 == 0)
        for index in range(0, len(bars), every or 1)
    ]
    return Chart(scale=scale.labels("count"), labels=tuple(shown), bars=tuple(drawn))


# A gate on the score, which is drawn as a line.
_GATE = re.compile(r"score\s*>=?\s*(0?\.\d+|[01](?:\.0*)?)$")


class TrendPoint(msgspec.Struct, frozen=True):
    """A finished run in the trend."""

    row: RunRow
    figures: Figures
    # Against the run before it; None: not compared.
    verdict: str | None = None

    @property
    def info(self) -> RunInfo:
        return self.row.info


def trend_charts(
    points: Sequence[TrendPoint],
    address: Callable[[str], str],
    gates: Sequence[str] = (),
    baselines: Mapping[str, float] | None = None,
) -> tuple[tuple[str, Chart], ...]:
    """Score, components, latency and cost of an experiment's runs; each dot links to its run at `address(id)`.

    `baselines` are scores of baselines that are not among the points.
    """
    if len(points) < 2:
        return ()
    moments = [
        Moment(
            at=point.info.created_at,
            name=_in_words(point),
            address=address(point.info.id),
            tone=point.verdict if point.verdict in ("better", "worse") else "",
            change=_changes_in_words(before.info, point.info) if before is not None else "",
        )
        for before, point in zip((None, *points), points, strict=False)
    ]
    scores = [point.figures.score or 0.0 for point in points]
    rules = [Rule(float(at[1]), text, "gate") for text in gates if (at := _GATE.match(text))]
    named = {
        **(baselines or {}),
        **{name: score for point, score in zip(points, scores, strict=True) for name in point.row.baselines},
    }
    rules += [Rule(at, f"baseline {one_line(name, 30)}", "baseline") for name, at in named.items()]
    intervals = [
        None if (likely := point.figures.interval) is None else (likely.low, likely.high) for point in points
    ]
    score = Line(name="score", values=scores, intervals=intervals)
    drawn = [("Score with its 95% interval", line_chart([score], moments, rules=rules))]
    # What changed is marked once.
    plain = [msgspec.structs.replace(moment, tone="", change="") for moment in moments]

    def add(title: str, unit: str, **values: list[float | None]) -> None:
        lines = [Line(name=name_words(name), values=known) for name, known in values.items()]
        if any(value for line in lines for value in line.values):
            drawn.append((title, line_chart(lines, plain, unit=unit)))

    def values(name: str) -> list[float | None]:
        return [figure_of(point.figures, name) for point in points]

    parts = dict.fromkeys(name for point in points for name in point.figures.components)
    of_parts = {name: [point.figures.components.get(name) for point in points] for name in parts}
    add("Components", "percent", **of_parts)
    add("Latency", "ms", **{"slow (p95)": values("p95"), "typical (p50)": values("p50")})
    add("Cost of a run", "money", cost=values("cost"))
    return tuple(drawn)


def _in_words(point: TrendPoint) -> str:
    info, version = point.info, point.info.target_version.words
    tags = f" ({', '.join(one_line(tag, 30) for tag in info.tags[:3])})" if info.tags else ""
    version = f", {one_line(version, 80)}" if version else ""
    verdict = f", {point.verdict} than the run before" if point.verdict in ("better", "worse") else ""
    return f"{one_line(info.name, 60)}{tags}{version}, {local_time(info.created_at)}{verdict}"


def _changes_in_words(before: RunInfo, after: RunInfo) -> str:
    """What changed between two runs: the golden set, or the chatbot's version."""
    changed = []
    if before.question_set_hash != after.question_set_hash:
        changed.append("The golden set changed")
    versions = before.target_version.words, after.target_version.words
    if all(versions) and versions[0] != versions[1]:
        changed.append(" → ".join(one_line(version, 80) for version in versions))
    elif before.target_hash != after.target_hash:
        changed.append("The chatbot’s settings changed")
    return "; ".join(changed)


# Text without any of these has no Markdown.
_SIGNS = lazy(r"[*_`#>|~\[<]|^\s*(?:[-+=]|\d+[.)])", re.MULTILINE)
_SCHEMES = ("http", "https", "mailto")
# Elements that a reply may have. Headings become paragraphs, so that they do not change the page's outline.
_ELEMENTS = frozenset(
    ["p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "s"]
)
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
# The library drops what is nested more deeply, and takes quadratic time for unclosed brackets.
_DEEPEST = 30
_MOST_BRACKETS = 400
_PLAIN = {"paragraph_open", "paragraph_close", "inline", "text", "softbreak", "hardbreak"}


def formatted(segments: Sequence[Segment]) -> "Markup | None":
    """The text with its Markdown rendered; None if it has none, or if a mark or a text would be lost."""
    source = "".join(segment.text for segment in segments)
    if not _SIGNS.search(source) or source.count("[") > _MOST_BRACKETS:
        return None
    tokens = _parser().parse(source)
    kinds = {one.type for token in tokens for one in (token, *(token.children or ()))}
    if kinds <= _PLAIN or any(token.level >= _DEEPEST - 2 for token in tokens):
        return None
    writer = _Writer(segments, source)
    writer.write_all(tokens)
    marked = {number for number, segment in enumerate(segments) if segment.marks}
    return writer.markup if marked <= writer.placed else None


@cache
def _parser() -> "MarkdownIt":
    # Slow to import, and most commands show no reply.
    from markdown_it import MarkdownIt

    class Parser(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
            return _may_be_linked(url)

    # The rule for references would hide text.
    return Parser("js-default", {"html": False, "linkify": False, "maxNesting": _DEEPEST}).disable(
        "reference"
    )


def _may_be_linked(address: str) -> bool:
    """Whether an address is a web or mail address; any other stays text."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return False
    return parts.scheme.lower() in _SCHEMES and bool(parts.netloc or parts.path)


class _Writer:
    """Writes tokens as markup, and finds the position of each text in the source."""

    def __init__(self, segments: Sequence[Segment], source: str) -> None:
        self._written: list[str] = []
        # Indexes of segments of which something was written.
        self.placed: set[int] = set()
        self._segments = segments
        self._source = source
        self._starts = [0, *accumulate(len(segment.text) for segment in segments)]
        self._lines = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]
        # Where to search for the next text, and where the block ends.
        self._at = 0
        self._end = len(source)
        # Addresses of open links.
        self._links: list[str] = []

    def write_all(self, tokens: Sequence["Token"]) -> None:
        """Write tokens and what is within them."""
        for token in tokens:
            if token.map is not None and token.nesting >= 0:
                self._at = max(self._at, self._lines[min(token.map[0], len(self._lines) - 1)])
                self._end = self._lines[min(token.map[1], len(self._lines) - 1)]
            self._write(token)

    def _write(self, token: "Token") -> None:
        if token.type == "inline":
            self.write_all(token.children or ())
        elif token.type in ("softbreak", "hardbreak"):
            self._add("<br>")
        elif token.type == "hr":
            self._add("<hr>")
        elif token.type in ("fence", "code_block", "code_inline"):
            tag = "code" if token.type == "code_inline" else "pre"
            if token.info.strip():
                self._add("<small>")
                self._write_text(token.info.strip())
                self._add("</small>")
            self._add(f"<{tag}>")
            self._write_text(token.content.rstrip("\n") if tag == "pre" else token.content)
            self._add(f"</{tag}>")
        elif token.type == "link_open":
            self._open_link(str(token.attrs.get("href", "")))
        elif token.type == "link_close":
            self._close_link()
        elif token.type == "image":
            # Nothing is loaded from elsewhere: an image becomes a link.
            self._open_link(str(token.attrs.get("src", "")))
            self._add("image: ")
            self._write_text(token.content)
            self._close_link()
        elif token.tag in _HEADINGS:
            self._add('<p class="head">' if token.nesting > 0 else "</p>")
        elif token.tag in _ELEMENTS:
            start = f' start="{int(token.attrs["start"])}"' if "start" in token.attrs else ""
            # A paragraph of a list item without empty lines is hidden.
            self._add(
                "" if token.hidden else f"</{token.tag}>" if token.nesting < 0 else f"<{token.tag}{start}>"
            )
        else:
            self._write_text(token.content)

    def _open_link(self, address: str) -> None:
        # An empty address was not validated.
        self._links.append(address if _may_be_linked(address) else "")
        if self._links[-1]:
            there = escape(address)
            self._add(f'<a href="{there}" rel="noopener noreferrer nofollow" title="{there}">')

    def _close_link(self) -> None:
        address = self._links.pop()
        if not address:
            return
        parts = urlsplit(address)
        # The text of a link may lie about where it leads.
        self._add(f'</a> <small class="leads">({escape(parts.netloc or parts.path)})</small>')
        after = self._source.find(address, self._at, self._end)
        self._at = self._at if after < 0 else after + len(address)

    def _write_text(self, text: str) -> None:
        """Write a text with its marks, line by line, since the indentation of a block is not part of it."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self._add("\n")
            start = self._source.find(line, self._at, self._end) if line else -1
            if start < 0:
                self._add_text(line, ())
                continue
            self._at = start + len(line)
            while start < self._at:
                index = bisect_right(self._starts, start) - 1
                end = min(self._at, self._starts[index + 1])
                self.placed.add(index)
                self._add_text(
                    self._source[start:end], self._segments[index].marks, self._segments[index].note
                )
                start = end

    def _add_text(self, text: str, marks: tuple[str, ...], note: str = "") -> None:
        if marks:
            self._written.append(
                f'<mark class="{" ".join(marks)}" title="{escape(note)}">{escape(text)}</mark>'
            )
        else:
            self._written.append(escape(text))

    def _add(self, markup: str) -> None:
        self._written.append(markup)

    @property
    def markup(self) -> "Markup":
        """Everything written; all texts are escaped."""
        from markupsafe import Markup

        return Markup("".join(self._written))  # noqa: S704 - everything in it is escaped


# Later style sheets override earlier ones.
_SHEETS = ("tokens.css", "page.css", "tables.css", "trial.css")
# Indentation before markup, without meaning: it makes a page of many rows an eighth larger.
_INDENT = lazy(r"^[ \t]+(?=[<{])", re.MULTILINE)


def make_environment(own: Callable[[str], str | None]) -> "Environment":
    """An environment with the templates that `own` reads by name, the report's, and the filters of both."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: _INDENT.sub("", own(name) or report_asset(name))),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        brief=lambda text, width=120: one_line(str(text), width),
        cell=cell_text,
        change=change_text,
        component=component_words,
        delta=points_change,
        direction=_direction,
        first_up=lambda text: text[:1].upper() + text[1:],
        formatted=formatted,
        json_value=_json_value,
        grade=lambda share: None if share is None else letter_grade(share),
        metric=metric_text,
        gate_value=gate_value,
        money=money,
        ms=milliseconds,
        ms_range=time_range_text,
        number="{:,}".format,
        p=p_text,
        points=_points,
        rate=percent,
        score=score_percent,
        seg=lambda text: quote(str(text), safe=""),
        ticks=_ticks,
        tone=tone_of,
        used=used_text,
        when=lambda moment: local_time(str(moment)),
        width=lambda share: f"{max(0.0, min(100.0, 100 * (share or 0))):.2f}%",
        words=name_words,
        zip=lambda first, second: zip(first, second, strict=True),
    )
    environment.globals.update(
        cost_line=cost_line,
        count=count,
        critical_line=critical_line,
        judge_line=judge_line,
        meanings=GRADE_MEANINGS,
        metric_range=metric_range_text,
    )
    return environment


@cache
def report_template(name: str) -> "Template":
    return make_environment(lambda _: None).get_template(name)


def policy_hash(text: str) -> str:
    """The hash by which a content security policy allows a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def report_asset(name: str) -> str:
    """A template, style sheet or script of the report."""
    return (files("answerkey.report") / "templates" / name).read_text("utf-8").strip()


@cache
def report_style() -> str:
    """The style sheet of the report, which the dashboard extends."""
    return compact_css("\n".join(map(report_asset, _SHEETS)))


def compact_css(sheet: str) -> str:
    """A style sheet without comments and layout."""
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)).strip()


def _harmless(value: object) -> object:
    """Strip control characters from every text that is not markup."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return for_terminal(value)
    return value


def _ticks(text: str) -> "Markup":
    """A sentence with `commands` in backticks as markup; everything is escaped."""
    from markupsafe import Markup

    parts = for_terminal(text).split("`")
    # An unpaired backtick stays text.
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def _json_value(text: str) -> object:
    """The object or list that a text is in JSON; None for anything else, and for truncated JSON."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return decode_strict_json(text)
    except ValueError:
        return None


def _direction(change: float | None) -> str:
    """The colour of a change of score; flat if the difference would not show."""
    if change is None or abs(change) <= 0.0005:
        return "flat"
    return "better" if change > 0 else "worse"


def _points(lost: float | None) -> str:
    """Lost points of a hundred: −8."""
    if lost is None:
        return ""
    value = lost * 100
    return f"−{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"−{value:.1f}"
