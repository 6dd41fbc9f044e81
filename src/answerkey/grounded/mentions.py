"""What a text mentions that can be looked up: figures, dates and times, ids, quotes and names, each with its span."""

import re
from collections.abc import Iterator

import msgspec

from answerkey.grounded.figures import Figure, find_figures
from answerkey.grounded.words import WORD, Words, word_key
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import FUNCTION_WORDS

__all__ = ["Marks", "Mention", "find_marks", "find_mentions", "id_key"]

_TIME = re.compile(
    r"(?<![\w:.])(?P<h>[01]?[0-9]|2[0-4])(?:[:.](?P<m>[0-5][0-9])(?::[0-5][0-9])?\s?(?P<half>[ap]\.?m\b)?"
    r"|\s?(?P<half2>[ap]\.?m\b)|\s?(?P<uhr>Uhr|h)\b\s?(?P<m2>[0-5][0-9])?+(?!\s?min))(?![0-9%:])",
    re.IGNORECASE,
)
_ISO_TIME = re.compile(r"(?<=[0-9])[T ](?P<h>[0-2][0-9]):(?P<m>[0-5][0-9])")
_VERB = re.compile(r"\bmay\b")
_DAY_BEFORE = re.compile(
    r"(?<![\w.])([0-9]{1,2})(?:st|nd|rd|th|\.)?\s?(?:to|and|or|until|bis|und|oder|à|au|et|al?|y|e|–|-)\s?$"
)
# What an id has in it: a digit, an @, or a point before letters; and what parts it from its neighbours.
_SIGN = re.compile(r"[0-9@]|\.(?=[a-z]{3})")
_PARTS = frozenset(" \t\n\r\u00a0\u202f,;()[]{}\"“”„«»|*<>`'=")
_REST = re.compile(f"[^{re.escape(''.join(_PARTS))}\\s]*+")
# Digits that are no further apart may belong to one date.
_APART = 40
_EDGES = ".:!?’‘…–—-/#"
# Scripts without spaces would glue figures to words, so that only these letters make an id.
_ID = re.compile(r"[A-Za-z0-9À-ɏ#&+./:@_-]++")
# A figure with its sign and unit, a range, an ordinal.
_FIGURE = re.compile(
    r"[$€£¥₹+~≈≤≥<>-]*[0-9][0-9.,’]*(?:[-–/][0-9.,]+)?"
    r"(?:st|nd|rd|th|er|º|ª|[-–/]?[a-zµ°]{1,12}(?:-[a-z]{2,9})?|[kKMm]|[kM]?[$€£¥%])?[-–]?"
)
_QUOTE = re.compile(
    r"“([^“”\n]{4,400})”|„([^„“”\n]{4,400})[“”]|«\s?([^«»\n]{4,400})\s?»|\"([^\"\n]{4,400})\"|「([^」\n]{2,400})」"
)
_CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-z](?:\w?\.(?=\s?[A-Z])|[\w'’&-]*+)")
_JOIN = re.compile(
    r"[ \u00a0](?:(?:of|de|la|le|du|des|del|di|da|dos|van|von|der|den|and|y|und|et|the|for|&)[ ]){0,2}"
)
# After anything but these and letters a capital says nothing: a sentence, line, cell or emphasis begins.
_WITHIN = frozenset(",%'’”)&/+")
_LONGEST_NAME = 8
_LIST_MARKS = frozenset(".)\ufe0f")
_NO_NAME_LIST = (
    "i eur usd gbp chf ok pdf monday tuesday wednesday thursday friday saturday sunday yes dear hi hello thanks note total q "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag ja nein sie ihr ihre ihnen ihren ihrem ihrer"
)
_NO_NAMES = FUNCTION_WORDS | frozenset(_NO_NAME_LIST.split())
_GERMAN_LIST = "der die das und ist nicht ein eine für mit auf den dem wird"
_GERMAN = frozenset(map(word_key, _GERMAN_LIST.split()))


class Mention(msgspec.Struct, frozen=True, gc=False):
    """One thing in a reply that can be looked up."""

    start: int
    end: int
    # "figure", "date", "time", "id", "quote", "name".
    kind: str
    # What it says: a Figure, a Date, minutes of the day, an id's key; a quote or name is its words.
    said: Figure | Date | int | str = ""
    # Its capital may be owed to its place: a name only if the evidence has it.
    doubtful: bool = False


class Marks(msgspec.Struct, frozen=True):
    """What stands in a text by form alone, none inside another."""

    dates: list[Date]
    # (minutes of the day, start, end)
    times: list[tuple[int, int, int]]
    # (key, start, end)
    ids: list[tuple[str, int, int]]
    figures: list[Figure]
    # Which characters belong to one of them.
    taken: bytearray


def find_marks(text: str, words: Words) -> Marks:
    """Dates, times, ids and figures of a text."""
    taken = bytearray(len(text) + 1)
    signs = [found.start() for found in _SIGN.finditer(text)]
    dates = []
    for date in _dates(text, signs):
        # "Under 18 may" is no date.
        if not taken[date.start] and _VERB.search(text, date.start, date.end) is None:
            for one in (*_first_of_two(text, date), date):
                dates.append(one)
                taken[one.start : one.end] = b"\x01" * (one.end - one.start)
    times = list(_times(text, signs, taken))
    ids = []
    for start, end in _chunks(text, signs):
        core = text[start:end].strip(_EDGES)
        start = text.find(core, start)
        if _is_id(core) and not any(taken[start : start + len(core)]):
            ids.append((id_key(core), start, start + len(core)))
            taken[start : start + len(core)] = b"\x01" * len(core)
    return Marks(dates, times, ids, list(find_figures(text, words, taken)), taken)


def _dates(text: str, signs: list[int]) -> Iterator[Date]:
    """The dates around a text's digits."""
    first = 0
    for index, at in enumerate(signs):
        if index + 1 == len(signs) or signs[index + 1] > at + _APART:
            start = max(0, signs[first] - _APART // 2)
            for date in find_dates(text[start : at + _APART // 2]):
                yield msgspec.structs.replace(date, start=date.start + start, end=date.end + start)
            first = index + 1


def _chunks(text: str, signs: list[int]) -> Iterator[tuple[int, int]]:
    """The stretches between white space, brackets and quotes that have a sign of an id in them."""
    end = 0
    for at in signs:
        if at >= end:
            start = at
            while start > end and text[start - 1] not in _PARTS:
                start -= 1
            end = _REST.match(text, at).end()  # type: ignore[union-attr]  # it may match nothing
            yield start, end


def _first_of_two(text: str, date: Date) -> Iterator[Date]:
    """ "21 and" before "22 May"."""
    found = _DAY_BEFORE.search(text, max(0, date.start - 12), date.start) if date.day else None
    if found and 0 < int(found[1]) <= 31:
        yield Date(date.year, date.month, int(found[1]), *found.span(1))


def _times(text: str, signs: list[int], taken: bytearray) -> Iterator[tuple[int, int, int]]:
    matches = [found for at in signs if (found := _TIME.match(text, at))]
    for found in (*_ISO_TIME.finditer(text), *matches):
        parts = found.groupdict()
        half = (parts.get("half") or parts.get("half2") or "").lower()
        clock = ":" in found[0] or half or parts.get("m2") or (parts.get("uhr") or "h").lower() != "h"
        if clock and not taken[found.start()]:
            taken[found.start() : found.end()] = b"\x01" * len(found[0])
            hour = int(found["h"]) % 12 + (12 if half[:1] == "p" else 0) if half else int(found["h"])
            yield hour * 60 + int(found["m"] or parts.get("m2") or 0), *found.span()


def _is_id(core: str) -> bool:
    """Letters and digits in one (X40, DN-448120), parted digits (00340-7781), an address, a user's name."""
    if "@" in core or "://" in core:
        return len(core) > 2
    if len(core) < 2 or not _ID.fullmatch(core):
        return False
    bare = core.replace("-", "")
    if _FIGURE.fullmatch(core):
        long = (core[0] == "0" and len(core) > 4) or ("-" in core and len(core) > 8)
        return bare.isdigit() and long
    if not any(map(str.isdigit, core)):
        return core.islower() and core.replace(".", "").isalpha()
    return core.upper() != core.lower() or core.count("-") > 1


def id_key(text: str) -> str:
    """An id in the form in which equal ones are equal: letters and digits only."""
    return "".join(filter(str.isalnum, text)).casefold()


def find_mentions(text: str, words: Words) -> list[Mention]:
    """Everything in a reply that can be looked up, in order."""
    marks = find_marks(text, words)
    found = [Mention(date.start, date.end, "date", date) for date in marks.dates]
    found += [Mention(start, end, "time", minutes) for minutes, start, end in marks.times]
    found += [Mention(start, end, "id", key) for key, start, end in marks.ids]
    found += [
        Mention(one.start, one.end, "figure", one) for one in marks.figures if not _is_list_number(text, one)
    ]
    found += [Mention(*one.span(), "quote") for one in _QUOTE.finditer(text) if len(WORD.findall(one[0])) > 1]
    found += _names(text, marks.taken, german=len(_GERMAN.intersection(words.keys)) > 3)
    return sorted(found, key=lambda one: (one.start, one.end))


def _is_list_number(text: str, figure: Figure) -> bool:
    """ "1." at the beginning of a line, or a mark such as [2]."""
    before, after = text[max(0, figure.start - 4) : figure.start], text[figure.end : figure.end + 1]
    if before[-1:] == "[" and after == "]":
        return True
    opens = (figure.start < 3 or "\n" in before) and not before.rpartition("\n")[2].strip(" #*")
    return opens and figure.value < 100 and after in _LIST_MARKS


def _names(text: str, taken: bytearray, *, german: bool) -> Iterator[Mention]:
    """Words with a capital and what they join; in German, where every noun has one, one by itself is doubtful."""
    run: list[re.Match[str]] = []
    for found in _CAPITAL.finditer(text):
        if not taken[found.start()] and found[0][0].isupper():
            if run and (len(run) >= _LONGEST_NAME or not _JOIN.fullmatch(text, run[-1].end(), found.start())):
                yield from _name_of(text, run, german=german)
                run = []
            run.append(found)
    yield from _name_of(text, run, german=german)


def _name_of(text: str, run: list[re.Match[str]], *, german: bool) -> Iterator[Mention]:
    while run and _is_plain(run[0][0]):
        run = run[1:]
    while run and _is_plain(run[-1][0]):
        run = run[:-1]
    if run:
        start, end = run[0].start(), run[-1].end()
        before = text[max(0, start - 4) : start].rstrip(" \u00a0")[-1:]
        # Behind a figure stands its unit (MWh, Uhr); one letter is no name.
        if len(run) > 1 or (end - start > 1 and not before.isdigit()):
            opens = not (before.isalnum() or before in _WITHIN)
            yield Mention(start, end, "name", doubtful=opens or (german and len(run) == 1))


def _is_plain(word: str) -> bool:
    # "D." is an initial.
    return word[1:] != "." and re.split("['’.]", word.lower())[0] in _NO_NAMES
