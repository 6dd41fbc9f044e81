"""What reports show: the worst first, means over trials, and as much as was asked for."""

import io
from collections.abc import Callable

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import Run
from answerkey.model.scorecard import Score, Scorecard, Trial, letter_grade
from answerkey.report.documents import markdown_report, write_html
from answerkey.report.terminal import print_report
from answerkey.report.view import build_view, failures_of, only_failures, story_sentences
from answerkey.report.wording import milliseconds, passed_texts, percent, points, score_percent, score_text


def result(identity: str, score: float | None, trial: int = 1) -> Trial:
    return Trial(
        question=Question(id=identity, question=f"{identity}?"),
        number=trial,
        replies=(Reply(text="x"),),
        scorecard=Scorecard(
            components={"response_quality": Score("response_quality", score, "why", 1.0)},
            total=score,
            grade=None if score is None else letter_grade(score),
            passed=score is not None and score >= 0.7,
        ),
    )


def test_the_worst_come_first_and_the_unscored_before_them(run_of: Callable[..., Run]) -> None:
    scores = {"a": 0.9, "b": 0.2, "c": 1.0, "d": None, "e": 0.2, "f": 0.5}
    run = run_of([result(name, score) for name, score in scores.items()])
    view = build_view(run, worst=3, rows=4)
    assert [question.id for question in view.worst] == ["d", "b", "e"]
    assert (view.imperfect, view.failed, view.total) == (5, 4, 6)
    assert [question.id for question in view.rows] == ["d", "b", "e", "f"]
    assert [question.id for question in build_view(run, rows=6).rows] == ["d", "b", "e", "f", "a", "c"]
    assert [question.id for question in failures_of(run)] == ["b", "d", "e", "f"]
    assert [entry.question.id for entry in only_failures(run).results] == ["b", "d", "e", "f"]


def test_a_question_is_the_mean_of_its_trials(run_of: Callable[..., Run]) -> None:
    run = run_of([result("a", 1.0, 1), result("a", 0.0, 2), result("a", 1.0, 3)], repeat=3)
    (question,) = build_view(run, rows=5).rows
    assert question.score is not None
    assert (score_text(question.score), question.trials, question.trials_passed) == ("0.666", 3, 2)
    assert question.details[0].score == 0.0
    assert "3 times each" in story_sentences(build_view(run))[0]


def test_a_run_without_results(run_of: Callable[..., Run]) -> None:
    view = build_view(run_of([]), rows=5)
    assert (view.rows, view.worst) == ((), ())
    assert story_sentences(view)[0].endswith("nothing could be scored.")


def test_scores_are_never_rounded_up_into_a_better_grade() -> None:
    assert score_text(0.899999) == "0.899"
    assert score_percent(0.899999) == "89.9%"
    assert score_text(0.4 + 0.3 + 0.2) == "0.900"
    assert score_text(0.92) == "0.920"
    assert score_percent(1.0) == "100%"
    assert percent(0.9999999) != "100%"
    assert percent(2 / 3) == "66.7%"
    assert score_text(None) == "–"


def test_points_and_times() -> None:
    assert points(0.08) == "(−0.08)"
    assert points(0.0031) == "(−0.003)"
    assert points(None) == ""
    assert [milliseconds(value) for value in (0.5, 25, 1234, 61_000, 180_000)] == [
        "0.5 ms",
        "25 ms",
        "1.23 s",
        "61.0 s",
        "3.0 min",
    ]


def test_a_key_that_expects_nothing_is_not_praised(run_of: Callable[..., Run]) -> None:
    run = run_of([result(f"q{number}", 1.0) for number in range(15)])
    assert (run.summary.grade, run.summary.expecting_nothing) == ("A", 15)
    words = "but 15 of 15 questions expect nothing of the text"
    shown = io.StringIO()
    print_report(run, file=shown)
    assert words in shown.getvalue()
    assert "not measured" in shown.getvalue()
    for text in (shown.getvalue(), markdown_report(run)):
        assert "xcellent" not in text
    assert words in markdown_report(run).splitlines()[0]
    page = io.BytesIO()
    write_html(run, page)
    assert f"grade A, {words}" in page.getvalue().decode()
    assert "no question expects anything" in page.getvalue().decode()


def test_the_pass_rate_is_of_the_scored_questions(run_of: Callable[..., Run]) -> None:
    trials = [result(f"q{number}", 1.0) for number in range(3)]
    run = run_of([*trials, result("q3", 0.2), result("q4", None), result("q5", None)])
    (words,) = passed_texts(run.summary)
    assert words.startswith("3 of 4 scored questions passed (75%")
    assert words.endswith("; 2 of 6 questions not scored")
    assert "3 questions passed (scored 70% or more) and 1 failed; 2 were not scored." in story_sentences(
        build_view(run)
    )
