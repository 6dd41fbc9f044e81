"""One reply to one question, read once for all keywords: its words with their places, and the cues of its sentences.

The words around a keyword decide what the reply says of it: "moved from Tuesday to Thursday" says Thursday, not Tuesday. Their
model is a logistic regression over named observations: the words before and behind the keyword in its sentence by distance and
by whether a break (a comma, a bracket, a table cell) lies between, the two or three words that touch it, and the words beside
its sentence. `tools/fit/fit_smart.py` fits it; its log-odds are one feature of the trees.
"""

import gzip
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import accumulate, repeat
from typing import NamedTuple

import msgspec

from answerkey.match.keywords import ReplyText
from answerkey.match.phrasing import FOLDER, WORDS, QuestionWords
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, folded_chunk, stem
from answerkey.text.patterns import lazy

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
    data = FOLDER.joinpath("context.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(data), type=ContextModel)


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
# "P. Brandt": an initial ends no sentence.
_INITIAL = re.compile(r"[(*]*[A-Z]\.")
_LIST_NUMBER = re.compile(r"[0-9]{1,3} !")
_NO_MARKS = str.maketrans("", "", "\0?!")
# Further places of a word are not looked at.
_MOST_PLACES = 4


def _mark(chunk: str) -> str:
    """A chunk between spaces folded; behind it "?" and NUL if it ends a question, "!" and NUL if it ends another sentence, NUL
    if it ends a line; "," on the side where it is parted from the rest of its sentence.
    """
    is_short = chunk.lstrip("(").lower() in _TITLES or _INITIAL.fullmatch(chunk) is not None
    last = "" if is_short else chunk.rstrip(_CLOSING)[-1:]
    ends = "\0" if last == "\0" else "?\0" if last in _ASKS else "!\0" if last in _ENDS else ""
    parted = chunk[-1] in _PARTS or chunk == "-"
    return "," * (chunk[0] in _OPENS) + folded_chunk(chunk) + (ends or "," * parted)


_marked = Remembered(_mark).__getitem__


# Ranges, whose two ends are said together: "from 9 am to 6 pm" says both 9 am and 6 pm.
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_LINKS = r"to|until|till?|through|thru|bis|à|au|al?|as|às|hasta|tot|and|und|et|y|e|en"
_UNIT = rf"(?!(?:{_LINKS})\b)[^\W\d_]{{1,12}}\b\.?"
_VALUE = (
    rf"(?:{_MONTH} )?[$€£]? ?[0-9]+(?:[.,:/][0-9]+)*(?:st|nd|rd|th)?\.?"
    rf"(?: ?(?:[ap]\.?m\b\.?|%|€|°C?|{_UNIT})(?: (?:19|20)[0-9]{{2}}\b)?)?"
)
_BETWEEN = (
    r"(?: ?[-\u2010-\u2015] ?"
    r"| (?:to|until|till?|through|thru|bis(?: zum)?|à|au|jusqu['’]à|al?|as|às|hasta(?: las)?|tot) (?:the )?)"
)
# The word before a range is part of it.
_RANGE = lazy(
    rf"(?:\b(?:from|von|vom|de|du|des|desde|dal|van)(?: the| las)? )?"
    rf"(?<![\w.,-])(?P<first>{_VALUE})(?P<link>{_BETWEEN})(?P<last>{_VALUE})(?![\w-])"
    rf"|\b(?:between|zwischen|entre|tra|tussen) (?P<low>{_VALUE}) (?:and|und|et|y|e|en) (?P<high>{_VALUE})(?![\w-])",
    re.IGNORECASE,
)
_SIGNS = (lazy(r"[$€£]"), lazy("%"), lazy(r"[0-9][:.][0-9]"), lazy(r"[ap]\.?m\b", re.IGNORECASE))
_YEAR = lazy(r"(?:19|20)[0-9]{2}")
# Which end a question asks for.
_ASKS_FOR_BEGIN = lazy(r"\b(?:begins?|starts?|earliest|minimum|from when|ab wann)\b", re.IGNORECASE)
_ASKS_FOR_END = lazy(
    r"\b(?:clos(?:e|es|ing)|ends?|finish(?:es)?|latest|last|until|till|how late|maximum|most|bis wann|schließt)\b",
    re.IGNORECASE,
)


class _ValueRange(NamedTuple):
    """Where a range, its second end and the range's end are in a text."""

    start: int
    second: int
    end: int


def _find_ranges(text: str) -> Iterator[_ValueRange]:
    """The ranges of a text; the dash of "2019 – £618,300" and "Store 3 – 2.1%" makes none."""
    for found in _RANGE.finditer(text):
        second = "high" if found["last"] is None else "last"
        if second == "last" and len(found["link"].strip()) == 1 and not found["link"].strip().isalpha():
            first, last = found["first"], found["last"]
            signs = all((one.search(first) is None) == (one.search(last) is None) for one in _SIGNS)
            years = (_YEAR.fullmatch(first) is None) == (_YEAR.fullmatch(last) is None)
            if " " in found["link"] and not (signs and years):
                continue
        yield _ValueRange(found.start(), found.start(second), found.end())


def _asks_for_other_end(question: str, is_second: bool) -> bool:
    """Whether a question asks for the end of a range that is not this one."""
    return (_ASKS_FOR_BEGIN if is_second else _ASKS_FOR_END).search(question) is not None


# Cues of a sentence by which two values are not the ends of a range that is said as a whole.
_SEPARATING = ("changes", "varies", "past", "contrasts", "conditions")


class Reply:
    """Places are numbers of words. What not every keyword needs is worked out when first asked for, and kept."""

    def __init__(self, source: ReplyText, question_words: "QuestionWords") -> None:
        self.source, self.text, self.question_words = source, source.text, question_words
        plain = _CONTRAST.sub(";", self.text) if "," in self.text else self.text
        self._folded = list(map(_marked, plain.replace("\n", " \0 ").split()))
        folded = "".join(self._folded)
        # The first word of each sentence, and behind the last one the number of all words.
        self._sentences = folded.split("\0")
        self.starts = list(accumulate([one.count(" ") for one in self._sentences], initial=0))
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        self._parted = folded.translate(_NO_MARKS)
        self.joined = " " + self._parted.replace(",", "")
        self.words = self.joined.split()
        self.stems = list(map(stem, self.words))
        self._stemmed = f" {' '.join(self.stems)} "
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
        return bisect_right(self.starts, position) - 1

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

    @cached_property
    def _ranges(self) -> list[tuple[int, int, int]]:
        """The first word of each range, that of its second end, and the one behind it."""
        chunks, passed = self._chunks
        return [
            (
                self.word_at(start),
                self.word_at(second),
                passed[bisect_left(chunks, end, key=re.Match.start) - 1],
            )
            for start, second, end in _find_ranges(self.text)
        ]

    @cached_property
    def words_beside_ranges(self) -> list[str]:
        """All words, those in a range as "": its "until" says neither that something was so before nor on what condition."""
        words = self.words
        if not any(one[0].isdigit() for one in words):
            return words
        words = words.copy()
        for first, _, stop in self._ranges:
            words[first:stop] = [""] * (stop - first)
        return words

    def extent(self, position: int, size: int) -> tuple[int, int]:
        """The first word and the number of words of the range that a value is an end of, or of the value itself.

        "Moved from 3 May to 7 May" does not count, and the end of one does not say when something begins.
        """
        for first, second, stop in self._ranges:
            if not first <= position < stop:
                continue
            sentence = self.sentence_of(position)
            is_other = _asks_for_other_end(self.question_words.folded, second > first and position >= second)
            if is_other or any(self.has(cue, sentence) for cue in _SEPARATING):
                break
            return first, stop - first
        return position, size

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
    def breaks(self) -> list[int]:
        """The words before which a sentence is parted."""
        return list(accumulate(map(str.count, self._parted.split(","), repeat(" "))))[:-1]

    def observations(self, position: int, size: int) -> list[str]:
        """What the model of the context knows of a hit of `size` words."""
        sentence = self.sentence_of(position)
        words, breaks = self.words, self.breaks
        first, end = self.starts[sentence : sentence + 2]
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

    @property
    def nowhere(self) -> tuple[float, ...]:
        """The same of what is nowhere in the reply."""
        return 0.0, 0.0, self._not_found

    def is_question(self, sentence: int) -> bool:
        """Whether a sentence asks."""
        return self._sentences[sentence][-1:] == "?"

    def has(self, cue: str, sentence: int) -> float:
        """1 if a sentence has a word of a list, else 0."""
        first, last = self.starts[sentence : sentence + 2]
        return float(not WORDS[cue].isdisjoint(self.words_beside_ranges[first:last]))

    @cached_property
    def courtesies(self) -> frozenset[int]:
        """The places of a "no" that denies nothing: "No problem, bring him in"."""
        words, stems = self.words, self.question_words.stems
        return frozenset(
            at
            for at in self.starts[:-1]
            if at + 2 in self._parted_at
            and words[at] in WORDS["denies"]
            and words[at + 1] in WORDS["courtesies"]
            and stem(words[at + 1]) not in stems
        )

    def denial_counts(self, at: int, denied: frozenset[str], answers: bool) -> bool:
        """Whether a word that denies is about something, by its stems; "no" as the answer is if the question asks for that."""
        if at in self.courtesies:
            return False
        if not denied:
            return True
        if at == 0 and self.words[0] in WORDS["no"] and (len(self.words) == 1 or 1 in self._parted_at):
            return answers
        first, stop = self.starts[(sentence := self.sentence_of(at)) : sentence + 2]
        return not denied.isdisjoint(self.stems[first:stop])

    @cached_property
    def _parted_at(self) -> frozenset[int]:
        """The words before which a sentence is parted or begins."""
        return frozenset((*self.breaks, *self.starts))

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
        numbers = range(0 if WORDS["denies"].isdisjoint(self.words) else len(self.starts) - 1)
        return min(2.0, sum([self.has("denies", one) * self.has("unknowns", one) for one in numbers]))
