"""One question that was asked to look at, on the terminal: the raw reply, and how each part of it was read."""

import json
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from answerkey.evaluation.asking import Asked
from answerkey.model.reply import Reply
from answerkey.model.trial import Trial
from answerkey.report.terminal import emit
from answerkey.report.terminal_detail import print_trial
from answerkey.report.value_wording import milliseconds
from answerkey.text.sanitise import for_terminal, one_line

# More of a raw reply is shown by --raw.
_MOST_LINES = 60
_MOST_UNREAD = 12


def raw_text(asked: Asked) -> str:
    """The raw reply: JSON indented, anything else as it came."""
    if isinstance(asked.raw, str):
        return for_terminal(asked.raw)
    return for_terminal(json.dumps(asked.raw, indent=2, ensure_ascii=False))


def print_asked(asked: Asked, console: Console) -> None:
    """Print what was asked, what came back and what was made of it."""
    took = milliseconds(asked.reply.timings.latency_ms)
    asks = one_line(asked.question.asks[-1].question, 200)
    emit(
        console,
        Text.assemble(
            ("asked   ", "dim"), (asks, "bold"), (f"  {one_line(asked.target, 80)}, {took}", "dim")
        ),
    )
    _print_raw(asked, console)
    emit(console, Text("read as", style="bold"))
    for line in _parts(asked):
        emit(console, Padding(line, (0, 0, 0, 2), expand=False))
    if asked.unread:
        emit(console, Text("not read", style="bold"))
        shown = ", ".join(asked.unread[:_MOST_UNREAD])
        more = f" and {len(asked.unread) - _MOST_UNREAD} more" if len(asked.unread) > _MOST_UNREAD else ""
        emit(console, Padding(Text(for_terminal(shown + more), style="dim"), (0, 0, 0, 2), expand=False))
    if asked.proposed:
        emit(console, Text("this mapping would read more, in answerkey.toml:", style="bold"))
        # Never wrapped: it is there to be copied.
        console.print(
            "\n".join(f"  {line}" for line in mapping_lines("NAME", asked.proposed)), soft_wrap=True
        )
    if asked.scorecard is not None:
        console.print()
        print_trial(Trial(asked.question, replies=(asked.reply,), scorecard=asked.scorecard), console)


def mapping_lines(name: str, expressions: Mapping[str, str]) -> Iterator[str]:
    """A mapping as answerkey.toml has it."""
    yield f"[targets.{name}.reply]"
    for part, expression in expressions.items():
        yield for_terminal(f"{part} = {json.dumps(expression, ensure_ascii=False)}")


def _print_raw(asked: Asked, console: Console) -> None:
    emit(console, Text("raw reply", style="bold"))
    lines = raw_text(asked).split("\n") if asked.raw is not None else ["none was seen"]
    for line in lines[:_MOST_LINES]:
        console.print(f"  {one_line(line, 500) if len(line) > 500 else line}", style="dim", soft_wrap=True)
    if len(lines) > _MOST_LINES:
        console.print(f"  … {len(lines) - _MOST_LINES} more lines; --raw prints them all", style="dim")


def _parts(asked: Asked) -> Iterator[Text]:
    reply, read = asked.reply, asked.read
    for part, value in _values(reply).items():
        where = read.get(part, "")
        style = "red" if part == "error" and reply.failure else "" if value else "yellow"
        shown = one_line(value, 160) if value else _MISSING.get(part, "not found")
        yield Text.assemble(
            (f"{part:<13}", "dim"),
            (shown, style),
            (f"  from {one_line(where, 120)}" if where else "", "cyan"),
        )


_MISSING = {
    "text": "no text was found",
    "tool_calls": "nothing was found that tells of tools: calls are not observed",
    "sources": "none were found: sources are not observed",
}


def _values(reply: Reply) -> dict[str, str]:
    """The parts that everybody wants to see, found or not, and the others that were found."""
    seen = reply.evidence
    usage = (
        "" if reply.usage is None else f"{reply.usage.total_tokens or reply.usage.output_tokens or 0} tokens"
    )
    values = {
        "text": reply.text or "",
        "tool_calls": ", ".join(reply.tools_used) or ("none was called" if seen.tools_observed else ""),
        "sources": ", ".join(source.id or source.title or "a passage" for source in reply.sources)
        or ("none" if seen.sources_observed else ""),
    }
    others = {
        "error": f"{reply.failure.kind}: {reply.failure.message}" if reply.failure else "",
        "usage": usage,
        "response_id": reply.response_id or "",
    }
    return {**values, **{part: value for part, value in others.items() if value}}
