# /// script
# requires-python = ">=3.11,<3.13"
# dependencies = ["ragas==0.4.3", "langchain-community<0.4"]
# ///
"""Ragas: samples that it saves, and answerkey's export in its own loader."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from peer_files import KEPT, done, exported
from ragas import EvaluationDataset, MultiTurnSample, SingleTurnSample
from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

single = [
    SingleTurnSample(
        user_input="Which lease ends first?",
        response="The one of 9th Street.",
        reference="Lease 9.",
        retrieved_contexts=["Lease 9 ends in May."],
        reference_context_ids=["lease-9", 4],
        rubrics={"score1_description": "wrong", "score5_description": "right"},
    ),
    SingleTurnSample(
        user_input="Who pays?", reference="The tenant pays.", reference_contexts=["The tenant pays."]
    ),
]
EvaluationDataset(samples=single).to_jsonl(KEPT / "ragas-single.jsonl")
EvaluationDataset(samples=single[:1]).to_csv(KEPT / "ragas-single.csv")
multi = MultiTurnSample(
    user_input=[
        HumanMessage(content="Which lease ends first?"),
        AIMessage(content="Let me see.", tool_calls=[ToolCall(name="search", args={"query": "lease"})]),
        ToolMessage(content="Lease 9 ends in May."),
        AIMessage(content="Lease 9."),
    ],
    reference="Lease 9 ends first.",
    reference_tool_calls=[ToolCall(name="search", args={"query": "lease"})],
)
EvaluationDataset(samples=[multi]).to_jsonl(KEPT / "ragas-multi.jsonl")

loaded = EvaluationDataset.from_jsonl(exported("ragas"))
assert [sample.reference for sample in loaded] == ["It is 900 a year.", "Hello!"]
assert loaded[0].reference_context_ids == ["lease-9"]
done("ragas", *(sample.user_input for sample in loaded))
