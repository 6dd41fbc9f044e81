"""How well the detector does on authors that it was not fitted to, by the stored verdicts of `tools/fit/fit_errors.py`."""

import json

import fit_errors
import pytest
from fit_errors import EVERYDAY, HARD, Row, read_rows
from held_out_errors import HeldOut, figures, held_out

from answerkey.detect.detector import detect_failure
from answerkey.detect.model import shipped_model

NOT_FITTED = fit_errors.ROOT / "labelled" / "not_fitted"


@pytest.fixture(scope="module")
def found() -> HeldOut:
    return held_out()


def of_group(found: HeldOut, group: str) -> HeldOut:
    return found.chosen([row.group == group for row in found.rows])


def test_the_verdicts_are_those_of_the_present_code_and_labels() -> None:
    stored = json.loads(fit_errors.HELD_OUT.read_text(encoding="utf-8"))
    assert stored["digest"] == fit_errors.digest(), "run python tools/fit/fit_errors.py"


def test_everyday_replies(found: HeldOut) -> None:
    of = figures(of_group(found, EVERYDAY))
    assert (of.answers, of.errors) == (1680, 560)
    assert of.false_rate <= 0.005
    assert of.recall >= 0.92


def test_everyday_replies_of_each_author(found: HeldOut) -> None:
    everyday = of_group(found, EVERYDAY)
    for author in "pqrstu":
        of = figures(everyday.chosen([row.author == author for row in everyday.rows]))
        assert of.answers_charged <= 3, author
        assert of.recall >= 0.80, author


def test_hard_replies(found: HeldOut) -> None:
    of = figures(of_group(found, HARD))
    assert of.answers > 3800
    assert of.false_rate <= 0.01
    # Suspicion is for review: most of what it lists must be worth reading.
    assert of.suspected_precision >= 0.8


def test_hard_answers_of_no_author_are_charged_often(found: HeldOut) -> None:
    hard = of_group(found, HARD)
    for author in {row.author for row in hard.rows}:
        assert figures(hard.chosen([row.author == author for row in hard.rows])).false_rate <= 0.02, author


@pytest.mark.parametrize(("author", "answers", "errors", "accused"), [("v", 195, 65, 0), ("y", 225, 75, 1)])
def test_everyday_replies_of_authors_that_nothing_was_fitted_to(
    author: str, answers: int, errors: int, accused: int
) -> None:
    path = NOT_FITTED / f"everyday_replies_{author}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    failures = [(row["is_error"], detect_failure(row["reply"])) for row in rows]
    charged = [is_error for is_error, failure in failures if failure is not None and failure.charged]
    assert len(rows) == answers + errors
    assert charged.count(False) <= accused
    assert charged.count(True) >= 0.9 * errors


def test_the_shipped_weights_agree_with_the_labels() -> None:
    """The weights in the package were fitted to these rows: they must charge hardly any answer."""
    rows: list[Row] = [row for row in read_rows() if row.group == EVERYDAY]
    verdicts = [(row.is_error, detect_failure(row.text)) for row in rows]
    charged = [is_error for is_error, failure in verdicts if failure is not None and failure.charged]
    assert charged.count(False) <= 5
    assert charged.count(True) >= 450


def test_the_shipped_weights_are_small() -> None:
    assert fit_errors.WEIGHTS.stat().st_size < 300_000


def test_which_digits_a_number_has_does_not_matter() -> None:
    model = shipped_model()
    assert model.probability("The rent is $1,450 a month.") == model.probability(
        "The rent is $2,900 a month."
    )
