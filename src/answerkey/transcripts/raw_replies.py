"""What a chatbot gave back before it was read, for those who look at it: `ask` and `init`. Others keep none of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["is_watched", "note_raw", "watch_raw"]

_SEEN: ContextVar[list[str] | None] = ContextVar("raw replies", default=None)


@contextmanager
def watch_raw() -> Iterator[list[str]]:
    """The list that everything is noted in which targets get while the body runs, in their tasks too."""
    seen: list[str] = []
    before = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(before)


def is_watched() -> bool:
    """Whether anybody looks; to write a raw reply down is work."""
    return _SEEN.get() is not None


def note_raw(text: str) -> None:
    """Note what came back, as text and without secrets."""
    seen = _SEEN.get()
    if seen is not None:
        seen.append(text)
