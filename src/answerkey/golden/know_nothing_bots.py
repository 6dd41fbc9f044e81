"""Bots that know nothing. What they score is what a golden set gives away."""

from collections import Counter
from collections.abc import Callable, Iterator

from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Evidence, Reply, ToolCall
from answerkey.text.normalise import Alternatives, Keyword, NumberKeyword, PatternKeyword

# A bot gives a reply to one turn of a question.
Bot = Callable[[Question, Question], Reply]

REFUSAL = "I'm sorry, I don't have that information."
GENERIC = "Here is what I found for you. Please let me know if you need anything else."
# The parrot recites no more keywords than this, those of most questions first, so that large sets stay quick.
_RECITED = 1_000
_SEEN = Evidence(kind="response", completeness="complete", tools_observed=True)


def know_nothing_bots(questions: QuestionSet) -> dict[str, Bot]:
    """The bots by name."""
    tools = tuple(
        ToolCall(name=name)
        for name in dict.fromkeys(
            tool.name for question in questions for turn in question.asks for tool in turn.expected_tools
        )
    )
    parrot = _Parrot(questions)
    return {
        "silent": lambda question, turn: Reply(text="", evidence=_SEEN),
        "echo": lambda question, turn: Reply(text=turn.question, evidence=_SEEN),
        "refuser": lambda question, turn: Reply(text=REFUSAL, evidence=_SEEN),
        "every-tool": lambda question, turn: Reply(text=GENERIC, tool_calls=tools, evidence=_SEEN),
        "parrot": lambda question, turn: Reply(text=parrot.recite(question), evidence=_SEEN),
    }


class _Parrot:
    """Recites the keywords of all the other questions."""

    def __init__(self, questions: QuestionSet) -> None:
        self._own = {question.id: frozenset(_sayable(question)) for question in questions}
        shared = Counter(word for words in self._own.values() for word in words)
        self._words = [word for word, _ in shared.most_common(_RECITED)]
        # Those that only one question has are not recited to it.
        self._single = {word for word in self._words if shared[word] == 1}
        self._all = ", ".join(self._words) or GENERIC

    def recite(self, question: Question) -> str:
        own = self._own[question.id] & self._single
        if not own:
            return self._all
        return ", ".join([word for word in self._words if word not in own]) or GENERIC


def _sayable(question: Question) -> Iterator[str]:
    for turn in question.asks:
        for keyword in turn.expected_keywords:
            yield from _texts(keyword)


def _texts(keyword: Keyword) -> Iterator[str]:
    match keyword:
        case str():
            yield keyword.strip().lower()
        case NumberKeyword(number=number):
            yield f"{number:.12g}"
        case Alternatives(options=options):
            for option in options:
                yield from _texts(option)
        case PatternKeyword():
            # What would match a pattern cannot be told from the pattern.
            return
