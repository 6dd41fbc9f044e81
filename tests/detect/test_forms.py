"""Every row of the table of certain forms, and what a form must not be mistaken for."""

import pytest

from answerkey.detect.detector import detect_failure
from answerkey.detect.form_table import FORM_TABLE as TABLE
from answerkey.detect.form_table import Form, compile_form

ROWS = [(form, example) for form in (*TABLE.whole, *TABLE.inside) for example in form.examples]


@pytest.mark.parametrize(("form", "example"), ROWS, ids=[example[:40] for _, example in ROWS])
def test_each_example_has_its_form(form: Form, example: str) -> None:
    found = detect_failure(example)
    assert found is not None
    assert (found.kind, found.charged) == (form.kind, form.probability == 1)


@pytest.mark.parametrize("body", TABLE.bodies.error_examples)
def test_bodies_that_report_an_error(body: str) -> None:
    found = detect_failure(body)
    assert found is not None
    assert (found.kind, found.charged) == ("error_text", True)


@pytest.mark.parametrize("body", TABLE.bodies.call_examples)
def test_bodies_that_should_have_stayed_inside(body: str) -> None:
    found = detect_failure(body)
    assert found is not None
    assert (found.kind, found.charged) == ("malformed", True)


@pytest.mark.parametrize(
    "reply",
    [
        '{"order": 17, "errors": 0, "status": "shipped"}',
        '{"rent": 1450, "currency": "USD"}',
        '{"name": "Ada", "role": "admin"}',
        '[{"id": 1}, {"id": 2}]',
        "In Jinja you write {{ customer.name }} where the name goes.",
        "Division by zero is undefined.",
        "In JavaScript 0/0 is NaN, not null.",
        "You see [object Object] because an object was added to a text.",
        "502 Bad Gateway means that a proxy got no valid response. Restart the service behind it.",
        "ECONNREFUSED means nothing listens on that port.",
        "ValueError: raised when an argument has the right type but not a valid value.",
        "The service is available from 9 to 5.",
        "Your service starts on Monday.",
        "There was a problem with your card, so I used the other one. The order is confirmed.",
        "If something went wrong, tell us your order number and we will send a new one.",
        "Please try again with your order number.",
        "Line 3 timed out of the tournament after two rounds and is back on Friday.",
        "Sales fell from 694 to 428.\n\nAt the current pace they reach 400 in May.",
        "Brazil grew by 45% and India by 40%.\n\nIn absolute dollars Brazil also added the most.",
        'The log says:\n\n  File "a.py", line 3\nValueError: bad\n\nThe column has text, so convert it before you compare.',
    ],
)
def test_answers_that_resemble_a_form_are_not_charged(reply: str) -> None:
    found = detect_failure(reply)
    assert found is None or not found.charged


@pytest.mark.parametrize(
    "reply",
    [
        "Here is the script:\n\n```python\nfor row in rows:\n    print(row",
        "| Name | Rent |\n|---|---|\n| Unit 1 | 1,450 |\n| Unit 2",
        "Do this:\n1. Open the app\n2. Tap Settings\n3.",
        '{"answer": "Your parcel will arr',
        "The deposit is due before you move in (see section 4 of the",
        "The invoice was sent on Monday and it is payable within thirty days to the",
        "Die Rechnung wurde am Montag versandt und ist zahlbar bis zum",
        "Turnover was $",
        "The deposit is €",
        "It came to $442,",
        "The basis is 442,300 dollars (",
        "I can send the lease as well. Would you like me to",
    ],
)
def test_open_ends_are_truncated(reply: str) -> None:
    found = detect_failure(reply)
    assert found is not None
    assert (found.kind, found.charged) == ("truncated", True)


@pytest.mark.parametrize(
    "reply",
    [
        "hey :)",
        "good evening :(",
        "Op maandag zijn we gesloten",
        "What is it for",
        "Yes, that is the one I told you about",
        "1. Open the app\n2. Tap Settings\n3. Tap Log out",
        "- milk\n- eggs\n- bread",
        "| Size | Chest |\n|---|---|\n| S | 90 |",
        "```python\nx = 1\n```",
        "Sizes: S (small), M (medium), L",
        "Choose option A",
        "Our currency symbol is $",
        "All prices are in €",
        "Der Umsatz betrug 500 €",
        "Das tut mir leid :(",
        "Жаль (",
        "I can send it if you want me to",
        "Best regards,",
    ],
)
def test_a_missing_full_stop_is_nothing(reply: str) -> None:
    found = detect_failure(reply)
    assert found is None or not found.charged


def test_each_form_with_a_mark_has_one() -> None:
    mark = compile_form(TABLE.inside_marks)
    for form in TABLE.inside:
        for example in form.examples:
            assert mark.search(example), example


@pytest.mark.parametrize(
    "reply",
    [
        "The helmets are",
        "The total is",
        "Your parcel was",
        "Thanks for waiting. The three documents you need are",
        "It costs $420 and the",
        "We have the",
    ],
)
def test_a_short_reply_that_lacks_what_its_last_word_announces_breaks_off(reply: str) -> None:
    found = detect_failure(reply)
    assert found is not None
    assert (found.kind, found.charged) == ("truncated", True)


@pytest.mark.parametrize(
    "reply",
    [
        "They are",
        "It was",
        "Yes, the helmets are",
        "No, only the red ones are",
        "The blue ones are",
        "That is where the shop is",
        "Ask Ann who the new contact is",
        "Here are the prices as the list was",
        "The helmets are.",
        "Log in",
        "What for",
    ],
)
def test_a_short_reply_that_may_be_whole_is_an_answer(reply: str) -> None:
    assert detect_failure(reply) is None
