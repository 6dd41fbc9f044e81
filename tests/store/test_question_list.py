import pytest
from msgspec.structs import replace

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Failure, Reply
from answerkey.store import open_store
from answerkey.store.questions import QuestionFilter, QuestionTable, find_reply_key, question_history

from .filling import add_run, golden, good_reply


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        yield opened


def ids(page):
    return [row.id for row in page[0]]


def test_the_worst_questions_come_first_and_the_total_counts_all(store):
    info = add_run(store, "r1", questions=golden(9))
    rows, total = QuestionTable(store, info).page(QuestionFilter(), limit=4)
    assert total == 9
    # A timeout scores 0.0 (no tool, no keyword, an error); without tool and one keyword it is 0.4.
    assert [(row.id, row.score) for row in rows] == [("q2", 0.0), ("q5", 0.0), ("q8", 0.0), ("q1", 0.4)]
    assert [row.grade for row in rows] == ["F", "F", "F", "F"]
    assert rows[0].error == "timeout"


def test_a_row_says_that_its_question_is_critical_and_has_the_tools_of_all_trials(store):
    [plain, critical] = golden(2)
    questions = QuestionSet(name="golden", questions=(plain, replace(critical, severity="critical")))
    info = add_run(store, "r1", questions=questions, repeat=2, reply=tool_in_second_trial)
    rows, _ = QuestionTable(store, info).page(QuestionFilter(sort="position"))
    assert [row.critical for row in rows] == [False, True]
    assert [row.tools for row in rows] == [("query_database",)] * 2


def tool_in_second_trial(question: Question, trial: int) -> Reply:
    reply = good_reply(question, trial)
    return reply if trial == 2 else replace(reply, tool_calls=())


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (QuestionFilter(category="property"), ["q0", "q3"]),
        (QuestionFilter(grade="A"), ["q0", "q3"]),
        (QuestionFilter(result="failed"), ["q2", "q5", "q1", "q4"]),
        (QuestionFilter(result="passed"), ["q0", "q3"]),
        (QuestionFilter(result="error"), ["q2", "q5"]),
        (QuestionFilter(result="lost"), ["q2", "q5", "q1", "q4"]),
        (QuestionFilter(error="timeout"), ["q2", "q5"]),
        (QuestionFilter(tool="query_database"), ["q0", "q3"]),
        (QuestionFilter(tool="query"), []),
        (QuestionFilter(text="FACT4"), ["q4"]),
        (QuestionFilter(text="%"), []),
        (QuestionFilter(persona="owner"), ["q2", "q4", "q0"]),
        (QuestionFilter(tag="odd", sort="position"), ["q1", "q3", "q5"]),
        (QuestionFilter(tag="od"), []),
        (QuestionFilter(range=("score:0.3..0.5",)), ["q1", "q4"]),
        (QuestionFilter(measure="score", low=0.3, high=0.5), ["q1", "q4"]),
        (QuestionFilter(range=("score:..0.9", "response_quality:0.5..")), ["q1", "q4"]),
        (QuestionFilter(sort="-response_quality"), ["q0", "q3", "q1", "q4", "q2", "q5"]),
        (QuestionFilter(sort="tool_usage", category="tax"), ["q1", "q4"]),
        (QuestionFilter(sort="-id"), ["q5", "q4", "q3", "q2", "q1", "q0"]),
        (QuestionFilter(sort="category"), ["q2", "q5", "q0", "q3", "q1", "q4"]),
        (QuestionFilter(sort="-spread"), ["q0", "q1", "q2", "q3", "q4", "q5"]),
        (QuestionFilter(sort="position"), ["q0", "q1", "q2", "q3", "q4", "q5"]),
        (QuestionFilter(sort="-latency_ms"), ["q2", "q5", "q1", "q4", "q0", "q3"]),
        (QuestionFilter(sort="-score", category="tax"), ["q1", "q4"]),
    ],
)
@pytest.mark.parametrize("repeat", [1, 2])
def test_filters_and_orders(store, wanted, expected, repeat):
    questions = QuestionSet(
        name="golden",
        questions=tuple(
            replace(question, persona=("owner", "tenant")[place % 2], tags=("odd",) * (place % 2))
            for place, question in enumerate(golden())
        ),
    )
    info = add_run(store, "r1", questions=questions, repeat=repeat)
    listed = QuestionTable(store, info)
    assert ids(listed.page(wanted)) == expected
    assert [row.id for row in listed.every(wanted)] == expected


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (QuestionFilter(sort="sideways"), "no measure 'sideways'"),
        (QuestionFilter(range=("score",)), "write a name and two numbers"),
        (QuestionFilter(range=("score:a..b",)), "write a name and two numbers"),
        (QuestionFilter(range=("category:1..2",)), "only numbers have ranges"),
    ],
)
def test_unknown_sort_and_range_columns_are_refused(store, wanted, message):
    with pytest.raises(UsageError, match=message):
        QuestionTable(store, add_run(store, "r1")).page(wanted)


def test_a_question_asked_several_times_is_one_row_with_the_mean_of_its_trials(store):
    def flaky(question, trial):
        reply = good_reply(question, trial)
        return reply if trial == 1 else type(reply)(text="nothing")

    info = add_run(store, "r1", flaky, repeat=2)
    rows, total = QuestionTable(store, info).page(QuestionFilter(sort="position"))
    assert total == 6
    assert (rows[0].trials, rows[0].trials_passed, rows[0].score) == (2, 1, pytest.approx(0.6))
    # The row's reasons are those of the worst trial.
    assert rows[0].scorecard.total == pytest.approx(0.2)


def test_distribution_counts_questions_by_tenths_of_the_score(store):
    info = add_run(store, "r1")
    assert QuestionTable(store, info).distribution() == [2, 0, 0, 0, 2, 0, 0, 0, 0, 2]


def test_history_is_the_same_question_over_runs(store):
    add_run(store, "old", day=0)
    add_run(store, "new", good_reply, day=1)
    points = question_history(store, "q1")
    assert [(point.run_id, point.score, point.passed) for point in points] == [
        ("new", 1.0, True),
        ("old", 0.4, False),
    ]


def test_an_unknown_question_is_named(store):
    info = add_run(store, "r1")
    with pytest.raises(UnknownNameError, match="no scored question 'nope'"):
        store.results_of(info, "nope")
    with pytest.raises(UnknownNameError, match="in trial 7"):
        find_reply_key(store, info, "q1", 7)


def test_a_question_is_found_by_one_of_its_trials_and_keeps_the_figures_of_all(store):
    def first_fails(question, trial):
        if trial == 1:
            return Reply(failure=Failure("timeout", "no reply in 60 s"))
        return good_reply(question, trial)

    info = add_run(store, "moody", first_fails, questions=golden(3), repeat=2)
    for wanted in (
        QuestionFilter(error="timeout"),
        QuestionFilter(text="montrose"),
        QuestionFilter(tool="query_database"),
    ):
        rows, total = QuestionTable(store, info).page(wanted)
        assert total == 3
        assert [(row.score, row.trials, row.trials_passed) for row in rows] == [(0.5, 2, 1)] * 3
