"""Reading a question: the longest phrases in it that the records or the lexicon know, its periods and its limits."""

import re
from collections.abc import Callable
from datetime import date

import msgspec

from answerkey_demo.language.periods import Period, find_periods
from answerkey_demo.language.vocabulary import Vocabulary
from answerkey_demo.language.words import STOPWORDS, Word, normalise, stems, words_of

__all__ = ["Limit", "Mention", "Reading", "read"]

_LIMIT = re.compile(
    r"\b(?P<word>over|above|more than|at least|exceed(?:s|ing)?|greater than|higher than|under|below|less than|lower than|"
    r"at most|no more than|cheaper than) \$?(?P<n>\d[\d,]*(?:\.\d+)?)(?P<k>k\b)?"
)
_SIGNS = {"at least": ">=", "at most": "<=", "no more than": "<="}
_SINGULAR = re.compile(
    r"\b(?:our|my|the|main|this) (?:\w+ )?(?:property|building|house|place|real estate)\b(?! (?:tax|manage|insur|mana))"
)
_PLURAL = re.compile(r"\b(?:properties|buildings|houses|portfolio|each|every|combined|together|all)\b")


class Mention(msgspec.Struct, frozen=True):
    """Something that the question names."""

    # property, unit, party, category, group, kind, document, type, obligation, op, by, field, subject, condition, unless,
    # content, topic, text
    kind: str
    value: str
    # the words of the question that say it
    first: int
    end: int


class Limit(msgspec.Struct, frozen=True):
    """An amount that something is above or below."""

    sign: str
    amount: float
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
        strong = [m for m in known if m.kind != "text"]
        longest = [
            m
            for m in known
            if m.kind == "text"
            or not any(
                o.first <= m.first and m.end <= o.end and o.end - o.first > m.end - m.first for o in strong
            )
        ]
        return msgspec.structs.replace(self, mentions=longest)

    def said(self, kind: str) -> tuple[int, int] | None:
        """The words from the first to the last mention of a kind."""
        found = [m for m in self.mentions if m.kind == kind]
        return (min(m.first for m in found), max(m.end for m in found)) if found else None

    def left(self, explained: set[int]) -> list[int]:
        """The words with content that are not among the explained ones."""
        return [
            i
            for i, word in enumerate(self.words)
            if i not in explained
            and word.text not in STOPWORDS
            and (len(word.text) > 1 or word.text.isdigit())
        ]

    def explained(self, *mentions: Mention) -> set[int]:
        """The words that these mentions consist of, and those of periods and limits."""
        spans = [p.span for p in self.periods] + [limit.span for limit in self.limits]
        found = {i for m in mentions for i in range(m.first, m.end)}
        return found | {i for span in spans for i in _inside(self.words, span)}

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
    for mention in [m for m in mentions if m.kind == "party"]:
        own = stems(mention.value)
        mentions += [Mention("party", mention.value, i, i + 1) for i, w in enumerate(words) if w.stem in own]
    # a house number is no year, and the year of "Tax Notes for 2024" is part of a name
    masked = list(text)
    for mention in mentions:
        if mention.kind in ("property", "document"):
            start, end = words[mention.first].start, words[mention.end - 1].end
            masked[start:end] = "#" * (end - start)
    periods = find_periods("".join(masked), as_of, base)
    limits = []
    for found in _LIMIT.finditer("".join(masked)):
        sign = _SIGNS.get(found["word"]) or (
            "<" if re.match("under|below|less|lower|cheap", found["word"]) else ">"
        )
        amount = float(found["n"].replace(",", "").rstrip(".")) * (1000 if found["k"] else 1)
        if not any(p.span[0] < found.end() and p.span[1] > found.start("n") for p in periods):
            limits.append(Limit(sign, amount, found.span()))
    spans = [p.span for p in periods] + [limit.span for limit in limits]
    taken = {i for span in spans for i in _inside(words, span)}
    kept = [m for m in mentions if not set(range(m.first, m.end)) <= taken]
    return Reading(question.strip(), text, words, kept, periods, limits)


def _inside(words: list[Word], span: tuple[int, int]) -> list[int]:
    return [i for i, w in enumerate(words) if w.start < span[1] and w.end > span[0]]
