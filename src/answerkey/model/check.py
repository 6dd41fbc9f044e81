"""Check: one further condition on a reply, as a golden case states it."""

from typing import Any

import msgspec

__all__ = ["CHECK_KINDS", "RUBRIC_PREFIX", "Check"]

# What a check can look at by itself; any other kind is the name of a registered scorer.
CHECK_KINDS = (
    "contains",
    "equals",
    "regex",
    "is_json",
    "json_schema",
    "max_latency_ms",
    "max_cost",
    "max_words",
    "language",
    "python",
    "rubric",
)
# A judge's score for a rubric is called this with the rubric's text behind it.
RUBRIC_PREFIX = "rubric: "


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition: its kind and what that kind expects."""

    # One of CHECK_KINDS, or the name of a registered scorer.
    kind: str
    # What the kind compares with; of a registered scorer, its arguments.
    expected: Any
    # How it is reported.
    name: str
    # Its share of the question's checks, relative to the others.
    weight: float = 1.0
