"""Links and novelty on replies labelled by people who do not know the code, and by random figures."""

import importlib.util
import random
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def counts() -> Counter[str]:
    path = ROOT / "benchmarks" / "judgement" / "links.py"
    spec = importlib.util.spec_from_file_location("links_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    found: Counter[str] = Counter()
    generator = random.Random(1)
    for _, row in benchmark.labelled_rows(ROOT / "labelled"):
        benchmark.measure(row, found, generator)
    return found


@pytest.mark.parametrize(
    ("what", "least"),
    [
        ("stands figure", 0.97),
        ("stands date", 0.97),
        ("stands name", 0.97),
        ("stands id", 0.97),
        ("stands quote", 0.97),
        ("derived figure", 0.80),
    ],
)
def test_what_stands_in_the_evidence_is_linked(counts: Counter[str], what: str, least: float) -> None:
    assert counts[f"{what} linked"] / counts[what] >= least


def test_random_figures_are_not(counts: Counter[str]) -> None:
    assert counts["random figure linked"] / counts["random figure"] <= 0.05
    assert counts["random figure of 4 digits linked"] / counts["random figure of 4 digits"] <= 0.005
