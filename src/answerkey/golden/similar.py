"""Which texts share words: the cases most similar to a question, and groups of near-duplicates.

Words are folded and stemmed, rare ones count more, and misspelt ones are mapped to those of the texts. Questions about
different figures, years, months or days are less similar.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import nlargest
from importlib.resources import files
from math import log, sqrt

import msgspec

from answerkey.text.normalise import FUNCTION_WORDS, folded_words, stem

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
# Different figures, years, months, days and letters of things make two questions different.
_OTHER_FACTS = 0.5
_MONTHS = "january february march april june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS_AND_DAYS = frozenset(map(stem, f"{_MONTHS} {_DAYS}".split()))
# The letter of a thing, which would be lost as a short word: "unit A", "Apt. b".
_LETTER = re.compile(
    r"\b(?:unit|apt|apartment|flat|suite|room|block|building|tower|gate|schedule|plan|lot)\.? ([a-z])\b",
    re.IGNORECASE,
)
_LETTER_MARK = "#"
# "e-bike" and "x-ray" are one word, and the second part is another.
_HYPHENATED = re.compile(r"\b([A-Za-z])-([^\W\d_]{2,})")
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
    text = text[:2000]
    words = [_LETTER_MARK + letter.lower() for letter in _LETTER.findall(text)]
    for word in folded_words(joined_hyphens(text)):
        if _UNPARTED.search(word):
            for run in _UNPARTED.findall(word):
                words += [run[index : index + 2] for index in range(max(len(run) - 1, 1))]
        elif word not in FUNCTION_WORDS and word not in _FILLERS:
            words.append(stem(word))
    return tuple(dict.fromkeys(words or folded_words(text)))[:_MAX_WORDS]


def joined_hyphens(text: str) -> str:
    """The text with "ebike bike" for "e-bike"."""
    return _HYPHENATED.sub(r"\1\2 \2", text)


def is_greeting(text: str) -> bool:
    """Whether a text only greets or thanks.

    >>> is_greeting("Hi there!"), is_greeting("hi, what is the rent?"), is_greeting("how are you")
    (True, False, False)
    """
    words = set(folded_words(text[:200]))
    return bool(words & _GREETINGS) and words <= _GREETINGS | _BESIDE


def question_facts(words: Iterable[str]) -> frozenset[str]:
    """Figures, years, months, days and letters of things among a question's words."""
    return frozenset(
        word
        for word in words
        if word[:1].isdigit() or word in _MONTHS_AND_DAYS or word.startswith(_LETTER_MARK)
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
        self._norms.append(sqrt(sum(self.weight(word) ** 2 for word in words)) or 1.0)
        self._facts.append(question_facts(words))
        for word in words:
            if len(self._postings[word]) < _MAX_POSTINGS:
                self._postings[word].append(index)
        return index

    def weight(self, word: str) -> float:
        """How rare a word is in the texts; one that none has counts like the rarest."""
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
            weight = self.weight(word) ** 2
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
            if facts_differ(facts, self._facts[-negative]):
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


def facts_differ(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether each of two questions has figures, months, days or things that the other does not have."""
    return bool(one - other and other - one)


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
