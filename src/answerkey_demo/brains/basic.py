"""An earlier, weaker version of the assistant: single keywords, plain years only, no memory.

It is kept so that a comparison has a real difference to find. It works with the same tools and the same data.
"""

import asyncio
import re

from answerkey_demo.answers.wording import filled, money
from answerkey_demo.knowledge import Knowledge
from answerkey_demo.language.vocabulary import category_label
from answerkey_demo.language.words import LEXICON, normalise, stems
from answerkey_demo.planner import Conversation
from answerkey_demo.tools.turn import Turn

__all__ = ["BasicBrain"]

_DOCUMENT = re.compile(
    r"\b(?:agreement|articles|policy|lease|minutes|checklist|memo|notes|letter|say|says|purpose|agent|ein|cover\w*|rules?|"
    r"allowed|quorum|vot\w+|deductible|meeting|report|filed|cpa|notice|organizer|radon|guarant\w+)\b"
)
_PROPERTY = re.compile(
    r"\b(?:propert\w+|building|address|basis|built|bought|value|loan|units?|cabin|duplex|fourplex|\d+ s 9th)\b"
)

_KINDS = {
    r"\b(?:income|revenue|profit|net)\b": "income",
    r"\b(?:expenses?|spend|spent|costs?|paid|pay)\b": "expense",
}
_FACTS = {
    "basis": "The total basis is {total_basis:$}.",
    r"\b(?:bought|acquired|purchase)\b": "The property was bought on {acquired_on:date}.",
    "built": "The property was built in {year_built}.",
    "value|worth": "The market value is {market_value:$}.",
    "": "The property is at {address}, {city}, {state} {zip}.",
}


class BasicBrain:
    """Keyword routing over the same tools."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._company = knowledge.company

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str:
        """Answer in a thread."""
        return await asyncio.to_thread(self._answer, normalise(question), turn)

    def _answer(self, text: str, turn: Turn) -> str:
        if re.search(r"\b(?:weather|poem|joke|recipe|bitcoin|football)\b", text):
            return f"I can only help with {self._company}."
        if re.search(r"\b(?:documents|files|paperwork)\b", text):
            found = turn.use("list_business_documents")["documents"]
            return "These documents are on file: " + "; ".join(d["title"] for d in found) + "."
        if _DOCUMENT.search(text):
            return self._search(text, turn)
        if re.search(r"\b(?:due|overdue|deadline|obligations?|renewal)\b", text):
            rows = turn.rows("SELECT * FROM obligations WHERE status <> 'done' ORDER BY due_on LIMIT 3")
            return "Coming up: " + "; ".join(filled("{name} on {due_on:date}", row) for row in rows) + "."
        question = f" {' '.join(stems(text))} "
        for name, say in LEXICON["categories"].items():
            phrases = [name.replace("_", " "), *say.split(",")]
            if any(f" {' '.join(stems(phrase))} " in question for phrase in phrases):
                return self._total("category", name, category_label(name), text, turn)
        for pattern, kind in _KINDS.items():
            if re.search(pattern, text):
                return self._total("kind", kind, kind, text, turn)
        if not _PROPERTY.search(text):
            return self._search(text, turn)
        row = turn.rows("SELECT * FROM properties ORDER BY is_main DESC LIMIT 1")[0]
        return filled(next(say for pattern, say in _FACTS.items() if re.search(pattern, text)), row)

    def _search(self, text: str, turn: Turn) -> str:
        passages = turn.use("search_document_content", query=text, limit=3)["passages"]
        if not passages:
            return "I could not find anything about that in the documents."
        best = passages[0]
        return f"{best['title']}: {best['text'].split('. ')[0].rstrip('.')}."

    def _total(self, column: str, value: str, label: str, text: str, turn: Turn) -> str:
        year = re.search(r"\b20\d\d\b", text)
        period = f" AND date LIKE '{year.group()}%'" if year else ""
        row = turn.rows(f"SELECT SUM(amount) AS total FROM transactions WHERE {column} = ?{period}", value)[0]
        return f"The total {label}{f' in {year.group()}' if year else ''} is {money(row['total'])}."
