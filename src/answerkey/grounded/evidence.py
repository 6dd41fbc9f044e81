"""Evidence: all that a reply may rest on — tool results, sources, question — read for numbers, dates, words and tables."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date as calendar_date
from functools import cached_property

import msgspec

from answerkey.grounded.claims.quantity import currency_named
from answerkey.grounded.flatten import Leaf, Table, flatten, key_words
from answerkey.grounded.reading import measure_named, read_text
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.dates import Date, find_dates

__all__ = ["DateFact", "Evidence", "NumberFact", "Passage", "gather_evidence"]

# Names of values that tell things apart and measure nothing.
_ID_KEYS_TEXT = """
id ids uuid guid hash key index idx no number zip zipcode postal phone fax code ein ssn sku account
"""
_ID_KEYS = frozenset(_ID_KEYS_TEXT.split())
_MOST_NUMBERS = 5_000
_MOST_REPEATED = 500
_MOST_MEASURES = 8
# One that is not a leap year.
_SOME_YEAR = 2023
_DIGIT = re.compile(r"[0-9]")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
# Keys of what a search adds to a document and no reply speaks of; a score is that only if it is a fraction.
_RANKING_KEYS = frozenset(["score", "similarity", "relevance"])


class NumberFact(msgspec.Struct, frozen=True, kw_only=True):
    """A number in the evidence."""

    value: float
    kind: str
    unit: float
    where: str
    key: str
    # The value of an id, a code or the like: it supports naming that thing, not a measure of the same size.
    names_something: bool
    text: str
    # The currency that it is given in (see Quantity), "" where none is known.
    currency: str = ""
    # The unit that it is given in ("celsius", "day"), "" where none is known.
    measure: str = ""
    # The word before it in a text ("deposit" of "Security deposit: $2,500"), "" where there is none.
    label: str = ""
    # The word after it in a text that is no unit ("doses" of "two doses"), "" where there is none.
    noun: str = ""


class DateFact(msgspec.Struct, frozen=True, kw_only=True):
    """A date in the evidence."""

    date: Date
    where: str
    text: str

    @property
    def day(self) -> calendar_date | None:
        """The day in the calendar, if the date is complete and exists."""
        year, month, day = self.date.year, self.date.month, self.date.day
        if year is None or month is None or day is None:
            return None
        try:
            return calendar_date(year, month, day)
        except ValueError:
            return None


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A text in the evidence, as it stands and folded for comparing words."""

    where: str
    text: str
    # " word word ": a phrase is in it if it is in it with a blank on either side.
    folded: str


class Evidence:
    """What a reply may rest on."""

    def __init__(
        self, leaves: list[Leaf], tables: list[Table], own: list[Leaf], arguments: list[Leaf]
    ) -> None:
        # Values of tool results and sources, then of the question, then of the tools' arguments.
        self.leaves = leaves
        self.tables = tables
        self.own = own
        self.arguments = arguments

    @cached_property
    def passages(self) -> list[Passage]:
        """Every text, the question's included; a number is a text of one word."""
        return [
            Passage(where=leaf.where, text=text, folded=read_text(text).folded)
            for leaf in (*self.leaves, *self.own)
            if (text := _as_text(leaf)).strip()
        ]

    @cached_property
    def original(self) -> str:
        """All texts in one."""
        return "\n".join(passage.text for passage in self.passages)

    @cached_property
    def everything(self) -> str:
        """All texts in one, lower case, for a quick search."""
        return self.original.lower()

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every folded word of the texts and of the names of values."""
        words: set[str] = set()
        words.update(*(read_text(passage.text).words for passage in self.passages))
        words.update(*(key_words(key) for key in self._keys))
        return frozenset(words)

    @cached_property
    def names_of_values(self) -> frozenset[str]:
        """The nearest name of every value."""
        return frozenset(leaf.key for leaf in self.leaves)

    @cached_property
    def words_of_names(self) -> frozenset[str]:
        """Every word of the names of values, small."""
        return frozenset(word for key in self._keys for word in key_words(key))

    @cached_property
    def _keys(self) -> set[str]:
        """The names on the way to every value."""
        return {name for leaf in self.leaves for name in leaf.where.split(".")[1:]}

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """Words that the evidence also writes without a capital, or uses as the name of a value."""
        words: set[str] = set()
        words.update(*(read_text(passage.text).plain_words for passage in self.passages))
        words.update(*(key_words(key) for key in self._keys))
        return frozenset(words)

    @cached_property
    def numbers(self) -> list[NumberFact]:
        """Every number; digits of dates, times and codes are not numbers."""
        found: dict[tuple[float, str, str, bool, str, int], NumberFact] = {}
        currencies = _currencies(self.leaves)
        # {"yes": 96, "no": 11}: a "no" that is not short for number.
        counted = "yes" in {leaf.key.lower() for leaf in self.leaves}
        for leaf in (*self.own, *self.leaves):
            currency = currencies.get(leaf.where.rpartition(".")[0], "") if currencies else ""
            for fact in _numbers(leaf, currency, counted=counted):
                # A text that repeats a number says nothing new with it, but amounts may be added up.
                again = len(found) if fact.kind == "money" and len(found) < _MOST_REPEATED else 0
                key = (fact.value, fact.kind, fact.measure, fact.names_something, fact.where, again)
                found.setdefault(key, fact)
            if len(found) > _MOST_NUMBERS:
                break
        facts = list(found.values())
        # The question's own numbers come last: a tool result is the better support.
        asked = sum(fact.where in ("question", "context") for fact in facts)
        return facts[asked:] + facts[:asked]

    @cached_property
    def measures(self) -> list[str]:
        """The units that figures are given in, each once."""
        return list(dict.fromkeys(fact.measure for fact in self.numbers if fact.measure))[:_MOST_MEASURES]

    @cached_property
    def dates(self) -> list[DateFact]:
        """Every date."""
        keys = [
            Leaf("names of values", "", key.replace("_", " "))
            for key in sorted(self._keys)
            if _DIGIT.search(key)
        ]
        facts = [fact for leaf in (*self.leaves, *self.own, *self.arguments, *keys) for fact in _dates(leaf)]
        years = [
            DateFact(date=Date(int(found[0]), None, None, 0, 0), where=leaf.where, text=str(leaf.value))
            for leaf in keys
            if (found := _YEAR.search(str(leaf.value)))
        ]
        return facts + list(_split_dates(self.leaves)) + years

    @cached_property
    def days(self) -> list[DateFact]:
        """Every day in the calendar; a date without a year gets the year of another one."""
        years = [fact.date.year for fact in self.dates if fact.date.year is not None]
        facts = [
            fact
            if fact.date.year is not None or not years
            else msgspec.structs.replace(fact, date=msgspec.structs.replace(fact.date, year=years[0]))
            for fact in self.dates
        ]
        return [fact for fact in facts if fact.day is not None]

    @cached_property
    def yearless_days(self) -> list[DateFact]:
        """Days without a year, all in the same one, where no date has one: how far they are apart can be told."""
        facts = [
            msgspec.structs.replace(fact, date=msgspec.structs.replace(fact.date, year=_SOME_YEAR))
            for fact in self.dates
            if fact.date.year is None
        ]
        return [fact for fact in facts if fact.day is not None]

    @cached_property
    def times(self) -> dict[int, str]:
        """Every time of day, as minutes since midnight, with the place of one."""
        return {
            minutes: passage.where
            for passage in reversed(self.passages)
            for minutes in read_text(passage.text).times
        }


def _as_text(leaf: Leaf) -> str:
    if isinstance(leaf.value, str):
        return leaf.value
    return "" if leaf.value is None or isinstance(leaf.value, bool) else str(leaf.value)


def gather_evidence(
    question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]] = ()
) -> Evidence:
    """The evidence of a reply; in a conversation, also that of the turns before it, but not what the chatbot said then."""
    leaves: list[Leaf] = []
    tables: list[Table] = []
    arguments: list[Leaf] = []
    _gather(reply, "", leaves, tables, arguments)
    own = [Leaf("question", "", question.question)]
    if question.context:
        own.append(Leaf("context", "", question.context))
    for number, (asked, before) in enumerate(earlier):
        _gather(before, f"turns[{number}].", leaves, tables, arguments)
        own.append(Leaf("question", "", asked.question))
    return Evidence(leaves, tables, own, arguments)


def _gather(reply: Reply, turn: str, leaves: list[Leaf], tables: list[Table], arguments: list[Leaf]) -> None:
    """Add what one reply shows, at places that begin with its turn."""
    for number, call in enumerate(reply.tool_calls):
        if call.result_seen or call.result is not None:
            _add(flatten(call.result, f"{turn}tool_calls[{number}].result"), leaves, tables)
        if call.arguments:
            arguments.extend(flatten(call.arguments, f"{turn}tool_calls[{number}].arguments")[0])
    for number, source in enumerate(reply.sources):
        where = f"{turn}sources[{number}]"
        for name, text in (
            ("text", source.text),
            ("title", source.title),
            ("id", source.id),
            ("uri", source.uri),
        ):
            if text:
                found, lists = flatten(text, where if name == "text" else f"{where}.{name}")
                named = [msgspec.structs.replace(leaf, key=leaf.key or name) for leaf in found]
                _add((named, lists), leaves, tables)
        if source.metadata:
            _add(flatten(source.metadata, f"{where}.metadata"), leaves, tables)


def _add(found: tuple[list[Leaf], list[Table]], leaves: list[Leaf], tables: list[Table]) -> None:
    leaves.extend(found[0])
    tables.extend(found[1])


def _currencies(leaves: Iterable[Leaf]) -> dict[str, str]:
    """Record → its currency, where a field says it: {"price": 129, "currency": "EUR"}."""
    return {
        leaf.where.rpartition(".")[0]: currency
        for leaf in leaves
        if key_words(leaf.key)[-1:] == ("currency",)
        and isinstance(leaf.value, str)
        and (currency := currency_named((leaf.value.strip().lower(),)))
    }


def _numbers(leaf: Leaf, currency: str = "", *, counted: bool = False) -> Iterator[NumberFact]:
    value = leaf.value
    words = key_words(leaf.key)
    naming = not _ID_KEYS.isdisjoint(words[-1:]) and not (counted and words == ("no",))
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        if not _RANKING_KEYS.isdisjoint(words[-1:]) and 0 < abs(value) < 1:
            return
        if abs(value) < 1e300:
            yield NumberFact(
                value=float(value),
                kind="number",
                unit=_unit(value),
                where=leaf.where,
                key=leaf.key,
                names_something=naming,
                text=f"{leaf.key}: {value}" if leaf.key else str(value),
                currency=currency or currency_named(words[-1:]),
                measure=measure_named(words),
            )
        return
    for number in read_text(value).numbers:
        quantity = number.quantity
        yield NumberFact(
            value=quantity.value,
            kind=quantity.kind,
            unit=quantity.unit,
            where=leaf.where,
            key=leaf.key,
            names_something=naming or number.in_code or quantity.ordinal,
            text=number.around,
            currency=quantity.currency or currency,
            measure=number.measure,
            label=number.label,
            noun=number.noun,
        )


def _unit(value: int | float) -> float:
    text = repr(value)
    decimals = (
        len(text.partition(".")[2]) if "e" not in text and "." in text and not text.endswith(".0") else 0
    )
    return float(10.0**-decimals)


def _dates(leaf: Leaf) -> Iterator[DateFact]:
    if isinstance(leaf.value, str):
        for date, text in read_text(leaf.value).dates:
            yield DateFact(date=date, where=leaf.where, text=text)


def _split_dates(leaves: list[Leaf]) -> Iterator[DateFact]:
    """Dates whose parts stand in fields of their own: {"year": 2024, "month": 8}."""
    parts: dict[str, dict[str, Leaf]] = {}
    for leaf in leaves:
        part = _DATE_PARTS.get(leaf.key.lower())
        if part is not None:
            parts.setdefault(leaf.where.rpartition(".")[0], {})[part] = leaf
    for where, found in parts.items():
        year = _int(found.get("year"))
        month = _month(found.get("month"))
        if month:
            date = Date(year, month, _int(found.get("day")), 0, 0)
            text = f"{year}-{month:02}" if year else f"{found['month'].key}: {found['month'].value}"
            yield DateFact(date=date, where=where, text=text)


# Names of the parts of a date.
_DATE_PARTS = {
    "year": "year", "yr": "year", "y": "year", "day": "day", "month": "month", "mon": "month", "mth": "month", "mo": "month",
    "m": "month", "month_no": "month", "month_num": "month", "month_number": "month",
}  # fmt: skip


def _int(leaf: Leaf | None) -> int | None:
    if leaf is None or isinstance(leaf.value, bool) or not isinstance(leaf.value, int | str):
        return None
    text = str(leaf.value).strip()
    return int(text) if text.isdigit() and len(text) <= 4 else None


def _month(leaf: Leaf | None) -> int | None:
    number = _int(leaf)
    if number is not None:
        return number if 1 <= number <= 12 else None
    if leaf is None or not isinstance(leaf.value, str):
        return None
    return next((date.month for date in find_dates(f"{leaf.value} 2000")), None)
