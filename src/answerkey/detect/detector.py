"""Decides from a reply's text alone whether it is an error instead of an answer.

Certain forms (`forms.py`) are charged. The fitted model (`model.py`) charges where it is surer than one false accusation in 200
answers; from one half on it suspects, which costs nothing.

The model reads every reply, since that is fast. Forms are compared only with replies that the model does not find plain, or
that have one of the marks or ends that forms need.
"""

import msgspec

from answerkey.detect.bodies import body_fields
from answerkey.detect.forms import DetectedFailure, certain_form, is_blank, shortened, truncated_form
from answerkey.detect.model import Model, clip, shipped_model
from answerkey.text.normalise import lazy

__all__ = ["SHORTEST_CHARGED", "SUSPECTED_FROM", "DetectedFailure", "detect_failure"]

SUSPECTED_FROM = 0.5
# A few words are too little for the model to charge.
SHORTEST_CHARGED = 40
# Below this probability, a reply of several words without any of these marks has none of the forms.
_PLAIN_BELOW = 0.001
_FORM_MARKS = (
    *("{", "<", "[", "```", "undefined", "NaN", "null", "None", "Invalid Date", "Infinity"),
    *("%(", "\ufffd", "â€", "Ã"),
)
_PERCENT_NAME = lazy("%[A-Z_!]")
_SENTENCE = lazy(r"[^.!?。！？\n]+(?:[.!?]+(?=\s|$)|[.。！？]|\n|$)?")


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows or suggests; None for an answer. `model` replaces the shipped weights."""
    if text is None:
        return DetectedFailure("null", "there is no reply", because=("null",))
    stripped = text.strip()
    if is_blank(stripped):
        return DetectedFailure("empty", "the reply is empty", because=("empty",))
    found = _decide(stripped, model or shipped_model())
    if found is None or not found.end:
        return found
    offset = len(text) - len(text.lstrip())
    return msgspec.structs.replace(found, start=found.start + offset, end=found.end + offset)


def _decide(stripped: str, model: Model) -> DetectedFailure | None:
    probability = model.probability(stripped)
    if probability < _PLAIN_BELOW and " " in stripped and not _has_form_marks(stripped):
        return truncated_form(stripped)
    found = certain_form(stripped)
    # The keys of a JSON body have said all there is to say about it.
    if found is not None or body_fields(stripped) is not None:
        return found
    return _by_model(stripped, probability, model)


def _has_form_marks(stripped: str) -> bool:
    # A loop is faster here than `any` over a generator.
    for mark in _FORM_MARKS:
        if mark in stripped:
            return True
    return "%" in stripped and _PERCENT_NAME.search(stripped) is not None


def _by_model(stripped: str, probability: float, model: Model) -> DetectedFailure | None:
    """What the model finds likelier than not, with the sentence that speaks most for it."""
    if probability < SUSPECTED_FROM:
        return None
    clipped = clip(stripped)
    spans = [found.span() for found in _SENTENCE.finditer(clipped)] or [(0, len(clipped))]
    start, end = max(spans, key=lambda span: model.weight(clipped[slice(*span)]))
    breaks_off = stripped[-1].isalnum() and len(spans) > 1 and end == len(clipped)
    return DetectedFailure(
        kind="truncated" if breaks_off else "error_text",
        message=shortened(clipped[start:end]),
        start=start,
        end=min(end, len(stripped)),
        because=("model",),
        probability=round(probability, 3),
        charged=probability >= model.weights.charged_from and len(stripped) >= SHORTEST_CHARGED,
    )
