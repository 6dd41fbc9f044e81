"""By what a stored reply is found again: the chatbot's own ids of it, the tools it used and the words in it."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from answerkey.model.reply import Reply
from answerkey.model.trial import Trial

__all__ = ["id_rows", "reply_digest", "search_text", "text_rows", "tools_text"]

# Characters kept for searching: a page of text from each side.
_QUESTION_SHOWN = 300
_SEARCHED = 4_000


def id_rows(run_id: str, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Rows of `reply_ids`."""
    return [
        {
            "external_id": value,
            "kind": kind,
            "run_id": run_id,
            "ask_hash": item.question.ask_hash,
            "trial": item.number,
        }
        for item in trials
        for reply in item.replies
        for kind, value in (
            ("response", reply.response_id),
            ("trace", reply.trace_id),
            ("conversation", reply.conversation_id),
        )
        if value
    ]


def text_rows(run_id: str, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Rows of `reply_texts`."""
    return [_text_row(run_id, item) for item in trials]


def reply_digest(replies: Sequence[Reply]) -> str:
    """Equal for replies that say the same."""
    said = "\x00".join("\x01" if reply.text is None else reply.text for reply in replies)
    return blake2b(said.encode("utf-8", "replace"), digest_size=6).hexdigest()


def tools_text(replies: Sequence[Reply]) -> str:
    """The tools that replies called, each between line breaks."""
    tools = dict.fromkeys(name for reply in replies for name in reply.tools_used)
    return _harmless("".join(f"\n{name}" for name in tools) + "\n" if tools else "")


def search_text(asked: Sequence[str], replies: Sequence[Reply]) -> str:
    """Questions and replies without case, a page of each."""
    words = "\n".join(asked)[:_SEARCHED]
    said = "\n".join(reply.text for reply in replies if reply.text)[:_SEARCHED]
    return _harmless(f"{words}\n{said}".casefold())


def _text_row(run_id: str, trial: Trial) -> dict[str, Any]:
    question = trial.question
    return {
        "run_id": run_id,
        "ask_hash": question.ask_hash,
        "trial": trial.number,
        "tools": tools_text(trial.replies),
        "question": _harmless(question.question[:_QUESTION_SHOWN]),
        "search": search_text([question.id, *(turn.question for turn in question.asks)], trial.replies),
    }


def _harmless(text: str) -> str:
    # PostgreSQL takes no NUL in text, and no database a lone surrogate.
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
