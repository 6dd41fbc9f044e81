"""Run documents as two runs of the same thing must share them."""

from typing import Any


def stripped(document: dict[str, Any]) -> dict[str, Any]:
    """A run document without what differs between two runs of the same thing: ids, times, latencies."""
    volatile = {
        "id",
        "name",
        "created_at",
        "finished_at",
        "latency_ms",
        "timings",
        "phases_ms",
        "slowest",
        "conversation_id",
        "trace_id",
        "tool_latency_ms",
        "target",
        "target_hash",
        "target_version",
    }

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: clean(v) for k, v in value.items() if k not in volatile or (k == "id" and "trial" in value)
            }
        return [clean(item) for item in value] if isinstance(value, list) else value

    return clean(document)
