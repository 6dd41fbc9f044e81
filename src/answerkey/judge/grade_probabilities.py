"""Grades weighed by probability: how probable a judge found each grade of the scale where it wrote one.

The probabilities are those of the tokens at the grade's place in the verdict, so a grade must be told by its first
character. What is kept of an answer is its text and, by criterion, the probabilities of the grades.
"""

import json
import re
from collections.abc import Sequence
from itertools import accumulate
from math import fsum

import msgspec

from answerkey.errors import ConfigError
from answerkey.judge.client import Completion
from answerkey.judge.rubric import Rubric
from answerkey.judge.verdict import Graded, UnjudgedError, Verdict, json_body, parse_verdict
from answerkey.providers.model_api import SaidToken

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
# A token may begin before its grade: with a space, or with what ends the name.
_GRADE = re.compile(r'[\s":]*(-?\d*)')


class _Kept(msgspec.Struct, frozen=True):
    """An answer as it is kept."""

    text: str
    # Criterion → grade → its probability among the grades; a criterion is missing where none were told.
    probabilities: dict[str, dict[int, float]] = {}


def is_told_by_first_token(rubric: Rubric) -> bool:
    """Whether each grade of the scale begins with another character."""
    grades = range(rubric.lowest, rubric.top + 1)
    return len({str(grade)[0] for grade in grades}) == len(grades)


def check_scale(rubric: Rubric) -> None:
    """Refuse a scale whose grades begin alike, as 1 and 10 do."""
    if not is_told_by_first_token(rubric):
        raise ConfigError(
            f"[judge] probabilities: grades from {rubric.lowest} to {rubric.top} (rubric {rubric.name!r}) are not told "
            "apart by their first digit; use a scale within 0 to 9, or leave probabilities off"
        )


def keep_with_probabilities(completion: Completion, rubric: Rubric) -> str:
    """What is kept of an answer; raises UnjudgedError if it is no verdict."""
    text = completion.text
    verdict = parse_verdict(text, rubric)
    ends = list(accumulate(len(token.said) for token in completion.tokens))
    # What was thought before, or a mark at the end, may be among the tokens and not in the text.
    start = b"".join(token.said for token in completion.tokens).rfind(_octets(text)) if ends else -1
    found = {}
    for name, place in (_grade_places(text) if start >= 0 else {}).items():
        octet = start + len(_octets(text[:place]))
        token = completion.tokens[next(number for number, end in enumerate(ends) if octet < end)]
        probabilities = _of_grades(token, range(rubric.lowest, rubric.top + 1))
        if name in verdict and verdict[name].score in probabilities:
            found[name] = probabilities
    return msgspec.json.encode(_Kept(text, found)).decode()


def read_with_probabilities(kept: str, rubric: Rubric) -> Verdict:
    """The verdict in what was kept, as strict as any, with each grade's probabilities."""
    try:
        answer = msgspec.json.decode(kept, type=_Kept)
    except msgspec.DecodeError as error:
        raise UnjudgedError(f"what was kept of the judge's answer cannot be read: {error}") from None
    return {
        name: Graded(graded.score, graded.reason, answer.probabilities.get(name))
        for name, graded in parse_verdict(answer.text, rubric).items()
    }


def _grade_places(text: str) -> dict[str, int]:
    """Criterion → where its grade begins in a text that is a verdict."""
    body = json_body(text)
    offset = text.rfind(body)
    places: dict[str, int] = {}
    # The name that was met last in each object that is open.
    names: list[str] = []
    before = ""
    for lexeme in _LEXEME.finditer(body):
        found = lexeme[0]
        if found in ("{", "["):
            names.append("")
        elif found in ("}", "]"):
            names.pop()
        elif found == ":":
            names[-1] = json.loads(before)
        elif before == ":" and names[1:] == ["score"]:
            places[names[0]] = offset + lexeme.start()
        before = found
    return places


def _of_grades(token: SaidToken, grades: Sequence[int]) -> dict[int, float]:
    """The probabilities of the grades among those of tokens, adding up to 1; the same grade may be told in two ways."""
    by_grade: dict[int, list[float]] = {}
    for said, probability in token.probabilities.items():
        match = _GRADE.match(said)
        digits = match[1] if match else ""
        grade = next((grade for grade in grades if digits and str(grade).startswith(digits)), None)
        if grade is not None:
            by_grade.setdefault(grade, []).append(probability)
    whole = fsum(fsum(told) for told in by_grade.values())
    if not whole:
        return {}
    return {grade: round(fsum(by_grade[grade]) / whole, 6) for grade in sorted(by_grade)}


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "replace")
