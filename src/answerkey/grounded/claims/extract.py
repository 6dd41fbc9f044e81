"""Finds the claims in a text. What one kind has taken is not offered to the next: a date's digits are not numbers too."""

import re
from collections.abc import Iterator

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.claims.day_ranges import find_day_ranges
from answerkey.grounded.claims.english import is_english
from answerkey.grounded.claims.identifiers import find_identifiers
from answerkey.grounded.claims.language import FUNCTION_WORDS, language_of
from answerkey.grounded.claims.names import find_names
from answerkey.grounded.claims.quantity import Quantity, find_quantities
from answerkey.grounded.claims.times import find_times
from answerkey.text.dates import Date, find_dates

__all__ = ["find_claims"]

_QUOTES = re.compile(
    r"“([^”\n]{2,600})”|«\s?([^»\n]{2,600}?)\s?»|(?<![\w\"])\"([^\"\n]{2,600})\"(?![\w\"])"
    r"|(?<![\w'‘’])[‘']([^'‘’\n]{3,300})['’](?![\w])"
)
# Words in quotation marks that the user is told to use, not words of a source.
_TOLD = re.compile(
    r"\b(?:say|reply|respond|answer|type|enter|press|ask|try|search for|write|called it)(?: with| on)?\s*$",
    re.IGNORECASE,
)
# What looks like a number and states nothing: list numbering, citation marks, steps.
_NO_CLAIM = re.compile(
    r"(?m)^[ \t>]*(?:#{1,6}[ \t]+)?(?:\d{1,3}[.)])(?=\s)|\[\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\](?!\()|【[^】]*】|\b24/7\b"
    r"|\b(?i:step|option|question|answer|part|point|tip|source|citation|footnote|ref)s?[ \t]+\d{1,2}\b(?!\s*[%$])"
    r"|\b(?i:the )?(?i:other|another|any|either|each|these|those|next|last|first|top|both|remaining)"
    r"[ \t]+(?i:two|three|four|five)\b"
    r"|\b(?i:the|all)[ \t](?i:two|three|four|five)\b(?=[ \t](?i:account|are|were|have|had|make|made|come|came"
    r"|together|combined|add|differ|of them)\b)"
    r"|\b(?i:first|second)[ \t](?i:half)\b"
    r"|(?m:^)[ \t#>*_-]*(?i:day|week|phase|stage|round|part)[ \t]+\d{1,2}\b"
    r"|\b(?:2[89]|3[01])-day month\b|\b36[56]-day year\b"
    r"|(?<=\bper )(?:100|1,?000|10,?000|100,?000)\b(?!\.\d)"
    r"|(?<=\b(?:of|in) every )[$€£]?(?:100|1,?000|10,?000)\b(?!\.\d)|(?<=\bof each )[$€£]?(?:100|1,?000|10,?000)\b(?!\.\d)"
    r"|\b(?i:one)[ \t](?i:of the)\b|\b(?i:one|two)[ \t](?i:or more|moment|thing|things|ways?)\b"
)
# "I need (1) the name, (2) the date": where there are a first and a second one.
_NUMBERING = re.compile(r"(?<![\w])\(\d{1,2}\)(?=\s+[A-Za-z*“\"])")
# A table whose first column numbers its rows.
_RANKED = re.compile(r"(?mi)^[ \t]*\|[ \t*]*(?:rank|#|no\.?|nr\.?|place|pos(?:ition)?\.?)[ \t*]*\|")
_RANK = re.compile(r"(?m)^[ \t]*\|[ \t*#]*\d{1,3}\.?[ \t*]*(?=\|)")
_MONTHS = "January|February|March|April|June|July|August|September|October|November|December"
# A month alone; May only where it cannot be the verb.
_MONTH = re.compile(
    rf"\b(?:{_MONTHS})\b|(?<=\bin )May\b|(?<=\bof )May\b|(?<=\bsince )May\b|(?<=\bby )May\b|(?<=\bfor )May\b"
)
# "10/18" without a year; what is no date is a fraction or a ratio, and stands in the evidence as such.
_MONTH_DAY = re.compile(r"(?<![\w./$€£,-])(\d{1,2})/(\d{1,2})(?![\w/%]|[.,]\d)")
_WEEKDAY = re.compile(
    r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b(?=\.?,? ?[\x00\d])"
)
_QUARTER = re.compile(
    r"\bQ[1-4](?:[ -]?(?:of )?(?:FY)?(?:19|20)\d\d)?\b"
    r"|\b(?i:first|second|third|fourth|1st|2nd|3rd|4th) quarter(?: of)?(?: (?:FY)?(?:19|20)\d\d)?\b"
    # "Last quarter" alone is the one before this one.
    r"|\b(?i:last quarter of )(?:FY)?(?:19|20)\d\d\b"
    r"|\b(?:FY|fiscal year )(?:19|20)?\d\d\b"
)
_YEAR_BEFORE = re.compile(
    r"(?:\b(?:in|of|since|for|by|during|from|to|until|through|year|and|early|late|before|after|summer|fall|spring|winter|autumn|vs\.?|between)|[(,–/-])\s*$",
    re.IGNORECASE,
)
# What only people and companies do.
_ACTS = re.compile(
    r" (?:later |also |then |first |recently |already |has |had )?"
    r"(?:said|says|confirmed|reported|signed|approved|wrote|sent|paid|owns|"
    r"manages|agreed|stated|noted|founded|joined|resigned|emailed|asked|replied|attended|leads|led|works|worked|bought|sold|hired|"
    r"rejected|requested|submitted|proposed|declared|announced)\b"
)
# "In a Medium", "as Admin": a word with such a word before it names a kind, not one thing.
_ONE_OF_MANY = re.compile(r"\b(?:an?|as|per|each|every|any|no|another)\s+$", re.IGNORECASE)
# What the chatbot asks or offers states nothing: "Would you like me to export this to Excel?"
_OFFERS = re.compile(
    r"(?:(?<=[.!?:)\n*] )|(?<=\n)|(?m:^))(?:[-*] )?"
    r"(?:(?:Would|Do|Did|Could|Can|Shall|Should|Are|Is|Want|Need|Interested|Which|What|How|Anything|Wie|Soll|Möchten|Souhaitez|Voulez|Quieres|Desea)\b"
    r"[^.!?\n]{3,200}\?"
    r"|(?:Please )?(?:Let me know|Feel free|Just let me know|Say the word)\b[^.!?\n]{0,200}[.!?]"
    r"|(?:If you(?:['’]d| would)? (?:like|want|prefer|wish),? I (?:can|could|will)"
    r"|I (?:can|could) (?:also|gladly|happily)|Happy to)\b"
    r"[^.!?\n]{0,200}[.!?])"
)
_EMPHASIS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<=[\w.,!?%)])_{1,3}(?!\w)")


def find_claims(text: str) -> list[Claim]:
    """The claims of a text in order."""
    taken = _Text(text)
    taken.hide(_EMPHASIS)
    taken.hide(_NO_CLAIM)
    taken.hide(_OFFERS)
    if _RANKED.search(text):
        taken.hide(_RANK)
    if "(1)" in text and "(2)" in text:
        taken.hide(_NUMBERING)
    claims = [
        *_quotes(taken),
        *_identifiers(taken),
        *_dates(taken),
        *_times(taken),
        *_quantities(taken),
        *_names(taken),
    ]
    return sorted(claims, key=lambda claim: claim.start)


class _Text:
    """A text in which what has been read is blanked, so that spans stay what they are."""

    def __init__(self, text: str) -> None:
        self.original = text
        self.left = text

    def hide(self, pattern: re.Pattern[str]) -> None:
        self.left = pattern.sub(lambda found: " " * len(found[0]), self.left)

    def take(self, start: int, end: int) -> None:
        # A stand-in letter, not a blank: what stood here must not make its neighbours look adjacent.
        self.left = self.left[:start] + "\x00" * (end - start) + self.left[end:]

    def free(self, start: int, end: int) -> bool:
        return "\x00" not in self.left[start:end]


def _quotes(text: _Text) -> Iterator[Claim]:
    for found in _QUOTES.finditer(text.left):
        group = next(number for number in range(1, 5) if found[number] is not None)
        inner = found[group]
        words = re.findall(r"\w+", inner)
        if not words or len("".join(words)) < 3 or _TOLD.search(text.left[: found.start()][-20:]):
            continue
        if len(words) == 1 and not inner[0].isupper() and group == 4:
            continue
        # A quotation that is one identifier or amount is better checked as that.
        if len(words) == 1 and any(letter.isdigit() for letter in inner):
            continue
        start, end = found.span(group)
        yield Claim(kind="quote", text=text.original[start:end], start=start, end=end)
        text.take(*found.span())


def _identifiers(text: _Text) -> Iterator[Claim]:
    for start, end in find_identifiers(text.left):
        if text.free(start, end):
            yield Claim(kind="identifier", text=text.original[start:end], start=start, end=end)
            text.take(start, end)


def _dates(text: _Text) -> Iterator[Claim]:
    for date in (*find_day_ranges(text.left), *find_dates(text.left)):
        if text.free(date.start, date.end):
            yield _date(text, date.start, date.end, date)
    for found in _MONTH_DAY.finditer(text.left):
        first, second = int(found[1]), int(found[2])
        if text.free(*found.span()) and 1 <= first <= 12 and 1 <= second <= 31:
            yield _date(text, *found.span(), Date(None, first, second, *found.span(), ambiguous=second <= 12))
    for pattern in (_QUARTER, _WEEKDAY):
        for found in pattern.finditer(text.left):
            if text.free(*found.span()):
                yield _date(text, *found.span(), None)
    for found in _MONTH.finditer(text.left):
        if text.free(*found.span()):
            month = next(find_dates(f"{found[0]} 2000")).month
            yield _date(text, *found.span(), Date(None, month, None, *found.span()))


def _date(text: _Text, start: int, end: int, date: Date | None) -> Claim:
    # "On July 1. Then …": the point ends the sentence.
    end -= text.original[start:end].endswith(".")
    text.take(start, end)
    return Claim(kind="date", text=text.original[start:end], start=start, end=end, date=date)


def _times(text: _Text) -> Iterator[Claim]:
    for start, end, minutes in find_times(text.left):
        if text.free(start, end):
            yield Claim(kind="time", text=text.original[start:end], start=start, end=end, minutes=minutes)
            text.take(start, end)


# "On the 5th", "from the 1st to the 15th": a day of a month that is known from elsewhere.
_DAY_BEFORE = re.compile(r"\b(?:the|on|by|until|till|to|through|after|before)\s+$", re.IGNORECASE)
_DAY_AFTER = re.compile(
    r"\s*(?:$|[.,;:!?()\n–—-]|(?:and|or|to|through|until) the \d{1,2}(?:st|nd|rd|th)\s*(?:$|[.,;:!?()\n])"
    r"|(?:of (?:each|every|the|that|this|next|last) |(?:and|or|to|through)(?! (?:the )?\d)"
    r"|until|at|with|for|in|is|was|will|won|would|works|does|doesn|falls|but|if|unless|when)\b|day of\b)"
)


def _day_of_month(text: str, quantity: Quantity) -> bool:
    return (
        quantity.ordinal
        and not quantity.spelled
        and 1 <= quantity.value <= 31
        and _DAY_BEFORE.search(text[max(0, quantity.start - 12) : quantity.start]) is not None
        and _DAY_AFTER.match(text, quantity.end) is not None
    )


def _quantities(text: _Text) -> Iterator[Claim]:
    for quantity in find_quantities(text.left):
        start, end = quantity.start, quantity.end
        if (
            not text.free(start, end)
            or _unchecked(text.left, quantity)
            or _scale_of_rating(text.original, quantity)
        ):
            continue
        written = text.original[start:end]
        text.take(start, end)
        if _day_of_month(text.original, quantity):
            date = Date(None, None, int(quantity.value), start, end)
            yield Claim(kind="date", text=written, start=start, end=end, date=date)
        elif _is_year(text.original, quantity):
            date = Date(int(quantity.value), None, None, start, end)
            yield Claim(kind="date", text=written, start=start, end=end, date=date, quantity=quantity)
        else:
            yield Claim(kind=quantity.kind, text=written, start=start, end=end, quantity=quantity)


def _unchecked(text: str, quantity: Quantity) -> bool:
    """Words that are numbers in form only: "one", "first", "second", and the digit of a word ("B2B")."""
    if quantity.spelled and (quantity.value <= 1 or quantity.ordinal) and quantity.kind == "number":
        return True
    if (
        quantity.spelled
        and quantity.kind != "percentage"
        and text[quantity.start : quantity.end].lower().partition(" ")[0] in _SCALES
        and (quantity.kind == "number" or _PART_OF_SCALE.search(text[: quantity.start][-20:]))
    ):
        return True
    before, after = text[quantity.start - 1 : quantity.start], text[quantity.end : quantity.end + 1]
    return not quantity.spelled and (
        before.isalpha() or (after.isalpha() and not quantity.ordinal and _glued(text, quantity.end))
    )


_SCALES = frozenset(["half", "hundred", "thousand", "million", "billion"])
# "A quarter of a million dollars".
_PART_OF_SCALE = re.compile(r"\b(?:half|quarters?|thirds?)(?: of)? an?\s+$", re.IGNORECASE)
# "4.6 out of 5", "rated 4/5": how far a scale goes is said with the rating and stands nowhere else.
_RATED = re.compile(r"(\d(?:[.,]\d+)?)(?: ?/ ?| out of | von | sur )$")
_RATING = re.compile(
    r"\b(?:rat(?:ed?|ings?)|scor(?:es?|ed)|stars?|satisfaction|points?|review\w*|NPS|CSAT)\b", re.IGNORECASE
)


def _scale_of_rating(text: str, quantity: Quantity) -> bool:
    if quantity.kind != "number" or quantity.value not in (5, 10, 100):
        return False
    rated = _RATED.search(text[max(0, quantity.start - 12) : quantity.start])
    if rated is None:
        return False
    around = text[max(0, quantity.start - 80) : quantity.end + 30]
    return not rated[1].isdigit() or _RATING.search(around) is not None


def _glued(text: str, end: int) -> bool:
    unit = re.match(r"[A-Za-z]+", text[end:])
    return unit is not None and len(unit[0]) > 6


def _is_year(text: str, quantity: Quantity) -> bool:
    return (
        quantity.kind == "number"
        and 1900 <= quantity.value <= 2099
        and quantity.digits == str(int(quantity.value))
        and text[quantity.start : quantity.end] == quantity.digits
        and _YEAR_BEFORE.search(text[max(0, quantity.start - 12) : quantity.start]) is not None
    )


def _names(text: _Text) -> Iterator[Claim]:
    language = language_of(text.original)
    if language != "en":
        yield from _names_in(text, language)
        return
    found = list(find_names(text.left))
    # Words of names that stand within a sentence: what is a name there is one at its beginning too.
    inner = {
        word
        for start, end, opens in found
        if not opens
        for word in _NAME_WORDS.findall(text.original[start:end])
    }
    for start, end, opens in found:
        name = text.original[start:end]
        if opens and " " not in name:
            if is_english(name) and name not in inner and not _ACTS.match(text.left, end):
                continue
        elif (
            " " not in name and is_english(name) and _ONE_OF_MANY.search(text.left[max(0, start - 8) : start])
        ):
            continue
        yield Claim(kind="name", text=name, start=start, end=end, opens_sentence=opens)


_NAME_WORDS = re.compile(r"[\w'’-]+")
# After these a single German word with a capital is a name, which it otherwise need not be.
_ADDRESSED = re.compile(r"\b(?:Herrn?|Frau|Familie|Firma|Dr\.|Prof\.)\s+$")


def _names_in(text: _Text, language: str) -> Iterator[Claim]:
    """Names in a text of another language: what opens a sentence there, and German nouns, have capitals without being names."""
    for start, end, opens in find_names(text.left):
        words = [(word.start(), word.end()) for word in _ANY_WORD.finditer(text.original, start, end)]
        while words and text.original[slice(*words[0])].strip(".,").lower() in FUNCTION_WORDS:
            words.pop(0)
            opens = False
        # "Herr Matthias Kolb von der Nordwall Versicherung" are two names.
        for run in _runs(text.original, words) if language == "de" else [words]:
            yield from _name_in(text, run, opens, language)


def _runs(text: str, words: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Words of a German run, parted where small ones stand between them."""
    runs: list[list[tuple[int, int]]] = [[]]
    for word in words:
        if text[word[0]].islower():
            runs.append([])
        else:
            runs[-1].append(word)
    return [run for run in runs if run]


def _name_in(text: _Text, words: list[tuple[int, int]], opens: bool, language: str) -> Iterator[Claim]:
    if not words:
        return
    start, end = words[0][0], words[-1][1]
    if len(words) == 1 and (
        opens or (language == "de" and not _ADDRESSED.search(text.original[max(0, start - 10) : start]))
    ):
        return
    if language == "de" and len(words) > 2:
        # "Mieterin Lena Hoffmann": what somebody is has a capital too.
        start = words[-2][0]
    yield Claim(kind="name", text=text.original[start:end], start=start, end=end)


_ANY_WORD = re.compile(r"\S+")
