"""Names in text: runs of capitalised words that are not capitalised merely for their place or style."""

import re
from collections.abc import Iterator

from answerkey.grounded.claims.ordinary_words import ORDINARY, STATES, TITLES
from answerkey.text.dates import month_number

__all__ = ["find_names", "is_ordinary"]

# A point belongs to a word only in an initial or an abbreviation; elsewhere a sentence ends.
_ABBREVIATIONS = (
    "St|Ste|Mt|Ft|Dr|Mr|Mrs|Ms|Jr|Sr|Co|Inc|Ltd|Corp|Ave|Rd|Blvd|Ln|Ct"
    "|Prof|Gen|Sen|Rep|Gov|Hon|Rev|Capt|Lt|Col|Sgt|Bros|Univ|Dept|No"
)
_WORD = rf"(?:(?:[A-Z]\.)+(?!\w)|(?:{_ABBREVIATIONS})\.|[A-ZÀ-ÖØ-Þ]\w*(?:['’-][A-Za-zÀ-ÿ]\w*)*)"
_RUN = re.compile(
    rf"(?<![\w'’°-]){_WORD}(?:(?:[ \t]+|[ \t]+(?:of|de|la|du|van|von|der|del|di|al|bin)(?:[ \t]+(?:the|la|der))?[ \t]+"
    rf"|[ \t]*&[ \t]*){_WORD})*"
)
_STATE_NAMES = frozenset(STATES.values())
_WEEKDAYS = frozenset(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
# Where a capital says nothing: the beginning of a text, line, list item, cell, or sentence, or after a colon.
_OPENING = re.compile(r"(?:^|\n|[.!?:;…]|[-–—•|>#→]|\d[.)])[\s\"'“‘(\[]*$")
_WORDS = re.compile(r"\S+")
_CLITIC = re.compile(r"['’](?:s|re|ve|ll|d|m|t)$")
# Endings of words that are hardly ever names.
_ORDINARY_ENDINGS = (
    "tion",
    "sion",
    "ment",
    "ness",
    "ance",
    "ence",
    "ing",
    "ities",
    "able",
    "ible",
    "ally",
    "ously",
)


def find_names(text: str) -> Iterator[tuple[int, int, bool]]:
    """Each name as (start, end, opens a sentence), without the ordinary words at its ends."""
    for found in _RUN.finditer(text):
        start, end = found.span()
        opening = (
            _OPENING.search(text[max(0, start - 12) : start] if start > 12 else text[:start]) is not None
        )
        words = [(part.start() + start, part.end() + start) for part in _WORDS.finditer(found[0])]
        words = _until_sentence_ends(words, text)
        first_is_free = not opening
        while (
            words
            and not _is_state(words, text)
            and (
                is_ordinary(text[slice(*words[0])])
                or (opening and not first_is_free and has_ordinary_ending(text[slice(*words[0])]))
                or _is_abbreviation_of(words, text)
            )
        ):
            words.pop(0)
            first_is_free = True
        while words and text[slice(*words[-1])].islower():
            words.pop()
        # A connecting word may be left at the beginning: "Board of Elm Street" → "of Elm Street".
        while words and (text[slice(*words[0])].islower() or text[slice(*words[0])] == "&"):
            words.pop(0)
        if not words:
            continue
        telling = sum(not is_ordinary(text[slice(*word)]) for word in words)
        if telling == 1 and opening and not first_is_free and len(words) > 1:
            # "Occupancy Rate: …" is a label; only its first word could be a name, and it opens the sentence.
            words = words[:1]
        start, end = words[0][0], words[-1][1]
        name = text[start:end]
        stripped = name.removesuffix("'s").removesuffix("’s")
        if not _INITIALS_END.search(stripped):
            stripped = stripped.rstrip(".,")
        if len(stripped) < 2 or (len(words) == 1 and _says_nothing(stripped, text, start)):
            continue
        yield start, start + len(stripped), not first_is_free


# "S.L.", "S.p.A.": the last point belongs to the abbreviation.
_INITIALS_END = re.compile(r"(?:\b[A-Z]\.){2,}$")


def _is_state(words: list[tuple[int, int]], text: str) -> bool:
    """ "New Mexico", "West Virginia": the first word is part of the name."""
    return len(words) > 1 and text[words[0][0] : words[1][1]].rstrip(".,").lower() in _STATE_NAMES


def _until_sentence_ends(words: list[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """ "Unit B. Anything else": a point after a letter ends the sentence if an ordinary word follows."""
    for number, (start, end) in enumerate(words[:-1]):
        if text[end - 1] == "." and end - start <= 3 and is_ordinary(text[slice(*words[number + 1])]):
            return words[: number + 1]
    return words


def is_ordinary(word: str) -> bool:
    """Whether a word with a capital is most likely no name."""
    plain = word
    if "'" in word or "’" in word:
        plain = _CLITIC.sub("", word)
    plain = plain.strip(".,").lower()
    return (
        plain in ORDINARY
        or plain in TITLES
        or plain in _WEEKDAYS
        or (month_number(plain) is not None and plain != "mars")
        or plain in ("don", "didn", "isn", "doesn", "can", "couldn", "won", "i'm", "it's", "s", "n", "e", "w")
    )


def has_ordinary_ending(word: str) -> bool:
    """Whether a word at the beginning of a sentence is hardly a name by its ending."""
    return len(word) > 6 and word.lower().endswith(_ORDINARY_ENDINGS)


def _is_abbreviation_of(words: list[tuple[int, int]], text: str) -> bool:
    """ "EIN of Red Mesa": letters that say what of the name is meant."""
    first = text[slice(*words[0])]
    return len(words) > 2 and first.isupper() and len(first) <= 5 and text[slice(*words[1])] == "of"


# Signs of units with capitals in them.
_SYMBOL = re.compile(r"[kMGTm]?(?:Wh|Wp|W|Hz|J|V|A|Pa|bit|bps|Bps|B|iB)|mmHg|CO2e?|pH|dB")


def _says_nothing(word: str, text: str, start: int) -> bool:
    """A single short word in capitals is an abbreviation, unless it is a state after a place ("Montrose, CO")."""
    if _SYMBOL.fullmatch(word):
        return True
    if (word.isupper() and len(word) <= 5) or re.fullmatch(r"[A-Z]{2,5}s", word):
        return not (word in STATES and re.search(r"[a-z],\s*$", text[max(0, start - 6) : start]) is not None)
    return False
