# /// script
# requires-python = ">=3.11"
# dependencies = ["langsmith==0.14.17"]
# ///
"""LangSmith: examples as its client gives them, and answerkey's export as its client takes them."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1]))

from langsmith.schemas import Example, ExampleCreate
from peer_files import KEPT, done, exported

examples = [
    Example(
        id=UUID(int=number),
        dataset_id=UUID(int=99),
        created_at=datetime(2026, 11, 1, tzinfo=UTC),
        inputs=inputs,
        outputs=outputs,
        metadata=metadata,
    )
    for number, (inputs, outputs, metadata) in enumerate(
        [
            (
                {"question": "Which lease ends first?"},
                {"answer": "Lease 9."},
                {"category": "leases", "owner": "Ana"},
            ),
            ({"messages": [{"role": "user", "content": "Who pays?"}]}, {"output": "The tenant."}, None),
            ({"question": "Hello?", "locale": "de"}, {}, {}),
        ]
    )
]
(KEPT / "langsmith.jsonl").write_text(
    "".join(json.dumps(example.model_dump(mode="json")) + "\n" for example in examples)
)

rows = [json.loads(line) for line in exported("langsmith").read_text().splitlines()]
loaded = [ExampleCreate(**row) for row in rows]
assert [example.outputs for example in loaded] == [{"answer": "It is 900 a year."}, {"answer": "Hello!"}]
done("langsmith", *(example.inputs["question"] for example in loaded))
