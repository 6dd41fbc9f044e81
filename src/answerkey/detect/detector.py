"""Whether a reply is an error instead of an answer, seen from its text alone.

First the forms that are certain, then a gate that lets most plain answers go at once, then a linear model over named features and
n-grams. Only beginning and end of a long reply are weighed, so the time is linear with a small factor.
"""

from answerkey.detect.detected import DetectedFailure
from answerkey.detect.features import clip, place_in_whole
from answerkey.detect.forms import certain_form, kind_by_marks, marked_form
from answerkey.detect.model import THRESHOLD, Model, looks_plain, shipped_model, weigh

__all__ = ["DetectedFailure", "detect_failure"]


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows, or None for an answer; `model` takes the place of the shipped weights."""
    stripped = (text or "").strip()
    found = certain_form(text, stripped)
    if found or text is None:
        return found
    model = model or shipped_model()
    if looks_plain(stripped, model):
        return None
    clipped = clip(stripped)
    begin = text.find(stripped[0])
    found = marked_form(clipped)
    if found:
        return DetectedFailure(
            found.kind,
            found.message,
            begin + place_in_whole(found.start, len(stripped)),
            begin + place_in_whole(found.end, len(stripped)),
            found.because,
        )
    verdict = weigh(clipped, model)
    if verdict.probability <= THRESHOLD:
        return None
    breaks_off = not verdict.reading.speaks_of_failure and clipped[-1] not in ".!?。！？।؟…"
    message = " ".join(clipped[verdict.start : verdict.end].split())[:200]
    return DetectedFailure(
        kind_by_marks(clipped, breaks_off),
        message,
        begin + place_in_whole(verdict.start, len(stripped)),
        begin + place_in_whole(verdict.end, len(stripped)),
        verdict.because,
        round(verdict.probability, 3),
    )
