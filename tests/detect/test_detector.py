"""The error detector, on a labelled corpus and on bad input."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from answerkey.detect.detector import detect_failure


def read(name: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


CORPUS = read("failures.jsonl")
# Written by people who had not seen the detector, and odd wordings; measured before the detector was adjusted to them.
# The figurative stories are kept apart: what a machine's notice looks like is known better than how people tell of one.
BY_AUTHOR = [row for row in read("failures_by_author.jsonl") if row["set"] != "plain people"]
# Typical texts of chatbots, servers and libraries beside answers on errors; "kind" says no more than failure or answer.
TYPICAL = read("failures_typical.jsonl")
FIGURATIVE = [row for row in read("failures_by_author.jsonl") if row["set"] == "plain people"]


def test_the_corpus_is_large_and_half_of_it_is_answers() -> None:
    answers = sum(row["kind"] is None for row in CORPUS)
    assert len(CORPUS) >= 300
    assert 0.4 <= answers / len(CORPUS) <= 0.6


@pytest.mark.parametrize(
    ("rows", "precision", "recall"),
    [(CORPUS, 0.98, 0.98), (TYPICAL, 0.98, 0.98), (BY_AUTHOR, 0.98, 0.96), (FIGURATIVE, 0.98, 0.75)],
    ids=["corpus", "typical", "by author", "plain people"],
)
def test_precision_and_recall(rows: list[dict[str, Any]], precision: float, recall: float) -> None:
    detected = [detect_failure(row["text"]) is not None for row in rows]
    failed = [row["kind"] is not None for row in rows]
    both = sum(d and f for d, f in zip(detected, failed, strict=True))
    assert both / sum(detected) >= precision
    assert both / sum(failed) >= recall


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


@pytest.mark.parametrize(
    "text",
    [
        "ENOENT is the errno for a path that does not exist.",
        '"Segmentation fault" tells you that the program touched memory it does not own.',
        'Trace:\n\n  File "a.py", line 3, in load\nValueError: bad\n\nIt holds text, so convert it to dates before comparing.',
        "```python\nexcept TimeoutError:\n    raise\n```\nWith this the caller can tell a timeout from an empty answer.",
        "The job failed because the disk was full. Delete the old backups and start it again.",
        "The failed jobs stay in the queue and are printed in the morning.",
    ],
)
def test_an_error_that_is_explained_or_put_to_use_is_an_answer(text: str) -> None:
    assert detect_failure(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Search for “Nevada” returned no results: there are no properties there.",
        "No, the import has finished.",
        "The function returns null if the key is missing.",
        "0/0 is undefined.",
        "Here is the draft:\n\nDear [Landlord's Name],\n\nthe heater has failed twice.\n\nSincerely,\n[Your Name]",
        '{"errors": 3, "warnings": 1, "file": "return_2023.pdf"}',
        "The system was down for maintenance last Sunday, and your payment posted on Monday instead.",
        "Segmentation faults are mostly caused by dereferencing a null pointer.",
        "Der Server war am Sonntag zwei Stunden nicht erreichbar, seither läuft er.",
        "What happens if the payment fails? We try again the next day, and you get an e-mail.",
        "Lost your card or can't sign in? Call 555-0100 and we will block it at once.",
        "query_database: used for questions about rent and income. It reads the ledger.",
        "Job 14 was killed (signal 9) because the machine ran out of memory; give it 4 GB and start it again.",
        "The rent is $1,450 — an error in the lease was fixed last May.",
    ],
)
def test_what_is_over_not_there_or_ordered_is_an_answer(text: str) -> None:
    assert detect_failure(text) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("connect ECONNREFUSED 10.2.0.9:8080", "connection"),
        ("canceling statement due to statement timeout", "timeout"),
        ("Object reference not set to an instance of an object.", "error_text"),
        ("Your flight undefined departs from undefined at NaN:NaN.", "malformed"),
        ("Hi [Customer Name], thanks for reaching out.", "malformed"),
        ("<p>&nbsp;</p>", "empty"),
        ("Final Answer:", "empty"),
        ("null, null", "null"),
        ("<think>I should query the database first.", "malformed"),
        ('{"answer": "", "sources": []}', "null"),
        ("The total rental income for August was [connection lost]", "connection"),
        ("There isn't enough memory to load the model.", "memory"),
        ("no healthy upstream", "error_text"),
        ("insufficient_quota", "rate_limit"),
        ("This is taking longer than expected and I had to stop.", "timeout"),
        ('The deposit is{"error": {"message": "stream closed"}}', "error_text"),
        ("[10:02:11] INFO asked\n[10:02:41] ERROR query timed out", "timeout"),
        ("Dear %FIRST_NAME%, your rent is due.", "malformed"),
        ("Le délai d'attente a été dépassé.", "timeout"),
        ("search_document_content -> ERROR: index not loaded", "error_text"),
        ("query_database: connection refused", "connection"),
        ("The deposit for Unit 3 is — An error occurred while generating the response.", "error_text"),
        ("The rent is 1,450 and the late fee\n\nReadTimeout: HTTPConnectionPool: Read timed out.", "timeout"),
        ("Worker 3 killed (signal 9): out of memory.", "memory"),
        ("Your property is located at undefined, undefined.", "malformed"),
        ("Why was I logged out? Sorry, something went wrong and I can't load your account.", "error_text"),
    ],
)
def test_what_programs_leave_in_the_place_of_an_answer(text: str, kind: str) -> None:
    found = detect_failure(text)
    assert found is not None
    assert found.kind == kind


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
