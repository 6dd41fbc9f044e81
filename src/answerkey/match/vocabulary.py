"""Word lists of `smart` matching, read from `vocabulary.toml`: cues around a hit, abbreviations, opposites, light words."""

import tomllib
from importlib import resources

from answerkey.text.normalise import stem
from answerkey.text.units import UNIT_SPELLINGS

__all__ = ["CUES", "LIGHT_WORDS", "OPPOSITES", "QUALIFIERS", "are_opposites", "equivalents"]

_READ = tomllib.loads(resources.files("answerkey.match").joinpath("vocabulary.toml").read_text("utf-8"))
# Name of a cue to its words.
CUES: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _READ["cues"].items()}
LIGHT_WORDS = frozenset(_READ["words"]["light"].split())
QUALIFIERS = frozenset(_READ["words"]["qualifiers"].split())
_NEGATIVE_PREFIXES = ("un", "non", "in", "im", "ir", "dis", "mis", "de")


def _equivalents() -> dict[str, tuple[str, ...]]:
    """Each abbreviation to what it stands for and back, each unit to its spellings; sorted, so that results repeat."""
    groups: dict[str, set[str]] = {}
    for line in _READ["lists"]["abbreviations"].strip().splitlines():
        short, *long = line.split()
        groups.setdefault(short, set()).update(long)
        for word in long:
            groups.setdefault(word, set()).add(short)
    by_unit: dict[str, set[str]] = {}
    for spelling, unit in UNIT_SPELLINGS.items():
        by_unit.setdefault(unit, set()).add(spelling)
    for spelling, unit in UNIT_SPELLINGS.items():
        groups.setdefault(spelling, set()).update(by_unit[unit] - {spelling})
    return {word: tuple(sorted(others)) for word, others in groups.items()}


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _READ["lists"]["opposites"].replace("\n", " ").split(","):
        one, other = map(stem, pair.split())
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    for line in _READ["lists"]["exclusive"].strip().splitlines():
        words = set(map(stem, line.split()))
        for word in words:
            found.setdefault(word, set()).update(words - {word})
    return {word: frozenset(others) for word, others in found.items()}


equivalents = _equivalents().get
# A stem to the stems of its opposites.
OPPOSITES = _opposites()


def are_opposites(one: str, other: str) -> bool:
    """Whether two folded words exclude each other: "employer" and "employee", "approved" and "unapproved"."""
    if stem(other) in OPPOSITES.get(stem(one), ()):
        return True
    short, long = sorted((one, other), key=len)
    return any(long == prefix + short for prefix in _NEGATIVE_PREFIXES)
