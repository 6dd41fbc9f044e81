"""How likely a reply is an error, by the weights that `benchmarks/fit_errors.py` fitted, and which of its words decided."""

from functools import cache
from importlib.resources import as_file, files
from itertools import repeat
from math import exp
from typing import NamedTuple

import msgspec
import numpy as np

from answerkey.detect.detected import DetectedFailure
from answerkey.detect.features import BUCKETS, NAMES, Reading, clip, place_in_whole, read_features
from answerkey.detect.forms import kind_by_marks, marked_form

__all__ = [
    "THRESHOLD",
    "Model",
    "Verdict",
    "decide",
    "gate_prefixes",
    "looks_plain",
    "shipped_model",
    "weigh",
]

# A reply is an error if its probability is above this: below the even chance, since misses are more frequent than false alarms.
THRESHOLD = 0.35
# A reply whose first and last words weigh less than this is an answer at once: one error in a hundred is lost here.
GATE = -3.0
_GATE_HEAD, _GATE_TAIL, _GATE_LETTERS, _GATE_SHORTEST = 200, 100, 6, 60
_PLAIN_ENDS = frozenset('.!?…)؟।"”»')
_WORDS_SHOWN = 5


class Model(NamedTuple):
    """Fitted weights."""

    # A weight for every place of features.py.
    weights: np.ndarray
    bias: float
    # The first letters of a word → its weight in the gate.
    gate: dict[str, float]
    gate_bias: float


class Verdict(NamedTuple):
    """What the model says of a reply."""

    probability: float
    # Span of the sentence that speaks most for an error.
    start: int
    end: int
    # What decided, the strongest first: words of the reply, then figures and concepts.
    because: tuple[str, ...]
    reading: Reading


@cache
def shipped_model() -> Model:
    """The weights in the package, read once."""
    with as_file(files("answerkey.detect") / "data" / "weights.npz") as path, np.load(path) as stored:
        weights = np.concatenate([stored["hashed"] * stored["scale"], stored["named"]]).astype(np.float64)
        prefixes = bytes(stored["gate_prefixes"]).decode("utf-8").split("\n")
        gate = dict(zip(prefixes, (stored["gate_weights"] / 32).tolist(), strict=True))
        return Model(weights, float(stored["bias"]), gate, float(stored["gate_bias"]))


def decide(text: str, stripped: str, model: Model | None) -> DetectedFailure | None:
    """What gate, marks and model say of a reply that has none of the certain forms."""
    model = model or shipped_model()
    if looks_plain(stripped, model):
        return None
    clipped = clip(stripped)
    found = marked_form(clipped)
    if found is None:
        verdict = weigh(clipped, model)
        if verdict.probability <= THRESHOLD:
            return None
        breaks_off = not verdict.reading.speaks_of_failure and clipped[-1] not in ".!?。！？।؟…"
        found = DetectedFailure(
            kind_by_marks(clipped, breaks_off),
            " ".join(clipped[verdict.start : verdict.end].split())[:200],
            verdict.start,
            verdict.end,
            verdict.because,
            round(verdict.probability, 3),
        )
    begin = text.find(stripped[0])
    start, end = (begin + place_in_whole(place, len(stripped)) for place in (found.start, found.end))
    return msgspec.structs.replace(found, start=start, end=end)


def gate_prefixes(stripped: str) -> list[str] | None:
    """What the gate reads of a reply: the first letters of its first and last words; None where it must not decide.

    It does not where a reply is short or may break off, has signs of code or templates, or is in a script without spaces.
    """
    if len(stripped) < _GATE_SHORTEST or stripped[-1] not in _PLAIN_ENDS or stripped[0] in "{[<`":
        return None
    is_long = len(stripped) > _GATE_HEAD + _GATE_TAIL
    looked_at = f"{stripped[:_GATE_HEAD]} {stripped[-_GATE_TAIL:]}" if is_long else stripped
    if not looked_at.isascii() and len(looked_at.encode("utf-8", "replace")) > 2.2 * len(looked_at):
        return None
    if "{" in stripped or "<" in stripped or "```" in stripped or "||" in stripped or "@@" in stripped:
        return None
    return [word[:_GATE_LETTERS] for word in looked_at.lower().split()]


def looks_plain(stripped: str, model: Model) -> bool:
    """Whether the gate lets a reply go as an answer."""
    prefixes = gate_prefixes(stripped)
    return prefixes is not None and sum(map(model.gate.get, prefixes, repeat(0.0))) + model.gate_bias < GATE


def weigh(text: str, model: Model) -> Verdict:
    """The probability that a clipped text without white space around it is an error, and what decided."""
    reading = read_features(text)
    contributions = model.weights[reading.places] * reading.values
    total = float(contributions.sum()) + model.bias
    probability = 1 / (1 + exp(-max(-30.0, min(30.0, total))))
    if probability <= THRESHOLD:
        return Verdict(probability, 0, 0, (), reading)
    start, end, because = _explain(text, reading, contributions)
    return Verdict(probability, start, end, because, reading)


def _explain(text: str, reading: Reading, contributions: np.ndarray) -> tuple[int, int, tuple[str, ...]]:
    """The sentence that speaks most for an error, and the words and named features that do."""
    at_character = np.zeros(len(text) + 1)
    placed = reading.positions >= 0
    np.add.at(at_character, reading.positions[placed].clip(0, len(text)), contributions[placed])
    so_far = np.concatenate([[0.0], np.cumsum(at_character)])
    start, end = max(reading.sentences, key=lambda span: so_far[span[1]] - so_far[span[0]])
    words = []
    begin = 0
    for word in text.split():
        begin = text.index(word, begin)
        words.append((so_far[begin + len(word)] - so_far[begin], word))
        begin += len(word)
    strongest = [f"“{word}”" for weight, word in sorted(words, reverse=True)[:_WORDS_SHOWN] if weight > 0]
    named = [
        (contribution, NAMES[place - BUCKETS])
        for place, contribution in zip(reading.places.tolist(), contributions.tolist(), strict=True)
        if place >= BUCKETS and contribution > 0
    ]
    strongest += [name for _, name in sorted(named, reverse=True)[:_WORDS_SHOWN]]
    return start, end, tuple(strongest)
