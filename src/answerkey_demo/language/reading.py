"""Reading a question: everything in it that the records or the lexicon know, its periods and its limits."""

import re
from collections.abc import Callable
from datetime import date

import msgspec

from answerkey_demo.language.periods import Period, find_periods
from answerkey_demo.language.vocabulary import Vocabulary
from answerkey_demo.language.words import STOPWORDS, Word, normalise, stems, words_of

__all__ = ["Limit", "Mention", "Reading", "read"]

_SIGNS = dict.fromkeys(["over", "above", "more than", "exceeding", "greater than", "higher than"], ">")
_SIGNS |= dict.fromkeys(["under", "below", "less than", "lower than", "cheaper than"], "<")
_SIGNS |= {"at least": ">=", "at most": "<=", "no more than": "<="}
_LIMIT = re.compile(rf"\b(?P<word>{'|'.join(_SIGNS)}) \$?(?P<n>\d[\d,]*(?:\.\d+)?)(?P<k>k\b)?")
_SINGULAR = re.compile(
    r"\b(?:our|my|the|main|this) (?:\w+ )?(?:property|building|house|place|real estate)\b(?! (?:tax|manage|insur))"
)
_PLURAL = re.compile(r"\b(?:properties|buildings|houses|portfolio|each|every|combined|together|all)\b")


class Mention(msgspec.Struct, frozen=True):
    """Something that the question names."""

    # property, unit, party, category, group, kind, document, type, obligation, op, by, field, subject, condition,
    # unless, content, topic, text
    kind: str
    value: str
    # the words of the question that say it
    first: int
    end: int


class Limit(msgspec.Struct, frozen=True):
    """An amount that something is above or below."""

    sign: str
    amount: float
    # the characters of the normalised question that said so
    span: tuple[int, int]


class Reading(msgspec.Struct, frozen=True):
    """A question, or a clause of one, and what it names."""

    # as it was written
    original: str
    # normalised
    text: str
    words: list[Word]
    mentions: list[Mention]
    periods: list[Period]
    limits: list[Limit]

    def all(self, kind: str) -> list[str]:
        """What is named of a kind, in the order of the question, each once."""
        return list(dict.fromkeys(m.value for m in self.mentions if m.kind == kind))

    def has(self, kind: str, *values: str) -> bool:
        """Whether something of a kind, or one of these, is named."""
        return any(m.kind == kind and (not values or m.value in values) for m in self.mentions)

    def view(self, mine: Callable[[Mention], bool]) -> "Reading":
        """The reading of one who knows some mentions only: the longest of those at each place of the question.

        A word of a description or of an obligation's name neither hides another mention nor is hidden.
        """
        known = [m for m in self.mentions if mine(m)]
        spans = {(m.first, m.end) for m in known if m.kind != "text"}

        def hidden(m: Mention) -> bool:
            return any(a <= m.first and m.end <= b and b - a > m.end - m.first for a, b in spans)

        longest = [m for m in known if m.kind == "text" or not hidden(m)]
        return msgspec.structs.replace(self, mentions=longest)

    def span(self, mention: Mention) -> tuple[int, int]:
        """The characters of the normalised question that a mention consists of."""
        return self.words[mention.first].start, self.words[mention.end - 1].end

    def explained(self, *mentions: Mention) -> set[int]:
        """The words that these mentions consist of, and those of periods and limits."""
        spans = [p.span for p in self.periods] + [limit.span for limit in self.limits]
        return {i for m in mentions for i in range(m.first, m.end)} | _inside(self.words, spans)

    def left(self, explained: set[int]) -> list[int]:
        """The words with content that are not among the explained ones."""
        content = [i for i, w in enumerate(self.words) if w.text not in STOPWORDS and not _is_letter(w.text)]
        return [i for i in content if i not in explained]

    @property
    def singular(self) -> bool:
        """Says "our property" and means one."""
        return _SINGULAR.search(self.text) is not None and not _PLURAL.search(self.text)


def read(question: str, vocabulary: Vocabulary, as_of: date, base: Period | None = None) -> Reading:
    """Recognise everything that a question names. `base` is the period that the conversation is about."""
    text = normalise(question)
    words = words_of(text)
    mentions = [Mention(*found) for found in vocabulary.find([w.stem for w in words])]
    # of a vendor that is named, the words of its whole name: "plumbing by Redcliff"
    for name in {m.value for m in mentions if m.kind == "party"}:
        own = stems(name)
        mentions += [Mention("party", name, i, i + 1) for i, w in enumerate(words) if w.stem in own]
    # a house number is no year, and the year of "Tax Notes for 2024" is part of a name
    masked = text
    for mention in [m for m in mentions if m.kind in ("property", "document")]:
        start, end = words[mention.first].start, words[mention.end - 1].end
        masked = masked[:start] + "#" * (end - start) + masked[end:]
    periods = find_periods(masked, as_of, base)
    in_periods = _inside(words, [p.span for p in periods])
    limits = []
    for found in _LIMIT.finditer(masked):
        amount = float(found["n"].replace(",", "")) * (1000 if found["k"] else 1)
        if not in_periods & _inside(words, [found.span("n")]):
            limits.append(Limit(_SIGNS[found["word"]], amount, found.span()))
    taken = in_periods | _inside(words, [limit.span for limit in limits])
    kept = [m for m in mentions if not set(range(m.first, m.end)) <= taken]
    return Reading(question.strip(), text, words, kept, periods, limits)


def _inside(words: list[Word], spans: list[tuple[int, int]]) -> set[int]:
    """The words that stand, at least in part, between some characters of the text."""
    return {i for i, w in enumerate(words) if any(w.start < end and w.end > start for start, end in spans)}


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isalpha()
