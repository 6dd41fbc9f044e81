"""Untrusted text, made harmless for each place it is shown in."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.text.normalise import (
    for_csv,
    for_markdown,
    for_terminal,
    for_xml,
    one_line,
    without_surrogates,
)

# Hypothesis leaves surrogates out unless asked.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def test_a_terminal_gets_no_escape() -> None:
    assert for_terminal("\x1b[31mred\x1b[0m") == "␛[31mred␛[0m"
    assert for_terminal("\x1b]0;title\x07") == "␛]0;title␇"
    assert for_terminal("\x9b31m") == "\\x9b31m"


def test_direction_overrides_are_shown() -> None:
    assert for_terminal("user\u202egnp.exe") == "user\\u202egnp.exe"


def test_lines_and_tabs_stay() -> None:
    assert for_terminal("a\r\nb\tc\n") == "a\nb\tc\n"
    assert for_terminal("progress\rover it") == "progress␍over it"


@given(ANY_TEXT)
def test_terminal_text_is_writable_and_has_no_control(text: str) -> None:
    safe = for_terminal(text)
    safe.encode("utf-8")
    assert not any((ord(sign) < 32 and sign not in "\n\t") or 0x7F <= ord(sign) < 0xA0 for sign in safe)
    assert not set(safe) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


@given(ANY_TEXT)
def test_xml_text_can_be_parsed(text: str) -> None:
    root = ET.Element("a")
    root.text = for_xml(text)
    ET.fromstring(ET.tostring(root, encoding="unicode"))


@given(ANY_TEXT, st.integers(2, 60))
def test_one_line_is_one_short_line(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line
    assert len(line) <= width or any(ord(sign) > 0x2FF for sign in line)


def test_one_line_counts_wide_characters_twice() -> None:
    assert one_line("漢字漢字", 5) == "漢字…"
    assert one_line("abcd", 4) == "abcd"
    assert one_line("abcde", 4) == "abc…"


def test_one_line_says_that_a_long_text_was_cut() -> None:
    assert one_line(" " * 10 + "x" * 1_000_000, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a | b", "a \\| b"),
        ("<script>", "&lt;script&gt;"),
        ("[x](javascript:alert(1))", "\\[x\\](javascript:alert(1))"),
        ("query_database", "query_database"),
        ("_emphasis_ *strong*", "\\_emphasis\\_ \\*strong\\*"),
        ("line\none", "line one"),
        ("https://evil.example", "https:&#47;&#47;evil.example"),
        ("thanks @everyone, a@b.com", "thanks @\u200beveryone, a@b.com"),
        ("# title", "\\# title"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("`code`", "\\`code\\`"),
        ("&copy;", "&amp;copy;"),
    ],
)
def test_markdown(text: str, safe: str) -> None:
    assert for_markdown(text) == safe


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\x00=1"]
)
def test_formulas_do_not_run_in_a_spreadsheet(text: str) -> None:
    assert for_csv(text).startswith("'")


@pytest.mark.parametrize("text", ["-12.5", "+3%", "-1,234.50", "plain", "a=b", "", "442,300"])
def test_numbers_and_plain_text_stay_as_they_are(text: str) -> None:
    assert for_csv(text) == text


def test_lone_surrogates_inside_documents() -> None:
    assert without_surrogates({"a\ud800": ["b\udfff", 1, None]}) == {"a�": ["b�", 1, None]}


def test_a_terminal_gets_every_printable_character_as_it_is() -> None:
    printable = "".join(filter(str.isprintable, map(chr, range(0x11_0000))))
    assert for_terminal(printable) == printable
    # Also where the text has something else.
    assert for_terminal(f"{printable}\x1b\ud800\u202e") == f"{printable}␛�\\u202e"
