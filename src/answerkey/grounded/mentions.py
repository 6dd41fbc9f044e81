"""What a reply mentions that can be looked up: figures, dates and times, ids, quotes and names, each with its span."""

import re
from collections.abc import Iterator

import msgspec

from answerkey.grounded.figures import Figure, find_figures
from answerkey.text.dates import Date, find_dates
from answerkey.text.language import detect_language
from answerkey.text.normalise import FUNCTION_WORDS, fold_accents

__all__ = ["WORD", "Marks", "Mention", "find_marks", "find_mentions", "id_key"]

WORD = re.compile(r"[^\W_]+")
_TIME = re.compile(
    r"(?<![\w:.])(?P<h>[01]?[0-9]|2[0-4])(?:[:.](?P<m>[0-5][0-9])(?::[0-5][0-9])?\s?(?P<half>[ap]\.?m\b)?"
    r"|\s?(?P<half2>[ap]\.?m\b)|\s?(?P<uhr>Uhr|h)\b\s?(?P<m2>[0-5][0-9])?+(?!\s?min))(?![0-9%:])",
    re.IGNORECASE,
)
_ISO_TIME = re.compile(r"(?<=[0-9])[T ](?P<h>[0-2][0-9]):(?P<m>[0-5][0-9])")
_VERB = re.compile(r"\bmay\b")
_DAY_BEFORE = re.compile(r"(?<![\w.])([0-9]{1,2})(?:st|nd|rd|th|\.)?\s?(?:to|and|or|until|bis|und|oder|à|au|et|al?|y|e|–|-)\s?$")
# A stretch with a digit, an @ or an address; it begins where something ends, so that no letter is looked at twice.
_CHUNK = re.compile(r"(?<![^\s,;()\[\]{}\"“”„«»|*<>`'=])[^\s,;()\[\]{}\"“”„«»|*<>`'=]*+")
# Scripts without spaces would glue figures to words.
_ID = re.compile(r"[A-Za-z0-9À-ɏ#&+./:_-]++")
_DIGIT = re.compile("[0-9]")
_EDGES = ".:!?'’‘…–—-/#"
_UNIT_END = re.compile(r"[$€£¥₹+~≈≤≥<>-]*[0-9][0-9.,'’]*(?:[-–/][0-9.,]+)?(?:st|nd|rd|th|er|º|ª|[-–/]?[a-zµ°]{1,12}(?:-[a-z]{2,9})?|[kKMmB]|[kM]?[$€£¥%])?[-–]?")
_QUOTE = re.compile(r"“([^“”\n]{4,400})”|„([^„“”\n]{4,400})[“”]|«\s?([^«»\n]{4,400})\s?»|\"([^\"\n]{4,400})\"|「([^」\n]{2,400})」")
_CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-z](?:\w?\.(?=\s?[A-Z])|[\w'’&-]*+)")
_JOIN = re.compile(r"[  ](?:(?:of|de|la|le|du|des|del|di|da|dos|van|von|der|den|and|y|und|et|the|for|&)[  ]){0,2}")
# After anything but these a capital says nothing: a text, sentence, line, cell or emphasis begins.
_WITHIN = frozenset(",%'’”)&/+")
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


def find_marks(text: str) -> Marks:
    """Dates, times, ids and figures of a text, none inside another."""
    taken = bytearray(len(text) + 1)
    dates = []
    for date in find_dates(text):
        # "Under 18 may" is no date.
        if not taken[date.start] and _VERB.search(text, date.start, date.end) is None:
            for one in (*_first_of_two(text, date), date):
                dates.append(one)
                taken[one.start : one.end] = b"\x01" * (one.end - one.start)
    times = list(_times(text, taken))
    ids = []
    for found in _CHUNK.finditer(text):
        chunk = found[0]
        if len(chunk) > 1 and _is_id(chunk):
            start = found.start() + len(chunk) - len(chunk.lstrip(_EDGES))
            end = found.end() - len(chunk) + len(chunk.rstrip(_EDGES))
            if start < end and not any(taken[start:end]):
                ids.append((id_key(text[start:end]), start, end))
                taken[start:end] = b"\x01" * (end - start)
    figures = list(find_figures(text, taken))
    for figure in figures:
        taken[figure.start : figure.end] = b"\x01" * (figure.end - figure.start)
    return Marks(dates, times, ids, figures, taken)


def _first_of_two(text: str, date: Date) -> Iterator[Date]:
    """"21 and" before "22 May"."""
    found = _DAY_BEFORE.search(text, max(0, date.start - 12), date.start) if date.day else None
    if found and 0 < int(found[1]) <= 31:
        yield Date(date.year, date.month, int(found[1]), *found.span(1))


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
    if not _ID.fullmatch(core):
        return False
    if _DIGIT.search(core) is None:
        return "." in core.strip(".") and core.replace(".", "").isalpha() and core.islower() and len(core) > 5
    if _UNIT_END.fullmatch(core):
        return core.count("-") + core.count("/") > 0 and core.replace("-", "").isdigit() and len(core) > 8
    if core.isdigit() or core.replace(".", "").replace(",", "").isdigit():
        return core[0] == "0" and len(core) > 4 and core.isdigit()
    return core.upper() != core.lower() or core.count("-") > 1


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
    before, after = text[max(0, figure.start - 4) : figure.start], text[figure.end : figure.end + 2]
    if before[-1:] == "[" and after[:1] == "]":
        return True
    opens = figure.start < 3 or "\n" in before
    return opens and figure.value < 100 and not before.rpartition("\n")[2].strip(" #*") and after[:1] in _LIST_MARKS


_LIST_MARKS = frozenset(".)\ufe0f")


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
    while run and _is_plain(run[-1][0]):
        run = run[:-1]
    if not run:
        return
    start, end = run[0].start(), run[-1].end()
    before = text[max(0, start - 4) : start].rstrip(" \u00a0")[-1:]
    words = tuple(map(fold_accents, WORD.findall(text[start:end])))
    # Behind a figure stands its unit (MWh, Uhr); one letter is no name.
    if len(words) > 1 or (len(words[0]) > 1 and not before.isdigit()):
        opening = not (before.isalnum() or before in _WITHIN) or text[start - 1 : start] == "\n"
        yield Mention(start, end, "name", words, opening or (german and len(run) == 1))


def _is_plain(word: str) -> bool:
    folded = word.lower().rstrip(".")
    return folded in _NO_NAMES or folded in FUNCTION_WORDS or folded.replace("’", "'").split("'")[0] in FUNCTION_WORDS
