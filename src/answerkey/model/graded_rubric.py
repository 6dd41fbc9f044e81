"""What a judge is asked to grade: scales, examples, and the rubric that a golden case's check carries."""

from typing import Literal

import msgspec

# Grade → what it means, whole numbers; "pass/fail" is short for 0 and 1.
Scale = dict[str, str] | Literal["pass/fail"]
DEFAULT_SCALE = {1: "", 5: ""}
_PASS_FAIL = {0: "it fails", 1: "it passes"}
_WIDEST = 100


class GradedExample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply with the grades that it deserves, shown to the judge."""

    reply: str
    # Criterion → grade; of a check, which has one criterion, the grade itself.
    grades: dict[str, int] | int
    question: str = ""
    reference_answer: str = ""
    reason: str = ""


class CheckRubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a golden case asks a judge to look for."""

    question: str
    scale: Scale = {}
    examples: tuple[GradedExample, ...] = ()


def grades_of(scale: Scale) -> dict[int, str]:
    """The grades that a scale names, by number, from the least to the greatest; raises ValueError if it is none."""
    if scale == "pass/fail":
        return _PASS_FAIL
    assert not isinstance(scale, str)  # the literal above is the only one
    if not scale:
        return DEFAULT_SCALE
    try:
        numbers = sorted((int(grade), words) for grade, words in scale.items())
    except ValueError:
        strange = next(grade for grade in scale if not grade.lstrip("-").isdigit())
        raise ValueError(f"scale {strange!r}: grades are whole numbers") from None
    if len(numbers) < 2 or numbers[-1][0] - numbers[0][0] > _WIDEST:
        raise ValueError(f"scale: name at least the lowest and the highest grade, at most {_WIDEST} apart")
    return dict(numbers)


def read_check_rubric(expected: object) -> CheckRubric:
    """What a check of the kind `rubric` expects: text, or an object; raises ValueError with what is wrong with it."""
    if isinstance(expected, str):
        expected = {"question": expected}
    try:
        rubric = msgspec.convert(expected, CheckRubric)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace("`$.", "`")) from None
    if not rubric.question.strip():
        raise ValueError("must be text, what a judge should look for")
    grades = grades_of(rubric.scale)
    for example in rubric.examples:
        if not isinstance(example.grades, int) or not min(grades) <= example.grades <= max(grades):
            raise ValueError(f"an example's grades must be a number from {min(grades)} to {max(grades)}")
    return rubric
