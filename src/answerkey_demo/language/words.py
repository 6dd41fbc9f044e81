"""Words: the normal form of a question, its words with their stems, and which of them carry no content."""

import re
import unicodedata
from functools import lru_cache

import msgspec
import snowballstemmer

__all__ = ["STOPWORDS", "Word", "content_stems", "normalise", "stem", "stems", "words_of"]

_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|[a-z0-9]+(?:[-'./&][a-z0-9]+)*")
# Spellings of one word.
_SAME = dict(
    pair.split("=")
    for pair in """
        north=n south=s east=e west=w street=st avenue=ave road=rd drive=dr lane=ln first=1st second=2nd third=3rd
        fourth=4th fifth=5th sixth=6th seventh=7th eighth=8th ninth=9th tenth=10th license=licence licenses=licence
        apt=unit apartment=unit apartments=units mould=mold organisation=organization feet=foot
        insured=insurance
    """.split()
)
# Words that say how something is asked, not what is asked about.
STOPWORDS = frozenset(
    """
        a about actual actually again ahead all also altogether am amount amounts an and any anything are as ask at away be
        been being below both brief briefly business but by call called came can come comes company could currently
        detail details did do does doing done each either else enough ever exact exactly far figure figures file
        find for from further get gets getting gimme give given go got had has have having he hello help her here hers hey
        hi him his how however i if in info information into is it its just kind kindly know let like llc look lookup
        make many may me might mine more much must my name named names need needs no not now number of off ok okay on once one
        only or other our ours out over overall own owned people per please pull put quick quickly really record
        recorded records regarding remind right s same say see she should show shown so some someone something stand
        stands still such sure t tell than thanks that the their theirs them then there these they thing things this those
        to today too under until up us use used using very want wanted wants was we well were what when where which
        while who whom whose why will with within without wonder wondering would yes you your yours
        we're what's who's that's it's i'd i'm we've don't didn't isn't there's books question whats
    """.split()
)
# Words whose stem is another word.
_OWN_STEM = {
    "monthly": "monthly",
    "yearly": "yearly",
    "filing": "filing",
    "filings": "filing",
    "files": "files",
}
_OWN_STEM |= {"insurer": "insurer", "formed": "formed"}
_stemmer = snowballstemmer.stemmer("english")


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
    words = []
    for found in _WORD.finditer(normal):
        text = found.group().removesuffix("'s")
        words.append(Word(text, stem(text), found.start(), found.start() + len(text)))
    return words


def stems(text: str) -> tuple[str, ...]:
    """The stems of all words of any text, in order."""
    return tuple(word.stem for word in words_of(normalise(text)))


def content_stems(text: str) -> set[str]:
    """The stems of the words that carry content; of a compound like "mid-month" its parts as well."""
    words = [w for w in words_of(normalise(text)) if w.text not in STOPWORDS]
    return {w.stem for w in words} | {
        stem(part) for w in words for part in re.split(r"[-./&']", w.text) if part
    }


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The English stem of a word, one for all its spellings; numbers and codes stay as they are."""
    word = _SAME.get(word, word)
    if word in _OWN_STEM:
        return _OWN_STEM[word]
    return str(_stemmer.stemWord(word)) if word.isalpha() else word
