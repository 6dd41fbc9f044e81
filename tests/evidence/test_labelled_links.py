"""Links on replies that were labelled without knowledge of the code, and on random figures."""

import random
from collections import Counter

import pytest
from labelled_links import labelled_rows, measure


@pytest.fixture(scope="module")
def counts() -> Counter[str]:
    found: Counter[str] = Counter()
    generator = random.Random(1)
    for _, row in labelled_rows():
        measure(row, found, generator)
    return found


@pytest.mark.parametrize(
    ("what", "least"),
    [
        ("in evidence figure", 0.97),
        ("in evidence date", 0.97),
        ("in evidence name", 0.97),
        ("in evidence id", 0.97),
        ("in evidence quote", 0.97),
        ("derived figure", 0.80),
    ],
)
def test_what_stands_in_the_evidence_is_linked(counts: Counter[str], what: str, least: float) -> None:
    assert counts[f"{what} linked"] / counts[what] >= least


def test_random_figures_are_not(counts: Counter[str]) -> None:
    assert counts["random figure linked"] / counts["random figure"] <= 0.05
    assert counts["random figure of 4 digits linked"] / counts["random figure of 4 digits"] <= 0.005
