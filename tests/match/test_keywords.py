"""Keyword matching in the modes of the scoring standard."""

import pytest

from answerkey.match.keywords import MatchMode, check_pattern, find_keywords
from answerkey.text.keyword import Alternatives, Keyword, NumberKeyword, PatternKeyword

MODES: list[MatchMode] = ["literal", "standard", "smart"]

STANDARD_ROWS: list[tuple[list[Keyword], str | None, list[bool]]] = [
    (
        ["900", "9th", "Montrose", "CO"],
        "Your property is located at 900 S 9th St, Montrose, CO 81401",
        [True, True, True, True],
    ),
    (
        ["August", "2024", "rental", "income", "16144"],
        "I found some transaction data for you.",
        [False] * 5,
    ),
    (["anything", NumberKeyword(1), PatternKeyword("x")], None, [False, False, False]),
]
BASIS = "The total basis for your property is $442,300, which includes the land and building components."


def found(keywords: list[Keyword], text: str | None, mode: MatchMode) -> list[bool]:
    return [match.found for match in find_keywords(keywords, text, mode)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("keywords", "text", "expected"), STANDARD_ROWS)
def test_rows_of_the_standard(
    keywords: list[Keyword], text: str | None, expected: list[bool], mode: MatchMode
) -> None:
    assert found(keywords, text, mode) == expected


def test_a_number_is_found_however_it_is_written_except_in_literal() -> None:
    keywords: list[Keyword] = ["basis", "depreciation", "442300", "land", "building"]
    assert found(keywords, BASIS, "standard") == [True, False, True, True, True]
    assert found(keywords, BASIS, "smart") == [True, False, True, True, True]
    assert found(keywords, BASIS, "literal") == [True, False, False, True, True]


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("442300", "442,300.00", True),
        ("442,300", "It is 442300 in all", True),
        ("$1,000", "1000 dollars", True),
        ("12.5", "12.50 %", True),
        ("12%", "12.0", True),
        ("442300", "442,301", False),
        ("442300", "$442.3K", False),
        ("-5,000", "5000", False),
        ("12345678901234567890.0", "12345678901234567891", False),
        ("land", "The island", True),
        ("9th", "ninth", False),
    ],
)
def test_standard(keyword: str, text: str, expected: bool) -> None:
    assert found([keyword], text, "standard") == [expected]


def test_every_match_says_where_and_why() -> None:
    matches = find_keywords(["basis", "442300", "depreciation"], BASIS)
    assert [(match.rule, match.text) for match in matches] == [
        ("substring", "basis"),
        ("number", "442,300"),
        ("none", ""),
    ]
    for match in matches[:2]:
        assert BASIS[match.start : match.end] == match.text
    assert all(match.why for match in matches)


def test_spans_index_the_reply_even_where_lower_casing_changes_its_length() -> None:
    text = "İİ Montrose İzmir"
    montrose, izmir = find_keywords(["MONTROSE", "İZMİR"], text, "literal")
    assert text[montrose.start : montrose.end] == montrose.text == "Montrose"
    assert izmir.found is False
    (second,) = find_keywords(["i̇zmir"], text, "literal")
    assert second.text == "İzmir"


def test_numbers_with_a_tolerance() -> None:
    keyword = NumberKeyword(442300, 0.5)
    assert [m.found for text in ("$442,300.50", "442299.4", "none", "442 300") for m in find_keywords([keyword], text)] == [
        True,
        False,
        False,
        True,
    ]  # fmt: skip
    assert found([NumberKeyword(1.0, 0.1)], "It is 1.1", "literal") == [True]
    (match,) = find_keywords([NumberKeyword(10, 3)], "8 or 11 or 12")
    assert match.text == "11"


def test_patterns_ignore_case_and_keep_their_span() -> None:
    text = "Straße: 900 S 9TH St"
    (match,) = find_keywords([PatternKeyword(r"9(th)? st")], text)
    assert (match.rule, match.text, text[match.start : match.end]) == ("pattern", "9TH St", "9TH St")
    assert found([PatternKeyword(r"(?<!\d)9th")], text, "standard") == [True]
    assert found([PatternKeyword(r"(\w)\1")], "book", "standard") == [True]
    assert found([PatternKeyword("é.")], "\ud800 éa", "standard") == [True]


def test_a_pattern_that_does_not_compile_is_named_and_never_found() -> None:
    assert check_pattern("(a|b") is not None
    assert check_pattern("(?=a)b") is None
    (match,) = find_keywords([PatternKeyword("(a|b")], "a")
    assert not match.found
    assert "does not compile" in match.why


def test_a_pattern_that_backtracks_without_end_is_stopped() -> None:
    (match,) = find_keywords([PatternKeyword(r"(?=a)(a|aa)+$")], "a" * 60 + "b")
    assert not match.found
    assert "took longer" in match.why
    # Without look-around the same shape runs in linear time.
    assert found([PatternKeyword(r"(a|aa)+$")], "a" * 5000 + "b", "standard") == [False]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "keyword", ["", "   ", "\n", Alternatives(()), Alternatives(("", " ")), PatternKeyword("")]
)
def test_an_empty_keyword_is_never_found(keyword: Keyword, mode: MatchMode) -> None:
    (match,) = find_keywords([keyword], "some reply", mode)
    assert (match.found, match.why) == (False, "empty keyword")


@pytest.mark.parametrize("mode", MODES)
def test_alternatives_count_as_one_keyword(mode: MatchMode) -> None:
    keyword = Alternatives(("Denver", "Montrose", NumberKeyword(81401), PatternKeyword("colo(u)?rado")))
    assert found([keyword], "In Montrose.", mode) == [True]
    assert found([keyword], "zip 81401", mode) == [True]
    assert found([keyword], "Colorado", mode) == [True]
    assert found([keyword], "Boston", mode) == [False]


@pytest.mark.parametrize("mode", MODES)
def test_odd_input_does_not_crash(mode: MatchMode) -> None:
    keywords: list[Keyword] = ["!!!", "?", "\ud800", "x" * 10_000, "🙂", "\u200b"]
    for text in ["", "\ud800\udfff", "🙂" * 10, "a\x00b", "!!!"]:
        assert len(find_keywords(keywords, text, mode)) == len(keywords)
