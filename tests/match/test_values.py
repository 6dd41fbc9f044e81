"""Numbers, ranges, dates and times that a golden set expects, in ordinary replies through `answerkey score`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.match.keywords import find_keywords
from answerkey.model.question import NumberExpectation

Scored = Callable[..., list[bool]]
HOW_MANY = "How many seats are there?"


@pytest.fixture
def met(command: Callable[..., Any], write_rows: Callable[..., Path]) -> Scored:
    """Whether each row (expectation, reply) is met, by `answerkey score`."""

    def score(rows: list[tuple[Any, str]], question: str = HOW_MANY, mode: str = "standard") -> list[bool]:
        log = [
            {"id": f"r{number}", "question": question, "expected_keywords": [expected], "answer": reply}
            for number, (expected, reply) in enumerate(rows)
        ]
        path = write_rows("log.jsonl", *log)
        done = command("score", path, "--match", mode, "--processes", "1", "--json")
        cases = sorted(done.document["results"], key=lambda case: int(case["id"][1:]))
        return [case["components"]["response_quality"]["score"] == 1.0 for case in cases]

    return score


def differing(rows: list[tuple[Any, str]], met: list[bool], expected: bool) -> list[tuple[Any, str]]:
    assert len(rows) == len(met)
    return [row for row, found in zip(rows, met, strict=True) if found is not expected]


PART_OF_SOMETHING_ELSE = [
    (10, "It starts on 2026-10-06."),
    (10, "It starts on 06/10/2026."),
    (10, "On 10 October."),
    (10, "8 seats, on October 10th."),
    (10, "8 seats, for 10 October."),
    (10, "In September 2026 there were 6 seats; updated 2026-10-02."),
    (10, "Tuesday, 10 October: 3 seats"),
    (10, "until Oct. 10; 3 seats"),
    (10, "2026-10"),
    (6, "On Oct 6 there were 3."),
    (6, "On 2026-10-06 there were none."),
    (11, "Booked 3; last change 2026-11-01."),
    (10, "6:10 pm"),
    (10, "We open at 10 am; 3 seats."),
    (10, "3 seats from 10:00 to 12:00"),
    (5, "Call 555-5-5"),
    (20, "Please call 020 5550 121."),
    (49, "Ruf an: +49 30 123456"),
    (555, "Our number is (555) 123-4567."),
    (10, "ten percent"),
    (10, "10%"),
    (10, "1) 3 seats ... 10) 4 seats"),
    (10, "Seats:\n1. wheel: 3\n2. glaze: 4\n10. raku: 5"),
    (20, "Room 20: 3 seats."),
    (7, "Version 7 of the form: 3 seats"),
    (10, "No. 10 of 2026 has 3 seats."),
    (10, "There are 3 seats (table No. 10)."),
    (10, "INV-10 has 3 seats"),
    (10, "See invoice #10: 3 seats"),
    (20, "Write to room20@studio.example or see https://studio.example/20/"),
    (10, "10 000"),
    (10, "10k"),
]
EVERYDAY_TENS = """10 seats|10.|**10**|ten|Ten.|10x|10 of them|$10|10€|10,00 €|10/10|10|(10)|[10]|10 kg|10+|~10|10 (ten)|10.00
There are 10.|There are 10, as of 6 October 2026.|In total, 10 seats, on 6 October.|10 seats on 2026-10-06|10 seats in room 20
In September 10 seats were booked.|For October 10 seats|we had 10 October bookings|10 in October|September: 10, October: 12
10 may join.|Only 10 may attend the course|May 10 people come? Yes.|a total of ten seats (6+4)|| Seats | 10 ||Seats: 10
Answer: 10.\\nThanks!|10. That is all.|- 10 seats|* 10|1. There are 10 seats.\\n2. Call us.|No. 10 seats are left.
about 10|10, I think|10 seats/room|10 seats (September 2026)|3 of 10|10-12 seats|We are building 10 seats|exactly 10!"""


def test_what_is_part_of_a_date_a_time_a_code_or_a_list_is_not_the_number(met: Scored) -> None:
    rows = [({"number": number}, reply) for number, reply in PART_OF_SOMETHING_ELSE]
    assert differing(rows, met(rows), False) == []


def test_no_right_everyday_reply_loses_its_number(met: Scored) -> None:
    replies = EVERYDAY_TENS.replace("\n", "|").replace("\\n", "\n").split("|")
    rows = [({"number": 10}, reply) for reply in replies if reply.strip() and reply.strip() != "Seats"]
    assert len(rows) > 40
    assert differing(rows, met(rows), True) == []


def test_a_year_a_share_and_a_number_of_hours_stay_numbers(met: Scored) -> None:
    rows = [
        ({"number": 2026}, "In October 2026."),
        ({"number": 2011}, "Founded on 6 October 2011."),
        ({"number": 24}, "Within 24 h."),
        ({"number": 5}, "It is 5%."),
        ({"number": 1442300}, "1.442.300"),
        ({"number": 20}, "Room 20."),
    ]
    assert differing(rows, met(rows, "What is it?"), True) == []
    years = [({"number": 1842.5, "tolerance": "10%"}, "In October 2026 it was 900.")]
    assert differing(years, met(years, "What is it?"), False) == []


LABELS = (
    "Question 12: unanswered|Terminal 12, 2nd floor|bus line 12|Take the bus 12.|Room 12|See page 12.|Table 12 is free."
    "|auf der Seite 12|Gleis 12|Voir chapitre 12|línea 12|Opening hours are 9 to 12.|We are open daily from 9 to 12."
)
COUNTS = (
    "12|We run 12.|In each building 12 shops|On our platform 12 shops are listed.|In the building 12 shops|Shops: 12"
    "|We track 12 shops|Our vans seat 12|per floor 12|Terminal: 12 shops|We're open in 12 places"
    "|We are open 9 to 12 and have 12 shops.|In jedem Gebäude 12 Läden"
)


def test_how_many_is_not_answered_by_what_is_numbered_or_by_opening_hours(met: Scored) -> None:
    for replies, expected in ((LABELS, False), (COUNTS, True)):
        rows = [({"number": 12}, reply) for reply in replies.split("|")]
        assert differing(rows, met(rows, "How many shops do you have?"), expected) == []
    assert met([({"number": 12}, "One takes 12, a table 12.")], "How many does a table take?") == [True]
    assert met([({"number": 12}, "Terminal 12")], "Where does it leave?") == [True]
    hours = [({"number": 12}, "Opening hours are 9 to 12.")]
    assert met(hours, "How many hours are you open, and when?") == [True]


NO_COUNT = (
    "12 %|Opening hours are 9:00 to 12:00.|Opening hours are 9 to 12.|page 12|On 5/12/2024.|555-12-77|It closes at 12 pm."
    "|Terminal 12, 2nd floor|INV-12|Call 020 1255 012."
)


def test_smart_reads_a_text_that_is_a_number_as_a_typed_one(met: Scored) -> None:
    for expected in ("12", {"any": ["12", "a dozen"]}, {"number": 12}):
        rows = [(expected, reply) for reply in NO_COUNT.split("|")]
        assert differing(rows, met(rows, "How many shops do you have?", "smart"), False) == []
    rows = [("12", reply) for reply in NO_COUNT.split("|")]
    # There it is a text.
    assert all(met(rows, "How many shops do you have?", "standard"))
    replies = ("12", "We have 12 shops.", "Twelve shops", "Es sind zwölf.", "It has 12 shops, see page 3.")
    right = [("12", reply) for reply in replies]
    assert differing(right, met(right, "How many shops do you have?", "smart"), True) == []
    assert met([("12", "It is on page 12.")], "Which page is it on?", "smart") == [True]
    assert met([("12", "On 12 October.")], "On what day in October is it?", "smart") == [True]


TIMES = [
    ("11:00", "11 am|11am|11 a.m.|11h|11 Uhr|11 o'clock|11:00|Eleven o'clock in the morning.|At eleven.|Eleven.|11|We open at 11."
     "|From 11 to 17.|Sundays from eleven to five|at 11 on Sundays", "11 pm|We open at 11 pm.|11:30|23:00|at 11 at night"
     "|at 11 Main Street|11 seats"),
    ("23:00", "11 pm|11 p.m.|23 Uhr|eleven pm|11 o'clock|11 at night|at eleven", "11 am|Eleven o'clock in the morning."),
    ("12:00", "12 pm|noon|12:00|at twelve|12 Uhr", "12 am|midnight"),
    ("00:00", "12 am|midnight|00:00", "12 pm|noon"),
    ("9:00", "9 am|9:00|at nine|9 pm", "10 am|9:30"),
    ("9 pm", "21:00|9 pm|at nine", "9 am|9 in the morning"),
]  # fmt: skip


@pytest.mark.parametrize(("time", "right", "wrong"), TIMES)
def test_a_time_of_day_in_its_common_forms(met: Scored, time: str, right: str, wrong: str) -> None:
    for replies, expected in ((right, True), (wrong, False)):
        rows = [({"date": time}, reply) for reply in replies.split("|")]
        assert differing(rows, met(rows, "What time do you open?"), expected) == []


def test_values_in_words(met: Scored) -> None:
    rows = [
        ({"date": "2026-10-06"}, "the sixth of October"),
        ({"date": "2026-10-06"}, "October the sixth"),
        ({"date": "2026-11-21"}, "It is on the twenty-first of November, 2026."),
        ({"number": 32.5}, "32 euros 50 cents"),
        ({"number": 32.5}, "€32 and 50 cents"),
        ({"number": 32.5}, "thirty-two euros and fifty cents"),
        ({"number": 32.5}, "thirty-two fifty"),
        ({"number": 18.9}, "18 euros 90"),
        ({"number": 18.9}, "Eighteen ninety."),
    ]
    assert differing(rows, met(rows, "What is it?"), True) == []
    wrong = [
        ({"date": "2026-10-06"}, "the sixth of October 2025"),
        ({"date": "2026-10-06"}, "the sixteenth of October"),
        ({"number": 32}, "32 euros 50 cents"),
        ({"number": 18.9}, "18 euros, 90 pieces"),
        ({"number": 3250}, "32 euros 50"),
    ]
    assert differing(wrong, met(wrong, "What is it?"), False) == []


NUMERALS = [
    (12, "Wir haben zwölf Filialen.|Zwölf|Es sind zwölf.|Nous avons douze magasins.|Douze.|Tenemos doce tiendas.|Hay doce."
     "|Abbiamo dodici negozi.|We hebben twaalf winkels.|Temos doze lojas.|Wir sind in zwölf Städten.",
     "Wir öffnen um zwölf.|zwölf Uhr|Seite zwölf|zwölf Prozent|zweiunddreißig"),
    (11, "Nous avons onze magasins.|Tenemos once tiendas.|Wir haben elf Filialen.|Temos onze lojas.",
     "I went there once.|They have once been open.|Wij hebben onze winkels gesloten.|the elf"),
    (4, "vier Öfen|Wir haben vier Öfen.|quatre fours", "vierzig Öfen|vierundzwanzig"),
    (1, "one", "Wir haben ein Problem.|une boutique|una tienda grande"),
    (21, "Wir haben einundzwanzig Filialen.|Tenemos veintiuno.|Nous en avons vingt et un.", "vingt|treinta y uno"),
    (35, "fünfunddreißig Filialen|treinta y cinco tiendas|trente-cinq magasins|trentacinque negozi|trinta e cinco", "trente"),
    (5, "cinq", "fünfunddreißig|treinta y cinco|trente-cinq|trentacinque"),
    (9, "Nous avons neuf magasins.", "un vélo neuf"),
    (2, "due negozi, sono due", "The rent is due.|It ran on DOS."),
]  # fmt: skip


@pytest.mark.parametrize(("number", "right", "wrong"), NUMERALS)
def test_whole_numbers_in_words_of_other_languages(met: Scored, number: int, right: str, wrong: str) -> None:
    for mode in ("standard", "smart"):
        for replies, expected in ((right, True), (wrong, False)):
            rows = [({"number": number}, reply) for reply in replies.split("|")]
            assert differing(rows, met(rows, "How many shops do you have?", mode), expected) == []


OTHER_TIMES = [
    ("18:00", "18.00|18.00 Uhr|1800 hours|by six in the evening|bis sechs Uhr abends|um sechs|à six heures du soir"
     "|a las seis de la tarde|alle sei|von sechs bis acht|om zes uur|às seis da tarde",
     "bis sechs Uhr morgens|bis sechs Filialen|six in the morning|à six heures du matin|1900 hours|17.00|um sechzehn Uhr"),
    ("13:00", "um eins|um ein Uhr|a la una|13.00|13.00 Uhr|alle una", "um elf|13.50 Uhr|Wir haben eins.|una tienda"),
]  # fmt: skip


@pytest.mark.parametrize(("time", "right", "wrong"), OTHER_TIMES)
def test_a_time_in_words_of_other_languages_and_with_a_point(
    met: Scored, time: str, right: str, wrong: str
) -> None:
    for replies, expected in ((right, True), (wrong, False)):
        rows = [({"date": time}, reply) for reply in replies.split("|")]
        assert differing(rows, met(rows, "When do you close?"), expected) == []


def test_smart_takes_pm_and_uhr_for_a_part_of_the_time(met: Scored) -> None:
    replies = (
        "6 pm|It closes at 6 pm.|We close at 6 p.m. on weekdays.|18 Uhr|1800 hours|bis sechs Uhr abends|18:00"
    )
    rows = [({"date": "18:00"}, reply) for reply in replies.split("|")]
    assert differing(rows, met(rows, "When do you close?", "smart"), True) == []


def test_cents_in_words(met: Scored) -> None:
    right = [
        ({"number": 5.9}, "Five dollars ninety."),
        ({"number": 5.9}, "It is five euros ninety per parcel."),
    ]
    assert differing(right, met(right, "How much is delivery?"), True) == []
    wrong = [({"number": 5.9}, "Five dollars, ninety"), ({"number": 5}, "Five dollars ninety.")]
    wrong.append(({"number": 5.9}, "Five dollars ninety people paid."))
    assert differing(wrong, met(wrong, "How much is delivery?"), False) == []


COURSE, FIRING = "How much is the wheel throwing course?", "What do you charge to fire a shelf in the kiln?"
START, OPENING = "When does the autumn wheel course start?", "What time do you open on Sundays?"
PRICE, DAY, TIME = {"number": 145}, {"date": "2026-10-06"}, {"date": "11:00"}
# What smart holds of a value that is in the reply: whether it is the answer.
ANSWERS = [
    (COURSE, PRICE, "The wheel throwing course is €145.", True),
    (COURSE, PRICE, "It costs 145 euros per person, materials included.", True),
    (COURSE, PRICE, "One hundred and forty-five euros.", True),
    (COURSE, PRICE, "The handbuilding course is €145; the wheel course costs €175.", False),
    (COURSE, PRICE, "It is not €145 any more; please ask at reception for the new price.", False),
    (COURSE, PRICE, "Would you like to know the price of the wheel course for €145 or the glazing workshop?", False),
    (COURSE, {"range": [140, 150]}, "The wheel throwing course is €145.", True),
    (COURSE, {"range": [140, 150]}, "The handbuilding course is €145; the wheel course costs €175.", False),
    (COURSE, {"any": ["a hundred", PRICE]}, "The handbuilding course is €145; the wheel course costs €175.", False),
    (FIRING, {"number": 32.5}, "Wir berechnen 32,50 € pro Etage.", True),
    (START, DAY, "It starts on Tuesday, 6 October 2026.", True),
    (START, DAY, "06.10.2026", True),
    (START, DAY, "the sixth of October", True),
    (START, DAY, "It was moved from 6 October to 13 October 2026.", False),
    (OPENING, TIME, "We open at 11 am on Sundays.", True),
    (OPENING, TIME, "11:00 to 17:00", True),
    (OPENING, TIME, "At eleven.", True),
    (OPENING, TIME, "On Saturdays at 11:00; we are closed on Sundays.", False),
    ("How many seats were booked?", {"number": 0}, "There were none.", True),
]  # fmt: skip


def test_smart_asks_of_a_value_whether_it_is_the_answer(met: Scored) -> None:
    for question in dict.fromkeys(row[0] for row in ANSWERS):
        rows = [row for row in ANSWERS if row[0] == question]
        pairs = [(expected, reply) for _, expected, reply, _ in rows]
        for (_, expected, reply, right), found in zip(rows, met(pairs, question, "smart"), strict=True):
            assert (expected, reply, found) == (expected, reply, right)
        # The other modes find it wherever it is said.
        assert all(met(pairs, question, "standard"))


def test_without_a_question_a_value_is_rejected_only_for_a_named_reason() -> None:
    (match,) = find_keywords([NumberExpectation(-3100)], "a net result of -$3,100", "smart")
    assert match.found


def test_a_value_that_is_rejected_says_why() -> None:
    text = "Would you like to know the price of the wheel course for €145 or the glazing workshop?"
    (match,) = find_keywords([NumberExpectation(145)], text, "smart", question=COURSE)
    assert match.why.startswith("asked back")
    (other,) = find_keywords([NumberExpectation(145)], "It is €150.", "smart", question=COURSE)
    assert other.why == "no number within the tolerance occurs in the reply"
    (found,) = find_keywords(
        [NumberExpectation(145)], "The wheel throwing course is €145.", "smart", question=COURSE
    )
    assert (found.text, found.rule) == ("145", "smart:value")


IN_OTHER_FORMS = [
    (120, "１２０"),
    (120, "定員は１２０名です。"),
    (120, "定員は120名です。"),
    (120, "السعر ١٢٠ ريال"),
    (1200.5, "١٬٢٠٠٫٥ ريال"),
    (1200, "Цена 1 200 руб. в месяц"),
    ({"number": 12.5}, "The rate is 12½ %."),
    ({"number": 6.25}, "It took 6¼ hours."),
    ({"number": -3100}, "The year ended with a loss of $3,100."),
    ({"number": -3100}, "We made a $3,100 loss."),
    ({"number": -3100}, "Das Jahr endete mit einem Verlust von 3.100 €."),
]
NOT_IN_THEM = [
    (12, "The rate is 12½ %."),
    (11, "There are between 10 and 12."),
    ({"number": -3100}, "The year ended with a profit of $3,100."),
    ({"number": -3100}, "The loss of the key cost $3,100."),
    (120, "x120y"),
]


@pytest.mark.parametrize("mode", ["standard", "smart"])
def test_digits_of_other_scripts_fraction_signs_and_losses(met: Scored, mode: str) -> None:
    rows = [
        (row if isinstance(row, dict) else {"number": row}, reply)
        for row, reply in IN_OTHER_FORMS
        if mode == "standard" or row != {"number": -3100}
    ]
    assert differing(rows, met(rows, "What was the figure?", mode), True) == []
    rows = [(row if isinstance(row, dict) else {"number": row}, reply) for row, reply in NOT_IN_THEM]
    assert differing(rows, met(rows, "What was the figure?", mode), False) == []


def test_a_text_that_is_a_number_meets_the_digits_of_other_scripts(met: Scored) -> None:
    assert met([("120", "１２０"), ("120", "السعر ١٢٠ ريال"), ("120", "١٢٠٠")]) == [True, True, False]
