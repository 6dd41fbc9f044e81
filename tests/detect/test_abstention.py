"""Whether a reply declines to answer, on sentences, and on authors that the model was not fitted to."""

import time

import pytest
from fit_abstention import (
    MISTAKEN,
    accused_share,
    figures,
    read_evaluated,
    read_plain_answers,
    read_replies,
    stored_folds,
)

from answerkey.detect.abstention.model import begins_with_yes, declines, numbers_of, read_reply, shipped


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Who signed the lease?", "I don't know who signed it."),
        ("Who signed the lease?", "There is no record of who signed the lease."),
        ("When was it sold?", "The sale date is not documented in any of the 22 files."),
        ("How much did we pay?", "I couldn't reach the database, so I can't tell you the amount."),
        ("How much did we pay?", "n/a"),
        ("Who signed the lease?", "Not available."),
        ("Solar?", "There is no record of that."),
        ("Is there a lift?", "No information available."),
        ("Is there a lift?", "Sorry, no idea."),
        ("What does Jens earn?", "Salaries are confidential, so I can't share them."),
        ("Wann endet der Vertrag?", "Das Enddatum ist leider nicht hinterlegt."),
        (
            "When was the roof last renewed?",
            "The building file lists:\n- built 1974\n- windows 2015\n\nThe roof does not come up.",
        ),
        ("What's the price of the suite at Easter?", "Easter prices haven't been published yet."),
        ("Who took the cover photo?", "No photographer is credited."),
        ("Welche Reifengröße hat der Anhänger?", "Steht leider nirgends."),
        # A value of something else is no answer to what was asked.
        ("What did we earn in May?", "I don't have May's revenue. In June it was 8,310."),
        ("What did we earn in May?", "I don't have May's revenue, but it was 8,310 in June."),
        ("Wie hoch war die Miete 2019?", "Für 2019 habe ich keine Angabe, 2020 waren es 840 Euro."),
        ("Combien avons-nous payé ?", "Je n'ai pas pu consulter le compte, je ne peux pas vous le dire."),
    ],
)
def test_replies_that_decline(question: str, reply: str) -> None:
    assert declines(question, reply)


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Who signed the lease?", "Maria Lopez signed it."),
        ("How much did we pay?", "The export is slow today, but you paid $1,870."),
        ("How much did we pay?", "0"),
        ("How much did we spend on solar panels?", "You spent nothing on solar panels."),
        ("Is there a penalty?", "There is no penalty in your contract."),
        ("Can you give me the van's policy number?", "Not a problem at all, it is VN-20871."),
        ("Were there late fees?", "No, none."),
        ("What time does the sauna close?", "I couldn't find it, but I believe it closes at 22:00."),
        (
            "What's the headcount in Porto?",
            "46, counted on 31 December. I can't see anyone hired after that date.",
        ),
        # A guess is an answer.
        ("What did we earn in May?", "I don't have May's revenue, but it was probably 8,310."),
        ("What did we earn in May?", "The May figure is missing. I'd say about 8,310, as in June."),
        ("Wie hoch war die Miete 2019?", "Dazu finde ich nichts, vermutlich 840 Euro."),
        ("When does it end?", "Which contract do you mean?"),
        ("Wann endet der Vertrag?", "Am 31. Mai 2026."),
        ("How much did we pay?", ""),
        ("How much did we pay?", None),
    ],
)
def test_replies_that_do_not(question: str, reply: str | None) -> None:
    assert not declines(question, reply)


# What holds, in steps of one hundredth.
LOWEST_F1 = {"a": 0.86, "b": 0.92, "c": 0.95, "d": 0.88, "e": 0.88, "f": 0.88, "g": 0.87, "h": 0.91}
LOWEST_F1 |= {"k": 0.91, "l": 0.93, "n": 0.91, "o": 0.92, "p": 0.92, "s": 0.79, "t": 0.8}


def test_authors_left_out_of_the_fit() -> None:
    rows, models = read_evaluated(), stored_folds()
    for author, bound in LOWEST_F1.items():
        left_out = figures([row for row in rows if row.author == author], models)
        assert left_out.f1 >= bound, author
        assert left_out.precision >= 0.75, author
    assert figures([row for row in rows if row.author not in MISTAKEN], models).f1 >= 0.9
    assert accused_share(read_plain_answers(), models) <= 0.02


def test_authors_whose_replies_were_never_read() -> None:
    for author, bound in {"i": 0.95, "m": 0.9, "q": 0.92}.items():
        assert figures(read_replies(f"not_fitted/after_faults_{author}"), shipped()).f1 >= bound, author


def test_the_trees_read_the_features_of_the_code() -> None:
    reading = read_reply("Who signed it?", "Nobody knows.")
    numbers = numbers_of(reading, 0.0, [0.0] * len(reading.sentences))
    for model in (*stored_folds(), shipped()):
        used = {feature for tree in model.trees.trees for feature, *_ in tree}
        assert max(used) < len(numbers)


def test_a_long_reply_costs_no_more_than_its_length() -> None:
    sentence = "The lease of unit 7 started on 1 May and the rent is 940. "

    def cost(times: int) -> float:
        started = time.process_time()
        for _ in range(5):
            read_reply("Who signed the lease?", sentence * times)
        return time.process_time() - started

    cost(1)
    assert min(cost(60) for _ in range(3)) < 20 * min(cost(10) for _ in range(3))


@pytest.mark.parametrize(
    ("text", "yes"),
    [("Yes, at 21:00.", True), ("Oui, à 21 h.", True), ("No, at 19:30.", False), ("Yesterday at 8.", False)],
)
def test_words_for_yes(text: str, yes: bool) -> None:
    assert begins_with_yes(text) == yes


PLAIN_DECLINES = (
    """
I don't know.|Don't know|No idea.|dunno|idk|Not sure.|I'm not sure about that.|Can't say|I can't tell you that.|Unknown.|N/A
Nothing found.|Nothing found about that.|Not found|No results|No results found.|No records found.|No record found|0 results
Search returned 0 results.|No rows returned.|No matches|Nothing on record.|Nothing is on record about that.|None on file
There is nothing on record about franchise licences.|There is nothing on file about franchising.|No information available.
There is no information on franchise licences.|I have nothing on that.|I couldn't find anything.|Sorry, I couldn't find that.
It isn't specified.|That's not documented anywhere.|Not in our files.|Nope, don't have it|None that I know of.
Not on record: there is no entry for properties at 412 Cascade Ave.|I don't know, sorry.|Not found. Please contact the office.
You'd have to ask Moira about that.|Please contact the office.|Keine Ahnung.|Keine Treffer|Dazu habe ich keine Angaben.
Weiß ich leider nicht.|Nicht dokumentiert.|Aucun résultat.|Je ne sais pas.|Non renseigné|No lo sé.|No hay información sobre eso.
Sin resultados|Non lo so.|Nessun risultato|Não sei.|Nenhum resultado encontrado.|Geen idee|Nie wiem.|Brak danych|Не знаю.
Нет данных|Bilmiyorum.|わかりません。|不知道。|알 수 없습니다.|لا أعرف
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize(
    "question",
    ["How much is a franchise licence?", "Who was our first customer?", "What did we sell in 2011?"],
)
def test_plain_declines_decline_under_any_question(question: str) -> None:
    assert [reply for reply in PLAIN_DECLINES if not declines(question, reply)] == []


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Whom should I ask about parking?", "You would have to ask Moira."),
        ("How many results were there?", "There were 12 results."),
        ("What is the phone number?", "Please call 555-0199."),
        ("Is there a pool?", "There is no pool."),
        ("What is not known about the fire?", "The cause is not known, the damage is $4,000."),
        ("Are there open invoices?", "No, there are no open invoices."),
    ],
)
def test_plain_answers_with_the_same_words_do_not_decline(question: str, reply: str) -> None:
    assert not declines(question, reply)
