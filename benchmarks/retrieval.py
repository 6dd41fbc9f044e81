"""Retrieval measures over recorded replies: their cost beside that of reading the file.

    python benchmarks/retrieval.py [REPLIES]

Writes REPLIES (100,000) rows with ten sources each, reads them as `answerkey score` does, computes the default
measures for each, and prints both times and their ratio, which must stay under ten.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from answerkey.evaluation.recorded import read_exchanges
from answerkey.scorers.retrieval.scorer import RetrievalQuality


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replies.jsonl"
        with path.open("wb") as stream:
            for number in range(count):
                found = [f"doc-{draw.randrange(50)}" for _ in range(10)]
                row = {
                    "id": str(number),
                    "question": f"Question {number}?",
                    "answer": "The rent is $1,200.",
                    "relevant_documents": {f"doc-{draw.randrange(50)}": draw.randint(1, 3) for _ in range(3)},
                    "sources": [{"id": name, "score": 1 / (rank + 1)} for rank, name in enumerate(found)],
                }
                stream.write(msgspec.json.encode(row) + b"\n")
        scorer = RetrievalQuality()
        begin = time.process_time()
        with path.open("rb") as stream:
            for line in stream:
                msgspec.json.decode(line)
        decoding = time.process_time() - begin
        begin = time.process_time()
        for _ in read_exchanges([path]):
            pass
        reading = time.process_time() - begin
        begin = time.process_time()
        for exchange in read_exchanges([path]):
            scorer.score(exchange.task.question, exchange.replies[0])
        both = time.process_time() - begin
        measuring = both - reading
    print(f"plain JSON decoding:    {decoding:7.2f} s of processor time")
    print(f"reading {count} replies:  {reading:7.2f} s")
    print(f"retrieval measures:     {measuring:7.2f} s")
    print(
        f"ratio:                  {measuring / reading:7.2f}  (under 10); to plain JSON decoding {measuring / decoding:.1f}"
    )


if __name__ == "__main__":
    main()
