"""Logs of recorded replies in three shapes, written with their expectations.

`few`: some hundred questions again and again, with replies as people wrote them (labelled/keywords); `new`: the same with
a sentence of its own at the end of each reply, so that no reply comes twice; `own`: every row its own question and keywords.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

_LABELLED = Path(__file__).resolve().parents[2] / "labelled" / "keywords"
_STREETS = ("Elm", "Oak", "Linden", "Harbor", "Mill", "Station", "Cedar", "Park", "Church", "River")
_ITEMS = ("rent", "deposit", "insurance", "depreciation", "basis", "property tax", "repairs", "income")
_TOOLS = ("query_database", "search_document_content", "list_business_documents")
_ERRORS = (
    "I encountered an error while searching the documents. Please try again later.",
    "Sorry, something went wrong on our side and your request could not be completed.",
    "Traceback (most recent call last):\n  File \"bot.py\", line 3, in ask\nKeyError: 'rent'",
)


def rows(shape: str, count: int) -> Iterator[dict[str, object]]:
    """`count` rows of a shape, the same ones each time."""
    random.seed(16)
    make = _own() if shape == "own" else _few()
    for number in range(count):
        row = next(make)
        row["tools_used"] = [random.choice(_TOOLS)]
        row["latency_ms"] = round(random.lognormvariate(6, 0.6), 1)
        if shape == "new":
            row["answer"] = f"{row['answer']} Entry {number} of the ledger says the same."
        if number % 33 == 7:
            row["answer"] = random.choice(_ERRORS)
        yield row


def _few() -> Iterator[dict[str, object]]:
    told = [
        json.loads(line)
        for name in ("business_a", "business_c")
        for line in (_LABELLED / f"{name}.jsonl").read_text().splitlines()
    ]
    # Those that a loop by hand can read, too.
    told = [one for one in told if all(isinstance(word, str) for word in one["expected_keywords"])]
    while True:
        one = random.choice(told)
        yield {
            "id": one["id"],
            "question": one["question"],
            "category": f"part {len(one['question']) % 7}",
            "expected_tools": [_TOOLS[len(one["answer"]) % 3]],
            "expected_keywords": one["expected_keywords"],
            "answer": one["answer"],
        }


def _own() -> Iterator[dict[str, object]]:
    number = 0
    while True:
        number += 1
        street, item = random.choice(_STREETS), random.choice(_ITEMS)
        house, amount, share = (
            random.randrange(1, 9999),
            random.randrange(1000, 900_000),
            random.randrange(10, 99),
        )
        yield {
            "id": f"q{number}",
            "question": f"What was the {item} of {house} {street} Street in {2015 + number % 10}?",
            "category": item,
            "expected_tools": [_TOOLS[number % 3]],
            "expected_keywords": [str(amount), street, f"{share}%", f"unit {number % 40}"],
            "answer": (
                f"The total {item} for {house} {street} Street comes to ${amount:,}, which is about {share}% of the "
                f"year's budget. Most of it was booked in the second quarter; unit {number % 37} accounts for the rest, "
                "and the documents on file agree with these figures."
            ),
        }


if __name__ == "__main__":
    shape, count, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(shape, count))
