"""Identifiers in text: addresses of mail and web, files, telephone numbers, codes, reference and version numbers."""

import re
from collections.abc import Iterator

__all__ = ["find_identifiers"]

# Stands for a point between two letters or digits, which is not the end of a sentence.
_DOT = ("inner point",)
_INNER_POINT = re.compile(r"\w\.\w")
# Each with signs of which a text that has such an identifier has one: most texts have few of them.
_PATTERNS = tuple(
    (signs, re.compile(pattern))
    for signs, pattern in (
        # Mail, web, file names.
        (("@",), r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
        (("://", "www."), r"(?:https?://|www\.)[^\s<>\"')\]]+[^\s<>\"')\].,;:!?]"),
        (
            _DOT,
            r"(?<![\w/.])[\w][\w\-.]*\.(?:pdf|docx?|xlsx?|csv|txt|md|html?|pptx?|eml|json|png|jpe?g|zip|py|xml|ya?ml)(?!\w)",
        ),
        # Telephone numbers.
        (
            tuple("0123456789"),
            r"(?<![\w.])(?:\+\d{1,3}[\s.-]?|\d[\s.-])?(?:\(\d{3}\)\s?|\d{3}[\s.-])\d{3}[\s.-]\d{4}(?!\w)",
        ),
        (("+",), r"(?<!\w)\+\d{1,3}(?:[\s.-]?\(?\d{2,5}\)?){2,4}(?!\w)"),
        # Paths and branches: release/4.8.
        (("/",), r"(?<![\w/.])[A-Za-z][\w-]*/(?=[\w./-]*\d)[\w./-]*\w"),
        # UUIDs and addresses of machines, then version numbers.
        (("-",), r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
        (_DOT, r"(?<![\w.])(?!\d{1,3}(?:\.\d{3}){2}(?![\d.]))v?\d+\.\d+\.\d+(?:\.\d+)?(?![\w%]|\.\d)"),
        (_DOT, r"(?<!\w)v\d+(?:\.\d+)+(?!\w)"),
        # Names of users and fields: n.abara, rent_roll.
        (
            (*_DOT, "_"),
            r"(?<![\w.@/-])(?!e\.g|i\.e|a\.m|p\.m)[a-z]\w*(?:[._][a-z]\w+)+(?![\w@/-])",
        ),
        # "Unit D", "Building C2", "Exhibit B": a thing that is told from others by a letter.
        (
            (" ",),
            r"\b(?:Unit|Suite|Apt\.?|Apartment|Room|Building|Lot|Gate|Terminal|Zone|Bay|Dock|Exhibit|Schedule|Appendix|Annex|Class"
            r"|Tier|Grade|Block|Section|Line|Track|Hall|Wing|Platform|Pier|Level|Phase|Series|Plan|Option|Group|Team|Ward)"
            r" (?:[B-HJ-Z]|[A-Z]\d{1,3})\b(?![’'-])",
        ),
        # "#4821", "No. 4821".
        (("#",), r"(?<!\w)#\s?[A-Za-z0-9][\w-]*\d[\w-]*|(?<!\w)#\d+\b"),
    )
)
# Groups of digits with hyphens: 83-4567890, 123-45-6789.
_GROUPS = re.compile(r"(?<![\w.$-])\d{1,9}(?:-\d{1,9})+(?![\w%-]|\.\d)")
# Letters and digits in one word, which may have hyphens, underscores or strokes in it.
_CODE = re.compile(r"(?<![\w$.,/-])[A-Za-z0-9]++(?:[-_/][A-Za-z0-9]++)*+(?!\w)")
_LONGEST_CODE = 80
_LETTERED_BEFORE = re.compile(
    r"\b(?:units?|apts?\.?|apartments?|suites?|rooms?|flats?|seats?|gates?|lots?|bays?|buildings?|bldg\.?|section|form)\s$",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[A-Za-z]")
_RUNS = re.compile(r"[A-Za-z]+|\d+")
# A number with a unit or a noun: 30kg, 3rd, 12-unit, 1980s, 5pm, Q3, FY2024.
_NOT_A_CODE = re.compile(
    r"\d[\d,.]*-?[a-z]+(?:-[a-z]+)*|\d+[KMB]|Q[1-4]|FY\d{2,4}|\d{4}s|\d+x\d+|[\d]+[AP]M|H[12]|\d+/\d+[a-z]*"
)


def find_identifiers(text: str) -> Iterator[tuple[int, int]]:
    """The span of every identifier; spans may overlap, earlier kinds are the better reading."""
    inner = _DOT[0] if "." in text and _INNER_POINT.search(text) else ""
    for signs, pattern in _PATTERNS:
        if any(sign == inner or sign in text for sign in signs):
            for found in pattern.finditer(text):
                yield found.span()
    if _DIGIT.search(text) is None:
        return
    for found in _GROUPS.finditer(text):
        parts = found[0].split("-")
        digits = sum(map(len, parts))
        years = all(len(part) == 4 and part[0] in "12" for part in parts)
        looks_like_date = len(parts) == 3 and len(parts[0]) == 4 and len(parts[1]) <= 2 and len(parts[2]) <= 2
        if digits >= 7 and not years and not looks_like_date:
            yield found.span()
    for found in _CODE.finditer(text):
        word = found[0]
        if len(word) > _LONGEST_CODE or word.isdigit() or word.isalpha():
            continue
        if _NOT_A_CODE.fullmatch(word) and not (
            # "Unit 2B" is not two billion of them.
            word[-1] in "KMB" and _LETTERED_BEFORE.search(text[max(0, found.start() - 14) : found.start()])
        ):
            continue
        if _DIGIT.search(word) is None or _LETTER.search(word) is None:
            continue
        changes = len(_RUNS.findall(word))
        if any(letter.isupper() for letter in word) or changes > 2 or (word[0].isalpha() and len(word) >= 5):
            yield found.span()
