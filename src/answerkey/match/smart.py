"""The decision of `smart` for one keyword and one reply: every way to say it at every place, and the best by one model.

The model is small trees over named features, both data files that `tools/fit/fit_smart.py` fits on labelled replies. A tree is
a list of nodes [feature, threshold, left, right, value]; a leaf has feature -1. A score is the log-odds that a careful reader
finds the keyword said.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from rapidfuzz.distance import OSA, JaroWinkler
from rapidfuzz.process import extractOne

from answerkey.match.keywords import EMPTY, Match, Probability, ReplyText
from answerkey.match.phrasing import (
    EQUIVALENTS,
    EXCLUSIVE,
    FOLDER,
    WORDS,
    Abbreviations,
    Phrasing,
    QuestionWords,
    Term,
    Value,
    prepare_phrasings,
    prepare_question,
)
from answerkey.match.reading import Reply
from answerkey.match.slots import Slots, costless, polarity
from answerkey.match.values import ValueExpectation, asks_for_amount
from answerkey.model.question import (
    DateExpectation,
    Expectation,
    expected_options,
    expected_text,
)
from answerkey.text.dates import Date, is_same_date, stated_dates
from answerkey.text.normalise import Threshold, folded_words, stem
from answerkey.text.numbers import find_quantities
from answerkey.text.numerals import find_numerals, numeral_value
from answerkey.text.patterns import Trees, lazy

# A feature's name to its direction, in the order in which the model reads them; each is explained in the file.
DIRECTIONS: dict[str, int] = tomllib.loads(FOLDER.joinpath("features.toml").read_text("utf-8"))
Values = tuple[float, ...]
_INDEX = {name: index for index, name in enumerate(DIRECTIONS)}
_SAID, _OTHER_NAME = _INDEX["said"], _INDEX["other_name"]


class KeywordTrees(Trees, frozen=True):
    """A fitted model, with its thresholds."""

    # Log-odds above which a keyword counts as said; what each name promises is in docs/measurements/matching.md.
    thresholds: dict[Threshold, float] = msgspec.field(default_factory=dict)


@lru_cache(maxsize=1)
def shipped_model() -> KeywordTrees:
    """The model of this version."""
    return msgspec.json.decode(FOLDER.joinpath("smart.json").read_bytes(), type=KeywordTrees)


@lru_cache(maxsize=65536)
def score(values: Values) -> float:
    """The log-odds by it. Features are rounded, so that many replies of a log are equal to one that was met before."""
    return limit_other_name(values, shipped_model().score(values))


def limit_other_name(values: Values, log_odds: float) -> float:
    """Less than half of a name beside another one is another's name, however likely the model finds it."""
    return min(log_odds, -_JUST) if values[_OTHER_NAME] and values[0] < 0.5 else log_odds


# Just beyond the threshold `even`.
_JUST = 0.01
# What is there as a whole counts as said if nothing that has a name speaks against it, the log-odds by the words around it are
# not below the first, and those of the trees above the second.
_LEAST_SAID, _LEAST_SCORE = 0.0, -1.5

# A golden set's alternatives beyond this many are not looked at, nor further places of an amount.
_MOST_WAYS, _MOST_PLACES_SMART = 100, 4
# How alike a misspelt, shortened or lengthened word is at least; the model decides how much that counts.
_SIMILAR = 0.85
# How many letters of a misspelt name are wrong, missing, added or swapped at most.
_SLIPS = 1
# Read once for all keywords of a reply.
_dates = lru_cache(maxsize=2)(lambda text: list(stated_dates(text)))
_quantities = lru_cache(maxsize=2)(find_quantities)
# What speaks against a keyword, by feature.
_OBJECTIONS = {
    "other_value": "another figure or date is in its place",
    "other_name": "it is part of another name",
    "better_elsewhere": "another sentence is closer to the question",
    "not_found": "the reply says that something is not known",
}
_AGAINST = [(index, _OBJECTIONS[name]) for index, (name, sign) in enumerate(DIRECTIONS.items()) if sign < 0]
# What may speak against a keyword that is there as a whole, by the first feature that is outside its bounds.
_REASONS = [
    (_INDEX[name], low, high, reason)
    for name, low, high, reason in (
        ("asked", 0.0, 0.0, "asked back"),
        ("denied", 0.0, 0.0, "denied"),
        ("outdated", 0.0, 0.0, "outdated"),
        ("doubted", 0.0, 0.0, "in doubt"),
        ("not_found", 0.0, 0.0, "in doubt"),
        ("polarity", 0.0, 1.0, "answered the other way"),
        ("other_name", 0.0, 0.0, "of another entity"),
        ("better_elsewhere", 0.0, 0.0, "of another entity"),
        ("beside_name", 0.0, 0.0, "part of another name"),
        ("specific_elsewhere", -1.0, 0.0, "of another entity"),
        ("clause_lacks", 0.0, 0.0, "of another entity"),
        ("later_says", 0.0, 0.0, "of another entity"),
        ("earlier_says", 0.0, 0.0, "of another entity"),
        ("small_letter", 0.0, 0.0, "another word"),
        ("unit_asked", 0.0, 1.0, "of something else"),
        ("conditional", 0.0, 0.0, "conditional"),
        ("compared", 0.0, 0.0, "a limit or a comparison"),
        ("contrast_before", 0.0, 0.0, "contrasted"),
        ("contrast_behind", 0.0, 0.0, "contrasted"),
    )
]
# How a reply says that something is not known.
_UNSURE = lazy(
    r"\b(?:do(?:n['’]t| not)|can(?:['’]t|not| not)|couldn['’]t|could not) (?:know|say|tell)\b|\bnot (?:sure|certain|known)\b"
    r"|\bweiß (?:es |das )?(?:leider )?nicht\b|\bne (?:le )?sais pas\b|\bno (?:lo )?sé\b|\bnon (?:lo )?so\b|\bnão sei\b"
    r"|\bweet (?:het |dat )?niet\b",
    re.IGNORECASE,
)
# One reply's values and names, read once for all keywords.
_slots = lru_cache(maxsize=2)(Slots)
# The features of one way to say a keyword at one place of a reply; that way, the number of its first word, how it was recognised.
Candidate = tuple[Values, Phrasing, int, str]


class SmartKeyword:
    """One keyword prepared for all replies to one question: texts by meaning, numbers and dates by value, patterns unchanged."""

    def __init__(
        self,
        keyword: Expectation,
        question: str,
        threshold: Threshold = "even",
        probability: Probability | None = None,
        abbreviations: Abbreviations = (),
    ) -> None:
        options = expected_options(keyword)
        # A model that decides in place of this one is asked about texts only.
        self._values = [one for one in options if isinstance(one, ValueExpectation) and probability is None]
        self._unread = [one for one in options if expected_text(one) is None and one not in self._values]
        texts = [text.strip() for text in map(expected_text, options) if text and text.strip()]
        self._texts, self._question, self._probability = texts[:_MOST_WAYS], question, probability
        ways = [
            way
            for text in self._texts
            for way in prepare_phrasings(text, prepare_question(question), abbreviations)
        ]
        self._phrasings = list({way.phrase: way for way in ways}.values())[:_MOST_WAYS]
        # Punctuation is found unchanged, an article ("A", "The") as a word of its own and in its own case.
        odd = [rf"\b{one}\b" if one.isalnum() else re.escape(one) for one in texts if not folded_words(one)]
        self._odd = re.compile("|".join(odd)) if odd else None
        self._choices = round(math.log(max(1, len(texts))), 1)
        thresholds = shipped_model().thresholds
        self._threshold, self._surest = thresholds[threshold], max(thresholds.values())

    @property
    def has_value(self) -> bool:
        """Whether a way to say it has an amount, a date or a code."""
        return any(way.has_value for way in self._phrasings)

    def match(self, reply: Reply) -> Match:
        """Whether a careful reader finds the keyword in the reply."""
        match = self._by_model(reply) if self._texts or self._values else EMPTY
        for other in self._unread:
            if match.found:
                break
            match = reply.source.look(other, True, question=self._question)
        return match

    def _by_model(self, reply: Reply) -> Match:
        best, highest = None, -math.inf
        for candidate in self.candidates(reply):
            log_odds = accept_unopposed(candidate, score(candidate[0]), bool(self._question))
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
                return Match(True, "smart:literal", *odd.span(), odd[0], "it is in the reply unchanged")
            if best is None and not self._texts:
                # Why no value was found, or "none" for 0.
                return reply.source.look(self._values[-1], True, question=self._question)
            return Match(False, "none", why=_why_not(best, highest))
        if best is None or best[3] == "tone":
            return Match(True, "smart:model", why="by its meaning as a whole")
        _, phrasing, position, way = best
        size = phrasing.size if way in ("phrase", "value") else 1
        start, end = reply.span(position, position + size - 1)
        return Match(True, f"smart:{way}", start, end, reply.text[start:end], _because(best, highest))

    def candidates(self, reply: Reply) -> Iterator[Candidate]:
        """Each way to say it at each place of the reply where it may be, with its features.

        A keyword that says yes or no may be said by the reply as a whole.
        """
        if not reply.words:
            return
        slots = _slots(reply)
        for phrasing in self._phrasings:
            positions, way, values = _align(phrasing, reply)
            if positions and phrasing.is_number and asks_for_amount(self._question):
                # A number that is part of something else does not count, as for a typed number.
                is_other = reply.source.values.is_other
                positions = [at for at in positions if not is_other(reply.span(at, at), self._question)]
            if (
                way != "phrase"
                and polarity(phrasing.phrase.split(), reply.question_words) < 0
                and _only_unsure(reply.text)
            ):
                continue
            size = phrasing.size if way == "phrase" else 1
            for position in positions:
                is_value = phrasing.has_value and way in ("phrase", "number")
                place = reply.extent(position, size) if is_value else (position, size)
                around = reply.around(*place)
                others = slots.features(phrasing, *place)
                yield (*values, reply.length, self._choices, *around, *others), phrasing, position, way
            if way != "undenied" and not positions and _answers(phrasing, reply):
                nothing = (0.0, 0.0, 0.0, 0.0, reply.length, self._choices, *reply.nowhere)
                yield (*nothing, *slots.features(phrasing, None, 0)), phrasing, 0, "tone"
        for value in self._values:
            spans = reply.source.values.find(value, self._question)
            there = (1.0, float(min(3, len(spans))), 0.0, 0.0, reply.length, self._choices)
            for start, end in spans[:_MOST_PLACES_SMART]:
                written = _as_written(reply.text[start:end], reply.question_words)
                # The place of "none" for 0 says nothing.
                if written is not None:
                    # The words around a number begin behind its first one, as for numbers in texts; "pm" is part of a time.
                    is_named = isinstance(value, DateExpectation) and any(map(str.isalpha, written.text))
                    is_date = isinstance(written.terms[0].value, Date)
                    size = written.size if is_date or is_named else 1
                    position = reply.word_at(start)
                    place = reply.extent(position, size)
                    around = reply.around(*place)
                    others = slots.features(written, *place)
                    yield (*there, *around, *others), written, position, "value"


def _answers(phrasing: Phrasing, reply: Reply) -> bool:
    """Whether the reply as a whole may say a keyword that says yes or no; one that states a price says nothing of "free"."""
    words = phrasing.phrase.split()
    if not polarity(words, reply.question_words):
        return False
    if not costless(words) or not WORDS["costless"].isdisjoint(reply.words):
        return True
    prices = [one for one in _quantities(reply.text) if one.is_money]
    return not prices or any(0.0 in one.numbers for one in prices)


def _only_unsure(text: str) -> bool:
    """Whether a reply denies nothing but that something is known: "I don't know" does not say no."""
    rest = _UNSURE.sub(" ", text)
    return rest != text and WORDS["denies"].isdisjoint(folded_words(rest))


@lru_cache(maxsize=1024)
def _as_written(text: str, question_words: QuestionWords) -> Phrasing | None:
    """A value as the reply writes it; None if it has neither digits nor the name of a number."""
    numeral = numeral_value(text)
    phrasing = Phrasing(text if numeral is None else str(numeral), question_words)
    return phrasing if phrasing.has_value or next(stated_dates(text), None) else None


# What is prepared for a question serves all of its replies; more would fill the memory with a large golden set.
_prepare = lru_cache(maxsize=16384)(SmartKeyword)


def find_smart(
    keywords: Sequence[Expectation],
    source: ReplyText,
    question: str,
    threshold: Threshold,
    probability: Probability | None,
    abbreviations: Abbreviations = (),
) -> tuple[Match, ...]:
    """One Match for each keyword, in order."""
    reply = Reply(source, prepare_question(question))
    how = (question, threshold, probability, abbreviations)
    return tuple([_prepare(keyword, *how).match(reply) for keyword in keywords])


def _because(best: Candidate, log_odds: float) -> str:
    """The decision in words: how much of which way to say it is there, what speaks against it, and how likely it is said."""
    values, text = best[0], best[1].text
    share = "all" if values[0] >= 1 else f"{values[0]:.0%}"
    shown = text if len(text) <= 60 else text[:57] + "…"
    against = "".join([f"; {objection}" for index, objection in _AGAINST if values[index] > 0])
    chance = 1 / (1 + math.exp(-max(-30.0, min(30.0, log_odds))))
    return f"{share} of “{shown}” is in the reply{against}; {chance:.0%} likely to be said"


def _why_not(best: Candidate | None, log_odds: float) -> str:
    """The reason of a rejection; of a keyword that is there as a whole, what speaks against it comes first."""
    if best is None:
        return "nothing of it is in the reply"
    if best[3] == "tone":
        return "neither it nor its meaning is in the reply"
    # Where no cue has a name, the words around it made the model doubt it.
    reason = f"{_objection(best) or 'in doubt'}: " if _is_whole(best) else ""
    return reason + _because(best, log_odds)


def _is_whole(candidate: Candidate) -> bool:
    """Whether all of it is in the reply word for word or by value."""
    return candidate[0][0] >= 1 and candidate[3] in ("phrase", "number", "value", "word")


def accept_unopposed(candidate: Candidate, log_odds: float, is_asked: bool = True) -> float:
    """At least just above the threshold if all of it is there and nothing speaks against it."""
    if log_odds >= _JUST or not _is_whole(candidate) or _objection(candidate):
        return log_odds
    # Without a question only what has a name speaks against a value.
    is_likely = log_odds > _LEAST_SCORE and candidate[0][_SAID] >= _LEAST_SAID
    return _JUST if is_likely or (candidate[3] == "value" and not is_asked) else log_odds


def _objection(candidate: Candidate) -> str:
    """Why the reply may not say what it contains, or nothing."""
    values = candidate[0]
    for index, low, high, reason in _REASONS:
        if not low <= values[index] <= high:
            return reason
    # The lines of a list may all be far from the question's words: none of them is a better answer.
    if values[_INDEX["bound"]] <= 0 and values[_INDEX["nearness"]] > 0.1:
        return "another one is nearer to the question's words"
    # "Breakfast is included" answers whether it is included.
    if values[_INDEX["in_question"]] >= 1 and not values[_INDEX["yes_or_no"]]:
        return "repeated from the question"
    return ""


class _Presence(NamedTuple):
    """One term in one reply: how surely it is there, from 0 to 1, how it was recognised, and its first places."""

    strength: float
    way: str
    positions: list[int]


_ABSENT = _Presence(0.0, "absent", [])
# The reply has another value in its place.
_OTHER = _Presence(0.0, "other", [])


def _align(phrasing: Phrasing, reply: Reply) -> tuple[list[int], str, tuple[float, ...]]:
    """The places where it may be, how its weakest term was recognised, and the features from `recall` to `other_name`."""
    in_a_row = reply.positions(phrasing.phrase)
    times = float(min(3, len(in_a_row)))
    # An amount with a sign or unit is found by its value: they are not in the folded words.
    if in_a_row and not phrasing.signed:
        return in_a_row, "phrase", (1.0, times, 0.0, 0.0)
    present = [_present(term, reply) for term in phrasing.terms]
    for at, (term, one) in enumerate(zip(phrasing.terms, present, strict=True)):
        if term.word in WORDS["denies"] and one.positions:
            denials = _relevant_denials(term, one, phrasing, reply)
            if not denials:
                return [], "undenied", ()
            present[at] = one._replace(positions=denials)
    if min(present)[0] < 1 and (short := _short(phrasing, reply)):
        return short, "abbreviation", (0.95, times, 0.0, 0.0)
    there = [(term.weight, one) for term, one in zip(phrasing.terms, present, strict=True) if one.strength]
    if not there:
        return [], "absent", ()
    recall = sum([weight * one.strength for weight, one in there]) / phrasing.total
    other_value = float(_OTHER in present)
    other_name = float(phrasing.other_name != "" and re.search(phrasing.other_name, reply.text) is not None)
    values = (round(recall, 2), times, other_value, other_name)
    return max(there)[1].positions, min(one for _, one in there).way, values


def _relevant_denials(term: Term, presence: _Presence, phrasing: Phrasing, reply: Reply) -> list[int]:
    """The places of a denial of what the keyword denies: the "No" of "No, you have to pay" is not that of "no charge"."""
    # "Not allowed" may be said of what the question asks for in other words; "no charge" is said of a charge.
    denied = frozenset(
        stem(one.word)
        for one in phrasing.terms
        if one.word and one.word not in WORDS["denies"] and term.word in WORDS["determiners"]
    )
    question = reply.question_words
    answers = question.yes_or_no > 0 and polarity(phrasing.phrase.split(), question) < 0
    return [at for at in presence.positions if reply.denial_counts(at, denied, answers)]


def _short(phrasing: Phrasing, reply: Reply) -> list[int]:
    """Where the words are run together or abbreviated by their first letters, or an abbreviation is written out."""
    for short in phrasing.short:
        if short in reply.joined:
            return reply.positions(short)
    if phrasing.acronym and phrasing.acronym in reply.initials:
        return [reply.initials.find(phrasing.acronym) % len(reply.words)]
    return []


def _present(term: Term, reply: Reply) -> _Presence:
    if term.value is not None:
        return _value(term.value, reply)
    positions = reply.positions(f" {stem(term.word)} ", stemmed=True)
    if positions:
        known = [position for position in positions if reply.words[position] == term.word]
        return _Presence(1.0, "word", known) if known else _Presence(0.95, "inflected", positions)
    return _recognise(term, reply)


def _value(value: Value, reply: Reply) -> _Presence:
    """A code as it is, a date or an amount by its worth."""
    if isinstance(value, re.Pattern):
        code = value.search(reply.text)
        return _Presence(1.0, "number", [reply.word_at(code.start())]) if code else _OTHER
    if isinstance(value, Date):
        dates = _dates(reply.text)
        clash = len(dates) > 0
        same = [one.start for one in dates if is_same_date(value, one)]
    else:
        fitting = [one for one in _quantities(reply.text) if value.fits(one) >= 0]
        same = [one.start for one in fitting if value.equals(one) or value.rounds(one)]
        clash = any(value.fits(one) > 0 for one in fitting)
        if not same and not value.dimension:
            numerals = find_numerals(reply.text)
            same = [start for number, start, _ in numerals if number in value.numbers]
    if same:
        return _Presence(1.0, "number", [reply.word_at(start) for start in same[:_MOST_PLACES_SMART]])
    return _OTHER if clash else _ABSENT


def _recognise(term: Term, reply: Reply) -> _Presence:
    """A word that is not there as such: abbreviated, in a script without spaces, or misspelt."""
    word, joined, question_words = term.word, reply.joined, reply.question_words.stems
    for other in EQUIVALENTS.get(word, ()):
        if f" {other} " in joined:
            return _Presence(0.95, "abbreviation", reply.positions(f" {other} "))
    if not word.isascii() and word in joined:
        return _Presence(0.9, "compound", [joined.count(" ", 0, joined.find(word)) - 1])
    # A word of the question is not a misspelling of the answer: "Monet" in the question is not Manet.
    if stem(word) in question_words or not 4 <= len(word) <= 60:
        return _ABSENT
    # People get the first letter right: "lease" is not a misspelt "please"; "he" is not cut off "heat".
    alike = re.findall(rf" ({re.escape(word[0])}[^ ]{{2,}})", joined)
    best = extractOne(word, alike, scorer=JaroWinkler.normalized_similarity, score_cutoff=_SIMILAR)
    if best is None or stem(best[0]) in question_words or best[0] in EXCLUSIVE.get(word, "").split():
        return _ABSENT
    # A name that differs in more than a slip is another name: Brandsma is not Brandt.
    if term.is_name and OSA.distance(word, best[0], score_cutoff=_SLIPS) > _SLIPS:
        return _ABSENT
    return _Presence(best[1], "misspelt", reply.positions(f" {best[0]} "))
