"""Finding: something in a golden set that is wrong or measures less than it seems, where it stands and what to do."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal, get_args

import msgspec

from answerkey.match.keywords import find_keywords
from answerkey.model.question import UNCATEGORISED, Question, QuestionSet, question_id
from answerkey.text.normalise import (
    Alternatives,
    Keyword,
    NumberKeyword,
    PatternKeyword,
    describe_keyword,
    one_line,
)

# The worst first. An error makes a question unfair or meaningless, a warning makes it weaker, info is worth a look.
Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

_NO_REPLY_FITS = "remove one of the two: no reply can satisfy both"
_AS_A_WORD = 'write {{"regex": "\\\\b{keyword}\\\\b"}}'
# Kind of finding → how bad it is, and what to change.
_RULES: dict[str, tuple[Severity, str]] = {
    "category-typo": ("warning", "use one spelling, if they are the same"),
    "common-word": ("warning", "use a specific value or a key concept instead"),
    "contained-keyword": ("info", "keep the longer one, or write them as a list of alternatives"),
    "duplicate-question": ("warning", "remove one, or use --repeat to ask every question several times"),
    "echo": ("warning", "use what only the answer contains instead"),
    "forbidden-alternative": ("warning", "remove the alternative or the forbidden keyword"),
    "forbidden-expected": ("error", _NO_REPLY_FITS),
    "forbidden-in-question": ("info", "make the forbidden keyword more specific"),
    "forbidden-in-reference": ("error", "remove it from one of them"),
    "forbidden-tool-expected": ("error", _NO_REPLY_FITS),
    "generic-term": ("warning", "use what is specific to the answer, for example a name or an amount"),
    "inside-words": ("warning", f"{_AS_A_WORD} or use --match smart, which respects words"),
    "keyword-spaces": ("warning", "remove the spaces"),
    "lone-tool": ("info", "check its name, or add questions that need it"),
    "long-keyword": ("warning", "split it into the facts that matter, or move it to reference_answer"),
    "no-expectations": ("warning", "add expected_keywords or expected_tools"),
    "no-id": ("info", "give it a short, stable id"),
    "not-in-reference": (
        "warning",
        "correct one of them: a reply that is the reference answer would lose points",
    ),
    "one-letter": ("warning", "use a longer and more specific value"),
    "pattern-matches-anything": ("error", "make it require something, or remove it"),
    "repeated-keyword": ("warning", "keep one"),
    "rubric-needs-judge": ("info", "run it with --judge MODEL; without one, its checks are unscored"),
    "short-number": ("warning", f"{_AS_A_WORD}, or add what it counts, as in “{{keyword}} units”"),
    "thin-category": (
        "warning",
        "add questions until it has at least {least}, or merge it with another category",
    ),
    "tool-typo": ("warning", "correct the name, if it is a slip: names compare exactly"),
    "uncategorised": ("info", "give them one: the report shows scores by category"),
    "unknown-field": ("info", "nothing, if they are notes; else give them a name that is known"),
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of `answerkey lint`."""

    # Stable name of the kind of finding.
    code: str
    severity: Severity
    # The line of the question in its file; None where the format has no lines.
    line: int | None
    # The question's id.
    id: str
    message: str
    # What to change.
    remedy: str


def finding(question: Question, code: str, message: str, **named: Any) -> Finding:
    """A finding on one question; `named` is what its remedy speaks of."""
    severity, remedy = _RULES[code]
    return Finding(
        code=code,
        severity=severity,
        line=question.line,
        id=question.id,
        message=message,
        remedy=remedy.format(**named),
    )


def quoted(part: Keyword) -> str:
    """A keyword or a name as findings show it."""
    return f"“{one_line(part if isinstance(part, str) else describe_keyword(part), 60)}”"


def worst_severity(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among findings; None without any."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), None)


# Keywords: the guidelines of the scoring standard, and expectations that contradict each other.


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


# `lint`: what is wrong with a set as a whole, as mistyped tools, thin categories, questions asked twice, and all findings.


# Fewer questions than this say nothing about a category.
THIN = 3
# Names as alike as this differ by a slip of the finger.
_ALIKE = 86
# A name that more questions use is no slip.
_RARE = 2
# In a smaller set, a tool that one question uses is nothing to wonder about.
_SET_WITH_HABITS = 6


def check_set(questions: QuestionSet) -> Iterator[Finding]:
    """Check what only shows across questions."""
    yield from _duplicates(questions)
    yield from _tools(questions)
    yield from _categories(questions)
    if questions.unknown_fields:
        first = next(q for q in questions if questions.unknown_fields[0] in q.metadata)
        names = ", ".join(map(quoted, questions.unknown_fields))
        yield finding(first, "unknown-field", f"fields that are kept as notes and expect nothing: {names}")
    for question in questions:
        yield from _expectations(question)


def _duplicates(questions: QuestionSet) -> Iterator[Finding]:
    first: dict[tuple[object, ...], Question] = {}
    for question in questions:
        asked = tuple(re.sub(r"[\W_]+", " ", turn.question.casefold()).strip() for turn in question.asks)
        earlier = first.setdefault((asked, question.context, question.persona), question)
        if earlier is not question:
            where = f" on line {earlier.line}" if earlier.line else ""
            yield finding(
                question,
                "duplicate-question",
                f"asks the same as {quoted(earlier.id)}{where}, which then counts twice",
            )


def _tools(questions: QuestionSet) -> Iterator[Finding]:
    users: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        for name in {tool.name for turn in question.asks for tool in turn.expected_tools}:
            users[name].append(question)
        for number, turn in enumerate(question.asks, start=1):
            where = f"turn {number}: " if question.turns else ""
            expected = {tool.name for tool in turn.expected_tools}
            for name in sorted(expected & set(turn.forbidden_tools)):
                yield finding(
                    question,
                    "forbidden-tool-expected",
                    f"{where}the tool {quoted(name)} is both expected and forbidden",
                )
    names = _Names(users)
    for name, asking in users.items():
        close = names.meant(name)
        if close is not None:
            for question in asking:
                yield finding(
                    question,
                    "tool-typo",
                    f"the tool {quoted(name)} looks like {quoted(close)}, which {_others(len(users[close]))}",
                )
        elif len(asking) == 1 and len(questions) >= _SET_WITH_HABITS:
            yield finding(asking[0], "lone-tool", f"no other question expects the tool {quoted(name)}")
    for question in questions:
        forbidden = {name for turn in question.asks for name in turn.forbidden_tools}
        for name in sorted(forbidden - set(users)):
            close = names.meant(name)
            if close is not None:
                yield finding(
                    question,
                    "tool-typo",
                    f"the forbidden tool {quoted(name)} looks like {quoted(close)}, which other questions expect",
                )


def _others(number: int) -> str:
    return "another question expects" if number == 1 else f"{number} other questions expect"


class _Names:
    """Names that are in use, and which of them another name may be a slip for."""

    def __init__(self, uses: Mapping[str, Sequence[object]]) -> None:
        self._uses = uses
        self._names = list(uses)

    def meant(self, name: str) -> str | None:
        """The name that this one is probably meant to be; None where it seems to be what it says."""
        from rapidfuzz import fuzz, process

        used = len(self._uses.get(name, ()))
        if used > _RARE:
            return None
        close = process.extract(
            name, self._names, scorer=fuzz.ratio, processor=_lower, score_cutoff=_ALIKE, limit=5
        )
        for other, _, _ in close:
            # Names that differ in their numbers (v1 and v2) are different things.
            distinct = _numbers(other) != _numbers(name)
            if other != name and not distinct and (used, name) < (len(self._uses[other]), other):
                return str(other)
        return None


def _lower(name: str) -> str:
    """As names are compared: without the signs and capitals that styles of writing differ in."""
    return re.sub(r"[\W_]+", "", name).casefold()


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+", name)


def _categories(questions: QuestionSet) -> Iterator[Finding]:
    members: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        members[question.category].append(question)
    if list(members) == [UNCATEGORISED]:
        return
    names = _Names(members)
    for name, inside in members.items():
        if name == UNCATEGORISED:
            yield finding(
                inside[0],
                "uncategorised",
                f"{len(inside)} of {len(questions)} questions have no category, this one first",
            )
            continue
        close = names.meant(name)
        if close is not None:
            yield finding(
                inside[0], "category-typo", f"the category {quoted(name)} looks like {quoted(close)}"
            )
        elif len(inside) < THIN:
            many = "1 question" if len(inside) == 1 else f"{len(inside)} questions"
            yield finding(
                inside[0],
                "thin-category",
                f"the category {quoted(name)} has only {many}: its score is mostly chance",
                least=THIN,
            )


def _expectations(question: Question) -> Iterator[Finding]:
    for number, turn in enumerate(question.asks, start=1):
        where = f"turn {number} " if question.turns else ""
        if any(check.kind == "rubric" for check in turn.checks):
            yield finding(
                question,
                "rubric-needs-judge",
                f"{where}has a check with a rubric, which only a judge can decide",
            )
        if turn.expects_nothing:
            fields = ("relevant_documents", "checks")
            unscored = [field for field in fields if getattr(turn, field)]
            only = f" ({' and '.join(unscored)} alone do not change the score)" if unscored else ""
            if turn.checks:
                only += "; checks do where [scoring.weights] gives them a weight"
            yield finding(
                question,
                "no-expectations",
                f"{where}expects nothing: any reply that is not an error scores 1.0{only}",
            )
    if question.id == question_id(question.question, [turn.question for turn in question.turns]):
        yield finding(
            question,
            "no-id",
            "has no id of its own: correcting its wording will make it another question to `compare`",
        )


def lint_questions(questions: QuestionSet) -> list[Finding]:
    """All findings, in the order of the file, the worst first for each question."""
    vocabulary = Vocabulary(questions)
    findings = [finding for question in questions for finding in check_keywords(question, vocabulary)]
    findings.extend(check_set(questions))
    place = {question.id: index for index, question in enumerate(questions)}
    findings.sort(key=lambda finding: (place.get(finding.id or "", -1), SEVERITIES.index(finding.severity)))
    return findings
