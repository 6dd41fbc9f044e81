"""The reference chatbot on a copy of its data.

Copy it first: cp -r "$(python -c 'import answerkey_demo as d; print(d.golden_set_path().parent)')" data
"""

from functools import cache
from pathlib import Path

from answerkey_demo import Chatbot, open_chatbot


@cache
def _chatbot() -> Chatbot:
    return open_chatbot(data=Path("data"))


async def answer(question: str) -> dict[str, object]:
    """Ask the chatbot."""
    return await _chatbot().ask(question)
