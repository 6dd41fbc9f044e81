"""Whether a reply is an error instead of an answer, seen from its text alone.

First the forms that are certain, then a gate that lets most plain answers go at once, then a linear model over named features and
n-grams. Only beginning and end of a long reply are weighed, so the time is linear with a small factor.
"""

from answerkey.detect.detected import DetectedFailure
from answerkey.detect.forms import certain_form
from answerkey.detect.model import Model, decide, shipped_model

__all__ = ["DetectedFailure", "detect_failure"]


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows, or None for an answer; `model` takes the place of the shipped weights."""
    stripped = (text or "").strip()
    found = certain_form(text, stripped)
    return found if found or text is None else decide(text, stripped, model or shipped_model())
