"""One accepted answer, prepared: its words, what each is worth, and the parts that would do on their own."""

import re
from functools import lru_cache

from answerkey.match.smart.once import once
from answerkey.match.smart.vocabulary import LIGHT_WORDS, QUALIFIERS
from answerkey.text.normalise import FUNCTION_WORDS, folded_words, stem, stem_probe, stem_words
from answerkey.text.number_words import NUMBER_NAMES, spell_out_digits, write_out_scales

__all__ = ["TELLING", "Wanted", "prepare_wanted", "question_stems"]

_PARENTHESES = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
# What follows is another way to say it ("Gurkha or Nepalese", "(accept Duke of Cambridge)"): an answer of its own.
_ALTERNATIVE = re.compile(r"\s*[,;(]?\s*\b(?:or|accept|also known as|aka)\b:?\s*|\s+/\s+", re.IGNORECASE)
# What follows is a remark on what stands before ("Cher, in 1998, with the song Believe").
_REMARK = re.compile(
    r"[,;:(\[]|\s[-–—]\s|\.\s|\s\b(?:who|which|where|because|when|while|after|for)\b", re.IGNORECASE
)
# What stands between the items of a list.
_ITEMS = re.compile(r"\s*[,;]\s*(?:and\s+|&\s*)?|\s+(?:and|&|\+)\s+", re.IGNORECASE)
# An item that begins with a small letter, or with "the", is not a name.
_LOWER_ITEM = re.compile(r"(?:^|[,;&]|\band\b)\s*[a-z]")
_LONGEST_TERM = 3
# A keyword of plain words or digits, and the words that would make more of it: another way to say it, a remark, a list, a number.
_PLAIN = re.compile(r"[A-Za-z]{1,40}(?: [A-Za-z]{1,40}){0,4}|[0-9]{1,18}")
_PARTING_WORDS = NUMBER_NAMES | {
    "or", "accept", "also", "aka", "who", "which", "where", "because", "when", "while", "after", "for", "and", "a",
}  # fmt: skip
# The weight from which a word tells something on its own.
TELLING = 0.5
_TOO_LONG = 4000


class Wanted:
    """An accepted answer ready to be compared with replies."""

    def __init__(self, text: str, words: list[str], asked: frozenset[str]) -> None:
        # As the golden set has it.
        self.text = text
        self.words = words
        self.phrase = f" {' '.join(words)} "
        self._asked = asked
        # One number and nothing else.
        self.is_number = len(words) == 1 and (words[0][0].isdigit() or words[0][0] == ".")
        # A list whose items are all names or numbers: every one of them is wanted.
        self.lists_names = False
        # Index ranges of the items if the answer is a list ("Chile and Argentina"), else empty.
        self.items: list[tuple[int, int]] = []
        # How much of the accepted answer this is: below 1 for the part before a remark.
        self.share = 1.0

    # What follows is needed only where the words do not stand in the reply in a row.

    @once
    def lowered(self) -> str:
        return self.text.strip().lower()

    @once
    def stems(self) -> list[str]:
        return stem_words(self.words)

    @once
    def probes(self) -> list[str]:
        """What any word of each stem begins with."""
        return list(map(stem_probe, self.stems))

    @once
    def numeric(self) -> list[bool]:
        return [word[0].isdigit() or word[0] == "." for word in self.words]

    @once
    def weights(self) -> list[float]:
        return [
            weight_of(word, stemmed, numeric, self._asked)
            for word, stemmed, numeric in zip(self.words, self.stems, self.numeric, strict=True)
        ]

    @once
    def total(self) -> float:
        return sum(self.weights)

    @once
    def telling(self) -> int:
        """How many of the words tell something on their own."""
        return sum(1 for weight in self.weights if weight >= TELLING)

    @once
    def telling_words(self) -> list[tuple[str, str, str]]:
        """Those words of a term, and what qualifies it, with their stems and what any word of that stem begins with."""
        told = []
        for word in self.words:
            stemmed = stem(word)
            numeric = word[0].isdigit() or word[0] == "."
            weight = weight_of(word, stemmed, numeric, self._asked)
            if weight >= TELLING or (word in QUALIFIERS and stemmed not in self._asked):
                told.append((word, stemmed, stem_probe(stemmed)))
        return told

    @once
    def told_phrase(self) -> str:
        """The phrase without the question's own words; empty if nothing is left."""
        told = [
            word for word, stemmed in zip(self.words, self.stems, strict=True) if stemmed not in self._asked
        ]
        return f" {' '.join(told)} " if told else ""

    @once
    def compact(self) -> str:
        """Written together, "sea shells" as "seashells"."""
        return "".join(self.words)

    @once
    def compact_stem(self) -> str:
        return stem(self.compact) if len(self.words) > 1 else ""

    @once
    def compact_probe(self) -> str:
        return stem_probe(self.compact_stem)

    @once
    def least(self) -> float:
        """A word counts as a sign of the answer from this weight on: if nothing tells much, every word does."""
        return 0.25 if self.total >= 0.25 else 0.0

    @once
    def initials(self) -> str:
        """ "iwc" for International Whaling Commission; only where there are enough words to be told apart."""
        if len(self.words) < 3:
            return ""
        letters = [word[0] for word in self.words if word not in FUNCTION_WORDS]
        return "".join(letters) if 3 <= len(letters) <= 8 and not any(self.numeric) else ""

    @once
    def is_term(self) -> bool:
        """A term such as "net operating income": no names, no numbers, three words at most."""
        words = self.words
        return (
            len(words) <= _LONGEST_TERM
            and self.text == self.text.lower()
            and not any(word[0].isdigit() or word[0] == "." for word in words)
        )


def weight_of(word: str, stemmed: str, numeric: bool, asked: frozenset[str]) -> float:
    """What a word tells: little if it is a function word, a title, or already in the question."""
    if stemmed in asked:
        return 0.1
    if numeric:
        return 1.5
    if word in FUNCTION_WORDS:
        return 0.1
    if word in LIGHT_WORDS:
        return 0.3
    if len(word) == 1:
        return 0.2
    return min(1.2, 0.5 + 0.1 * len(word))


@lru_cache(maxsize=8192)
def question_stems(question: str) -> frozenset[str]:
    """The stems of the words that the question gives away."""
    return frozenset(map(stem, folded_words(question)))


def prepare_wanted(text: str, asked: frozenset[str]) -> list[Wanted]:
    """The accepted answer ready for comparison, with the ways to say it that it names and its part before any remark."""
    plain = _PLAIN.fullmatch(text)
    if plain and _PARTING_WORDS.isdisjoint(text.lower().split()):
        # Most keywords: a few words without anything that could part them, or a number in digits.
        words = folded_words(text)
        return [Wanted(text, words, asked)] if words else []
    text = text[:_TOO_LONG]
    spelled = spell_out_digits(write_out_scales(text))
    prepared: list[Wanted] = []

    def add(part: str, whole: float) -> Wanted | None:
        words = folded_words(part)
        if not words:
            return None
        wanted = Wanted(part, words, asked)
        if whole:
            wanted.share = min(1.0, wanted.total / whole)
        prepared.append(wanted)
        return wanted

    full = add(_PARENTHESES.sub(" ", spelled), 0.0) or add(spelled, 0.0)
    if full is None:
        return []
    full.items = _list_items(_PARENTHESES.sub(" ", spelled), full)
    full.lists_names = bool(full.items) and not _LOWER_ITEM.search(full.text)
    ways = [way for way in _ALTERNATIVE.split(spelled) if way]
    if len(ways) > 1:
        for way in ways:
            add(_PARENTHESES.sub(" ", way).strip("()[] "), 0.0)
    if full.items:
        # The first item of a list is not an answer.
        return prepared
    head = _REMARK.split(spelled.lstrip("(["), maxsplit=1)[0]
    if len(head) < len(spelled.rstrip()):
        part = add(head, full.total)
        if part is not None and (part.phrase == full.phrase or part.total < 0.5):
            prepared.pop()
    return prepared


def _list_items(text: str, wanted: Wanted) -> list[tuple[int, int]]:
    """The items of an answer that is a list: "and" or two commas between short items that each tell something."""
    pieces = [piece for piece in _ITEMS.split(text) if piece.strip()]
    if len(pieces) < 2 or (len(pieces) == 2 and not _AND.search(text)):
        return []
    items: list[tuple[int, int]] = []
    at = 0
    for piece in pieces:
        count = len(folded_words(piece))
        if not 1 <= count <= 4:
            return []
        if max(wanted.weights[at : at + count], default=0.0) < 0.25:
            return []
        items.append((at, at + count))
        at += count
    return items if at == len(wanted.words) else []


_AND = re.compile(r"\band\b|&", re.IGNORECASE)
