"""Expectations: what a golden set asks the text of a reply to say, in one small family of types.

A plain text is a `str`. Everything else is one of the structs below. A `ComputedExpectation` is data: it is resolved into
plain expectations before anything is graded, and those carry the expression that they were computed from.
`answerkey.datasets.expectations` reads all of them from JSON values and writes them back.
"""

from typing import Any, Literal

import msgspec

# A computed number is met by what it rounds to at two decimals, as money is written.
ROUNDING = 0.005


class _Expectation(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
):
    """What every kind of expectation has."""

    # Essential: if it is not met, response quality is 0.
    must: bool = False
    # The query, path or call that the value was computed from; empty: it was written by hand.
    expression: str = ""

    @property
    def computed(self) -> bool:
        """Whether the value was computed from the data."""
        return self.expression != ""


class TextExpectation(_Expectation, frozen=True, tag="text"):
    """A text that is essential or computed: `{"text": "net 30", "must": true}`. Any other text is a plain `str`."""

    text: str


class NumberExpectation(_Expectation, frozen=True, tag="number"):
    """A number, exact or within a tolerance: `{"number": 3960, "tolerance": "1%"}`."""

    number: float
    # Largest difference that still counts: absolute, or a share of the number such as "1%". A default factory, because
    # `omit_defaults` would otherwise leave 0.0 out, which is part of the content hash.
    tolerance: float | str = msgspec.field(default_factory=float)
    # The number is a percentage: 5 is "5%", "5 percent" or 0.05, and not a bare 5.
    percent: bool = False

    @property
    def slack(self) -> float:
        """The tolerance as an absolute difference."""
        if isinstance(self.tolerance, str):
            return abs(self.number) * float(self.tolerance.rstrip("% ")) / 100
        return self.tolerance


class RangeExpectation(_Expectation, frozen=True, tag="range"):
    """A number between two others, both included: `{"range": [3900, 4000]}`."""

    low: float
    high: float
    # Both ends are percentages.
    percent: bool = False


class DateExpectation(_Expectation, frozen=True, tag="date"):
    """A date, a part of one, or a time of day, however the reply writes it: `{"date": "2025-03-31"}`.

    What it does not say may be anything: "30/09" is met by September 30 of any year, "03/04" by either reading.
    """

    date: str


class PatternExpectation(_Expectation, frozen=True, tag="regex"):
    """A regular expression, searched ignoring case: `{"regex": "9(th)? street"}`."""

    regex: str


# What can be one of several alternatives.
SingleExpectation = (
    str | TextExpectation | NumberExpectation | RangeExpectation | DateExpectation | PatternExpectation
)


class Alternatives(_Expectation, frozen=True, tag="any"):
    """Several ways to say one thing, any of which counts as the one expectation: `["land", "plot"]`."""

    options: tuple[SingleExpectation, ...]


# How a value is computed: a query, a path in a facts document, or a Python function.
Method = Literal["sql", "fact", "python"]


class ComputedExpectation(_Expectation, frozen=True, tag="computed"):
    """A value that is computed from the data before grading: `{"sql": "SELECT SUM(gross) …", "from": "books"}`."""

    method: Method
    # Name of the truth source; empty: the only one there is.
    source: str = ""
    # Parameters of a query, arguments of a function.
    arguments: dict[str, Any] = {}
    # Several values: each of them is expected, or one of them.
    several: Literal["all", "any"] = "all"
    # No value: the run ends with an error, or the question has no answer for this run.
    on_empty: Literal["error", "abstain"] = "error"
    # Of the numbers that it gives.
    tolerance: float | str = 0.0

    @property
    def described(self) -> str:
        """The expression with its source and arguments, as its values carry it."""
        source = f"{self.source}: " if self.source else ""
        arguments = ", ".join(f"{name}={value}" for name, value in sorted(self.arguments.items()))
        return f"{source}{self.expression}{f' ({arguments})' if arguments else ''}"


# What a question expects, or forbids.
Expectation = SingleExpectation | Alternatives | ComputedExpectation


def expected_text(expectation: Expectation) -> str | None:
    """The text that it expects word for word; None for every other kind."""
    if isinstance(expectation, TextExpectation):
        return expectation.text
    return expectation if isinstance(expectation, str) else None


def expected_options(expectation: Expectation) -> tuple[SingleExpectation | ComputedExpectation, ...]:
    """Its alternatives, or itself."""
    return expectation.options if isinstance(expectation, Alternatives) else (expectation,)


def is_essential(expectation: Expectation) -> bool:
    """Whether it is marked `must`."""
    return not isinstance(expectation, str) and expectation.must


def describe_expectation(expectation: Expectation) -> str:
    """How reports name an expectation.

    >>> describe_expectation(NumberExpectation(3960, "1%")), describe_expectation(RangeExpectation(1.5, 2))
    ('3960 ± 1%', '1.5 to 2')
    """
    match expectation:
        case str():
            return expectation
        case TextExpectation(text=text):
            return text
        case NumberExpectation(number=number, tolerance=tolerance):
            if expectation.computed and tolerance == ROUNDING:
                return f"{number:.2f}"
            name = f"{number:.12g}{'%' if expectation.percent else ''}"
            shown = tolerance if isinstance(tolerance, str) else f"{tolerance:g}"
            return f"{name} ± {shown}" if tolerance else name
        case RangeExpectation(low=low, high=high):
            unit = "%" if expectation.percent else ""
            return f"{low:.12g}{unit} to {high:.12g}{unit}"
        case DateExpectation(date=date):
            return date
        case PatternExpectation(regex=regex):
            return f"/{regex}/"
        case Alternatives(options=options):
            return " | ".join(map(describe_expectation, options))
        case ComputedExpectation(expression=computed):
            return computed
