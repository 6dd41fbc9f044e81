"""Trivial baseline bots, which know nothing: what they score, a golden set gives away for free."""

from collections import Counter
from collections.abc import Callable, Iterator

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

# (question, turn) → reply
Bot = Callable[[Question, Question], Reply]

REFUSAL = "I'm sorry, I don't have that information."
GENERIC = "Here is what I found for you. Please let me know if you need anything else."
_MAX_RECITED = 1_000  # keywords that the parrot recites, the most frequent first
_OBSERVED = Evidence(kind="response", completeness="complete", tools_observed=True)


def baseline_bots(questions: QuestionSet) -> dict[str, Bot]:
    """The bots by name."""
    tools = tuple(
        ToolCall(name=name)
        for name in dict.fromkeys(
            tool.name for question in questions for turn in question.asks for tool in turn.expected_tools
        )
    )
    parrot = _Parrot(questions)
    return {
        "silent": lambda question, turn: Reply(text="", evidence=_OBSERVED),
        "echo": lambda question, turn: Reply(text=turn.question, evidence=_OBSERVED),
        "refuser": lambda question, turn: Reply(text=REFUSAL, evidence=_OBSERVED),
        "every-tool": lambda question, turn: Reply(text=GENERIC, tool_calls=tools, evidence=_OBSERVED),
        "parrot": lambda question, turn: Reply(text=parrot.recite(question), evidence=_OBSERVED),
    }


class _Parrot:
    """Recites the keywords of all the other questions."""

    def __init__(self, questions: QuestionSet) -> None:
        self._own = {question.id: frozenset(_keyword_texts(question)) for question in questions}
        shared = Counter(word for words in self._own.values() for word in words)
        self._words = [word for word, _ in shared.most_common(_MAX_RECITED)]
        # A keyword that only one question has is not recited to that question.
        self._single = {word for word in self._words if shared[word] == 1}
        self._all = ", ".join(self._words) or GENERIC

    def recite(self, question: Question) -> str:
        own = self._own[question.id] & self._single
        if not own:
            return self._all
        return ", ".join([word for word in self._words if word not in own]) or GENERIC


def _keyword_texts(question: Question) -> Iterator[str]:
    for turn in question.asks:
        for keyword in turn.expected_keywords:
            yield from _texts(keyword)


def _texts(keyword: Expectation) -> Iterator[str]:
    match keyword:
        case str():
            yield keyword.strip().lower()
        case NumberExpectation(number=number) | RangeExpectation(low=number):
            yield f"{number:.12g}"
        case TextExpectation() | DateExpectation():
            yield describe_expectation(keyword).strip().lower()
        case Alternatives(options=options):
            for option in options:
                yield from _texts(option)
        case PatternExpectation() | ComputedExpectation():
            # No text can be derived from a pattern or a query.
            return
