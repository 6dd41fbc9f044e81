"""How well each term of a wanted answer is present in a reply, and how it was recognised."""

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from answerkey.match.reply import Reply
from answerkey.match.vocabulary import EQUIVALENTS, EXCLUSIVE
from answerkey.match.wanted import TELLING, Term, Wanted
from answerkey.text.normalise import FUNCTION_WORDS, stem

__all__ = ["Presence", "align"]

# A typo leaves at least this share of a word in place; an answer of one word has nothing else to be recognised by.
_SIMILAR, _SIMILAR_ALONE = 0.68, 0.8
# Places of a term that are looked at.
_MOST = 8
_SHORTEST_FUZZY, _SHORTEST_COMPOUND, _SHORTEST_PREFIX = 4, 5, 6


class Presence(NamedTuple):
    """One term in one reply."""

    # From 0 (absent) to 1 (there).
    strength: float
    # How it was recognised.
    way: str
    # The first of its places in the reply; none where they are not known.
    places: Sequence[int] = ()
    # Whether the reply has another amount, date or unit in its place.
    clash: bool = False


_ABSENT = Presence(0.0, "absent")
_ELSE = Presence(0.0, "absent", (), True)


def align(wanted: Wanted, reply: Reply) -> list[Presence]:
    """Each term looked for in the reply; where the answer as a whole stands there in another form, all of its terms."""
    found = [_present(term, wanted, reply) for term in wanted.terms]
    if all(one.strength == 1 for one in found):
        return found
    compact = wanted.compact
    if len(compact) >= _SHORTEST_COMPOUND and compact in reply.squeezed:
        mixed = len(compact) >= _SHORTEST_PREFIX and compact.isalnum() and not compact.isalpha()
        if mixed or f" {compact}" in reply.joined:
            return [Presence(0.95, "compound", _beginning(compact, reply))] * len(found)
    for short in wanted.initials:
        if f" {short} " in reply.joined and short not in reply.asked.stems:
            return [Presence(0.95, "abbreviation", _beginning(f"{short} ", reply))] * len(found)
    if wanted.acronym:
        letters = "".join(word[0] for word in reply.words)
        telling = "".join(word[0] for word in reply.words if word not in FUNCTION_WORDS)
        if wanted.acronym in letters or wanted.acronym in telling:
            at = letters.find(wanted.acronym)
            return [Presence(0.95, "abbreviation", (at,) if at >= 0 else ())]
    if any(one.way == "word" and t.weight >= TELLING for one, t in zip(found, wanted.terms, strict=True)):
        for index, (term, one) in enumerate(zip(wanted.terms, found, strict=True)):
            # "J. Turner" for Joseph Turner; "I" and what is left of "it's" and "don't" are no initials.
            value = term.quantity or term.date or term.code
            if one.strength == 0 and not value and term.word[0] not in "istdm":
                places = reply.places(term.word[0])
                found[index] = Presence(0.5, "initial", places) if places else one
    return found


def _beginning(form: str, reply: Reply) -> tuple[int, ...]:
    """The place of the word that begins with a form, where there is one."""
    at = reply.joined.find(f" {form}")
    return (reply.joined.count(" ", 0, at),) if at >= 0 else ()


def _present(term: Term, wanted: Wanted, reply: Reply) -> Presence:
    if term.date is not None:
        for date in reply.dates:
            if term.date.agrees(date):
                return Presence(1.0, "date", (reply.word_at(date.start),))
            if date.agrees(term.date) and (date.day or date.month):
                return Presence(0.6, "date", (reply.word_at(date.start),))
        return _ELSE if reply.dates else _ABSENT
    if term.code is not None:
        code = term.code.search(reply.text)
        if code is not None:
            return Presence(1.0, "number", (reply.word_at(code.start()),))
        if term.quantity is None:
            return _ELSE
    if term.quantity is not None:
        return _amount(term, reply)
    places = reply.places(term.stem)
    if places:
        known = [place for place in places if reply.words[place] == term.word]
        return Presence(1.0, "word", known) if known else Presence(0.95, "inflected", places)
    return _recognise(term, wanted, reply)


def _amount(term: Term, reply: Reply) -> Presence:
    wanted = term.quantity
    assert wanted is not None
    same: dict[int, list[int]] = {1: [], 0: [], -1: []}
    clash = False
    for quantity, place in reply.quantities:
        fits = wanted.fits(quantity)
        if wanted.equals(quantity):
            same[fits].append(place)
        elif fits == 1:
            clash = True
            if wanted.rounds(quantity):
                same[0].append(place)
    if same[1] or same[0]:
        return Presence(1.0, "number", (same[1] or same[0])[:_MOST])
    return Presence(0.5, "other unit", same[-1][:_MOST], True) if same[-1] else _ELSE if clash else _ABSENT


def _recognise(term: Term, wanted: Wanted, reply: Reply) -> Presence:
    """A word that is not there as such: abbreviated, run together or misspelt."""
    word, joined = term.word, reply.joined
    for other in EQUIVALENTS.get(word, ()):
        if f" {other} " in joined:
            return Presence(0.95, "abbreviation", _beginning(f"{other} ", reply))
    length = len(word)
    # Whatever a longer, split or misspelt form is, it begins with the same letter.
    if length < _SHORTEST_FUZZY or f" {word[0]}" not in joined:
        return Presence(0.9, "compound") if not word.isascii() and word in joined else _ABSENT
    if _SHORTEST_COMPOUND <= length <= 40 and word in reply.squeezed:
        for cut in range(2, length - 1):
            if f" {word[:cut]} {word[cut:]} " in joined:
                return Presence(0.9, "compound", _beginning(f"{word[:cut]} {word[cut:]} ", reply))
    if term.stem in reply.asked.stems:
        # A word of the question is not a misspelling of the answer: "Monet" in the question is not Manet.
        return _ABSENT
    return _misspelt(word, _SIMILAR if len(wanted.telling) > 1 else _SIMILAR_ALONE, reply)


def _misspelt(word: str, cutoff: float, reply: Reply) -> Presence:
    best, found = 0.0, ""
    length = len(word)
    # People get the first letter right: "lease" is not a misspelt "please".
    for other in reply.beginning(word[0]):
        longest = max(length, len(other))
        if length >= _SHORTEST_PREFIX and other.startswith(word) and stem(other) not in reply.asked.stems:
            return Presence(0.9, "compound", reply.places(stem(other)))
        if len(other) >= _SHORTEST_COMPOUND and length - len(other) >= 4 and word.startswith(other):
            # "physio" for physiotherapy.
            return Presence(0.8, "abbreviation", reply.places(stem(other)))
        edits = int(longest * (1.0 - cutoff) + 1e-9)
        if abs(length - len(other)) > edits or longest > 60:
            continue
        distance = Levenshtein.distance(word, other, score_cutoff=edits)
        nearer = distance <= edits and 1.0 - distance / longest > best
        if nearer and stem(other) not in reply.asked.stems and other not in EXCLUSIVE.get(word, ()):
            best, found = 1.0 - distance / longest, other
    return Presence(1.0 - 1.6 * (1.0 - best), "misspelt", reply.places(stem(found))) if found else _ABSENT
