"""Reading a question: everything in it that the records or the lexicon know, and its periods.

The vocabulary has every phrase that means something, from the names in the database and from the lexicon.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import product

import msgspec

from answerkey_demo.knowledge import Knowledge, sentences
from answerkey_demo.language.periods import Period, find_periods
from answerkey_demo.language.words import (
    LEXICON,
    STOPWORDS,
    Word,
    content_stems,
    normalise,
    stem,
    stems,
    words_of,
)

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
