"""Decides from a reply's text alone whether it is an error instead of an answer.

1. Certain forms (`forms.py`) are charged.
2. A reply that is an error message through and through (`messages.py`) is charged unless the fitted model (`model.py`) finds
   that unlikely.
3. The model charges a reply that reports a failure where it is surer than one false accusation in 200 answers; from one half on
   it suspects, which costs nothing.

The model reads every reply, since that is fast. The rest is only looked at where the model does not find a reply plain, or the
reply has one of the marks or ends that forms need.
"""

import msgspec

from answerkey.detect.bodies import body_fields
from answerkey.detect.forms import DetectedFailure, certain_form, is_blank, shortened, truncated_form
from answerkey.detect.messages import has_few_unknown_words, read_message
from answerkey.detect.model import Model, shipped_model
from answerkey.text.normalise import lazy

__all__ = ["LEAST_LIKELY", "MOST_OTHERS", "SUSPECTED_FROM", "DetectedFailure", "detect_failure"]

SUSPECTED_FROM = 0.5
# An error message below this probability is not charged if words of it are unknown.
LEAST_LIKELY = 0.18
# Most sentences that neither report nor accompany a failure in a reply that the model charges.
MOST_OTHERS = 1
# Below these probabilities, a reply of several words without any of the marks below has none of the forms. Most languages
# with other letters are rare among the labelled replies, so that the model knows little of them.
_PLAIN_BELOW, _PLAIN_BELOW_NOT_ASCII = 0.02, 0.002
_FORM_MARKS = (
    *("{", "<", "[", "```", "undefined", "NaN", "null", "None", "Invalid Date", "Infinity"),
    *("%(", "\ufffd", "â€", "Ã", "Ð", "### "),
)
_PERCENT_NAME = lazy("%[A-Z_!sd.@]")


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
    plain_below = _PLAIN_BELOW if stripped.isascii() else _PLAIN_BELOW_NOT_ASCII
    if probability < plain_below and " " in stripped and not _has_form_marks(stripped):
        return truncated_form(stripped)
    found = certain_form(stripped)
    # The keys of a JSON body have said all there is to say about it.
    if found is not None or body_fields(stripped) is not None:
        return found
    found = _by_words(stripped, probability, model.weights.charged_from)
    return found if found is not None and found.charged else truncated_form(stripped) or found


def _has_form_marks(stripped: str) -> bool:
    # A loop is faster here than `any` over a generator.
    for mark in _FORM_MARKS:
        if mark in stripped:
            return True
    return "%" in stripped and _PERCENT_NAME.search(stripped) is not None


def _by_words(stripped: str, probability: float, charged_from: float) -> DetectedFailure | None:
    """The failure that a reply's words report, charged or suspected."""
    # Below this, only a reply without unknown words is charged, and most replies show at a glance that they have some.
    message = (
        read_message(stripped) if probability >= LEAST_LIKELY or has_few_unknown_words(stripped) else None
    )
    is_message = message is not None and (
        message.is_sure or (message.is_likely and probability >= LEAST_LIKELY)
    )
    if not is_message and probability < SUSPECTED_FROM:
        return None
    start, end = (0, len(stripped)) if message is None else (message.start, message.end)
    return DetectedFailure(
        kind="error_text",
        message=shortened(stripped[start:end]),
        start=start,
        end=end,
        because=("error message" if is_message else "model",),
        probability=1.0 if is_message else round(probability, 3),
        charged=is_message
        or (message is not None and message.others <= MOST_OTHERS and probability >= charged_from),
    )
