"""Message and Part: one step of a conversation in the one form that every outside format is read into."""

from typing import Any, Literal

import msgspec

from answerkey.model.reply import Source, ToolCall, Usage

# Who speaks; dialects with other names are read into these.
Role = Literal["user", "assistant", "tool", "system"]
# `aside`: something that is neither said nor called (images, marks of a step); `unread`: not understood.
PartKind = Literal["text", "call", "result", "thought", "aside", "unread"]


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of a message: what is said, called, brought back, or was not understood."""

    kind: PartKind
    # What is said or thought; of an unread part, what it calls itself.
    text: str | None = None
    # A call, or what came of one: then its id and name are those of the call that it belongs to, as far as they are told.
    call: ToolCall | None = None
    # What the part cites or brings.
    sources: tuple[Source, ...] = ()
    # An unread part as it came.
    raw: Any = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of any format."""

    role: Role
    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    id: str | None = None

    @property
    def text(self) -> str | None:
        """What the message says: its texts joined; None if it says nothing at all."""
        texts = [part.text for part in self.parts if part.kind == "text" and part.text is not None]
        return "".join(texts) if texts else None
