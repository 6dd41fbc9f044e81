"""One accepted answer, prepared: its words, what each is worth, and the parts that would do on their own."""

import re
from functools import lru_cache

from answerkey.text.normalise import FUNCTION_WORDS, folded_words, stem, stem_probe, stem_words
from answerkey.text.number_words import spell_out_digits, write_out_scales
from answerkey.text.smart.vocabulary import LIGHT_WORDS

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
# The weight from which a word tells something on its own.
TELLING = 0.5
_TOO_LONG = 4000


class Wanted:
    """An accepted answer ready to be compared with replies."""

    __slots__ = (
        "compact", "compact_probe", "compact_stem", "initials", "is_number", "is_term", "items", "least", "lists_names",
        "lowered", "numeric", "phrase", "share", "stems", "telling", "telling_words", "text", "told_phrase", "total",
        "weights", "words",
    )  # fmt: skip

    def __init__(self, text: str, words: list[str], asked: frozenset[str]) -> None:
        # As the golden set has it.
        self.text = text
        self.lowered = text.strip().lower()
        self.words = words
        self.phrase = f" {' '.join(words)} "
        self.stems = stem_words(words)
        self.numeric = [word[0].isdigit() or word[0] == "." for word in words]
        self.weights = [
            weight_of(word, stemmed, numeric, asked)
            for word, stemmed, numeric in zip(words, self.stems, self.numeric, strict=True)
        ]
        self.total = sum(self.weights)
        # How many of the words tell something on their own.
        self.telling = sum(1 for weight in self.weights if weight >= TELLING)
        # Those words with their stems and what any word of that stem begins with.
        self.telling_words = [
            (word, stemmed, stem_probe(stemmed))
            for word, stemmed, weight in zip(words, self.stems, self.weights, strict=True)
            if weight >= TELLING
        ]
        told = [word for word, stemmed in zip(words, self.stems, strict=True) if stemmed not in asked]
        # The phrase without the question's own words; empty if nothing is left.
        self.told_phrase = f" {' '.join(told)} " if told else ""
        # Written together, "sea shells" as "seashells".
        self.compact = "".join(words)
        self.compact_stem = stem(self.compact) if len(words) > 1 else ""
        self.compact_probe = stem_probe(self.compact_stem)
        # One number and nothing else.
        self.is_number = len(words) == 1 and self.numeric[0]
        # A word counts as a sign of the answer from this weight on: if nothing tells much, every word does.
        self.least = 0.25 if self.total >= 0.25 else 0.0
        # "iwc" for International Whaling Commission; only where there are enough words to be told apart.
        letters = [word[0] for word in words if word not in FUNCTION_WORDS]
        self.initials = "".join(letters) if 3 <= len(letters) <= 8 and not any(self.numeric) else ""
        # A term such as "net operating income": no names, no numbers, three words at most.
        self.is_term = text == text.lower() and len(words) <= _LONGEST_TERM and not any(self.numeric)
        # A list whose items are all names or numbers: every one of them is wanted.
        self.lists_names = False
        # Index ranges of the items if the answer is a list ("Chile and Argentina"), else empty.
        self.items: list[tuple[int, int]] = []
        # How much of the accepted answer this is: below 1 for the part before a remark.
        self.share = 1.0


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
