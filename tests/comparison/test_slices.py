"""Slices: silent where nothing is worse, and powerful enough to find what is."""

import numpy as np

from answerkey.comparison.columns import find_slices
from answerkey.model.question import ExpectedTool, Question

QUESTIONS = 150
TOOLS = ("query_database", "search_documents", "list_documents")


def questions(source: np.random.Generator) -> list[Question]:
    """Questions with six fields that have nothing to do with each other."""
    return [
        Question(
            id=f"q{number}",
            question=" ".join(["what"] * int(source.integers(4, 30))),
            category=f"category {number % 5}",
            persona=f"persona {number // 5 % 3}",
            tags=tuple(f"tag {tag}" for tag in range(4) if source.random() < 0.4),
            expected_tools=(ExpectedTool(TOOLS[source.integers(3)]),),
            metadata={"language": ["en", "nl"][source.integers(2)]},
        )
        for number in range(QUESTIONS)
    ]


def noise(source: np.random.Generator) -> "np.typing.NDArray[np.float64]":
    """Differences of two equal versions: one question in five changes, half of them up and half down."""
    changed = source.random(QUESTIONS) < 0.2
    return np.where(changed, source.choice([-0.4, -0.2, 0.2, 0.4], QUESTIONS), 0.0)


def test_nothing_is_reported_where_no_slice_is_worse() -> None:
    found = 0
    for seed in range(100):
        source = np.random.default_rng(seed)
        found += bool(find_slices(questions(source), noise(source)))
    assert found <= 5


def test_a_slice_of_30_questions_that_lost_20_points_is_found() -> None:
    found = 0
    for seed in range(40):
        source = np.random.default_rng(1000 + seed)
        values = noise(source)
        # Half of its questions lose 40 points.
        planted = np.arange(0, QUESTIONS, 5)
        values[planted] -= np.where(source.random(len(planted)) < 0.5, 0.4, 0.0)
        slices = find_slices(questions(source), values)
        found += bool(slices) and slices[0].where == {"category": "category 0"}
    assert found >= 0.8 * 40


def test_a_combination_of_two_fields_is_found_alone() -> None:
    source = np.random.default_rng(8)
    made, values = questions(source), noise(source)
    planted = [
        at for at, one in enumerate(made) if one.category == "category 1" and one.persona == "persona 2"
    ]
    assert len(planted) == 10
    values[planted] -= 0.6
    [one] = find_slices(made, values)
    assert one.where == {"category": "category 1", "persona": "persona 2"}
    assert one.questions == len(planted)
    assert one.difference < -0.4


def test_questions_of_one_group_count_once() -> None:
    made = [
        Question(
            id=f"q{number}",
            question="?",
            category="one" if number < 30 else "other",
            group="g" if number < 30 else None,
        )
        for number in range(100)
    ]
    values = np.where(np.arange(100) < 30, -0.5, 0.0)
    assert find_slices(made, values) == ()


def test_a_slice_is_found_once() -> None:
    """Removing one slice moves the mean of the others, which must not be named again with what is left."""
    categories = ("property", "tax", "documents")
    questions = [
        Question(id=f"q{n}", question=f"What is fact {n}?", category=categories[n % 3]) for n in range(60)
    ]
    values = np.array([(1.0, 0.4, 0.0)[n % 3] for n in range(60)])
    found = [tuple(one.where.items()) for one in find_slices(questions, values)]
    assert (("category", "documents"),) in found
    assert len(set(found)) == len(found)
