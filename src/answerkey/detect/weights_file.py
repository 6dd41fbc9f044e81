"""The fitted weights as they are shipped, so that a run loads what its replies need: the gate, then of the model what they say.

Few replies get past the gate, and of a hundred thousand runs of characters a run meets some thousands.
"""

from collections.abc import Iterable

import msgspec

# A shelf holds the keys that begin with the same two characters.
SHELF = 2
# Below this number also shelves that turned out empty are kept.
_SHELVES_KEPT = 20_000


class Gate(msgspec.Struct):
    """The gate's weights."""

    marks: dict[str, int]
    # What the sum of the marks must stay below, of a longer reply, a short one and one of a dense script.
    limits: tuple[float, float, float]


class Fitted(msgspec.Struct):
    """The model's weights."""

    bias: float
    # A reply is an error if its probability is above this.
    threshold: float
    # For each of NAMES.
    named: list[float]
    # Runs of characters by shelf, neighbouring words, first and last words.
    characters: dict[str, msgspec.Raw]
    neighbours: dict[str, int]
    edges: dict[str, int]
    # By which sums of these three are to be multiplied.
    scales: tuple[float, float, float]


class Shelves(dict[str, dict[str, int]]):
    """Weights by the first two characters of their keys; a shelf is read when somebody looks into it."""

    def __init__(self, packed: dict[str, msgspec.Raw] | None = None) -> None:
        self._packed = packed or {}

    def __missing__(self, shelf: str) -> dict[str, int]:
        packed = self._packed.get(shelf)
        weights = msgspec.json.decode(packed, type=dict[str, int]) if packed else {}
        if packed or len(self) < _SHELVES_KEPT:
            self[shelf] = weights
        return weights

    def total(self, keys: Iterable[str]) -> int:
        """What these keys weigh together."""
        return sum([self[key[:SHELF]].get(key, 0) for key in keys])
