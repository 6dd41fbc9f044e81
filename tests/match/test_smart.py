"""`smart`: what a careful reader would accept, on forms that are certain, on labelled replies and on hostile ones."""

import json
import time
from pathlib import Path

import fit_smart
import pytest

from answerkey.match.keywords import ReplyText, find_keywords
from answerkey.match.phrasing import prepare_question
from answerkey.match.reading import Reply
from answerkey.match.smart import SmartKeyword
from answerkey.model.question import Alternatives, DateExpectation, Expectation, NumberExpectation

ROOT = Path(__file__).resolve().parents[2]


def says(keyword: str, reply: str, question: str = "", threshold: str = "even") -> bool:
    return find_keywords([keyword], reply, "smart", question=question, threshold=threshold)[0].found  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "keyword", "reply"),
    [
        ("What is the total basis?", "442300", "The total basis for your property is $442,300."),
        ("What is our address?", "9th", "Your property is located at nine hundred South Ninth Street."),
        ("How fast must I report a claim?", "48 hours", "Please notify us within two days of the incident."),
        ("What's the wire cut-off time?", "5:30 PM", "Outgoing wires have to be released by 17:30 Eastern."),
        ("When does the contract end?", "30 June 2025", "The contract with CleanSphere ends 30.06.2025."),
        ("What form do freelancers need?", "W-9", "Freelancers based in the US must send us a completed W9."),
        ("Who sang it?", "Beyoncé", "It was sung by Beyonce."),
        ("Who wrote Hamlet?", "Shakespeare", "It was written by Shakespaere."),
        ("Who is the technician?", "Brandt", "**Technician:** P. Brandt"),
        ("Who approves invoices?", "chief financial officer", "All invoices are approved by the CFO."),
    ],
)
def test_the_same_in_another_form_is_found(question: str, keyword: str, reply: str) -> None:
    assert says(keyword, reply, question)


@pytest.mark.parametrize(
    ("question", "keyword", "reply"),
    [
        ("When was he born?", "September 15, 1996", "He was born on October 15, 1996."),
        ("Who wrote Heart of Gold?", "Neil Young", "Neil Sedaka"),
        ("Who is the technician?", "Brandt", "Our technician is Piet Brandsma."),
        ("What is the deadline?", "April 15, 2024", "The amended return must be filed by April 15, 2025."),
        ("What is the area?", "CO", "Your rental income is $1,200."),
        ("What is the server's address?", "10.20.4.17", "The backup server is reachable at 10.20.4.172."),
        ("How many beds?", "28", "It has 128 beds."),
    ],
)
def test_another_value_is_not(question: str, keyword: str, reply: str) -> None:
    assert not says(keyword, reply, question)


def test_a_match_says_where_and_why() -> None:
    text = "Results: please notify us within two days of the incident."
    (match,) = find_keywords(["48 hours"], text, "smart", question="How fast must I report a claim?")
    assert match.found
    assert match.rule == "smart:number"
    assert match.start is not None
    assert text[match.start : match.end] == match.text
    assert match.text.startswith("two")
    assert match.why


@pytest.mark.parametrize(
    ("keyword", "reply", "stands"),
    [
        ("montrose", "The building stands in Montrose.", "Montrose"),
        ("442300", "The basis is $442,300.00 as of today.", "442,300.00"),
        ("rose", "The building stands in Montrose.", None),
        ("48 hours", "Claims are reported within 48 hours.", "48"),
        ("28", "It has 128 beds.", None),
        ("montrose", "Is it in Montrose?", None),
        ("montrose", "It is not Montrose.", None),
        ("montrose", "İt is in Montrose.", "Montrose"),
        ("June 30", "Our property taxes are due on June 30.", "June 30"),
    ],
)
def test_what_stands_in_a_plain_reply_is_found(keyword: str, reply: str, stands: str | None) -> None:
    (match,) = find_keywords([keyword], reply, "smart", question="When are our property taxes due?")
    assert (match.text or None) == stands


def test_thresholds_order_the_verdicts() -> None:
    rows = [
        json.loads(line)
        for line in (ROOT / "labelled/keywords/business_a.jsonl").read_text("utf-8").split("\n")[:120]
    ]
    counts = []
    for threshold in ("strict", "even", "lenient"):
        keywords = [row["expected_keywords"][0] for row in rows]
        counts.append(
            sum(
                says(keyword, row["answer"], row["question"], threshold)
                for keyword, row in zip(keywords, rows, strict=True)
                if isinstance(keyword, str)
            )
        )
    assert counts[0] < counts[1] <= counts[2]


def test_alternatives_may_be_numbers_and_patterns() -> None:
    keyword = Alternatives(("forty-two thousand", NumberExpectation(42000, 10)))
    assert find_keywords([keyword], "It came to 42,005.", "smart")[0].found


def test_a_model_of_language_takes_the_decision() -> None:
    question, text = "Which country is she from?", "She is from Holland."
    reply = Reply(ReplyText(text), prepare_question(question))
    assert not SmartKeyword("Netherlands", question).match(reply).found
    assert SmartKeyword("Netherlands", question, probability=lambda *_: 0.9).match(reply).found
    assert not SmartKeyword("Holland", question, probability=lambda *_: 0.1).match(reply).found


BAD = [
    "",
    " ",
    "\x00",
    "\ud800",
    "---",
    "|||\n|-|",
    "?",
    "שלום 442300 עולם",
    "\u202e442300",
    "\n" * 50,
    "a" * 5000,
]


@pytest.mark.parametrize("text", BAD)
def test_bad_input_gives_a_value(text: str) -> None:
    keywords = [
        "442300",
        "total basis",
        "August 15, 2024",
        "W-9",
        "CFO",
        "",
        " ",
        "\x00",
        "\ud800",
        "the",
        "?",
    ]
    assert len(find_keywords(keywords, text, "smart", question="What \ud800?")) == len(keywords)
    for keyword in BAD:
        find_keywords([keyword], "The total is 442300.", "smart", question=text)


def test_no_text_finds_nothing() -> None:
    assert not find_keywords(["x"], None, "smart")[0].found


HOSTILE = [
    "hundred ",
    "no ",
    "1,",
    "a|",
    "W- 9",
    "total ",
    "15 August ",
    "third ",
    ". ",
    "Dr. ",
    "442300 ",
    "中",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_in_the_reply(unit: str) -> None:
    """Ten times the text takes at most some ten times as long; a quadratic step would take a hundred times."""
    keywords = ["442300", "total basis", "August 15, 2024", "Neil Young", "W-9", "48 hours", "CFO"]

    def cost(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        start = time.process_time()
        find_keywords(keywords, text, "smart", question="Who wrote total Neil in 2024?")
        return time.process_time() - start

    cost(1000)
    assert cost(300_000) < 30 * max(cost(30_000), 0.002)


def test_held_out_agreement_on_business_replies() -> None:
    """Each author's replies are judged by the model that was fitted without them."""
    folds = fit_smart.stored_folds()
    rows = fit_smart.business_rows()
    right = [fit_smart.is_found(folds[row.source], row) == row.said for row in rows]
    assert sum(right) / len(right) >= 0.85


def test_agreement_on_authors_that_nothing_was_fitted_to() -> None:
    rows = fit_smart.business_rows("not_fitted/keywords_ordinary_*")
    right = [says(row.options[0], row.answer, row.question) == row.said for row in rows]
    assert sum(right) / len(right) >= 0.86


@pytest.mark.parametrize(
    ("keyword", "reply"),
    [
        ("17:45", "We close at a quarter to six."),
        ("12:00", "Pick-up is at noon."),
        ("30 September", "It is due on 30/09."),
        ("-3100", "The result was (3,100)."),
        ("5400 EUR", "Es sind 5 400,00 €."),
        ("$0.40", "It costs 40 cents."),
        ("purchase order", "Please send the PO first."),
        ("HR", "Ask human resources."),
        ("first quarter", "Sales rose in Q1."),
        ("TX", "The office is in Austin, Texas."),
        ("New York", "The office is in NYC."),
        ("5 Jahre", "Sie haben fünf Jahre Garantie."),
        ("48 horas", "O prazo é de dois dias."),
        ("14 days", "You have a fortnight."),
        ("14:30", "Die Spedition kommt um halb drei."),
        ("17h30", "La mairie ferme à cinq heures et demie."),
        ("9:30", "Abrimos a las nueve y media."),
        ("8:00-16:00", "From 8 in the morning to 4 in the afternoon."),
        ("10am-4pm", "It is open from 10:00 to 16:00."),
        ("3 m³", "It holds three cubic metres."),
        ("v4.2", "It came with version 4.2."),
        ("1Z 999 AA1 01 2345 6784", "It is 1Z999AA10123456784."),
        ("+44 117 496 0230", "You can ring 0117 4960230."),
        ("0117 496 0230", "You can ring +44 (0)117 4960230."),
        ("9.2.1", "It runs PayPro v9.2.1."),
        ("90 days", "It covers the first ninety days."),
        ("10 business days", "It takes ten working days."),
        ("twice a year", "It is serviced every six months."),
    ],
)
def test_values_and_abbreviations_are_the_same_in_other_forms(keyword: str, reply: str) -> None:
    assert says(keyword, reply, "What is it?")


@pytest.mark.parametrize(
    ("keyword", "reply"),
    [
        ("INV-20417", "It is order PO-20417."),
        ("14:30", "Die Spedition kommt um halb vier."),
        ("5 Jahre", "Sie haben sechs Jahre Garantie."),
        ("2 days", "The payment is due today."),
        ("9.2.1", "It runs v9.2.10."),
        ("0117 496 0230", "You can ring +44 117 496 0231."),
    ],
)
def test_other_values_in_other_forms_are_not(keyword: str, reply: str) -> None:
    assert not says(keyword, reply, "What is it?")


@pytest.mark.parametrize(
    ("keyword", "reply", "found"),
    [
        ("no", "Unfortunately we can't accept pets.", True),
        ("no", "Yes, cats and small dogs are welcome.", False),
        ("yes", "Yes, cats and small dogs are welcome.", True),
        ("yes", "Sorry, pets are not permitted.", False),
    ],
)
def test_the_tone_of_a_reply_says_yes_or_no(keyword: str, reply: str, found: bool) -> None:
    assert says(keyword, reply, "Are pets allowed?") is found


@pytest.mark.parametrize(
    ("question", "keyword", "reply", "found"),
    [
        ("What is the rent of flat 8?", "980", "Flat 7: 980\nFlat 8: 1,040\nFlat 9: 1,015", False),
        ("What is the rent of flat 8?", "1040", "Flat 7: 980\nFlat 8: 1,040\nFlat 9: 1,015", True),
        (
            "What is the failure rate of line 2?",
            "1.1%",
            "Line 1 fails in 0.4%, line 2 in 1.1% of cases.",
            True,
        ),
        (
            "What is the failure rate of line 2?",
            "0.4%",
            "Line 1 fails in 0.4%, line 2 in 1.1% of cases.",
            False,
        ),
        (
            "How many parking spaces are there?",
            "24",
            "It is open 24 hours a day. There are 16 parking spaces.",
            False,
        ),
        ("Who has unit 5?", "Maria Lopez", "Unit 4 is rented by Maria Lopez, unit 5 by John Webb.", False),
        (
            "When was order 61 delivered?",
            "14 February",
            "Order 61 was placed on 14 February and delivered on 19 February.",
            False,
        ),
        (
            "When was order 61 delivered?",
            "19 February",
            "Order 61 was placed on 14 February and delivered on 19 February.",
            True,
        ),
        (
            "When is invoice 881 due?",
            "2 May",
            "Invoice 881 was issued on 2 May and is due on 1 June.",
            False,
        ),
        (
            "How many customers came in June?",
            "1,340",
            "In May 1,340 customers came, in June 1,210.",
            False,
        ),
    ],
)
def test_of_several_values_the_one_that_is_asked_for_counts(
    question: str, keyword: str, reply: str, found: bool
) -> None:
    assert says(keyword, reply, question) is found


def test_users_add_abbreviations() -> None:
    reply = "Please send the MSA."
    known = (("MSA", "master service agreement"),)
    assert find_keywords(["master service agreement"], reply, "smart", abbreviations=known)[0].found


@pytest.mark.parametrize(
    ("question", "keyword", "reply"),
    [
        (
            "Which plans do we offer?",
            "HMO",
            "We offer three plans:\n- Blue PPO\n- Blue HMO\n- High-deductible plan",
        ),
        ("Which checks are outstanding?", "#3318", "Outstanding checks:\n\n1. #3311\n2. #3318\n3. #3320"),
        ("Who teaches chemistry?", "Alvarado", "| Subject | Teacher |\n|---|---|\n| Chemistry | Alvarado |"),
    ],
)
def test_an_item_of_a_list_or_table_is_found(question: str, keyword: str, reply: str) -> None:
    assert says(keyword, reply, question)


def test_a_title_does_not_end_a_sentence() -> None:
    question = "When is the next appointment of patient 4711?"
    assert says(
        "Amsel", "The next appointment of patient 4711 is on Monday at 14:15 with Dr. Amsel.", question
    )


def test_what_is_there_word_for_word_is_rejected_for_a_named_reason() -> None:
    for reply, reason in [
        ("Is it in Denver?", "asked back"),
        ("It is not in Denver.", "denied"),
        ("Previously it was Denver.", "outdated"),
        ("The shop is in Denver, the office in Boulder.", "of another entity"),
    ]:
        (match,) = find_keywords(["Denver"], reply, "smart", question="Where is the office?")
        assert not match.found
        assert match.why.startswith(reason), match.why


# Question, keyword and reply as users write them; + where a careful reader finds the keyword said.
EVERYDAY = r"""
+ | What is our total rent for August? | 16144 | Your total rent for August is $16,144.00.
+ | Who is the tenant of unit 5? | Maria Lopez | The tenant of unit 5 is Maria Lopez.
- | Who is the tenant of unit 5? | Maria Lopez | Unit 4 is rented by Maria Lopez, unit 5 by John Webb.
+ | When is the rent due? | 1st of the month | Rent is due on the 1st of each month.
+ | When is the rent due? | the first | Rent is due on the 1st.
+ | Are pets allowed? | no | Pets are not allowed in the building.
+ | Are pets allowed? | no | Unfortunately we can't accept pets.
- | Are pets allowed? | no | Yes, cats and small dogs are welcome.
+ | Are pets allowed? | yes | Yes, cats and small dogs are welcome.
+ | Are pets allowed? | yes | Cats and dogs are welcome in all our flats.
- | Are pets allowed? | yes | Sorry, pets are not permitted.
+ | How long is the warranty? | 2 years | The warranty period is 24 months.
- | How long is the warranty? | 2 years | The warranty period is three years.
+ | What time do you close? | 6 pm | We close at 18:00.
+ | What time do you close? | 18:00 | We're open 9am to 6pm.
- | What time do you close? | 6 pm | We close at 5:30 pm.
+ | How much is shipping? | free | Shipping is free for orders above $50.
+ | How much is shipping? | $4.99 | Standard shipping costs 4.99 USD.
+ | What is the capital of Australia? | Canberra | The capital of Australia is Canberra.
- | What is the capital of Australia? | Canberra | The capital is Sydney.
- | What is the capital of Australia? | Sydney | The capital is Canberra, not Sydney.
+ | What is the capital of Australia? | Canberra | Many think it's Sydney, but it's Canberra.
+ | How many employees are there? | 12 | There are twelve employees.
- | How many employees are there? | 12 | There are 120 employees.
+ | Where is the office? | New York | Our office is in NYC.
+ | Where is the office? | Berlin | Unser Büro ist in Berlin.
+ | What's the email of support? | support@acme.com | You can write to support@acme.com.
- | What's the email of support? | support@acme.com | You can write to help@acme.com.
+ | Which payment methods do you accept? | PayPal | We accept Visa, Mastercard and PayPal.
- | Which payment methods do you accept? | PayPal | We accept Visa and Mastercard, but not PayPal.
+ | Who wrote Hamlet? | Shakespeare | Hamlet was written by William Shakespeare.
+ | What's the balance? | -250 | The balance is ($250.00).
+ | What was the growth rate? | 5% | Revenue grew by five percent.
+ | What's the deadline? | March 3, 2025 | The deadline is 2025-03-03.
- | What's the deadline? | March 3, 2025 | The deadline is 2025-03-04.
+ | What's the deadline? | March 3 | It's due by Monday, 3 March.
+ | What's the status of my order? | shipped | Your order has been shipped and will arrive tomorrow.
- | What's the status of my order? | shipped | Your order has not been shipped yet.
- | What's the status of my order? | delivered | I'm sorry, I can't find that order. Could you tell me the number?
+ | What is the deductible? | $500 | Your policy carries a deductible of 500 dollars.
+ | What does the plan cover? | dental | The plan covers medical, dental and vision care.
- | What does the plan cover? | dental | Dental is excluded from the plan.
+ | What's my account number? | 4471-2290 | Your account number is 44712290.
+ | Is breakfast included? | included | Breakfast is included in your rate.
- | Is breakfast included? | included | Breakfast is not included in your rate.
+ | How often is it inspected? | annually | The boiler is inspected once a year.
+ | How often is it inspected? | every three months | It is inspected quarterly.
+ | What is the price of the blue model? | $95 | The red model is $80 and the blue one $95.
+ | What is the price of the blue model? | $95 | - red: $80\n- blue: $95\n- green: $99
- | What is the price of the blue model? | $80 | - red: $80\n- blue: $95\n- green: $99
+ | Who manages the Oak Street property? | Janet Hill | Oak Street is managed by J. Hill.
+ | What's the phone number? | (555) 123-4567 | Call us at 555.123.4567.
- | Is the shop open on Sunday? | open | We are closed on Sundays.
+ | Is the shop open on Sunday? | closed | We are closed on Sundays.
+ | What should I do first? | restart the router | First, restart your router. Then wait two minutes.
+ | Which month had the highest sales? | July | Sales peaked in July at $88,000.
- | Which month had the highest sales? | June | Sales peaked in July; June was second.
+ | What is 15% of 200? | 30 | 15% of 200 is 30.
+ | What's the wifi password? | sunshine42 | The wifi password is: sunshine42
+ | Who is on the board? | Ann Lee | The board: Tom Hart, Ann Lee and Raj Patel.
+ | Which colours are there? | black | It comes in white, grey and black.
+ | Which cities do you serve? | Lyon | We serve Paris, Lyon & Nice.
+ | What's the total? | $2,150 | Subtotal: $2,000\nTax: $150\nTotal: $2,150
- | What's the total? | $2,000 | Subtotal: $2,000\nTax: $150\nTotal: $2,150
+ | Who do I call? | Dr. Smith | Please call Dr. Smith.
+ | When is the next meeting? | Tuesday | The next meeting is on Tuesday at 10.
- | When is the next meeting? | Tuesday | The meeting was moved from Tuesday to Thursday.
+ | When is the next meeting? | Thursday | The meeting was moved from Tuesday to Thursday.
+ | What is the late fee? | $50 | There's a $50 late fee after the 5th.
- | What is the late fee? | $50 | I don't have information about late fees.
+ | How many bedrooms? | 3 | It's a three-bedroom house.
+ | What tax form do I need? | Schedule E | Rental income is reported on Schedule E (Form 1040).
+ | What's the interest rate? | 6.5% | The loan carries 6.5 percent interest.
+ | What's the square footage? | 1,850 | The house has 1850 sq ft.
- | Is a deposit needed? | no | I don't know.
- | Is a deposit needed? | no | I do not know whether a deposit is needed.
- | Is a deposit needed? | no | I can't say.
+ | Is a deposit needed? | no | A deposit is not needed.
+ | Is a deposit needed? | no | No, though I don't know why.
- | What does the rent include? | heat | Water and he
- | What does the rent include? | heat | He
+ | Who is the tenant? | John Smith | The tenant is Smith, John (unit 3).
"""


@pytest.mark.parametrize("row", EVERYDAY.strip().splitlines())
def test_everyday_replies(row: str) -> None:
    expected, question, keyword, reply = row.split(" | ")
    assert says(keyword, reply.replace("\\n", "\n"), question) is (expected == "+")


DENIALS = """
- | Is parking free? | free / no charge | No, it costs £2 per hour.
- | Is parking free? | free / no charge | No, you have to pay.
- | Is parking free? | free / no charge | No.
- | Is parking free? | free / no charge | Parking costs £2.
- | Is parking free? | free / no charge | No, parking is not free: it costs £2 per hour.
+ | Is parking free? | free / no charge | Yes.
+ | Is parking free? | free / no charge | There is no charge.
- | Is there a delivery charge? | no charge / free of charge | Yes, £4.90.
- | Is there a delivery charge? | no charge / free of charge | Yes.
+ | Is there a delivery charge? | no charge / free of charge | No.
+ | Is there a delivery charge? | no charge / free of charge | No, delivery is free of charge.
- | Do I have to pay for parking? | no charge | Yes, £2 an hour.
+ | Do I have to pay for parking? | no charge | No.
- | How much is parking? | no charge | No, you pay £2.
- | How much is parking? | no charge | There is no free parking; it costs £2.
- | Are dogs allowed? | not allowed / no dogs | No problem, bring him in!
- | Can I bring my dog? | not allowed / no dogs | No problem, bring him in!
+ | Are dogs allowed? | not allowed / no dogs | No, sorry.
+ | Can I bring my dog? | not allowed / no dogs | No.
+ | Were there any problems? | no | No problem.
- | Do you accept cheques? | no cheques | No problem, we take cheques.
- | How can I pay? | no cheques | By card, cash or cheque. No extra fee.
+ | Do you accept cheques? | no cheques | Sorry, we don't take cheques.
- | Can I get a refund? | no refund | No problem, we refund you in full.
+ | Can I get a refund? | no refund | No.
"""


@pytest.mark.parametrize("row", DENIALS.strip().splitlines())
def test_a_no_denies_only_what_the_keyword_denies(row: str) -> None:
    expected, question, options, reply = row.split(" | ")
    keyword = Alternatives(tuple(options.split(" / ")))
    assert find_keywords([keyword], reply, "smart", question=question)[0].found is (expected == "+")


def test_a_limit_in_one_cell_of_a_table_is_not_that_of_the_next() -> None:
    reply = "| Order | Delivery |\n|---|---|\n| below £75 | £4.90 |\n| £75 and more | free |"
    assert says("£4.90", reply, "How much is delivery for an order of £50?")


RANGES = """
+ | When are you open? | 09:00 | We are open from 9 am to 6 pm.
+ | When are you open? | 18:00 | We are open from 9 am to 6 pm.
+ | When are you open? | 09:00 | On Saturdays we're open from 9 am to 6 pm.
+ | When are you open? | 09:00 | 9 am to 6 pm
+ | Are you open on Sundays? | 11:00 | Yes, from 11am until 4pm.
+ | Are you open on Sundays? | 16:00 | Yes, from 11am until 4pm.
+ | When are you open? | 09:00 | 9 bis 18 Uhr
+ | When are you open? | 18:00 | 9 bis 18 Uhr
+ | When is the festival? | 2026-05-03 | From 3 May to 7 May
+ | When is the festival? | 2026-05-07 | From 3 May to 7 May
- | When is the festival? | 2026-05-03 | The festival was moved from 3 May to 10 May.
- | When is the festival? | 2026-05-03 | It has been postponed from 3 May to 10 May.
- | When do you open? | 09:00 | The opening time changed from 9 am to 10 am.
"""


@pytest.mark.parametrize("row", RANGES.strip().splitlines())
def test_both_ends_of_a_range_are_said(row: str) -> None:
    expected, question, date, reply = row.split(" | ")
    match = find_keywords([DateExpectation(date)], reply, "smart", question=question)[0]
    assert match.found is (expected == "+")


@pytest.mark.parametrize("keyword", [NumberExpectation(10), NumberExpectation(15), "10", "15"])
def test_both_ends_of_a_range_of_amounts_are_said(keyword: Expectation) -> None:
    question = "How deep should I plant the bulbs?"
    assert find_keywords([keyword], "From 10 to 15 cm", "smart", question=question)[0].found


def test_the_dash_behind_a_label_makes_no_range() -> None:
    reply = "Shrinkage by store: Store 3 \u2013 2.1%, Store 5 \u2013 1.2%, Store 8 \u2013 1.7%."
    assert not says("2.1%", reply, "What was the shrinkage of Store 5?")
    assert says("1.2%", reply, "What was the shrinkage of Store 5?")
