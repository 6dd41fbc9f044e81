"""How likely a reply is an error, by the weights that `benchmarks/fit_errors.py` fitted, and which of its words decided."""

import gzip
from functools import cache
from importlib.resources import files
from math import exp, sqrt
from operator import mul
from typing import NamedTuple

import msgspec

from answerkey.detect.detected import DetectedFailure
from answerkey.detect.features import FIGURES, NAMES, Lexicon, Reading, clip, place_in_whole, read_features
from answerkey.detect.forms import kind_by_marks, marked_form
from answerkey.detect.gate import gate_marks, gate_sum, is_short

__all__ = ["Model", "Weights", "decide", "shipped_model", "to_model"]

_WORDS_SHOWN = 5


class Weights(msgspec.Struct):
    """What was fitted, as it is stored."""

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


class Model(NamedTuple):
    """Weights as they are used."""

    bias: float
    threshold: float
    named: list[float]
    lexicon: Lexicon
    neighbours: dict[str, float]
    edges: dict[str, float]
    gate: dict[str, float]
    # What the marks must stay below, of a longer and of a short reply.
    gate_limits: tuple[float, float]


def to_model(weights: Weights) -> Model:
    """The weights made ready for use."""
    tables = (weights.characters, weights.neighbours, weights.edges, weights.gate)
    characters, neighbours, edges, gate = (
        {key: value * scale for key, value in table.items()}
        for table, scale in zip(tables, weights.scales, strict=True)
    )
    return Model(
        weights.bias,
        weights.threshold,
        weights.named,
        Lexicon(characters),
        neighbours,
        edges,
        gate,
        (weights.gate_limits[0] - weights.gate_bias, weights.gate_limits[1] - weights.gate_bias),
    )


@cache
def shipped_model() -> Model:
    """The weights in the package, read once."""
    packed = (files("answerkey.detect") / "data" / "weights.json.gz").read_bytes()
    return to_model(msgspec.json.decode(gzip.decompress(packed), type=Weights))


def decide(text: str, stripped: str, model: Model) -> DetectedFailure | None:
    """What gate, marks and model say of a reply that has none of the certain forms."""
    marks = gate_marks(stripped)
    if marks is not None and gate_sum(marks, model.gate) < model.gate_limits[is_short(stripped)]:
        return None
    clipped = clip(stripped)
    found = marked_form(clipped)
    if found is None:
        reading = read_features(clipped, model.lexicon)
        probability = weigh(reading, model)
        if probability <= model.threshold:
            return None
        breaks_off = not reading.speaks_of_failure and clipped[-1] not in ".!?。！？।؟…"
        start, end, because = _explain(clipped, reading, model)
        found = DetectedFailure(
            kind_by_marks(clipped, breaks_off),
            " ".join(clipped[start:end].split())[:200],
            start,
            end,
            because,
            round(probability, 3),
        )
    begin = text.find(stripped[0])
    start, end = (begin + place_in_whole(place, len(stripped)) for place in (found.start, found.end))
    return msgspec.structs.replace(found, start=start, end=end)


def weigh(reading: Reading, model: Model) -> float:
    """The probability that what was read is an error."""
    named, neighbours, edges = model.named, model.neighbours, model.edges
    words = reading.words.values()
    total = model.bias + sum(map(mul, reading.figures, named))
    total += sum([named[place] for place in (*reading.concepts, *reading.pairs)])
    total += sum([word.weight for word in words]) / sqrt(sum([word.grams for word in words]))
    if reading.neighbours:
        said = [neighbours[pair] for pair in reading.neighbours if pair in neighbours]
        total += sum(said) / sqrt(len(reading.neighbours))
    total += sum([edges[edge] for edge in reading.edges if edge in edges])
    return 1 / (1 + exp(-max(-30.0, min(30.0, total))))


def _explain(text: str, reading: Reading, model: Model) -> tuple[int, int, tuple[str, ...]]:
    """The sentence that speaks most for an error, and the words and named features that do."""
    lexicon = model.lexicon
    weighed = [
        [(lexicon[word].weight, word) for word in text[start:end].split()] for start, end in reading.sentences
    ]
    sums = [sum([weight for weight, _ in words]) for words in weighed]
    start, end = reading.sentences[sums.index(max(sums))]
    distinct = sorted({word for words in weighed for word in words}, reverse=True)
    because = [f"“{word}”" for weight, word in distinct[:_WORDS_SHOWN] if weight > 0]
    named = [(value * model.named[n], FIGURES[n]) for n, value in enumerate(reading.figures)]
    named += [(model.named[place], NAMES[place]) for place in (*reading.concepts, *reading.pairs)]
    because += [name for weight, name in sorted(named, reverse=True)[:_WORDS_SHOWN] if weight > 0]
    return start, end, tuple(because)
