"""What a reader of a score must know before trusting it."""

from answerkey.run import RunInfo
from answerkey.summary import Summary

__all__ = ["run_warnings"]


def run_warnings(info: RunInfo, summary: Summary) -> tuple[str, ...]:
    """One line for each thing that was not observed, not asked or not scored."""
    lines = []
    if info.status != "complete" or summary.coverage < 1:
        lines.append(
            f"coverage {summary.coverage:.1%}: {summary.planned} trials were planned and some were not scored; "
            f"go on with: answerkey resume {info.id}"
        )
    expects_tools = any(part.name != "(none)" for part in summary.slices.get("tools", ()))
    if summary.tools_unobserved and expects_tools:
        lines.append(
            f"tool calls were not observed in {summary.tools_unobserved} of {summary.replies} replies and count as "
            "none used; supply them as 'tools_used' or 'tool_calls' in the reply, or map them in the configuration"
        )
    for name, count in summary.unscored.items():
        if count:
            lines.append(f"{name} could not be scored in {count} replies, which leave it out of their total")
    return tuple(lines)
