"""Expectation matching in the modes of the scoring standard."""

import pytest

from answerkey.match.keywords import MatchMode, check_pattern, find_keywords
from answerkey.model.expectation import Alternatives, Expectation, NumberExpectation, PatternExpectation

MODES: list[MatchMode] = ["literal", "standard", "smart"]

STANDARD_ROWS: list[tuple[list[Expectation], str | None, list[bool]]] = [
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
    (["anything", NumberExpectation(1), PatternExpectation("x")], None, [False, False, False]),
]
BASIS = "The total basis for your property is $442,300, which includes the land and building components."


def found(keywords: list[Expectation], text: str | None, mode: MatchMode) -> list[bool]:
    return [match.found for match in find_keywords(keywords, text, mode)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("keywords", "text", "expected"), STANDARD_ROWS)
def test_rows_of_the_standard(
    keywords: list[Expectation], text: str | None, expected: list[bool], mode: MatchMode
) -> None:
    assert found(keywords, text, mode) == expected


def test_a_number_is_found_however_it_is_written_except_in_literal() -> None:
    keywords: list[Expectation] = ["basis", "depreciation", "442300", "land", "building"]
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
    keyword = NumberExpectation(442300, 0.5)
    assert [m.found for text in ("$442,300.50", "442299.4", "none", "442 300") for m in find_keywords([keyword], text)] == [
        True,
        False,
        False,
        True,
    ]  # fmt: skip
    assert found([NumberExpectation(1.0, 0.1)], "It is 1.1", "literal") == [True]
    (match,) = find_keywords([NumberExpectation(10, 3)], "8 or 11 or 12")
    assert match.text == "11"


def test_patterns_ignore_case_and_keep_their_span() -> None:
    text = "Straße: 900 S 9TH St"
    (match,) = find_keywords([PatternExpectation(r"9(th)? st")], text)
    assert (match.rule, match.text, text[match.start : match.end]) == ("pattern", "9TH St", "9TH St")
    assert found([PatternExpectation(r"(^|\D)9th")], text, "standard") == [True]
    assert found([PatternExpectation("é.")], "\ud800 éa", "standard") == [True]


def test_a_pattern_that_does_not_compile_is_named_and_never_found() -> None:
    assert check_pattern("(a|b") is not None
    (match,) = find_keywords([PatternExpectation("(a|b")], "a")
    assert not match.found
    assert "does not compile" in match.why


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("(?=a)b", "look-around is not supported; write out what may be there"),
        ("a(?!b)", "look-around is not supported"),
        (r"(?<=\d)th", "look-around is not supported"),
        (
            r"(?<!\d)9th",
            r"as in (^|\D)9th for (?<!\d)9th, and list what must not be said under forbidden_keywords",
        ),
        (r"(\w)\1", "back-references are not supported; write out what may be repeated, as in (aa|bb)"),
        ("(?P<x>a)(?P=x)", "back-references are not supported"),
        (r"end\Z", r"write \z for the end of the text"),
        (r"\u20AC", r"write the character itself, or its number as in \x{20AC}"),
        ("a{1001}", "nor the second 1000"),
        ("a++", "the syntax is RE2's: https://"),
        ("a\n)", "unexpected ): a )"),
        ("\ud800", "half of a surrogate pair"),
    ],
)
def test_what_re2_does_not_have_is_refused_in_one_line_with_what_to_write_instead(
    pattern: str, remedy: str
) -> None:
    problem = check_pattern(pattern)
    assert problem is not None
    assert remedy in problem
    assert len(problem.splitlines()) == 1


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\p{Greek}+ \x{20AC}", "ΑΒΓ €"),
        (r"(?P<street>9th|ninth) st(?:reet)?\z", "900 South NINTH Street"),
        (r"(?s)a.*?b{2,3}", "A\nbb"),
        (r"(?m)^total$", "sum\nTotal\n"),
        (r"[[:alpha:]]{3}\B", "four"),
    ],
)
def test_the_syntax_of_the_documentation_is_understood(pattern: str, text: str) -> None:
    assert found([PatternExpectation(pattern)], text, "standard") == [True]


def test_no_pattern_backtracks_without_end() -> None:
    assert found([PatternExpectation(r"(a|aa)+$")], "a" * 50_000 + "b", "standard") == [False]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "keyword", ["", "   ", "\n", Alternatives(()), Alternatives(("", " ")), PatternExpectation("")]
)
def test_an_empty_keyword_is_never_found(keyword: Expectation, mode: MatchMode) -> None:
    (match,) = find_keywords([keyword], "some reply", mode)
    assert (match.found, match.why) == (False, "empty keyword")


@pytest.mark.parametrize("mode", MODES)
def test_alternatives_count_as_one_keyword(mode: MatchMode) -> None:
    keyword = Alternatives(
        ("Denver", "Montrose", NumberExpectation(81401), PatternExpectation("colo(u)?rado"))
    )
    assert found([keyword], "In Montrose.", mode) == [True]
    assert found([keyword], "zip 81401", mode) == [True]
    assert found([keyword], "Colorado", mode) == [True]
    assert found([keyword], "Boston", mode) == [False]


@pytest.mark.parametrize("mode", MODES)
def test_odd_input_does_not_crash(mode: MatchMode) -> None:
    keywords: list[Expectation] = ["!!!", "?", "\ud800", "x" * 10_000, "🙂", "\u200b"]
    for text in ["", "\ud800\udfff", "🙂" * 10, "a\x00b", "!!!"]:
        assert len(find_keywords(keywords, text, mode)) == len(keywords)
