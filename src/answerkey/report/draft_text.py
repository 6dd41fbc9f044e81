"""The result of `draft` on the terminal and as JSON."""

import msgspec
from rich.text import Text

from answerkey.model.question import QuestionSet
from answerkey.model.reply import JsonObject
from answerkey.report.terminal import make_console
from answerkey.report.wording import count, percent
from answerkey.runs.draft import Drafts
from answerkey.text.normalise import one_line

_LISTED = 15


def draft_document(drafts: Drafts) -> JsonObject:
    """The document of `draft --json`."""
    document: JsonObject = msgspec.to_builtins(drafts)
    return document


def print_drafts(drafts: Drafts, golden: QuestionSet) -> None:
    """Print the coverage, the holes with most traffic and failures, and what was drafted."""
    console, covered = make_console(), drafts.coverage
    console.print()
    console.print(
        Text.assemble(
            ("   coverage ", "bold"),
            (percent(covered.value), "bold"),
            f"   {percent(covered.low)} to {percent(covered.high)}: "
            f"questions that are surely in {golden.name}, to those that may be",
        ),
        soft_wrap=True,
    )
    console.print(f"   {count(covered.questions, 'question')} asked, {covered.distinct:,} different")
    if drafts.holes:
        console.print()
        console.print(Text("Not covered", style="bold"))
    for hole in drafts.holes[:_LISTED]:
        failures = f", {hole.failures:,} with signs of failure" if hole.failures else ""
        line = Text.assemble(
            (f"  {hole.count:>5,}  ", "bold"), one_line(hole.examples[0], 80), (failures, "red")
        )
        console.print(line, soft_wrap=True)
    if len(drafts.holes) > _LISTED:
        console.print(
            Text(f"  and {len(drafts.holes) - _LISTED:,} more groups (--json lists all)", style="dim")
        )
    expecting = sum(bool(draft.get("expected_keywords")) for draft in drafts.drafts)
    console.print()
    console.print(
        f"{count(len(drafts.drafts), 'draft')}, {expecting} with expectations of the text. "
        "Accept them one by one: answerkey review --drafts FILE"
    )
