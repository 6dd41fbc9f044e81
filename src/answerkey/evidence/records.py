"""What a reply states and what its evidence holds.

Mentions are the figures, dates, times, ids, names and quotes of a text, each with its span and possible readings. The evidence
(tool results, passages, arguments, the question) is read by the same functions, as records of values and as one text; ids,
names and quotes are looked for in the reply only. Facts are the figures, dates, times, ids, names and addresses that a text
states, in a form in which equal ones are equal.
"""

import csv
import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, filterfalse
from typing import Any, Literal

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.dates import find_dates, month_number
from answerkey.text.normalise import FUNCTION_WORDS, Remembered, fold_accents, stem
from answerkey.text.numbers import DIMENSIONS, SCALES, UNIT_SPELLINGS, parse_number
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import decode_json

MAX_EVIDENCE_CHARACTERS = 500_000
_MAX_LABEL_CANDIDATES = 24  # values of a record that are tried as its label
_MAX_LABEL_LENGTH = 60
_MAX_DEPTH = 64  # deeper parts of a tool result are left out
# Larger numbers, and longer texts, are read as text. So is a text with a leading zero, which may be an id.
_MAX_NUMBER = 1e300
_MAX_NUMBER_LENGTH = 24
_NUMBER_START = frozenset("123456789-−$€£¥")
_LEAF_TYPES = frozenset({str, int, float, bool, type(None)})
_CONTAINER_TYPES = (dict, list, tuple, Mapping)  # the abstract class last: isinstance is slow on it

_WORD = lazy(r"([^\W_]+)")
_ASCII_WORD = lazy(r"([A-Za-z0-9]+)")
_SENTENCE_END = lazy(r"[.!?;\n。！？](?:(?<=[\n。！？])\n*|\s+)")


def _word_key(word: str) -> str:
    folded = fold_accents(word)
    month = month_number(folded)
    return f"#{month}" if month else stem(folded)


# The form in which words are compared: without accents, stemmed, and "#8" for any name of August.
word_key = Remembered(_word_key).__getitem__
_FUNCTION_WORD_KEYS = frozenset(map(word_key, FUNCTION_WORDS))


class Words:
    """The words of a text in order: their keys and spans."""

    def __init__(self, text: str) -> None:
        # Separators and words alternate in `pieces`; splitting and adding up lengths runs in C.
        pieces = (_ASCII_WORD if text.isascii() else _WORD).split(text)
        edges = list(accumulate(map(len, pieces)))
        self.starts, self.ends = edges[:-1:2], edges[1::2]
        self.keys = list(map(word_key, pieces[1::2]))

    def indices(self, start: int, end: int) -> range:
        """The indices of the words that begin in a span of the text."""
        return range(bisect_left(self.starts, start), bisect_left(self.starts, end))


def content_words(keys: Sequence[str]) -> set[str]:
    """The keys without function words and digits."""
    return set(filterfalse(str.isdigit, set(keys) - _FUNCTION_WORD_KEYS))


def sentence_edges(text: str) -> list[int]:
    """The offsets at which the sentences of a text begin, and the end of the last one."""
    return [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text) + 1]


def novelty(reply: Words, evidence: Words) -> float | None:
    """The share of a reply's distinct content words that do not occur in its evidence; None without content words."""
    words = content_words(reply.keys)
    return len(words.difference(evidence.keys)) / len(words) if words else None


RecordPath = tuple[str | int, ...]
EarlierTurns = Sequence[tuple[Question, Reply]]


class EvidenceRecord(msgspec.Struct, frozen=True, gc=False):
    """An object or list of the evidence, or a passage by itself."""

    root: str  # "tool_calls[0].result", "sources[1].text", "question"
    path: RecordPath | None  # keys and indices below the root; None: a passage
    first_value: int  # index of its first value
    start: int  # offset of its first value in the text
    entries: int = 0  # length, for a list in a tool result

    @property
    def label(self) -> str:
        """The name of the record in a derivation: "sum of {label}"."""
        if not self.path:
            return "the result"
        return self.path[-1] if isinstance(self.path[-1], str) else "the row"


class EvidenceValue(msgspec.Struct, frozen=True, gc=False):
    """A value, the name of one, or a passage."""

    start: int  # offset in the text of the evidence, where a number has length 0
    text: str
    number: float | None  # also for a text that is only a number ("$1,420")
    record: int  # index of its record
    key: str | int  # its name or index in the record
    is_cell: bool  # part of a tool result, so that it can be summed; False for passages, arguments and names


class Evidence:
    """All records and values in order, and their words as one text. `records` ends with a sentinel."""

    def __init__(self) -> None:
        self.text = ""  # everything except the numbers; empty until `finish`
        self.length = 0  # of `text`
        self.records: list[EvidenceRecord] = []
        self.values: list[EvidenceValue] = []
        self._starts: list[int] = []

    def add(self, value: Any, root: str, *, is_cell: bool = False) -> None:
        """Add a passage, or a JSON value leaf by leaf. The name of a column is added once."""
        if value is None:
            return
        stack: list[tuple[Any, RecordPath]] = [(parse_tool_text(value) if is_cell else value, ())]
        named: set[object] = set()
        while stack and self.length <= MAX_EVIDENCE_CHARACTERS:
            item, path = stack.pop()
            is_list = isinstance(item, (list, tuple))
            is_container = isinstance(item, _CONTAINER_TYPES)
            self.records.append(
                EvidenceRecord(
                    root,
                    path if is_container else None,
                    len(self.values),
                    self.length,
                    len(item) if is_list and is_cell else 0,
                )
            )
            if not is_container:
                self._add_value(item, "", is_cell)
                continue
            nested: list[tuple[Any, RecordPath]] = []
            for key, part in enumerate(item) if is_list else _with_column_names(item).items():
                if type(key) is not int and key not in named:
                    named.add(key)
                    self._add_value(str(key), str(key), is_cell=False)
                if type(part) in _LEAF_TYPES or not isinstance(part, _CONTAINER_TYPES):
                    self._add_value(part, key, is_cell)
                else:
                    nested.append((part, (*path, key)))
            if len(path) < _MAX_DEPTH:
                stack += reversed(nested)

    def _add_value(self, value: Any, key: str | int, is_cell: bool) -> None:
        """Add a value to the last record."""
        kind, text, number = type(value), value, None
        if kind is not str:
            is_large = kind is int and abs(value) > _MAX_NUMBER
            text = "" if value is None else hex(value) if is_large else str(value)
            if (kind is int or kind is float) and -_MAX_NUMBER < value < _MAX_NUMBER:
                number = float(value)
        elif value[:1] in _NUMBER_START and len(value) <= _MAX_NUMBER_LENGTH:
            parsed = parse_number(value)
            number = float(parsed) if parsed else None
        if text:
            self.values.append(EvidenceValue(self.length, text, number, len(self.records) - 1, key, is_cell))
            self._starts.append(self.length)
            self.length += 1 if number is not None else 1 + len(text)

    def finish(self) -> None:
        """Add the sentinel record and join the text."""
        self.records.append(EvidenceRecord("", None, len(self.values), self.length))
        self.text = "\n".join(["" if value.number is not None else value.text for value in self.values])

    def value_at(self, offset: int) -> EvidenceValue:
        """The value at an offset of the text."""
        return self.values[bisect_right(self._starts, offset) - 1]

    def address(self, value: EvidenceValue) -> str:
        """The path of a value in the reply: tool_calls[0].result[2].balance."""
        record = self.records[value.record]
        path = () if record.path is None else (*record.path, value.key)
        return record.root + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)

    def row_label(self, cell: EvidenceValue) -> str:
        """The first short text in the record of a cell; empty if there is none."""
        if not cell.is_cell:
            return ""
        first = self.records[cell.record].first_value
        last = min(self.records[cell.record + 1].first_value, first + _MAX_LABEL_CANDIDATES)
        for value in self.values[first:last]:
            is_text = value.is_cell and value.number is None and value.key != cell.key
            if is_text and len(value.text) <= _MAX_LABEL_LENGTH:
                return value.text
        return ""


def gather_evidence(question: Question, reply: Reply, earlier: EarlierTurns = ()) -> Evidence:
    """Everything that a reply can be based on, including earlier turns, but not the texts of earlier replies.

    The order decides which of several equal values is linked: tool results, sources, arguments, then the question.
    """
    evidence = Evidence()
    turns = [("", question, reply)]
    turns += [(f"turns[{number}].", *turn) for number, turn in enumerate(earlier)]
    calls = [
        (f"{prefix}tool_calls[{number}]", call)
        for prefix, _, answer in turns
        for number, call in enumerate(answer.tool_calls)
    ]
    for root, call in calls:
        evidence.add(call.result, f"{root}.result", is_cell=True)
        evidence.add(call.error, f"{root}.error")
    for prefix, _, answer in turns:
        for number, source in enumerate(answer.sources):
            root = f"{prefix}sources[{number}]"
            evidence.add(source.text, f"{root}.text")
            evidence.add(source.title, f"{root}.title")
            evidence.add(source.id, f"{root}.id")
            evidence.add(source.metadata, f"{root}.metadata")
    for root, call in calls:
        evidence.add(call.arguments, f"{root}.arguments")
    for prefix, asked, _ in turns:
        evidence.add(asked.question, f"{prefix}question")
        evidence.add(asked.context, f"{prefix}context")
    evidence.finish()
    return evidence


def _with_column_names(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """{"columns": [names], "rows": [[cells]]} with each row as an object; any other value unchanged."""
    columns, rows = value.get("columns"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return value
    rows = [dict(zip(map(str, columns), row, strict=False)) if isinstance(row, list) else row for row in rows]
    return {**value, "rows": rows, "columns": None}


def parse_tool_text(value: Any) -> Any:
    """Parse the text of a tool result: JSON, or a table with separators. Return any other value unchanged."""
    if not isinstance(value, str):
        return value
    if value[:1] in ("[", "{"):
        try:
            return decode_json(value)
        except ValueError:
            return value
    # A Markdown table has a line of dashes below its header.
    lines = [
        line.strip().strip("|") for line in value.replace("\x00", "").splitlines() if set(line) - set("|-: ")
    ]
    for separator in "|\t;," if len(lines) > 1 else "":
        count = lines[0].count(separator)
        if count and all(line.count(separator) == count for line in lines):
            names, *rows = ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator))
            return [dict(zip(names, row, strict=False)) for row in rows]
    return value


_SPACES = "\u0020\u00a0\u2009\u202f"
# An id mixes letters and digits (DN-448120, X40, an e-mail address, 5C, 2024-W19; not 12k, not 3-bedroom), or is a group of
# digits that is not a date or time. Letters of scripts without spaces are excluded: they would join figures to words.
_ID_CHARACTERS = r"A-Za-z0-9À-ɏ#&+./:@_-"
_ID = lazy(
    rf"(?<![{_ID_CHARACTERS}])(?:#?[A-Za-zÀ-ɏ][A-Za-zÀ-ɏ&+./:_-]*+[0-9@]"
    r"|(?![0-9]{1,4}([-/.:])[0-9]{1,2}(?:\1[0-9]{1,4})?(?![0-9-])|[0-9]{1,2}(?:[AP]M\b|h[0-5]))"
    r"(?:[0-9][0-9./:-]*+(?:(?<=-)[A-ZÀ-Þ]|(?![kKM]\b)[A-ZÀ-Þ]|[a-zà-ÿ]{1,12}[-/.]?[0-9])|0[0-9]{4}|[0-9]+-[0-9]+-[0-9]"
    rf"|[0-9]{{2,}}-[0-9]{{6}}))[{_ID_CHARACTERS}]*(?<=[A-Za-z0-9À-ɏ])"
)
# A date, time or figure that begins with a digit. The digit comes first so that the engine can skip to it.
_DIGITAL = lazy(
    # Dates: 2024-03-21, 2024-03, 14.02.2025, 2/14/25, 03/2025; 3月21日.
    r"[0-9](?<![0-9][0-9])(?:(?P<date>(?<![\w.-].)(?:[0-9]{3}-[01][0-9](?:-[0-3][0-9])?|[0-9]{3}/[01][0-9]|[0-9]?/[12][0-9]{3}"
    r"|[0-9]{0,3}([-/.])[0-9]{1,2}\2[0-9]{2,4})(?![0-9-])|(?:[0-9]{3}[年년]\s?[0-9]{1,2}|[0-9]?)[月월]\s?[0-9]{1,2}[日일])"
    # Times: 17:30, 5 pm, 18 Uhr, 13h20.
    r"|(?P<time>(?<![.,:].)[0-9]?(?<![3-9][0-9])(?i::[0-5][0-9](?::[0-5][0-9])?(?![0-9:%])(?:\s?[ap]\.?m\b)?"
    r"|(?:\.[0-5][0-9])?\s?(?:[ap]\.?m|uhr)\b(?:\s[0-5][0-9]\b(?!\s?min))?|\s?h\s?[0-5][0-9]\b(?!\s?min)))"
    # Figures: 442,300 · 442.300 · 442 300 · 442'300 with the same separator throughout; 12,34,567; plain digits; each with
    # decimals, then a percent sign or the word that follows (a scale or unit). Behind letters they are part of an id.
    rf"|(?<![0-9][.,].)(?P<part>(?<=[A-Za-zÀ-ɏ_#].)|(?<=[A-Za-zÀ-ɏ][-/.].)|(?=[0-9]*-?[A-JLN-ZÀ-Þ]))?"
    rf"(?:[0-9]{{0,2}}([,.{_SPACES}'’_])[0-9]{{3}}(?:\5[0-9]{{3}})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])|[0-9]*+)(?:[.,][0-9]++)?"
    rf"(?P<tail>[-{_SPACES}]?(?:[%٪]|per cent|[^\W\d_]{{1,14}}\b))?)"
)
_MINUTES = lazy(r"\.?[,\s]{0,2}(?:and |und |et |y )?([0-5]?[0-9])\s?min")
_LIST_NUMBER = lazy(r"(?:^|\n)[ #*]{0,3}[0-9]{1,2}[.)\ufe0f](?![0-9])|\[[0-9]+\]")
_DIGITS = lazy("[0-9]+")
_SEPARATOR = lazy(rf"[,.{_SPACES}'’_]")
_CURRENCY = frozenset("$€£¥₹")
# 2 to 12 in English, German, French and Spanish. "One" is left out: it is mostly an article or pronoun.
_NUMBER_WORD_LIST = (
    "two zwei deux dos three drei trois tres four vier quatre cuatro five fünf cinq cinco six sechs six seis seven sieben seven "
    "siete eight acht huit ocho nine neun nine nueve ten zehn dix diez eleven eleven onze onze twelve zwölf douze doce"
)
_NUMBER_WORDS = {word_key(word): str(2 + index // 4) for index, word in enumerate(_NUMBER_WORD_LIST.split())}
_NUMBER_OR_MONTH = _NUMBER_WORDS.keys() | {f"#{month}" for month in range(1, 13)}
# Unit → (dimension, factor to its base unit). A word that is not here is a dimension of its own.
UNITS = {word: DIMENSIONS.get(name, (name, 1.0)) for word, name in UNIT_SPELLINGS.items()}
_QUOTE = lazy(r"“[^“”\n]{4,400}”|„[^„“”\n]{4,400}[“”]|«[^«»\n]{4,400}»|\"[^\"\n]{4,400}\"|「[^」\n]{2,400}」")
_NAME_JOINERS = frozenset(" \u00a0-'’&_")  # between the words of a name
_MAX_NAME_WORDS = 8
# A capital after a letter or one of these marks a name. Elsewhere it may only begin a sentence, line, cell or emphasis.
_WITHIN_SENTENCE = frozenset(",%'’”)&/+")
_CAPITALISED_WORD_LIST = (
    "i eur usd gbp chf ok pdf monday tuesday wednesday thursday friday saturday sunday yes dear hi hello thanks note total q "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag ja nein sie ihr ihre ihnen ihren ihrem ihrer"
)
_NOT_NAMES = frozenset(map(word_key, FUNCTION_WORDS - {"may"} | set(_CAPITALISED_WORD_LIST.split())))
_GERMAN = frozenset(map(word_key, ("der", "die", "das", "und", "ist", "nicht", "ein", "mit", "auf", "den")))


class Amount(msgspec.Struct, frozen=True, gc=False):
    """A number of something."""

    value: float
    step: float  # one unit in the last stated place: the precision
    unit: str = ""  # its dimension, or the word after the number; "" for the bare number
    how: Literal["", "as a share", "in thousands", "in millions", "rounded", "converted"] = ""


class CalendarDate(msgspec.Struct, frozen=True, gc=False):
    """A date or a part of one."""

    year: int | None
    month: int | None
    day: int | None


class TimeOfDay(msgspec.Struct, frozen=True, gc=False):
    """A time of day in minutes after midnight."""

    minutes: int


class Digits(msgspec.Struct, frozen=True, gc=False):
    """A number as part of a date or id: 2024, or the 19 of 2024-W19."""

    value: float


Reading = Amount | CalendarDate | TimeOfDay | Digits
MentionKind = Literal["figure", "date", "time", "id", "name", "quote", "part"]


class Mention(msgspec.Struct, frozen=True, gc=False):
    """One figure, date, time, id, name or quote in a text; "part" is a number inside an id."""

    kind: MentionKind
    start: int
    end: int
    readings: tuple[Reading, ...] = ()  # most literal first
    is_scaled: bool = False  # "2 million" matches every value that rounds to it
    words: range = range(0)  # indices of its words, for ids, names and quotes
    is_doubtful: bool = False  # a name whose capital may only begin a sentence


def find_mentions(text: str, words: Words, *, is_reply: bool = False) -> list[Mention]:
    """Every figure, date and time without overlaps; in a reply also ids, but not the numbers of list entries."""
    mentions: list[Mention] = []
    for index, key in enumerate(words.keys):
        if key in _NUMBER_OR_MONTH:
            mentions += _number_or_month(text, words, index)
    if is_reply:
        for match in _ID.finditer(text):
            mentions.append(Mention("id", *match.span(), words=words.indices(*match.span())))
    covered = _covered_offsets(mentions)
    for match in _LIST_NUMBER.finditer(text) if is_reply else ():
        covered.update(range(*match.span()))
    for match in _DIGITAL.finditer(text):
        if match.start() in covered:
            continue
        if match["date"] is not None:
            mentions += _date_at(match[0], match.start(), match.start())
        elif match["time"] is not None:
            mentions.append(_time(match))
        else:
            mentions.append(_figure(match))
    return mentions


def _covered_offsets(mentions: list[Mention]) -> set[int]:
    return set(chain.from_iterable([range(mention.start, mention.end) for mention in mentions]))


def _number_or_month(text: str, words: Words, index: int) -> list[Mention]:
    """The mention that a number word or the name of a month belongs to."""
    start, end, key = words.starts[index], words.ends[index], words.keys[index]
    if key in _NUMBER_WORDS:
        following = "".join(words.keys[index + 1 : index + 2])
        readings, _ = _quantity_readings(_NUMBER_WORDS[key], following, False)
        return [Mention("figure", start, end, readings)]
    if text[start:end] == "may":  # "Under 18 may" is not a date
        return []
    first, last = words.starts[max(0, index - 3)], words.ends[min(index + 3, len(words.ends) - 1)]
    return _date_at(text[first:last], first, start)


def _date_at(text: str, offset: int, position: int) -> list[Mention]:
    """The date in `text` (which begins at `offset`) that covers `position`; if day and month can be swapped, both readings."""
    if text[-1] in "日일":
        year, month, day = (None, *map(int, _DIGITS.findall(text)))[-3:]
        return [Mention("date", offset, offset + len(text), (CalendarDate(year, month, day),))]
    for date in find_dates(text):
        if date.start <= position - offset < date.end:
            readings = [CalendarDate(date.year, date.month, date.day)]
            if date.ambiguous:
                readings.append(CalendarDate(date.year, date.day, date.month))
            return [Mention("date", offset + date.start, offset + date.end, tuple(readings))]
    return []


def _time(match: re.Match[str]) -> Mention:
    """A time of day, with the second reading that it has without am or pm."""
    hour, minute, *_ = (*map(int, _DIGITS.findall(match[0])), 0)
    minutes = 60 * hour + minute
    if match[0][-1] in "mM":
        minutes = minutes % 720 + (720 if "p" in match[0].lower() else 0)
    return Mention("time", *match.span(), (TimeOfDay(minutes % 1440), TimeOfDay((minutes + 720) % 1440)))


def _figure(match: re.Match[str]) -> Mention:
    text, tail, (start, end) = match.string, match["tail"] or "", match.span()
    is_money = text[start - 1 : start] in _CURRENCY or text[end : end + 1] in _CURRENCY
    readings, is_scaled = _quantity_readings(text[start : end - len(tail)], tail, is_money)
    literal, last = readings[0], readings[-1]
    assert isinstance(literal, Amount)
    if match["part"] is not None:
        return Mention("part", start, end, (Digits(literal.value),))
    # "5 h 12 min" is one figure.
    minutes = _MINUTES.match(text, end) if isinstance(last, Amount) and last.step == 3600 else None
    if minutes:
        readings, _ = _quantity_readings(f"{60 * literal.value + int(minutes[1]):.0f}", "min", False)
        return Mention("figure", start, minutes.end(), readings)
    return Mention("figure", start, end if is_scaled else end - len(tail), readings, is_scaled)


@lru_cache(maxsize=8192)
def _quantity_readings(digits: str, tail: str, is_money: bool) -> tuple[tuple[Reading, ...], bool]:
    """The readings of digits and the sign or word after them, and whether that word is a scale ("million")."""
    word = fold_accents(tail.strip("-" + _SPACES)).replace("per cent", "%")
    if word > "\u2e80":  # scripts from here on have no spaces, or (Hangul) units of one character
        word = word[0]
    unit, factor = UNITS.get(word) or (word, 1.0)
    # A single letter is a scale in "£186k", "1,24 M€" and "12k", otherwise a metre or tonne.
    is_scale = word in SCALES and (unit == word if len(word) > 1 else is_money or tail in ("k", "K"))
    scale = 10.0 ** SCALES[word] if is_scale else 1.0
    literal, *alternatives = [
        Amount(value * scale, step * scale) for value, step in _values_and_steps(digits)
    ]
    value, step = literal.value, literal.step
    readings: list[Reading] = [literal]
    if unit == "%":
        readings.append(Amount(value / 100, step / 100, how="as a share"))
    readings += alternatives
    if scale >= 1e3:
        readings.append(Amount(value / 1e3, step / 1e3, how="in thousands"))
    if scale >= 1e6:
        readings.append(Amount(value / 1e6, step / 1e6, how="in millions"))
    if step == 1 and digits[-1] == "0":  # 16,000 may mean 16,144
        zeros = len(digits) - len(digits.rstrip("0"))
        readings.append(Amount(value, 10.0 ** min(300, zeros), how="rounded"))
    if step == 1:
        readings.append(Digits(value))
    if unit and not is_scale:
        readings.append(Amount(value * factor, step * factor, unit, "converted"))
    return tuple(readings), is_scale


def _values_and_steps(digits: str) -> list[tuple[float, float]]:
    """(value, one unit in the last place) of digits with separators, likeliest first; 1.234 has two readings."""
    separators = _SEPARATOR.findall(digits)
    whole = float(_SEPARATOR.sub("", digits))
    if not separators or separators[-1] not in ".," or (len(separators) > 1 and len(set(separators)) == 1):
        return [(whole, 1.0)]
    power = 10.0 ** min(300, len(digits) - digits.rindex(separators[-1]) - 1)
    with_decimals, without = (whole / power, 1 / power), (whole, 1.0)
    if len(separators) > 1 or power != 1000:
        return [with_decimals]
    if separators == ["."]:
        return [with_decimals, without]
    return [without] if digits.endswith("000") else [without, with_decimals]


def find_names(text: str, words: Words, mentions: list[Mention]) -> Iterator[Mention]:
    """Quotes of at least two words, and capitalised words outside other mentions."""
    for match in _QUOTE.finditer(text):
        quoted = words.indices(*match.span())
        if len(quoted) > 1:
            yield Mention("quote", words.starts[quoted[0]], words.ends[quoted[-1]], words=quoted)
    # German capitalises every noun.
    is_german = len(_GERMAN.intersection(words.keys)) > 3
    for run in _capitalised_runs(text, words, _covered_offsets(mentions)):
        start, end = words.starts[run[0]], words.ends[run[-1]]
        before = text[max(0, start - 4) : start].rstrip(" \u00a0")[-1:]
        # A single word after a figure is its unit (MWh, Uhr), and a single letter is not a name.
        if len(run) > 1 or (end - start > 1 and not before.isdigit()):
            begins_sentence = not (before.isalnum() or before in _WITHIN_SENTENCE)
            is_doubtful = begins_sentence or (is_german and len(run) == 1)
            yield Mention("name", start, end, words=run, is_doubtful=is_doubtful)


def _capitalised_runs(text: str, words: Words, covered: set[int]) -> list[range]:
    """Neighbouring capitalised words, joined into names."""
    runs: list[range] = []
    for index, start in enumerate(words.starts):
        is_initial = text[start + 1 : start + 2] == "."
        if not text[start].isupper() or start in covered:
            continue
        if words.keys[index] in _NOT_NAMES and not is_initial:
            continue
        gap = text[words.ends[index - 1] : start]
        length_before = words.ends[index - 1] - words.starts[index - 1]
        is_joined = gap in _NAME_JOINERS or (length_before <= 2 and gap in (".", ". "))
        if is_joined and runs and runs[-1].stop == index and len(runs[-1]) < _MAX_NAME_WORDS:
            runs[-1] = range(runs[-1].start, index + 1)
        else:
            runs.append(range(index, index + 1))
    return runs


FactKind = Literal["figure", "date", "time", "id", "name", "address"]

# What is asked for is answered at the beginning of a longer text.
MAX_CHARACTERS = 20_000

_STREET_TYPES = (
    "St|Ave|Avenue|Street|Road|Rd|Blvd|Boulevard|Lane|Ln|Dr|Drive|Way|Court|Ct|Place|Pl|Highway|Hwy|Square|Sq"
)
_ADDRESS = lazy(
    r"\b\d{1,6}[A-Z]?\s(?:[NSEW]\.?\s)?(?:\d{1,3}(?:st|nd|rd|th)\s|[A-Z][\w'-]+\s){1,3}"
    rf"(?:{_STREET_TYPES})\b"
)


class Fact(msgspec.Struct, frozen=True):
    """A figure, date, time, id, name or address in a text; equal facts have the same key."""

    kind: FactKind
    key: Hashable
    start: int
    end: int
    # A name whose capital may only begin a sentence.
    is_doubtful: bool = False


@lru_cache(maxsize=65_536)
def facts_of(text: str) -> tuple[Fact, ...]:
    """Every fact of a text, in order and without overlaps.

    >>> [fact.kind for fact in facts_of("Naomi Brandvold of 12 Oak St pays $1,420 from June 9, 2023.")]
    ['name', 'address', 'figure', 'date']
    """
    text = text[:MAX_CHARACTERS]
    words = Words(text)
    mentions = find_mentions(text, words, is_reply=True)
    facts = [
        Fact("address", ("address", match[0].casefold()), *match.span()) for match in _ADDRESS.finditer(text)
    ]
    covered = {offset for fact in facts for offset in range(fact.start, fact.end)}
    for mention in (*mentions, *find_names(text, words, mentions)):
        fact = _fact(mention, text, words)
        if fact is not None and fact.start not in covered and fact.end - 1 not in covered:
            facts.append(fact)
    return tuple(sorted(facts, key=lambda fact: fact.start))


def _fact(mention: Mention, text: str, words: Words) -> Fact | None:
    span = mention.start, mention.end
    reading = mention.readings[0] if mention.readings else None
    match mention.kind:
        case "figure" if isinstance(reading, Amount):
            return Fact("figure", ("figure", float(reading.value)), *span)
        case "date" if isinstance(reading, CalendarDate):
            return Fact("date", ("date", reading.year, reading.month, reading.day), *span)
        case "time" if isinstance(reading, TimeOfDay):
            return Fact("time", ("time", reading.minutes), *span)
        case "id":
            return Fact("id", ("id", text[slice(*span)].casefold()), *span)
        case "name":
            keys = tuple(words.keys[index] for index in mention.words)
            # The key of a month's name begins with a hash: it is part of a date.
            if any(key.startswith("#") for key in keys):
                return None
            return Fact("name", ("name", keys), *span, is_doubtful=mention.is_doubtful)
    return None


# What a question asks for.

_FIGURE: frozenset[FactKind] = frozenset({"figure"})
_DATE: frozenset[FactKind] = frozenset({"date", "time"})
_NAME: frozenset[FactKind] = frozenset({"name", "address", "id"})
_CODE: frozenset[FactKind] = frozenset({"id", "figure"})
EVERY_KIND: frozenset[FactKind] = _FIGURE | _DATE | _NAME

# The last word of what is asked for ("what interest RATE do we pay") → the kinds of facts that answer it.
_NOUNS: dict[frozenset[FactKind], str] = {
    _FIGURE: "total sum amount cost price rate share fee rent income revenue spending spend expense profit loss balance "
    "percent percentage average mean value worth deposit basis equity depreciation deductible limit salary wage budget fare "
    "tax interest premium margin size area weight distance height length age capacity temperature count quantity turnover "
    "earnings charge discount bill ratio tolerance mileage debt distribution contribution threshold maximum minimum",
    _DATE: "date day month year deadline time hour week weekday birthday expiry",
    _NAME: "name address category property building supplier vendor tenant lender insurer manager agent company firm "
    "author person owner city town place country bank contractor member customer employee product model doctor gate",
    _CODE: "number id code ein reference identifier",
}
_KIND_OF_NOUN = {noun: kinds for kinds, nouns in _NOUNS.items() for noun in nouns.split()}
_WH = lazy(
    r"\b(?:(?P<measure>how (?:much|many|often|old|big|large|long|far|high|tall|wide|deep|heavy|fast|profitable))"
    r"|(?P<who>who|whose|whom)|(?P<where>where)|(?P<when>when)|(?P<pick>which)|(?P<what>what)|(?P<way>how|why))(?:['’](?:s|re))?\b",
    re.IGNORECASE,
)
_AFTER_WHAT = lazy(
    r"\s*(?:(?:is|are|was|were|has|have|will|would)\b\s*)?(?:(?:been|be|all|the|our|my|your|his|her|its|their|a|an)\s+)*",
    re.IGNORECASE,
)
_PHRASE_END = lazy(
    r"[^\w\s'’.-]|\b(?:of|in|on|at|for|from|to|with|by|during|under|between|per|and|or|is|are|was|were|do|does|did|has|have|had|will"
    r"|would|can|could|should|must|may|might|we|i|you|he|she|it|they|my|our|about)\b",
    re.IGNORECASE,
)
_PAYS = lazy(
    r"\b(?:pa(?:y|ys|id)|cost|costs|spen[dt]|spends|earn(?:ed|s)?|owe[sd]?|worth|charged?|charges|contributed?)\b",
    re.IGNORECASE,
)
_ASKS_ALOUD = lazy(r"\b(?:tell|show|know|say|give|find|remind|explain|check|look|let)\b", re.IGNORECASE)
_YES_OR_NO = lazy(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|must|any|isn't|aren't|didn't|don't|doesn't)\b",
    re.IGNORECASE,
)
_SENTENCE = lazy(r"[^.?!]+[.?!]*\s*")


class AnswerShape(msgspec.Struct, frozen=True):
    """What a question asks for."""

    # Each part of the question: the kinds of facts of which one answers it. Empty: unknown, any fact may be asked for.
    parts: tuple[frozenset[FactKind], ...] = ()
    # Yes or no; figures, dates and names beside it are details.
    is_yes_or_no: bool = False
    # How the asked figure is written.
    unit: Literal["", "money", "percent", "count"] = ""

    @property
    def kinds(self) -> frozenset[FactKind]:
        """Every kind of fact that may be what is asked for."""
        return frozenset().union(*self.parts) if self.parts else EVERY_KIND


@lru_cache(maxsize=20_000)
def answer_shape(question: str) -> AnswerShape:
    """What a question asks for; English questions only, of others it is unknown.

    >>> answer_shape("How many leases end in May?").unit, answer_shape("Did Ann sign?").is_yes_or_no
    ('count', True)
    """
    sentences: list[str] = _SENTENCE.findall(question[-2_000:]) or [question]
    asking = [sentence for sentence in sentences if "?" in sentence] or sentences[-1:]
    parts: list[frozenset[FactKind]] = []
    is_yes_or_no = False
    for sentence in asking:
        begins = sentence.strip().split(",")[-1].strip() if "," in sentence[:20] else sentence.strip()
        if _YES_OR_NO.match(begins) and not (_ASKS_ALOUD.search(sentence) and _WH.search(sentence)):
            is_yes_or_no = True
            continue
        found = list(_parts(sentence))
        if not found or None in found:
            return AnswerShape()
        parts += [part for part in found if part is not None]
    return AnswerShape(parts=tuple(parts), is_yes_or_no=is_yes_or_no, unit=_unit(question, parts))


def _parts(sentence: str) -> Iterator[frozenset[FactKind] | None]:
    """The parts of a question: "what was the rent, and who paid it"; None for a part whose answer may be anything."""
    for match in _WH.finditer(sentence):
        rest = sentence[match.end() :]
        if match["measure"]:
            is_old, is_long = match[0].lower().endswith("old"), match[0].lower().endswith("long")
            yield _FIGURE | _DATE if is_old or is_long else _FIGURE
        elif match["who"] or match["where"]:
            yield _NAME
        elif match["when"]:
            # "When a member sells" is a condition; "when is there a quorum" asks for anything.
            if match.start() == 0 or re.match(
                r"\s(?:is|are|was|were|do|does|did|has|have|will|must|can|should)\b", rest
            ):
                yield _DATE
        elif match["pick"] or match["what"]:
            yield _asked_noun(rest, picks=bool(match["pick"]))
        else:
            yield None


def _asked_noun(rest: str, *, picks: bool) -> frozenset[FactKind] | None:
    """The kinds of "interest rate do we pay" (behind "what")."""
    skipped = _AFTER_WHAT.match(rest)
    rest = rest[skipped.end() :] if skipped else rest
    end = _PHRASE_END.search(rest)
    words = re.findall(r"\w+", re.sub(r"['’]s\b", "", rest[: end.start() if end else None]).lower())
    for word in reversed(words):
        for noun in (word, word.removesuffix("s"), re.sub("ies$", "y", word), word.removesuffix("es")):
            if noun in _KIND_OF_NOUN:
                # Of several (which buildings), the answer may be in words that are not facts.
                return _KIND_OF_NOUN[noun]
        break
    if not picks and _PAYS.search(rest):
        return _FIGURE
    return _NAME if picks and words and not words[-1].endswith("s") else None


def _unit(question: str, parts: list[frozenset[FactKind]]) -> Literal["", "money", "percent", "count"]:
    if not any("figure" in part for part in parts):
        return ""
    if re.search(r"\bhow (?:many|often)\b|\bthe (?:number|count) of\b", question, re.IGNORECASE):
        return "count"
    if re.search(
        r"\b(?:share|percent(?:age)?|interest rate|proportion)\b|\bmembership interest\b",
        question,
        re.IGNORECASE,
    ):
        return "percent"
    return "money" if re.search(r"\bhow much\b", question, re.IGNORECASE) or _PAYS.search(question) else ""
