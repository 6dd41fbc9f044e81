"""Where figures, dates, names, ids and quotes of a reply stand in its evidence."""

import json

import pytest

from answerkey.evidence.links import MAX_REPLY_CHARACTERS, TooLargeError, find_links
from answerkey.model.question import Question
from answerkey.model.reply import Link, Reply, Source, ToolCall

ARREARS = [
    {"unit": "2A", "tenant": "D. Okafor", "balance": 1420.0, "since": "2025-01-03"},
    {"unit": "5C", "tenant": "L. Brandt", "balance": 655.5, "since": "2025-02-14"},
    {"unit": "7B", "tenant": "R. Silva", "balance": 212.0, "since": "2025-03-01"},
]


def links(text: str, result: object = None, *passages: str, question: str = "?") -> dict[str, Link]:
    calls = () if result is None else (ToolCall(name="query", result=result, result_seen=True),)
    reply = Reply(text=text, tool_calls=calls, sources=tuple(Source(text=passage) for passage in passages))
    return {item.text: item for item in find_links(Question(id="q", question=question), reply)[0]}


def test_each_thing_is_linked_to_its_cell() -> None:
    found = links("L. Brandt in 5C owes $655.50 since 14 February 2025.", ARREARS)
    assert {text: item.where for text, item in found.items()} == {
        "L. Brandt": "tool_calls[0].result[1].tenant",
        "5C": "tool_calls[0].result[1].unit",
        "655.50": "tool_calls[0].result[1].balance",
        "14 February 2025": "tool_calls[0].result[1].since",
    }
    assert found["655.50"].row == "5C"


def test_of_equal_values_the_one_that_the_sentence_speaks_of() -> None:
    result = [{"city": "Leeds", "orders": 412}, {"city": "York", "orders": 412}]
    assert links("York had 412 orders.", result)["412"].where == "tool_calls[0].result[1].orders"
    assert links("Leeds had 412 orders.", result)["412"].where == "tool_calls[0].result[0].orders"


@pytest.mark.parametrize(
    ("text", "said", "result", "how"),
    [
        ("That is about $16,000.", "16,000", {"amount": 16144}, "rounded"),
        ("Revenue was 1.24 million.", "1.24 million", {"revenue_k": 1240}, "in thousands"),
        ("The rate is 4.25%.", "4.25", {"rate": 0.0425}, "as a share"),
        ("It took 5.2 hours.", "5.2", {"delay_min": 312}, "converted"),
        ("It took 5 h 12 min.", "5 h 12 min", {"delay_min": 312}, ""),
        ("Umsatz: 1.350 €", "1.350", {"umsatz": 1350}, ""),
        ("Le prix est de 12,50 €.", "12,50", {"prix": 12.5}, ""),
        ("In week 19 it was open.", "19", {"week": "2024-W19", "open": True}, ""),
        ("Zahlbar bis 14.02.2025.", "14.02.2025", {"due": "2025-02-14"}, ""),
        ("It closes at 5:30 pm.", "5:30 pm", {"closes": "17:30"}, ""),
    ],
)
def test_other_ways_to_write_a_value(text: str, said: str, result: object, how: str) -> None:
    found = links(text, result)[said]
    assert found.where.startswith("tool_calls[0].result.")
    assert found.how == how


@pytest.mark.parametrize(
    ("text", "said", "how"),
    [
        ("Together they owe $2,287.50.", "2,287.50", "sum of balance"),
        ("The average is $762.50.", "762.50", "average of balance"),
        ("Three tenants are behind.", "Three", "count of the entries of the result"),
        ("D. Okafor owes $1,420.00, $764.50 more than L. Brandt with $655.50.", "764.50", "1420 − 655.5"),
        ("D. Okafor alone has 62.1% of it.", "62.1", "1420 ÷ sum of balance"),
    ],
)
def test_what_follows_plainly_from_a_column(text: str, said: str, how: str) -> None:
    assert links(text, ARREARS)[said].how == how


def test_what_is_found_nowhere_is_listed_and_no_more() -> None:
    found = links("Maria Ortega paid $9,999.37 on 5 May 2031.", ARREARS)
    assert {text: item.where for text, item in found.items()} == {
        "Maria Ortega": "",
        "9,999.37": "",
        "5 May 2031": "",
    }


def test_a_figure_that_many_would_hit_needs_a_word_in_common() -> None:
    result = {"rooms": 3, "floors": 2, "lifts": 1, "baths": 4, "beds": 5}
    assert links("It has 4 baths.", result)["4"].where == "tool_calls[0].result.baths"
    assert links("Please call back in 4 weeks.", result)["4"].where == ""


def test_passages_have_spans() -> None:
    text = "Claims must be made within 14 days. We pay up to £3,000."
    found = links("We pay up to £3,000, and “made within 14 days” is the rule.", None, text)
    assert found["3,000"].where == "sources[0].text"
    assert found["3,000"].span == (text.index("3,000"), text.index("3,000") + 5)
    assert found["made within 14 days"].where == "sources[0].text"


@pytest.mark.parametrize(
    "result",
    [
        json.dumps(ARREARS),
        "unit,tenant,balance\n2A,D. Okafor,1420\n5C,L. Brandt,655.5",
        "| unit | tenant | balance |\n|---|---|---:|\n| 2A | D. Okafor | 1420 |\n| 5C | L. Brandt | 655.5 |",
        {
            "columns": ["unit", "tenant", "balance"],
            "rows": [["2A", "D. Okafor", 1420], ["5C", "L. Brandt", 655.5]],
        },
    ],
)
def test_tables_in_other_dress(result: object) -> None:
    found = links("L. Brandt owes $655.50.", result)
    assert found["655.50"].where.endswith("[1].balance")
    assert found["655.50"].row == "5C"


def test_a_part_of_a_name_and_what_is_missing_of_it() -> None:
    found = links("Neil Sedaka sang it.", {"singer": "Neil Young"})
    assert found["Neil"].where == "tool_calls[0].result.singer"
    assert found["Sedaka"].where == ""


def test_a_later_turn_may_rest_on_an_earlier_one() -> None:
    question = Question(id="q", question="And how much?")
    before = (question, Reply(text="…", tool_calls=(ToolCall(name="q", result=ARREARS, result_seen=True),)))
    (found,) = find_links(question, Reply(text="It is $655.50."), [before])[0]
    assert found.where == "turns[0].tool_calls[0].result[1].balance"


def nested(depth: int) -> object:
    value: object = 7
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "text",
    [
        "\x00 12 \x00",
        "\ud800 12 \udfff",
        "\u202e 12 שלום 2024",
        "",
        "½ ² ① ٣ 12",
        "1" * 5000,
        "1.2.3.4-5/6:7",
        "####",
        "12 %",
    ],
)
def test_hostile_text_is_no_crash(text: str) -> None:
    for result in (
        None,
        {"a": text},
        nested(5000),
        text,
        {"\ud800": "\x00"},
        10**5000,
        float("nan"),
        1e300,
        [[]],
    ):
        links(text, result, text, question=text or "?")


def test_too_large_inputs_are_refused() -> None:
    with pytest.raises(TooLargeError, match="limit 50,000"):
        links("x" * (MAX_REPLY_CHARACTERS + 1), ARREARS)
    with pytest.raises(TooLargeError, match="more than 500,000"):
        links("12", None, "x" * 500_001)
