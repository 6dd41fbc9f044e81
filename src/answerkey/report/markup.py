"""HTML of pages: the Jinja2 environment, style sheets, and a reply's Markdown as safe markup."""

import base64
import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from answerkey.model.scorecard import letter_grade
from answerkey.report.detail import Segment
from answerkey.report.tables import cell_text
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
from answerkey.text.dates import local_time
from answerkey.text.normalise import for_terminal, one_line
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import decode_strict_json

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markupsafe import Markup


# Text without any of these has no Markdown.
_SIGNS = lazy(r"[*_`#>|~\[<]|^\s*(?:[-+=]|\d+[.)])", re.MULTILINE)
_SCHEMES = ("http", "https", "mailto")
# Markdown element → HTML tag. Headings become paragraphs, so that they do not change the page's outline.
_TAGS = {
    "paragraph": "p",
    "heading": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "strong": "strong",
    "em": "em",
    "s": "s",
}
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
        kind, _, edge = token.type.rpartition("_")
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
        elif kind in _TAGS and edge in ("open", "close"):
            self._write_edge(token, kind, closing=edge == "close")
        else:
            self._write_text(token.content)

    def _write_edge(self, token: "Token", kind: str, *, closing: bool) -> None:
        if token.hidden:
            return
        if closing:
            self._add(f"</{_TAGS[kind]}>")
        elif kind == "heading":
            self._add('<p class="head">')
        elif kind == "ordered_list" and "start" in token.attrs:
            self._add(f'<ol start="{int(token.attrs["start"])}">')
        else:
            self._add(f"<{_TAGS[kind]}>")

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
    """A template of the report."""
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
