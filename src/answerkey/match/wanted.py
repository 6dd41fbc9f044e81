"""A question and one way to say a keyword, prepared once: its terms (words, amounts, dates, codes) and what each tells."""

import re
from functools import lru_cache
from typing import NamedTuple

from answerkey.match.model import WORDS
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import FUNCTION_WORDS, folded_text, folded_words, stem
from answerkey.text.quantities import Quantity, find_quantities

_PARENTHESES = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
# What follows is another way to say it ("Gurkha or Nepalese", "(accept Duke of Cambridge)").
_ALTERNATIVE = re.compile(r"\s*[,;(]?\s*\b(?:or|accept|also known as|aka)\b:?\s*|\s+/\s+", re.IGNORECASE)
# What follows is a remark on what stands before ("Cher, in 1998, with the song Believe").
_REMARK = re.compile(
    r"[,;:(\[]|\s[-–—]\s|\.\s|\s\b(?:who|which|where|because|when|while|after|for)\b", re.IGNORECASE
)
_LIST = re.compile(r",\s|;\s|\s(?:and|&|\+)\s")
# A name, number or address that is not read as words: "W-9", "JD0146 0012", "1-800-555-0173", "ap@firm.example".
_CODE = re.compile(
    r"(?<!\S)(?=\S*[0-9@])(?:\S*@\S+|[A-Za-z]+[-./]?[0-9][\w./-]*(?: [0-9]{2,})*|[A-Z]{1,4}(?: ?[0-9]{2,}){2,}|[0-9]{9,}"
    r"|[0-9]+[A-Z_#]\S*|[0-9]{2,}[-. ]0\S+|[0-9.]+(?:[-./ ()]+[0-9]+){2,}|[0-9]{3,}-[0-9]{4,})(?!\S)"
)
_GAP = r"[\s().\-\u2010-\u2013/_#:]{0,2}"
_TOO_LONG = 4000
# The weight from which a word tells something on its own.
_TELLING = 0.5
# A part of a name beside another capitalised word: Neil Sedaka, or Paul Young, for Neil Young.
_OTHER_NAME = r"\b{0} (?!{1}\b)[A-Z]\w|\b(?!{0}\b)[A-Z]\w+ {1}\b"
# A code finds itself however its parts are set apart.
Value = Quantity | Date | re.Pattern[str]


class Term(NamedTuple):
    """One word, folded, or one value of what is wanted."""

    word: str
    # How much it tells, from 0.1 for a word of the question to 2 for a date.
    weight: float
    value: Value | None = None


class Asked:
    """A question's words: what a reply repeats of them tells nothing, and where they stand the answer is looked for."""

    def __init__(self, question: str) -> None:
        self.folded = folded_text(question[:_TOO_LONG])
        words = self.folded.split()
        self.stems = frozenset(map(stem, words))
        # What singles out what is asked about.
        self.named = frozenset(words) - FUNCTION_WORDS
        self.telling = set(map(stem, self.named))


prepare_asked = lru_cache(maxsize=8192)(Asked)


class Wanted:
    """One accepted way to say a keyword, ready to be compared with replies."""

    def __init__(self, text: str, asked: Asked) -> None:
        self.text = text
        words = folded_words(text)
        self.phrase, self.size = f" {' '.join(words)} ", len(words)
        terms = _read_terms(text, asked)
        # What tells something; if nothing does, all of it.
        self.terms = [term for term in terms if term.weight >= _TELLING] or terms
        self.total = sum(term.weight for term in self.terms)
        pairs = re.findall(r"(?=\b([A-Z]\w+) ([A-Z]\w+))", text)
        self.other_name = "|".join(_OTHER_NAME.format(*pair) for pair in pairs)
        # Whether it tells an amount that is more than its digits.
        figure = self.terms[0].value if len(self.terms) == 1 else None
        self.signed = isinstance(figure, Quantity) and (figure.dimension != "" or figure.numbers[0] < 0)
        # "W9" for W-9, "dot" for Department of Transportation; and the other way round.
        self.short = _short_forms(words, asked)
        self.acronym = text.strip().lower() if re.fullmatch(r"\s*[A-Z]{3,6}\s*", text) else ""


def _short_forms(words: list[str], asked: Asked) -> list[str]:
    """The words run together, and their first letters, as they would stand in a folded reply."""
    forms = [f" {''.join(words)}"] if len(words) > 1 else []
    for some in (words, [word for word in words if word not in FUNCTION_WORDS]):
        letters = "".join(word[0] for word in some)
        if 3 <= len(letters) <= 8 and letters not in asked.stems:
            forms.append(f" {letters} ")
    return forms


def _read_terms(text: str, asked: Asked) -> list[Term]:
    """Dates first, then codes and amounts, then the words around them."""
    found: list[tuple[int, int, Value]] = [(date.start, date.end, date) for date in find_dates(text)]
    found += [(*code.span(), _code_pattern(code[0])) for code in _CODE.finditer(text)]
    found += [(amount.start, amount.end, amount) for amount in find_quantities(text)]
    taken: list[tuple[int, int, Value]] = []
    for one in found:
        if all(one[1] <= start or end <= one[0] for start, end, _ in taken):
            taken.append(one)
    terms: list[Term] = []
    at = 0
    for start, end, value in (*sorted(taken, key=lambda one: one[0]), (len(text), len(text), None)):
        terms += [Term(word, _weight(word, asked)) for word in folded_words(text[at:start])]
        if value is not None:
            known = folded_text(text[start:end]) in asked.folded
            terms.append(Term("", 2.0 if isinstance(value, Date) else 0.2 if known else 1.5, value))
        at = end
    return terms


def _code_pattern(code: str) -> re.Pattern[str]:
    """The code's letters and digits in a row with any punctuation between them; a leading country code may lack."""
    parts = re.findall(r"[^\W\d_]+|[0-9]+|[@]", code[:60])
    if len(parts) > 2 and parts[0] == "1" and parts[1].isdigit():
        parts = parts[1:]
    body = _GAP.join(_GAP.join(part) if part.isdigit() and len(part) > 4 else part for part in parts)
    return re.compile(rf"(?<![^\W_]){body}(?![^\W_]|[.-][0-9])", re.IGNORECASE)


def _weight(word: str, asked: Asked) -> float:
    """What a word tells: little if it is a function word, a title, or already in the question."""
    if word in WORDS["denies"]:
        return 0.6
    if stem(word) in asked.stems or word in FUNCTION_WORDS:
        return 0.1
    return 0.3 if word in WORDS["light"] else min(1.2, 0.5 + 0.1 * len(word))


def prepare_wanted(text: str, asked: Asked) -> list[Wanted]:
    """A text ready for comparison without what it has in parentheses, and the ways to say it that it names."""
    text = text[:_TOO_LONG]
    bare = _PARENTHESES.sub(" ", text)
    full = Wanted(bare if folded_words(bare) else text, asked)
    parts = _ALTERNATIVE.split(text)
    # A list is one thing, and so is a date or a figure: "April 15" is not April 15, 2024.
    if not _LIST.search(text) and all(term.value is None for term in full.terms):
        parts = [_REMARK.split(part.lstrip("(["), maxsplit=1)[0] for part in parts]
    others = [Wanted(_PARENTHESES.sub(" ", part).strip("()[] "), asked) for part in parts if part != text]
    return [way for way in (full, *others) if way.total >= _TELLING or (way is full and way.terms)]
