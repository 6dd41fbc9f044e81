"""Unsupported claims are found in hand-written replies of many kinds, and supported ones are left alone.

Each row is a reply with its evidence; `unsupported` lists the spans that the evidence does not support. Half of the
replies hold planted ones of every kind of claim; the others are right, many with derived figures. Parts 2 to 7, 12 and
15 to 24 were written by the authors of the rules, 8 to 11 by somebody who had not seen them. docs/groundedness.md has the
figures that
the rules had on each part before they were mended for it, which say more than those below.
"""

import json
from pathlib import Path

import msgspec

from answerkey.model.question import Question
from answerkey.scorers.groundedness import Groundedness
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.reply_mapping import reply_from_payload

DATA = Path(__file__).parent / "data"


def judge(path):
    """(found and planted, found but right, planted but not found) over a file."""
    hits = false_alarms = misses = 0
    for line in path.read_bytes().splitlines():
        row = msgspec.json.decode(line)
        planted = row.pop("unsupported")
        question = Question(id="q", question=row.pop("question"))
        scores = {
            s.name: s
            for s in Groundedness().score(question, reply_from_payload(row, asked=Asked(recorded=True)))
        }
        found = scores["groundedness"].details.get("unsupported", []) if "groundedness" in scores else []
        hits += sum(any(overlap(one, other) for other in found) for one in planted)
        misses += sum(not any(overlap(one, other) for other in found) for one in planted)
        false_alarms += sum(not any(overlap(one, other) for other in planted) for one in found)
    return hits, false_alarms, misses


def overlap(one, other):
    return one["start"] < other["end"] and other["start"] < one["end"]


def test_precision_and_recall_over_all_parts():
    parts = [judge(path) for path in sorted(DATA.glob("claims_*.jsonl"))]
    hits, false_alarms, misses = (sum(counts) for counts in zip(*parts, strict=True))
    assert hits / (hits + false_alarms) >= 0.96
    assert hits / (hits + misses) >= 0.96


def test_the_set_is_large_and_balanced():
    rows = [
        json.loads(line) for path in DATA.glob("claims_*.jsonl") for line in path.read_text().splitlines()
    ]
    planted = sum(bool(row["unsupported"]) for row in rows)
    assert len(rows) >= 150
    assert 0.45 <= planted / len(rows) <= 0.55
