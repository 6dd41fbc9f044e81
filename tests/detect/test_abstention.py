"""Whether a reply declines to answer, on sentences, and on authors that the model was not fitted to."""

import pytest
from fit_abstention import Table, accused_share, figures, read_fault_replies, read_plain_answers
from fit_errors import fit

from answerkey.detect.abstention.model import declines
from answerkey.detect.model import Model, shipped_model


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Who signed the lease?", "I don't know who signed it."),
        ("Who signed the lease?", "There is no record of who signed the lease."),
        ("When was it sold?", "The sale date is not documented in any of the 22 files."),
        ("How much did we pay?", "I couldn't reach the database, so I can't tell you the amount."),
        ("How much did we pay?", "n/a"),
        ("Who signed the lease?", "Not available."),
        ("What does Jens earn?", "Salaries are confidential, so I can't share them."),
        ("Wann endet der Vertrag?", "Das Enddatum ist leider nicht hinterlegt."),
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
        ("When does it end?", "Which contract do you mean?"),
        ("Wann endet der Vertrag?", "Am 31. Mai 2026."),
        ("How much did we pay?", ""),
        ("How much did we pay?", None),
    ],
)
def test_replies_that_do_not(question: str, reply: str | None) -> None:
    assert not declines(question, reply)


def test_authors_left_out_of_the_fit() -> None:
    rows, plain = read_fault_replies(), read_plain_answers()
    table = Table([*rows, *plain])
    lowest = {"a": 0.80, "b": 0.90, "c": 0.90, "d": 0.72}
    for author, bound in lowest.items():
        left_out = figures([row for row in rows if row.author == author], Model(fit(table, author)))
        assert left_out.f1 >= bound, author
        assert left_out.precision >= 0.75, author
    assert fit(table) == shipped_model("answerkey.detect.abstention").weights, (
        "run tools/fit/fit_abstention.py"
    )
    assert accused_share(table, plain) <= 0.02
