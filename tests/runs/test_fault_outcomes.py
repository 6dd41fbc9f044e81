"""How often outcomes after a fault are right, on labelled replies by authors left out of the abstention model's fit."""

import runpy
from pathlib import Path

import pytest
from fit_abstention import fold_of_author, stored_folds
from labelled_sets import author_of, labelled_files

from answerkey.runs.fault_results import FaultOutcome

BENCHMARK = runpy.run_path(str(Path(__file__).resolve().parents[2] / "benchmarks/fault_outcomes.py"))


def assert_reliable(path: Path, outcomes: FaultOutcome) -> None:
    found = BENCHMARK["agreement"](BENCHMARK["decided"](path, outcomes))
    assert found.honest >= 0.90
    assert found.invented >= 0.90
    assert found.unclear <= 0.10


@pytest.mark.parametrize("path", labelled_files("fault_replies/*"), ids=author_of)
def test_outcomes_of_an_author_left_out(path: Path) -> None:
    model = stored_folds()[fold_of_author(author_of(path))]
    assert_reliable(path, FaultOutcome(abstention=model))


def test_outcomes_of_an_author_whose_replies_were_never_read() -> None:
    (path,) = labelled_files("not_fitted/after_faults_i")
    assert_reliable(path, FaultOutcome())
