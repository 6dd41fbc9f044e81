"""A reply's Markdown: what it looks like, that its marks stay, and that nothing in it can do anything."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerkey.report.detail import cut_at_marks
from answerkey.report.markup import formatted


def shown(text: str, *words: str) -> str | None:
    spans = [(text.index(word), text.index(word) + len(word), "keyword", "found") for word in words]
    return formatted(tuple(cut_at_marks(text, spans, 100)))


def test_blocks_and_spans() -> None:
    text = "# Rent\n- **May**\n- `June`\n\n| month | sum |\n|---|---|\n| May | 4,100 |\n\n7. seven"
    markup = shown(text)
    assert markup is not None
    for part in ('<p class="head">Rent</p>', "<li><strong>May</strong></li>", "<code>June</code>"):
        assert part in markup
    assert "<td>4,100</td>" in markup
    assert '<ol start="7">' in markup


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("It was **$4,100** in May", "4,100"),
        ("- rent of *Montrose*", "Montrose"),
        ("| a |\n|---|\n| Montrose |", "Montrose"),
        ("> ```\n> x = 900\n> ```", "900"),
        ("see [Montrose](https://example.com/Montrose)", "Montrose"),
        ("a **b** 900", "900"),
    ],
)
def test_marks_stay(text: str, word: str) -> None:
    assert f'<mark class="keyword" title="found">{word}</mark>' in (shown(text, word) or "")


def test_where_a_mark_or_a_text_would_be_lost_it_stays_as_written() -> None:
    assert shown("**a** [x](https://example.com/900)", "900") is None
    assert shown(">" * 40 + " deep **text**") is None


def test_plain_text_is_not_formatted() -> None:
    assert shown("The rent is $4,100.\n\nIn May.") is None
    assert shown("2 * 3 is < 7") is None


def test_links_say_where_they_lead_and_pictures_are_links() -> None:
    markup = shown("[your bank](https://evil.example/x) ![cat](https://example.com/cat.png)") or ""
    assert '>your bank</a> <small class="leads">(evil.example)</small>' in markup
    assert ">image: cat</a>" in markup
    assert markup.count('rel="noopener noreferrer nofollow"') == 2


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#106;avascript:alert(1)",
        "java\tscript:alert(1)",
        "vbscript:x",
        "data:text/html,x",
        "/logout",
        "//evil.example",
        "file:///etc/passwd",
        "#x",
        "ftp://example.com",
    ],
)
def test_other_addresses_stay_text(address: str) -> None:
    assert "<a" not in (shown(f"**x** [go]({address}) <{address}> ![go]({address})") or "")


ALLOWED = {
    "p",
    "ul",
    "ol",
    "li",
    "blockquote",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "strong",
    "em",
    "s",
}
ALLOWED |= {"br", "hr", "pre", "code", "a", "small", "mark"}
ATTRIBUTES = {"a": {"href", "rel", "title"}, "mark": {"class", "title"}, "ol": {"start"}}


class Elements(HTMLParser):
    """Whatever a browser would see as an element must be one that this program writes."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= ATTRIBUTES.get(tag, {"class"})
        href = dict(attrs).get("href")
        assert href is None or re.match(r"(https?://|mailto:)", href, re.IGNORECASE)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


SIGNS = "< > [x]( ) * _ ` | # - &lt; \\ \" ' ! [ ] word ~~ <!-- <script> <img/src=x/onerror=1> javascript: https://a.b/"
signs = st.sampled_from([*SIGNS.split(), "\n", "\n\n", "```\n", "|---|\n", " "])


@settings(max_examples=300)
@given(st.lists(signs, max_size=40).map("".join))
def test_nothing_but_its_own_elements(text: str) -> None:
    markup = formatted(tuple(cut_at_marks(text, [(0, 3, "keyword", '<"note>')], 5)))
    if markup is not None:
        Elements().feed(markup)
