"""Replies that an answer key must refuse: those of trivial bots, which know nothing, and mutants of right ones.

What bots that know nothing score, a golden set gives away for free. A bot is a tool policy (which tools it calls) combined with
a text policy (what it says).

Mutants are wrong replies made from a good one; a strong key refuses all of them. Operators follow what a question asks. Three
families count: `fact` (what is asked for is another figure, date, name or id, or comes from another row of the tool result),
`subject` (the reply belongs to a similar question) and `nothing` (nothing found, empty talk, cut before the first fact).
`wrong_tool` and `adversarial` are reported apart: the standard refuses the first by construction, and no keyword sees the second.

A mutant must be wrong. So a fact is only changed if the question asks for its kind, and where several may be what is asked for,
all of them are changed. Details are not: the lender where the balance is asked for, the figures beside a yes or no, the
runner-up. A reply that declines has no answer to change.
"""

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from types import MappingProxyType
from typing import Literal
from zlib import crc32

import msgspec

from answerkey.evidence.records import (
    EVERY_KIND,
    MAX_CHARACTERS,
    Evidence,
    EvidenceValue,
    Fact,
    Words,
    answer_shape,
    content_words,
    facts_of,
    gather_evidence,
)
from answerkey.golden.similar import SimilarTexts, question_words
from answerkey.model.question import (
    Alternatives,
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    Question,
    QuestionSet,
    RangeExpectation,
    TextExpectation,
    describe_expectation,
)
from answerkey.model.reply import Evidence as Observation
from answerkey.model.reply import Reply, ToolCall
from answerkey.text.patterns import lazy

# Trivial bots.

EMPTY_TALK = "Here is what I found for you. Please let me know if you need anything else."
NOTHING_FOUND = "There is nothing on record about this."
_MAX_RECITED = 1_000  # keywords that the parrot recites, the most frequent first
_OBSERVED = Observation(kind="response", completeness="complete", tools_observed=True)

# Policy → what it does, in words.
TOOL_POLICIES = {
    "no-tool": "calls no tool",
    "every-tool": "calls every tool",
    "one-tool": "calls the most used tool",
    "similar-tools": "calls the most similar question's tools",
    "right-tools": "calls the right tools",
}
TEXT_POLICIES = {
    "silent": "says nothing",
    "echo": "repeats the question",
    "nothing-found": "says that nothing is on record",
    "parrot": "recites other questions' keywords",
}


class BaselineBot(msgspec.Struct, frozen=True):
    """A combination of two policies."""

    tools: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.tools}+{self.text}"

    @property
    def knows_nothing(self) -> bool:
        """Whether it could be made without the key."""
        return self.tools != "right-tools"

    @property
    def description(self) -> str:
        """What it does: "calls every tool and repeats the question"."""
        return f"{TOOL_POLICIES[self.tools]} and {TEXT_POLICIES[self.text]}"


# Every combination. A bot with the right tools knows something, so the floor is that of the others.
BOTS = tuple(BaselineBot(tools, text) for text in TEXT_POLICIES for tools in TOOL_POLICIES)


class BaselineBots:
    """The replies of every bot to the questions of one set."""

    def __init__(self, questions: QuestionSet) -> None:
        turns = [turn for question in questions for turn in question.asks]
        uses = Counter(tool.name for turn in turns for tool in turn.expected_tools)
        self._every = tuple(ToolCall(name=name) for name in uses)
        self._most_used = tuple(ToolCall(name=name) for name, _ in uses.most_common(1))
        self._parrot = _Parrot(questions)
        self._places = {id(turn): place for place, turn in enumerate(turns)}
        self._turns = turns
        self._words = [question_words(turn.question) for turn in turns]
        self._index = SimilarTexts(self._words)

    def calls(self, turn: Question) -> Mapping[str, tuple[ToolCall, ...]]:
        """Tool policy → the calls it makes."""
        place = self._places[id(turn)]
        nearest = self._index.others(place, self._words[place], 1)
        return {
            "no-tool": (),
            "every-tool": self._every,
            "one-tool": self._most_used,
            "similar-tools": _calls(self._turns[nearest[0]]) if nearest else self._most_used,
            "right-tools": _calls(turn),
        }

    def texts(self, question: Question, turn: Question) -> Mapping[str, str]:
        """Text policy → what it says."""
        return {
            "silent": "",
            "echo": turn.question,
            "nothing-found": NOTHING_FOUND,
            "parrot": self._parrot.recite(question),
        }


def baseline_reply(calls: tuple[ToolCall, ...], text: str) -> Reply:
    """A bot's reply, with its calls observed."""
    return Reply(text=text, tool_calls=calls, evidence=_OBSERVED)


def _calls(turn: Question) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(name=tool.name) for tool in turn.expected_tools)


class _Parrot:
    """Recites the keywords of all the other questions."""

    def __init__(self, questions: QuestionSet) -> None:
        self._own = {question.id: frozenset(_keyword_texts(question)) for question in questions}
        shared = Counter(word for words in self._own.values() for word in words)
        self._words = [word for word, _ in shared.most_common(_MAX_RECITED)]
        # A keyword that only one question has is not recited to that question.
        self._single = {word for word in self._words if shared[word] == 1}
        self._all = ", ".join(self._words) or EMPTY_TALK

    def recite(self, question: Question) -> str:
        own = self._own[question.id] & self._single
        if not own:
            return self._all
        return ", ".join([word for word in self._words if word not in own]) or EMPTY_TALK


def _keyword_texts(question: Question) -> Iterator[str]:
    for turn in question.asks:
        for keyword in turn.expected_keywords:
            yield from map(str.lower, key_texts(keyword))


def key_texts(keyword: Expectation) -> Iterator[str]:
    """The texts by which a reply can meet an expectation; none for a pattern or query, of which no text can be derived."""
    match keyword:
        case str():
            yield keyword.strip()
        case NumberExpectation(number=number) | RangeExpectation(low=number):
            yield f"{number:.12g}"
        case TextExpectation() | DateExpectation():
            yield describe_expectation(keyword).strip()
        case Alternatives(options=options):
            for option in options:
                yield from key_texts(option)
        case PatternExpectation() | ComputedExpectation():
            return


# Mutants.

Family = Literal["fact", "subject", "nothing", "wrong_tool", "adversarial"]
COUNTED: tuple[Family, ...] = ("fact", "subject", "nothing")
# Reported apart from the strength.
APART: tuple[Family, ...] = ("wrong_tool", "adversarial")

_MADE_UP = "It is $4,217, as recorded on March 3."
_SIMILAR = 3
_SHORTEST_NAME = 4
_MOST_NAMES = 200
# A changed figure differs by at least this share, so that no usual tolerance accepts it.
_MIN_CHANGE = 0.05
_DIGIT = lazy(r"\d")
_SHORT_NUMBER = lazy(r"(?<!\d)\d{1,2}(?!\d)")
_BEFORE_NUMBER_IN_ADDRESS = lazy(
    r"(?:\b(?:Unit|Suite|Apt|Apartment|Room|Floor|No|Nr|Lot|Box|Form|Section)\.?|#|\b[A-Z]{2})\s?$"
)
_NUMBER_FOLLOWS = lazy(r"\s\d")
_ZIP = lazy(r"\d{5}(?:-\d{4})?")
_LARGEST_COUNT = 20
_YEAR = lazy(r"(?:19|20)\d\d")
_ORDINAL = lazy(r"(?:st|nd|rd|th)\b")
_CURRENCY = lazy(r"[$€£¥₹]\s?$|\b(?:USD|EUR|GBP|CHF)\s?$")
_CURRENCY_AFTER = lazy(r"\s?(?:[$€£¥₹]|(?:USD|EUR|GBP|CHF|dollars?|euros?)\b)")
_PERCENT_AFTER = lazy(r"\s?(?:%|percent\b|per cent\b)")
_POLARITY = lazy(r"\W*(yes|no)\b", re.IGNORECASE)
_SAYS_NONE = lazy(r"\W*(?:no|none|nothing|never|nobody|not|zero)\b", re.IGNORECASE)
# What follows is the result of what is before.
_CONCLUDES = lazy(
    r"\b(?:so|thus|therefore|hence|altogether|leaves|together|total(?:s|ling)?)\b|=", re.IGNORECASE
)
_NUMBER_NAMES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MONTH_NAME = lazy(rf"\b(?:{'|'.join(name[:3] for name in _MONTH_NAMES)})[a-z]*", re.IGNORECASE)


class Mutant(msgspec.Struct, frozen=True):
    """A wrong reply."""

    family: Family
    # How it was made: "asked figure", "nothing found", …
    operator: str
    reply: Reply


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
        return GoodReply(Reply(text=turn.reference_answer, tool_calls=calls, evidence=_OBSERVED), "reference")
    texts = [texts[0] for keyword in turn.expected_keywords if (texts := list(key_texts(keyword)))]
    if not turn.answerable:
        text = " ".join([NOTHING_FOUND, *texts])
        return GoodReply(Reply(text=text, tool_calls=calls, evidence=_OBSERVED), "key")
    if not texts:
        return None
    return GoodReply(Reply(text=f"It is {', '.join(texts)}.", tool_calls=calls, evidence=_OBSERVED), "key")


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
) -> Iterator[tuple[Question, list[Iterator[Mutant]]]]:
    """Make wrong replies to the questions of a set, the same ones every time: for each question, those of each turn.

    Each is made when it is taken: first those of the family fact, then nothing, then subject.

    Args:
        questions: The golden set.
        recorded: Right replies by (question id, index of the turn), such as a run's passing replies; for other turns
            the reference answer is used, else a reply composed from the key.
        only: Ids of the questions to make replies for; by default all.
        seed: Chooses among the possible wrong figures, dates and names.

    >>> rent = Question(id="rent", question="What is the rent?", reference_answer="The rent is $1,420.")
    >>> [(question, [mutants])] = wrong_replies(QuestionSet(questions=(rent,)))
    >>> first = next(mutants)
    >>> first.family, first.operator
    ('fact', 'asked figure')
    """
    turns = [
        _Turn(question, turn, good_reply(turn, recorded.get((question.id, index))))
        for question in questions
        for index, turn in enumerate(question.asks)
    ]
    maker = _MutantMaker(turns, seed=seed)
    first = 0
    for question in questions:
        positions = range(first, first + len(question.asks))
        first = positions.stop
        if only is None or question.id in only:
            yield question, [maker.mutants(position) for position in positions]


class _Turn:
    """A question, or one turn of a conversation, with its good reply."""

    def __init__(self, question: Question, turn: Question, good: GoodReply | None) -> None:
        self.question, self.turn, self.good = question, turn, good
        self.text = ((good and good.reply.text) or "")[:MAX_CHARACTERS]

    @cached_property
    def declines(self) -> bool:
        """Whether the good reply says that there is no answer; one that is made from the key of an answer never does."""
        if not self.turn.answerable or self.good is None or self.good.origin == "key":
            return not self.turn.answerable
        from answerkey.detect.abstention.model import declines  # its words are read from a file

        return declines(self.turn.question, self.text)


# A name's key and its text.
_Names = Sequence[tuple[Hashable, str]]


class _MutantMaker:
    """Makes the mutants of each turn of a set, the same ones every time."""

    def __init__(self, turns: Sequence[_Turn], *, seed: int) -> None:
        self._turns, self._seed = turns, seed

    @cached_property
    def _words(self) -> list[tuple[str, ...]]:
        return [question_words(one.turn.question) for one in self._turns]

    @cached_property
    def _index(self) -> SimilarTexts:
        return SimilarTexts(self._words)

    @cached_property
    def all_keywords(self) -> str:
        """Keywords of the set in one text."""
        keywords = (
            text
            for one in self._turns
            for keyword in one.turn.expected_keywords
            for text in key_texts(keyword)
        )
        return ", ".join(islice(dict.fromkeys(keywords), 200))

    @cached_property
    def names(self) -> _Names:
        """Names of the set's good replies; few questions ask for one."""
        return _name_pool(one.text for one in self._turns)

    def mutants(self, position: int) -> Iterator[Mutant]:
        """The wrong replies to one turn; empty if there is no good reply to make them from."""
        one = self._turns[position]
        if one.good is None:
            return
        subject = _Subject(one, one.good, self, seed=self._seed + crc32(one.turn.question.encode()))
        wrong = chain(subject.wrong_facts(), subject.nothing(), self._replies_to_others(position, subject))
        answers = (mutant for mutant in wrong if not subject.is_right(mutant.reply.text or ""))
        yield from _distinct(chain(answers, subject.reported_apart()))

    def _replies_to_others(self, position: int, subject: "_Subject") -> Iterator[Mutant]:
        one = self._turns[position]
        count = _SIMILAR + len(one.question.asks)
        for other in self._index.others(position, self._words[position], count):
            similar = self._turns[other]
            # The other turns of a conversation are about the same thing, and to decline is right here too.
            if (
                similar.question is not one.question
                and similar.good is not None
                and similar.turn.question != one.question.question
                and not (one.declines and similar.declines)
            ):
                text = similar.good.reply.text or ""
                yield subject.mutant("subject", f"reply to {similar.question.id}", text)


def _distinct(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """Without those whose text and tools an earlier one has."""
    seen: set[Hashable] = set()
    for mutant in mutants:
        said = mutant.reply.text, mutant.reply.tools_used
        if said not in seen:
            seen.add(said)
            yield mutant


# A number of up to three digits with what it counts, and nothing else.
COUNT_WITH_UNIT = lazy(r"[1-9]\d{0,2} [^\W\d_](?:[\w -]*\w)?")


class _Subject:
    """One turn with its good reply, and what of it is asked for."""

    def __init__(self, one: _Turn, good: GoodReply, maker: _MutantMaker, *, seed: int) -> None:
        self._turn, self._good, self._text = one.turn, good.reply, one.text
        self._maker, self._seed, self._declines = maker, seed, one.declines
        turn = one.turn
        self._asked = answer_shape(turn.question)
        self._in_question = {fact.key for fact in facts_of(turn.question)}
        self._question_words = set(Words(turn.question).keys)
        texts = [text for keyword in turn.expected_keywords for text in key_texts(keyword)]
        self._key_words = [text.casefold() for text in texts if len(text) >= _SHORTEST_NAME]
        self._key = {fact.key for text in texts for fact in facts_of(text)} - self._in_question
        self._reference = {fact.key for fact in facts_of(turn.reference_answer or "")} - self._in_question
        self._evidence = gather_evidence(turn, good.reply, ()) if good.origin == "run" else Evidence()
        # What is asked for, wherever the reply states it; empty where that cannot be said.
        self._facts = [] if self._declines or self._asked.is_yes_or_no else self._find_asked()

    def _find_asked(self) -> list[Fact]:
        stated = [fact for fact in facts_of(self._text) if fact.key not in self._in_question]
        chosen = [fact for fact in stated if fact.kind in self._asked.kinds and not self._is_incidental(fact)]
        known = self._key | self._reference or _evidence_keys(self._evidence)
        for part in self._asked.parts or (EVERY_KIND,):
            if not any(fact.kind in part and self._is_known(fact, known) for fact in chosen):
                return []
        if not self._asked.parts and self._is_answered_in_words():
            return []
        figures = [fact for fact in chosen if fact.kind == "figure"]
        others = [fact for fact in chosen if fact.kind != "figure"]
        for narrower in (self._has_unit, lambda fact: not _YEAR.fullmatch(self._text[fact.start : fact.end])):
            figures = list(filter(narrower, figures)) or figures
        return sorted([*figures, *others], key=lambda fact: fact.start)

    def _is_answered_in_words(self) -> bool:
        """Whether the answer, by the reference or the key, is more than the facts that it states."""
        texts = [self._turn.reference_answer or ""]
        if not texts[0].strip():
            texts = [text for keyword in self._turn.expected_keywords for text in key_texts(keyword)]
        words, count = set[str](), 0
        for text in texts:
            facts = facts_of(text)
            covered = {offset for fact in facts for offset in range(fact.start, fact.end)}
            found = Words(text)
            words |= {
                key for key, start in zip(found.keys, found.starts, strict=True) if start not in covered
            }
            count += len(facts)
        return len(content_words(list(words)) - self._question_words) > count

    def _is_known(self, fact: Fact, known: Container[Hashable]) -> bool:
        """Whether the key, the reference answer or else the evidence states a fact."""
        text = self._text[fact.start : fact.end].casefold()
        is_figure = fact.kind == "figure"
        return fact.key in known or (
            not is_figure and any(text in word or word in text for word in self._key_words)
        )

    def _has_unit(self, fact: Fact) -> bool:
        """Whether a figure is written in the unit that the question asks for."""
        before, after = self._text[max(0, fact.start - 4) : fact.start], self._text[fact.end : fact.end + 9]
        is_money = bool(_CURRENCY.search(before) or _CURRENCY_AFTER.match(after))
        is_percent = bool(_PERCENT_AFTER.match(after))
        match self._asked.unit:
            case "money":
                return is_money
            case "percent":
                return is_percent
            case "count":
                return not is_money and not is_percent
        return True

    def _is_incidental(self, fact: Fact) -> bool:
        """Whether a fact is part of a place or title, or counts what is listed, so that changing it may leave a right reply."""
        before, after = self._text[max(0, fact.start - 14) : fact.start], self._text[fact.end : fact.end + 60]
        digits = self._text[fact.start : fact.end]
        if fact.kind == "name":
            words = fact.key[1] if isinstance(fact.key, tuple) else ()
            return (
                len(digits) < _SHORTEST_NAME
                or self._question_words.issuperset(words)
                or bool(_NUMBER_FOLLOWS.match(after))
            )
        if fact.kind != "figure":
            return False
        if _ORDINAL.match(after) or _BEFORE_NUMBER_IN_ADDRESS.search(before):
            return True
        if _ZIP.fullmatch(digits) and before.rstrip(" ,")[-2:].isupper():
            return True
        value = fact.key[1] if isinstance(fact.key, tuple) else 0
        counts = isinstance(value, float) and value <= _LARGEST_COUNT and after[:1] in " :"
        is_asked = self._asked.parts and self._asked.unit in ("", "count")
        return counts and not _CURRENCY.search(before) and not is_asked and fact.key not in self._key

    def wrong_facts(self) -> Iterator[Mutant]:
        """The good reply with what was asked for changed."""
        if self._declines:
            yield self.mutant("fact", "made-up answer", _MADE_UP)
            return
        alone = self._asked_figure()
        if alone is not None:
            yield from self._changed("asked figure", [alone], self._other)
            yield from self._another_row(alone)
        counted = [fact for fact in facts_of(self._text) if self._is_counted(fact)]
        yield from self._changed("digit in front", counted, lambda _, text: f"1{text}")
        if len({fact.key for fact in self._facts}) > (alone is not None):
            kinds = {_KIND_NAMES[fact.kind] for fact in self._facts}
            yield from self._changed(
                "every fact" if len(kinds) > 1 else kinds.pop(), self._facts, self._other
            )

    def _asked_figure(self) -> Fact | None:
        """The figure that is asked for, where that is one: the only one, that of the key, or the first."""
        figures = {fact.key: fact for fact in self._facts if fact.kind == "figure"}
        if not figures or len(self._asked.parts) != 1 or len({fact.kind for fact in self._facts}) > 1:
            return None
        in_key = [fact for key, fact in figures.items() if key in self._key]
        if len(figures) == 1 or len(in_key) == 1:
            return in_key[0] if in_key else next(iter(figures.values()))
        first = next(iter(figures.values()))
        reference = (fact.key for fact in facts_of(self._turn.reference_answer or "") if fact.key in figures)
        if _CONCLUDES.search(self._text[first.end :]) or next(reference, first.key) != first.key:
            return None
        return first if not in_key or first is in_key[0] else None

    def _is_counted(self, fact: Fact) -> bool:
        """Whether the key has a figure with its unit as a text: "14 days" is also in "114 days"."""
        figure = self._text[fact.start : fact.end].casefold()
        return fact.key not in self._in_question and any(
            word.startswith(f"{figure} ") and COUNT_WITH_UNIT.fullmatch(word) for word in self._key_words
        )

    def _changed(
        self, operator: str, facts: Sequence[Fact], change: Callable[[Fact, str], str | None]
    ) -> Iterator[Mutant]:
        """The text with the facts, wherever they are stated, changed; nothing if one cannot be changed."""
        keys = {fact.key for fact in facts}
        parts: list[str] = []
        position = 0
        for fact in facts_of(self._text):
            if fact.key not in keys or fact.start < position:
                continue
            other = change(fact, self._text[fact.start : fact.end])
            if other is None:
                return
            parts += self._text[position : fact.start], other
            position = fact.end
        if position:
            yield self.mutant("fact", operator, "".join([*parts, self._text[position:]]))

    def mutant(self, family: Family, operator: str, text: str) -> Mutant:
        """The good reply with another text."""
        return Mutant(family, operator, msgspec.structs.replace(self._good, text=text))

    def _other(self, fact: Fact, text: str) -> str | None:
        """Another fact of the same kind, in the same form."""
        if fact.kind in ("date", "time"):
            return self._other_date(text)
        if fact.kind != "name":
            return self._other_figure(text)
        excluded = {one.key for one in facts_of(self._text)}
        excluded |= self._in_question | self._key | self._reference
        seed, size = self._seed + crc32(text.casefold().encode()), len(text.split())
        names = self._maker.names
        first: str | None = None
        for offset in range(len(names)):
            key, name = names[(seed + offset) % len(names)]
            if key not in excluded and name.lower() not in text.lower():
                # One with as many words, else any other.
                if len(name.split()) == size:
                    return name
                first = first or name
        return first

    def _another_row(self, figure: Fact) -> Iterator[Mutant]:
        """The value of the same column in another row of a tool result."""
        value = figure.key[1] if isinstance(figure.key, tuple) else None
        taken = {fact.key for fact in facts_of(self._text)} | self._key | self._in_question | self._reference
        for cell in self._evidence.values:
            if not cell.is_cell or cell.number is None or abs(cell.number) != value:
                continue
            others = [
                abs(other.number)
                for other in _column(self._evidence, cell)
                if other.number is not None and ("figure", abs(other.number)) not in taken
            ]
            if others:
                change = partial(_in_the_form_of, others[self._seed % len(others)])
                yield from self._changed("another row", [figure], change)
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
                    and ("figure", float(new)) not in self._in_question
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
            days = max((int(day) for day in _SHORT_NUMBER.findall(text) if int(day) <= 31), default=1)
            months = [(number + 3 + (self._seed + step) % 6) % 12 for step in range(6)]
            other = next(_MONTH_NAMES[month] for month in months if monthrange(2025, month + 1)[1] >= days)
            is_short = len(named[0]) == 3 and named[0].lower() != "may"
            return text[: named.start()] + (other[:3] if is_short else other) + text[named.end() :]
        short = _SHORT_NUMBER.search(text)
        if short is None:
            return None
        # A day or month, or the hour of a time: three to seven further on a dial of twelve is never the same.
        other_part = f"{(int(short[0]) + 2 + self._seed % 5) % 12 + 1:0{len(short[0])}d}"
        return text[: short.start()] + other_part + text[short.end() :]

    def nothing(self) -> Iterator[Mutant]:
        """Replies without an answer; where there is none, or none of what is asked for, they are right."""
        if self._declines:
            return
        if not _SAYS_NONE.match(self._text):
            yield self.mutant("nothing", "nothing found", NOTHING_FOUND)
            echoed = f"There is nothing recorded for: {self._turn.question}"
            yield self.mutant("nothing", "nothing found, question repeated", echoed)
        yield self.mutant("nothing", "empty talk", EMPTY_TALK)
        # Where the answer may be in words, it may be in what is left.
        if self._facts and self._asked.parts:
            cut = self._text[
                : min(fact.start for fact in facts_of(self._text) if fact.key not in self._in_question)
            ].strip()
            if cut:
                yield self.mutant("nothing", "cut before the first fact", cut)

    def reported_apart(self) -> Iterator[Mutant]:
        """The right text without its tools, denied, and among everything else."""
        if self._turn.expected_tools:
            without = msgspec.structs.replace(self._good, tool_calls=())
            yield Mutant("wrong_tool", "right text without the tool", without)
        if self._turn.answerable:
            yield self.mutant("adversarial", "denied", f"It is not true that: {self._text}")
            yield self.mutant("adversarial", "everything listed", self._maker.all_keywords)

    def is_right(self, text: str) -> bool:
        """Whether the reply to another question answers this one too, or a person marked a text as right."""
        text = text.strip()
        if text in self._turn.also_right or text == (self._turn.reference_answer or "").strip():
            return True
        if self._asked.is_yes_or_no:
            ours, theirs = _POLARITY.match(self._text), _POLARITY.match(text)
            return bool(ours and theirs and ours[1].lower() == theirs[1].lower())
        answer = {fact.key for fact in self._facts} & (self._key | self._reference) or self._reference
        return bool(answer) and answer <= {fact.key for fact in facts_of(text)}


_KIND_NAMES = {
    "figure": "all figures",
    "date": "date",
    "time": "date",
    "id": "id",
    "name": "name",
    "address": "name",
}


def _name_pool(texts: Iterable[str]) -> _Names:
    """Names of a set's good replies, to put in each other's place."""
    names: dict[Hashable, str] = {}
    for text in texts:
        for fact in facts_of(text) if len(names) < _MOST_NAMES else ():
            name = text[fact.start : fact.end]
            is_name = fact.kind == "name" and not fact.is_doubtful and not name.isupper()
            if is_name and len(name) >= _SHORTEST_NAME and not _NUMBER_FOLLOWS.match(text[fact.end :]):
                names.setdefault(fact.key, name)
    return list(names.items())


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


def _in_the_form_of(number: float, fact: Fact, text: str) -> str:
    """A number written like another one: with its separators and decimals.

    >>> [fact] = facts_of("16,144.00")
    >>> _in_the_form_of(9209.5, fact, "16,144.00")
    '9,209.50'
    """
    decimals = len(text) - text.rindex(".") - 1 if re.search(r"\.\d{1,2}$", text) else 0
    if not decimals and number != int(number):
        decimals = 2
    return f"{number:,.{decimals}f}" if "," in text else f"{number:.{decimals}f}"
