# /// script
# requires-python = ">=3.11"
# dependencies = ["deepeval==4.3.1"]
# ///
"""DeepEval: goldens that it saves, and answerkey's export in its own loader."""

import os
import sys
from pathlib import Path

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_UPDATE_WARNING_OPT_OUT": "YES"}
sys.path.insert(0, str(Path(__file__).parents[1]))

from deepeval.dataset import EvaluationDataset, Golden
from deepeval.test_case import ToolCall
from peer_files import KEPT, done, exported

goldens = [
    Golden(
        input="Which lease ends first?",
        expected_output="The one of 9th Street.",
        context=["Lease 9 ends in May."],
        expected_tools=[ToolCall(name="search", input_parameters={"query": "lease", "tags": ["a", "b"]})],
        additional_metadata={"category": "leases", "owner": "Ana"},
    ),
    Golden(
        input="Who pays?",
        actual_output="The tenant.",
        expected_output="The tenant pays.",
        retrieval_context=["The tenant pays."],
        tools_called=[ToolCall(name="search")],
        custom_column_key_values={"difficulty": "high"},
    ),
]
for kind in ("json", "jsonl", "csv"):
    EvaluationDataset(goldens=goldens).save_as(
        kind, directory=str(KEPT), file_name="deepeval", include_test_cases=False
    )

dataset = EvaluationDataset()
dataset.add_goldens_from_json_file(str(exported("deepeval")))
[fee, hello] = dataset.goldens
assert (fee.input, fee.expected_output) == ("What is the yearly fee for „Montrose“?", "It is 900 a year.")
assert fee.expected_tools[0].name == "query_database"
assert fee.expected_tools[0].input_parameters == {"year": 2024}
assert hello.additional_metadata["id"] == "hello"
done("deepeval", *(golden.input for golden in dataset.goldens))
