"""Figures that follow from the evidence are supported, and the same figures with a slip in them are not."""

import json
import random
import re
from pathlib import Path

import pytest

from answerkey.model.question import Question
from answerkey.scorers.groundedness import Groundedness
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.reply_mapping import reply_from_payload

DATA = Path(__file__).parent / "data"


def unsupported(answer, result, question="What do we have?"):
    payload = {
        "answer": answer,
        "tool_calls": [{"name": "query_database", "arguments": {}, "result": result}],
    }
    return [claim["text"] for claim in claims(question, payload) if not claim["supported"]]


def claims(question, payload):
    scores = Groundedness().score(
        Question(id="q", question=question), reply_from_payload(payload, asked=Asked(recorded=True))
    )
    return next((s.details.get("claims", []) for s in scores if s.name == "groundedness"), [])


PALLETS = [{"p": 1, "kg": 480}, {"p": 2, "kg": 455}, {"p": 3, "kg": 445}]
TRAINS = [
    {"departs": "06:10", "arrives": "06:52"},
    {"departs": "14:05", "arrives": "14:47"},
    {"departs": "22:37", "arrives": "23:19"},
]
BRANCHES = [
    {"branch": "Lakeside", "volume": 4600000},
    {"branch": "Old Town", "volume": 4400000},
    {"branch": "Airport", "volume": 3000000},
]
PLANS = [
    {"plan": "Starter", "price": 19, "subscribers": 820},
    {"plan": "Team", "price": 49, "subscribers": 310},
]


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (PALLETS, "The pallets weigh [1.38|1.48] tonnes in total."),
        ({"runtime_s": 6480}, "The film runs 1 hour and [48|38] minutes."),
        ({"size_gb": 2400}, "The backup is [2.4|2.6] TB."),
        ({"temp_c": 28}, "It has [82|92] °F."),
        ({"kwh_year": 2190}, "It uses 2,190 kWh a year, [6.0|7.0] kWh a day."),
        (BRANCHES, "Lakeside had $4.6M and Old Town $4.4M. Together they make up [75|65]% of it."),
        (BRANCHES, "Lakeside alone makes up more than [a third|half]."),
        (BRANCHES, "Lakeside had the most, $[200,000|300,000] more than Old Town."),
        (PLANS, "Starter brings $[15,580|15,480] and Team $15,190."),
        ({"price": 1500, "plan_pays": "80%"}, "The plan pays 80% of $1,500, which leaves you $[300|400]."),
        ([[2024, 18600], [2025, 23250]], "It rose from $18,600 to $23,250, one [quarter|third] more."),
        ({"renewal": "03-01"}, "It renews every year on March [1|11]."),
        ({"dep": "22:40", "arr": "06:10"}, "The flight takes [seven|six] and a half hours."),
        ({"begin": "02:14", "end": "04:05"}, "The outage lasted an hour and [51|41] minutes."),
        (TRAINS, "It is the 22:37, a [42|45]-minute ride."),
        ({"state": "NM"}, "It was formed in [New Mexico|West Virginia]."),
        ({"kaltmiete": 850, "monate": 3}, "Die Kaution beträgt drei Monatsmieten, also [2.550|2.650] Euro."),
        (
            {"bought": "2023-06-14", "warranty_years": 3},
            "It is covered for three years, until June [14|24], 2026.",
        ),
        (
            [{"site": "East", "visits": 600}, {"site": "West", "visits": 250}],
            "East had [2.4|2.7] times as many visits as West.",
        ),
        ({"before": "5.0%", "after": "6.5%"}, "The rate went from 5.0% to 6.5%, a lift of [30%|35%]."),
        ({"serves": 6, "flour_g": 450, "asked": 10}, "For 10 people take [750|780] g of flour."),
        ({"note": "Installed 2014, warranty 12 years."}, "The 12 years run until [2026|2028]."),
        ({"open": "07:00", "close": "19:00"}, "The gate is open from 7 to [7|8]."),
        ({"bill": "$96.00"}, "The bill of $96.00 split four ways is [$24|$26] each."),
    ],
)
def test_what_follows_is_supported_and_a_slip_is_not(result, answer):
    right, slip = (re.sub(r"\[(.*?)\|(.*?)\]", rf"\{group}", answer) for group in (1, 2))
    assert unsupported(right, result) == []
    assert len(unsupported(slip, result)) == 1


@pytest.mark.parametrize(
    ("result", "answer", "slips"),
    [
        (
            {"room": "Fjord", "rate": 145},
            "Fjord costs $145 a night, so [$580|$590] for four nights.",
            ["$590", "four"],
        ),
        ({"litres_per_coat": 9}, "You need 9 litres per coat and [18|19] for two coats.", ["19", "two"]),
    ],
)
def test_so_many_times_a_stated_rate_needs_no_number_in_the_evidence(result, answer, slips):
    right, slip = (re.sub(r"\[(.*?)\|(.*?)\]", rf"\{group}", answer) for group in (1, 2))
    assert unsupported(right, result) == []
    assert unsupported(slip, result) == slips


def test_how_often_a_rate_applies_is_not_free_where_the_evidence_says_it():
    stay = {"rate": 145, "nights": 3}
    assert "four" in unsupported("It costs $145 a night, so $580 for four nights.", stay)


def test_chance_seldom_lets_a_wrong_digit_pass():
    """One digit of every third figure changed: with more telling digits, fewer are some combination by chance."""
    rng = random.Random(7)
    tried, passed = {False: 0, True: 0}, {False: 0, True: 0}
    for path in sorted(DATA.glob("claims_*.jsonl")):
        for line in path.read_text("utf-8").splitlines()[::3]:
            row = json.loads(line)
            planted, question, text = row.pop("unsupported"), row.pop("question"), row["answer"]
            for claim in claims(question, row):
                digits = [at for at in range(claim["start"], claim["end"]) if text[at].isdigit()]
                wrong_already = any(p["start"] < claim["end"] and claim["start"] < p["end"] for p in planted)
                if wrong_already or not digits or claim["type"] not in ("number", "money", "percentage"):
                    continue
                at = rng.choice(digits)
                digit = rng.choice([d for d in "123456789" if d != text[at]])
                changed = row | {"answer": text[:at] + digit + text[at + 1 :]}
                here = [
                    c
                    for c in claims(question, changed)
                    if c["start"] < claim["end"] and claim["start"] < c["end"]
                ]
                tried[len(digits) >= 3] += 1
                passed[len(digits) >= 3] += all(c["supported"] for c in here)
    assert sum(tried.values()) > 500
    assert passed[True] / tried[True] <= 0.05
    assert passed[False] / tried[False] <= 0.20
