"""SQL and its values are built together; scores at a bound match in SQL as they do in Python."""

import pytest

from answerkey.model.scorecard import GRADE_BOUNDS, Scorecard, Trial, letter_grade, passes
from answerkey.store import open_store
from answerkey.store.database import Sql, all_of, any_of, in_list, sql
from answerkey.store.questions import QuestionFilter, QuestionTable
from answerkey.store.table_query import Range

from .filling import add_run, golden


def test_values_follow_the_order_of_the_placeholders():
    query = sql(
        "SELECT ? FROM t WHERE {first} AND {second} LIMIT ?",
        "one",
        4,
        second=sql("b = ?", 3),
        first=sql("a = ?", 2),
    )
    assert query == Sql("SELECT ? FROM t WHERE a = ? AND b = ? LIMIT ?", ("one", 2, 3, 4))


def test_placeholders_and_values_must_agree():
    with pytest.raises(ValueError, match="1 placeholders for 2 values"):
        sql("a = ?", 1, 2)


def test_conditions_are_kept_apart():
    either = any_of([sql("a = ?", 1), sql("b = ?", 2)])
    assert all_of([either, Sql("c")]) == Sql("((a = ?) OR (b = ?)) AND (c)", (1, 2))
    assert (all_of([]).text, any_of([]).text, in_list([]).text) == ("1 = 1", "1 = 0", "(NULL)")


def test_a_range_includes_its_ends():
    limit = Range.parse("score:0.3..0.7")
    assert [limit.contains(value) for value in (0.1 + 0.2, 0.7, 0.29, 0.71, None)] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("repeat", [1, 2])
def test_scores_at_a_bound_match_as_the_model_says(store_url, repeat):
    # Sums of floating-point numbers that end just below and just above a bound, and scores that really are below it.
    scores = [0.1 + 0.2 + 0.6, 0.8 - 1e-12, 0.7000000000000001, 0.6 - 1e-6, 0.69999, 0.9]
    with open_store(store_url) as store:
        info = add_run(store, "r1", asked=0, repeat=repeat, finish=False)
        for position, (question, score) in enumerate(zip(golden(), scores, strict=True)):
            card = Scorecard(
                components={}, total=score, grade=letter_grade(score), passed=passes(score, info.pass_mark)
            )
            trials = [Trial(question, number, position, (), card) for number in range(1, repeat + 1)]
            store.add(info, trials)
        table = QuestionTable(store, info)

        def matching(**wanted):
            return {row.position for row in table.page(QuestionFilter(**wanted))[0]}

        for letter in [*(letter for letter, _ in GRADE_BOUNDS), "F"]:
            expected = {place for place, score in enumerate(scores) if letter_grade(score) == letter}
            assert matching(grade=letter) == expected
        passed = {place for place, score in enumerate(scores) if passes(score, info.pass_mark)}
        assert matching(result="passed") == passed
        assert matching(result="failed") == {*range(len(scores))} - passed
