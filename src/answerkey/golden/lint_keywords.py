"""Keywords: the guidelines of the scoring standard, and expectations that contradict each other."""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from answerkey.golden.findings import Finding, finding, quoted
from answerkey.match.keywords import find_keywords
from answerkey.model.question import Question, QuestionSet
from answerkey.text.keyword import Alternatives, Keyword, NumberKeyword, PatternKeyword, describe_keyword
from answerkey.text.sanitise import one_line

_WORD = re.compile(r"[^\W\d_]+")
_NAMED = 3


def _listed(name: str) -> frozenset[str]:
    return frozenset((files("answerkey.golden") / "words" / f"{name}.txt").read_text("utf-8").split())


# Function words and fillers: they stand in almost every English reply.
COMMON_WORDS = _listed("common")
# Words of business that replies about any subject contain; the standard's own examples are "property" and "LLC".
GENERIC_TERMS = _listed("generic")
# Further words that business replies are full of: what a short keyword may be found inside of.
BUSINESS_WORDS = _listed("business")


class Vocabulary:
    """The words that a short keyword may be found inside of: the golden set's own first, then those of business."""

    def __init__(self, questions: QuestionSet) -> None:
        own = {word for text in _texts(questions) for word in _WORD.findall(text.lower())}
        ordered = [
            word
            for words in (own, GENERIC_TERMS, BUSINESS_WORDS, COMMON_WORDS)
            for word in sorted(words, key=lambda word: (len(word), word))
        ]
        # One text, so that looking for letters inside all words is one fast search.
        self._text = "\n" + "\n".join(dict.fromkeys(ordered)) + "\n"
        self._known: dict[str, tuple[str, ...]] = {}

    def inside(self, letters: str) -> tuple[str, ...]:
        """A few words that contain the letters, except the letters themselves and their plural."""
        if letters not in self._known:
            self._known[letters] = tuple(self._search(letters))
        return self._known[letters]

    def _search(self, letters: str) -> list[str]:
        found: list[str] = []
        at = self._text.find(letters)
        while at >= 0 and len(found) < _NAMED:
            start, end = self._text.rfind("\n", 0, at) + 1, self._text.find("\n", at)
            word = self._text[start:end]
            if word not in (letters, letters + "s"):
                found.append(word)
            at = self._text.find(letters, end)
        return found


def _texts(questions: QuestionSet) -> Iterable[str]:
    for question in questions:
        for turn in question.asks:
            yield turn.question
            if turn.reference_answer:
                yield turn.reference_answer


# Keywords of more words or characters than this are sentences: no reply repeats them to the letter.
_LONG_WORDS = 8
_LONG_CHARACTERS = 80
# Letters up to this number are looked for inside other words.
_SHORT_LETTERS = 4


def check_keywords(question: Question, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Check the keywords of a question, or of each turn of a conversation against that turn's own question."""
    for number, turn in enumerate(question.asks, start=1):
        where = f"turn {number}: " if question.turns else ""
        for code, message, *about in _check(turn, vocabulary):
            yield finding(question, code, where + message, keyword="".join(about))


# The kind of finding, the message, and the keyword that the remedy speaks of where it speaks of one.
_Raw = tuple[str, str] | tuple[str, str, str]


def _check(turn: Question, vocabulary: Vocabulary) -> Iterator[_Raw]:
    for keyword in turn.expected_keywords:
        yield from _check_one(keyword, vocabulary)
    yield from _echoes(turn)
    yield from _repeats(turn.expected_keywords)
    yield from _reference(turn)
    yield from _contradictions(turn)


def _options(keyword: Keyword) -> tuple[str | NumberKeyword | PatternKeyword, ...]:
    return keyword.options if isinstance(keyword, Alternatives) else (keyword,)


def _check_one(keyword: Keyword, vocabulary: Vocabulary) -> Iterator[_Raw]:
    for option in _options(keyword):
        if isinstance(option, str):
            yield from _check_text(option, vocabulary)
        elif isinstance(option, PatternKeyword) and _said((option,), " "):
            yield (
                "pattern-matches-anything",
                f"the regular expression {quoted(option)} matches even an empty text",
            )


def _check_text(text: str, vocabulary: Vocabulary) -> Iterator[_Raw]:
    bare = text.strip()
    lowered = bare.lower()
    if bare != text:
        shown = one_line(text.replace(" ", "␣"), 60)
        yield (
            "keyword-spaces",
            f"the keyword “{shown}” begins or ends with a space, which the reply must then contain",
        )
    if len(bare) == 1:
        yield (
            "one-letter",
            f"the keyword {quoted(bare)} is a single character, which almost every reply contains",
        )
    elif lowered in COMMON_WORDS:
        yield "common-word", f"the keyword {quoted(bare)} is a common word, which almost every reply contains"
    elif lowered in GENERIC_TERMS:
        yield (
            "generic-term",
            f"the keyword {quoted(bare)} is a generic term, which a reply without the answer may contain",
        )
    elif bare.isascii() and bare.isdigit() and len(bare) <= 2:
        yield (
            "short-number",
            f"the number {quoted(bare)} is also found inside longer numbers, such as {bare}0 or 20{bare}",
            bare,
        )
    elif bare.isalpha() and len(bare) <= _SHORT_LETTERS:
        inside = vocabulary.inside(lowered)
        if inside:
            yield (
                "inside-words",
                f"the keyword {quoted(bare)} is also found inside other words, such as {', '.join(inside)}",
                bare,
            )
    if len(bare.split()) > _LONG_WORDS or len(bare) > _LONG_CHARACTERS:
        yield (
            "long-keyword",
            f"the keyword {quoted(bare)} is a sentence, which a right answer in other words does not contain",
        )


def _echoes(turn: Question) -> Iterator[_Raw]:
    echoed = _said(turn.expected_keywords, turn.question)
    if not echoed:
        return
    names = ", ".join(quoted(keyword) for keyword in echoed)
    one = len(echoed) == 1
    stand = f"the keyword {names} already stands" if one else f"the keywords {names} already stand"
    everything = len(echoed) == len(turn.expected_keywords)
    earned = "every keyword" if everything else "it" if one else "them"
    yield "echo", f"{stand} in the question: repeating the question earns {earned} for free"


def _repeats(keywords: Sequence[Keyword]) -> Iterator[_Raw]:
    seen: set[str] = set()
    for keyword in keywords:
        name = describe_keyword(keyword).strip().lower()
        if name in seen:
            yield (
                "repeated-keyword",
                f"the keyword {quoted(keyword)} is listed more than once and counts each time",
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
                f"the keyword {quoted(text)} is part of {quoted(longer)}: both are found or missed together",
            )


def _reference(turn: Question) -> Iterator[_Raw]:
    answer = turn.reference_answer
    if not answer:
        return
    for keyword in _said(turn.expected_keywords, answer, said=False):
        yield (
            "not-in-reference",
            f"the keyword {quoted(keyword)} is not in the question's own reference answer",
        )
    for keyword in _said(turn.forbidden_keywords, answer):
        yield (
            "forbidden-in-reference",
            f"the forbidden keyword {quoted(keyword)} is in the question's own reference answer",
        )


def _contradictions(turn: Question) -> Iterator[_Raw]:
    if not turn.forbidden_keywords:
        return
    for expected in turn.expected_keywords:
        texts = [option for option in _options(expected) if isinstance(option, str)]
        if not texts or len(texts) < len(_options(expected)):
            continue
        for forbidden in turn.forbidden_keywords:
            hits = [text for text in texts if _said((forbidden,), text)]
            if len(hits) == len(texts):
                yield (
                    "forbidden-expected",
                    f"the keyword {quoted(expected)} is expected, but it contains the forbidden {quoted(forbidden)}",
                )
            elif hits:
                yield (
                    "forbidden-alternative",
                    f"the alternative {quoted(hits[0])} contains the forbidden keyword {quoted(forbidden)}",
                )
    for forbidden in _said(turn.forbidden_keywords, turn.question):
        yield (
            "forbidden-in-question",
            f"the forbidden keyword {quoted(forbidden)} stands in the question: a reply that quotes the question fails",
        )


def _said(keywords: Sequence[Keyword], text: str, *, said: bool = True) -> list[Keyword]:
    """The keywords that a text contains, or with `said` false those that it does not."""
    matches = find_keywords(tuple(keywords), text)
    return [keyword for keyword, match in zip(keywords, matches, strict=True) if match.found is said]
