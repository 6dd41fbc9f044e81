"""What is kept of the conversations under way, as their histories for chatbots that are sent all messages every time."""

from typing import Generic, TypeVar

__all__ = ["Conversations", "UnderWay"]

Messages = list[dict[str, str]]
_Kept = TypeVar("_Kept")


class UnderWay(Generic[_Kept]):
    """Something for each conversation. Only those under way are kept, so that memory stays flat."""

    def __init__(self, at_once: int) -> None:
        # A conversation's turns are asked one after the other, so older ones than these are over.
        self._most = 2 * at_once + 16
        self._kept: dict[str, _Kept] = {}

    def get(self, conversation_id: str) -> _Kept | None:
        """What is kept for a conversation."""
        return self._kept.get(conversation_id)

    def keep(self, conversation_id: str, value: _Kept) -> None:
        """Keep it for the turns to come."""
        self._kept.pop(conversation_id, None)
        self._kept[conversation_id] = value
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]


class Conversations:
    """What was said so far in each conversation."""

    def __init__(self, at_once: int) -> None:
        self._said: UnderWay[Messages] = UnderWay(at_once)

    def begin_turn(self, conversation_id: str, question: str, turn: int) -> Messages:
        """The messages to send: everything before this turn, and the question."""
        # A retried or repeated turn starts again from where it stood.
        before = (self._said.get(conversation_id) or [])[: 2 * turn]
        return [*before, {"role": "user", "content": question}]

    def end_turn(self, conversation_id: str, sent: Messages, answer: str | None) -> None:
        """Keep what was answered for the turns to come."""
        self._said.keep(conversation_id, [*sent, {"role": "assistant", "content": answer or ""}])
