"""The decision of `smart` for one keyword and one reply: a form that is certain, or the best candidate by one model."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from answerkey.match.align import align
from answerkey.match.model import DIRECTIONS, shipped_score, shipped_trees
from answerkey.match.reply import Reply
from answerkey.match.standard import EMPTY, Match, Probability, ReplyText
from answerkey.match.vocabulary import CUE_BITS, CUES, WORDS
from answerkey.match.wanted import Wanted, prepare_asked, prepare_wanted
from answerkey.text.keyword import Alternatives, Keyword, Threshold
from answerkey.text.normalise import fold_accents
from answerkey.text.numbers import parse_number, whole_number_end, with_commas

# A golden set's alternatives beyond this many are not looked at.
_MOST_WAYS = 100
_AS_IT_IS = "it stands in the reply as it is, and nothing there denies or doubts anything"
_CAUTIOUS = CUES["denies"] | CUES["doubts"] | CUES["contrasts"]
_CAUTIONS = frozenset(word.encode() for word, bits in CUE_BITS.items() if bits & _CAUTIOUS)
_PARTS = frozenset(":-–/")
_LETTERS_ONLY = bytes(byte if byte > 127 or chr(byte).isalpha() else 32 for byte in range(256))
_AGAINST = [(index, name) for index, (name, sign) in enumerate(DIRECTIONS.items()) if sign < 0]


class Candidate(NamedTuple):
    """One way to say a keyword at one place of a reply."""

    wanted: Wanted
    # From its first word to its last.
    first: int
    last: int
    # How it was recognised.
    way: str
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

    def match(self, said: ReplyText) -> tuple[Match, ...]:
        """One Match for each keyword, in order."""
        text, lowered = said.text, said.lowered
        plain = is_plain(text, lowered)
        reply = None
        matches = []
        for smart, others in self._keywords:
            match = EMPTY
            if smart is not None:
                certain = smart.certain(text, lowered) if plain else None
                if certain is None and reply is None:
                    reply = Reply(text, self._asked)
                match = certain or smart.match(reply)  # type: ignore[arg-type]
            for option in others:
                if match.found:
                    break
                match = said.look(option, True)
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
        ways = [way for option in options[:_MOST_WAYS] for way in prepare_wanted(option, asked)]
        self._wanted = list({way.phrase: way for way in ways if way.terms}.values())[:_MOST_WAYS]
        # Keywords without words: punctuation or articles, found only as they stand.
        self._odd = [_as_it_stands(way.text) for way in ways if not way.terms]
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
            for found in filter(None, [pattern.search(reply.text) for pattern in self._odd]):
                return Match(
                    True, "smart:literal", *found.span(), found[0], "it stands in the reply as it is"
                )
            why = "nothing of it is in the reply" if best is None else _because(best, highest)
            return Match(False, "none", why=why)
        if best is None:
            return Match(True, "smart:model", why=f"by its meaning as a whole ({highest:+.1f})")
        start, end = reply.span(best.first, best.last)
        return Match(True, f"smart:{best.way}", start, end, reply.text[start:end], _because(best, highest))

    def candidates(self, reply: Reply) -> Iterator[Candidate]:
        """Each way to say it at each place of the reply where it may stand, with its features."""
        for wanted in self._wanted:
            places, way, values = align(wanted, reply)
            more = wanted.size - 1 if way == "phrase" else 0
            for place in places:
                precision = min(1.0, round(2 * len(wanted.telling) * values[0] / reply.told, 1))
                features = (
                    *values,
                    precision,
                    reply.length,
                    self._choices,
                    wanted.is_value,
                    wanted.is_name,
                    wanted.echoes,
                    *_context(wanted, reply, place),
                )
                yield Candidate(wanted, place, place + more, way, features)


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


def _context(wanted: Wanted, reply: Reply, place: int) -> tuple[float, ...]:
    """What stands around the hit, from `denied` to `not_found`."""
    denies, around = reply.around(reply.sentence_at(place))
    denied = 0.0
    if denies and wanted.deniable:
        # The word that follows a denial tells whether it is one: "not only 42".
        for distance, (following, word) in enumerate(pairwise(["", *reversed(reply.before(place, 6))]), 1):
            if CUE_BITS.get(word, 0) & CUES["denies"] and following not in WORDS["not_denials"]:
                denied = round(max(0.0, 1.2 - 0.2 * distance), 1)
                break
    return (denied, *around)
