"""The fitted weights as they are shipped, so that a run loads what its replies need: the gate, then of the model what they say.

Few replies get past the gate, and of a hundred thousand runs of characters a run meets some thousands.
"""

import gzip
from collections.abc import Iterable

import msgspec

__all__ = ["Fitted", "Gate", "Shelves", "Weights", "pack_fitted", "pack_gate", "read_fitted", "read_gate"]

# A shelf holds the keys that begin with the same two characters.
_SHELF = 2


class Weights(msgspec.Struct):
    """What was fitted."""

    bias: float
    # A reply is an error if its probability is above this.
    threshold: float
    # For each of NAMES.
    named: list[float]
    # Runs of characters, neighbouring words, first and last words, the gate's marks: each times its scale.
    characters: dict[str, int]
    neighbours: dict[str, int]
    edges: dict[str, int]
    gate: dict[str, int]
    # The scales of these four.
    scales: tuple[float, float, float, float]
    gate_bias: float
    # A reply whose gate has less than this is an answer at once: a longer one, a short one.
    gate_limits: tuple[float, float]


class Gate(msgspec.Struct):
    """The gate's weights."""

    marks: dict[str, int]
    # What the sum of the marks must stay below, of a longer and of a short reply.
    limits: tuple[float, float]


class Shelves(dict[str, dict[str, float]]):
    """Weights by the first two characters of their keys; a shelf is read when somebody looks into it."""

    def __init__(self, packed: dict[str, msgspec.Raw] | None = None, scale: float = 1.0) -> None:
        self._packed = packed or {}
        self._scale = scale

    def __missing__(self, shelf: str) -> dict[str, float]:
        packed = self._packed.get(shelf)
        if packed is None:
            return {}
        found = msgspec.json.decode(packed, type=dict[str, int])
        self[shelf] = weights = {key: value * self._scale for key, value in found.items()}
        return weights

    def total(self, keys: Iterable[str]) -> float:
        """What these keys weigh together."""
        return sum([self[key[:_SHELF]].get(key, 0.0) for key in keys])


class Fitted(msgspec.Struct):
    """The model's weights."""

    bias: float
    threshold: float
    named: list[float]
    characters: dict[str, msgspec.Raw]
    neighbours: dict[str, msgspec.Raw]
    edges: dict[str, msgspec.Raw]
    # Of these three.
    scales: tuple[float, float, float]


def pack_gate(weights: Weights) -> bytes:
    """The gate's weights as a file."""
    longer, short = ((limit - weights.gate_bias) / weights.scales[3] for limit in weights.gate_limits)
    return _packed(Gate(weights.gate, (longer, short)))


def pack_fitted(weights: Weights) -> bytes:
    """The model's weights as a file."""
    characters, neighbours, edges = map(_shelved, (weights.characters, weights.neighbours, weights.edges))
    bias, threshold, named, scales = weights.bias, weights.threshold, weights.named, weights.scales[:3]
    return _packed(Fitted(bias, threshold, named, characters, neighbours, edges, scales))


def read_gate(content: bytes) -> Gate:
    """The gate's weights from their file."""
    return msgspec.json.decode(gzip.decompress(content), type=Gate)


def read_fitted(content: bytes) -> Fitted:
    """The model's weights from their file."""
    return msgspec.json.decode(gzip.decompress(content), type=Fitted)


def _shelved(table: dict[str, int]) -> dict[str, msgspec.Raw]:
    shelves: dict[str, dict[str, int]] = {}
    for key, value in table.items():
        shelves.setdefault(key[:_SHELF], {})[key] = value
    return {shelf: msgspec.Raw(msgspec.json.encode(keys)) for shelf, keys in shelves.items()}


def _packed(weights: Gate | Fitted) -> bytes:
    return gzip.compress(msgspec.json.encode(weights), mtime=0)
