"""What `smart` was given: word lists, names of features, and small trees over them, all of them data files.

`tools/fit/fit_smart.py` fits the trees on labelled replies. A tree is a list of nodes [feature, threshold, left, right,
value]; a leaf has feature -1. A score is the log-odds that a careful reader finds the keyword said.
"""

import gzip
import math
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from itertools import accumulate, repeat
from typing import NamedTuple

import msgspec
from rapidfuzz.distance import JaroWinkler
from rapidfuzz.process import extractOne

from answerkey.match.keywords import EMPTY, Match, Probability, ReplyText
from answerkey.model.question import Expectation, expected_options, expected_text
from answerkey.text.dates import Date, find_dates, find_short_dates, is_same_date, parse_date
from answerkey.text.normalise import (
    FUNCTION_WORDS,
    Remembered,
    Threshold,
    folded_chunk,
    folded_text,
    folded_words,
    stem,
)
from answerkey.text.numbers import Quantity, find_quantities

_FOLDER = resources.files("answerkey.match")
_READ = tomllib.loads(_FOLDER.joinpath("vocabulary.toml").read_text("utf-8"))
WORDS = {name: frozenset(words.split()) for name, words in _READ["words"].items()}
# An abbreviation to its possible meanings, and back.
EQUIVALENTS: dict[str, list[str]] = {}
for _one, *_others in map(str.split, _READ["lists"]["abbreviations"].strip().splitlines()):
    for _other in _others:
        EQUIVALENTS.setdefault(_one, []).append(_other)
        EQUIVALENTS.setdefault(_other, []).append(_one)
# Pairs of an abbreviation and its meaning.
Abbreviations = tuple[tuple[str, str], ...]


def read_abbreviations(pairs: Iterable[tuple[str, str]]) -> Abbreviations:
    """The pairs in the form in which they are compared: " po " and " purchase order "."""
    return tuple((folded_text(short), folded_text(meaning)) for short, meaning in pairs)


_ABBREVIATIONS = read_abbreviations(
    (short, meaning)
    for short, _, meaning in (
        line.partition(" = ") for line in _READ["lists"]["phrases"].strip().splitlines()
    )
)
# A word to those that it is never a misspelling of: "employer" and "employee", "Tuesday" and "Thursday".
EXCLUSIVE = {word: line for line in _READ["lists"]["exclusive"].splitlines() for word in line.split()}
# A feature's name to its direction, in the order in which the model reads them; each is explained in the file.
DIRECTIONS: dict[str, int] = tomllib.loads(_FOLDER.joinpath("features.toml").read_text("utf-8"))
Values = tuple[float, ...]
_SAID_INDEX = list(DIRECTIONS).index("said")
_OTHER_NAME_INDEX = list(DIRECTIONS).index("other_name")
_BETTER_ELSEWHERE_INDEX = list(DIRECTIONS).index("better_elsewhere")


class Trees(msgspec.Struct, frozen=True):
    """A fitted model."""

    # Log-odds before any tree.
    base: float
    trees: list[list[tuple[int, float, int, int, float]]]
    # Log-odds above which a keyword counts as said; what each name promises is in docs/measurements/matching.md.
    thresholds: dict[Threshold, float] = {}

    def score(self, values: Values) -> float:
        """The log-odds of a candidate."""
        total = self.base
        for tree in self.trees:
            feature, threshold, left, right, value = tree[0]
            while feature >= 0:
                feature, threshold, left, right, value = tree[left if values[feature] <= threshold else right]
            total += value
        return total


@lru_cache(maxsize=1)
def shipped_model() -> Trees:
    """The model of this version."""
    return msgspec.json.decode(_FOLDER.joinpath("smart.json").read_bytes(), type=Trees)


@lru_cache(maxsize=65536)
def score(values: Values) -> float:
    """The log-odds by it. Features are rounded, so that many replies of a log are equal to one that was met before."""
    return limit_other_name(values, shipped_model().score(values))


def limit_other_name(values: Values, log_odds: float) -> float:
    """Less than half of a name beside another one is another's name, however likely the model finds it."""
    return min(log_odds, -UNOPPOSED) if values[_OTHER_NAME_INDEX] and values[0] < 0.5 else log_odds


# The words around a keyword decide what the reply says of it: "moved from Tuesday to Thursday" says Thursday, not Tuesday.
#
# A logistic regression over named observations: the words before and behind the keyword in its sentence by distance and by
# whether a break (a comma, a bracket, a table cell) lies between, the two or three words that touch it, and the words beside
# its sentence. `tools/fit/fit_smart.py` fits it; its log-odds are one feature of the trees.


# How many words on each side of the keyword count, and how many on each side of its sentence.
_NEAR, _BESIDE = 6, 8
# The distance of a word in the name of an observation, from the nearest word on.
_DISTANCES = "123355"
# Words that also count as their class, so that one which no labelled reply has is not unknown. No token is in capitals.
_CLASSES = {word: name.upper() for name in ("contrasts", "doubts", "denies") for word in WORDS[name]}
# Steps in one unit of log-odds, and their limit: finer ones do not help the trees.
_STEP, _LIMIT = 2.0, 3.0


def _observe_side(side: str, tokens: list[str], free: int) -> list[str]:
    """Names of the tokens on one side, nearest first; `free` of them are nearer than the first break."""
    names = []
    for index, token in enumerate(tokens):
        near, parted = side + _DISTANCES[index], side if index < free else side + ","
        names += [f"{near} {token}", f"{parted} {token}"]
        if token in _CLASSES:
            names += [f"{near} {_CLASSES[token]}", f"{parted} {_CLASSES[token]}"]
    return names


def _observe_touching(before: list[str], behind: list[str], here: str) -> list[str]:
    """Names of the two and three tokens on each side, nearest first, and of the one on each side."""
    two, following = f"{before[1]} {before[0]} {here}", f"{here} {behind[0]} {behind[1]}"
    return [
        two,
        f"{before[2]} {two}",
        following,
        f"{following} {behind[2]}",
        f"{before[0]} {here} {behind[0]}",
    ]


def in_steps(log_odds: float) -> float:
    """Within the limits and rounded, so that many candidates are equal."""
    return round(max(-_LIMIT, min(_LIMIT, log_odds)) * _STEP) / _STEP


class ContextModel(msgspec.Struct, frozen=True):
    """The fitted weight of each observation."""

    base: float
    weights: dict[str, float]

    def log_odds(self, observations: Iterable[str]) -> float:
        """How likely it is that a careful reader finds it said."""
        weight = self.weights.get
        return in_steps(self.base + sum([weight(one, 0.0) for one in observations]))


@lru_cache(maxsize=1)
def shipped_context() -> ContextModel:
    """The model of this version."""
    data = _FOLDER.joinpath("context.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(data), type=ContextModel)


# One reply to one question, read once for all keywords: its words with their places, and the cues of its sentences.


_EDGES = '.,;:!?"()[]{}*$€£“”‘’…–—|'
_CHUNK = re.compile(r"\S+|\n")
# What ends a sentence (a line ends with NUL), and what may come behind that.
_ASKS, _ENDS, _CLOSING = frozenset("?？"), frozenset(".!…。！;；"), "\"”’')*]"
# What parts a sentence, before a word and behind it.
_OPENS, _PARTS = frozenset('(["“–—'), frozenset(',;:)]"”–—|')
# A comma before one of these words parts two statements: "the gym opens at 7, but the pool at 6".
_CONTRAST = re.compile(
    r",(?= (?:but|while|whereas|though|although|however|instead|only|not|unlike|aber|während|sondern|mais|tandis|alors|pero"
    r"|mientras|sino|mentre|invece|mas|enquanto|maar|terwijl|men|mens|medan|mutta|ale|lecz|zaś|но|а|але|ama|fakat)\b)",
    re.IGNORECASE,
)
# Abbreviations that never end a sentence.
_TITLES = frozenset(
    f"{word}."
    for word in (
        "dr",
        "mr",
        "mrs",
        "ms",
        "mx",
        "prof",
        "st",
        "mt",
        "approx",
        "incl",
        "e.g",
        "i.e",
        "vs",
        "bzw",
        "ca",
        "z.b",
        "sig",
        "sra",
    )
)
_LIST_NUMBER = re.compile(r"[0-9]{1,3} !")
_NO_MARKS = str.maketrans("", "", "\0?!")
# Further places of a word are not looked at.
_MOST_PLACES = 4


def _mark(chunk: str) -> str:
    """A chunk between spaces folded; behind it "?" and NUL if it ends a question, "!" and NUL if it ends another sentence, NUL
    if it ends a line; "," on the side where it is parted from the rest of its sentence.
    """
    last = "" if chunk.lstrip("(").lower() in _TITLES else chunk.rstrip(_CLOSING)[-1:]
    ends = "\0" if last == "\0" else "?\0" if last in _ASKS else "!\0" if last in _ENDS else ""
    parted = chunk[-1] in _PARTS or chunk == "-"
    return "," * (chunk[0] in _OPENS) + folded_chunk(chunk) + (ends or "," * parted)


_marked = Remembered(_mark).__getitem__


# What is there as a whole counts as said, just above the threshold `even`, if nothing that has a name speaks against it and
# the log-odds by the words around it are not below this.
UNOPPOSED, LEAST_SAID = 0.01, 0.0


class Reply:
    """Places are numbers of words. What not every keyword needs is worked out when first asked for, and kept."""

    def __init__(self, source: ReplyText, question_words: "QuestionWords") -> None:
        self.source, self.text, self.question_words = source, source.text, question_words
        plain = _CONTRAST.sub(";", self.text) if "," in self.text else self.text
        self._folded = list(map(_marked, plain.replace("\n", " \0 ").split()))
        folded = "".join(self._folded)
        # The first word of each sentence, and behind the last one the number of all words.
        self._sentences = folded.split("\0")
        self._starts = list(accumulate([one.count(" ") for one in self._sentences], initial=0))
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        self._parted = folded.translate(_NO_MARKS)
        self.joined = " " + self._parted.replace(",", "")
        self.words = self.joined.split()
        self._stemmed = f" {' '.join(map(stem, self.words))} "
        self.length = round(math.log1p(len(self.words)), 1)

    def positions(self, phrase: str, stemmed: bool = False) -> list[int]:
        """The first places of words or stems in a row, with a space before and mostly one behind them."""
        found: list[int] = []
        joined = self._stemmed if stemmed else self.joined
        at = joined.find(phrase)
        while at >= 0 and len(found) < _MOST_PLACES:
            found.append(joined.count(" ", 0, at))
            at = joined.find(phrase, at + 1)
        return found

    def sentence_of(self, position: int) -> int:
        """The number of the sentence that a word is in."""
        return bisect_right(self._starts, position) - 1

    @cached_property
    def _chunks(self) -> tuple[list[re.Match[str]], list[int]]:
        """The chunks between spaces, and how many words there are up to the end of each."""
        passed = accumulate(map(str.count, self._folded, repeat(" ")))
        return list(_CHUNK.finditer(self.text)), list(passed)

    def word_at(self, offset: int) -> int:
        """The number of the word, or the first one of its chunk, that is written at an offset of the text."""
        chunks, passed = self._chunks
        chunk = bisect_right(chunks, offset, key=re.Match.start) - 1
        return min(passed[chunk - 1] if chunk else 0, len(self.words) - 1)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The span in the text of the words from `first` to `last` as they are written."""
        chunks, passed = self._chunks
        begin, end = chunks[bisect_right(passed, first)], chunks[bisect_right(passed, last)]
        return begin.end() - len(begin[0].lstrip(_EDGES)), end.start() + len(end[0].rstrip(_EDGES))

    @cached_property
    def initials(self) -> str:
        """The first letters of all words, and of those that are not function words."""
        telling = [word[0] for word in self.words if word not in FUNCTION_WORDS]
        return f"{''.join([word[0] for word in self.words])} {''.join(telling)}"

    @cached_property
    def _breaks(self) -> list[int]:
        """The words before which a sentence is parted."""
        return list(accumulate(map(str.count, self._parted.split(","), repeat(" "))))[:-1]

    def observations(self, position: int, size: int) -> list[str]:
        """What the model of the context knows of a hit of `size` words."""
        sentence = self.sentence_of(position)
        words, breaks = self.words, self._breaks
        first, end = self._starts[sentence : sentence + 2]
        stop = min(position + size, end)
        last, following = bisect_right(breaks, position), bisect_left(breaks, stop)
        free_before = position - breaks[last - 1] if last and breaks[last - 1] > first else _NEAR
        free_behind = (
            breaks[following] - stop if following < len(breaks) and breaks[following] < end else _NEAR
        )
        before = [*self._tokens(words[max(first, position - _NEAR) : position][::-1]), *["<"] * _NEAR][:_NEAR]
        behind = [*self._tokens(words[stop : min(end, stop + _NEAR)]), *[">"] * _NEAR][:_NEAR]
        here = ("_" if free_before else ",_") if free_behind else "_,"
        names = _observe_side("before", before, free_before) + _observe_side("behind", behind, free_behind)
        names += _observe_touching(before, behind, here)
        ending = self._sentences[sentence][-1:]
        if ending == "?":
            names.append("asks")
        if ending == "!":
            # The lines beside an item of a list, a row of a table or a line of an address are not about it.
            names += [f"earlier {one}" for one in words[max(0, first - _BESIDE) : first]]
            names += [f"later {one}" for one in words[end : end + _BESIDE]]
        return names

    def _tokens(self, words: list[str]) -> list[str]:
        """The words with "#" for any number and "=" for a word of the question."""
        return [
            "=" if one in self.question_words.named else "#" if one[0].isdigit() else one for one in words
        ]

    def around(self, position: int, size: int) -> tuple[float, ...]:
        """The features of the words around a hit of `size` words, from `said` to `not_found`."""
        log_odds = shipped_context().log_odds(self.observations(position, size))
        return log_odds, self._better_elsewhere[self.sentence_of(position)], self._not_found

    def objection(self, candidate: "Candidate") -> str:
        """Why the reply may not say what it contains, or nothing."""
        values, _, position, _ = candidate
        sentence = self.sentence_of(position)
        if self._sentences[sentence][-1:] == "?":
            return "asked back"
        if self._has("denies", sentence):
            return "denied"
        if self._has("past", sentence):
            return "outdated"
        if self._has("doubts", sentence) or self._not_found:
            return "in doubt"
        return "of another entity" if values[_OTHER_NAME_INDEX] or values[_BETTER_ELSEWHERE_INDEX] else ""

    def _has(self, cue: str, sentence: int) -> float:
        first, last = self._starts[sentence : sentence + 2]
        return float(not WORDS[cue].isdisjoint(self.words[first:last]))

    @cached_property
    def _better_elsewhere(self) -> list[float]:
        """How much less of the question each sentence repeats than the best one does.

        An item of a list or a row of a table repeats what the first line of its block does.
        """
        repeated: list[set[str]] = [set() for _ in self._sentences]
        for one in self.question_words.telling:
            for position in self.positions(f" {one} ", stemmed=True):
                repeated[self.sentence_of(position)].add(one)
        heading: set[str] | None = None
        for sentence, words in zip(self._sentences, repeated, strict=True):
            if sentence[-1:] in ("!", "?") and not _LIST_NUMBER.fullmatch(sentence):
                heading = None
            elif sentence and heading is None:
                heading = set(words)
            elif heading is not None:
                words |= heading
        most = max(map(len, repeated))
        return [
            round((most - len(words)) / max(1, len(self.question_words.telling)), 1) for words in repeated
        ]

    @cached_property
    def _not_found(self) -> float:
        """How many sentences say that something is not found, given or known, up to two."""
        numbers = range(0 if WORDS["denies"].isdisjoint(self.words) else len(self._starts) - 1)
        return min(2.0, sum([self._has("denies", one) * self._has("unknowns", one) for one in numbers]))


# A question and one way to say a keyword, prepared once: its terms (words, amounts, dates, codes) and the weight of each.


_PARENTHESES = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
# What follows is another way to say it ("Gurkha or Nepalese", "(accept Duke of Cambridge)").
_ALTERNATIVE = re.compile(r"\s*[,;(]?\s*\b(?:or|accept|also known as|aka)\b:?\s*|\s+/\s+", re.IGNORECASE)
# What follows is a remark on what precedes it ("Cher, in 1998, with the song Believe").
_REMARK = re.compile(
    r"[,;:(\[]|\s[-–—]\s|\.\s|\s\b(?:who|which|where|because|when|while|after|for)\b", re.IGNORECASE
)
_LIST = re.compile(r",\s|;\s|\s(?:and|&|\+)\s")
# A name, number or address that is not read as words: "W-9", "JD0146 0012", "1-800-555-0173", "ap@firm.example".
_CODE = re.compile(
    r"(?<!\S)(?=\S*[0-9@])(?:\S*@\S+|[A-Za-z]+[-./]?[0-9][\w./-]*(?: [0-9]{2,})*|[A-Z]{1,4}(?: ?[0-9]{2,}){2,}|[0-9]{9,}"
    r"|[0-9]+[A-Z_#]\S*|[0-9]{2,}[-. ]0\S+|[0-9.]+(?:[-./ ()]+[0-9]+){2,}|[0-9]{3,}-[0-9]{4,})(?!\S)"
)
_GAP = r"[\s().\-\u2010-\u2013/_#:]{0,2}"
_TOO_LONG = 4000
# The weight from which a word is informative on its own.
_TELLING = 0.5
# A part of a name beside another capitalised word: Neil Sedaka, or Paul Young, for Neil Young.
_OTHER_NAME = r"\b{0} (?!{1}\b)[A-Z]\w|\b(?!{0}\b)[A-Z]\w+ {1}\b"
# A code finds itself however its parts are set apart.
Value = Quantity | Date | re.Pattern[str]


class Term(NamedTuple):
    """One word, folded, or one value of what is wanted."""

    word: str
    # How informative it is, from 0.1 for a word of the question to 2 for a date.
    weight: float
    value: Value | None = None


class QuestionWords:
    """A question's words: what a reply repeats of them is not an answer, and the answer is looked for near them."""

    def __init__(self, question: str) -> None:
        self.folded = folded_text(question[:_TOO_LONG])
        words = self.folded.split()
        self.stems = frozenset(map(stem, words))
        # What singles out what is asked about.
        self.named = frozenset(words) - FUNCTION_WORDS
        self.telling = set(map(stem, self.named))


prepare_question = lru_cache(maxsize=8192)(QuestionWords)


class Phrasing:
    """One accepted way to say a keyword, ready to be compared with replies."""

    def __init__(self, text: str, question_words: QuestionWords, abbreviations: Abbreviations = ()) -> None:
        self.text = text
        words = folded_words(text)
        self.phrase, self.size = f" {' '.join(words)} ", len(words)
        terms = _read_terms(text, question_words)
        # What is informative; if nothing is, all of it.
        self.terms = [term for term in terms if term.weight >= _TELLING] or terms
        self.total = sum(term.weight for term in self.terms)
        pairs = re.findall(r"(?=\b([A-Z]\w+) ([A-Z]\w+))", text)
        self.other_name = "|".join(_OTHER_NAME.format(*pair) for pair in pairs)
        # Whether it is an amount that is more than its digits.
        figure = self.terms[0].value if len(self.terms) == 1 else None
        self.signed = isinstance(figure, Quantity) and (figure.dimension != "" or figure.numbers[0] < 0)
        # "po" for purchase order, "W9" for W-9, "dot" for Department of Transportation; and the other way round.
        self.short = _short_forms(words, question_words) + [
            self.phrase.replace(one, other)
            for pair in (*_ABBREVIATIONS, *read_abbreviations(abbreviations))
            for one, other in (pair, pair[::-1])
            if one in self.phrase
        ]
        self.acronym = text.strip().lower() if re.fullmatch(r"\s*[A-Z]{3,6}\s*", text) else ""


def _short_forms(words: list[str], question_words: QuestionWords) -> list[str]:
    """The words run together, and their first letters, as they would be in a folded reply."""
    forms = [f" {''.join(words)}"] if len(words) > 1 else []
    for some in (words, [word for word in words if word not in FUNCTION_WORDS]):
        letters = "".join(word[0] for word in some)
        if 3 <= len(letters) <= 8 and letters not in question_words.stems:
            forms.append(f" {letters} ")
    return forms


def _read_terms(text: str, question_words: QuestionWords) -> list[Term]:
    """Dates first, then codes and amounts, then the words around them."""
    whole = parse_date(text)
    dates = [whole.date] if whole is not None and whole.date is not None else list(find_dates(text))
    found: list[tuple[int, int, Value]] = [(date.start, date.end, date) for date in dates]
    found += [(*code.span(), _code_pattern(code[0])) for code in _CODE.finditer(text)]
    found += [(amount.start, amount.end, amount) for amount in find_quantities(text)]
    taken: list[tuple[int, int, Value]] = []
    for one in found:
        if all(one[1] <= start or end <= one[0] for start, end, _ in taken):
            taken.append(one)
    terms: list[Term] = []
    at = 0
    for start, end, value in (*sorted(taken, key=lambda one: one[0]), (len(text), len(text), None)):
        terms += [Term(word, _weight(word, question_words)) for word in folded_words(text[at:start])]
        if value is not None:
            known = folded_text(text[start:end]) in question_words.folded
            terms.append(Term("", 2.0 if isinstance(value, Date) else 0.2 if known else 1.5, value))
        at = end
    return terms


def _code_pattern(code: str) -> re.Pattern[str]:
    """The code's letters and digits in a row with any punctuation between them; a leading country code may lack."""
    parts = re.findall(r"[^\W\d_]+|[0-9]+|[@]", code[:60])
    if len(parts) > 2 and parts[0] == "1" and parts[1].isdigit():
        parts = parts[1:]
    body = _GAP.join(_GAP.join(part) if part.isdigit() and len(part) > 4 else part for part in parts)
    return re.compile(rf"(?<![^\W_]){body}(?![^\W_]|[.-][0-9])", re.IGNORECASE)


def _weight(word: str, question_words: QuestionWords) -> float:
    """How informative a word is: little if it is a function word, a title, or already in the question."""
    if word in WORDS["denies"]:
        return 0.6
    if stem(word) in question_words.stems or word in FUNCTION_WORDS:
        return 0.1
    return 0.3 if word in WORDS["light"] else min(1.2, 0.5 + 0.1 * len(word))


def prepare_phrasings(
    text: str, question_words: QuestionWords, abbreviations: Abbreviations = ()
) -> list[Phrasing]:
    """A text ready for comparison without what it has in parentheses, and the ways to say it that it names."""
    text = text[:_TOO_LONG]
    bare = _PARENTHESES.sub(" ", text)
    full = Phrasing(bare if folded_words(bare) else text, question_words, abbreviations)
    parts = _ALTERNATIVE.split(text)
    # A list is one thing, and so is a date or a figure: "April 15" is not April 15, 2024.
    if not _LIST.search(text) and all(term.value is None for term in full.terms):
        parts = [_REMARK.split(part.lstrip("(["), maxsplit=1)[0] for part in parts]
    others = [
        Phrasing(_PARENTHESES.sub(" ", part).strip("()[] "), question_words, abbreviations)
        for part in parts
        if part != text
    ]
    return [way for way in (full, *others) if way.total >= _TELLING or (way is full and way.terms)]


# The decision of `smart` for one keyword and one reply: every way to say it at every place, and the best by one model.


# A golden set's alternatives beyond this many are not looked at, nor further places of an amount.
_MOST_WAYS, _MOST_PLACES_SMART = 100, 4
# How alike a misspelt, shortened or lengthened word is at least; the model decides how much that counts.
_SIMILAR = 0.85
# Read once for all keywords of a reply.
_dates = lru_cache(maxsize=2)(lambda text: [*find_dates(text), *find_short_dates(text)])
_quantities = lru_cache(maxsize=2)(find_quantities)
# What speaks against a keyword, by feature.
_OBJECTIONS = {
    "other_value": "another figure or date is in its place",
    "other_name": "it is part of another name",
    "better_elsewhere": "another sentence is closer to the question",
    "not_found": "the reply says that something is not known",
}
_AGAINST = [(index, _OBJECTIONS[name]) for index, (name, sign) in enumerate(DIRECTIONS.items()) if sign < 0]
# The features of one way to say a keyword at one place of a reply; that way, the number of its first word, how it was recognised.
Candidate = tuple[Values, Phrasing, int, str]


class SmartKeyword:
    """One keyword prepared for all replies to one question: texts by meaning, numbers and patterns as in `standard`."""

    def __init__(
        self,
        keyword: Expectation,
        question: str,
        threshold: Threshold = "even",
        probability: Probability | None = None,
        abbreviations: Abbreviations = (),
    ) -> None:
        options = expected_options(keyword)
        self._others = [one for one in options if expected_text(one) is None]
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

    def match(self, reply: Reply) -> Match:
        """Whether a careful reader finds the keyword in the reply."""
        match = self._by_model(reply) if self._texts else EMPTY
        for other in self._others:
            if match.found:
                break
            match = reply.source.look(other, True)
        return match

    def _by_model(self, reply: Reply) -> Match:
        best, highest = None, -math.inf
        for candidate in self.candidates(reply):
            log_odds = score(candidate[0])
            if (
                is_whole(candidate)
                and candidate[0][_SAID_INDEX] >= LEAST_SAID
                and not reply.objection(candidate)
            ):
                log_odds = max(log_odds, UNOPPOSED)
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
            return Match(False, "none", why=_why_not(best, highest, reply))
        if best is None:
            return Match(True, "smart:model", why="by its meaning as a whole")
        _, phrasing, position, way = best
        start, end = reply.span(position, position + (phrasing.size - 1 if way == "phrase" else 0))
        return Match(True, f"smart:{way}", start, end, reply.text[start:end], _because(best, highest))

    def candidates(self, reply: Reply) -> Iterator[Candidate]:
        """Each way to say it at each place of the reply where it may be, with its features."""
        for phrasing in self._phrasings if reply.words else ():
            positions, way, values = _align(phrasing, reply)
            size = phrasing.size if way == "phrase" else 1
            for position in positions:
                yield (
                    (*values, reply.length, self._choices, *reply.around(position, size)),
                    phrasing,
                    position,
                    way,
                )


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


def _why_not(best: Candidate | None, log_odds: float, reply: Reply) -> str:
    """The reason of a rejection; of a keyword that is there as a whole, what speaks against it comes first."""
    if best is None:
        return "nothing of it is in the reply"
    # Where no cue has a name, the words around it made the model doubt it.
    objection = f"{reply.objection(best) or 'in doubt'}: " if is_whole(best) else ""
    return objection + _because(best, log_odds)


def is_whole(candidate: Candidate) -> bool:
    """Whether all of it is in the reply word for word or by value."""
    return candidate[0][0] >= 1 and candidate[3] in ("phrase", "number", "word")


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
    # People get the first letter right: "lease" is not a misspelt "please".
    alike = re.findall(rf" ({re.escape(word[0])}[^ ]+)", joined)
    best = extractOne(word, alike, scorer=JaroWinkler.normalized_similarity, score_cutoff=_SIMILAR)
    if best is None or stem(best[0]) in question_words or best[0] in EXCLUSIVE.get(word, "").split():
        return _ABSENT
    return _Presence(best[1], "misspelt", reply.positions(f" {best[0]} "))
