"""A small chatbot over a real SQLite database, and faults of known stage that can be planted in it."""

import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import answerkey as ak
from answerkey.protocols import Ask, BaseTarget

MONTHS = ("January", "February", "March", "April", "May", "June")
CABINS = ("Aspen", "Birch", "Cedar", "Dogwood", "Elm")
RULES = (
    "smoking",
    "parking",
    "quiet hours",
    "pets",
    "laundry",
    "check-out",
    "heating",
    "rubbish",
    "guests",
    "keys",
)


# Planted change → the stage that `why` should name.
STAGES = {
    "tool_removed": "tools",
    "wrong_sql": "arguments",
    "data": "tool_results",
    "key": "key",
    "truth": "truth",
    "worse_wording": "text",
    "tool_breaks": "error",
}


def make_database(path: Path, *, raised: int = 0) -> Path:
    """Payouts by cabin and month; `raised` is added to each amount."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE payouts (cabin TEXT, month TEXT, amount INTEGER)")
        amounts = [
            (cabin, month, 1300 + 37 * (6 * at + number) + raised)
            for at, cabin in enumerate(CABINS)
            for number, month in enumerate(MONTHS)
        ]
        database.executemany("INSERT INTO payouts VALUES (?, ?, ?)", amounts)
    return path


def rule_text(rule: str) -> str:
    number = RULES.index(rule)
    return f"House rule {number + 11}: {rule} is subject to a fee of {211 + 13 * number} crowns per stay."


def golden_set(*, computed: bool = False, edited: int = 0) -> list[dict[str, Any]]:
    """30 questions about payouts and 10 about rules; `edited` is added to each payout that the key expects."""
    rows: list[dict[str, Any]] = []
    for at, cabin in enumerate(CABINS):
        for number, month in enumerate(MONTHS):
            sql = f"SELECT amount FROM payouts WHERE cabin = '{cabin}' AND month = '{month}'"
            value: Any = {"number": 1300 + 37 * (6 * at + number) + edited}
            row = {
                "id": f"payout-{cabin}-{month}",
                "question": f"What was the payout for cabin {cabin} in {month}?",
                "category": "payouts",
                "expected_tools": ["query_database"],
                "expected_keywords": [{"sql": sql, "from": "books"} if computed else value],
            }
            rows.append(row)
    for rule in RULES:
        rows.append(
            {
                "id": f"rule-{rule}",
                "question": f"What do the house rules say about {rule}?",
                "category": "rules",
                "expected_tools": ["search_documents"],
                "expected_keywords": [{"number": 211 + 13 * RULES.index(rule)}],
            }
        )
    return rows


class PlantedBot(BaseTarget):
    """Answers from the database and the rules.

    Args:
        database: Of payouts.
        fault: "tool_removed", "wrong_sql", "worse_wording", "tool_breaks", or none; each concerns payouts only.
        flaky: Share of replies that leave the figure out, at random.
        seed: Of that.
        shows: What of the calls is reported: "all", "names" or "nothing".
    """

    def __init__(
        self, database: Path, *, fault: str = "", flaky: float = 0.0, seed: int = 0, shows: str = "all"
    ) -> None:
        self.name = self.fingerprint = f"bot {fault} {flaky} {seed} {database.name}"
        self._database, self._fault, self._flaky, self._shows = database, fault, flaky, shows
        self._random = random.Random(seed)

    async def ask(self, ask: Ask) -> ak.Reply:
        """Answer one question."""
        calls = list(self._calls(ask.question))
        figures = re.findall(r"\d{3,}", str(calls[-1].result)) if calls else []
        text = f"It is {figures[-1]}." if figures else "There is nothing on record about this."
        if self._fault == "worse_wording" and "payout" in ask.question:
            text = "The payout was made as agreed; please see your statement."
        if self._random.random() < self._flaky:
            text = "I have looked it up for you; please see the records."
        if self._shows == "nothing":
            return ak.Reply(text=text)
        if self._shows == "names":
            calls = [ak.ToolCall(name=call.name) for call in calls]
        failed = [call.error for call in calls if call.error]
        failure = ak.Failure("tool", failed[0]) if failed else None
        return ak.Reply(
            text=None if failure else text,
            tool_calls=tuple(calls),
            failure=failure,
            evidence=ak.Evidence(tools_observed=True),
        )

    def _calls(self, question: str) -> Iterator[ak.ToolCall]:
        asked = re.match(r"What was the payout for cabin (\w+) in (\w+)\?", question)
        if asked and self._fault != "tool_removed":
            cabin, month = asked.groups()
            # A harmless rewording of the query changes the arguments without a cause.
            sql = f"SELECT cabin, month, amount FROM payouts WHERE month = '{month}' AND cabin = '{cabin}'"
            if self._fault == "wrong_sql":
                sql = f"SELECT SUM(amount) FROM payouts WHERE month = '{month}'"
            if self._fault == "tool_breaks":
                yield ak.ToolCall(
                    name="query_database", arguments={"sql": sql}, error="no such table: payouts"
                )
                return
            with closing(sqlite3.connect(self._database)) as database:
                rows = [list(row) for row in database.execute(sql)]
            yield ak.ToolCall(name="query_database", arguments={"sql": sql}, result=rows, result_seen=True)
            return
        rule = next((rule for rule in RULES if rule in question), None)
        result = rule_text(rule) if rule else "no passage found"
        yield ak.ToolCall(
            name="search_documents", arguments={"query": question}, result=result, result_seen=True
        )
