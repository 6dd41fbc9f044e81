"""Words: the lexicon, the normal form of a question, its words with their stems, and which of them carry no content."""

import re
import tomllib
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import Stemmer

__all__ = ["LEXICON", "STOPWORDS", "Word", "content_stems", "normalise", "stem", "stems", "words_of"]

LEXICON: dict[str, Any] = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))
STOPWORDS = frozenset(LEXICON["words"]["stop"].split())
_SAME = dict(pair.split("=") for pair in LEXICON["words"]["same"].split())
_OWN_STEM = {
    word: own or word for word, _, own in (w.partition("=") for w in LEXICON["words"]["own_stem"].split())
}
_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|[a-z0-9]+(?:[-'./&][a-z0-9]+)*")
_stemmer = Stemmer.Stemmer("english")


class Word(msgspec.Struct, frozen=True):
    """One word of a question and where it stands in the normalised text."""

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
