"""Whether a reply is an error instead of an answer, seen from its text alone.

First the forms that are certain, then a gate that lets most plain answers go at once by their words, then a linear model over
named features and n-grams, by the weights that `benchmarks/fit_errors.py` fitted. Only beginning and end of a long reply are
weighed, so the time is linear with a small factor.
"""

import gzip
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from math import exp, sqrt
from operator import add, itemgetter, mul
from pathlib import Path
from typing import NamedTuple

import msgspec

from answerkey.detect.features import FIGURES, NAMES, Lexicon, Reading, clip, place_in_whole, read_features
from answerkey.detect.forms import DetectedFailure, certain_form, kind_by_marks, marked_form
from answerkey.detect.weights_file import Fitted, Gate, Shelves

__all__ = ["DetectedFailure", "Model", "detect_failure", "failure_kinds", "gate_marks", "is_let_go"]

_WORDS_SHOWN = 5
# What the gate reads of a reply, below which length it is a short one, and how many letters of a word may stand for it.
_HEAD, _TAIL, _SHORT, _LETTERS = 200, 80, 128, 6
# UTF-8 bytes per character above which a script may have no spaces, and above which a text is hardly English with a few dashes.
_DENSE, _ACCENTED = 2.2, 1.03
_DIGITS, _CAPITALS = b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Small letters, and spaces between words.
_SPACED = bytes.maketrans(_CAPITALS + b",.:!", _CAPITALS.lower() + b"    ")
_SIGNS = {sign: f"\n\t{sign:c}" for sign in b"$%?'\"()*-\n;/"}
_NO_SIGNS = bytes(set(range(256)) - set(_SIGNS))
# The kinds of replies, each with a limit of its own.
LONGER, SHORT, DENSE = 0, 1, 2


class Model:
    """Gate and model, of which each is read when it is needed."""

    def __init__(self, read_gate: Callable[[], Gate], read_fitted: Callable[[], Fitted]) -> None:
        self._read_gate, self._read_fitted = read_gate, read_fitted

    @cached_property
    def gate(self) -> tuple[Gate, frozenset[str]]:
        """What lets plain answers go, and the marks it has weights for: a set finds them faster than a dictionary."""
        gate = self._read_gate()
        return gate, frozenset(gate.marks)

    @cached_property
    def fitted(self) -> Fitted:
        """What weighs all other replies."""
        return self._read_fitted()

    @cached_property
    def lexicon(self) -> Lexicon:
        """Words with what they weigh."""
        return Lexicon(Shelves(self.fitted.characters))


@cache
def shipped_model() -> Model:
    """The weights in the package."""
    return Model(
        lambda: msgspec.json.decode(_unpacked("gate.json.gz"), type=Gate),
        lambda: msgspec.json.decode(_unpacked("weights.json.gz"), type=Fitted),
    )


def _unpacked(name: str) -> bytes:
    return gzip.decompress((Path(__file__).parent / "data" / name).read_bytes())


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows, or None for an answer; `model` takes the place of the shipped weights."""
    stripped = (text or "").strip()
    found = certain_form(text, stripped)
    if found or text is None:
        return found
    model = model or shipped_model()
    return None if is_let_go(stripped, model) else _decide(text, stripped, model)


def failure_kinds(texts: Sequence[str | None]) -> list[str | None]:
    """The kind of the failure that each text shows: as `detect_failure`, and faster, since each step is for all at once."""
    model = shipped_model()
    stripped = [(text or "").strip() for text in texts]
    kinds = [None if form is None else form.kind for form in map(certain_form, texts, stripped)]
    left = [
        place for place, kind in enumerate(kinds) if kind is None and not is_let_go(stripped[place], model)
    ]
    for place in left:
        clipped = clip(stripped[place])
        found = marked_form(clipped) or _weighed(clipped, model)
        kinds[place] = None if found is None else found.kind
    return kinds


def is_let_go(stripped: str, model: Model) -> bool:
    """Whether the gate takes a reply for an answer: by the weights of its marks, each counted once."""
    found = gate_marks(stripped)
    if found is None:
        return False
    kind, marks = found
    gate, known = model.gate
    return sum(map(gate.marks.__getitem__, known.intersection(marks))) < gate.limits[kind]


def gate_marks(stripped: str) -> tuple[int, list[str]] | None:
    """The reply's kind, and its words, the first and the last of them, its end with its length, its signs and how many digits it
    has; None where the gate must not decide.
    """
    # One character is looked for at a fraction of the cost of several.
    if "{" in stripped or "<" in stripped or ("`" in stripped and "```" in stripped):
        return None
    if ("|" in stripped and "||" in stripped) or ("@" in stripped and "@@" in stripped):
        return None
    length = len(stripped)
    looked_at = stripped if length <= _HEAD + _TAIL else f"{stripped[:_HEAD]} {stripped[-_TAIL:]}"
    # A table serves all bytes at once, where a text would be gone through for each of them.
    data = looked_at.encode("utf-8", "replace")
    width = len(data) / len(looked_at)
    last = stripped[-1]
    end = "a" if last.isalpha() else "0" if last.isdigit() else last
    size = min(10, length.bit_length())
    if width > _DENSE:
        small = looked_at.lower()
        return DENSE, [f"\n{end}{size}d", *map(add, small, small[1:])]
    marks = data.translate(_SPACED).decode().lower().split() or [last]
    first, final, count = marks[0], marks[-1], len(marks)
    if length < _SHORT or width > _ACCENTED:
        marks += [word[:_LETTERS] for word in marks if len(word) > _LETTERS]
    if length < _SHORT:
        # How many of the words have a capital: a name, a heading, a sentence, casual talk.
        marks.append(f"\n{min(4, sum(map(str.istitle, looked_at.split())))}/{min(6, count)}")
    marks += map(_SIGNS.__getitem__, set(data.translate(None, _NO_SIGNS)))
    digits = len(data) - len(data.translate(None, _DIGITS))
    marks += "\n" + first, f"\n{end}{size}", f"\n\n{digits if digits < 4 else digits.bit_length() + 1}"
    if end in "a0":
        marks.append(final + "\n")
    return (SHORT if length < _SHORT else LONGER), marks


def _decide(text: str, stripped: str, model: Model) -> DetectedFailure | None:
    """What marks and model say of a reply that neither its form nor the gate decided."""
    clipped = clip(stripped)
    found = marked_form(clipped)
    if found is None:
        weighed = _weighed(clipped, model)
        if weighed is None:
            return None
        start, end, because = _explain(clipped, weighed.reading, model)
        message, probability = " ".join(clipped[start:end].split())[:200], round(weighed.probability, 3)
        found = DetectedFailure(weighed.kind, message, start, end, because, probability)
    begin = text.find(stripped[0])
    start, end = (begin + place_in_whole(place, len(stripped)) for place in (found.start, found.end))
    return msgspec.structs.replace(found, start=start, end=end)


class _Weighed(NamedTuple):
    """An error by the model's weights."""

    kind: str
    reading: Reading
    probability: float


def _weighed(clipped: str, model: Model) -> _Weighed | None:
    """What the model says of a clipped text; None: it is an answer."""
    reading = read_features(clipped, model.lexicon)
    probability = weigh(reading, model)
    if probability <= model.fitted.threshold:
        return None
    breaks_off = not reading.speaks_of_failure and clipped[-1] not in ".!?。！？।؟…"
    return _Weighed(kind_by_marks(clipped, breaks_off), reading, probability)


def weigh(reading: Reading, model: Model) -> float:
    """The probability that what was read is an error."""
    fitted, words, neighbours = model.fitted, reading.words.values(), reading.neighbours
    named, (of_words, of_neighbours, of_edges) = fitted.named, fitted.scales
    total = fitted.bias + sum(map(mul, reading.figures, named))
    total += sum([named[place] for place in (*reading.concepts, *reading.pairs)])
    total += of_words * sum(map(_WEIGHT, words)) / sqrt(sum(map(_GRAMS, words)))
    if neighbours:
        total += (
            of_neighbours * sum(filter(None, map(fitted.neighbours.get, neighbours))) / sqrt(len(neighbours))
        )
    total += of_edges * sum(filter(None, map(fitted.edges.get, reading.edges)))
    return 1 / (1 + exp(-max(-30.0, min(30.0, total))))


_WEIGHT, _GRAMS = itemgetter(0), itemgetter(1)


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
