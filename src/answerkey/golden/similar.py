"""Which questions are alike: cases of a set, real questions that it covers, and groups of those that it does not.

Questions are compared by the words they share: folded, stemmed, rare ones counting more, misspelt ones mapped to the
golden set's. Two questions about different figures, years or months are not the same question.
"""

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import nlargest
from importlib.resources import files
from math import log, sqrt

import msgspec

from answerkey.text.normalise import FUNCTION_WORDS, folded_words, stem

# How similar two questions are if they are surely, and if they are probably the same.
SURE, LIKELY = 0.75, 0.48
# How often a covered question, and another one, has a similarity between these; fitted, see docs/draft.md.
BANDS = (0.1, 0.3, 0.36, 0.42, 0.48, 0.55, 0.75)
_COVERED = (0.115, 0.122, 0.08, 0.072, 0.076, 0.089, 0.154, 0.293)
_OTHERS = (0.334, 0.301, 0.133, 0.092, 0.057, 0.038, 0.037, 0.008)
# Shares that are tried, and the log-likelihood by which those of the 95% interval may fall behind the best.
_SHARES = tuple(number / 1000 for number in range(1, 1000))
_LIKELIHOOD_95 = 1.92
# Questions in other words that come from one intent: that many are as good as one.
_PARAPHRASES = 3.0
# Members of a group are at least this similar to its first.
_SAME_GROUP = 0.6
# Texts that are compared by one shared word; a word of more texts says little about any of them.
_MAX_POSTINGS = 100
# Texts whose facts are compared.
_COMPARED = 8
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
# Greetings and thanks, and what people say beside them.
_GREETINGS, _BESIDE = (
    frozenset(line.split())
    for line in files("answerkey.golden").joinpath("words", "greetings.txt").read_text("utf-8").splitlines()
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


def is_greeting(text: str) -> bool:
    """Whether a text only greets or thanks.

    >>> is_greeting("Hi there!"), is_greeting("hi, what is the rent?"), is_greeting("how are you")
    (True, False, False)
    """
    words = set(folded_words(text[:200]))
    return bool(words & _GREETINGS) and words <= _GREETINGS | _BESIDE


def question_facts(words: Iterable[str]) -> frozenset[str]:
    """Figures, years, months and letters of things among a question's words."""
    return frozenset(
        word for word in words if word[:1].isdigit() or word in _MONTHS or word.startswith(_LETTER_MARK)
    )


def years(facts: Iterable[str]) -> frozenset[str]:
    """The years among figures."""
    return frozenset(one for one in facts if len(one) == 4 and one.isdigit() and one[:2] in ("19", "20"))


def _grams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[index : index + 3] for index in range(len(padded) - 2))


class Nearest(msgspec.Struct, frozen=True):
    """The most similar text of an index."""

    index: int
    similarity: float


class SimilarTexts:
    """An index of texts, given by their words; finds the most similar ones without comparing with all.

    >>> texts = [question_words(text) for text in ("rent in May", "rent in June", "who is the agent")]
    >>> [near.index for near in SimilarTexts(texts).nearest(texts[0])]
    [0, 1]
    """

    def __init__(self, texts: Sequence[Sequence[str]], *, is_empty: bool = False) -> None:
        """Rare words of `texts` count more than frequent ones; `is_empty`: they are added later, one by one."""
        uses = Counter(word for words in texts for word in words)
        self._weights = {word: log(1 + len(texts) / count) for word, count in uses.items()}
        # Words that no text has count like the rarest.
        self._unknown = max(self._weights.values(), default=1.0)
        self._norms: list[float] = []
        self._facts: list[frozenset[str]] = []
        self._postings: dict[str, list[int]] = defaultdict(list)
        self._spelt: dict[str, str] = {}
        for words in () if is_empty else texts:
            self.add(words)

    def add(self, words: Sequence[str]) -> int:
        """Add a text; returns its index."""
        index = len(self._norms)
        self._norms.append(sqrt(sum(self._weight(word) ** 2 for word in words)) or 1.0)
        self._facts.append(question_facts(words))
        for word in words:
            if len(self._postings[word]) < _MAX_POSTINGS:
                self._postings[word].append(index)
        return index

    def _weight(self, word: str) -> float:
        return self._weights.get(word, self._unknown)

    def nearest(
        self,
        words: Sequence[str],
        count: int = 3,
        *,
        unknown: float = 1.0,
        other_facts: float = _OTHER_FACTS,
    ) -> list[Nearest]:
        """The most similar texts that share a word, the most similar first.

        Args:
            words: Of the text to look up.
            count: Most texts to return.
            unknown: How much words count that no text has.
            other_facts: How similar texts with different figures, years or months can be.
        """
        shared: dict[int, float] = defaultdict(float)
        norm = 0.0
        for word in words:
            weight = self._weight(word) ** 2
            postings = self._postings.get(word)
            norm += weight if postings else weight * unknown**2
            for index in postings or ():
                shared[index] += weight
        norm, facts = sqrt(norm) or 1.0, question_facts(words)
        norms = self._norms
        rated = nlargest(
            max(_COMPARED, count), [(weight / norms[index], -index) for index, weight in shared.items()]
        )
        best = []
        for rating, negative in rated:
            similarity = rating / norm
            if _differ(facts, self._facts[-negative]):
                similarity *= other_facts
            best.append(Nearest(-negative, similarity))
        return sorted(best, key=lambda one: (-one.similarity, one.index))[:count]

    def others(self, index: int, words: Sequence[str], count: int) -> list[int]:
        """The texts most similar to the one of this index, which has these words; other figures do not matter."""
        nearest = self.nearest(words, count + 1, other_facts=1.0)
        return [near.index for near in nearest if near.index != index][:count]

    def spell(self, words: Iterable[str]) -> list[str]:
        """The words, each as a nearly equal one of the texts where they do not have it."""
        return [self._spell(word) for word in words]

    def _spell(self, word: str) -> str:
        if word in self._weights or len(word) < _MIN_MISSPELT or not word.isalpha():
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

    @cached_property
    def _words_with(self) -> dict[str, list[str]]:
        """Three characters → the words of the texts that have them."""
        words_with: dict[str, list[str]] = defaultdict(list)
        for word in self._weights:
            for gram in _grams(word) if len(word) >= _MIN_MISSPELT - 1 else ():
                words_with[gram].append(word)
        return words_with


def _differ(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one - other and other - one)


def nearest_case(golden: SimilarTexts, words: Sequence[str]) -> list[Nearest]:
    """The golden questions most similar to a real one, which may be misspelt and say more than is asked."""
    return golden.nearest(golden.spell(words), unknown=_UNKNOWN)


def group_texts(texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Groups of near-duplicates among the words of texts, which come with the most frequent first."""
    uses = Counter(word for words in texts for word in words)
    leaders = SimilarTexts(texts, is_empty=True)
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
    # Shares that the similarities do not contradict at 95%.
    low: float
    high: float
    # Questions asked, and different ones among them.
    questions: int
    distinct: int


def coverage_of(similarities: Iterable[tuple[float, int]]) -> Coverage | None:
    """The coverage of questions given by their similarity to the nearest case and how often each was asked.

    The similarities are a mixture of those of covered and of other questions. The share of covered ones is the most likely one;
    a paraphrase without a shared word counts although it cannot be recognised. The worse the mixture describes the
    similarities, the wider is the interval (quasi-likelihood). None: no questions.
    """
    distinct, asked = [0] * len(_COVERED), [0] * len(_COVERED)
    for similarity, count in similarities:
        band = bisect(BANDS, similarity)
        distinct[band] += 1
        asked[band] += count
    questions, units = sum(asked), sum(distinct)
    if not units:
        return None
    dispersion = max(_PARAPHRASES, _misfit(distinct, _likely_shares(distinct, _PARAPHRASES)[1]))
    low, value, high = (
        sum(
            number * share * one / mixed
            for number, one, mixed in zip(asked, _COVERED, _mixture(share), strict=True)
        )
        / questions
        for share in _likely_shares(distinct, dispersion)
    )
    return Coverage(value=value, low=low, high=high, questions=questions, distinct=units)


def _mixture(share: float) -> list[float]:
    """How often questions are in each band, if this share of them is covered."""
    return [share * one + (1 - share) * other for one, other in zip(_COVERED, _OTHERS, strict=True)]


def _likely_shares(distinct: Sequence[int], dispersion: float) -> tuple[float, float, float]:
    """The most likely share of covered questions, between the ends of its 95% interval."""
    likelihoods = {
        share: sum(number * log(chance) for number, chance in zip(distinct, _mixture(share), strict=True))
        / dispersion
        # Few questions neither prove nor exclude anything.
        + log(share * (1 - share))
        for share in _SHARES
    }
    best = max(_SHARES, key=likelihoods.__getitem__)
    possible = [share for share in _SHARES if likelihoods[share] >= likelihoods[best] - _LIKELIHOOD_95]
    return possible[0], best, possible[-1]


def _misfit(distinct: Sequence[int], share: float) -> float:
    """Pearson's chi-square of the bands, for each degree of freedom."""
    expected = [sum(distinct) * chance for chance in _mixture(share)]
    squares = ((number - mean) ** 2 / mean for number, mean in zip(distinct, expected, strict=True))
    return sum(squares) / (len(expected) - 2)
