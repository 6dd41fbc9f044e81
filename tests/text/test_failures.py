"""The error detector, on a labelled corpus and on bad input."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from answerkey.text.failures import detect_failure


def read(name: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


CORPUS = read("failures.jsonl")
# Written by people who had not seen the detector, and odd wordings; measured before the detector was adjusted to them.
BY_AUTHOR = read("failures_by_author.jsonl")


def test_the_corpus_is_large_and_half_of_it_is_answers() -> None:
    answers = sum(row["kind"] is None for row in CORPUS)
    assert len(CORPUS) >= 300
    assert 0.4 <= answers / len(CORPUS) <= 0.6


@pytest.mark.parametrize(("rows", "least"), [(CORPUS, 0.98), (BY_AUTHOR, 0.93)], ids=["corpus", "by author"])
def test_precision_and_recall(rows: list[dict[str, Any]], least: float) -> None:
    detected = [detect_failure(row["text"]) is not None for row in rows]
    failed = [row["kind"] is not None for row in rows]
    both = sum(d and f for d, f in zip(detected, failed, strict=True))
    assert both / sum(detected) >= least
    assert both / sum(failed) >= least


def test_kinds_agree_with_the_labels() -> None:
    failures = [row for row in CORPUS if row["kind"]]
    found = [detect_failure(row["text"]) for row in failures]
    agree = sum(f is not None and f.kind == row["kind"] for f, row in zip(found, failures, strict=True))
    assert agree / len(failures) >= 0.95


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Your property is located at 900 S 9th St...", None),
        (None, "null"),
        ("I encountered an error while searching...", "error_text"),
        ("The most common error on Form 1065 is a missing EIN.", None),
    ],
)
def test_rows_of_the_standard(text: str | None, kind: str | None) -> None:
    found = detect_failure(text)
    assert (found.kind if found else None) == kind


def test_the_span_is_the_telling_part() -> None:
    text = "  Error: Document not found"
    found = detect_failure(text)
    assert found is not None
    assert text[found.start : found.end].strip().startswith("Error")


def test_odd_input_does_not_crash() -> None:
    for text in [
        "\ud800",
        "\ud800\udfff" * 10,
        "\x00",
        "{" * 5000,
        "[" * 100_000,
        "`" * 5000,
        "I am " * 2000,
        "\u200b" * 5000,
    ]:
        detect_failure(text)


@pytest.mark.parametrize("piece", ["an error ", "a", " ", "at x(", "{{ ", "sorry, ", "\u200b"])
def test_time_is_linear_in_the_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = time.process_time()
        detect_failure(text)
        return time.process_time() - start

    seconds(1_000_000)
    # Ten times the length may cost ten times the time, not a hundred; a floor absorbs what is too short to measure.
    assert seconds(10_000_000) <= 30 * max(seconds(1_000_000), 0.005)
