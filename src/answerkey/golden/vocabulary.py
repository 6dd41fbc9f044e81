"""Words that any reply may hold: too common or too generic to show that a chatbot knows something."""

import re
from collections.abc import Iterable
from importlib.resources import files

from answerkey.question import QuestionSet

__all__ = ["BUSINESS_WORDS", "COMMON_WORDS", "GENERIC_TERMS", "words_of", "words_of_set"]

_WORD = re.compile(r"[^\W\d_]+")


def _listed(name: str) -> frozenset[str]:
    return frozenset((files("answerkey.golden") / "words" / f"{name}.txt").read_text("utf-8").split())


# Function words and fillers: they stand in almost every English reply.
COMMON_WORDS = _listed("common")
# Words of business that replies about any subject contain; the standard's own examples are "property" and "LLC".
GENERIC_TERMS = _listed("generic")
# Further words that business replies are full of: what a short keyword may be found inside of.
BUSINESS_WORDS = _listed("business")


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.lower())


def words_of_set(questions: QuestionSet) -> frozenset[str]:
    """The words that the set's own questions and reference answers are written with."""
    return frozenset(word for text in _texts(questions) for word in words_of(text))


def _texts(questions: QuestionSet) -> Iterable[str]:
    for question in questions:
        for turn in question.asks:
            yield turn.question
            if turn.reference_answer:
                yield turn.reference_answer
