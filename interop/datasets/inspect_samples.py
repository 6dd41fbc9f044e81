# /// script
# requires-python = ">=3.11"
# dependencies = ["inspect-ai==0.3.285"]
# ///
"""Inspect: a dataset and a log that it writes, and answerkey's export in its own loader."""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample, json_dataset
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from recordings import keep, steady
from peer_files import KEPT, done, exported

samples = [
    Sample(
        id="first",
        input="Which lease ends first?",
        target=["Lease 9", "the ninth"],
        metadata={"category": "leases"},
    ),
    Sample(
        id=2,
        input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Who pays?")],
        target="The tenant",
        choices=["The tenant", "The owner"],
    ),
]
lines = "".join(json.dumps(sample.model_dump(mode="json", exclude_none=True)) + "\n" for sample in samples)
keep(KEPT / "inspect-samples.jsonl", lines.encode(), steady)
folder = tempfile.mkdtemp()
task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes(), name="leases")
said = [ModelOutput.from_content("mockllm/model", text) for text in ("Lease 9.", "The tenant.")]
for output in said:
    # Without it, the tokenizer would be fetched from the network.
    output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
model = get_model("mockllm/model", custom_outputs=said)
[log] = evaluate(task, model=model, max_samples=1, log_dir=folder, log_format="json", display="none")
written = json.loads(Path(log.location.removeprefix("file://")).read_text())
# What is the machine's own is left out; the samples are as they were written.
kept = {name: written[name] for name in ("version", "status", "samples")}
for sample in kept["samples"]:
    sample["events"] = []
keep(KEPT / "inspect-log.json", json.dumps({**kept, "eval": {"task": "leases"}}, indent=1).encode(), steady)

loaded = json_dataset(str(exported("inspect")))
assert [(sample.id, sample.target) for sample in loaded] == [
    ("fee", "It is 900 a year."),
    ("hello", "Hello!"),
]
done("inspect-ai", *(sample.input for sample in loaded))
