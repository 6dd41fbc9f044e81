"""How likely a reply is an error, by the weights that `benchmarks/fit_errors.py` fitted, and which of its words decided."""

from collections.abc import Callable
from functools import cache, cached_property, partial
from math import exp, sqrt
from operator import mul
from pathlib import Path

import msgspec

from answerkey.detect.detected import DetectedFailure
from answerkey.detect.features import FIGURES, NAMES, Lexicon, Reading, clip, place_in_whole, read_features
from answerkey.detect.forms import kind_by_marks, marked_form
from answerkey.detect.gate import gate_marks, gate_sum, is_short
from answerkey.detect.weights_file import (
    Fitted,
    Gate,
    Shelves,
    Weights,
    pack_fitted,
    pack_gate,
    read_fitted,
    read_gate,
)

__all__ = ["Model", "decide", "shipped_model", "to_model"]

_WORDS_SHOWN = 5


class Model:
    """Gate and model, of which each is read when it is needed."""

    def __init__(self, gate: Callable[[], bytes], fitted: Callable[[], bytes]) -> None:
        self._files = (gate, fitted)

    @cached_property
    def gate(self) -> Gate:
        """What lets plain answers go."""
        return read_gate(self._files[0]())

    @cached_property
    def fitted(self) -> Fitted:
        """What weighs all other replies."""
        return read_fitted(self._files[1]())

    @cached_property
    def lexicon(self) -> Lexicon:
        """Words with what they weigh."""
        return Lexicon(Shelves(self.fitted.characters, self.fitted.scales[0]))

    @cached_property
    def neighbours(self) -> Shelves:
        """Pairs of words."""
        return Shelves(self.fitted.neighbours, self.fitted.scales[1])

    @cached_property
    def edges(self) -> Shelves:
        """First and last words."""
        return Shelves(self.fitted.edges, self.fitted.scales[2])


def to_model(weights: Weights) -> Model:
    """Weights that were just fitted, for use."""
    return Model(partial(pack_gate, weights), partial(pack_fitted, weights))


@cache
def shipped_model() -> Model:
    """The weights in the package."""
    data = Path(__file__).parent / "data"
    return Model((data / "gate.json.gz").read_bytes, (data / "weights.json.gz").read_bytes)


def decide(text: str, stripped: str, model: Model) -> DetectedFailure | None:
    """What gate, marks and model say of a reply that has none of the certain forms."""
    marks = gate_marks(stripped)
    if marks is not None and gate_sum(marks, model.gate.marks) < model.gate.limits[is_short(stripped)]:
        return None
    clipped = clip(stripped)
    found = marked_form(clipped)
    if found is None:
        reading = read_features(clipped, model.lexicon)
        probability = weigh(reading, model)
        if probability <= model.fitted.threshold:
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
    named = model.fitted.named
    words = reading.words.values()
    total = model.fitted.bias + sum(map(mul, reading.figures, named))
    total += sum([named[place] for place in (*reading.concepts, *reading.pairs)])
    total += sum([word.weight for word in words]) / sqrt(sum([word.grams for word in words]))
    if reading.neighbours:
        total += model.neighbours.total(reading.neighbours) / sqrt(len(reading.neighbours))
    total += model.edges.total(reading.edges)
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
    named = [(value * model.fitted.named[n], FIGURES[n]) for n, value in enumerate(reading.figures)]
    named += [(model.fitted.named[place], NAMES[place]) for place in (*reading.concepts, *reading.pairs)]
    because += [name for weight, name in sorted(named, reverse=True)[:_WORDS_SHOWN] if weight > 0]
    return start, end, tuple(because)
