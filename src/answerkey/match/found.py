"""The outcome of looking for one keyword in one reply."""

from collections.abc import Callable

import msgspec

__all__ = ["Match", "Probability"]

# The place of a model of language: the chance that (question, keyword, answer) says the keyword. Where one is given it decides,
# and the features only show where.
Probability = Callable[[str, str, str], float]


class Match(msgspec.Struct, frozen=True, gc=False):
    """Whether and how one keyword was found in a reply."""

    found: bool
    # Which rule decided: "substring", "number", "pattern", "smart:…" or "none".
    rule: str
    # Span of the matched text in the reply as it was given; None where there is none.
    start: int | None = None
    end: int | None = None
    # The matched text itself.
    text: str = ""
    # The decision in words.
    why: str = ""
