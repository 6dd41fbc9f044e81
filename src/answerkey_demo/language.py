"""How a question is read: its words, its periods of time, and everything in it that the records or the lexicon name.

The vocabulary has every phrase that means something, from the names in the database and from the lexicon. Of periods, months,
quarters, halves and years are read first and joined into ranges by the words between them.
"""

import calendar
import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import Stemmer

from answerkey_demo.knowledge import Knowledge, sentences

LEXICON: dict[str, Any] = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))
STOPWORDS = frozenset(LEXICON["words"]["stop"].split())
_SAME = dict(pair.split("=") for pair in LEXICON["words"]["same"].split())
_OWN_STEM = {
    word: own or word for word, _, own in (w.partition("=") for w in LEXICON["words"]["own_stem"].split())
}
_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|[a-z0-9]+(?:[-'./&][a-z0-9]+)*")
# A place of a wording that takes a column, and how it is written.
_SLOT = re.compile(r"\{(\w+)(?::([^}]*))?\}")
_stemmer = Stemmer.Stemmer("english")


class Word(msgspec.Struct, frozen=True):
    """One word of a question and its span in the normalised text."""

    text: str
    stem: str
    start: int
    end: int

    @property
    def root(self) -> str:
        """What the word begins with in all its forms: "cit" for "city" and "cities"."""
        return self.stem if self.text.startswith(self.stem) else self.stem[:-1]


def normalise(text: str) -> str:
    """Lower case, without accents, with plain quotes and dashes and single spaces."""
    text = text.translate({0x2018: "'", 0x2019: "'", 0x2013: "-", 0x2014: " - "})
    text = unicodedata.normalize("NFKD", text)
    return " ".join("".join(c for c in text if not unicodedata.combining(c)).lower().split())


def words_of(normal: str) -> list[Word]:
    """The words of a normalised text, a possessive 's cut off."""
    found = [(match.group().removesuffix("'s"), match.start()) for match in _WORD.finditer(normal)]
    return [Word(text, stem(text), start, start + len(text)) for text, start in found]


def stems(text: str) -> tuple[str, ...]:
    """The stems of all words of any text, in order."""
    return tuple(word.stem for word in words_of(normalise(text)))


def content_stems(text: str) -> set[str]:
    """The stems of the words that carry content; of a compound like "mid-month" its parts as well."""
    words = [w.text for w in words_of(normalise(text)) if w.text not in STOPWORDS]
    return {stem(part) for w in words for part in [w, *re.split(r"[-./&']", w)] if part}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The English stem of a word, one for all its spellings; numbers and codes stay as they are."""
    word = str(_SAME.get(word, word))
    if word in _OWN_STEM or not word.isalpha():
        return str(_OWN_STEM.get(word, word))
    return str(_stemmer.stemWord(word))


def category_label(name: str) -> str:
    """How a category reads in an answer."""
    return str(LEXICON["category_labels"].get(name, name.replace("_", " ")))


def money(amount: float | None) -> str:
    """For instance $1,234.50; whole dollars without cents."""
    value = round(amount or 0.0, 2)
    text = f"{abs(value):,.0f}" if value == int(value) else f"{abs(value):,.2f}"
    return f"-${text}" if value < 0 else f"${text}"


def plural(count: int, noun: str) -> str:
    """1 transaction, 2 transactions."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join(items: list[str]) -> str:
    """A, B and C."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def capital(text: str) -> str:
    """The beginning of a sentence."""
    return text[:1].upper() + text[1:]


def format_value(value: Any, form: str) -> str:
    """A value as "$", "date", "number" or "category", or as it is."""
    if form == "$":
        return money(value)
    if form == "date" and isinstance(value, str):
        day = date.fromisoformat(value)
        return f"{day:%B} {day.day}, {day.year}"
    if form == "category":
        return category_label(value)
    return f"{value:,.10g}" if form == "number" else str(value)


def fill_template(template: str, row: dict[str, Any]) -> str:
    """Fill in a row: {column}, {column:$}, or {column:, for $}, which is left out where there is no value."""

    def fill(match: re.Match[str]) -> str:
        value, form = row[match[1]], match[2] or ""
        kind = next((k for k in ("$", "date", "number", "category") if k in form), "")
        if form and not kind:
            # a remark that holds for one value
            return form if value and str(value) in form else ""
        if value is None:
            return "" if form.startswith(",") else "nothing on record"
        return form.replace(kind, format_value(value, kind)) if kind else str(value)

    return re.sub(r"\b1 units\b", "1 unit", _SLOT.sub(fill, " ".join(template.split())))


_NEVER, _EVER = date(1900, 1, 1), date(9999, 12, 31)
_MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_ORDINALS |= {"last": 4, "final": 4}
_OPENING = re.compile(
    r"\b(from|between|since|after|before|prior to|until|till|up to|through|starting)(?: [io]n)? $"
)
# other words for since, before and up to
_OPENS = {"starting": "since", "prior to": "before", "until": "up to", "till": "up to", "through": "up to"}
_JOINING = re.compile(r",? ?(?:to|through|thru|until|till|-|up to) ?(?:the end of )?")


class Period(msgspec.Struct, frozen=True):
    """A span of days, both ends included."""

    start: date
    end: date
    # how a person would name it
    label: str
    # the characters of the normalised question that said so
    span: tuple[int, int] = (0, 0)
    # no year was named: it is a guess that the rest of the question or the conversation may correct
    year_guessed: bool = False

    @property
    def phrase(self) -> str:
        """The period after a noun: "in 2024", "since 2024", "from May to July 2024"."""
        if self.label.startswith(("since", "after", "before", "up to")):
            return self.label
        preposition = "from" if " to " in _short(self) else "in"
        return f"{preposition} {self.label}"

    def in_year(self, year: int) -> "Period":
        """The same period of another year."""
        last_day = calendar.monthrange(self.end.year, self.end.month)[1]
        end_day = 31 if self.end.day == last_day and self.start.day == 1 else self.end.day
        start = _day_of(year, self.start.month, self.start.day)
        end = _day_of(year + self.end.year - self.start.year, self.end.month, end_day)
        label = self.label.replace(str(self.start.year), str(year))
        return msgspec.structs.replace(self, start=start, end=end, label=label, year_guessed=False)


def find_periods(text: str, as_of: date, base: Period | None = None) -> list[Period]:
    """Every period that a normalised question names, in the order of the text.

    `base` is the period that the conversation is about: its year is meant where none is said, and "the year after" is
    the one after it.
    """
    points: list[Period] = []
    masked = text
    for pattern, build in _POINTS:
        for match in re.finditer(pattern, masked):
            point = build(match, as_of, base)
            if point is not None:
                points.append(msgspec.structs.replace(point, span=match.span()))
                # a rule never reads characters that an earlier rule has read
                masked = masked[: match.start()] + "#" * len(match.group()) + masked[match.end() :]
    points.sort(key=lambda p: p.span)
    return list(_joined(text, points))


def _joined(text: str, points: list[Period]) -> Iterator[Period]:
    """Two points with "to" between them are one range; in "July and August 2024" the year belongs to both months."""
    years = [p.start.year for p in points if not p.year_guessed]
    dated = [p.in_year(years[0]) if years and p.year_guessed else p for p in points]
    number = 0
    while number < len(points):
        point, after = dated[number], dated[number + 1] if number + 1 < len(points) else None
        opening = _OPENING.search(text[: point.span[0]])
        word = opening.group(1) if opening else ""
        begin = opening.start() if opening else point.span[0]
        between = text[point.span[1] : after.span[0]] if after else ""
        if after and (_JOINING.fullmatch(between) or (word == "between" and between == " and ")):
            if point.start > after.start and points[number].year_guessed:
                # "November to February 2024" began the year before
                point = point.in_year(after.start.year - 1)
            if point.start <= after.end:
                label = f"{_short(point)} to {_short(after)}"
                yield Period(point.start, after.end, label, (begin, after.span[1]))
                number += 2
                continue
        yield _opened(point, word, (begin, point.span[1]))
        number += 1


def _opened(point: Period, word: str, span: tuple[int, int]) -> Period:
    """A point with a word before it that opens one end: "since March 2024"."""
    day, name = timedelta(days=1), _OPENS.get(word, word)
    ends = {
        "since": (point.start, _EVER),
        "after": (point.end + day, _EVER),
        "before": (_NEVER, point.start - day),
        "up to": (_NEVER, point.end),
    }
    return Period(*ends[name], f"{name} {_short(point)}", span) if name in ends else point


def _short(period: Period) -> str:
    return re.sub(r" \(.*\)", "", period.label)


def _day_of(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def _months(year: int, first: int, count: int, label: str, *, guessed: bool = False) -> Period:
    """Whole months; a number of the first month outside 1 to 12 is in another year."""
    year, first = year + (first - 1) // 12, (first - 1) % 12 + 1
    last = year * 12 + first + count - 2
    label = label.format(year=year, month=calendar.month_name[first], q=(first + 2) // 3)
    return Period(date(year, first, 1), _day_of(last // 12, last % 12 + 1, 31), label, year_guessed=guessed)


def _year(match: re.Match[str], default: int) -> tuple[int, bool]:
    """The year that is said, or the default and that it is a guess."""
    said = match.groupdict().get("y")
    return (int(said.replace("'", "20")), False) if said else (default, True)


def _month(match: re.Match[str], as_of: date, base: Period | None) -> Period:
    month = _MONTHS[match["m"]] if match["m"].isalpha() else int(match["m"])
    likely = base.start.year if base else as_of.year - (month > as_of.month)
    year, guessed = _year(match, likely)
    return _months(year, month, 1, "{month} {year}", guessed=guessed)


def _part(match: re.Match[str], as_of: date, base: Period | None) -> Period | None:
    """A quarter or a half of a year."""
    year, guessed = _year(match, base.start.year if base else as_of.year)
    if match["n"] in ("last", "final") and guessed:
        return None
    number = _ORDINALS.get(match["n"]) or int(match["n"])
    if match["part"].startswith("q"):
        months = f"{calendar.month_name[number * 3 - 2]} to {calendar.month_name[number * 3]}"
        return _months(year, number * 3 - 2, 3, f"Q{{q}} {{year}} ({months})", guessed=guessed)
    first, name = (1, "first") if number == 1 else (7, "second")
    return _months(year, first, 6, f"the {name} half of {{year}}", guessed=guessed)


def _relative(match: re.Match[str], as_of: date, base: Period | None) -> Period:
    """This, last and next year, quarter or month, or the one before and after that of the conversation."""
    text = match.group()
    day = base.start if base and re.search(r"\b(?:after|following|before|prior)\b", text) else as_of
    step = 1 if re.search(r"next|after|following", text) else -1
    step = 0 if re.search(r"this|current", text) else step
    if "month" in text:
        return _months(day.year, day.month + step, 1, "{month} {year}")
    if "quarter" in text:
        return _months(day.year, (day.month - 1) // 3 * 3 + 1 + 3 * step, 3, "Q{q} {year}")
    return _months(day.year + step, 1, 12, "{year}")


_MONTH = r"(?P<m>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR = r"(?P<y>(?:19|20)\d\d|'\d\d)(?!\w|-\d)"
_ORDINAL = r"(?P<n>" + "|".join(_ORDINALS) + ")"
_STEP = r"(?:this|last|previous|past|current|next|following|prior)"
# "may" alone is nearly always the verb
_TIME_WORDS = "in for during of and or from to since through until before after".split()
_BEFORE_MAY = "|".join(rf"(?<=\b{word} )" for word in _TIME_WORDS)
# The longer form first.
_POINTS: list[tuple[str, Callable[[re.Match[str], date, Period | None], Period | None]]] = [
    (rf"\b{_MONTH},? (?:of |in )?{_YEAR}", _month),
    (rf"\b(?P<part>q)(?P<n>[1-4])(?: of)?(?:[ /-]?{_YEAR})?(?!\w)", _part),
    (rf"\b{_ORDINAL} (?P<part>quarter|half)(?:(?: of| in)?(?: the year)? {_YEAR})?(?!\w)", _part),
    (rf"\b(?P<part>h)(?P<n>[12])(?: of)? ?{_YEAR}", _part),
    (r"\b(?P<y>(?:19|20)\d\d)[-/](?P<m>0[1-9]|1[0-2])\b(?![-/])", _month),
    (r"\b(?:the )?(?:year|quarter|month) (?:after|before)(?: that)?(?= ?[?.!]*$)", _relative),
    (rf"\b{_STEP} (?:calendar |fiscal |tax )?(?:year|quarter|month)\b", _relative),
    (rf"(?<![\w/$-]){_YEAR}", lambda match, as_of, _: _months(_year(match, as_of.year)[0], 1, 12, "{year}")),
    (rf"\b(?!may\b|mar\b){_MONTH}(?!\w)", _month),
    (rf"(?:{_BEFORE_MAY})(?P<m>may)\b", _month),
]


# A phrase that people say, the kind of thing that it means, and which.
_Phrase = tuple[str, str, str]
# Descriptions that are booked more often than this are a category's; the words of rarer ones say what they were for.
_RARE = 6
_SIDES, _WAYS = ("n", "s", "e", "w"), ("st", "ave", "rd", "dr", "ln", "blvd")
_PARTIES = (
    "SELECT DISTINCT party FROM (SELECT party FROM transactions UNION SELECT tenant FROM units UNION "
    "SELECT lender FROM properties UNION SELECT authority FROM obligations) WHERE party IS NOT NULL"
)
_SINGULAR = re.compile(
    r"\b(?:our|my|the|main|this) (?:\w+ )?(?:property|building|house|place|real estate)\b(?! (?:tax|manage|insur))"
)
_PLURAL = re.compile(r"\b(?:properties|buildings|houses|portfolio|each|every|combined|together|all)\b")


class Mention(msgspec.Struct, frozen=True):
    """Something that the question names."""

    # property, unit, party, category, group, kind, document, type, obligation, op, by, field, subject, condition,
    # unless, content, topic, text
    kind: str
    value: str
    # the words of the question that say it
    first: int
    end: int


class Vocabulary:
    """Phrases as sequences of stems, each with the meanings that it may have."""

    def __init__(self, knowledge: Knowledge, phrases: Iterable[_Phrase] = ()) -> None:
        """`phrases` are further ones, as (phrases separated by commas, kind, value)."""
        self.knowledge = knowledge
        self.properties = knowledge.read("SELECT * FROM properties ORDER BY id")
        self.units = knowledge.read("SELECT * FROM units ORDER BY id")
        self.documents = knowledge.read("SELECT * FROM documents ORDER BY dated_on, id")
        self.address: dict[str, str] = {p["id"]: p["address"] for p in self.properties}
        # who pays us, as opposed to whom we pay
        income = knowledge.read("SELECT DISTINCT party FROM transactions WHERE kind = 'income'")
        self.payers = {row["party"] for row in income}
        self._parties = [str(row["party"]) for row in knowledge.read(_PARTIES)]
        # first stem → (stems, kind, value)
        self._phrases: dict[str, list[tuple[tuple[str, ...], str, str]]] = defaultdict(list)
        for phrase, kind, value in [*phrases, *_lexicon(knowledge), *self._addresses(), *self._papers()]:
            for part in phrase.split(","):
                self._add(stems(part), kind, value)
        for name in self._parties:
            for alias in self._aliases(name):
                self._add(alias, "party", name)
        for table, column, rare in (("transactions", "description", _RARE), ("obligations", "name", 1000)):
            sql = f"SELECT {column} AS said FROM {table} GROUP BY said HAVING COUNT(*) < {rare}"
            for word in {w for row in knowledge.read(sql) for w in content_stems(row["said"])} - {"unit"}:
                self._add((word,) if len(word) > 1 else (), "text", table)

    def _add(self, phrase: tuple[str, ...], kind: str, value: str) -> None:
        if phrase and (phrase, kind, value) not in self._phrases[phrase[0]]:
            self._phrases[phrase[0]].append((phrase, kind, value))

    def find(self, question: list[str]) -> Iterator[Mention]:
        """Every phrase that occurs in a sequence of stems."""
        for first, word in enumerate(question):
            for phrase, kind, value in self._phrases.get(word, ()):
                if tuple(question[first : first + len(phrase)]) == phrase:
                    yield Mention(kind, value, first, first + len(phrase))

    @cached_property
    def corpus(self) -> Counter[str]:
        """In how many passages each stem occurs."""
        texts = [f"{p['title']} {p['heading']} {p['text']}" for p in self.knowledge.passages]
        return Counter(word for text in texts for word in content_stems(text))

    def _addresses(self) -> Iterator[_Phrase]:
        """Properties by address, name, kind and town; units by label."""
        for row in self.properties:
            number, *street = stems(row["address"])
            side, way = [w for w in street if w in _SIDES], [w for w in street if w in _WAYS]
            core = [w for w in street if w not in _SIDES + _WAYS]
            names = [[*a, *b, *core, *c] for a, b, c in product(([number], []), (side, []), (way, []))]
            for column in ("name", "kind", "city"):
                if sum(p[column] == row[column] for p in self.properties) == 1:
                    names.append([row[column]])
            names += [[row["city"], word] for word in ("house", "property", "building", "place")]
            for name in [*names, [*core, row["kind"]]]:
                yield " ".join(name), "property", row["id"]
        for row in self.units:
            yield row["label"] if row["label"].lower().startswith("unit") else "", "unit", row["id"]

    def _papers(self) -> Iterator[_Phrase]:
        """Documents by title, by its part before a comma or a bracket, and by what people make of it."""
        for row in self.documents:
            title = normalise(row["title"]).replace(f" of {normalise(self.knowledge.company)}", "")
            head = re.split(r",| \(", title)[0]
            small = [head.replace(word, " ") for word in (" for ", " of the ", " of ")]
            names = [title.replace(",", ""), head, *small, re.sub(r" for \D+$", "", head)]
            if len(head.split()) > 2 and head.split()[-1] in LEXICON["document_types"]:
                # "Commercial Umbrella Policy" is called the umbrella policy
                names.append(" ".join(head.split()[1:]))
            yield ",".join(names), "document", row["id"]

    def _aliases(self, name: str) -> Iterator[tuple[str, ...]]:
        """A party goes by its whole name, its first or last two words, or one word that no other name has."""
        words = stems(name)
        yield words
        if len(words) > 2:
            yield from (part for part in (words[:2], words[-2:]) if not {"of", "and"} & set(part))
        for word in (words[0], words[-1]):
            unique = sum(word in stems(other) for other in self._parties) == 1
            if unique and len(word) > 2 and word not in self._ordinary:
                yield (word,)
        yield stems(LEXICON["parties"].get(name, ""))

    @cached_property
    def _ordinary(self) -> set[str]:
        """Stems of ordinary words: lower case in documents, at the start of a sentence, or in the lexicon."""
        found = {word for phrases in self._phrases.values() for words, *_ in phrases for word in words}
        for passage in self.knowledge.passages:
            for sentence in [passage["heading"], *sentences(passage["text"])]:
                first, _, rest = sentence.partition(" ")
                found |= {stem(w) for w in [normalise(first), *re.findall(r"\b[a-z]+\b", rest)]}
        return found - {word for payer in self.payers for word in stems(payer)}


def _lexicon(knowledge: Knowledge) -> Iterator[_Phrase]:
    for kind, section in (("op", "ops"), ("by", "groups_by"), ("kind", "kinds"), ("content", "content")):
        for value, say in LEXICON[section].items():
            yield say, kind, value
    for number, topic in enumerate(LEXICON["off_topic"]):
        yield topic["say"], "topic", str(number)
    for group in LEXICON["category_groups"].values():
        for category in group["of"]:
            yield group["say"], "category", category
    for kind, table, column, section in (
        ("category", "transactions", "category", "categories"),
        ("type", "documents", "type", "document_types"),
        ("obligation", "obligations", "kind", "obligation_kinds"),
    ):
        for row in knowledge.read(f"SELECT DISTINCT {column} AS value FROM {table}"):
            own = str(row["value"]).replace("_", " ")
            # "policy" and "tax" alone may be anything
            names = [f"{own} document", f"{own} paper", f"{own} file"] if kind == "type" else [own]
            yield ",".join([*names, LEXICON[section].get(row["value"], "")]), kind, row["value"]


class Reading(msgspec.Struct, frozen=True):
    """A question, or a clause of one, and what it names."""

    # as the user wrote it
    original: str
    # normalised
    text: str
    words: list[Word]
    mentions: list[Mention]
    periods: list[Period]

    def all(self, kind: str) -> list[str]:
        """What is named of a kind, in the order of the question, each once."""
        return list(dict.fromkeys(m.value for m in self.mentions if m.kind == kind))

    def has(self, kind: str, *values: str) -> bool:
        """Whether something of a kind, or one of these, is named."""
        return any(m.kind == kind and (not values or m.value in values) for m in self.mentions)

    def view(self, mine: Callable[[Mention], bool]) -> "Reading":
        """The reading of one who knows some mentions only: the longest of those at each place of the question.

        A word of a description or of an obligation's name neither hides another mention nor is hidden.
        """
        known = [m for m in self.mentions if mine(m)]
        spans = {(m.first, m.end) for m in known if m.kind != "text"}

        def hidden(m: Mention) -> bool:
            return any(a <= m.first and m.end <= b and b - a > m.end - m.first for a, b in spans)

        longest = [m for m in known if m.kind == "text" or not hidden(m)]
        return msgspec.structs.replace(self, mentions=longest)

    def span(self, mention: Mention) -> tuple[int, int]:
        """The characters of the normalised question that a mention consists of."""
        return self.words[mention.first].start, self.words[mention.end - 1].end

    def explained(self, *mentions: Mention) -> set[int]:
        """The words that these mentions consist of, and those of periods."""
        spans = [p.span for p in self.periods]
        return {i for m in mentions for i in range(m.first, m.end)} | _inside(self.words, spans)

    def left(self, explained: set[int]) -> list[int]:
        """The words with content that are not among the explained ones."""
        words = [(i, w.text) for i, w in enumerate(self.words) if i not in explained]
        return [i for i, text in words if text not in STOPWORDS and not re.fullmatch("[a-z]", text)]

    @property
    def singular(self) -> bool:
        """Says "our property" and means one."""
        return _SINGULAR.search(self.text) is not None and not _PLURAL.search(self.text)


def read(question: str, vocabulary: Vocabulary, base: Period | None = None) -> Reading:
    """Recognise everything that a question names. `base` is the period that the conversation is about."""
    text = normalise(question)
    words = words_of(text)
    mentions = list(vocabulary.find([w.stem for w in words]))
    # of a vendor that is named, the words of its whole name: "plumbing by Redcliff"
    for name in {m.value for m in mentions if m.kind == "party"}:
        own = stems(name)
        mentions += [Mention("party", name, i, i + 1) for i, w in enumerate(words) if w.stem in own]
    # a house number is not a year, and the year of "Tax Notes for 2024" is part of a name
    masked = text
    for mention in [m for m in mentions if m.kind in ("property", "document")]:
        start, end = words[mention.first].start, words[mention.end - 1].end
        masked = masked[:start] + "#" * (end - start) + masked[end:]
    periods = find_periods(masked, vocabulary.knowledge.as_of, base)
    in_periods = _inside(words, [p.span for p in periods])
    outside = [m for m in mentions if not set(range(m.first, m.end)) <= in_periods]
    return Reading(question.strip(), text, words, outside, periods)


def _inside(words: list[Word], spans: list[tuple[int, int]]) -> set[int]:
    """The words that overlap some spans of characters."""
    return {i for i, w in enumerate(words) if any(w.start < end and w.end > start for start, end in spans)}
