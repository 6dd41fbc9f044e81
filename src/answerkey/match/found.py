"""The outcome of looking for one keyword in one reply."""

import msgspec

__all__ = ["Match"]


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
