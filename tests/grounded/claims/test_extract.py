"""Claims in texts: what is one, of which kind, and where it stands."""

import pytest

from answerkey.grounded.claims.extract import find_claims


def claims(text):
    found = find_claims(text)
    for claim in found:
        assert text[claim.start : claim.end] == claim.text
    return [(claim.kind, claim.text) for claim in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You paid $1,200.00 for it.", [("money", "$1,200.00")]),
        ("It fell by 12.5% to 30 EUR.", [("percentage", "12.5%"), ("money", "30 EUR")]),
        ("There are twenty-five units.", [("number", "twenty-five")]),
        ("It ends on August 15, 2024 at 3:30 PM.", [("date", "August 15, 2024"), ("time", "3:30 PM")]),
        ("It began in 2019.", [("date", "2019")]),
        ("The EIN is 83-4567890.", [("identifier", "83-4567890")]),
        ("See INV-2024-001 in lease.pdf.", [("identifier", "INV-2024-001"), ("identifier", "lease.pdf")]),
        ("Call (970) 555-0123.", [("identifier", "(970) 555-0123")]),
        ("It says “no pets allowed” there.", [("quote", "no pets allowed")]),
        ("Your tenant is Sarah O'Brien.", [("name", "Sarah O'Brien")]),
        ("It is in Montrose, CO.", [("name", "Montrose"), ("name", "CO")]),
        ("Rain of 3.2 mm fell.", [("number", "3.2")]),
        ("Sales of $3.2M came in.", [("money", "$3.2M")]),
    ],
)
def test_each_kind_of_claim(text, expected):
    assert claims(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Hello! I could not find anything about that. Please let me know if you need more help.",
        "Here is what I found [1] and [2, 3].",
        "## Summary\n1. Open the page\n2. Press the button",
        "We are open 24/7. Reply “yes” to go on.",
        "**Total Amount Due:** see below",
        "One of the documents is missing.",
    ],
)
def test_what_states_nothing_is_no_claim(text):
    assert claims(text) == []


def test_the_digits_of_one_claim_are_not_another():
    assert claims("Invoice A-17 of 2024-08-15") == [("identifier", "A-17"), ("date", "2024-08-15")]


def test_emphasis_does_not_hide_a_claim():
    assert ("money", "$5,000") in claims("The total is **$5,000**.")


@pytest.mark.parametrize(
    "text",
    [
        "Would you like me to export this to Excel?",
        "Let me know if you want the figures for 2023 too.",
        "The two together are enough.",
        "It is rated 4.6 out of 5.",
        "It uses fuel per 100 km.",
    ],
)
def test_offers_and_ways_of_speaking_are_no_claims(text):
    assert [one for one in claims(text) if one[1] != "4.6"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It takes seven and a half hours.", [("number", "seven and a half")]),
        ("Add 2½ cups.", [("number", "2½")]),
        ("It was open on February 3, 10 and 17.", [("date", "February 3"), ("date", "10"), ("date", "17")]),
        ("It failed on March 4 and 12 times in all.", [("date", "March 4"), ("number", "12")]),
        ("They made 4.2 MWh.", [("number", "4.2")]),
        ("You keep 68 cents of every dollar.", [("percentage", "68 cents")]),
    ],
)
def test_numbers_and_days_in_unusual_writing(text, expected):
    assert claims(text) == expected
