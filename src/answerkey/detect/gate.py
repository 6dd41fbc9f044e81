"""The gate before the model: lets go at once, by its words, what is clearly an answer."""

__all__ = ["gate_marks", "gate_sum", "is_short"]

_SHORT, _HEAD, _TAIL, _LETTERS = 128, 400, 150, 6
# UTF-8 bytes per character above which a script may have no spaces.
_DENSE = 2.2


def is_short(stripped: str) -> bool:
    """Whether a reply has so few words that the gate needs another limit, and the first letters of the words too."""
    return len(stripped) < _SHORT


def gate_marks(stripped: str) -> list[str] | None:
    """A reply's words, the first of them, its end with its length; None where the gate must not decide."""
    length = len(stripped)
    looked_at = stripped if length <= _HEAD + _TAIL else f"{stripped[:_HEAD]} {stripped[-_TAIL:]}"
    if not looked_at.isascii() and len(looked_at.encode("utf-8", "replace")) > _DENSE * len(looked_at):
        return None
    if "{" in stripped or "<" in stripped or "```" in stripped or "||" in stripped or "@@" in stripped:
        return None
    marks = looked_at.lower().split()
    last = stripped[-1]
    end = "a" if last.isalpha() else "0" if last.isdigit() else last
    further = ["\n" + marks[0], f"\n{end}{min(10, length.bit_length())}"]
    if length < _SHORT:
        # How many of the words have a capital: a name, a heading, a sentence, casual talk.
        capitals = sum(map(str.istitle, looked_at.split()))
        further += [f"\n{min(4, capitals)}/{min(6, len(marks))}", *[word[:_LETTERS] for word in marks]]
    return marks + further


def gate_sum(marks: list[str], weights: dict[str, int]) -> int:
    """How much a reply's marks, each counted once, speak for an error."""
    return sum(map(weights.__getitem__, weights.keys() & marks))
