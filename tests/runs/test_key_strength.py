"""The strength of a key predicts what the key can find; and odd runs are audited without a crash."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIMULATION = Path(__file__).parents[2] / "tools" / "simulate" / "key_strength.py"


def test_strength_predicts_the_power_to_find_wrong_facts() -> None:
    """The short version of `python tools/simulate/key_strength.py`: keys with fewer expectations and without `must`."""
    simulation = runpy.run_path(str(SIMULATION))
    pairs = list(simulation["figures"](24, 30, 28))
    assert min(pairs)[0] < 0.3 < 0.7 < max(pairs)[0]
    assert simulation["rank_correlation"](pairs) >= 0.8
    strong = [power for strength, power in pairs if strength > 0.7]
    assert sum(strong) / len(strong) > 0.8


def test_odd_replies_and_questions_are_audited(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    write_rows(
        "golden.jsonl",
        {"id": "long", "question": "What is the rent?", "expected_keywords": ["1420"]},
        {"id": "silent", "question": "Anything new?"},
        {"id": "null", "question": "Who is the agent?", "reference_answer": "Ann Lee is the agent."},
    )
    (tmp_path / "bot.py").write_text(
        "def answer(question):\n"
        "    if 'agent' in question:\n        return None\n"
        "    return 'It is $1,420. ' + 'word 12 ' * 130_000\n"
    )
    assert command("run", "golden.jsonl", "--target", "bot.py:answer").code == 0
    document = command("audit", "golden.jsonl", "--run", "latest", "--json").document
    strong = {question["id"]: question["strong"] for question in document["questions"]}
    assert strong["null"] is True
    assert strong["silent"] is False
    assert all(
        len(survivor["reply"]) < 1_100_000 for one in document["questions"] for survivor in one["survivors"]
    )
    write_rows("other.jsonl", {"id": "x", "question": "Something else?", "expected_keywords": ["y"]})
    refused = command("audit", "other.jsonl", "--run", "latest")
    assert refused.code == 2
    assert "has no reply to any question of other" in refused.err
    assert json.loads(command("audit", "golden.jsonl", "--json").out)["strength"]["questions"] == 2
