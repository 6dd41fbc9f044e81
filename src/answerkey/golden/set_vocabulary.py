"""Words that any reply may hold: too common or too generic to show that a chatbot knows something."""

import re
from collections.abc import Iterable
from importlib.resources import files

from answerkey.model.question import QuestionSet

__all__ = ["COMMON_WORDS", "GENERIC_TERMS", "Vocabulary"]

_WORD = re.compile(r"[^\W\d_]+")
_NAMED = 3


def _listed(name: str) -> frozenset[str]:
    return frozenset((files("answerkey.golden") / "words" / f"{name}.txt").read_text("utf-8").split())


# Function words and fillers: they stand in almost every English reply.
COMMON_WORDS = _listed("common")
# Words of business that replies about any subject contain; the standard's own examples are "property" and "LLC".
GENERIC_TERMS = _listed("generic")
# Further words that business replies are full of: what a short keyword may be found inside of.
BUSINESS_WORDS = _listed("business")


class Vocabulary:
    """The words that a short keyword may be found inside of: the golden set's own first, then those of business."""

    def __init__(self, questions: QuestionSet) -> None:
        own = {word for text in _texts(questions) for word in _WORD.findall(text.lower())}
        ordered = [
            word
            for words in (own, GENERIC_TERMS, BUSINESS_WORDS, COMMON_WORDS)
            for word in sorted(words, key=lambda word: (len(word), word))
        ]
        # One text, so that looking for letters inside all words is one fast search.
        self._text = "\n" + "\n".join(dict.fromkeys(ordered)) + "\n"
        self._known: dict[str, tuple[str, ...]] = {}

    def inside(self, letters: str) -> tuple[str, ...]:
        """A few words that contain the letters, except the letters themselves and their plural."""
        if letters not in self._known:
            self._known[letters] = tuple(self._search(letters))
        return self._known[letters]

    def _search(self, letters: str) -> list[str]:
        found: list[str] = []
        at = self._text.find(letters)
        while at >= 0 and len(found) < _NAMED:
            start, end = self._text.rfind("\n", 0, at) + 1, self._text.find("\n", at)
            word = self._text[start:end]
            if word not in (letters, letters + "s"):
                found.append(word)
            at = self._text.find(letters, end)
        return found


def _texts(questions: QuestionSet) -> Iterable[str]:
    for question in questions:
        for turn in question.asks:
            yield turn.question
            if turn.reference_answer:
                yield turn.reference_answer
