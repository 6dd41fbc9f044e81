"""One reply, prepared: its folded words and what alignment asks of them, each computed once and only if needed."""

import re
from functools import lru_cache

from answerkey.text.normalise import FUNCTION_WORDS, folded_text, stem, stem_words
from answerkey.text.number_words import SCALE_WORDS, has_number_words, worths_in_words, worths_with_scale
from answerkey.text.numbers import bare_digits, find_numbers, significant_digits
from answerkey.text.smart.negation import may_deny

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
    """The words of a reply to one question. What is costly is worked out when first asked for, and kept."""

    __slots__ = (
        "_abstains",
        "_bare",
        "_by_letter",
        "_may_deny",
        "_plain",
        "_scaled",
        "_spelled",
        "_stem_set",
        "_stems",
        "_told",
        "_told_joined",
        "_word_set",
        "_words",
        "asked",
        "joined",
        "lowered",
        "text",
    )  # fmt: skip

    def __init__(self, text: str, asked: frozenset[str]) -> None:
        self.text = text
        # Stems of the question's words: what the reply repeats of them tells nothing.
        self.asked = asked
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        self.joined = folded_text(text)
        # Only for finding where a phrase stands; None where lower-casing moves what follows.
        lowered = text.lower()
        self.lowered: str | None = lowered if len(lowered) == len(text) else None
        self._may_deny: bool | None = None
        self._words: list[str] | None = None
        self._word_set: frozenset[str] | None = None
        self._stems: list[str] | None = None
        self._stem_set: frozenset[str] | None = None
        self._by_letter: dict[str, list[str]] | None = None
        self._told: list[str] | None = None
        self._told_joined: str | None = None
        self._abstains: bool | None = None
        self._bare: str | None = None
        self._plain: dict[str, tuple[int, int]] | None = None
        self._scaled: dict[str, tuple[int, int]] | None = None
        self._spelled: dict[str, tuple[int, int]] | None = None

    @property
    def may_deny(self) -> bool:
        """Whether the reply may deny anything at all."""
        if self._may_deny is None:
            self._may_deny = self.lowered is None or may_deny(self.lowered)
        return self._may_deny

    @property
    def words(self) -> list[str]:
        if self._words is None:
            self._words = self.joined.split()
        return self._words

    @property
    def word_set(self) -> frozenset[str]:
        if self._word_set is None:
            self._word_set = frozenset(self.words)
        return self._word_set

    @property
    def stems(self) -> list[str]:
        if self._stems is None:
            self._stems = stem_words(self.words)
        return self._stems

    @property
    def stem_set(self) -> frozenset[str]:
        if self._stem_set is None:
            self._stem_set = frozenset(self.stems)
        return self._stem_set

    def is_split(self, word: str) -> bool:
        """Whether a word stands in the reply as two: "book keeping" for "bookkeeping"."""
        joined = self.joined
        return any(f" {word[:cut]} {word[cut:]} " in joined for cut in range(2, len(word) - 1))

    def spellable(self, letter: str) -> list[str]:
        """The distinct words that a typo could be in, by first letter: four letters or more, not from the question."""
        if self._by_letter is None:
            self._by_letter = {}
        found = self._by_letter.get(letter)
        if found is None:
            words = dict.fromkeys(_words_from(letter).findall(self.joined))
            asked = self.asked
            found = [word for word in words if stem(word) not in asked]
            self._by_letter[letter] = found
        return found

    @property
    def told_joined(self) -> str:
        """The words that the question does not give away, joined like `joined`."""
        if self._told_joined is None:
            told = [w for w, s in zip(self.words, self.stems, strict=True) if s not in self.asked]
            self._told_joined = f" {' '.join(told)} "
        return self._told_joined

    @property
    def told(self) -> list[str]:
        """The stems of the words that tell something: neither in the question nor function words."""
        if self._told is None:
            self._told = [
                stemmed
                for word, stemmed in zip(self.words, self.stems, strict=True)
                if stemmed not in self.asked and word not in FUNCTION_WORDS
            ]
        return self._told

    @property
    def tells_number(self) -> bool:
        """Whether the reply has a number that the question does not give away."""
        return any(word[0].isdigit() and word not in self.asked for word in self.word_set)

    @property
    def abstains(self) -> bool:
        """Whether the reply begins by saying that it does not know."""
        if self._abstains is None:
            self._abstains = _ABSTAINS.search(self.text, 0, _BEGINNING) is not None
        return self._abstains

    def find_worth(self, worth: str) -> tuple[int, int] | None:
        """Where a number of this worth stands, however it is written; cheap looks before costly ones."""
        if self._bare is None:
            self._bare = bare_digits(self.text)
        digits = significant_digits(worth)
        if digits in self._bare:
            if self._plain is None:
                self._plain = {}
                for number in find_numbers(self.text):
                    self._plain.setdefault(number.canonical, (number.start, number.end))
            span = self._plain.get(worth)
            if span is not None:
                return span
        # "442.3K" has the digits of 442300 without its last zeros, "nine hundred" has none.
        if (digits.rstrip("0") or "0") in self._bare and not SCALE_WORDS.isdisjoint(self.word_set):
            if self._scaled is None:
                self._scaled = worths_with_scale(self.text)
            span = self._scaled.get(worth)
            if span is not None:
                return span
        if self._spelled is None:
            self._spelled = worths_in_words(self.text) if has_number_words(self.text) else {}
        return self._spelled.get(worth)


@lru_cache(maxsize=4096)
def _words_from(letter: str) -> re.Pattern[str]:
    """Finds the words of a joined text that begin with a letter and have four or more."""
    return re.compile(rf" ({re.escape(letter)}[^ ]{{3,}})")
