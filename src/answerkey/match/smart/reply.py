"""One reply, prepared: its folded words and what alignment asks of them, each computed once and only if needed."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from answerkey.match.smart.negation import may_deny
from answerkey.match.smart.once import once
from answerkey.text.normalise import FUNCTION_WORDS, folded_text, stem, stem_words
from answerkey.text.number_words import SCALE_WORDS, may_be_spelled, worths_in_words, worths_with_scale
from answerkey.text.numbers import (
    Number,
    bare_digits,
    find_numbers,
    number_at,
    significant_digits,
    whole_number_end,
    with_commas,
)

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
# One of these is in whatever `_ABSTAINS` finds.
_ABSTAINING_WORDS = ("not", "n't", "n’t", "unable to", "no information", "unclear")


class ReplyWords:
    """The words of a reply to one question. What is costly is worked out when first asked for, and kept."""

    def __init__(self, text: str, asked: frozenset[str]) -> None:
        self.text = text
        # Stems of the question's words: what the reply repeats of them tells nothing.
        self.asked = asked
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        self.joined = folded_text(text)
        # Only for finding where a phrase stands; None where lower-casing moves what follows.
        lowered = text.lower()
        self.lowered: str | None = lowered if len(lowered) == len(text) else None

    @once
    def may_deny(self) -> bool:
        """Whether the reply may deny anything at all."""
        return self.lowered is None or may_deny(self.lowered)

    @once
    def words(self) -> list[str]:
        return self.joined.split()

    @once
    def word_set(self) -> frozenset[str]:
        return frozenset(self.words)

    @once
    def stems(self) -> list[str]:
        return stem_words(self.words)

    @once
    def stem_set(self) -> frozenset[str]:
        return frozenset(self.stems)

    def is_split(self, word: str) -> bool:
        """Whether a word stands in the reply as two: "book keeping" for "bookkeeping"."""
        if word not in self._squeezed:
            return False
        joined = self.joined
        return any(f" {word[:cut]} {word[cut:]} " in joined for cut in range(2, len(word) - 1))

    @once
    def _squeezed(self) -> str:
        """Without spaces: what stands in the reply as two words stands here as one."""
        return self.joined.replace(" ", "")

    def spellable(self, letter: str, shortest: int, longest: int) -> Iterable[str]:
        """The distinct words with this first letter and a length within these bounds."""
        return dict.fromkeys(_words_from(letter, shortest, longest).findall(self.joined))

    def begun_with(self, word: str) -> str | None:
        """The first longer word that begins with this one and is not the question's: "bookkeeping" for "bookkeep"."""
        for longer in re.findall(rf" ({re.escape(word)}[^ ]+)", self.joined):
            if stem(longer) not in self.asked:
                return str(longer)
        return None

    @once
    def told_joined(self) -> str:
        """The words that the question does not give away, joined like `joined`."""
        told = [w for w, s in zip(self.words, self.stems, strict=True) if s not in self.asked]
        return f" {' '.join(told)} "

    @once
    def told(self) -> list[str]:
        """The stems of the words that tell something: neither in the question nor function words."""
        return [
            stemmed
            for word, stemmed in zip(self.words, self.stems, strict=True)
            if stemmed not in self.asked and word not in FUNCTION_WORDS
        ]

    @once
    def tells_number(self) -> bool:
        """Whether the reply has a number that the question does not give away."""
        return any(word[0].isdigit() and word not in self.asked for word in self.word_set)

    @once
    def abstains(self) -> bool:
        """Whether the reply begins by saying that it does not know."""
        beginning = self.text[:_BEGINNING].lower()
        if not any(map(beginning.__contains__, _ABSTAINING_WORDS)):
            return False
        return _ABSTAINS.search(self.text, 0, _BEGINNING) is not None

    def find_worth(self, worth: str) -> tuple[int, int] | None:
        """Where a number of this worth stands, however it is written; cheap looks before costly ones."""
        digits, leading, grouped = _digits_of(worth)
        text = self.text
        # Mostly the number stands there as it is usually written, with nothing around it that could change its worth.
        at = text.find(grouped)
        plain = text.find(worth) if grouped is not worth else at
        if at < 0 or 0 <= plain < at:
            at = plain
        if at >= 0:
            end = at + (len(grouped) if text.startswith(grouped, at) else len(worth))
            whole = whole_number_end(text, at, end)
            if whole:
                return at, whole
            number = number_at(text, at)
            if number is not None and number.canonical == worth:
                return number.start, number.end
        if at >= 0 or digits in self._bare:
            span = self._plain_span(worth)
            if span is not None:
                return span
        # "442.3K" has the digits of 442300 without its last zeros, "nine hundred" has none.
        if leading in self._bare and not SCALE_WORDS.isdisjoint(self.word_set):
            span = self._scaled.get(worth)
            if span is not None:
                return span
        lowered = self.lowered if self.lowered is not None else text.lower()
        return self._spelled.get(worth) if may_be_spelled(worth, lowered) else None

    def _plain_span(self, worth: str) -> tuple[int, int] | None:
        """The first number in digits of this worth; the reply is read only as far as any keyword needed."""
        plain = self._plain
        span = plain.get(worth)
        if span is None:
            for number in self._unread_numbers:
                canonical = number.canonical
                if canonical not in plain:
                    plain[canonical] = (number.start, number.end)
                    if canonical == worth:
                        return number.start, number.end
        return span

    @once
    def _bare(self) -> str:
        return bare_digits(self.text)

    @once
    def _plain(self) -> dict[str, tuple[int, int]]:
        """Worth and span of the numbers in digits that were read; of equal ones the first."""
        return {}

    @once
    def _unread_numbers(self) -> Iterator[Number]:
        return find_numbers(self.text)

    @once
    def _scaled(self) -> dict[str, tuple[int, int]]:
        return worths_with_scale(self.text)

    @once
    def _spelled(self) -> dict[str, tuple[int, int]]:
        return worths_in_words(self.text)


@lru_cache(maxsize=16384)
def _digits_of(worth: str) -> tuple[str, str, str]:
    """The digits of a worth, those without its last zeros, and the worth with commas, as it is mostly written."""
    digits = significant_digits(worth)
    return digits, digits.rstrip("0") or "0", with_commas(worth)


@lru_cache(maxsize=4096)
def _words_from(letter: str, shortest: int, longest: int) -> re.Pattern[str]:
    """Finds the words of a joined text that begin with a letter and have so many."""
    return re.compile(rf" ({re.escape(letter)}[^ ]{{{shortest - 1},{longest - 1}}})(?= )")
