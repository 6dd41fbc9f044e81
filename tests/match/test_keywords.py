"""Expectation matching in the modes of the scoring standard."""

import pytest

from answerkey.match.keywords import MatchMode, check_pattern, find_keywords
from answerkey.model.question import (
    Alternatives,
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    RangeExpectation,
    TextExpectation,
)
from answerkey.text.normalise import plain_typography

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


@pytest.mark.parametrize(
    ("expected", "reply", "matched"),
    [
        (NumberExpectation(3960, "1%"), "about $3,930", "$3,930"),
        (NumberExpectation(3960, "1%"), "about $3,900", None),
        (NumberExpectation(-3100), "a net result of (3,100)", "3,100"),
        (NumberExpectation(-3100), "a net result of ($3,100.00)", "$3,100.00"),
        (NumberExpectation(-3100), "a net result of -$3,100", "-$3,100"),
        (NumberExpectation(-3100), "a net result of 3,100", None),
        (NumberExpectation(5400), "Es sind 5 400,00 €.", "5 400,00 €"),
        (NumberExpectation(5400), "Es sind 5.400,00 €.", "5.400,00 €"),
        (NumberExpectation(5400.5), "Es sind 5 400,50 €.", "5 400,50 €"),
        (NumberExpectation(0.4), "It costs 40 cents.", "40 cents"),
        (NumberExpectation(0.4), "It costs 40¢.", "40¢"),
        (NumberExpectation(3), "You have three properties.", "three"),
        (NumberExpectation(1200000), "It is $1.2 million.", "$1.2 million"),
        (NumberExpectation(1500000), "It is 1.5M USD.", "1.5M"),
        (NumberExpectation(1500000), "It is 1.5M€.", "1.5M"),
        # An item of a list, a dash, and a minus.
        (NumberExpectation(5), "We have:\n- 5 chairs\n- 3 tables", "5"),
        (NumberExpectation(-5), "- 5 chairs", None),
        (NumberExpectation(250), "Balance - 250 €", "250 €"),
        (NumberExpectation(-250), "Balance - 250 €", "250 €"),
        (NumberExpectation(-250), "Der Saldo ist –250 €.", "–250 €"),
        (NumberExpectation(15), "10–15 chairs", "15"),
        (NumberExpectation(-15), "10 –15 chairs", None),
        (NumberExpectation(345), "It opens at 5:45.", None),
        (NumberExpectation(0), "There are no overdue invoices.", "no overdue"),
        (NumberExpectation(0), "None of them is overdue.", "None"),
        (NumberExpectation(0), "I have no information about that.", None),
        (NumberExpectation(0.05), "It is 5%.", "5%"),
        (NumberExpectation(5), "It is 5%.", "5%"),
        (NumberExpectation(5, percent=True), "It is 5 percent.", "5 percent"),
        (NumberExpectation(5, percent=True), "It is 0.05.", "0.05"),
        (NumberExpectation(5, percent=True), "There are 5.", None),
        (NumberExpectation(5, percent=True), "It is 15%.", None),
        (RangeExpectation(3900, 4000), "about 3,950", "3,950"),
        (RangeExpectation(3900, 4000), "exactly $4,000", "$4,000"),
        (RangeExpectation(3900, 4000), "4,001 or 3,899", None),
        (RangeExpectation(5, 10, percent=True), "there are 7, that is 12%", None),
        (RangeExpectation(5, 10, percent=True), "there are 70, that is 7%", "7%"),
        (DateExpectation("2025-03-31"), "it is due on 31/03/2025", "31/03/2025"),
        (DateExpectation("2025-03-31"), "it is due on March 31", "March 31"),
        (DateExpectation("2025-03-31"), "it is due on 31.03.", "31.03."),
        (DateExpectation("2025-03-31"), "it is due on March 31, 2024", None),
        (DateExpectation("2025-03-31"), "it is due in March 2025", None),
        (DateExpectation("2025-03"), "it is due on March 31, 2025", "March 31, 2025"),
        (DateExpectation("30/09"), "due September 30", "September 30"),
        (DateExpectation("30/09"), "due 2025-09-30", "2025-09-30"),
        (DateExpectation("September 30"), "due 30/09", "30/09"),
        (DateExpectation("September 30"), "due 09/30", "09/30"),
        (DateExpectation("03/04"), "due March 4", "March 4"),
        (DateExpectation("03/04"), "due 3 April", "3 April"),
        (DateExpectation("2025-04-03"), "due 03/04/2025", "03/04/2025"),
        (DateExpectation("2025-04-03"), "due 03/05/2025", None),
        (DateExpectation("18:15"), "it opens at 6:15 pm", "6:15 pm"),
        (DateExpectation("6:15 pm"), "it opens at 18:15", "18:15"),
        (DateExpectation("18:15"), "it opens at 6:15", "6:15"),
        (DateExpectation("18:15"), "it opens at 6:15 am", None),
        (DateExpectation("18:15"), "it opens at 6:15 in the morning", None),
        (DateExpectation("18:15"), "it opens at 6:15 in the evening", "6:15 in the evening"),
        (DateExpectation("18:15"), "um 18 Uhr 15", "18 Uhr 15"),
        (DateExpectation("18:30"), "At 18.30.", "18.30"),
        (DateExpectation("18:30"), "We are open from 9.00 to 18.30", "18.30"),
        (DateExpectation("18:30"), "It goes up from 18.30 EUR to 20 EUR", None),
        (DateExpectation("18:30"), "It is 18.30", None),
        (DateExpectation("18:30"), "Come at 18.30 on Friday", "18.30"),
        (DateExpectation("18:30"), "from 12.00 to 18.30 kg", None),
        (DateExpectation("2025-03-31"), "期限は2025年3月31日です", "2025年3月31日"),
        (DateExpectation("5:45"), "it opens at 15:45", None),
        (DateExpectation("2025-03-31T18:15:00"), "on 31 March at 6:15 pm", "6:15 pm"),
        (DateExpectation("2025-03-31T18:15:00"), "on 31 March at 6:45 pm", None),
        (DateExpectation("2025-03-31 00:00:00"), "on 31 March", "31 March"),
        (TextExpectation("Net 30", must=True), "terms: net 30", "net 30"),
    ],
)
def test_numbers_ranges_dates_and_times_are_compared_by_value(
    expected: Expectation, reply: str, matched: str | None
) -> None:
    (match,) = find_keywords([expected], reply, "standard")
    assert (match.text or None) == matched
    assert match.found == (matched is not None)
    (smart,) = find_keywords([expected], reply, "smart")
    assert smart.found == match.found


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (4, "It is on 4th Street.", False),
        (4, "It is on the fourth floor.", False),
        (21, "They came 21st.", False),
        (4, "There are four of them.", True),
        (4000, "4 thousand", True),
        (6, "6 months", True),
    ],
)
def test_an_ordinal_is_not_the_number(number: float, text: str, expected: bool) -> None:
    (match,) = find_keywords([NumberExpectation(number)], text)
    assert match.found is expected
    (rank,) = find_keywords(["4th"], "It is on 4th Street.")
    assert rank.found


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("4.90", "Der Kaffee kostet 4,90 €.", True),
        ("4.90", "4,9", True),
        ("4.90", "14,90 €", False),
        ("4.90", "4,905", False),
        ("1.25", "1,250", False),
        ("4.5", "items 3,4,5", False),
        ("-3.5", "-3,5 °C", True),
    ],
)
def test_a_decimal_comma_is_read(keyword: str, text: str, expected: bool) -> None:
    assert find_keywords([keyword], text)[0].found is expected


def test_a_value_that_was_not_computed_is_never_found() -> None:
    (match,) = find_keywords([ComputedExpectation(method="sql", expression="SELECT 1")], "SELECT 1")
    assert not match.found
    assert match.why == "the expected value has not been computed"


@pytest.mark.parametrize("mode", ["literal", "standard", "smart"])
@pytest.mark.parametrize(
    ("keyword", "reply"),
    [
        ("it's due", "Yes, it’s due."),
        ("it’s due", "Yes, it's due."),
        ('"Blue Door"', "the “Blue Door” unit"),
        ("12-14 May", "on 12–14 May"),
        ("net\u00a030", "terms: net 30"),
        ("net 30", "İ terms: net\u202f30"),
    ],
)
def test_typographic_characters_are_the_same_as_plain_ones(mode: MatchMode, keyword: str, reply: str) -> None:
    (match,) = find_keywords([keyword], reply, mode)
    assert match.found
    if mode != "smart":
        assert plain_typography(match.text) == plain_typography(keyword)


@pytest.mark.parametrize(
    ("keyword", "reply", "found"),
    [
        ("4.90", "Das macht 4,90 €.", True),
        ("5400", "Le total est de 5 400,00 €.", True),
        ("1234.56", "Summe: 1.234,56 €", True),
        ("4.90", "Das macht 4,95 € oder 90 €.", False),
        ("1200", "Es sind 1.200 oder so", False),
    ],
)
def test_a_typed_number_is_found_in_other_spellings(keyword: str, reply: str, found: bool) -> None:
    assert find_keywords([keyword], reply)[0].found is found


def test_an_ordinal_is_not_an_amount() -> None:
    expected = NumberExpectation(4)
    assert not find_keywords([expected], "It is on 4th Street.")[0].found
    assert find_keywords([expected], "There are 4 on 4th Street.")[0].found


@pytest.mark.parametrize(
    ("keyword", "reply", "text"),
    [
        ("Miller", "Ask **Mil**ler now", "Mil**ler"),
        ("net 30", "terms: _net_ 30 days", "net_ 30"),
        ("net 30", "terms are net\n30 days", "net\n30"),
        ("net  30", "net 30", "net 30"),
        ("New York", "*New* **York**", "New* **York"),
        ("New York", "New<br>York", "New<br>York"),
        ("New York", "New   York", "New   York"),
        ("New York", "New\u00a0York", "New\u00a0York"),
        ("Montrose", "Mont\u00adrose", "Mont\u00adrose"),
        ("Acme Inc report", "see the [Acme Inc](http://a.b/c) report", "Acme Inc](http://a.b/c) report"),
        ("first_name", "the field first\\_name", "first\\_name"),
        ("Hauptstraße 5", "HAUPTSTRASSE 5", "HAUPTSTRASSE 5"),
        ("Hauptstrasse 5", "Hauptstraße\n5", "Hauptstraße\n5"),
    ],
)
def test_standard_reads_a_text_as_it_is_displayed(keyword: str, reply: str, text: str) -> None:
    [match] = find_keywords([keyword], reply)
    assert (match.found, match.text) == (True, text)
    assert reply[match.start : match.end] == text


@pytest.mark.parametrize(
    ("keyword", "reply"),
    [
        ("net 30", "net\n\n30"),
        ("345", "3*4*5"),
        ("a34", "a3*4"),
        ("abc", "a_b_c"),
        ("net 30", "- net\n- 30"),
        ("landbasis", "land* basis*"),
    ],
)
def test_what_is_not_displayed_together_is_not_found(keyword: str, reply: str) -> None:
    assert not find_keywords([keyword], reply)[0].found
