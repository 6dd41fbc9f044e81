"""What a reply mentions that can be looked up: figures, dates and times, ids, quotes and names, each with its span."""

import re
from collections.abc import Iterator

import msgspec

from answerkey.grounded.figures import Figure, find_figures
from answerkey.text.dates import Date, find_dates, month_number
from answerkey.text.language import detect_language
from answerkey.text.normalise import FUNCTION_WORDS, fold_accents

__all__ = ["WORD", "Marks", "Mention", "find_marks", "find_mentions", "id_key"]

WORD = re.compile(r"[^\W_]+")
_TIME = re.compile(
    r"(?<![\w:.])(?P<h>[01]?[0-9]|2[0-4])(?:[:.](?P<m>[0-5][0-9])(?::[0-5][0-9])?\s?(?P<half>[ap]\.?m\b)?"
    r"|\s?(?P<half2>[ap]\.?m\b)|\s?(?P<uhr>Uhr|h)\b\s?(?P<m2>[0-5][0-9])?)(?![0-9%:])",
    re.IGNORECASE,
)
_ISO_TIME = re.compile(r"(?<=[0-9])[T ](?P<h>[0-2][0-9]):(?P<m>[0-5][0-9])")
# A stretch with a digit, an @ or an address; it begins where something ends, so that no letter is looked at twice.
_CHUNK = re.compile(r"(?<![^\s,;()\[\]{}\"“”„«»|*<>`])[^\s,;()\[\]{}\"“”„«»|*<>`]*+")
_EDGES = ".:!?'’‘…–—-/#"
_UNIT_END = re.compile(r"[$€£¥₹+~≈≤≥<>-]*[0-9][0-9.,'’]*(?:[-–/][0-9.,]+)?(?:st|nd|rd|th|er|º|ª|[-–]?[a-zµ°]{1,12}[0-9²³]?|[kKMmB]|[kM]?[$€£¥%])?[-–]?")
_QUOTE = re.compile(r"“([^“”\n]{4,400})”|„([^„“”\n]{4,400})[“”]|«\s?([^«»\n]{4,400})\s?»|\"([^\"\n]{4,400})\"|「([^」\n]{2,400})」")
_CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-z][\w'’&-]*+(?:\.(?=\s?[A-Z]))?")
_JOIN = re.compile(r"[  ](?:(?:of|de|la|le|du|des|del|di|da|dos|van|von|der|den|and|y|und|et|the|for|&)[  ]){0,2}")
# Where a capital says nothing: a text, sentence, line, cell or emphasis begins.
_OPENING = re.compile(r"(?:^|[.!?:;…|•\n>*#_(\[\"“„«–—-]|\d[.)])\s*[*_\"“(]*$")
_NO_NAMES = frozenset(
    "i i'm i'll i've eur usd gbp chf ok pdf monday tuesday wednesday thursday friday saturday sunday yes no dear hi "
    "hello thanks montag dienstag mittwoch donnerstag freitag samstag sonntag ja nein sie ihr ihre ihnen ihren ihrem "
    "note total q a".split()
)


class Mention(msgspec.Struct, frozen=True, gc=False):
    """One thing in a reply that can be looked up."""

    start: int
    end: int
    # "figure", "date", "time", "id", "quote", "name".
    kind: str
    # What it says: a Figure, a Date, minutes of the day, an id's key, or the folded words of a quote or name.
    said: Figure | Date | int | str | tuple[str, ...]
    # Its capital may be owed to its place: a name only if the evidence has it.
    doubtful: bool = False


class Marks(msgspec.Struct, frozen=True):
    """What stands in a text by form alone, and the stretches that it takes."""

    dates: list[Date]
    # (minutes of the day, start, end)
    times: list[tuple[int, int, int]]
    # (key, start, end)
    ids: list[tuple[str, int, int]]
    figures: list[Figure]
    taken: bytearray


def find_marks(text: str, *, plain: bool = False) -> Marks:
    """Dates, times, ids and figures of a text, none inside another."""
    taken = bytearray(len(text) + 1)
    dates = []
    for date in find_dates(text):
        if not taken[date.start] and not (date.ambiguous and date.end - date.start < 6):
            dates.append(date)
            taken[date.start : date.end] = b"\x01" * (date.end - date.start)
    times = list(_times(text, taken))
    ids = []
    for found in _CHUNK.finditer(text):
        chunk = found[0]
        if len(chunk) > 2 and _is_id(chunk):
            start = found.start() + len(chunk) - len(chunk.lstrip(_EDGES))
            end = found.end() - len(chunk) + len(chunk.rstrip(_EDGES))
            if start < end and not any(taken[start:end]):
                ids.append((id_key(text[start:end]), start, end))
                taken[start:end] = b"\x01" * (end - start)
    return Marks(dates, times, ids, list(find_figures(text, taken, plain=plain)), taken)


def _times(text: str, taken: bytearray) -> Iterator[tuple[int, int, int]]:
    for found in _ISO_TIME.finditer(text):
        taken[found.start() : found.end()] = b"\x01" * len(found[0])
        yield int(found["h"]) * 60 + int(found["m"]), *found.span()
    for found in _TIME.finditer(text):
        half = (found["half"] or found["half2"] or "").lower()
        clock = ":" in found[0] or half or (found["uhr"] or "").lower() == "uhr" or found["m2"]
        if clock and not taken[found.start()]:
            hour = int(found["h"]) % 12 + (12 if half[:1] == "p" else 0) if half else int(found["h"])
            taken[found.start() : found.end()] = b"\x01" * len(found[0])
            yield hour * 60 + int(found["m"] or found["m2"] or 0), *found.span()


def _is_id(chunk: str) -> bool:
    """Letters and digits in one (X40, DN-448120), parted digits (00340-7781), an address, a user's name."""
    if "@" in chunk or "://" in chunk:
        return True
    core = chunk.strip(_EDGES)
    if not any(map(str.isdigit, core)):
        return "." in core.strip(".") and core.replace(".", "").isalpha() and core.islower() and len(core) > 5
    if _UNIT_END.fullmatch(core):
        return core.count("-") + core.count("/") > 0 and core.replace("-", "").isdigit() and len(core) > 8
    if core.isdigit() or core.replace(".", "").replace(",", "").isdigit():
        return core[0] == "0" and len(core) > 4 and core.isdigit()
    letters = sum(map(str.isalpha, core))
    return letters > 0 or core.count("-") > 1


def id_key(text: str) -> str:
    """An id in the form in which equal ones are equal: letters and digits only."""
    return "".join(filter(str.isalnum, text)).casefold()


def find_mentions(text: str) -> list[Mention]:
    """Everything in a reply that can be looked up, in order."""
    marks = find_marks(text)
    found = [Mention(date.start, date.end, "date", date) for date in marks.dates]
    found += [Mention(start, end, "time", minutes) for minutes, start, end in marks.times]
    found += [Mention(start, end, "id", key) for key, start, end in marks.ids]
    found += [
        Mention(one.start, one.end, "figure", one) for one in marks.figures if not _is_list_number(text, one)
    ]
    found += _quotes(text)
    found += _names(text, marks.taken)
    return sorted(found, key=lambda one: (one.start, one.end))


def _is_list_number(text: str, figure: Figure) -> bool:
    """"1." at the beginning of a line, or a mark such as [2]."""
    before, after = text[max(0, figure.start - 2) : figure.start], text[figure.end : figure.end + 2]
    if before[-1:] == "[" and after[:1] == "]":
        return True
    return figure.value < 100 and before.strip(" #*") in ("", "\n") and after[:1] in (".", ")") and after[1:] in (" ", "")


def _quotes(text: str) -> Iterator[Mention]:
    for found in _QUOTE.finditer(text):
        said = next(part for part in found.groups() if part is not None)
        words = tuple(map(fold_accents, WORD.findall(said)))
        if len(words) > 1:
            yield Mention(*found.span(), "quote", words)


def _names(text: str, taken: bytearray) -> Iterator[Mention]:
    """Words with a capital and what they join; in German, where every noun has one, only if two stand together."""
    german = detect_language(text)[0] == "de"
    run: list[re.Match[str]] = []
    for found in _CAPITAL.finditer(text):
        if taken[found.start()] or not found[0][0].isupper():
            continue
        if run and _JOIN.fullmatch(text, run[-1].end(), found.start()):
            run.append(found)
            continue
        yield from _name_of(text, run, german=german)
        run = [found]
    yield from _name_of(text, run, german=german)


def _name_of(text: str, run: list[re.Match[str]], *, german: bool) -> Iterator[Mention]:
    while run and _is_plain(run[0][0]):
        run = run[1:]
    if not run:
        return
    start, end = run[0].start(), run[-1].end()
    words = tuple(word for word in map(fold_accents, WORD.findall(text[start:end])) if word != "s")
    if len(words) == 1 and (len(words[0]) < 2 or month_number(words[0]) is not None):
        return
    opening = _OPENING.search(text, max(0, start - 8), start) is not None or start == 0
    yield Mention(start, end, "name", words, opening or (german and len(run) == 1))


def _is_plain(word: str) -> bool:
    folded = word.lower().rstrip(".")
    return folded in _NO_NAMES or folded in FUNCTION_WORDS or folded.replace("’", "'").split("'")[0] in FUNCTION_WORDS
