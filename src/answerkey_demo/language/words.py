"""Words: the lexicon, the normal form of a question, its words with their stems and which of them carry no content;
and how amounts, days, numbers of things, lists and facts read.
"""

import re
import tomllib
import unicodedata
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import Stemmer

LEXICON: dict[str, Any] = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))
STOPWORDS = frozenset(LEXICON["words"]["stop"].split())
_SAME = dict(pair.split("=") for pair in LEXICON["words"]["same"].split())
_OWN_STEM = {
    word: own or word for word, _, own in (w.partition("=") for w in LEXICON["words"]["own_stem"].split())
}
_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|[a-z0-9]+(?:[-'./&][a-z0-9]+)*")
# A place of a wording that takes a column, and how it is written.
_SLOT = re.compile(r"\{(\w+)(?::([^}]*))?\}")
_stemmer = Stemmer.Stemmer("english")


class Word(msgspec.Struct, frozen=True):
    """One word of a question and its span in the normalised text."""

    text: str
    stem: str
    start: int
    end: int

    @property
    def root(self) -> str:
        """What the word begins with in all its forms: "cit" for "city" and "cities"."""
        return self.stem if self.text.startswith(self.stem) else self.stem[:-1]


def normalise(text: str) -> str:
    """Lower case, without accents, with plain quotes and dashes and single spaces."""
    text = text.translate({0x2018: "'", 0x2019: "'", 0x2013: "-", 0x2014: " - "})
    text = unicodedata.normalize("NFKD", text)
    return " ".join("".join(c for c in text if not unicodedata.combining(c)).lower().split())


def words_of(normal: str) -> list[Word]:
    """The words of a normalised text, a possessive 's cut off."""
    found = [(match.group().removesuffix("'s"), match.start()) for match in _WORD.finditer(normal)]
    return [Word(text, stem(text), start, start + len(text)) for text, start in found]


def stems(text: str) -> tuple[str, ...]:
    """The stems of all words of any text, in order."""
    return tuple(word.stem for word in words_of(normalise(text)))


def content_stems(text: str) -> set[str]:
    """The stems of the words that carry content; of a compound like "mid-month" its parts as well."""
    words = [w.text for w in words_of(normalise(text)) if w.text not in STOPWORDS]
    return {stem(part) for w in words for part in [w, *re.split(r"[-./&']", w)] if part}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The English stem of a word, one for all its spellings; numbers and codes stay as they are."""
    word = str(_SAME.get(word, word))
    if word in _OWN_STEM or not word.isalpha():
        return str(_OWN_STEM.get(word, word))
    return str(_stemmer.stemWord(word))


def category_label(name: str) -> str:
    """How a category reads in an answer."""
    return str(LEXICON["category_labels"].get(name, name.replace("_", " ")))


def money(amount: float | None) -> str:
    """For instance $1,234.50; whole dollars without cents."""
    value = round(amount or 0.0, 2)
    text = f"{abs(value):,.0f}" if value == int(value) else f"{abs(value):,.2f}"
    return f"-${text}" if value < 0 else f"${text}"


def plural(count: int, noun: str) -> str:
    """1 transaction, 2 transactions."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join(items: list[str]) -> str:
    """A, B and C."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def capital(text: str) -> str:
    """The beginning of a sentence."""
    return text[:1].upper() + text[1:]


def format_value(value: Any, form: str) -> str:
    """A value as "$", "date", "number" or "category", or as it is."""
    if form == "$":
        return money(value)
    if form == "date" and isinstance(value, str):
        day = date.fromisoformat(value)
        return f"{day:%B} {day.day}, {day.year}"
    if form == "category":
        return category_label(value)
    return f"{value:,.10g}" if form == "number" else str(value)


def fill_template(template: str, row: dict[str, Any]) -> str:
    """Fill in a row: {column}, {column:$}, or {column:, for $}, which is left out where there is no value."""

    def fill(match: re.Match[str]) -> str:
        value, form = row[match[1]], match[2] or ""
        kind = next((k for k in ("$", "date", "number", "category") if k in form), "")
        if form and not kind:
            # a remark that holds for one value
            return form if value and str(value) in form else ""
        if value is None:
            return "" if form.startswith(",") else "nothing on record"
        return form.replace(kind, format_value(value, kind)) if kind else str(value)

    return re.sub(r"\b1 units\b", "1 unit", _SLOT.sub(fill, " ".join(template.split())))
