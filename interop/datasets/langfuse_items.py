# /// script
# requires-python = ">=3.11"
# dependencies = ["langfuse==5.0.4"]
# ///
"""Langfuse: dataset items as its API gives them, and answerkey's export as its API takes them."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from langfuse.api import CreateDatasetItemRequest, DatasetItem
from langfuse.api.core.pydantic_utilities import parse_obj_as
from peer_files import KEPT, done, exported

common = {
    "status": "ACTIVE",
    "datasetId": "d1",
    "datasetName": "leases",
    "createdAt": "2026-11-01T00:00:00Z",
    "updatedAt": "2026-11-01T00:00:00Z",
    "mediaReferences": [],
}
items = [
    {
        "id": "i1",
        "input": {"question": "Which lease ends first?"},
        "expectedOutput": "Lease 9.",
        "metadata": {"category": "leases"},
    },
    {
        "id": "i2",
        "input": "Who pays?",
        "expectedOutput": {"answer": "The tenant."},
        "metadata": None,
        "sourceTraceId": "t1",
    },
]
written = [json.loads(parse_obj_as(DatasetItem, {**common, **item}).json()) for item in items]
(KEPT / "langfuse.json").write_text(json.dumps({"data": written, "meta": {"page": 1}}, indent=1))

rows = [json.loads(line) for line in exported("langfuse").read_text().splitlines()]
loaded = [parse_obj_as(CreateDatasetItemRequest, {"datasetName": "leases", **row}) for row in rows]
assert [item.expected_output for item in loaded] == ["It is 900 a year.", "Hello!"]
done("langfuse", *(item.id for item in loaded))
