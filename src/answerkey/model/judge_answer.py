"""Answer: what a judge said to one question of ours, under the hash of all that could change it, and what it cost."""

import msgspec


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens and money that calls took."""

    input_tokens: int = 0
    output_tokens: int = 0
    # None: no price is known.
    cost: float | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of one judge, as it is kept."""

    key: str
    model: str
    # The answer's text, with its grades' probabilities where they are wanted. What it says is read from it each time,
    # so that a cached verdict is as strict as a new one.
    text: str
    spent: Spent = Spent()
