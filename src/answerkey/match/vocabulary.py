"""Word lists of `smart` matching, read from `vocabulary.toml`: cues around a hit, abbreviations, light words."""

import tomllib
from importlib import resources

from answerkey.text.units import UNIT_SPELLINGS

_READ = tomllib.loads(resources.files("answerkey.match").joinpath("vocabulary.toml").read_text("utf-8"))
WORDS: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _READ["words"].items()}
# Light in a name, but not in a term: "state tax" is not federal tax.
LIGHT_WORDS = WORDS["light"] - WORDS["qualifiers"]
# A cue's name to its bit, and a word to the bits of its cues.
CUES: dict[str, int] = {name: 1 << number for number, name in enumerate(_READ["cues"])}
CUE_BITS: dict[str, int] = {}
for _name, _words in _READ["cues"].items():
    for _word in _words.split():
        CUE_BITS[_word] = CUE_BITS.get(_word, 0) | CUES[_name]


def _groups(pairs: list[list[str]]) -> dict[str, tuple[str, ...]]:
    """The first of each line to the others and back; sorted, so that results repeat."""
    found: dict[str, set[str]] = {}
    for one, *others in pairs:
        for other in others:
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return {word: tuple(sorted(others)) for word, others in found.items()}


_UNITS: dict[str, list[str]] = {}
for _spelling, _unit in UNIT_SPELLINGS.items():
    _UNITS.setdefault(_unit, []).append(_spelling)
# An abbreviation or a unit to its other forms, and back.
EQUIVALENTS = _groups(
    [line.split() for line in _READ["lists"]["abbreviations"].strip().splitlines()]
    + [[one, *(other for other in same if other != one)] for same in _UNITS.values() for one in same]
)
# A word to those that it is never a misspelling of: "employer" and "employee", "Tuesday" and "Thursday".
EXCLUSIVE = {
    word: frozenset(line.split())
    for line in _READ["lists"]["exclusive"].splitlines()
    for word in line.split()
}
