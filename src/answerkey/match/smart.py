"""The decision of `smart` for one keyword and one reply: every way to say it at every place, and the best by one model."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import JaroWinkler
from rapidfuzz.process import extractOne

from answerkey.match.keywords import EMPTY, Match, Probability, ReplyText
from answerkey.match.model import DIRECTIONS, EQUIVALENTS, EXCLUSIVE, Values, score, shipped_model
from answerkey.match.reply import Reply
from answerkey.match.wanted import Term, Value, Wanted, prepare_asked, prepare_wanted
from answerkey.text.dates import Date, find_dates
from answerkey.text.keyword import Alternatives, Keyword, Threshold
from answerkey.text.normalise import folded_words, stem
from answerkey.text.quantities import find_quantities

# A golden set's alternatives beyond this many are not looked at, nor further places of an amount.
_MOST_WAYS, _MOST_PLACES = 100, 4
# How alike a misspelt, shortened or lengthened word is at least; how much that tells the model decides.
_SIMILAR = 0.85
# Read once for all keywords of a reply.
_dates = lru_cache(maxsize=2)(lambda text: list(find_dates(text)))
_quantities = lru_cache(maxsize=2)(find_quantities)
_AGAINST = [(index, name) for index, (name, sign) in enumerate(DIRECTIONS.items()) if sign < 0]
# The features of one way to say a keyword at one place of a reply; that way, the number of its first word, how it was recognised.
Candidate = tuple[Values, Wanted, int, str]


class SmartKeyword:
    """One keyword prepared for all replies to one question: texts by meaning, numbers and patterns as in `standard`."""

    def __init__(
        self,
        keyword: Keyword,
        question: str,
        threshold: Threshold = "even",
        probability: Probability | None = None,
    ) -> None:
        options = keyword.options if isinstance(keyword, Alternatives) else (keyword,)
        self._others = [one for one in options if not isinstance(one, str)]
        texts = [one.strip() for one in options if isinstance(one, str) and one.strip()]
        self._texts, self._question, self._probability = texts[:_MOST_WAYS], question, probability
        ways = [way for text in self._texts for way in prepare_wanted(text, prepare_asked(question))]
        self._wanted = list({way.phrase: way for way in ways}.values())[:_MOST_WAYS]
        # Punctuation is found as it stands, an article ("A", "The") as a word of its own and in its own case.
        odd = [rf"\b{one}\b" if one.isalnum() else re.escape(one) for one in texts if not folded_words(one)]
        self._odd = re.compile("|".join(odd)) if odd else None
        self._choices = round(math.log(max(1, len(texts))), 1)
        thresholds = shipped_model().thresholds
        self._threshold, self._surest = thresholds[threshold], max(thresholds.values())

    def match(self, reply: Reply) -> Match:
        """Whether a careful reader finds the keyword in the reply."""
        match = self._by_model(reply) if self._texts else EMPTY
        for other in self._others:
            if match.found:
                break
            match = reply.said.look(other, True)
        return match

    def _by_model(self, reply: Reply) -> Match:
        best, highest = None, -math.inf
        for candidate in self.candidates(reply):
            log_odds = score(candidate[0])
            if log_odds > highest:
                best, highest = candidate, log_odds
                if log_odds > self._surest:
                    break
        if self._probability is not None and reply.words:
            chance = max(self._probability(self._question, text, reply.text) for text in self._texts)
            highest = math.log(max(chance, 1e-9) / max(1.0 - chance, 1e-9))
        if highest <= self._threshold:
            odd = self._odd.search(reply.text) if self._odd else None
            if odd:
                return Match(True, "smart:literal", *odd.span(), odd[0], "it stands in the reply as it is")
            return Match(
                False, "none", why=_because(best, highest) if best else "nothing of it is in the reply"
            )
        if best is None:
            return Match(True, "smart:model", why=f"by its meaning as a whole ({highest:+.1f})")
        _, wanted, place, way = best
        start, end = reply.span(place, place + (wanted.size - 1 if way == "phrase" else 0))
        return Match(True, f"smart:{way}", start, end, reply.text[start:end], _because(best, highest))

    def candidates(self, reply: Reply) -> Iterator[Candidate]:
        """Each way to say it at each place of the reply where it may stand, with its features."""
        for wanted in self._wanted if reply.words else ():
            places, way, values = _align(wanted, reply)
            size = wanted.size if way == "phrase" else 1
            for place in places:
                yield (*values, reply.length, self._choices, *reply.around(place, size)), wanted, place, way


# What is prepared for a question serves all of its replies; more would fill the memory with a large golden set.
_prepare = lru_cache(maxsize=16384)(SmartKeyword)


def find_smart(
    keywords: Sequence[Keyword], said: ReplyText, question: str, *how: Threshold | Probability | None
) -> tuple[Match, ...]:
    """One Match for each keyword, in order."""
    reply = Reply(said, prepare_asked(question))
    return tuple([_prepare(keyword, question, *how).match(reply) for keyword in keywords])


def _because(best: Candidate, log_odds: float) -> str:
    """The decision in words: how likely, for which way to say it, how much of it is there and what speaks against it."""
    values, text = best[0], best[1].text
    against = "".join([f", {name} {values[index]:g}" for index, name in _AGAINST if values[index]])
    return f"“{text if len(text) <= 60 else text[:57] + '…'}” {log_odds:+.1f}: recall {values[0]:g}{against}"


class _Presence(NamedTuple):
    """One term in one reply: how surely it is there, from 0 to 1, how it was recognised, and its first places."""

    strength: float
    way: str
    places: list[int]


_ABSENT = _Presence(0.0, "absent", [])
# The reply has another value in its place.
_OTHER = _Presence(0.0, "other", [])


def _align(wanted: Wanted, reply: Reply) -> tuple[list[int], str, tuple[float, ...]]:
    """The places where it may stand, how its weakest term was recognised, and the features from `recall` to `other_name`."""
    in_a_row = reply.places(wanted.phrase)
    times = float(min(3, len(in_a_row)))
    # An amount with a sign or unit is found by its value: they are not in the folded words.
    if in_a_row and not wanted.signed:
        return in_a_row, "phrase", (1.0, times, 0.0, 0.0)
    present = [_present(term, reply) for term in wanted.terms]
    if min(present)[0] < 1 and (short := _short(wanted, reply)):
        return short, "abbreviation", (0.95, times, 0.0, 0.0)
    there = [(term.weight, one) for term, one in zip(wanted.terms, present, strict=True) if one.strength]
    if not there:
        return [], "absent", ()
    recall = sum([weight * one.strength for weight, one in there]) / wanted.total
    other_value = float(_OTHER in present)
    other_name = float(wanted.other_name != "" and re.search(wanted.other_name, reply.text) is not None)
    values = (round(recall, 2), times, other_value, other_name)
    return max(there)[1].places, min(one for _, one in there).way, values


def _short(wanted: Wanted, reply: Reply) -> list[int]:
    """Where the words stand run together or abbreviated by their first letters, or an abbreviation is written out."""
    for short in wanted.short:
        if short in reply.joined:
            return reply.places(short)
    if wanted.acronym and wanted.acronym in reply.initials:
        return [reply.initials.find(wanted.acronym) % len(reply.words)]
    return []


def _present(term: Term, reply: Reply) -> _Presence:
    if term.value is not None:
        return _value(term.value, reply)
    places = reply.places(f" {stem(term.word)} ", stemmed=True)
    if places:
        known = [place for place in places if reply.words[place] == term.word]
        return _Presence(1.0, "word", known) if known else _Presence(0.95, "inflected", places)
    return _recognise(term, reply)


def _value(value: Value, reply: Reply) -> _Presence:
    """A code as it is, a date or an amount by its worth."""
    if isinstance(value, re.Pattern):
        code = value.search(reply.text)
        return _Presence(1.0, "number", [reply.word_at(code.start())]) if code else _OTHER
    if isinstance(value, Date):
        dates = _dates(reply.text)
        clash = len(dates) > 0
        # The year may be left unsaid.
        same = [one.start for one in dates if value.agrees(one) or (one.day and one.agrees(value))]
    else:
        fitting = [one for one in _quantities(reply.text) if value.fits(one) >= 0]
        same = [one.start for one in fitting if value.equals(one) or value.rounds(one)]
        clash = any(value.fits(one) > 0 for one in fitting)
    if same:
        return _Presence(1.0, "number", [reply.word_at(start) for start in same[:_MOST_PLACES]])
    return _OTHER if clash else _ABSENT


def _recognise(term: Term, reply: Reply) -> _Presence:
    """A word that is not there as such: abbreviated, in a script without spaces, or misspelt."""
    word, joined, asked = term.word, reply.joined, reply.asked.stems
    for other in EQUIVALENTS.get(word, ()):
        if f" {other} " in joined:
            return _Presence(0.95, "abbreviation", reply.places(f" {other} "))
    if not word.isascii() and word in joined:
        return _Presence(0.9, "compound", [joined.count(" ", 0, joined.find(word)) - 1])
    # A word of the question is not a misspelling of the answer: "Monet" in the question is not Manet.
    if stem(word) in asked or not 4 <= len(word) <= 60:
        return _ABSENT
    # People get the first letter right: "lease" is not a misspelt "please".
    alike = re.findall(rf" ({re.escape(word[0])}[^ ]+)", joined)
    best = extractOne(word, alike, scorer=JaroWinkler.normalized_similarity, score_cutoff=_SIMILAR)
    if best is None or stem(best[0]) in asked or best[0] in EXCLUSIVE.get(word, "").split():
        return _ABSENT
    return _Presence(best[1], "misspelt", reply.places(f" {best[0]} "))
