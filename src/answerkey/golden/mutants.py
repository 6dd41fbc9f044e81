"""Mutants: wrong replies made from a good one. An answer key that is strong refuses all of them.

Operators follow what a question asks. Three families count: `fact` (the asked figure, date, name or id is another one, or
comes from another row of the tool result), `subject` (the reply belongs to a similar question) and `nothing` (nothing found,
empty talk, cut before the first fact). `wrong_tool` and `adversarial` are reported apart: the standard refuses the first by
construction, and no keyword sees the second.

A mutant must be wrong. So only facts of the reference answer, the key or the tool result are changed, never what the
question itself says, an address or a count; and a mutant that still states every fact of the reference answer is dropped.
"""

import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import Literal
from zlib import crc32

import msgspec

from answerkey.evidence.mentions import Amount, CalendarDate, Mention, TimeOfDay, find_mentions, find_names
from answerkey.evidence.records import Evidence, EvidenceValue, Words, gather_evidence
from answerkey.golden.baseline_bots import EMPTY_TALK, NOTHING_FOUND, key_texts
from answerkey.golden.similar import QuestionIndex
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Evidence as Observation
from answerkey.model.reply import Reply, ToolCall

Family = Literal["fact", "subject", "nothing", "wrong_tool", "adversarial"]
COUNTED: tuple[Family, ...] = ("fact", "subject", "nothing")
REPORTED: tuple[Family, ...] = (*COUNTED, "wrong_tool", "adversarial")

_MADE_UP = "It is $4,217, as recorded on March 3."
_SIMILAR = 3
_SHORTEST_NAME = 4
_SEEN = Observation(tools_observed=True)
# Longer replies are mutated by their beginning: what is asked is answered there.
_MAX_CHARACTERS = 20_000
# A changed figure differs by at least this share, so that no usual tolerance accepts it.
_MIN_CHANGE = 0.05
_DIGIT = re.compile(r"\d")
_SHORT_NUMBER = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_STREET = re.compile(
    r"\s(?:[NSEW]\.?\s)?(?:\d{1,3}(?:st|nd|rd|th)\s|[A-Z][\w'-]+\s){1,3}"
    r"(?:St|Ave|Avenue|Street|Road|Rd|Blvd|Boulevard|Lane|Ln|Dr|Drive|Way|Court|Ct|Place|Pl|Highway|Hwy|Square|Sq)\b"
)
_BEFORE_NUMBER_IN_ADDRESS = re.compile(
    r"(?:\b(?:Unit|Suite|Apt|Apartment|Room|Floor|No|Nr|Lot|Box)\.?|#|\b[A-Z]{2})\s?$"
)
_AFTER_STREET_NUMBER = re.compile(r"\d(?:st|nd|rd|th)?\s(?:[NSEW]\.?\s)?$")
_NUMBER_FOLLOWS = re.compile(r"\s\d")
_ZIP = re.compile(r"\d{5}(?:-\d{4})?")
_LARGEST_COUNT = 20
_ASKS_COUNT = re.compile(r"\bhow many\b|\bnumber of\b|\bcount\b|\bhow often\b", re.IGNORECASE)
# Kind of fact → how questions ask for it.
_ASKS = {
    "figure": re.compile(
        r"\bhow (?:much|many|often|old|big|large|long|far|high)\b"
        r"|\b(?:total|sum|amount|costs?|price|rate|share|fees?|rent|income|revenue|spend|spent|pay|paid|balance|percent(?:age)?"
        r"|average|number|value|worth)\b",
        re.IGNORECASE,
    ),
    "date": re.compile(
        r"\bwhen\b|\bwhat (?:date|day|month|time)\b|\bdeadline\b|\bdue\b|\bexpires?\b", re.IGNORECASE
    ),
    "name": re.compile(r"\b(?:who|whose|whom|which|where)\b|\bname\b", re.IGNORECASE),
}
_YEAR = re.compile(r"(?:19|20)\d\d")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_NUMBER_NAMES = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MONTH_NAME = re.compile(rf"\b(?:{'|'.join(name[:3] for name in _MONTH_NAMES)})[a-z]*", re.IGNORECASE)


class Mutant(msgspec.Struct, frozen=True):
    """A wrong reply."""

    family: Family
    # How it was made: "asked figure", "nothing found", …
    operator: str
    reply: Reply


class Fact(msgspec.Struct, frozen=True):
    """A figure, date, time, id or name in a text; equal facts have the same key."""

    kind: Literal["figure", "date", "time", "id", "name"]
    key: Hashable
    start: int
    end: int
    # A name whose capital may only begin a sentence.
    is_doubtful: bool = False


class GoodReply(msgspec.Struct, frozen=True):
    """A reply that passes, and where it comes from."""

    reply: Reply
    origin: Literal["run", "reference", "key"]


def good_reply(turn: Question, recorded: Reply | None = None) -> GoodReply | None:
    """The reply that mutants are made from: a recorded one, the reference answer, or one composed from the key.

    None for a question that expects nothing of the text and has no recorded reply.
    """
    calls = tuple(ToolCall(name=tool.name, arguments=_plain(tool.arguments)) for tool in turn.expected_tools)
    if recorded is not None and recorded.text:
        return GoodReply(recorded, "run")
    if turn.reference_answer and turn.reference_answer.strip():
        return GoodReply(Reply(text=turn.reference_answer, tool_calls=calls, evidence=_SEEN), "reference")
    texts = [texts[0] for keyword in turn.expected_keywords if (texts := list(key_texts(keyword)))]
    if not turn.answerable:
        text = " ".join([NOTHING_FOUND, *texts])
        return GoodReply(Reply(text=text, tool_calls=calls, evidence=_SEEN), "key")
    if not texts:
        return None
    return GoodReply(Reply(text=f"It is {', '.join(texts)}.", tool_calls=calls, evidence=_SEEN), "key")


def _plain(arguments: Mapping[str, object] | None) -> dict[str, object] | None:
    """Arguments that satisfy the expected ones: the value, or the first of several acceptable values."""
    if arguments is None:
        return None
    return {
        name: value[0] if isinstance(value, list) and value else value
        for name, value in arguments.items()
        if not isinstance(value, dict)
    }


def wrong_replies(
    questions: QuestionSet,
    recorded: Mapping[tuple[str, int], Reply] = MappingProxyType({}),
    *,
    only: Container[str] | None = None,
    seed: int = 0,
) -> Iterator[tuple[Question, list[list[Mutant]]]]:
    """Make wrong replies to the questions of a set, the same ones every time: for each question, those of each turn.

    Args:
        questions: The golden set.
        recorded: Right replies by (question id, index of the turn), such as a run's passing replies; for other turns
            the reference answer is used, else a reply composed from the key.
        only: Ids of the questions to make replies for; by default all.
        seed: Chooses among the possible wrong figures, dates and names.

    >>> rent = Question(id="rent", question="What is the rent?", reference_answer="The rent is $1,420.")
    >>> [(question, [mutants])] = wrong_replies(QuestionSet(questions=(rent,)))
    >>> mutants[0].family, mutants[0].operator
    ('fact', 'asked figure')
    """
    good = {
        (question.id, index): reply
        for question in questions
        for index, turn in enumerate(question.asks)
        if (reply := good_reply(turn, recorded.get((question.id, index)))) is not None
    }
    maker = _MutantMaker(questions, good, seed=seed)
    for question in questions:
        if only is None or question.id in only:
            yield question, [maker.mutants(question, index) for index in range(len(question.asks))]


class _MutantMaker:
    """Makes the mutants of each question of a set, the same ones every time."""

    def __init__(
        self, questions: QuestionSet, good: Mapping[tuple[str, int], GoodReply], *, seed: int = 0
    ) -> None:
        """`good` is by (question id, index of the turn)."""
        self._seed = seed
        self._turns = [
            (question, index, turn) for question in questions for index, turn in enumerate(question.asks)
        ]
        self._positions = {
            (question.id, index): offset for offset, (question, index, _) in enumerate(self._turns)
        }
        self._good = good
        self._index = QuestionIndex([turn.question for _, _, turn in self._turns])
        self._names = _NamePool(good.values())

    def mutants(self, question: Question, index: int) -> list[Mutant]:
        """The wrong replies to one turn; empty if there is no good reply to make them from."""
        turn = question.asks[index]
        good = self._good.get((question.id, index))
        if good is None:
            return []
        subject = _Subject(turn, good, seed=self._seed + crc32(f"{question.id}/{index}".encode()))
        stating = [*subject.wrong_facts(self._names), *self._of_similar_questions(question, index, good)]
        wrong = [mutant for mutant in stating if not subject.states_answer(mutant.reply.text or "")]
        wrong += subject.nothing()
        wrong = [mutant for mutant in wrong if not subject.is_marked_right(mutant.reply.text or "")]
        wrong += subject.reported_apart(self._all_keywords)
        return _distinct(wrong)

    def _of_similar_questions(self, question: Question, index: int, good: GoodReply) -> Iterator[Mutant]:
        offset, turn = self._positions[question.id, index], question.asks[index]
        for other in self._index.nearest(offset, _SIMILAR + len(question.asks)):
            other_question, other_index, other_turn = self._turns[other]
            reply = self._good.get((other_question.id, other_index))
            # The other turns of a conversation are about the same thing.
            if (
                other_question is not question
                and reply is not None
                and other_turn.question != question.question
                # To say of another thing that it is not known is right here too.
                and (turn.answerable or other_turn.answerable)
            ):
                yield Mutant(
                    "subject", f"reply to {other_question.id}", _with_text(good.reply, reply.reply.text or "")
                )

    @cached_property
    def _all_keywords(self) -> str:
        words = (
            text
            for _, _, turn in self._turns
            for keyword in turn.expected_keywords
            for text in key_texts(keyword)
        )
        return ", ".join(list(dict.fromkeys(words))[:200])


def _distinct(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Without those whose text and tools an earlier one has."""
    seen: dict[Hashable, Mutant] = {}
    for mutant in mutants:
        seen.setdefault((mutant.reply.text, mutant.reply.tools_used), mutant)
    return list(seen.values())


def _with_text(reply: Reply, text: str) -> Reply:
    return msgspec.structs.replace(reply, text=text)


class _Subject:
    """One turn with its good reply."""

    def __init__(self, turn: Question, good: GoodReply, *, seed: int) -> None:
        self._turn, self._good, self._seed = turn, good.reply, seed
        self._text = (good.reply.text or "")[:_MAX_CHARACTERS]
        self._asked = {fact.key for fact in facts_of(turn.question)}
        texts = list(_all_texts(turn))
        self._key = {fact.key for text in texts for fact in facts_of(text)}
        self._key_words = [text.casefold() for text in texts if any(map(str.isalpha, text))]
        self._reference = {fact.key for fact in facts_of(turn.reference_answer or "")} - self._asked
        self._evidence = gather_evidence(turn, good.reply, ()) if good.origin == "run" else Evidence()
        known = self._reference | (_evidence_keys(self._evidence) if good.origin == "run" else set())
        stated = [
            fact
            for fact in facts_of(self._text)
            if fact.key not in self._asked and not self._is_incidental(fact)
        ]
        in_key = [fact for fact in stated if self._is_in_key(fact)]
        kinds = {fact.kind for fact in in_key}
        # What the key checks, and beside it what the question asks for and the key does not check.
        self._facts = in_key + [
            fact
            for fact in stated
            if fact.key in known
            and fact.kind not in kinds
            and fact.kind in _ASKS
            and _ASKS[fact.kind].search(turn.question)
        ]

    def _is_in_key(self, fact: Fact) -> bool:
        if fact.kind != "name":
            return fact.key in self._key
        text = self._text[fact.start : fact.end].casefold()
        return any(text in word or word in text for word in self._key_words)

    def _is_incidental(self, fact: Fact) -> bool:
        """Whether a fact belongs to an address, or counts what is listed, so that changing it may leave a right reply."""
        before, after = self._text[max(0, fact.start - 14) : fact.start], self._text[fact.end : fact.end + 60]
        digits = self._text[fact.start : fact.end]
        if fact.kind == "name":
            return len(digits) < _SHORTEST_NAME or bool(
                _AFTER_STREET_NUMBER.search(before) or _NUMBER_FOLLOWS.match(after)
            )
        if fact.kind != "figure":
            return False
        if _STREET.match(after) or _ORDINAL.match(after) or _BEFORE_NUMBER_IN_ADDRESS.search(before):
            return True
        if _ZIP.fullmatch(digits) and before.rstrip(" ,")[-2:].isupper():
            return True
        value = fact.key[1] if isinstance(fact.key, tuple) else 0
        is_small = isinstance(value, float) and value <= _LARGEST_COUNT
        counts = is_small and after[:1] in " :" and before[-1:] not in "$€£"
        return counts and fact.key not in self._key and not _ASKS_COUNT.search(self._turn.question)

    def wrong_facts(self, names: "_NamePool") -> Iterator[Mutant]:
        """The good reply with what was asked for changed."""
        if not self._turn.answerable:
            yield Mutant("fact", "made-up answer", _with_text(self._good, _MADE_UP))
            return
        figures = [fact for fact in self._facts if fact.kind == "figure"]
        if figures:
            is_alone = len({fact.key for fact in figures}) == 1
            # Which of several figures is asked for, only the key can say.
            if is_alone or self._is_in_key(figures[0]):
                yield from self._changed("asked figure", figures[:1], self._other_figure)
                yield from self._another_row(figures[0])
            if not is_alone:
                yield from self._changed("all figures", figures, self._other_figure)
        dates = [fact for fact in self._facts if fact.kind in ("date", "time")]
        if dates:
            yield from self._changed("date", dates, self._other_date)
        ids = [fact for fact in self._facts if fact.kind == "id"]
        if ids:
            yield from self._changed("id", ids, self._other_figure)
        yield from self._other_names(names)

    def _other_names(self, names: "_NamePool") -> Iterator[Mutant]:
        chosen = [fact for fact in self._facts if fact.kind == "name"]
        if not any(map(self._is_in_key, chosen)):
            chosen = [fact for fact in chosen if not fact.is_doubtful][:1]
        if chosen:
            excluded = self._asked | self._key | self._reference | {fact.key for fact in facts_of(self._text)}
            yield from self._changed("name", chosen, lambda text: names.another(text, excluded, self._seed))

    def _changed(
        self, operator: str, facts: Sequence[Fact], change: "Callable[[str], str | None]"
    ) -> Iterator[Mutant]:
        """The text with the facts, wherever they are stated, changed; nothing if one cannot be changed."""
        keys = {fact.key for fact in facts}
        parts: list[str] = []
        position = 0
        for fact in facts_of(self._text):
            if fact.key not in keys or fact.start < position:
                continue
            other = change(self._text[fact.start : fact.end])
            if other is None:
                return
            parts += self._text[position : fact.start], other
            position = fact.end
        if position:
            text = "".join([*parts, self._text[position:]])
            yield Mutant("fact", operator, _with_text(self._good, text))

    def _another_row(self, figure: Fact) -> Iterator[Mutant]:
        """The value of the same column in another row of a tool result."""
        value = figure.key[1] if isinstance(figure.key, tuple) else None
        taken = {fact.key for fact in facts_of(self._text)} | self._key | self._asked | self._reference
        for cell in self._evidence.values:
            if not cell.is_cell or cell.number is None or abs(cell.number) != value:
                continue
            others = [
                abs(other.number)
                for other in _column(self._evidence, cell)
                if other.number is not None and ("figure", abs(other.number)) not in taken
            ]
            if others:
                other = others[self._seed % len(others)]
                yield from self._changed("another row", [figure], partial(_in_the_form_of, number=other))
                return

    def _other_figure(self, text: str) -> str | None:
        """Another figure in the same form: one digit, or the number word, is another."""
        word = text.lower()
        if word in _NUMBER_NAMES:
            other = _NUMBER_NAMES[2 + (_NUMBER_NAMES.index(word) + 3 + self._seed % 5) % 10]
            return other.capitalize() if text[:1].isupper() else other
        if _YEAR.fullmatch(text):
            return f"{int(text) - 1 - self._seed % 4}"
        offsets = [match.start() for match in _DIGIT.finditer(text)]
        old = _value(text, offsets)
        # The second digit first: the figure keeps its size and is still far off.
        for offset in [*offsets[1:2], *offsets[:1], *offsets[2:]]:
            for step in range(2, 8):
                digit = (int(text[offset]) + 1 + (self._seed + step) % 8) % 10
                if offset == offsets[0] and digit == 0 and len(offsets) > 1:
                    continue
                other = f"{text[:offset]}{digit}{text[offset + 1 :]}"
                new = _value(other, offsets)
                if (
                    abs(new - old) >= _MIN_CHANGE * max(old, new)
                    and ("figure", float(new)) not in self._asked
                ):
                    return other
        return None

    def _other_date(self, text: str) -> str | None:
        """Another date in the same form: another month where the month is named, else another day, month or hour."""
        named = _MONTH_NAME.search(text)
        if named:
            number = next(
                n for n, name in enumerate(_MONTH_NAMES) if name[:3].lower() == named[0][:3].lower()
            )
            other = _MONTH_NAMES[(number + 3 + self._seed % 6) % 12]
            is_short = len(named[0]) == 3 and named[0].lower() != "may"
            return text[: named.start()] + (other[:3] if is_short else other) + text[named.end() :]
        short = _SHORT_NUMBER.search(text)
        if short is None:
            return None
        # A day or month, or the hour of a time: three to seven further on a dial of twelve is never the same.
        other_part = f"{(int(short[0]) + 2 + self._seed % 5) % 12 + 1:0{len(short[0])}d}"
        return text[: short.start()] + other_part + text[short.end() :]

    def nothing(self) -> Iterator[Mutant]:
        """Replies without an answer; for a question without an answer they are right."""
        if not self._turn.answerable:
            return
        yield Mutant("nothing", "nothing found", _with_text(self._good, NOTHING_FOUND))
        echoed = f"There is nothing recorded for: {self._turn.question}"
        yield Mutant("nothing", "nothing found, question repeated", _with_text(self._good, echoed))
        yield Mutant("nothing", "empty talk", _with_text(self._good, EMPTY_TALK))
        facts = [fact.start for fact in facts_of(self._text) if fact.key not in self._asked]
        if facts and self._facts:
            cut = self._text[: min(facts)].strip()
            if cut:
                yield Mutant("nothing", "cut before the first fact", _with_text(self._good, cut))

    def reported_apart(self, all_keywords: str) -> Iterator[Mutant]:
        """The right text without its tools, denied, and among everything else."""
        if self._turn.expected_tools:
            yield Mutant(
                "wrong_tool",
                "right text without the tool",
                msgspec.structs.replace(self._good, tool_calls=()),
            )
        if self._turn.answerable:
            yield Mutant(
                "adversarial", "denied", _with_text(self._good, f"It is not true that: {self._text}")
            )
            yield Mutant("adversarial", "everything listed", _with_text(self._good, all_keywords))

    def is_marked_right(self, text: str) -> bool:
        """Whether a person marked a text as right."""
        text = text.strip()
        return text in self._turn.also_right or text == (self._turn.reference_answer or "").strip()

    def states_answer(self, text: str) -> bool:
        """Whether a text states every fact that was asked for."""
        answer = {fact.key for fact in self._facts} or self._reference
        return bool(answer) and answer <= {fact.key for fact in facts_of(text)}


class _NamePool:
    """The names of a set's good replies, to put in each other's offset."""

    def __init__(self, good: Iterable[GoodReply]) -> None:
        names: dict[Hashable, str] = {}
        for one in good:
            text = (one.reply.text or "")[:_MAX_CHARACTERS]
            for fact in facts_of(text):
                name = text[fact.start : fact.end]
                if (
                    fact.kind == "name"
                    and not fact.is_doubtful
                    and len(name) >= _SHORTEST_NAME
                    and not name.isupper()
                ):
                    names.setdefault(fact.key, name)
        self._names = list(names.items())

    def another(self, text: str, excluded: set[Hashable], seed: int) -> str | None:
        """A name with as many words, else any other."""
        size = len(text.split())
        count = len(self._names)
        ordered = [self._names[(seed + offset) % count] for offset in range(min(count, 200))]
        fits = [name for key, name in ordered if key not in excluded and name.lower() not in text.lower()]
        return next((name for name in fits if len(name.split()) == size), fits[0] if fits else None)


def _all_texts(turn: Question) -> Iterator[str]:
    for keyword in turn.expected_keywords:
        yield from key_texts(keyword)


@lru_cache(maxsize=20_000)
def facts_of(text: str) -> tuple[Fact, ...]:
    """Every fact of a text.

    >>> [fact.kind for fact in facts_of("Naomi Brandvold pays $1,420 from June 9, 2023.")]
    ['name', 'figure', 'date']
    """
    text = text[:_MAX_CHARACTERS]
    words = Words(text)
    mentions = find_mentions(text, words, is_reply=True)
    facts = [fact for mention in mentions if (fact := _fact(mention, text, words)) is not None]
    facts += [
        fact
        for mention in find_names(text, words, mentions)
        if (fact := _fact(mention, text, words)) is not None
    ]
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


def _evidence_keys(evidence: Evidence) -> set[Hashable]:
    keys: set[Hashable] = {
        ("figure", abs(value.number)) for value in evidence.values if value.number is not None
    }
    return keys | {fact.key for fact in facts_of(evidence.text)}


def _column(evidence: Evidence, cell: EvidenceValue) -> Iterator[EvidenceValue]:
    """The values under the same name in the other rows of the list that a cell's row belongs to."""
    record = evidence.records[cell.record]
    if not record.path or not isinstance(record.path[-1], int):
        return
    for other in evidence.values:
        row = evidence.records[other.record]
        is_beside = row.root == record.root and row.path is not None and row.path[:-1] == record.path[:-1]
        if is_beside and other.key == cell.key and other.record != cell.record:
            yield other


def _value(text: str, offsets: Sequence[int]) -> int:
    return int("".join([text[offset] for offset in offsets]) or 0)


def _in_the_form_of(text: str, number: float) -> str:
    """A number written like another one: with its separators and decimals.

    >>> _in_the_form_of("16,144.00", 9209.5), _in_the_form_of("16144", 9209)
    ('9,209.50', '9209')
    """
    decimals = len(text) - text.rindex(".") - 1 if re.search(r"\.\d{1,2}$", text) else 0
    if not decimals and number != int(number):
        decimals = 2
    return f"{number:,.{decimals}f}" if "," in text else f"{number:.{decimals}f}"
