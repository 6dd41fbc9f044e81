"""What a golden set can ask a reply to contain."""

from typing import Literal

import msgspec


class NumberKeyword(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """A number within a tolerance: `{"number": 442300, "tolerance": 0.5}`."""

    number: float
    # Largest absolute difference that still counts.
    tolerance: float = 0.0


class PatternKeyword(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="regex"):
    """A regular expression, searched ignoring case: `{"regex": "9(th)? street"}`."""

    regex: str


class Alternatives(msgspec.Struct, frozen=True, tag_field="kind", tag="any"):
    """Several ways to say one thing; any of them counts as the one keyword."""

    options: tuple[str | NumberKeyword | PatternKeyword, ...]


# How keywords are found in a reply: the three modes of the scoring standard.
MatchMode = Literal["literal", "standard", "smart"]
# How sure `smart` must be: the likelier verdict, or surer that what it accepts, or what it rejects, is right.
Threshold = Literal["even", "strict", "lenient"]
Keyword = str | NumberKeyword | PatternKeyword | Alternatives


def describe_keyword(keyword: Keyword) -> str:
    """How reports name a keyword in its `found` and `missing` lists."""
    match keyword:
        case str():
            return keyword
        case NumberKeyword(number=number, tolerance=tolerance):
            return f"{number:g} ± {tolerance:g}" if tolerance else f"{number:.12g}"
        case PatternKeyword(regex=regex):
            return f"/{regex}/"
        case Alternatives(options=options):
            return " | ".join(describe_keyword(option) for option in options)
