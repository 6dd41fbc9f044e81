"""`lint`: what is wrong with a set as a whole, as mistyped tools, thin categories, questions asked twice, and all findings."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from answerkey.golden.findings import SEVERITIES, Finding, finding, quoted
from answerkey.golden.lint_keywords import Vocabulary, check_keywords
from answerkey.model.question import UNCATEGORISED, Question, QuestionSet, question_id

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
