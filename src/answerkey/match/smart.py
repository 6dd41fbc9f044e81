"""The decision of `smart` for one keyword and one reply: a form that is certain, or the best candidate by one model."""

import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from answerkey.match.align import Presence, align
from answerkey.match.found import Match, Probability
from answerkey.match.model import DIRECTIONS, shipped_score, shipped_trees
from answerkey.match.reply import Reply
from answerkey.match.vocabulary import CUE_BITS, CUES, LIGHT_WORDS, WORDS
from answerkey.match.wanted import Wanted, prepare_asked, prepare_wanted
from answerkey.text.keyword import Alternatives, Keyword, Threshold
from answerkey.text.normalise import fold_accents
from answerkey.text.numbers import parse_number, whole_number_end, with_commas

__all__ = ["Candidate", "SmartKeyword", "SmartKeywords", "is_plain"]

# A golden set's alternatives beyond this many are not looked at, nor are a way's further places.
_MOST_WAYS, _MOST_PLACES = 100, 4
# How surely a word is recognised by each way.
_WAYS = {
    "initial": 0.3, "other unit": 0.3, "misspelt": 0.5, "compound": 0.7, "abbreviation": 0.8, "inflected": 0.9,
    "date": 1.0, "number": 1.0, "word": 1.0, "absent": 0.0,
}  # fmt: skip
_DENIES = CUES["denies"]
_EMPTY = Match(False, "none", why="empty keyword")
_AS_IT_IS = "it stands in the reply as it is, and nothing there denies or doubts anything"
_CAUTIOUS = CUES["denies"] | CUES["hedges"] | CUES["contrasts"] | CUES["outdated"]
_CAUTIONS = frozenset(word.encode() for word, bits in CUE_BITS.items() if bits & _CAUTIOUS)
_PARTS = frozenset(":-–/")
_LETTERS_ONLY = bytes(byte if byte > 127 or chr(byte).isalpha() else 32 for byte in range(256))
_AGAINST = [(index, name) for index, (name, sign) in enumerate(DIRECTIONS.items()) if sign < 0]


class Candidate(NamedTuple):
    """One way to say a keyword at one place of a reply."""

    wanted: Wanted
    # From its first word to its last; -1 where nothing of it is there.
    first: int
    last: int
    # Of each term; empty where its words stand there in a row.
    present: list[Presence]
    # Its features, in the order of `DIRECTIONS`.
    values: tuple[float, ...]


class SmartKeywords:
    """The keywords of a question: their strings judged by meaning, numbers and patterns as in `standard`."""

    def __init__(
        self,
        keywords: tuple[Keyword, ...],
        question: str,
        threshold: Threshold,
        probability: Probability | None,
    ) -> None:
        self._asked = prepare_asked(question)
        self._keywords: list[tuple[SmartKeyword | None, list[Keyword]]] = []
        for keyword in keywords:
            options = keyword.options if isinstance(keyword, Alternatives) else (keyword,)
            texts = tuple(option for option in options if isinstance(option, str) and option.strip())
            others: list[Keyword] = [option for option in options if not isinstance(option, str)]
            smart = SmartKeyword(texts, question, threshold, probability) if texts else None
            self._keywords.append((smart, others))

    def match(self, text: str, match_other: Callable[[Keyword], Match]) -> tuple[Match, ...]:
        """One Match for each keyword, in order."""
        lowered = text.lower()
        plain = is_plain(text, lowered)
        reply = None
        matches = []
        for smart, others in self._keywords:
            match = _EMPTY
            if smart is not None:
                certain = smart.certain(text, lowered) if plain else None
                if certain is None and reply is None:
                    reply = Reply(text, self._asked)
                match = certain or smart.match(reply)  # type: ignore[arg-type]
            for option in others:
                if match.found:
                    break
                match = match_other(option)
            matches.append(match)
        return tuple(matches)


class SmartKeyword:
    """One keyword with its alternatives, prepared once for all replies to one question."""

    def __init__(
        self,
        options: tuple[str, ...],
        question: str,
        threshold: Threshold = "even",
        probability: Probability | None = None,
    ) -> None:
        self._options, self._question, self._probability = options, question, probability
        asked = prepare_asked(question)
        ways: dict[str, Wanted] = {}
        # Keywords without words: punctuation or articles, found only as they stand.
        self._odd: list[re.Pattern[str]] = []
        for option in options[:_MOST_WAYS]:
            for wanted in prepare_wanted(option, asked):
                if wanted.terms:
                    ways.setdefault(wanted.phrase, wanted)
                else:
                    self._odd.append(_as_it_stands(option))
        self._wanted = list(ways.values())[:_MOST_WAYS]
        self._choices = round(math.log(max(1, len(options))), 1)
        thresholds = shipped_trees().thresholds
        self._threshold, self._surest = thresholds[threshold], max(thresholds.values())
        self._score = shipped_score()
        # What is certain where it stands in a plain reply; who wants to be strict or has a model of language asks that.
        by_model = threshold == "strict" or probability is not None
        self._forms = () if by_model else tuple(form for option in options for form in _forms(option))

    def certain(self, text: str, lowered: str) -> Match | None:
        """The keyword word for word, or a number as it is mostly written, in a plain reply."""
        for form, is_number in self._forms:
            at = lowered.find(form)
            while at >= 0:
                end = at + len(form)
                if is_number:
                    # Of a range, a time or a code it would be a part.
                    end = 0 if text[end : end + 1] in _PARTS else whole_number_end(text, at, end)
                elif lowered[at - 1 : at].isalnum() or lowered[end : end + 1].isalnum():
                    end = 0
                if end:
                    return Match(True, "smart:phrase", at, end, text[at:end], _AS_IT_IS)
                at = lowered.find(form, at + 1)
        return None

    def match(self, reply: Reply) -> Match:
        """Whether a careful reader finds the keyword in the reply."""
        best, highest = None, -math.inf
        for candidate in self.candidates(reply):
            score = self._score(candidate.values)
            if score > highest:
                best, highest = candidate, score
                if score > self._surest:
                    break
        if self._probability is not None and reply.words:
            chance = max(self._probability(self._question, option, reply.text) for option in self._options)
            highest = math.log(max(chance, 1e-9) / max(1.0 - chance, 1e-9))
        if highest <= self._threshold:
            for pattern in self._odd:
                found = pattern.search(reply.text)
                if found:
                    return Match(
                        True, "smart:literal", *found.span(), found[0], "it stands in the reply as it is"
                    )
            if best is None or best.first < 0:
                return Match(False, "none", why="nothing of it is in the reply")
            return Match(False, "none", why=_because(best, highest))
        if best is None or best.first < 0:
            return Match(True, "smart:model", why=f"by its meaning as a whole ({highest:+.1f})")
        start, end = reply.span(best.first, best.last)
        ways = [one.way for one in best.present if one.strength]
        rule = min(ways, key=_WAYS.__getitem__) if ways else "phrase"
        return Match(True, f"smart:{rule}", start, end, reply.text[start:end], _because(best, highest))

    def candidates(self, reply: Reply) -> Iterator[Candidate]:
        """Each way to say it at each place of the reply where it may stand."""
        if not reply.words:
            return
        joined = reply.joined
        for wanted in self._wanted:
            # A figure is found by its value: its sign and its unit are not in the folded words.
            at = -1 if wanted.figure else joined.find(wanted.phrase)
            if at < 0:
                present = align(wanted, reply)
                for place in _places(wanted, reply, present):
                    values = _features(wanted, reply, present, place, place, self._choices)
                    yield Candidate(wanted, place, place, present, values)
            for _ in range(_MOST_PLACES):
                if at < 0:
                    break
                first = joined.count(" ", 0, at)
                last = first + wanted.size - 1
                values = _features(wanted, reply, [], first, last, self._choices)
                yield Candidate(wanted, first, last, [], values)
                at = joined.find(wanted.phrase, at + 1)


def is_plain(text: str, lowered: str) -> bool:
    """Whether a reply asks nothing, and no word of it denies, doubts, sets apart or tells of the past."""
    if "?" in text or len(lowered) != len(text):
        return False
    spelled = lowered if lowered.isascii() else fold_accents(lowered)
    words = spelled.encode("utf-8", "replace").translate(_LETTERS_ONLY, b"'")
    return _CAUTIONS.isdisjoint(words.split())


def _forms(option: str) -> Iterator[tuple[str, bool]]:
    """How a keyword is certain, in small letters, and whether that is a number."""
    form = option.strip().lower()
    worth = parse_number(form) if form[:1].isdigit() and form[-1].isdigit() else None
    if worth is not None:
        yield from ((one, True) for one in {form, with_commas(worth)})
    elif form[:1].isalnum() and form[-1:].isalnum():
        yield form, form[-1].isdigit()


def _as_it_stands(option: str) -> re.Pattern[str]:
    """Punctuation anywhere; an article ("A", "The") as a word of its own and in its own case."""
    text = re.escape(option.strip())
    return re.compile(rf"(?<!\w){text}(?!\w)" if any(map(str.isalnum, option)) else text)


def _because(best: Candidate, score: float) -> str:
    """The decision in words: how likely, for which way to say it, how much of it is there and what speaks against it."""
    name = best.wanted.text if len(best.wanted.text) <= 60 else best.wanted.text[:57] + "…"
    values = best.values
    against = "".join([f", {name} {values[index]:g}" for index, name in _AGAINST if values[index]])
    return f"“{name}” {score:+.1f}: recall {values[0]:g}{against}"


def _places(wanted: Wanted, reply: Reply, present: list[Presence]) -> list[int]:
    """Those of its figure; else that of the heaviest term in the sentence that has most of them; -1 for none."""
    if wanted.figure:
        places = next(p.places for t, p in zip(wanted.terms, present, strict=True) if t is wanted.telling[0])
        return list(places[:_MOST_PLACES]) or [-1]
    weights: dict[int, float] = {}
    for term, one in zip(wanted.terms, present, strict=True):
        for place in one.places[:_MOST_PLACES]:
            weights[place] = max(term.weight, weights.get(place, 0.0))
    sentences: dict[int, float] = {}
    for place, weight in weights.items():
        sentence = reply.sentence_at(place)
        sentences[sentence] = sentences.get(sentence, 0.0) + weight
    best = max(sentences, key=sentences.__getitem__, default=-1)
    inside = [place for place in weights if reply.sentence_at(place) == best]
    return [max(inside, key=weights.__getitem__, default=-1)]


def _features(
    wanted: Wanted, reply: Reply, present: list[Presence], first: int, last: int, choices: float
) -> tuple[float, ...]:
    """The features in the order of `DIRECTIONS`, rounded so that equal cases are equal."""
    sentence = reply.sentence_at(first) if first >= 0 else 0
    recall, here, way, other_value = 1.0, 1.0, 1.0, False
    if present:
        start, end = reply.sentence_range(sentence)
        recall = here = 0.0
        found = []
        for term, one in zip(wanted.terms, present, strict=True):
            if one.strength:
                share = one.strength * term.weight
                recall += share
                if any(start <= place < end for place in one.places):
                    here += share
            if term.weight >= wanted.least:
                found += [_WAYS[one.way]] if one.strength else []
                other_value |= one.clash and one.way == "absent"
        recall, here = round(recall / wanted.total, 2), round(here / wanted.total, 1)
        way = min(found, default=0.0)
    return (
        recall,
        here,
        way,
        float(other_value),
        _other_name(wanted, reply, present) if present and wanted.is_name else 0.0,
        min(1.0, round(2 * len(wanted.telling) * recall / reply.told, 1)),
        reply.length,
        choices,
        wanted.is_value,
        wanted.is_name,
        wanted.echoes,
        *(_context(wanted, reply, first, sentence) if first >= 0 else _NO_CONTEXT),
    )


_NO_CONTEXT = (0.0,) * 10


def _other_name(wanted: Wanted, reply: Reply, present: list[Presence]) -> float:
    """Whether a missing word of a name has another capitalised word in its place: Neil Sedaka for Neil Young."""
    known = [one for term, one in zip(wanted.terms, present, strict=True) if term.weight >= wanted.least]
    for one, beside, step in [pair for a, b in pairwise(known) for pair in ((a, b, 1), (b, a, -1))]:
        if one.way != "word" or beside.strength >= 0.3:
            continue
        place = one.places[0] + step
        if not 0 <= place < len(reply.words) or reply.clause_at(place) != reply.clause_at(one.places[0]):
            continue
        plain = reply.stems[place] in reply.asked.plain or reply.words[place] in LIGHT_WORDS
        if not plain and reply.text[reply.span(place, place)[0]].isupper():
            return 1.0
    return 0.0


def _context(wanted: Wanted, reply: Reply, first: int, sentence: int) -> tuple[float, ...]:
    """What stands around the hit, from `denied` to `not_found`."""
    clause = reply.clause_at(first)
    denied = 0.0
    if reply.cues[sentence] & _DENIES and wanted.deniable:
        start = reply.sentences[sentence]
        # The word that follows a denial tells whether it is one: "not only 42".
        pairs = list(pairwise([*reply.words[max(start, first - 40) : first], ""]))
        denials = [
            len(pairs) - index
            for index, (word, following) in enumerate(pairs)
            if CUE_BITS.get(word, 0) & _DENIES and following not in WORDS["not_denials"]
        ]
        if denials:
            denied = round(max(0.0, 1.2 - 0.2 * denials[-1]), 1)
    return (denied, *reply.around(clause, sentence))
