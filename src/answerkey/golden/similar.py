"""Which questions of a set are most alike, by the words they share."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from heapq import nlargest
from math import log, sqrt

from answerkey.text.normalise import FUNCTION_WORDS, folded_words

# Questions that are compared by one shared word; a word that more questions have says little about any of them.
_MAX_POSTINGS = 300


class QuestionIndex:
    """Finds similar texts in a list. Rare words count more than frequent ones.

    >>> QuestionIndex(["rent in May", "rent in June", "who is the agent"]).nearest(0, 2)
    [1]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = [frozenset(folded_words(text)) - FUNCTION_WORDS for text in texts]
        uses = Counter(word for words in self._words for word in words)
        self._weights = {word: log(1 + len(texts) / count) for word, count in uses.items()}
        self._postings: dict[str, list[int]] = defaultdict(list)
        for index, words in enumerate(self._words):
            for word in words:
                if len(self._postings[word]) < _MAX_POSTINGS:
                    self._postings[word].append(index)
        self._norms = [sqrt(sum([self._weights[word] ** 2 for word in words])) for words in self._words]

    def nearest(self, index: int, count: int) -> list[int]:
        """The indices of the most similar other texts, the most similar first; none that shares no word."""
        shared: dict[int, float] = defaultdict(float)
        for word in self._words[index]:
            weight = self._weights[word] ** 2
            for other in self._postings[word]:
                shared[other] += weight
        shared.pop(index, None)
        return nlargest(count, shared, key=lambda other: (shared[other] / self._norms[other], -other))
