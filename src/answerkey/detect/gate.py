"""The gate before the model: lets go at once, by the first letters of its words, what is clearly an answer."""

from itertools import repeat

__all__ = ["gate_marks", "gate_sum"]

_HEAD, _TAIL, _LETTERS = 200, 100, 6
# UTF-8 bytes per character above which a script may have no spaces.
_DENSE = 2.2


def gate_marks(stripped: str) -> set[str] | None:
    """The first letters of a reply's first and last words, its end and its length; None where the gate must not decide."""
    length = len(stripped)
    looked_at = stripped if length <= _HEAD + _TAIL else f"{stripped[:_HEAD]} {stripped[-_TAIL:]}"
    if not looked_at.isascii() and len(looked_at.encode("utf-8", "replace")) > _DENSE * len(looked_at):
        return None
    if "{" in stripped or "<" in stripped or "```" in stripped or "||" in stripped or "@@" in stripped:
        return None
    # How many of the words have a capital: a name, a heading, a sentence, casual talk.
    capitals = sum(map(str.istitle, looked_at.split()))
    words = looked_at.lower().split()
    last = stripped[-1]
    end = "a" if last.isalpha() else "0" if last.isdigit() else last
    size = min(10, length.bit_length())
    return {word[:_LETTERS] for word in words} | {
        f"\n{words[0][:_LETTERS]}",
        f"\n{end}",
        f"\n{size}",
        f"\n{end}{size}",
        f"\n{min(4, capitals)}/{min(6, len(words))}",
    }


def gate_sum(marks: set[str], weights: dict[str, int]) -> int:
    """How much a reply's marks speak for an error."""
    return sum(map(weights.get, marks, repeat(0)))
