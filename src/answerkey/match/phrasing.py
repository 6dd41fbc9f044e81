"""A question and one way to say a keyword, prepared once: its terms (words, amounts, dates, codes) and the weight of each."""

import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from answerkey.text.dates import Date, find_dates, parse_date
from answerkey.text.normalise import FUNCTION_WORDS, folded_text, folded_words, stem
from answerkey.text.numbers import Quantity, find_quantities

FOLDER = resources.files("answerkey.match")
_READ = tomllib.loads(FOLDER.joinpath("vocabulary.toml").read_text("utf-8"))
WORDS = {name: frozenset(words.split()) for name, words in _READ["words"].items()}
# An abbreviation to its possible meanings, and back.
EQUIVALENTS: dict[str, list[str]] = {}
for _one, *_others in map(str.split, _READ["lists"]["abbreviations"].strip().splitlines()):
    for _other in _others:
        EQUIVALENTS.setdefault(_one, []).append(_other)
        EQUIVALENTS.setdefault(_other, []).append(_one)
# Pairs of an abbreviation and its meaning.
Abbreviations = tuple[tuple[str, str], ...]


def read_abbreviations(pairs: Iterable[tuple[str, str]]) -> Abbreviations:
    """The pairs in the form in which they are compared: " po " and " purchase order "."""
    return tuple((folded_text(short), folded_text(meaning)) for short, meaning in pairs)


_ABBREVIATIONS = read_abbreviations(
    (short, meaning)
    for short, _, meaning in (
        line.partition(" = ") for line in _READ["lists"]["phrases"].strip().splitlines()
    )
)
# A word to those that it is never a misspelling of: "employer" and "employee", "Tuesday" and "Thursday".
EXCLUSIVE = {word: line for line in _READ["lists"]["exclusive"].splitlines() for word in line.split()}

# Digits as of a code, and ranks.
_NO_AMOUNT = re.compile(r"^\W*0\d|(?:\d(?:st|nd|rd|th)|(?:first|second|third|[a-z]th))\b", re.IGNORECASE)
_PARENTHESES = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
# What follows is another way to say it ("Gurkha or Nepalese", "(accept Duke of Cambridge)").
_ALTERNATIVE = re.compile(r"\s*[,;(]?\s*\b(?:or|accept|also known as|aka)\b:?\s*|\s+/\s+", re.IGNORECASE)
# What follows is a remark on what precedes it ("Cher, in 1998, with the song Believe").
_REMARK = re.compile(
    r"[,;:(\[]|\s[-–—]\s|\.\s|\s\b(?:who|which|where|because|when|while|after|for)\b", re.IGNORECASE
)
_LIST = re.compile(r",\s|;\s|\s(?:and|&|\+)\s")
# A name, number or address that is not read as words: "W-9", "JD0146 0012", "1-800-555-0173", "ap@firm.example".
_CODE = re.compile(
    r"(?<!\S)(?=\S*[0-9@])(?:\S*@\S+|[A-Za-z]+[-./]?[0-9][\w./-]*(?: [0-9]{2,})*|[A-Z]{1,4}(?: ?[0-9]{2,}){2,}|[0-9]{9,}"
    r"|[0-9]+[A-Z_#]\S*|[0-9]{2,}[-. ]0\S+|[0-9.]+(?:[-./ ()]+[0-9]+){2,}|[0-9]{3,}-[0-9]{4,})(?!\S)"
)
# A whole keyword of at least six signs that are letters in capitals and digits, two of its parts with digits.
_SPACED_CODE = re.compile(
    r"(?=(?:[^A-Z0-9]*[A-Z0-9]){6})(?=.*[A-Z]|\+)(?:\+|[A-Z]{1,4}[ -])?[A-Z]*[0-9][A-Z0-9]*(?:[ -][A-Z]*[0-9][A-Z0-9]*)+"
)
_GAP = r"[\s().\-\u2010-\u2013/_#:]{0,2}"
_TOO_LONG = 4000
# The weight from which a word is informative on its own.
_TELLING = 0.5
# A part of a name beside another capitalised word: Neil Sedaka, or Paul Young, for Neil Young.
_OTHER_NAME = r"\b{0} (?!{1}\b)[A-Z]\w|\b(?!{0}\b)[A-Z]\w+ {1}\b"
# What is before a word with a capital.
_MARKS = '"(*[“‘'
_HAS_DIGIT = re.compile("[0-9]").search
# A question word to the number of its line.
_QUESTION_KINDS = {
    word: float(number)
    for number, line in enumerate(_READ["lists"]["questions"].strip().splitlines(), 1)
    for word in line.split()
}
_HOW, _HOW_ELSE = 4.0, 8.0
# A code finds itself however its parts are set apart.
Value = Quantity | Date | re.Pattern[str]


class Term(NamedTuple):
    """One word, folded, or one value of what is wanted."""

    word: str
    # How informative it is, from 0.1 for a word of the question to 2 for a date.
    weight: float
    value: Value | None = None
    # Whether it has a capital.
    is_name: bool = False


class QuestionWords:
    """A question's words: what a reply repeats of them is not an answer, and the answer is looked for near them."""

    def __init__(self, question: str) -> None:
        self.folded = folded_text(question[:_TOO_LONG])
        words = self.folded.split()
        self.stems = frozenset(map(stem, words))
        # What singles out what is asked about.
        self.named = frozenset(words) - FUNCTION_WORDS
        self.telling = set(map(stem, self.named))
        # Its names and figures, which single out one of several things of a kind.
        chunks = enumerate(question[:_TOO_LONG].split())
        names = [one for at, one in chunks if (at and one.lstrip(_MARKS)[:1].isupper()) or _HAS_DIGIT(one)]
        self.specific = frozenset(folded_words(" ".join(names))) - FUNCTION_WORDS
        # The number of the line of question words that its first question word is in, 0 for none.
        self.kind = next((_QUESTION_KINDS[word] for word in words if word in _QUESTION_KINDS), 0.0)
        if self.kind == _HOW and words[0] == "how" and not {"many", "much"} & set(words):
            self.kind = _HOW_ELSE
        self.yes_or_no = float(not self.kind and words[:1] != [] and words[0] in WORDS["auxiliaries"])


prepare_question = lru_cache(maxsize=8192)(QuestionWords)


class Phrasing:
    """One accepted way to say a keyword, ready to be compared with replies."""

    def __init__(self, text: str, question_words: QuestionWords, abbreviations: Abbreviations = ()) -> None:
        self.text, self.lowered = text, text.lower()
        words = folded_words(text)
        self.stems = frozenset(map(stem, words))
        self.phrase, self.size = f" {' '.join(words)} ", len(words)
        terms = _read_terms(text, question_words)
        # What is informative; if nothing is, all of it.
        self.terms = [term for term in terms if term.weight >= _TELLING] or terms
        self.total = sum(term.weight for term in self.terms)
        self.has_value = any(term.value is not None for term in self.terms)
        pairs = re.findall(r"(?=\b([A-Z]\w+) ([A-Z]\w+))", text)
        self.other_name = "|".join(_OTHER_NAME.format(*pair) for pair in pairs)
        # Whether it is an amount that is more than its digits.
        figure = self.terms[0].value if len(self.terms) == 1 else None
        self.signed = isinstance(figure, Quantity) and (figure.dimension != "" or figure.numbers[0] < 0)
        # Whether it is a number without a unit.
        self.is_number = isinstance(figure, Quantity) and not self.signed and not _NO_AMOUNT.search(text)
        # "po" for purchase order, "W9" for W-9, "dot" for Department of Transportation; and the other way round.
        self.short = _short_forms(words, question_words) + [
            self.phrase.replace(one, other)
            for pair in (*_ABBREVIATIONS, *read_abbreviations(abbreviations))
            for one, other in (pair, pair[::-1])
            if one in self.phrase
        ]
        self.acronym = text.strip().lower() if re.fullmatch(r"\s*[A-Z]{3,6}\s*", text) else ""


def _short_forms(words: list[str], question_words: QuestionWords) -> list[str]:
    """The words run together, and their first letters, as they would be in a folded reply."""
    forms = [f" {''.join(words)}"] if len(words) > 1 else []
    for some in (words, [word for word in words if word not in FUNCTION_WORDS]):
        letters = "".join(word[0] for word in some)
        if 3 <= len(letters) <= 8 and letters not in question_words.stems:
            forms.append(f" {letters} ")
    return forms


def _read_terms(text: str, question_words: QuestionWords) -> list[Term]:
    """Dates first, then codes and amounts, then the words around them."""
    whole = parse_date(text)
    dates = [whole.date] if whole is not None and whole.date is not None else list(find_dates(text))
    found: list[tuple[int, int, Value]] = [(date.start, date.end, date) for date in dates]
    amounts = find_quantities(text)
    if not dates and _SPACED_CODE.fullmatch(text) and (not amounts or amounts[0].end < len(text)):
        found.append((0, len(text), _code_pattern(text)))
    found += [(*code.span(), _code_pattern(code[0])) for code in _CODE.finditer(text)]
    found += [(amount.start, amount.end, amount) for amount in amounts]
    taken: list[tuple[int, int, Value]] = []
    for one in found:
        if all(one[1] <= start or end <= one[0] for start, end, _ in taken):
            taken.append(one)
    capitals = [chunk for chunk in text.split() if chunk.lstrip(_MARKS)[:1].isupper()]
    names = frozenset(folded_words(" ".join(capitals)))
    terms: list[Term] = []
    at = 0
    for start, end, value in (*sorted(taken, key=lambda one: one[0]), (len(text), len(text), None)):
        terms += [
            Term(word, _weight(word, question_words), None, word in names)
            for word in folded_words(text[at:start])
        ]
        if value is not None:
            known = folded_text(text[start:end]) in question_words.folded
            terms.append(Term("", 2.0 if isinstance(value, Date) else 0.2 if known else 1.5, value))
        at = end
    return terms


def _code_pattern(code: str) -> re.Pattern[str]:
    """The code's letters and digits in a row with any punctuation between them; a country code and the letters before a long
    number may be absent.
    """
    parts = re.findall(r"[^\W\d_]+|[0-9]+|[@]", code[:60])
    optional = ""
    if code.startswith("+") and len(parts) > 2:
        optional, parts = rf"(?:\+?{parts[0]}{_GAP})?\(?0?\)?{_GAP}", parts[1:]
    elif len(parts) > 2 and parts[0] == "1" and parts[1].isdigit():
        parts = parts[1:]
    elif len(parts) == 2 and parts[0].isalpha() and len(parts[0]) > 1 and len(parts[1]) > 3:
        optional, parts = rf"(?<![A-Za-z][-/_])(?:{parts[0]}{_GAP})?", parts[1:]
    elif parts[0] in ("v", "V"):
        optional, parts = "v?", parts[1:]
    elif all(map(str.isdigit, parts)) and "." in code:
        optional = "v?"
    elif parts[0].isdigit() and parts[0][0] == "0" and sum(map(len, parts)) >= 9:
        # With the country's code a number has no 0: "+44 113 496 0182".
        optional, parts = rf"(?:\+[0-9]{{1,3}}{_GAP}\(?0?\)?|0){_GAP}", [parts[0][1:], *parts[1:]]
        parts = [one for one in parts if one]
    body = _GAP.join(_GAP.join(part) if part.isdigit() and len(part) > 4 else part for part in parts)
    return re.compile(rf"(?<![^\W_]){optional}{body}(?![^\W_]|[.-][0-9])", re.IGNORECASE)


def _weight(word: str, question_words: QuestionWords) -> float:
    """How informative a word is: little if it is a function word, a title, or already in the question."""
    if word in WORDS["denies"]:
        return 0.6
    if stem(word) in question_words.stems or word in FUNCTION_WORDS:
        return 0.1
    return 0.3 if word in WORDS["light"] else min(1.2, 0.5 + 0.1 * len(word))


def prepare_phrasings(
    text: str, question_words: QuestionWords, abbreviations: Abbreviations = ()
) -> list[Phrasing]:
    """A text ready for comparison without what it has in parentheses, and the ways to say it that it names."""
    text = text[:_TOO_LONG]
    bare = _PARENTHESES.sub(" ", text)
    full = Phrasing(bare if folded_words(bare) else text, question_words, abbreviations)
    parts = _ALTERNATIVE.split(text)
    # A list is one thing, and so is a date or a figure: "April 15" is not April 15, 2024.
    if not _LIST.search(text) and all(term.value is None for term in full.terms):
        parts = [_REMARK.split(part.lstrip("(["), maxsplit=1)[0] for part in parts]
    others = [
        Phrasing(_PARENTHESES.sub(" ", part).strip("()[] "), question_words, abbreviations)
        for part in parts
        if part != text
    ]
    return [way for way in (full, *others) if way.total >= _TELLING or (way is full and way.terms)]
