"""How well each term of a wanted answer is present in a reply, and how it was recognised."""

from rapidfuzz.distance import Levenshtein

from answerkey.match.reply import Reply
from answerkey.match.vocabulary import are_opposites, equivalents
from answerkey.match.wanted import TELLING, Term, Wanted
from answerkey.text.dates import Date
from answerkey.text.normalise import stem, stem_probe
from answerkey.text.quantities import Quantity

__all__ = ["Presence", "align"]

# A typo leaves at least this share of a word in place; an answer of one word has nothing else to be recognised by.
_SIMILAR, _SIMILAR_ALONE = 0.68, 0.8
_SHORTEST_FUZZY, _SHORTEST_COMPOUND, _SHORTEST_PREFIX = 4, 5, 6


class Presence:
    """One term in one reply: from 0 (absent) to 1 (there), how it was recognised, and as which folded word or where."""

    __slots__ = ("clash", "offset", "strength", "way", "word")

    def __init__(self, strength: float, way: str, word: str = "", offset: int = -1, clash: int = 0) -> None:
        self.strength, self.way, self.word = strength, way, word
        # Offset in the reply's folded words of an amount or date; -1 where the word says it.
        self.offset = offset
        # 1 where the reply has another amount, date or unit in its place.
        self.clash = clash


_ABSENT = Presence(0.0, "absent")


def align(wanted: Wanted, reply: Reply) -> list[Presence]:
    """Each term looked for in the reply: exact, by value, inflected, abbreviated, run together, misspelt, initial."""
    found = [_present(term, wanted, reply) for term in wanted.terms]
    joined = reply.joined
    whole = ""
    if len(wanted.compact) >= _SHORTEST_COMPOUND and f" {wanted.compact}" in joined:
        whole = "compound"
    elif (
        len(wanted.compact) >= _SHORTEST_PREFIX
        and wanted.compact.isalnum()
        and wanted.compact in reply.squeezed
    ):
        whole = "compound" if not wanted.compact.isalpha() else ""
    if whole:
        return [Presence(0.95, whole, wanted.compact)] * len(found)
    short = next(
        (one for one in wanted.initials if f" {one} " in joined and one not in reply.asked.stems), ""
    )
    if short:
        return [Presence(0.95, "abbreviation", short)] * len(found)
    if wanted.acronym and found[0].strength < 1:
        at = reply.spelled_out(wanted.acronym)
        if at >= 0:
            return [Presence(0.95, "abbreviation", wanted.acronym, at)]
    if any(
        one.way == "word" and term.weight >= TELLING for one, term in zip(found, wanted.terms, strict=True)
    ):
        for index, (term, one) in enumerate(zip(wanted.terms, found, strict=True)):
            # "J. Turner" for Joseph Turner; "I" and what is left of "it's" and "don't" are no initials.
            if (
                one.strength == 0
                and not (term.quantity or term.date or term.code)
                and term.word[0] not in "istdm"
            ) and f" {term.word[0]} " in joined:
                found[index] = Presence(0.5, "initial", term.word[0])
    return found


def _present(term: Term, wanted: Wanted, reply: Reply) -> Presence:
    if term.date is not None:
        return _date(term.word, term.date, reply)
    if term.code is not None:
        code = term.code.search(reply.text)
        if code is not None:
            return Presence(1.0, "number", term.word, reply.offset_of(code.start()))
        if term.quantity is None:
            return Presence(0.0, "absent", clash=1)
    if term.quantity is not None:
        return _amount(term.word, term.quantity, reply)
    if f" {term.word} " in reply.joined:
        return Presence(1.0, "word", term.word)
    if stem_probe(term.stem) in reply.joined and term.stem in reply.stem_set:
        return Presence(0.95, "inflected", term.stem)
    return _recognise(term, wanted, reply)


def _date(word: str, wanted: Date, reply: Reply) -> Presence:
    clash = 0
    for date in reply.dates:
        if wanted.agrees(date):
            return Presence(1.0, "date", word, reply.offset_of(date.start))
        if date.agrees(wanted) and (date.day or date.month):
            return Presence(0.6, "date", word, reply.offset_of(date.start))
        clash = 1
    return Presence(0.0, "absent", clash=clash)


def _amount(word: str, wanted: Quantity, reply: Reply) -> Presence:
    best, clash = None, 0
    for quantity in reply.quantities:
        fits = wanted.fits(quantity)
        if wanted.equals(quantity):
            if best is None or fits > best[0]:
                best = fits, quantity
                if fits == 1:
                    break
        elif fits == 1:
            clash = 1
            if best is None and wanted.rounds(quantity):
                best = 0, quantity
    if best is None:
        return Presence(0.0, "absent", clash=clash)
    fits, quantity = best
    way = "number" if fits >= 0 else "other unit"
    return Presence(1.0 if fits >= 0 else 0.5, way, word, reply.offset_of(quantity.start), int(fits < 0))


def _recognise(term: Term, wanted: Wanted, reply: Reply) -> Presence:
    """A word that is not there as such: abbreviated, split, longer or misspelt."""
    word, joined = term.word, reply.joined
    for other in equivalents(word) or ():
        if f" {other} " in joined:
            return Presence(0.95, "abbreviation", other)
    length = len(word)
    # Whatever a longer, split or misspelt form is, it begins with the same letter.
    if length < _SHORTEST_FUZZY or f" {word[0]}" not in joined:
        if not word.isascii() and word in joined:
            return Presence(0.9, "compound", word)
        return _ABSENT
    cuts = range(2, min(length - 1, 40)) if length >= _SHORTEST_COMPOUND and word in reply.squeezed else ()
    if any(f" {word[:cut]} {word[cut:]} " in joined for cut in cuts):
        return Presence(0.9, "compound", word)
    if term.stem in reply.asked.stems:
        # A word of the question is not a misspelling of the answer: "Monet" in the question is not Manet.
        return _ABSENT
    return _misspelt(word, _SIMILAR if len(wanted.telling) > 1 else _SIMILAR_ALONE, reply)


def _misspelt(word: str, cutoff: float, reply: Reply) -> Presence:
    best, found = 0.0, ""
    length = len(word)
    # People get the first letter right: "lease" is not a misspelt "please".
    for other in reply.by_letter.get(word[0], ()):
        longest = max(length, len(other))
        if length >= _SHORTEST_PREFIX and other.startswith(word) and stem(other) not in reply.asked.stems:
            return Presence(0.9, "compound", other)
        if len(other) >= _SHORTEST_COMPOUND and length - len(other) >= 4 and word.startswith(other):
            # "physio" for physiotherapy.
            return Presence(0.8, "abbreviation", other)
        edits = int(longest * (1.0 - cutoff) + 1e-9)
        if abs(length - len(other)) > edits or longest > 60:
            continue
        distance = Levenshtein.distance(word, other, score_cutoff=edits)
        nearer = distance <= edits and 1.0 - distance / longest > best
        if nearer and stem(other) not in reply.asked.stems and not are_opposites(word, other):
            best, found = 1.0 - distance / longest, other
    return Presence(1.0 - 1.6 * (1.0 - best), "misspelt", found) if found else _ABSENT
