"""Decides from a reply's text alone whether it is an error instead of an answer.

1. Certain forms (`forms.py`) are charged.
2. A reply without any word of failure is an answer, unless it breaks off. One finite automaton looks for these words and
   for marks of forms, another for all whole forms, and most replies need no more.
3. A reply that is an error message through and through (`messages.py`) is charged unless the fitted model (`model.py`) finds
   that unlikely.
4. The model charges a reply that reports a failure where it is surer than one false accusation in 200 answers; from one half on
   it suspects, which costs nothing.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec
import re2

from answerkey.detect.forms import (
    DetectedFailure,
    body_fields,
    certain_form,
    compile_set,
    form_table,
    is_blank,
    shortened,
    truncated_form,
    whole_forms,
)
from answerkey.detect.messages import failure_words, has_few_unknown_words, read_message
from answerkey.detect.model import Model, shipped_model
from answerkey.text.lazy import lazy

__all__ = ["LEAST_LIKELY", "MOST_OTHERS", "SUSPECTED_FROM", "DetectedFailure", "detect_failure", "plain_text"]

SUSPECTED_FROM = 0.5
# An error message below this probability is not charged if words of it are unknown.
LEAST_LIKELY = 0.3
# Below this, it is not one.
_PLAIN_BELOW = 0.002
# Most sentences that neither report nor accompany a failure in a reply that the model charges.
MOST_OTHERS = 1
_SURROGATE = lazy("[\ud800-\udfff]")


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows or suggests; None for an answer. `model` replaces the shipped weights."""
    if text is None:
        return DetectedFailure("null", "there is no reply", because=("null",))
    stripped = plain_text(text)
    if is_blank(stripped):
        return DetectedFailure("empty", "the reply is empty", because=("empty",))
    found = _decide(stripped, model)
    if found is None or not found.end:
        return found
    offset = len(text) - len(text.lstrip())
    return msgspec.structs.replace(found, start=found.start + offset, end=found.end + offset)


def plain_text(text: str) -> str:
    """A reply as it is read: without spaces around it, with one kind of apostrophe, and without halves of characters."""
    stripped = text.strip()
    return stripped if stripped.isascii() else _SURROGATE.sub("\ufffd", stripped.replace("’", "'"))


@cache
def _automaton() -> Callable[[bytes], list[int] | None]:
    return compile_set(re2.Set.SearchSet, (form_table().inside_marks, failure_words()))


class Scan(NamedTuple):
    """What finite automata find in a reply."""

    # Whether one of the marks occurs in it that each form inside a reply has.
    has_mark: bool
    # Whether it has a word without which no sentence reports a failure.
    has_failure_word: bool
    # The numbers of its whole forms.
    whole: tuple[int, ...]


def scan(stripped: str) -> Scan | None:
    """Scan a reply without spaces around it; None: nothing is found in it."""
    encoded = stripped.encode()
    hits, whole = _automaton()(encoded), whole_forms(encoded)
    return Scan(0 in hits, 1 in hits, whole) if hits else Scan(False, False, whole) if whole else None


def _decide(stripped: str, model: Model | None) -> DetectedFailure | None:
    hits = scan(stripped)
    if hits is None:
        return truncated_form(stripped)
    has_form = hits.has_mark or hits.whole
    found = certain_form(stripped, hits.whole, hits.has_mark) if has_form else None
    # The keys of a JSON body have said all there is to say about it.
    if found is not None or (hits.has_mark and body_fields(stripped) is not None):
        return found
    if hits.has_failure_word:
        found = _by_words(stripped, model or shipped_model())
    return found if found is not None and found.charged else truncated_form(stripped) or found


def _by_words(stripped: str, model: Model) -> DetectedFailure | None:
    """The failure that a reply's words report, charged or suspected."""
    probability = model.probability(stripped)
    if probability < _PLAIN_BELOW:
        return None
    is_likely = probability >= LEAST_LIKELY
    # An unlikely reply is only charged without unknown words, and most replies show at a glance that they have some.
    message = read_message(stripped) if is_likely or has_few_unknown_words(stripped) else None
    is_message = message is not None and (message.is_sure or (message.is_likely and is_likely))
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
        or (
            message is not None
            and message.others <= MOST_OTHERS
            and probability >= model.weights.charged_from
        ),
    )
