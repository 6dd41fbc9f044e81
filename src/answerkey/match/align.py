"""Where one way to say a keyword may stand in a reply, and how well: as it is, or each of its terms in some other form."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import extractOne

from answerkey.match.reply import Reply
from answerkey.match.vocabulary import EQUIVALENTS, EXCLUSIVE, LIGHT_WORDS
from answerkey.match.wanted import Term, Wanted
from answerkey.text.normalise import stem

# A typo leaves at least this share of a word in place; an answer of one word has nothing else to be recognised by.
_SIMILAR, _SIMILAR_ALONE = 0.68, 0.8
_MOST_PLACES = 4
# What parts two names.
_APART = frozenset(",;:()|")
_SHORTEST_FUZZY, _SHORTEST_COMPOUND, _SHORTEST_PREFIX, _LONGEST_FUZZY = 4, 5, 6, 60


class _Presence(NamedTuple):
    """One term in one reply."""

    # From 0 (absent) to 1 (there), and how it was recognised.
    strength: float
    way: str
    # The first of its places in the reply.
    places: Sequence[int] = ()
    # Whether the reply has another amount, date or unit in its place.
    clash: bool = False


_ABSENT = _Presence(0.0, "absent")
_ELSE = _Presence(0.0, "absent", (), True)


class Alignment(NamedTuple):
    """The places where it may stand, and what holds at each of them."""

    places: Sequence[int]
    # How the weakest of its telling words was recognised; "phrase" where it stands there word for word.
    way: str
    # From `recall` to `other_name`.
    values: tuple[float, ...]


_NOWHERE = Alignment((), "absent", ())


def align(wanted: Wanted, reply: Reply) -> Alignment:
    """The words in a row; else each term looked for, or the answer as a whole in another form."""
    in_a_row = reply.phrase(wanted.phrase)
    times = float(min(3, len(in_a_row)))
    # A figure is found by its value: its sign and its unit are not in the folded words.
    if in_a_row and not wanted.figure:
        return Alignment(in_a_row, "phrase", (1.0, 1.0, times, 0.0, 0.0))
    present = [_present(term, wanted, reply) for term in wanted.terms]
    if min(present)[0] < 1 and (whole := _whole(wanted, reply)):
        present = [whole] * len(present)
    elif not max(present)[0]:
        return _NOWHERE
    recall, heaviest, other_value = 0.0, 0.0, False
    places: Sequence[int] = ()
    weakest, telling = _Presence(2.0, "absent"), []
    for term, one in zip(wanted.terms, present, strict=True):
        recall += one.strength * term.weight
        if term.weight >= wanted.least:
            telling.append(one)
            other_value |= one.clash and not one.strength
            if one.strength and one.strength < weakest.strength:
                weakest = one
            if one.places and term.weight > heaviest:
                heaviest, places = term.weight, one.places
    other_name = wanted.is_name > 0 and _other_name(telling, reply)
    values = (
        round(recall / wanted.total, 2),
        round(min(1.0, weakest.strength), 2),
        times,
        float(other_value),
        float(other_name),
    )
    return Alignment(places, weakest.way, values)


def _whole(wanted: Wanted, reply: Reply) -> _Presence | None:
    """The words run together, abbreviated by their first letters, or an abbreviation written out."""
    if wanted.compact and f" {wanted.compact}" in reply.joined:
        return _Presence(0.95, "compound", reply.phrase(f" {wanted.compact}"))
    for short in wanted.initials:
        if f" {short} " in reply.joined and short not in reply.asked.stems:
            return _Presence(0.95, "abbreviation", reply.phrase(f" {short} "))
    if wanted.acronym and wanted.acronym in reply.initials:
        return _Presence(0.95, "abbreviation", (reply.initials.find(wanted.acronym) % len(reply.words),))
    return None


def _other_name(telling: list[_Presence], reply: Reply) -> bool:
    """Whether a missing word of a name has another capitalised word in its place: Neil Sedaka for Neil Young."""
    for one, beside, step in [pair for a, b in pairwise(telling) for pair in ((a, b, 1), (b, a, -1))]:
        if one.way != "word" or beside.strength >= 0.3:
            continue
        place = one.places[0] + step
        if not 0 <= place < len(reply.words) or reply.sentence_at(place) != reply.sentence_at(one.places[0]):
            continue
        # An initial is no other name, nor is what stands behind a comma or light words.
        if len(reply.words[place]) == 1 or reply.words[place] in LIGHT_WORDS:
            continue
        start, end = reply.span(*sorted((place, one.places[0])))
        written = reply.text[reply.span(place, place)[0]]
        if (
            written.isupper()
            and reply.stems[place] not in reply.asked.plain
            and _APART.isdisjoint(reply.text[start:end])
        ):
            return True
    return False


def _present(term: Term, wanted: Wanted, reply: Reply) -> _Presence:
    if term.date is not None:
        for date in reply.dates:
            if term.date.agrees(date):
                return _Presence(1.0, "date", (reply.word_at(date.start),))
            if date.agrees(term.date) and (date.day or date.month):
                return _Presence(0.6, "date", (reply.word_at(date.start),))
        return _ELSE if reply.dates else _ABSENT
    if term.code is not None:
        code = term.code.search(reply.text)
        if code is not None:
            return _Presence(1.0, "number", (reply.word_at(code.start()),))
        if term.quantity is None:
            return _ELSE
    if term.quantity is not None:
        return _amount(term, reply)
    places = reply.stem_places(term.stem)
    if places:
        known = [place for place in places if reply.words[place] == term.word]
        return _Presence(1.0, "word", known) if known else _Presence(0.95, "inflected", places)
    return _recognise(term, wanted, reply)


def _amount(term: Term, reply: Reply) -> _Presence:
    wanted = term.quantity
    assert wanted is not None
    same: dict[int, list[int]] = {1: [], 0: [], -1: []}
    clash = False
    for quantity in reply.quantities:
        fits = wanted.fits(quantity)
        if wanted.equals(quantity):
            same[fits].append(quantity.start)
        elif fits == 1:
            clash = True
            if wanted.rounds(quantity):
                same[0].append(quantity.start)
    places = [reply.word_at(start) for start in (same[1] or same[0] or same[-1])[:_MOST_PLACES]]
    if same[1] or same[0]:
        return _Presence(1.0, "number", places)
    return _Presence(0.3, "other unit", places, True) if places else _ELSE if clash else _ABSENT


@lru_cache(maxsize=1024)
def _beginning(letter: str) -> re.Pattern[str]:
    return re.compile(rf" ({re.escape(letter)}[^ ]{{3,}})")


def _recognise(term: Term, wanted: Wanted, reply: Reply) -> _Presence:
    """A word that is not there as such: abbreviated, run together or misspelt."""
    word, joined = term.word, reply.joined
    for other in EQUIVALENTS.get(word, ()):
        if f" {other} " in joined:
            return _Presence(0.95, "abbreviation", reply.phrase(f" {other} "))
    length = len(word)
    if not word.isascii() and word in joined:
        # Scripts without spaces.
        return _Presence(0.9, "compound", (joined.count(" ", 0, joined.find(word)) - 1,))
    if not _SHORTEST_FUZZY <= length <= _LONGEST_FUZZY or f" {word[0]}" not in joined:
        return _ABSENT
    # A word of the question is not a misspelling of the answer: "Monet" in the question is not Manet.
    asked = reply.asked.stems
    if length >= _SHORTEST_COMPOUND and word in reply.squeezed:
        pairs = (f" {word[:cut]} {word[cut:]} " for cut in range(2, length - 1))
        for form in (*pairs, *([f" {word}"] if length >= _SHORTEST_PREFIX else [])):
            places = reply.phrase(form)
            if places and reply.stems[places[0]] not in asked:
                return _Presence(0.9, "compound", places)
    if term.stem in asked:
        return _ABSENT
    begins = f" {word[:_SHORTEST_COMPOUND]}" in joined
    for cut in range(_SHORTEST_COMPOUND, length - 3) if begins else ():
        # "physio" for physiotherapy.
        if f" {word[:cut]} " in joined:
            return _Presence(0.8, "abbreviation", reply.phrase(f" {word[:cut]} "))
    cutoff = _SIMILAR if len(wanted.telling) > 1 else _SIMILAR_ALONE
    # People get the first letter right: "lease" is not a misspelt "please".
    alike = _beginning(word[0]).findall(joined)
    best = extractOne(word, alike, scorer=Levenshtein.normalized_similarity, score_cutoff=cutoff)
    if best is None or stem(best[0]) in asked or best[0] in EXCLUSIVE.get(word, ()):
        return _ABSENT
    return _Presence(1.0 - 1.6 * (1.0 - best[1]), "misspelt", reply.stem_places(stem(best[0])))
