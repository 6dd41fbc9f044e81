"""A reply's Markdown as harmless markup that keeps its marks: HTML in it stays text, links say where they lead."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from answerkey.report.claims_detail import Segment

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markupsafe import Markup

# Without one of these signs there is nothing to format.
_SIGNS = re.compile(r"[*_`#>|~\[<]|^\s*(?:[-+=]|\d+[.)])", re.MULTILINE)
_SCHEMES = ("http", "https", "mailto")
# What Markdown's blocks and spans become. A heading is none of the page's own, so that its outline stays true.
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
# The library leaves out what is nested more deeply, and takes quadratic time over brackets that nobody closes.
_DEEPEST = 30
_MOST_BRACKETS = 400
_PLAIN = {"paragraph_open", "paragraph_close", "inline", "text", "softbreak", "hardbreak"}


def formatted(segments: Sequence[Segment]) -> "Markup | None":
    """The text with its Markdown carried out; None where it has none, or where a mark or a text would be lost."""
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
    # Takes a while to load, and most commands show no reply.
    from markdown_it import MarkdownIt

    class Parser(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
            return _may_be_linked(url)

    # The rule of references would hide what it reads.
    return Parser("js-default", {"html": False, "linkify": False, "maxNesting": _DEEPEST}).disable(
        "reference"
    )


def _may_be_linked(address: str) -> bool:
    """Whether an address leads to another place of the web, or to somebody's mail; any other stays text."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return False
    return parts.scheme.lower() in _SCHEMES and bool(parts.netloc or parts.path)


class _Writer:
    """Writes tokens as markup, and finds for each of their texts where it stands in the source."""

    def __init__(self, segments: Sequence[Segment], source: str) -> None:
        self._written: list[str] = []
        # Numbers of the segments of which something was written.
        self.placed: set[int] = set()
        self._segments = segments
        self._source = source
        self._starts = [0, *accumulate(len(segment.text) for segment in segments)]
        self._lines = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]
        # Where the next text is looked for, and where the block ends.
        self._at = 0
        self._end = len(source)
        # Addresses of links that are open.
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
            # Nothing is loaded from elsewhere: a picture is a link to it.
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
        # An empty one was not asked about.
        self._links.append(address if _may_be_linked(address) else "")
        if self._links[-1]:
            there = escape(address)
            self._add(f'<a href="{there}" rel="noopener noreferrer nofollow" title="{there}">')

    def _close_link(self) -> None:
        address = self._links.pop()
        if not address:
            return
        parts = urlsplit(address)
        # What the words of a link say is the chatbot's claim; where it leads is a fact.
        self._add(f'</a> <small class="leads">({escape(parts.netloc or parts.path)})</small>')
        after = self._source.find(address, self._at, self._end)
        self._at = self._at if after < 0 else after + len(address)

    def _write_text(self, text: str) -> None:
        """A text with its marks, line by line: what a block is indented by is not part of it."""
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
        """All of it; every text of others was escaped on its way in."""
        from markupsafe import Markup

        return Markup("".join(self._written))  # noqa: S704 - the one place, and nothing unescaped reaches it
