"""Histories of the conversations under way, for chatbots that are sent all messages every time."""

from collections import OrderedDict

__all__ = ["Conversations"]

Messages = list[dict[str, str]]


class Conversations:
    """What was said so far in each conversation. Only those under way are kept, so that memory stays flat."""

    def __init__(self, under_way: int) -> None:
        # A conversation's turns are asked one after the other, so older ones than these are over.
        self._most = 2 * under_way + 16
        self._kept: OrderedDict[str, Messages] = OrderedDict()

    def begin_turn(self, conversation_id: str, question: str, turn: int) -> Messages:
        """The messages to send: everything before this turn, and the question."""
        before = self._kept.get(conversation_id, []) if turn else []
        # A retried or repeated turn starts again from where it stood.
        before = before[: 2 * turn]
        return [*before, {"role": "user", "content": question}]

    def end_turn(self, conversation_id: str, sent: Messages, answer: str | None) -> None:
        """Keep what was answered for the turns to come."""
        self._kept[conversation_id] = [*sent, {"role": "assistant", "content": answer or ""}]
        self._kept.move_to_end(conversation_id)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
