"""Kept: what is costly to make and stays true until what it was made from changes."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Kept", "Key"]

Made = TypeVar("Made")
# What a thing was made from.
Key = tuple[str, ...]


class Kept(Generic[Made]):
    """What was made last, up to a total size."""

    def __init__(self, most: int, size: Callable[[Made], int]) -> None:
        self._most = most
        self._measure = size
        self._size = 0
        self._items: OrderedDict[Key, Made] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key | None, make: Callable[[], Made]) -> Made:
        """What has this key, made now if it must be; without a key it is never kept."""
        known = self.known(key)
        if known is not None:
            return known
        made = make()
        self.keep(key, made)
        return made

    def known(self, key: Key | None) -> Made | None:
        """What has this key, if it is here."""
        if key is None:
            return None
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def keep(self, key: Key | None, made: Made) -> None:
        """Keep it, and give up what was wanted least lately."""
        if key is None:
            return
        with self._lock:
            if key not in self._items:
                self._items[key] = made
                self._size += self._measure(made)
            while self._size > self._most:
                self._size -= self._measure(self._items.popitem(last=False)[1])
