"""English words that are no names: what a capital at the beginning of a sentence or cell may stand on."""

from functools import lru_cache
from importlib.resources import files

__all__ = ["is_english", "is_listed"]

# Endings of regular forms, and what may stand in their place in the word that they are made from.
_FORMS = (
    ("ies", ("y",)), ("ied", ("y",)), ("es", ("", "e")), ("s", ("",)), ("ed", ("", "e")), ("ing", ("", "e")),
    ("ly", ("", "le")), ("ers", ("", "e")), ("er", ("", "e")), ("est", ("", "e")), ("ness", ("",)), ("ment", ("",)),
)  # fmt: skip
_DOUBLED = ("ed", "ing", "er")
_PREFIXES = ("non", "pre", "re", "sub", "un", "over", "under", "co", "mis", "out", "up", "multi", "auto")
# British spellings and the American ones that the list has.
_BRITISH = (("isation", "ization"), ("ise", "ize"), ("ising", "izing"), ("ised", "ized"), ("our", "or"), ("ourite", "orite"),
            ("tre", "ter"), ("ence", "ense"), ("ogue", "og"), ("amme", "am"), ("que", "ck"), ("lment", "llment"),
            ("lled", "led"), ("lling", "ling"))  # fmt: skip
# Second parts of names of places and families, which look like compounds.
_PLACES = ("field", "ford", "brook", "wood", "land", "ville", "dale", "port", "worth", "bury", "berg", "ham", "hill", "view",
           "stone", "well", "shire", "haven", "mont", "gate", "ridge", "side", "son", "man", "creek", "burn", "burg")  # fmt: skip
_SHORTEST = 3


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    return frozenset(
        (files("answerkey.grounded.claims") / "words" / "english.txt").read_text("utf-8").split()
    )


@lru_cache(maxsize=16_384)
def is_english(word: str) -> bool:
    """Whether a word is one of the English language, or a regular form or a compound of such."""
    lowered = word.lower()
    if len(lowered) < _SHORTEST or not lowered.isalpha():
        return all(map(is_english, lowered.split("-"))) if "-" in lowered else len(lowered) < _SHORTEST
    return (
        _known(lowered)
        or _known_in_america(lowered)
        or any(
            lowered.startswith(prefix) and len(lowered) > len(prefix) + 3 and _known(lowered[len(prefix) :])
            for prefix in _PREFIXES
        )
        or _is_compound(lowered)
    )


def is_listed(word: str) -> bool:
    """Whether a word is on the list, or a regular form of one that is; compounds, which may be names, are not."""
    return _known(word.lower())


def _known(word: str) -> bool:
    words = _words()
    if word in words:
        return True
    for ending, others in _FORMS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            stem = word[: -len(ending)]
            if any(stem + other in words for other in others):
                return True
            if ending in _DOUBLED and stem[-1] == stem[-2] and stem[:-1] in words:
                return True
            if ending in ("s", "es", "ly") and _known(stem):
                return True
    return False


def _known_in_america(word: str) -> bool:
    single = word[:-1] if word.endswith("s") else word
    return any(
        single.endswith(british) and _known(single[: -len(british)] + american)
        for british, american in _BRITISH
    )


def _is_compound(word: str) -> bool:
    """ "Backorder", "headcount": two words of four letters or more written as one."""
    words = _words()
    if word.removesuffix("s").endswith(_PLACES):
        return False
    return any(word[:cut] in words and _known(word[cut:]) for cut in range(4, len(word) - 3))
