"""The headline: how many failed stands beside the grade, and praise only where nearly all passed."""

import pytest

import answerkey as ak
from answerkey.report.wording import grade_words


def _questions(number):
    return [
        {
            "id": str(n),
            "question": f"What is code {n}?",
            "expected_keywords": [{"text": _code(n), "must": True}],
        }
        for n in range(number)
    ]


def _code(number):
    return f"{7919 * (number + 3) % 9973 + 10_000}"


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (0, "Excellent response"),
        (1, "Excellent response; 1 of 15 questions failed"),
        (2, "but 2 of 15 questions failed"),
        (7, "but 7 of 15 questions failed"),
    ],
)
def test_failures_stand_beside_the_grade(failed, words, tmp_path):
    def answer(question):
        number = int(question.split()[3].rstrip("?"))
        return f"It is {_code(number)}." if number >= failed else "Hello, this is a friendly bot."

    run = ak.evaluate(_questions(15), answer, store=str(tmp_path / "s.db"))
    assert grade_words(run.summary) == words


def test_passing_questions_do_not_hide_failing_replies(command, write_rows, tmp_path):
    golden = _questions(5)
    good = [{**golden[n % 5], "reply": f"It is {_code(n % 5)}.", "trial": n} for n in range(100)]
    bad = [{**golden[n % 5], "reply": "Good morning.", "trial": 100 + n} for n in range(20)]
    write_rows("log.jsonl", *good, *bad)
    document = command("score", "log.jsonl", "--gate", "pass_rate >= 0.9", "--json").document
    [gate] = document["gates"]
    assert gate["passed"]
    assert "83.3% of replies pass: trial_pass_rate" in gate["reason"]
    shown = command("score", "log.jsonl").out
    assert "but 20 of 120 replies failed" in shown
    assert "Excellent" not in shown


def test_the_pass_count_comes_before_the_key(command):
    lines = command("run", "demo").out.splitlines()
    first = [
        next(index for index, line in enumerate(lines) if words in line)
        for words in ("passed (", "key strength", "knows no answer")
    ]
    assert first == sorted(first)
