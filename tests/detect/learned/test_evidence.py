"""What single sentences say about a failure."""

import pytest

from answerkey.detect.learned.evidence import evidence_in
from answerkey.detect.learned.reading import NOT_DELIVERED, OWN_FAILURES
from answerkey.detect.learned.words import roles_of


def evidence(sentence: str) -> set[str]:
    return set(evidence_in([roles_of(word) for word in sentence.split()]))


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("The database crashed.", "machine_fails"),
        ("The retriever is stale.", "machine_is_bad"),
        ("Your request failed.", "thing_fails"),
        ("I ran into a problem.", "met_trouble"),
        ("An error occurred.", "trouble_happened"),
        ("I can't reach the server.", "machine_unreached"),
        ("The API did not answer.", "machine_does_not"),
        ("Your question was not run.", "thing_not_done"),
        ("The daily quota is used up.", "limit_spent"),
        ("I can't open the clause.", "cannot_operate"),
        ("No result.", "no_result"),
        ("I have no total for you.", "nothing_given"),
    ],
)
def test_a_failure_is_known_by_who_failed_and_how(sentence: str, name: str) -> None:
    assert name in evidence(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "No errors were found.",
        "The problem was the thermostat.",
        "An error in the deed was corrected.",
        "KeyError is raised when a dictionary has no such key.",
        "A timeout usually means that the network is slow.",
        "The tenant failed to pay.",
        "Failed payments are charged again.",
        "The search committee failed to reach a quorum.",
        "The backup failed yesterday, but the second one worked.",
    ],
)
def test_errors_of_others_explained_denied_or_over_are_no_failure_of_the_bot(sentence: str) -> None:
    assert OWN_FAILURES.isdisjoint(evidence(sentence))


def test_an_answer_after_a_failure_takes_it_back() -> None:
    assert "answered" in evidence("I ran into a problem, but the total is $4,310 in all.")


def test_a_refusal_is_no_failure() -> None:
    found = evidence("I can't share another tenant's number.")
    assert OWN_FAILURES.isdisjoint(found)
    assert NOT_DELIVERED.isdisjoint(found)
