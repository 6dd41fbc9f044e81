"""Words: the normal form of a question, its tokens with their stems, and which words carry no content."""

import re
import unicodedata
from functools import lru_cache

import msgspec
import Stemmer

__all__ = ["STOPWORDS", "Token", "content_words", "normalise", "stem", "tokenise"]

_STEMMER = Stemmer.Stemmer("english")

_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|[a-z0-9]+(?:[-'./&][a-z0-9]+)*")

# Words that say how something is asked, not what is asked about.
STOPWORDS = frozenset(
    """
        a about actual actually again ahead all also am an and any anything are as ask at be been being
        below both brief briefly but by can could currently did do does doing done each either
    enough else ever
        exact exactly find far away first for from further get gets getting gimme give given go got had has have
        having he hello help her here hers hey hi him his how however i if in info information into is
        it its just kind kindly know let like look lookup many may me might mine more most much must my
        need needs no not now of off ok okay on once one only or other our ours out over own owned
        people per please pull quick quickly really regarding remind right s same say says see she
        should show shown so some someone something spell still such sure t tell than thanks that the
        their theirs them then there these they thing things this those to today too under until up us
        use used using very want wanted wants was we well were what whats when where which while who
        whom whose why will with within without wonder wondering would yes you your yours overall
        altogether record records file books call called name named stand stands come comes came put us
        we're what's who's that's it's i'd i'm we've don't didn't isn't there's details detail figure
        figures number amount amounts question company business
    """.split()
)


class Token(msgspec.Struct, frozen=True):
    """One word of a question and where it stands in the normalised text."""

    text: str
    stem: str
    start: int
    end: int


def normalise(text: str) -> str:
    """Lower case, without accents, with plain quotes and dashes and single spaces."""
    text = unicodedata.normalize(
        "NFKD", text.translate({0x2018: "'", 0x2019: "'", 0x2013: "-", 0x2014: " - "})
    )
    text = "".join(c for c in text if not unicodedata.combining(c)).lower()
    return " ".join(text.split())


def tokenise(normal: str) -> list[Token]:
    """The words of a normalised text, a possessive 's cut off."""
    tokens = []
    for found in _WORD.finditer(normal):
        word = found.group()
        if word.endswith("'s"):
            word = word[:-2]
        tokens.append(Token(word, stem(word), found.start(), found.start() + len(word)))
    return tokens


def content_words(text: str) -> list[str]:
    """The stems of the words that carry content, in order, each once."""
    return list(
        dict.fromkeys(
            t.stem for t in tokenise(normalise(text)) if t.text not in STOPWORDS and len(t.text) > 1
        )
    )


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The English stem of a word; numbers and codes stay as they are."""
    if not word.isalpha():
        return word
    return str(_STEMMER.stemWord(word))
