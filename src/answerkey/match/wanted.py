"""A question and one way to say a keyword, prepared once: its terms (words, amounts, dates, codes) and what each tells."""

import re
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from answerkey.match.vocabulary import CUE_BITS, CUES, LIGHT_WORDS
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
    r"(?<!\S)(?=\S*[0-9@])(?:\S*@\S+|[A-Za-z]+[-./]?[0-9][\w./-]*(?: [0-9]{2,})*|[A-Z]{1,4}(?: ?[0-9]{2,}){2,}|[0-9]{7,}"
    r"|[0-9]+[A-Z_#]\S*|[0-9]{2,}[-. ]0\S+|[0-9.]+(?:[-./ ()]+[0-9]+){2,}|[0-9]{3,}-[0-9]{4,})(?!\S)"
)
# What may stand between the parts of a code.
_GAP = r"[\s().\-\u2010-\u2013/_#:]{0,2}"
_ACRONYM = re.compile(r"[A-Z]{3,6}")
_TOO_LONG = 4000
_NEGATIVE = re.compile(r"\b(?:which|what|who)\b.*(?:\b(?:not|never|except)\b|n['’]t\b)", re.I | re.S)
_FUNCTION_STEMS = frozenset(map(stem, FUNCTION_WORDS))
# The weight from which a word tells something on its own.
TELLING = 0.5


class Term(NamedTuple):
    """One word, amount, date or code of what is wanted."""

    # Folded; of a value as it is written.
    word: str
    stem: str
    # How much it tells, from 0.1 for a word of the question to 2 for a date.
    weight: float
    quantity: Quantity | None = None
    date: Date | None = None
    # Finds itself however its parts are set apart; one of digits may also be an amount.
    code: re.Pattern[str] | None = None


class Asked:
    """A question's words: what a reply repeats of them tells nothing, and where they stand the answer is looked for."""

    def __init__(self, question: str) -> None:
        question = question[:_TOO_LONG]
        self.folded = folded_text(question)
        words = self.folded.split()
        self.stems = frozenset(map(stem, words))
        # Stems that tell nothing in a reply.
        self.plain = self.stems | _FUNCTION_STEMS
        capitalised = re.findall(r"(?<=[^.?!] )[A-Z][\w-]*", question)
        names = {word for name in capitalised for word in folded_words(name)}
        # Stems that single out what is asked about; names and figures count twice.
        telling = [word for word in words if word not in FUNCTION_WORDS]
        self.weights = {stem(w): 2.0 if w in names or w[0].isdigit() else 1.0 for w in telling}
        self.total = sum(self.weights.values()) or 1.0
        # "Which of these is not …?" turns denials round.
        self.negative = _NEGATIVE.search(question) is not None


# A question's words, prepared once.
prepare_asked = lru_cache(maxsize=8192)(Asked)


class Wanted:
    """One accepted way to say a keyword, ready to be compared with replies."""

    def __init__(self, text: str, asked: Asked) -> None:
        self.text = text
        words = folded_words(text)
        self.phrase, self.size = f" {' '.join(words)} ", len(words)
        self.terms = _read_terms(text, asked)
        self.total = sum(term.weight for term in self.terms) or 1.0
        # From this weight on its terms tell something.
        self.least = TELLING if any(term.weight >= TELLING for term in self.terms) else 0.0
        self.telling = [term for term in self.terms if term.weight >= self.least]
        self.compact = "".join(words) if len(words) > 1 else ""
        # "dot" for Department of Transportation; and the other way round.
        self.initials = _initials(text)
        self.acronym = text.strip().lower() if _ACRONYM.fullmatch(text.strip()) else ""
        self.is_value = float(any(term.quantity or term.date for term in self.telling))
        self.is_name = float(text[:1].isupper() and not any(t.quantity or t.date for t in self.terms))
        self.is_list = bool(_LIST.search(text)) and len(self.telling) > 1
        # Whether it tells an amount and nothing else.
        self.figure = len(self.telling) == 1 and self.telling[0].quantity is not None
        # Share of it that the question gives away.
        self.echoes = round(sum(term.weight <= 0.2 for term in self.terms) / (len(self.terms) or 1), 1)
        # Denials around it count, unless it or the question is itself one.
        denies = any(CUE_BITS.get(word, 0) & CUES["denies"] for word in words)
        self.deniable = not denies and not asked.negative


def _read_terms(text: str, asked: Asked) -> list[Term]:
    """Dates first, then codes and amounts, then the words around them."""
    values: list[tuple[int, int, Quantity | Date | None]] = [(d.start, d.end, d) for d in find_dates(text)]
    values += [(*code.span(), None) for code in _CODE.finditer(text)]
    values += [(quantity.start, quantity.end, quantity) for quantity in find_quantities(text)]
    taken: list[tuple[int, int, Term | None]] = []
    for start, end, value in values:
        if any(start < last and first < end for first, last, _ in taken):
            continue
        written = text[start:end].lower()
        weight = 0.2 if folded_text(written) in asked.folded else 1.5
        if isinstance(value, Date):
            term = Term(written, written, 2.0, None, value)
        elif value is not None:
            term = Term(written, written, weight, value)
        else:
            amount = next(iter(find_quantities(written)), None) if written.isdigit() else None
            term = Term(written, written, weight, amount, None, _code_pattern(written))
        taken.append((start, end, term))
    terms: list[Term] = []
    at = 0
    for start, end, value_term in (*sorted(taken, key=itemgetter(0)), (len(text), len(text), None)):
        terms.extend(Term(word, stem(word), _weight(word, asked)) for word in folded_words(text[at:start]))
        terms.extend([value_term] if value_term else [])
        at = end
    return terms


def _code_pattern(code: str) -> re.Pattern[str]:
    """The code's letters and digits in a row with any punctuation between them; a leading country code may lack."""
    parts = re.findall(r"[^\W\d_]+|[0-9]+|[@]", code[:60])
    if len(parts) > 2 and parts[0] == "1" and parts[1].isdigit():
        parts = parts[1:]
    body = _GAP.join(
        _GAP.join(part) if part.isdigit() and len(part) > 4 else re.escape(part) for part in parts
    )
    return re.compile(rf"(?<![^\W_]){body}(?![^\W_]|[.-][0-9])", re.IGNORECASE)


def _initials(text: str) -> tuple[str, ...]:
    words = re.findall(r"[^\W\d_]+", text)
    if not 3 <= len(words) <= 8:
        return ()
    every = "".join(word[0] for word in words).lower()
    telling = "".join(word[0] for word in words if word.lower() not in FUNCTION_WORDS).lower()
    return tuple(dict.fromkeys(letters for letters in (every, telling) if len(letters) >= 3))


def _weight(word: str, asked: Asked) -> float:
    """What a word tells: little if it is a function word, a title, or already in the question."""
    if CUE_BITS.get(word, 0) & CUES["denies"]:
        return 0.6
    if stem(word) in asked.stems or word in FUNCTION_WORDS:
        return 0.1
    if word in LIGHT_WORDS:
        return 0.3
    return 0.2 if len(word) == 1 and word.isascii() else min(1.2, 0.5 + 0.1 * len(word))


def prepare_wanted(text: str, asked: Asked) -> list[Wanted]:
    """The accepted answer ready for comparison, with the ways to say it that it names and its part before any remark."""
    text = text[:_TOO_LONG]
    bare = _PARENTHESES.sub(" ", text)
    full = Wanted(bare if folded_words(bare) else text, asked)
    prepared = [full]
    if text.isalnum():
        return prepared
    ways = [way for way in _ALTERNATIVE.split(text) if way and folded_words(way)]
    if len(ways) > 1:
        prepared.extend(Wanted(_PARENTHESES.sub(" ", way).strip("()[] "), asked) for way in ways)
    head = _REMARK.split(text.lstrip("(["), maxsplit=1)[0]
    # A date or a figure is one thing: "April 15" is not April 15, 2024.
    whole = full.is_list or any(term.date or term.quantity or term.code for term in full.terms)
    if not whole and len(head) < len(text.rstrip()) and folded_words(head):
        part = Wanted(head, asked)
        if part.phrase != full.phrase and part.total >= TELLING:
            prepared.append(part)
    return prepared
