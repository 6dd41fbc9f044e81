"""Trivial baseline bots, which know nothing of the answers: what they score, a golden set gives away for free.

A bot is a tool policy (which tools it calls) combined with a text policy (what it says).
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from answerkey.golden.similar import SimilarTexts, question_words
from answerkey.model.expectation import (
    Alternatives,
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    RangeExpectation,
    TextExpectation,
    describe_expectation,
)
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Evidence, Reply, ToolCall

EMPTY_TALK = "Here is what I found for you. Please let me know if you need anything else."
NOTHING_FOUND = "There is nothing on record about this."
_MAX_RECITED = 1_000  # keywords that the parrot recites, the most frequent first
_OBSERVED = Evidence(kind="response", completeness="complete", tools_observed=True)

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
