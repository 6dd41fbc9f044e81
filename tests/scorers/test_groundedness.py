"""Groundedness of a reply: its value, its claims, and what is inconsistent about it."""

import pytest

from answerkey.model.question import Question
from answerkey.model.reply import Evidence, Reply, Source, ToolCall
from answerkey.scorers.groundedness import Groundedness

RENTS = [{"name": "Maple Duplex", "rent": 1200}, {"name": "Oak Cottage", "rent": 1500}]


def check(text, *results, sources=(), question="?"):
    calls = tuple(ToolCall(name="query", result=result, result_seen=True) for result in results)
    reply = Reply(text=text, tool_calls=calls, sources=tuple(Source(id="d", text=part) for part in sources))
    return {score.name: score for score in Groundedness().score(Question(id="q", question=question), reply)}


def unsupported(*arguments, **named):
    details = check(*arguments, **named)["groundedness"].details
    return [claim["text"] for claim in details["unsupported"]]


def kinds(*arguments, **named):
    return [
        finding["kind"] for finding in check(*arguments, **named)["consistency"].details.get("findings", [])
    ]


def test_the_value_is_supported_of_checkable():
    score = check("Maple Duplex brings $1,200, and Pine Villa $900.", RENTS)["groundedness"]
    assert score.value == 0.5
    assert score.details["score"] == 0.5
    assert [claim["supported"] for claim in score.details["claims"]] == [True, True, False, False]
    _, second, *rest = score.details["claims"]
    assert second["evidence"] == {"where": "tool_calls[0].result[0].rent", "text": "rent: 1200"}
    assert score.details["unsupported"] == rest
    assert all(claim["why"] for claim in rest)


def test_without_evidence_it_is_not_observed_and_not_zero():
    assert Groundedness().score(Question(id="q", question="?"), Reply(text="It is $5.")) == ()
    unseen = Reply(
        text="It is $5.", tool_calls=(ToolCall(name="query"),), evidence=Evidence(tools_observed=True)
    )
    (score,) = Groundedness().score(Question(id="q", question="?"), unseen)
    assert score.value is None
    assert "not observed" in score.reason


def test_nothing_checkable_has_no_value():
    score = check("I could not find that.", [])["groundedness"]
    assert score.value is None
    assert "nothing that can be checked" in score.reason


CHURN = [{"customers": 500, "lost": 20}, {"customers": 500, "lost": 16}]
PROFILE = [{"key": "legal_name", "value": "Elm Row LLC"}, {"key": "ein", "value": "84-2917753"}]


@pytest.mark.parametrize(
    "text",
    [
        "In total you collect $2,700.",
        "The average rent is $1,350.",
        "You own two properties.",
        "Oak Cottage brings $300 more, or 25% more.",
        "That is $32,400 a year in total.",
        "About $2.7k in total.",
        "Maple Duplex makes up 44.4% of it.",
    ],
)
def test_right_derived_figures_are_supported(text):
    assert unsupported(text, RENTS) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("In total you collect $2,800.", "$2,800"),
        ("The average rent is $1,400.", "$1,400"),
        ("You own four properties.", "four"),
        ("Oak Cottage brings 40% more.", "40%"),
        ("The highest rent is $2,700.", "$2,700"),
        ("Maple Duplex rents for $1,500.", "$1,500"),
        ("It belongs to Dana Cole.", "Dana Cole"),
    ],
)
def test_wrong_figures_and_names_are_not(text, wrong):
    assert unsupported(text, RENTS) == [wrong]


def test_what_the_question_says_may_be_said_again():
    assert (
        unsupported("You asked for rents above $1,000.", RENTS, question="Which rents are above $1,000?")
        == []
    )


def test_texts_that_hold_json_or_tables_are_read_as_that():
    for result in (
        '[{"n": 20}, {"n": 35}]',
        "[{'n': 20}, {'n': 35}]",
        "| n | k |\n|---|---|\n| 20 | a |\n| 35 | b |",
    ):
        assert unsupported("The total is 55.", result) == []


def test_ids_and_dates_support_no_amount():
    assert unsupported("The fee is $17.", {"invoice_id": 17, "date": "2024-08-17"}) == ["$17"]


def test_a_contradiction_names_what_the_evidence_has():
    assert kinds("Maple Duplex rents for $1,500.", RENTS) == ["contradiction"]
    assert kinds("Maple Duplex rents for $1,200.", RENTS) == []


def test_a_total_must_add_up():
    listed = "- Maple Duplex: $1,200\n- Oak Cottage: $1,500\n\nTotal: ${}"
    assert kinds(listed.format("2,900"), RENTS) == ["total_does_not_add_up"]
    assert kinds(listed.format("2,700"), RENTS) == []


def test_an_answer_where_the_tools_found_nothing():
    assert kinds("Your agent is Pat Nolan.", []) == ["answer_without_evidence"]
    assert kinds("There is no agent on record.", []) == []
    assert kinds("Your agent is Pat Nolan.", {"agent": "Pat Nolan"}) == []


@pytest.mark.parametrize(
    "text", ["1-" * 5000, "a1" * 5000, '"' * 5000, "Aa " * 5000, "\x00\u202e\ud83d" * 50, "5," * 5000]
)
def test_any_text_is_checked_without_an_error(text):
    scores = check(text, RENTS, sources=["12,12 " * 200])
    assert all("could not" not in score.reason for score in scores.values())


def test_fractions_in_words_are_percentages():
    law = "A vote of two-thirds of the members is required."
    assert unsupported("It takes 66.7% of the members.", sources=[law]) == []
    assert unsupported("It takes three-quarters of the members.", sources=[law]) == ["three-quarters"]


LOG = [
    {"date": "2024-08-01", "category": "rent", "amount": 1875.0, "payee": "Vance"},
    {"date": "2024-08-14", "category": "repairs", "amount": 412.35, "payee": "Ace Glass"},
    {"date": "2024-09-02", "category": "rent", "amount": 1620.0, "payee": "Okafor"},
]
LEASE = "Five (5) years from September 1, 2023. Rent $1,200 a month, due on the first day. Notice: 90 days. Area 1,450 sq ft."


@pytest.mark.parametrize(
    ("text", "results", "sources"),
    [
        ("Rent is due on the 1st.", (), (LEASE,)),
        ("12 months × $1,200 = $14,400.", (), (LEASE,)),
        ("It ends on August 31, 2028, so notice is due by June 2, 2028.", (), (LEASE,)),
        ("Rental income was $3,495 from two payments.", (LOG,), ()),
        (
            "| Payee | Amount |\n|---|---|\n| Vance | $1,875.00 |\n| Okafor | $1,620.00 |\n| Total | $3,495.00 |",
            (LOG,),
            (),
        ),
        ("The stay is July 3–7, four nights.", ({"in": "2024-07-03", "out": "2024-07-07"},), ()),
        (
            "Two visits at $85, $170 in total.",
            ("2024-01-09 snow removal 85.00\n2024-01-21 snow removal 85.00",),
            (),
        ),
        ("R. Oyelaran manages it.", ({"manager": "Ruth Oyelaran"},), ()),
        ("It took 12.6 minutes.", ({"duration_seconds": 754},), ()),
        ("Entitled 25, taken 9, booked 4. Left: 12.", ({"entitled": 25, "taken": 9, "booked": 4},), ()),
        (
            "### Allocation of $900\n\n- Q1: $400\n- Q2: $500",
            ("quarter | x\n2023Q1 | 400\n2023Q2 | 500",),
            (),
        ),
        ("- 10/4 paid 250.00", ([{"date": "2024-10-04", "paid": 250.0}],), ()),
        ("2023: 1,650; 2024: 1,720, up 70.", ({"rent_2023": 1650, "rent_2024": 1720},), ()),
        (
            "From January to March 2024 ten joined in total.",
            ({"2024-01": 2, "2024-02": 5, "2024-03": 3},),
            (),
        ),
        ("By Inspector G. Thibodeaux.", ({"inspector": "Gerard Thibodeaux"},), ()),
        ("The EIN of Elm Row LLC is 84-2917753.", (PROFILE,), ()),
        ("Agreed on 14 November 2019.", (), ("effective as of the 14th day of November, 2019",)),
        ("Three of the four lines:\n1. A\n2. B\n3. C", ([{"line": name} for name in "ABCD"],), ()),
        (
            "$1,770 a month, $18.00 per square foot per year",
            (),
            ("1,180 rentable square feet, $1,770 a month",),
        ),
        (
            "Limits are 12 months' fees, i.e. £13,800.",
            (),
            ("Monthly fee £1,150. Capped at 12 months' fees.",),
        ),
        (
            "| Rank | Who |\n|---|---|\n| 1 | Ann Ito |\n| 2 | Bo Ek |",
            ([{"who": "Ann Ito"}, {"who": "Bo Ek"}],),
            (),
        ),
        ("11 days are left.", ({"entitled": 20, "carried_over": 3, "taken": 12},), ()),
        ("Units 2B and 4A are vacant.", ([{"unit": "2B"}, {"unit": "4A"}],), ()),
        (
            "She has been here for just over five years.",
            ({"hired": "2019-09-09", "today": "2024-11-04"},),
            (),
        ),
        ("16 of 500 left, 3.2%. Before it was 4.0%, so it fell by 0.8 points.", (CHURN,), ()),
        ("At $95 an hour that is $17,717.50.", ([{"hours": 74}, {"hours": 112.5}], {"rate": 95}), ()),
        (
            "February was $310 over budget.",
            ([{"month": "2024-01", "spent": 2390}, {"month": "2024-02", "spent": 2810}], {"budget": 2500}),
            (),
        ),
        ("You reach that on May 3, 2032.", ({"born": "1970-05-03"},), ("Full benefits at age 62.",)),
        ("Revenue in Q2 was $900.", ([{"region": "North", "q2": 900, "q3": 950}],), ()),
        (
            "It cost $32,000 over 5 years, $6,400 per year. After two years $19,200 is left.",
            ({"cost": 32000, "life_years": 5, "years_in_service": 2},),
            (),
        ),
        ("The fee is $150, about 30% of the total.", (), ("The fee is $150; the total $500.",)),
    ],
)
def test_what_follows_in_other_words_is_supported(text, results, sources):
    assert unsupported(text, *results, sources=sources) == []


@pytest.mark.parametrize(
    ("text", "results", "sources", "wrong"),
    [
        ("12 months × $1,200 = $14,800.", (), (LEASE,), ["$14,800"]),
        ("It has 1,450 square meters.", (), (LEASE,), ["1,450"]),
        ("The price is $129.", ({"price": 129.0, "currency": "EUR"},), (), ["$129"]),
        ("The chip is 985112004471763.", ({"chip": "985112004417763"},), (), ["985112004471763"]),
        ("Vance paid $1,875 on September 2, 2024.", (LOG,), (), ["September 2, 2024"]),
        ("In September you got $412.35.", (LOG,), (), ["$412.35"]),
        ("Three payments passed $1,000:\n- Vance\n- Okafor", (LOG,), (), ["Three", "$1,000"]),
        ("The average payment is $1,620.00.", (LOG,), (), ["$1,620.00"]),
        ("Approved by Ida Ek.", ({"requested_by": "Ida Ek", "approved_by": "Bo Ito"},), (), ["Ida Ek"]),
        ("It pays 0.32 EUR per mile.", (), ("mileage is paid at 0.32 EUR per kilometre",), ["0.32 EUR"]),
        ("Repairs fell by 42.9%.", ({"repairs_2023": 4180, "repairs_2024": 2926},), (), ["42.9%"]),
        ("Tarheel Group, $572.", (), ("Appraisal fee $525 to Tarheel Group. Transfer tax $572.",), ["$572"]),
        ("Most joined in March 2024: 5.", ({"2024-02": 5, "2024-03": 3},), (), ["March 2024"]),
        ("The gap was in Unit D.", ({"unit": "C"},), (), ["Unit D"]),
        ("| Unit | Tenant |\n|---|---|\n| 1 | Delgado |", ([{"unit": 1, "tenant": None}],), (), ["Delgado"]),
    ],
)
def test_what_is_another_things_is_not(text, results, sources, wrong):
    assert unsupported(text, *results, sources=sources) == wrong


def test_a_superlative_with_the_right_figure_has_the_wrong_thing():
    months = [{"month": "2024-04", "expenses": 1310.4}, {"month": "2024-06", "expenses": 2240.1}]
    assert unsupported("April, at $2,240.10.", months, question="Which month had the highest expenses?") == [
        "April"
    ]
