"""Which real questions a golden set covers, and the groups of those that it does not.

Questions are compared by the words they share: folded, stemmed, rare ones counting more, misspelt ones mapped to the
golden set's. Two questions about different figures, years or months are not the same question.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from importlib.resources import files
from math import log, sqrt

import msgspec

from answerkey.stats.intervals import wilson_interval
from answerkey.text.normalise import FUNCTION_WORDS, folded_words, stem

# How similar two questions are if they are surely, probably or possibly the same; see docs/draft.md.
SURE, LIKELY, POSSIBLE = 0.75, 0.48, 0.36
# Members of a group are at least this similar to its first.
_SAME_GROUP = 0.6
# Texts that are compared by one shared word; a word of more texts says little about any of them.
_MAX_POSTINGS = 100
# Texts whose facts are compared, and words by which a text looks for its group, the rarest.
_COMPARED, _RAREST = 8, 5
# Words of a question that count.
_MAX_WORDS = 40
# Characters of a word that are shared, for a misspelt one to be taken for another.
_SAME_WORD = 0.6
_MIN_MISSPELT = 5
# How much a word counts that the golden set does not have.
_UNKNOWN = 0.5
# How much more similar a question is whose reply is what the case expects, and less if it is not.
ANSWERED, NOT_ANSWERED = 0.35, 0.75
# Different figures, years, months and letters of things make two questions different.
_OTHER_FACTS = 0.5
_MONTHS = frozenset(
    map(
        stem,
        [
            "january",
            "february",
            "march",
            "april",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ],
    )
)
# The letter of a thing, which would be lost as a short word: "unit A", "Apt. b".
_LETTER = re.compile(
    r"\b(?:unit|apt|apartment|flat|suite|room|block|building|tower|gate|schedule|plan|lot)\.? ([a-z])\b",
    re.IGNORECASE,
)
_LETTER_MARK = "#"
# What people wrap a question in.
_FILLERS = frozenset(
    files("answerkey.golden").joinpath("words", "question_fillers.txt").read_text("utf-8").split()
)
# Scripts that do not part words by spaces are read by pairs of characters.
_UNPARTED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")


def question_words(text: str) -> tuple[str, ...]:
    """The words by which a question is compared, in order, each once."""
    words = [_LETTER_MARK + letter.lower() for letter in _LETTER.findall(text[:2000])]
    for word in folded_words(text[:2000]):
        if _UNPARTED.search(word):
            for run in _UNPARTED.findall(word):
                words += [run[index : index + 2] for index in range(max(len(run) - 1, 1))]
        elif word not in FUNCTION_WORDS and word not in _FILLERS:
            words.append(stem(word))
    return tuple(dict.fromkeys(words or folded_words(text[:2000])))[:_MAX_WORDS]


def _facts(words: Iterable[str]) -> frozenset[str]:
    """Figures, years, months and letters of things."""
    return frozenset(
        word for word in words if word[:1].isdigit() or word in _MONTHS or word.startswith(_LETTER_MARK)
    )


def _grams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[index : index + 3] for index in range(len(padded) - 2))


class Nearest(msgspec.Struct, frozen=True):
    """The most similar text of an index."""

    index: int
    similarity: float


class SimilarTexts:
    """An index of texts that grows; finds the most similar one without comparing with all."""

    def __init__(self, weights: dict[str, float] | None = None) -> None:
        # Word → how much it counts; words that are not in it count like the rarest.
        self._weights = weights or {}
        self._unknown = max(self._weights.values(), default=1.0)
        self._norms: list[float] = []
        self._facts: list[frozenset[str]] = []
        self._postings: dict[str, list[int]] = defaultdict(list)

    def add(self, words: Sequence[str]) -> int:
        """Add a text; returns its index."""
        index = len(self._norms)
        self._norms.append(sqrt(sum(self._weight(word) ** 2 for word in words)) or 1.0)
        self._facts.append(_facts(words))
        for word in words:
            if len(self._postings[word]) < _MAX_POSTINGS:
                self._postings[word].append(index)
        return index

    def _weight(self, word: str) -> float:
        return self._weights.get(word, self._unknown)

    def nearest(self, words: Sequence[str], *, unknown: float = 1.0) -> list[Nearest]:
        """The three most similar texts, the most similar first; `unknown` is how much words count that no text has."""
        shared: dict[int, float] = defaultdict(float)
        norm = 0.0
        for word in words:
            weight = self._weight(word) ** 2
            postings = self._postings.get(word)
            norm += weight if postings else weight * unknown**2
            for index in postings or ():
                shared[index] += weight
        if not shared:
            return []
        norm, facts = sqrt(norm) or 1.0, _facts(words)
        norms = self._norms
        rated = nlargest(_COMPARED, [(weight / norms[index], -index) for index, weight in shared.items()])
        best = []
        for rating, negative in rated:
            similarity = rating / norm
            if _differ(facts, self._facts[-negative]):
                similarity *= _OTHER_FACTS
            best.append(Nearest(-negative, similarity))
        return sorted(best, key=lambda one: (-one.similarity, one.index))[:3]


def _differ(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one - other and other - one)


class GoldenIndex:
    """The questions of a golden set, to look real ones up."""

    def __init__(self, texts: Sequence[str]) -> None:
        split = [question_words(text) for text in texts]
        uses = Counter(word for words in split for word in words)
        self._vocabulary = dict.fromkeys(uses, "")
        self._texts = SimilarTexts({word: log(1 + len(texts) / count) for word, count in uses.items()})
        for words in split:
            self._texts.add(words)
        self._words_with: dict[str, list[str]] = defaultdict(list)
        for word in uses:
            for gram in _grams(word) if len(word) >= _MIN_MISSPELT - 1 else ():
                self._words_with[gram].append(word)
        self._spelt: dict[str, str] = {}

    def nearest(self, words: Sequence[str]) -> list[Nearest]:
        """The most similar golden questions, the most similar first."""
        return self._texts.nearest([self._spell(word) for word in words], unknown=_UNKNOWN)

    def _spell(self, word: str) -> str:
        """A word of the golden set that is spelt nearly like this one, else the word itself."""
        if word in self._vocabulary or len(word) < _MIN_MISSPELT or not word.isalpha():
            return word
        spelt = self._spelt.get(word)
        if spelt is None:
            grams = _grams(word)
            shared = Counter(other for gram in grams for other in self._words_with.get(gram, ()))
            best = max(
                shared, key=lambda other: shared[other] / (len(grams) + len(_grams(other))), default=word
            )
            alike = 2 * shared[best] / (len(grams) + len(_grams(best)))
            spelt = self._spelt[word] = best if alike >= _SAME_WORD else word
        return spelt


def group_texts(texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Groups of near-duplicates among the words of texts, which come with the most frequent first."""
    uses = Counter(word for words in texts for word in words)
    leaders = SimilarTexts({word: log(1 + len(texts) / count) for word, count in uses.items()})
    groups: list[list[int]] = []
    for index, words in enumerate(texts):
        # A frequent word finds little that a rare one does not find.
        rare = sorted(words, key=uses.__getitem__)
        nearest = leaders.nearest(rare)
        if nearest and nearest[0].similarity >= _SAME_GROUP:
            groups[nearest[0].index].append(index)
        else:
            leaders.add(rare)
            groups.append([index])
    return groups


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The share of the questions asked that a golden set covers."""

    value: float
    # From the questions that surely are in the set to those that possibly are, each with its sampling error.
    low: float
    high: float
    # Questions asked, and different ones among them.
    questions: int
    distinct: int


def coverage_of(similarities: Iterator[tuple[float, int]]) -> Coverage | None:
    """The coverage of questions given by their similarity to the nearest case and how often each was asked."""
    sure = likely = possible = total = distinct = 0
    for similarity, count in similarities:
        total, distinct = total + count, distinct + 1
        sure += count * (similarity >= SURE)
        likely += count * (similarity >= LIKELY)
        possible += count * (similarity >= POSSIBLE)
    low, high = wilson_interval(sure, total), wilson_interval(possible, total)
    if low is None or high is None:
        return None
    return Coverage(value=likely / total, low=low.low, high=high.high, questions=total, distinct=distinct)
