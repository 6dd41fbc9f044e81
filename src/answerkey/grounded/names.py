"""Names and quotes of a reply: words with a capital and what joins them, and what stands between quotation marks."""

import re
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from answerkey.grounded.marks import Mark
from answerkey.grounded.words import WORD, Words, word_key
from answerkey.text.normalise import FUNCTION_WORDS

__all__ = ["Name", "find_names", "find_quotes"]

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
_NO_NAME_LIST = (
    "i eur usd gbp chf ok pdf monday tuesday wednesday thursday friday saturday sunday yes dear hi hello thanks note total q "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag ja nein sie ihr ihre ihnen ihren ihrem ihrer"
)
_NO_NAMES = FUNCTION_WORDS | frozenset(_NO_NAME_LIST.split())
_GERMAN = frozenset(
    map(word_key, ("der", "die", "das", "und", "ist", "nicht", "ein", "eine", "für", "mit", "auf", "den"))
)


class Name(msgspec.Struct, frozen=True, gc=False):
    """One name or quote."""

    start: int
    end: int
    kind: str = "name"
    # Its capital may be owed to its place: a name only if the evidence has it.
    doubtful: bool = False


def find_quotes(text: str) -> Iterator[Name]:
    """What stands between quotation marks, of two words or more."""
    for one in _QUOTE.finditer(text):
        if len(WORD.findall(one[0])) > 1:
            yield Name(*one.span(), "quote")


def find_names(text: str, words: Words, marks: list[Mark]) -> Iterator[Name]:
    """Words with a capital and what they join; in German, where every noun has one, one by itself is doubtful."""
    german = len(_GERMAN.intersection(words.keys)) > 3
    spans = sorted((start, end) for _, start, end in marks)
    starts = [start for start, _ in spans]
    run: list[re.Match[str]] = []
    for found in _CAPITAL.finditer(text):
        before = bisect_right(starts, found.start()) - 1
        if found[0][0].isupper() and not (before >= 0 and found.start() < spans[before][1]):
            if run and (len(run) >= _LONGEST_NAME or not _JOIN.fullmatch(text, run[-1].end(), found.start())):
                yield from _name_of(text, run, german=german)
                run = []
            run.append(found)
    yield from _name_of(text, run, german=german)


def _name_of(text: str, run: list[re.Match[str]], *, german: bool) -> Iterator[Name]:
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
            yield Name(start, end, doubtful=opens or (german and len(run) == 1))


def _is_plain(word: str) -> bool:
    # "D." is an initial; "It's" and "I'll" are no names.
    return word[1:] != "." and word.replace("’", "'").lower().partition("'")[0].rstrip(".") in _NO_NAMES
