"""What a run's judging came to, in one line."""

from collections.abc import Mapping
from typing import Any

from answerkey.report.value_wording import count, money
from answerkey.text.sanitise import one_line

__all__ = ["judge_line"]


def judge_line(judge: Mapping[str, Any]) -> str:
    """`judged by gpt-4o-mini: 106 of 106 replies, 110 calls, cost $0.0213, canaries passed`; empty without a judge."""
    if not judge:
        return ""
    judged, unscored = int(judge.get("judged", 0)), int(judge.get("unscored", 0))
    parts = [
        f"{judged:,} of {count(judged + unscored, 'reply', 'replies')}",
        count(int(judge.get("calls", 0)), "call"),
    ]
    if judge.get("cached"):
        parts.append(f"{judge['cached']:,} known before")
    if judge.get("cost") is not None:
        parts.append(f"cost {money(judge['cost'])}")
    alpha = (judge.get("agreement") or {}).get("judge")
    if alpha is not None:
        parts.append(f"Krippendorff α {alpha:.2f}")
    if judge.get("canaries"):
        words = {True: "canaries passed", False: "UNRELIABLE: canaries failed"}
        parts.append(words.get(judge.get("reliable"), "canaries not all judged"))  # type: ignore[arg-type]
    return f"judged by {one_line(str(judge.get('model', '')), 80)}: {', '.join(parts)}"
