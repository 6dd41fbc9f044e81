"""Words in one form: case, accents, possessives, ordinals, digits and numerals folded, so that equal words are equal strings.

`folded_words` gives the words of a text in that form.
"""

import re
import unicodedata
from collections.abc import Iterator

import Stemmer

from answerkey.text.numbers import NUMBER_PATTERN, canonical_number

__all__ = ["FUNCTION_WORDS", "fold", "fold_accents", "folded_text", "folded_words", "stem"]

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
_NUMBER_NAME_LIST = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty
"""
_NUMBER_NAMES = _NUMBER_NAME_LIST.split()
_ORDINAL_NAME_LIST = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ORDINAL_NAMES = _ORDINAL_NAME_LIST.split()
_VALUES = {name: str(value) for names in (_NUMBER_NAMES, _ORDINAL_NAMES) for value, name in enumerate(names)} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
    "hundred": "100", "thousand": "1000", "hundredth": "100", "thousandth": "1000",
}  # fmt: skip
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


class _ChunkCache(dict[str, str]):
    """Each distinct chunk (what stands between white space) is folded once, into its words with a space after each.

    `map(cache.__getitem__, text.split())` then runs at the speed of a dictionary, which is what makes logs affordable.
    """

    def __missing__(self, chunk: str) -> str:
        core = chunk.strip(_EDGES)
        if core.isalpha() and core.isascii():
            # By far the most chunks are one plain word.
            folded = fold(core)
            if folded in _ARTICLES:
                folded = ""
        elif core[:1].isdigit() and _PLAIN_NUMBER.fullmatch(core):
            folded = canonical_number(core)
        else:
            folded = " ".join(word for word, _, _ in _chunk_words(chunk))
        # Each word ends with a space, so that the chunks of a text only need to be put together.
        folded = folded + " " if folded else ""
        if len(chunk) <= _LONGEST:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[chunk] = folded
        return folded


class _StemCache(dict[str, str]):
    """Each distinct folded word is stemmed once."""

    def __init__(self) -> None:
        super().__init__()
        self._stemmer = Stemmer.Stemmer("english")

    def __missing__(self, word: str) -> str:
        stemmed: str = self._stemmer.stemWord(word) if len(word) <= _LONGEST and word.isascii() else word
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[word] = stemmed
        return stemmed


_CHUNKS = _ChunkCache()
_STEMS = _StemCache()

stem = _STEMS.__getitem__


def _chunk_words(chunk: str) -> Iterator[tuple[str, int, int]]:
    """The folded words of a chunk with their spans in it; articles and "and" are left out."""
    if "." in chunk and _DOTTED.search(chunk):
        # U.S. and J.R.R. are one word each; the dots go, the span stays roughly where it was.
        compact = _DOTTED.sub(lambda found: found.group().replace(".", ""), chunk)
        if compact != chunk:
            for word, start, end in _chunk_words(compact):
                yield word, start, min(len(chunk), end + chunk.count("."))
            return
    for found in _WORD.finditer(chunk):
        glued = _GLUED.fullmatch(found.group())
        if glued and glued[2].lower() in _GLUED_UNITS:
            yield canonical_number(glued[1]), found.start(), found.start() + glued.end(1)
            yield glued[2].lower(), found.start() + glued.start(2), found.end()
            continue
        word = fold(found.group())
        if word not in _ARTICLES:
            yield word, found.start(), found.end()


def folded_text(text: str) -> str:
    """The folded words of a text, parted by single spaces, with one at each end: " 900 s 9 st montrose co 81401 "."""
    return " " + ("".join(map(_CHUNKS.__getitem__, text.split())) or " ")


def folded_words(text: str) -> list[str]:
    """The folded words of a text; articles and "and" are left out."""
    return folded_text(text).split()
