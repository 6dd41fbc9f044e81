"""How well each word of an accepted answer is present in a reply, and how it was recognised."""

from functools import lru_cache

from rapidfuzz.distance import Levenshtein

from answerkey.match.smart.opposites import are_opposites
from answerkey.match.smart.reply import ReplyWords
from answerkey.match.smart.vocabulary import equivalents
from answerkey.match.smart.wanted import Wanted
from answerkey.text.normalise import stem

__all__ = ["COMPOUND", "INITIAL", "MISSPELT", "Alignment", "align", "recognise"]

# A typo leaves at least this share of a word in place ("Shostakovitch" for "Shostakovich").
_SIMILAR = 0.68
# An answer of one word has nothing else to be recognised by.
_SIMILAR_ALONE = 0.8
# Shorter words are more often other words than misspelt ones.
_SHORTEST_FUZZY = 4
_SHORTEST_COMPOUND = 5
_SHORTEST_PREFIX = 6

# How a word was recognised.
EXACT, NUMBER, INFLECTED, ABBREVIATED, COMPOUND, MISSPELT, INITIAL, ABSENT = (
    "word", "number", "inflected", "abbreviation", "compound", "misspelt", "initial", "absent",
)  # fmt: skip


class Alignment:
    """For each word of the answer: strength from 0 (absent) to 1 (there), and the way it was recognised."""

    __slots__ = ("found_as", "strengths", "ways")

    def __init__(self) -> None:
        self.strengths: list[float] = []
        self.ways: list[str] = []
        # The reply's own form of the word where it differs.
        self.found_as: list[str | None] = []

    def add(self, strength: float, way: str, found_as: str | None = None) -> None:
        self.strengths.append(strength)
        self.ways.append(way)
        self.found_as.append(found_as)

    def raise_to(self, strength: float, way: str) -> None:
        """At least this strength for every word: the answer was recognised as a whole."""
        for index, present in enumerate(self.strengths):
            if present < strength:
                self.strengths[index] = strength
                self.ways[index] = way


def align(wanted: Wanted, reply: ReplyWords) -> Alignment:
    """Each word of the answer looked for in the reply: exact, inflected, abbreviated, run together, misspelt, initial."""
    alignment = Alignment()
    joined = reply.joined
    for word, stemmed, probe, numeric in zip(
        wanted.words, wanted.stems, wanted.probes, wanted.numeric, strict=True
    ):
        if f" {word} " in joined:
            alignment.add(1.0, EXACT, word)
        elif numeric:
            # A number is there or not; a number that is nearly right is wrong.
            there = reply.find_worth(word) is not None
            alignment.add(1.0 if there else 0.0, NUMBER if there else ABSENT)
        elif probe in joined and stemmed in reply.stem_set:
            alignment.add(0.95, INFLECTED)
        else:
            alignment.add(*recognise(word, stemmed, wanted, reply))
    if wanted.telling > 1:
        _align_initials(alignment, wanted, reply)
    if (
        len(wanted.words) > 1
        and len(wanted.compact) >= _SHORTEST_COMPOUND
        and wanted.compact_probe in joined
        and wanted.compact_stem in reply.stem_set
    ):
        alignment.raise_to(0.95, COMPOUND)
    elif wanted.initials and f" {wanted.initials} " in joined and wanted.initials not in reply.asked:
        alignment.raise_to(0.9, ABBREVIATED)
    return alignment


def recognise(word: str, stemmed: str, wanted: Wanted, reply: ReplyWords) -> tuple[float, str, str | None]:
    """How strongly, in which way and as what a word that is not there as such is there all the same."""
    others = equivalents(word)
    if others:
        for other in others:
            if f" {other} " in reply.joined:
                return 0.95, ABBREVIATED, other
    length = len(word)
    # Whatever a longer, split or misspelt form is, it begins with the same letter.
    if length < _SHORTEST_FUZZY or f" {word[0]}" not in reply.joined:
        return 0.0, ABSENT, None
    if length >= _SHORTEST_COMPOUND and f" {word[:2]}" in reply.joined and reply.is_split(word):
        return 0.9, COMPOUND, None
    # A word of the question is not a misspelling of the answer: "Monet" in the question is not Manet.
    if stemmed in reply.asked:
        return 0.0, ABSENT, None
    if length >= _SHORTEST_PREFIX and f" {word}" in reply.joined:
        longer = reply.begun_with(word)
        if longer is not None:
            return 0.9, COMPOUND, longer
    cutoff = _SIMILAR if wanted.telling > 1 else _SIMILAR_ALONE
    best, found = 0.0, None
    # People get the first letter right: "lease" is not a misspelt "please", nor "deduction" a "reduction".
    for other in reply.spellable(word[0], *_lengths(length, cutoff)):
        longest = max(length, len(other))
        edits = int(longest * (1.0 - cutoff) + 1e-9)
        distance = Levenshtein.distance(word, other, score_cutoff=edits)
        if (
            distance <= edits
            and 1.0 - distance / longest > best
            # A word of the question is not a misspelling of the answer either.
            and stem(other) not in reply.asked
            and not are_opposites(word, other)
        ):
            best, found = 1.0 - distance / longest, other
    if found is None:
        return 0.0, ABSENT, None
    return 1.0 - 1.6 * (1.0 - best), MISSPELT, found


@lru_cache(maxsize=256)
def _lengths(length: int, cutoff: float) -> tuple[int, int]:
    """The lengths of words that are near enough to one of this length."""
    fitting = [
        other
        for other in range(_SHORTEST_FUZZY, 2 * length + 4)
        if abs(length - other) <= int(max(length, other) * (1.0 - cutoff) + 1e-9)
    ]
    return fitting[0], fitting[-1]


def _align_initials(alignment: Alignment, wanted: Wanted, reply: ReplyWords) -> None:
    """ "J. Turner" for Joseph Turner: an initial counts where another word of the name is there."""
    if not any(
        way in _SURE and weight >= 0.5 for way, weight in zip(alignment.ways, wanted.weights, strict=True)
    ):
        return
    for index, (word, way) in enumerate(zip(wanted.words, alignment.ways, strict=True)):
        # "I" and what is left of "it's", "don't", "I'd" and "I'm" are no initials.
        if (
            way == ABSENT
            and not wanted.numeric[index]
            and f" {word[0]} " in reply.joined
            and word[0] not in "istdm"
        ):
            alignment.strengths[index] = 0.5
            alignment.ways[index] = INITIAL
            alignment.found_as[index] = word[0]


_SURE = (EXACT, MISSPELT)
