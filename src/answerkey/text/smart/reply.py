"""One reply, prepared: its folded words and what alignment asks of them, each computed once and only if needed."""

import re
from functools import cached_property
from itertools import pairwise

from answerkey.text.normalise import FUNCTION_WORDS, folded_text, stem, stem_words
from answerkey.text.number_words import has_number_words, worths_in_words, worths_with_scale
from answerkey.text.numbers import find_numbers

__all__ = ["ReplyWords"]

# How a reply begins that says it does not know; people do not count what it mentions in passing.
_ABSTAINS = re.compile(
    r"(?:could|can|did|do|was|am|is|has|have)(?:\s*not|n['’]t)(?: been)?(?: able to| aware| sure)?"
    r"(?: find| know| have| determine| provide| any| enough)* (?:any |enough |the |specific )*"
    r"(?:information|answer|record|data|evidence)"
    r"|not sure|unable to|no information|don['’]t know|not clear|unclear",
    re.IGNORECASE,
)
_BEGINNING = 400


class ReplyWords:
    """The words of a reply to one question."""

    def __init__(self, text: str, asked: frozenset[str]) -> None:
        self.text = text
        # Stems of the question's words: what the reply repeats of them tells nothing.
        self.asked = asked
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        self.joined = folded_text(text)

    @cached_property
    def words(self) -> list[str]:
        return self.joined.split()

    @cached_property
    def word_set(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def stems(self) -> list[str]:
        return stem_words(self.words)

    @cached_property
    def stem_set(self) -> frozenset[str]:
        return frozenset(self.stems)

    @cached_property
    def runs(self) -> frozenset[str]:
        """Every two and three neighbouring words written together: "sea shells" as "seashells"."""
        words = self.words
        pairs = [one + two for one, two in pairwise(words)]
        return frozenset(pairs).union(pair + word for pair, word in zip(pairs, words[2:], strict=False))

    def writes_together(self, compact: str) -> bool:
        """Whether an answer, written together, is one word of the reply or several neighbouring ones."""
        return compact in self.word_set or compact in self.runs or stem(compact) in self.stem_set

    @cached_property
    def spellable(self) -> dict[str, list[str]]:
        """The distinct words that a typo could be in, by first letter: four letters or more, not from the question."""
        by_letter: dict[str, list[str]] = {}
        for word, stemmed in dict(zip(self.words, self.stems, strict=True)).items():
            if len(word) > 3 and stemmed not in self.asked:
                by_letter.setdefault(word[0], []).append(word)
        return by_letter

    @cached_property
    def told_joined(self) -> str:
        """The words that the question does not give away, joined like `joined`."""
        told = [w for w, s in zip(self.words, self.stems, strict=True) if s not in self.asked]
        return f" {' '.join(told)} "

    @cached_property
    def told(self) -> list[str]:
        """The stems of the words that tell something: neither in the question nor function words."""
        return [
            stemmed
            for word, stemmed in zip(self.words, self.stems, strict=True)
            if stemmed not in self.asked and word not in FUNCTION_WORDS
        ]

    @cached_property
    def tells_number(self) -> bool:
        """Whether the reply has a number that the question does not give away."""
        return any(word[0].isdigit() and word not in self.asked for word in self.word_set)

    @cached_property
    def abstains(self) -> bool:
        """Whether the reply begins by saying that it does not know."""
        return _ABSTAINS.search(self.text, 0, _BEGINNING) is not None

    @cached_property
    def worths(self) -> dict[str, tuple[int, int]]:
        """Every number in the reply, however it is written: canonical worth to the span of its first place."""
        worths: dict[str, tuple[int, int]] = {}
        for number in find_numbers(self.text):
            worths.setdefault(number.canonical, (number.start, number.end))
        if has_number_words(self.word_set):
            for worth, span in worths_in_words(self.text).items():
                worths.setdefault(worth, span)
        for worth, span in worths_with_scale(self.text).items():
            worths.setdefault(worth, span)
        return worths
