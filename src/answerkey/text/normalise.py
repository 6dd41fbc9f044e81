"""Words in one form: case, accents, possessives, ordinals, digits and numerals folded, so that equal words are equal strings.

`folded_words` gives the words of a text in that form.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

import Stemmer

from answerkey.text.number_words import NUMBER_VALUES
from answerkey.text.numbers import NUMBER_PATTERN, canonical_number

# A number with its separators where no letter follows ("442,300.00"), else letters and digits with inner apostrophes.
_WORD = re.compile(rf"{NUMBER_PATTERN}(?![^\W_])|[^\W_]++(?:['’][^\W_]++)*+")
# "800m", "£50bn", "5ft": a number and its unit or scale without a space between them.
_GLUED = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?)([A-Za-z]{1,3})")
_GLUED_LIST = (
    "m km cm mm ft in yd mi g kg mg lb lbs oz l ml gal hr hrs min sec k mn bn b tn am pm mph kb mb gb"
)
_GLUED_UNITS = frozenset(_GLUED_LIST.split())
# Punctuation that may stand around a word without being part of it.
_EDGES = '.,;:!?"()[]{}$*“”‘’…–—'
_PLAIN_NUMBER = re.compile(NUMBER_PATTERN)
_DOTTED = re.compile(r"(?<![^\W_])(?:[^\W\d_]\.){2,}")
_ARTICLES = frozenset({"a", "an", "the", "and"})
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th|º|ª)")
# Footnote marks glued to a word by web answers: "golfers1", "Derby12".
_FOOTNOTE = re.compile(r"([a-z]{4,})[0-9]{1,2}")
# Letters that Unicode does not take apart into a base letter and a mark.
_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "’": "'", "ʼ": "'"}
)  # fmt: skip
_VALUES = {name: str(value) for name, value in NUMBER_VALUES.items()}
_ROMAN_LIST = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII XXIII XXIV"
# Roman numerals that are not also words or names when written in capitals ("MIX" and "DC" are left alone).
_ROMAN = {numeral: str(value) for value, numeral in enumerate(_ROMAN_LIST.split(), 1) if len(numeral) > 1}
_ROMAN_LOWER = {
    numeral.lower(): value for numeral, value in _ROMAN.items() if numeral not in {"VI", "XI", "IV"}
}
_FUNCTION_WORD_LIST = """
a an the and or but nor of in on at by for from to into onto with without as is are was were be been
being am it its this that these those he she they them his her their him we our you your i my me
who whom whose which what when where why how do does did has have had will would can could may might
shall should must there here than then so such very also just only about over under after before
during between among through per via not no if because while all any some each both either more most
other another one ones own same too up down out off again s t re ve ll d m
"""
# What an equal word may lack; words that carry no information of their own.
FUNCTION_WORDS = frozenset(_FUNCTION_WORD_LIST.split())
# Longest word that is remembered; anything longer is not a word that will come again.
_LONGEST = 48
_MOST_REMEMBERED = 300_000


def fold_accents(text: str) -> str:
    """Lower case without accents and with plain letters: "Málaga" gives "malaga", "Straße" gives "strasse"."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.lower())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_LETTERS)


def fold(word: str) -> str:
    """One word in the form in which equal words are equal: "Málaga's" gives "malaga", "9th" and "ninth" give "9"."""
    if word in _ROMAN:
        return _ROMAN[word]
    folded = fold_accents(word)
    if "'" in folded:
        folded = folded.removesuffix("'s").replace("'", "")
    if folded in _VALUES:
        return _VALUES[folded]
    if folded in _ROMAN_LOWER:
        return _ROMAN_LOWER[folded]
    if folded[:1].isdigit():
        ordinal = _ORDINAL.fullmatch(folded)
        if ordinal:
            return canonical_number(ordinal[1])
        if folded.replace(",", "").replace(".", "").isdigit() and folded.isascii():
            return canonical_number(folded)
        return folded
    footnote = _FOOTNOTE.fullmatch(folded)
    return footnote[1] if footnote else folded


class Remembered(dict[str, str]):
    """What a function makes of each distinct word, made once.

    `map(remembered.__getitem__, words)` then runs at the speed of a dictionary, which is what makes logs affordable.
    """

    def __init__(self, make: Callable[[str], str]) -> None:
        self._make = make

    def __missing__(self, word: str) -> str:
        made = self._make(word)
        if len(word) <= _LONGEST:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[word] = made
        return made


def _fold_chunk(chunk: str) -> str:
    core = chunk.strip(_EDGES)
    if core.isalpha() and core.isascii():
        # By far the most chunks are one plain word.
        folded = fold(core)
        if folded in _ARTICLES:
            folded = ""
    elif core[:1].isdigit() and _PLAIN_NUMBER.fullmatch(core):
        folded = canonical_number(core)
    else:
        folded = " ".join(_chunk_words(chunk))
    return folded + " " if folded else ""


_stem_word: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
stem = Remembered(
    lambda word: _stem_word(word) if len(word) <= _LONGEST and word.isascii() else word
).__getitem__
# The folded words of what stands between white space, a space after each, so that those of a text only need to be put together.
folded_chunk = Remembered(_fold_chunk).__getitem__


def _chunk_words(chunk: str) -> Iterator[str]:
    """The folded words of a chunk; articles and "and" are left out."""
    if "." in chunk:
        # U.S. and J.R.R. are one word each.
        chunk = _DOTTED.sub(lambda found: found[0].replace(".", ""), chunk)
    for found in _WORD.finditer(chunk):
        glued = _GLUED.fullmatch(found[0])
        if glued and glued[2].lower() in _GLUED_UNITS:
            yield from (canonical_number(glued[1]), glued[2].lower())
        elif (folded := fold(found[0])) not in _ARTICLES:
            yield folded


def folded_text(text: str) -> str:
    """The folded words of a text, parted by single spaces, with one at each end: " 900 s 9 st montrose co 81401 "."""
    return " " + ("".join(map(folded_chunk, text.split())) or " ")


def folded_words(text: str) -> list[str]:
    """The folded words of a text; articles and "and" are left out."""
    return folded_text(text).split()
