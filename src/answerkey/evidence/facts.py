"""Evidence: tool results, passages, arguments and the question as records of values, and their words as one text."""

import csv
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, compress, count, filterfalse
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.dates import find_dates, month_number
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, fold_accents, stem
from answerkey.text.numbers import DIMENSIONS, SCALES, UNIT_SPELLINGS, parse_number

MOST_EVIDENCE = 500_000  # more characters are not searched
_MOST_VALUES, _LONGEST_LABEL = 24, 60  # so many values of a record are looked at for what it is called
_DEEPEST = 64  # what lies deeper in a result is left out; no tool's table does
_LARGEST, _LONGEST_NUMBER = 1e300, 24  # a larger number is read as text,
_NUMBER_SIGNS = frozenset("123456789-−$€£¥")  # and so is what may be an id with a zero before it
_LEAVES = frozenset({str, int, float, bool, type(None)})
_HOLDING = (dict, list, tuple, Mapping)  # dictionaries are tried first: to ask an abstract class takes long
# Words: a text's words in the form in which equal ones are equal, and where they stand; novelty, which needs no more.


_WORD = re.compile(r"([^\W_]+)")
_ASCII_WORD = re.compile(r"([A-Za-z0-9]+)")
_BREAK = re.compile(r"[.!?;\n。！？](?:(?<=[\n。！？])\n*|\s+)")

# Folded and stemmed; the names of a month are one.
word_key = Remembered(
    lambda word: f"#{month}" if (month := month_number(fold_accents(word))) else stem(fold_accents(word))
).__getitem__
_EMPTY = frozenset(map(word_key, FUNCTION_WORDS))


class Words:
    """The words of a text, in order."""

    def __init__(self, text: str) -> None:
        # What parts the words and the words in turn: all of this runs in C.
        pieces = (_ASCII_WORD if text.isascii() else _WORD).split(text)
        edges = list(accumulate(map(len, pieces)))
        self.starts, self.ends = edges[:-1:2], edges[1::2]
        self.keys = list(map(word_key, pieces[1::2]))

    def indices(self, start: int, end: int) -> range:
        """The numbers of the words of a stretch."""
        return range(bisect_left(self.starts, start), bisect_left(self.starts, end))


def meaning(keys: list[str]) -> set[str]:
    """Those words that carry meaning; digits do not."""
    return set(filterfalse(str.isdigit, set(keys) - _EMPTY))


def sentence_edges(text: str) -> list[int]:
    """Where the sentences of a text begin, and where the last one ends."""
    return [0, *(found.end() for found in _BREAK.finditer(text)), len(text) + 1]


def novelty_of(said: Words, evidence: Words) -> float | None:
    """The share of a text's content words that occur nowhere in its evidence, each counted once; None without one."""
    words = meaning(said.keys)
    return len(words.difference(evidence.keys)) / len(words) if words else None


# What a reply rests on, in this order; what it was asked comes last.
_PARTS = ("tool_calls result error", "sources text title id metadata", "tool_calls arguments")

Path = tuple[str | int, ...]
Earlier = Sequence[tuple[Question, Reply]]


class Record(msgspec.Struct, frozen=True, gc=False):
    """An object or list of the evidence, or a passage by itself."""

    root: str  # "tool_calls[0].result", "sources[1].text", "question"
    path: Path | None  # keys and indices below the root; None: a passage
    first: int  # number of its first spot,
    start: int  # and where that begins in the text
    entries: int = 0  # how many a tool's list has


class Spot(msgspec.Struct, frozen=True, gc=False):
    """One value, the name of one, or a passage."""

    start: int  # in the laid-out text, in which a number takes no room
    text: str
    number: float | None  # whether it came as one or as a text that is nothing else ("$1,420")
    record: int
    key: str | int  # its name or index in the record
    cell: bool  # a tool's result may be summed; a passage, an argument or the name of a value may not


class Evidence:
    """The records, with one behind the last, and their spots in order."""

    def __init__(self) -> None:
        # Everything but the numbers, laid out once it is written, and how long that is.
        self.text, self.length = "", 0
        self.records: list[Record] = []
        self.spots: list[Spot] = []
        self._starts: list[int] = []

    def write(self, value: Any, key: str | int = "", cell: bool = False) -> None:
        """Add a value to the last record."""
        kind, text, number = type(value), value, None
        if kind is not str:
            is_large = kind is int and abs(value) > _LARGEST
            text = "" if value is None else hex(value) if is_large else str(value)
            if (kind is int or kind is float) and -_LARGEST < value < _LARGEST:
                number = float(value)
        elif value[:1] in _NUMBER_SIGNS and len(value) <= _LONGEST_NUMBER and (worth := parse_number(value)):
            number = float(worth)
        if text:
            self.spots.append(Spot(self.length, text, number, len(self.records) - 1, key, cell))
            self._starts.append(self.length)
            self.length += 1 if number is not None else 1 + len(text)

    def spot_at(self, offset: int) -> Spot:
        return self.spots[bisect_right(self._starts, offset) - 1]

    def where(self, spot: Spot) -> str:
        """The address in the reply: tool_calls[0].result[2].balance."""
        record = self.records[spot.record]
        path = () if record.path is None else (*record.path, spot.key)
        return record.root + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)

    def row_label(self, spot: Spot) -> str:
        """What a reader would call the record of a cell: its first short text."""
        first, last = self.records[spot.record].first, self.records[spot.record + 1].first
        others = self.spots[first : min(last, first + _MOST_VALUES)] if spot.cell else []
        texts = [one.text for one in others if one.cell and one.number is None and one.key != spot.key]
        return next((text for text in texts if len(text) <= _LONGEST_LABEL), "")


def gather_evidence(question: Question, reply: Reply, earlier: Earlier = ()) -> Evidence:
    """What a reply may rest on; of a conversation, also what came before it, but not what the chatbot said."""
    evidence = Evidence()
    turns = [(question, reply, ""), *((*turn, f"turns[{number}].") for number, turn in enumerate(earlier))]
    for kind, *names in map(str.split, _PARTS):
        for _, given, prefix in turns:
            for number, one in enumerate(getattr(given, kind)):
                for name in names:
                    where = f"{prefix}{kind}[{number}].{name}"
                    _lay_out(evidence, getattr(one, name), where, cell=name == "result")
    for asked, _, prefix in turns:
        for name in ("question", "context"):
            _lay_out(evidence, getattr(asked, name), prefix + name)
    evidence.records.append(Record("", None, len(evidence.spots), evidence.length))
    evidence.text = "\n".join([spot.text if spot.number is None else "" for spot in evidence.spots])
    return evidence


def _lay_out(evidence: Evidence, value: Any, root: str, cell: bool = False) -> None:
    """Write a passage, or a JSON value leaf by leaf without recursion; the name of a column once."""
    waiting: list[tuple[Any, Path]] = [] if value is None else [(_read_text(value) if cell else value, ())]
    named: set[object] = set()
    while waiting and evidence.length <= MOST_EVIDENCE:
        value, path = waiting.pop()
        is_list, is_table = isinstance(value, (list, tuple)), isinstance(value, _HOLDING)
        at = len(evidence.spots), evidence.length, len(value) if is_list and cell else 0
        evidence.records.append(Record(root, path if is_table else None, *at))
        if not is_table:
            evidence.write(value, "", cell)
            continue
        inside: list[tuple[Any, Path]] = []
        for key, item in enumerate(value) if is_list else _with_columns(value).items():
            if type(key) is not int and key not in named:
                named.add(key)
                evidence.write(str(key), str(key))
            if type(item) in _LEAVES or not isinstance(item, _HOLDING):
                evidence.write(item, key, cell)
            else:
                inside.append((item, (*path, key)))
        waiting += reversed(inside) if len(path) < _DEEPEST else ()


def _with_columns(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Rows that come apart from the names of their columns get them."""
    columns, rows = value.get("columns"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return value
    rows = [dict(zip(map(str, columns), row, strict=False)) if isinstance(row, list) else row for row in rows]
    return {**value, "rows": rows, "columns": None}


def _read_text(text: Any) -> Any:
    """A tool's text as what it holds: JSON, a table with separators, or itself."""
    if not isinstance(text, str):
        return text
    if text[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return text
    ruled = text.replace("\x00", "").splitlines()
    lines = [line.strip().strip("|") for line in ruled if set(line) - set("|-: ")]
    for mark in "|\t;," if len(lines) > 1 else "":
        count = lines[0].count(mark)
        if count and all(line.count(mark) == count for line in lines):
            names, *rows = ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark))
            return [dict(zip(names, row, strict=False)) for row in rows]
    return text


# Marks: the figures, dates, times, ids, names and quotes of a text, each with its span and what it may be looked up as.
#
# Reply and evidence are read by the same reader; names and quotes are looked for in the reply only.


_SPACES = "\u0020\u00a0\u2009\u202f"
# Letters and digits in one: DN-448120, X40, an address; 5C, 2024-W19, but neither 12k nor 3-bedroom; parted digits that are no
# date or time. Of scripts without spaces no letter is a part, for it would glue figures to words.
_IN_ID = r"A-Za-z0-9À-ɏ#&+./:@_-"
_ID = re.compile(
    rf"(?<![{_IN_ID}])(?:#?[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ&+./:_-]*+[0-9@]"
    r"|(?![0-9]{1,4}([-/.:])[0-9]{1,2}(?:\1[0-9]{1,4})?(?![0-9-])|[0-9]{1,2}(?:[AP]M\b|h[0-5]))"
    r"(?:[0-9][0-9./:-]*+(?:(?<=-)[A-ZÀ-Þ]|(?![kKM]\b)[A-ZÀ-Þ]|[a-zà-ÿ]{1,12}[-/.]?[0-9])|0[0-9]{4}|[0-9]+-[0-9]+-[0-9]"
    rf"|[0-9]{{2,}}-[0-9]{{6}}))[{_IN_ID}]*(?<=[A-Za-z0-9À-ɏ])"
)
# What begins with a digit, which comes first so that the engine can skip to it.
_DIGITAL = re.compile(
    # 2024-03-21, 2024-03, 14.02.2025, 2/14/25, 03/2025; 3月21日.
    r"[0-9](?<![0-9][0-9])(?:(?P<date>(?<![\w.-].)(?:[0-9]{3}-[01][0-9](?:-[0-3][0-9])?|[0-9]{3}/[01][0-9]|[0-9]?/[12][0-9]{3}"
    r"|[0-9]{0,3}([-/.])[0-9]{1,2}\2[0-9]{2,4})(?![0-9-])|(?:[0-9]{3}[年년]\s?[0-9]{1,2}|[0-9]?)[月월]\s?[0-9]{1,2}[日일])"
    # 17:30, 5 pm, 18 Uhr, 13h20.
    r"|(?P<time>(?<![.,:].)[0-9]?(?<![3-9][0-9])(?i::[0-5][0-9](?::[0-5][0-9])?(?![0-9:%])(?:\s?[ap]\.?m\b)?"
    r"|(?:\.[0-5][0-9])?\s?(?:[ap]\.?m|uhr)\b(?:\s[0-5][0-9]\b(?!\s?min))?|\s?h\s?[0-5][0-9]\b(?!\s?min)))"
    # 442,300 · 442.300 · 442 300 · 442'300, the same separator throughout; 12,34,567; plain digits; each with decimals. Then a
    # percent sign, or the word that follows: its scale or unit. Behind letters it is part of an id.
    rf"|(?<![0-9][.,].)(?P<part>(?<=[A-Za-zÀ-ɏ_#].)|(?<=[A-Za-zÀ-ɏ][-/.].)|(?=[0-9]*-?[A-JLN-ZÀ-Þ]))?"
    rf"(?:[0-9]{{0,2}}([,.{_SPACES}'’_])[0-9]{{3}}(?:\5[0-9]{{3}})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])|[0-9]*+)(?:[.,][0-9]++)?"
    rf"(?P<tail>[-{_SPACES}]?(?:[%٪]|per cent|[^\W\d_]{{1,14}}\b))?)"
)
_MINUTES = re.compile(r"\.?[,\s]{0,2}(?:and |und |et |y )?([0-5]?[0-9])\s?min")
_LISTED = re.compile(r"(?:^|\n)[ #*]{0,3}[0-9]{1,2}[.)\ufe0f](?![0-9])|\[[0-9]+\]")
_DIGITS = re.compile("[0-9]+")
_SEPARATOR = re.compile(rf"[,.{_SPACES}'’_]")
_CURRENCY = frozenset("$€£¥₹")
# From two on, four words each; one is mostly an article or pronoun.
_NUMBER_WORD_LIST = (
    "two zwei deux dos three drei trois tres four vier quatre cuatro five fünf cinq cinco six sechs six seis seven sieben seven "
    "siete eight acht huit ocho nine neun nine nueve ten zehn dix diez eleven eleven onze onze twelve zwölf douze doce"
)
_NUMBER_WORDS = {word_key(word): str(2 + at // 4) for at, word in enumerate(_NUMBER_WORD_LIST.split())}
_TELLING = _NUMBER_WORDS.keys() | {f"#{month}" for month in range(1, 13)}
# What a word measures, and how much of it; any other word measures itself.
UNITS = {word: DIMENSIONS.get(name, (name, 1.0)) for word, name in UNIT_SPELLINGS.items()}
_QUOTE = re.compile(
    r"“[^“”\n]{4,400}”|„[^„“”\n]{4,400}[“”]|«[^«»\n]{4,400}»|\"[^\"\n]{4,400}\"|「[^」\n]{2,400}」"
)
_JOINS = frozenset(" \u00a0-'’&_")  # what may stand between the words of a name
_LONGEST_NAME = 8
# After anything but these and letters a capital says nothing: a sentence, line, cell or emphasis begins.
_WITHIN = frozenset(",%'’”)&/+")
_NO_NAME_LIST = (
    "i eur usd gbp chf ok pdf monday tuesday wednesday thursday friday saturday sunday yes dear hi hello thanks note total q "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag ja nein sie ihr ihre ihnen ihren ihrem ihrer"
)
_NO_NAMES = frozenset(map(word_key, FUNCTION_WORDS - {"may"} | set(_NO_NAME_LIST.split())))
_GERMAN = frozenset(map(word_key, ("der", "die", "das", "und", "ist", "nicht", "ein", "mit", "auf", "den")))

# What it is ("" for a bare number, else its dimension or the word behind it; a date, time or id itself), its worth, one in the
# last place that is stated (0: there is nothing to be rounded), and how it was read as that.
Reading = tuple[Any, float, float, str]


class Mark(msgspec.Struct, frozen=True, gc=False):
    """One figure, date, time, id, name or quote as it stands in a text."""

    kind: str
    start: int
    end: int
    readings: tuple[Reading, ...] = ()  # everything that it may stand for, plainest first
    scaled: bool = False  # "2 million" stands for anything that rounds to it
    words: range = range(0)  # of a name or quote, by number
    doubtful: bool = False  # a name whose capital may be owed to its place


def find_marks(text: str, words: Words, *, reply: bool = False) -> list[Mark]:
    """Every figure, date and time, none inside another; of a reply also ids, but not the numbers of a list's entries."""
    marks: list[Mark] = []
    starts, ends = words.starts, words.ends
    for index in compress(count(), map(_TELLING.__contains__, words.keys)):
        key = words.keys[index]
        if key in _NUMBER_WORDS:
            readings, _ = _readings(_NUMBER_WORDS[key], "".join(words.keys[index + 1 : index + 2]), False)
            marks.append(Mark("figure", starts[index], ends[index], readings))
        # "Under 18 may" is no date.
        elif text[starts[index] : ends[index]] != "may":
            first, last = starts[max(0, index - 3)], ends[min(index + 3, len(ends) - 1)]
            marks += _dates(text[first:last], first, starts[index])
    for found in _ID.finditer(text) if reply else ():
        marks.append(Mark("id", *found.span(), words=words.indices(*found.span())))
    taken = set(chain.from_iterable([range(mark.start, mark.end) for mark in marks]))
    for found in _LISTED.finditer(text) if reply else ():
        taken.update(range(*found.span()))
    for found in _DIGITAL.finditer(text):
        if found.start() not in taken:
            if found["date"] is not None:
                marks += _dates(found[0], found.start(), found.start())
            else:
                marks.append(_figure(found) if found["time"] is None else _time(found))
    return marks


def _dates(text: str, offset: int, place: int) -> list[Mark]:
    """The date of a text that a place belongs to; where its day may be its month, that too."""
    if text[-1] in "日일":
        date = (None, *map(int, _DIGITS.findall(text)))[-3:]
        return [Mark("date", offset, offset + len(text), ((date, 0.0, 0.0, ""),))]
    for one in find_dates(text):
        if one.start <= place - offset < one.end:
            dates = ((one.year, one.month, one.day), (one.year, one.day, one.month))[: 1 + one.ambiguous]
            span = offset + one.start, offset + one.end
            return [Mark("date", *span, tuple((date, 0.0, 0.0, "") for date in dates))]
    return []


def _time(found: re.Match[str]) -> Mark:
    """A time of day, and the one that it may be without am or pm."""
    hour, minute, *_ = (*map(int, _DIGITS.findall(found[0])), 0)
    minutes = 60 * hour + minute
    if found[0][-1] in "mM":
        minutes = minutes % 720 + (720 if "p" in found[0].lower() else 0)
    readings = tuple((("clock", one % 1440), float(one % 1440), 0.0, "") for one in (minutes, minutes + 720))
    return Mark("time", *found.span(), readings)


def _figure(found: re.Match[str]) -> Mark:
    text, tail, (start, end) = found.string, found["tail"] or "", found.span()
    money = text[start - 1 : start] in _CURRENCY or text[end : end + 1] in _CURRENCY
    readings, scaled = _readings(text[start : end - len(tail)], tail, money)
    if found["part"] is not None:
        return Mark("part", start, end, ((("part", readings[0][1]), 0.0, 0.0, ""),))
    if readings[-1][2] == 3600 and (minutes := _MINUTES.match(text, end)):
        readings, _ = _readings(f"{60 * readings[0][1] + int(minutes[1]):.0f}", "min", False)
        return Mark("figure", start, minutes.end(), readings)
    return Mark("figure", start, end if scaled else end - len(tail), readings, scaled)


@lru_cache(maxsize=8192)
def _readings(digits: str, tail: str, money: bool) -> tuple[tuple[Reading, ...], bool]:
    """What digits and the sign or word behind them may stand for, and whether that is a scale."""
    word = fold_accents(tail.strip("-" + _SPACES)).replace("per cent", "%")
    if word > "\u2e80":  # from here on scripts have no spaces, or (Hangul) units as short as theirs
        word = word[0]
    sort, factor = UNITS.get(word) or (word, 1.0)
    # A single letter is a scale in "£186k", "1,24 M€" and "12k", and else a metre or tonne.
    is_scale = word in SCALES and (sort == word if len(word) > 1 else money or tail in ("k", "K"))
    scale = 10.0 ** SCALES[word] if is_scale else 1.0
    (value, step), *other = ((worth * scale, last * scale) for worth, last in _worths(digits))
    found: list[Reading] = [("", value, step, "")]
    if sort == "%":
        found.append(("", value / 100, step / 100, "as a share"))
    found += [("", worth, last, "") for worth, last in other]
    found += [("", value / 1e3, step / 1e3, "in thousands")] if scale >= 1e3 else []
    found += [("", value / 1e6, step / 1e6, "in millions")] if scale >= 1e6 else []
    # 16,000 may stand for 16,144.
    if step == 1 and digits[-1] == "0":
        found.append(("", value, 10.0 ** min(300, len(digits) - len(digits.rstrip("0"))), "rounded"))
    if step == 1:
        found.append((("part", value), value, 0.0, "part"))
    if sort and not is_scale:
        found.append((sort, value * factor, step * factor, "converted"))
    return tuple(found), is_scale


def _worths(digits: str) -> list[tuple[float, float]]:
    """What digits with their separators are worth, and one in the last place; where there are two readings, both."""
    marks = _SEPARATOR.findall(digits)
    whole = float(_SEPARATOR.sub("", digits))
    power = 10.0 ** min(300, len(digits) - digits.rindex(marks[-1]) - 1) if marks else 1.0
    if not marks or marks[-1] not in ".," or (len(marks) > 1 and len(set(marks)) == 1):
        return [(whole, 1.0)]
    readings = [(whole / power, 1 / power), (whole, 1.0)]
    if len(marks) > 1 or power != 1000:
        return readings[:1]
    return readings if marks == ["."] else readings[:0:-1] if digits.endswith("000") else readings[::-1]


def find_names(text: str, words: Words, marks: list[Mark]) -> Iterator[Mark]:
    """Quotes of two words or more, and words with a capital; in German, where every noun has one, it is doubtful."""
    for found in _QUOTE.finditer(text):
        if len(said := words.indices(*found.span())) > 1:
            yield Mark("quote", words.starts[said[0]], words.ends[said[-1]], words=said)
    german = len(_GERMAN.intersection(words.keys)) > 3
    taken = set(chain.from_iterable([range(mark.start, mark.end) for mark in marks]))
    runs: list[range] = []
    for index, start in enumerate(words.starts):
        is_name = words.keys[index] not in _NO_NAMES or text[start + 1 : start + 2] == "."
        if is_name and text[start].isupper() and start not in taken:
            gap, before = text[words.ends[index - 1] : start], words.ends[index - 1] - words.starts[index - 1]
            is_joined = gap in _JOINS or (before <= 2 and gap in (".", ". "))
            if is_joined and runs and runs[-1].stop == index and len(runs[-1]) < _LONGEST_NAME:
                runs[-1] = range(runs[-1].start, index + 1)
            else:
                runs.append(range(index, index + 1))
    for run in runs:
        start, end = words.starts[run[0]], words.ends[run[-1]]
        lead = text[max(0, start - 4) : start].rstrip(" \u00a0")[-1:]
        # Behind a figure stands its unit (MWh, Uhr); one letter is no name.
        if len(run) > 1 or (end - start > 1 and not lead.isdigit()):
            is_doubtful = not (lead.isalnum() or lead in _WITHIN) or (german and len(run) == 1)
            yield Mark("name", start, end, words=run, doubtful=is_doubtful)
