"""Which questions of a set are most alike, by the words they share."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from heapq import nsmallest
from math import log, sqrt

from answerkey.text.normalise import FUNCTION_WORDS, folded_words

# Questions that are compared by one shared word; a word that more questions have says little about any of them.
_MAX_POSTINGS = 60
# Questions that are compared at all: those that share the rarest words.
_MAX_CANDIDATES = 60


class QuestionIndex:
    """Finds similar texts in a list. Rare words count more than frequent ones.

    >>> QuestionIndex(["rent in May", "rent in June", "who is the agent"]).nearest(0, 2)
    [1]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = [frozenset(folded_words(text)) - FUNCTION_WORDS for text in texts]
        uses = Counter(word for words in self._words for word in words)
        self._squares = {word: log(1 + len(texts) / count) ** 2 for word, count in uses.items()}
        self._postings: dict[str, list[int]] = defaultdict(list)
        for index, words in enumerate(self._words):
            for word in words:
                if len(self._postings[word]) < _MAX_POSTINGS:
                    self._postings[word].append(index)
        self._norms = [sqrt(sum([self._squares[word] for word in words])) for words in self._words]

    def nearest(self, index: int, count: int) -> list[int]:
        """The indices of the most similar other texts, the most similar first; none that shares no word."""
        words = self._words[index]
        candidates: set[int] = set()
        for word in sorted(words, key=self._squares.__getitem__, reverse=True):
            candidates.update(self._postings[word])
            if len(candidates) > _MAX_CANDIDATES:
                break
        candidates.discard(index)
        ranked = [
            (-sum([self._squares[word] for word in words & self._words[other]]) / self._norms[other], other)
            for other in candidates
        ]
        return [other for _, other in nsmallest(count, ranked)]
