"""Keywords: the guidelines of the scoring standard, and expectations that contradict each other."""

import re
from collections.abc import Iterator, Sequence

from answerkey.golden.findings import Finding, Severity
from answerkey.golden.set_vocabulary import COMMON_WORDS, GENERIC_TERMS, Vocabulary
from answerkey.match.keywords import find_keywords
from answerkey.model.question import Question
from answerkey.text.keyword import Alternatives, Keyword, NumberKeyword, PatternKeyword, describe_keyword
from answerkey.text.sanitise import one_line

__all__ = ["check_keywords"]

# Keywords of more words or characters than this are sentences: no reply repeats them to the letter.
_LONG_WORDS = 8
_LONG_CHARACTERS = 80
# Letters up to this number are looked for inside other words.
_SHORT_LETTERS = 4


def check_keywords(question: Question, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Check the keywords of a question, or of each turn of a conversation against that turn's own question."""
    for number, turn in enumerate(question.asks, start=1):
        where = f"turn {number}: " if question.turns else ""
        for code, severity, message, remedy in _check(turn, vocabulary):
            yield Finding.of(question, code, severity, where + message, remedy)


_Raw = tuple[str, Severity, str, str]


def _check(turn: Question, vocabulary: Vocabulary) -> Iterator[_Raw]:
    for keyword in turn.expected_keywords:
        yield from _check_one(keyword, vocabulary)
    yield from _echoes(turn)
    yield from _repeats(turn.expected_keywords)
    yield from _reference(turn)
    yield from _contradictions(turn)


def _named(keyword: Keyword | str) -> str:
    text = keyword if isinstance(keyword, str) else describe_keyword(keyword)
    return f"“{one_line(text, 60)}”"


def _options(keyword: Keyword) -> tuple[str | NumberKeyword | PatternKeyword, ...]:
    return keyword.options if isinstance(keyword, Alternatives) else (keyword,)


def _check_one(keyword: Keyword, vocabulary: Vocabulary) -> Iterator[_Raw]:
    for option in _options(keyword):
        if isinstance(option, str):
            yield from _check_text(option, vocabulary)
        elif isinstance(option, PatternKeyword) and find_keywords((option,), " ")[0].found:
            yield (
                "pattern-matches-anything",
                "error",
                f"the regular expression {_named(option)} matches even an empty text",
                "make it require something, or remove it",
            )


def _check_text(text: str, vocabulary: Vocabulary) -> Iterator[_Raw]:
    bare = text.strip()
    lowered = bare.lower()
    if bare != text:
        shown = one_line(text.replace(" ", "␣"), 60)
        yield (
            "keyword-spaces",
            "warning",
            f"the keyword “{shown}” begins or ends with a space, which the reply must then contain",
            "remove the spaces",
        )
    if len(bare) == 1:
        yield (
            "one-letter",
            "warning",
            f"the keyword {_named(bare)} is a single character, which almost every reply contains",
            "use a longer and more specific value",
        )
    elif lowered in COMMON_WORDS:
        yield (
            "common-word",
            "warning",
            f"the keyword {_named(bare)} is a common word, which almost every reply contains",
            "use a specific value or a key concept instead",
        )
    elif lowered in GENERIC_TERMS:
        yield (
            "generic-term",
            "warning",
            f"the keyword {_named(bare)} is a generic term, which a reply without the answer may contain",
            "use what is specific to the answer, for example a name or an amount",
        )
    elif bare.isascii() and bare.isdigit() and len(bare) <= 2:
        yield (
            "short-number",
            "warning",
            f"the number {_named(bare)} is also found inside longer numbers, such as {bare}0 or 20{bare}",
            f'write {{"regex": "\\\\b{bare}\\\\b"}}, or add what it counts, as in “{bare} units”',
        )
    elif bare.isalpha() and len(bare) <= _SHORT_LETTERS:
        inside = vocabulary.inside(lowered)
        if inside:
            yield (
                "inside-words",
                "warning",
                f"the keyword {_named(bare)} is also found inside other words, such as {', '.join(inside)}",
                f'write {{"regex": "\\\\b{bare}\\\\b"}} or use --match smart, which respects words',
            )
    if len(bare.split()) > _LONG_WORDS or len(bare) > _LONG_CHARACTERS:
        yield (
            "long-keyword",
            "warning",
            f"the keyword {_named(bare)} is a sentence, which a right answer in other words does not contain",
            "split it into the facts that matter, or move it to reference_answer",
        )


def _echoes(turn: Question) -> Iterator[_Raw]:
    echoed = [
        keyword
        for keyword, match in zip(
            turn.expected_keywords, find_keywords(turn.expected_keywords, turn.question), strict=True
        )
        if match.found
    ]
    if not echoed:
        return
    names = ", ".join(_named(keyword) for keyword in echoed)
    one = len(echoed) == 1
    stand = f"the keyword {names} already stands" if one else f"the keywords {names} already stand"
    everything = len(echoed) == len(turn.expected_keywords)
    earned = "every keyword" if everything else "it" if one else "them"
    yield (
        "echo",
        "warning",
        f"{stand} in the question: repeating the question earns {earned} for free",
        "use what only the answer contains instead",
    )


def _repeats(keywords: Sequence[Keyword]) -> Iterator[_Raw]:
    seen: set[str] = set()
    for keyword in keywords:
        name = describe_keyword(keyword).strip().lower()
        if name in seen:
            yield (
                "repeated-keyword",
                "warning",
                f"the keyword {_named(keyword)} is listed more than once and counts each time",
                "keep one",
            )
        seen.add(name)
    texts = [keyword.strip().lower() for keyword in keywords if isinstance(keyword, str)]
    for text in dict.fromkeys(texts):
        longer = next(
            (other for other in texts if text != other and re.search(rf"\b{re.escape(text)}\b", other)), None
        )
        if longer is not None:
            yield (
                "contained-keyword",
                "info",
                f"the keyword {_named(text)} is part of {_named(longer)}: both are found or missed together",
                "keep the longer one, or write them as a list of alternatives",
            )


def _reference(turn: Question) -> Iterator[_Raw]:
    answer = turn.reference_answer
    if not answer:
        return
    for keyword, match in zip(
        turn.expected_keywords, find_keywords(turn.expected_keywords, answer), strict=True
    ):
        if not match.found:
            yield (
                "not-in-reference",
                "warning",
                f"the keyword {_named(keyword)} is not in the question's own reference answer",
                "correct one of them: a reply that is the reference answer would lose points",
            )
    for keyword, match in zip(
        turn.forbidden_keywords, find_keywords(turn.forbidden_keywords, answer), strict=True
    ):
        if match.found:
            yield (
                "forbidden-in-reference",
                "error",
                f"the forbidden keyword {_named(keyword)} is in the question's own reference answer",
                "remove it from one of them",
            )


def _contradictions(turn: Question) -> Iterator[_Raw]:
    if not turn.forbidden_keywords:
        return
    for expected in turn.expected_keywords:
        texts = [option for option in _options(expected) if isinstance(option, str)]
        if not texts or len(texts) < len(_options(expected)):
            continue
        for forbidden in turn.forbidden_keywords:
            hits = [text for text in texts if find_keywords((forbidden,), text)[0].found]
            if len(hits) == len(texts):
                yield (
                    "forbidden-expected",
                    "error",
                    f"the keyword {_named(expected)} is expected, but it contains the forbidden {_named(forbidden)}",
                    "remove one of the two: no reply can satisfy both",
                )
            elif hits:
                yield (
                    "forbidden-alternative",
                    "warning",
                    f"the alternative {_named(hits[0])} contains the forbidden keyword {_named(forbidden)}",
                    "remove the alternative or the forbidden keyword",
                )
    for forbidden, match in zip(
        turn.forbidden_keywords, find_keywords(turn.forbidden_keywords, turn.question), strict=True
    ):
        if match.found:
            yield (
                "forbidden-in-question",
                "info",
                f"the forbidden keyword {_named(forbidden)} stands in the question: a reply that quotes the question fails",
                "make the forbidden keyword more specific",
            )
