import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

import answerkey
from answerkey.cli.main import cli
from answerkey.errors import AnswerkeyError, InputError, UsageError
from answerkey.judge.calibration import (
    Calibration,
    JudgedReplies,
    Labels,
    calibrate_judge,
    change_between,
    labels_from_file,
)
from answerkey.model.judgement import Feedback, ReplyKey
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.report.wording import judge_line
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback import FeedbackStore, new_id

from .judging import ScriptedJudge, judge_all


def labelled(both: int, lenient: int, harsh: int, neither: int, unlabelled: tuple[int, int]) -> tuple:
    """Values and labels with this confusion matrix, and so many unlabelled passes and fails."""
    values: dict[tuple[str, int], float | None] = {}
    right: dict[tuple[str, int], bool] = {}
    cells = [(True, True, both), (False, True, lenient), (True, False, harsh), (False, False, neither)]
    for is_right, passes, count in cells:
        for _ in range(count):
            key = (f"q{len(values)}", 1)
            values[key], right[key] = (0.9 if passes else 0.2), is_right
    for passes, count in ((True, unlabelled[0]), (False, unlabelled[1])):
        for _ in range(count):
            values[(f"q{len(values)}", 1)] = 0.7 if passes else 0.699
    return values, Labels(right=right, source="test")


def calibrate(values: dict, labels: Labels, *, pass_mark: float) -> Calibration:
    return calibrate_judge(JudgedReplies(values, {}, pass_mark), labels)


def test_the_numbers_of_a_lenient_judge() -> None:
    values, labels = labelled(40, 20, 2, 38, (600, 400))
    found = calibrate(values, labels, pass_mark=0.7)
    assert (found.labelled, found.unlabelled, found.unjudged) == (100, 1000, 0)
    assert found.agreement.value == 0.78
    assert found.sensitivity is not None
    assert found.specificity is not None
    assert found.sensitivity.value == pytest.approx(40 / 42)
    assert found.specificity.value == pytest.approx(38 / 58)
    assert found.bias == pytest.approx(0.18)
    # 20 that it passes and people call wrong come first: 0.9 is farther from wrong than 0.2 from right.
    assert [one.right for one in found.disagreements] == [False] * 20 + [True] * 2
    assert found.bias_p_value is not None
    assert found.bias_p_value < 0.001
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx(0.5738, abs=1e-3)
    # The judge passes 60% of all; people call 42% of the labelled right, and so do both corrections.
    assert found.judge_rate.value == pytest.approx(0.6)
    for corrected in (found.prediction_powered, found.rogan_gladen):
        assert corrected is not None
        assert corrected.value == pytest.approx(0.42, abs=0.001)
        assert corrected.interval.low < corrected.value < corrected.interval.high
        assert corrected.interval.high < found.judge_rate.value
    assert found.warnings == ()


def test_replies_that_were_not_judged_are_counted_apart() -> None:
    values, labels = labelled(20, 5, 5, 20, (10, 10))
    values[("q0", 1)] = None
    found = calibrate(values, labels, pass_mark=0.7)
    assert (found.labelled, found.unjudged) == (49, 1)


def test_a_judge_at_chance_is_called_one() -> None:
    values, labels = labelled(20, 20, 20, 20, (100, 100))
    found = calibrate(values, labels, pass_mark=0.7)
    assert found.kappa is not None
    assert found.kappa.value == 0.0
    assert found.rogan_gladen is None
    assert any("only by chance" in line for line in found.warnings)


def test_intervals_that_do_not_know_groups_say_so() -> None:
    values, labels = labelled(20, 5, 5, 20, (10, 10))
    alone = calibrate_judge(JudgedReplies(values, {}, 0.7), labels)
    grouped = calibrate_judge(JudgedReplies(values, {"q0": "tax", "q1": "tax"}, 0.7), labels)
    assert not any("too narrow" in line for line in alone.warnings)
    assert any("the other intervals are too narrow" in line for line in grouped.warnings)


def test_few_labels_say_so() -> None:
    values, labels = labelled(3, 0, 0, 3, (10, 10))
    assert "6 labels are too few" in calibrate(values, labels, pass_mark=0.7).warnings[0]
    with pytest.raises(UsageError, match="no reply has both"):
        calibrate(values, Labels(right={}), pass_mark=0.7)


def test_labels_are_read_in_the_usual_words(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "correct": True},
        {"id": "b", "verdict": "FAIL"},
        {"id": "c", "score": 0.69},
        {"id": "d", "trial": 2, "verdict": "pass"},
        {"id": "e", "label": "wrong"},
        *({"id": "f", "correct": verdict} for verdict in (True, True, False)),
        *({"id": "g", "correct": verdict} for verdict in (True, False)),
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    known = [(name, 1) for name in "abcefg"] + [("d", 1), ("d", 2)]
    found = labels_from_file(path, JudgedReplies(dict.fromkeys(known), {}, 0.7))
    assert found.right == {
        ("a", 1): True,
        ("b", 1): False,
        ("c", 1): False,
        ("d", 2): True,
        ("e", 1): False,
        ("f", 1): True,
    }
    assert found.split == 1


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"correct": True}, "labels.jsonl:1: has no 'id'"),
        ({"id": "zz", "correct": True}, "no reply to a question with id 'zz'"),
        ({"id": "a"}, "has no label; add one as 'correct', 'verdict' or 'score'"),
        ({"id": "a", "correct": "perhaps"}, "'correct' is 'perhaps'; write true or false"),
        ({"id": "a", "score": 4}, "'score' is '4'"),
        ({"id": "d", "correct": True}, "asked 'd' several times; add 'trial'"),
        ({"id": "d", "trial": 9, "correct": True}, "no trial 9 of 'd'"),
        ({"id": "d", "trial": "x", "correct": True}, "'trial' must be a whole number"),
    ],
)
def test_a_bad_label_names_its_line(tmp_path: Path, row: dict[str, object], line: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(InputError) as raised:
        labels_from_file(path, JudgedReplies(dict.fromkeys([("a", 1), ("d", 1), ("d", 2)]), {}, 0.7))
    assert line in str(raised.value)


def test_labels_of_other_replies_are_refused_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    keys = [(name, 1) for name in "abc"]
    replies = JudgedReplies(dict.fromkeys(keys), {}, 0.7, texts={key: f"Reply  to\n{key[0]}" for key in keys})
    rows = [{"id": name, "reply": f"Reply to {name}", "correct": True} for name in "abc"]
    path.write_text("\n".join(map(json.dumps, rows)))
    # White space may differ.
    assert labels_from_file(path, replies).without_text == 0
    path.write_text(
        "\n".join(map(json.dumps, [{**row, "reply": "Another reply"} for row in rows[:2]] + rows[2:]))
    )
    with pytest.raises(InputError, match=r"2 of 3 labels are of other replies .* \(first: a, trial 1\)"):
        labels_from_file(path, replies)
    path.write_text("\n".join(map(json.dumps, [{"id": "a", "correct": True}, *rows[1:]])))
    assert labels_from_file(path, replies).without_text == 1


@pytest.fixture
def judged_run(tmp_path: Path, scripted: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of 60 replies by a judge that takes confident nonsense for right."""
    monkeypatch.chdir(tmp_path)
    questions = [
        {"id": f"q{number}", "question": f"Where is number {number}?", "reference_answer": "In Montrose."}
        for number in range(60)
    ]

    def bot(question: str) -> str:
        number = int(question.split()[-1].rstrip("?"))
        if number % 3 == 0:
            return f"It is in Montrose ({number})."
        return f"A perfect answer ({number})." if number % 3 == 1 else f"Unknown ({number})."

    answerkey.evaluate(questions, bot, judge=scripted.settings("gullible"), name="judged")
    return tmp_path


def verdicts(count: int) -> list[dict[str, object]]:
    numbers = random.Random(4).sample(range(60), count)
    return [{"id": f"q{number}", "correct": number % 3 == 0} for number in numbers]


def test_calibrating_a_gullible_judge_on_the_command_line(judged_run: Path) -> None:
    (judged_run / "labels.jsonl").write_text("\n".join(map(json.dumps, verdicts(36))))
    ended = CliRunner().invoke(cli, ["judge", "calibrate", "judged", "--labels", "labels.jsonl", "--json"])
    assert ended.exit_code == 0, ended.output
    document = json.loads(ended.output)
    # It passes two thirds, and one third is right; the corrected rates say so.
    assert document["judge_rate"]["value"] == pytest.approx(2 / 3)
    assert document["sensitivity"]["value"] == 1.0
    for name in ("prediction_powered", "rogan_gladen"):
        interval = document[name]["interval"]
        assert interval["low"] <= 1 / 3 <= interval["high"]
    assert document["prediction_powered"]["interval"]["high"] < 2 / 3
    shown = CliRunner().invoke(cli, ["judge", "calibrate", "judged", "--labels", "labels.jsonl"])
    assert "the judge is lenient" in shown.output
    assert "corrected (PPI++)" in shown.output
    assert "gullible against people · judged" in shown.output
    assert "36 labels have no reply text" in shown.output
    # The run's record says so from now on.
    with open_store(".answerkey/answerkey.db") as store:
        judge = store.find_run("judged").judge
    assert judge is not None
    assert judge.calibration is not None
    assert (judge.calibration.labelled, judge.calibration.agreement) == (36, document["agreement"]["value"])
    assert judge_line(judge).endswith("of 36 labelled replies")


def test_feedback_in_the_store_calibrates_too(judged_run: Path) -> None:
    refused = CliRunner().invoke(cli, ["judge", "calibrate", "judged"])
    assert isinstance(refused.exception, AnswerkeyError)
    assert "has no feedback or reviews yet" in str(refused.exception)
    with open_store(".answerkey/answerkey.db") as store:
        info = store.find_run("judged")
        book = FeedbackStore(store)
        for result in store.results(info):
            number = int(result.question.id[1:])
            if number < 40:
                key = ReplyKey(info.id, result.question.ask_hash, result.number)
                value = float(number % 3 == 0)
                book.add(Feedback(id=new_id(), created_at=now(), value=value, source="review", reply=key))
    ended = CliRunner().invoke(cli, ["judge", "calibrate", "judged", "--json"])
    document = json.loads(ended.output)
    assert (document["labelled"], document["unlabelled"], document["source"]) == (40, 20, "feedback")
    assert document["confusion"] == {
        "true_positive": 14,
        "false_positive": 13,
        "false_negative": 0,
        "true_negative": 13,
    }


def test_a_run_without_a_judge_cannot_be_calibrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answerkey.evaluate([{"id": "a", "question": "What?"}], lambda _: "x", name="plain")
    ended = CliRunner().invoke(cli, ["judge", "calibrate", "plain"])
    assert isinstance(ended.exception, UsageError)
    assert "answerkey rescore RUN --judge MODEL" in str(ended.exception)


def test_a_random_sample_is_drawn_labelled_and_calibrates(judged_run: Path) -> None:
    drawn = CliRunner().invoke(cli, ["judge", "sample", "judged", "-n", "30", "-o", "small.jsonl"])
    assert drawn.exit_code == 0, drawn.output
    CliRunner().invoke(cli, ["judge", "sample", "judged", "-n", "40", "-o", "large.jsonl"])
    small, large = (
        [json.loads(line) for line in Path(name).read_text().splitlines()]
        for name in ("small.jsonl", "large.jsonl")
    )
    # A larger sample goes on where the smaller one ended; the judge's verdict is not shown.
    assert large[:30] == small
    assert set(small[0]) == {"id", "trial", "question", "reference_answer", "reply", "correct"}
    again = CliRunner().invoke(cli, ["judge", "sample", "judged", "-o", "small.jsonl"])
    assert "already exists" in str(again.exception)
    for row in large[:36]:
        row["correct"] = "Montrose" in row["reply"]
    Path("large.jsonl").write_text("\n".join(map(json.dumps, large)))
    command = ["judge", "calibrate", "judged", "--labels", "large.jsonl"]
    ended = CliRunner().invoke(cli, [*command, "--json", "--gate", "corrected.high < 0.6"])
    document = json.loads(ended.output)
    # Four are not labelled yet.
    assert (document["labelled"], document["unlabelled"]) == (36, 24)
    assert document["gates"][0]["passed"]
    mean = document["corrected_mean"]["interval"]
    assert mean["low"] <= 1 / 3 <= mean["high"] < document["judge_mean"]["value"]
    failed = CliRunner().invoke(cli, [*command, "--gate", "corrected.low >= 0.6"], standalone_mode=False)
    assert failed.return_value == 1
    assert "FAILED  corrected.low >= 0.6" in failed.output
    assert "± 5 points: label about" in failed.output or "is not possible with this run" in failed.output


def test_calibrating_in_python_corrects_the_change(
    tmp_path: Path, scripted: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    questions = [
        {"id": f"q{number}", "question": f"Where is number {number}?", "reference_answer": "In Montrose."}
        for number in range(60)
    ]
    # The judge takes both for equal: one answers, the other only boasts.
    judge = scripted.settings("gullible")
    boasting = answerkey.evaluate(questions, lambda q: f"A perfect answer: {q}", judge=judge)
    honest = answerkey.evaluate(questions, lambda q: f"It is in Montrose: {q}", judge=judge)
    wrong, right = ({f"q{number}": label for number in range(0, 60, 2)} for label in (False, True))
    found = answerkey.calibrate(honest, right, base=boasting, base_labels=wrong)
    assert found.change is not None
    assert found.change.rate is not None
    assert found.change.judge_rate == 0.0
    assert found.change.rate.value == pytest.approx(1.0)
    assert found.change.rate.interval.low > 0.5
    with pytest.raises(UsageError, match="labels of both runs"):
        answerkey.calibrate(honest, right, base=boasting)
    with pytest.raises(UsageError, match="no reply 'zz'"):
        answerkey.calibrate(honest, {"zz": True})


@pytest.mark.parametrize("confusion", ["95/90", "98/60", "70/60"])
def test_what_labels_correct_holds_the_truth_at_its_rate(scripted: ScriptedJudge, confusion: str) -> None:
    """The short version of `python tools/simulate --only loopback`: verdicts over HTTP, 400 draws of runs and labels."""
    chance = random.Random(3)
    luck = [chance.random() for _ in range(300)]
    right = {share: [one < share for one in luck] for share in (0.7, 0.8)}
    asked = [
        (
            Question(id=f"q{n}", question="Is it?"),
            Reply(text=f"{share} {n}: It is {'right' if ok else 'wrong'}."),
        )
        for share, found in right.items()
        for n, ok in enumerate(found)
    ]
    judged, _ = judge_all(scripted.settings(f"confused:{confusion}", claims=False), *asked)
    passes = [scores[0].value for scores in judged]
    versions = [(right[0.7], passes[:300]), (right[0.8], passes[300:])]
    truth = [sum(found) / 300 for found, _ in versions]
    held = [0, 0]
    for _ in range(400):
        drawn = []
        places = [chance.randrange(300) for _ in range(200)]
        for found, values in versions:
            keys = [(f"q{n}", 1) for n in range(200)]
            labelled = {keys[n]: found[places[n]] for n in chance.sample(range(200), 60)}
            labels = Labels(right=labelled, scores={key: float(ok) for key, ok in labelled.items()})
            known = {key: values[place] for key, place in zip(keys, places, strict=True)}
            drawn.append((JudgedReplies(known, {key[0]: key[0] for key in keys}, 0.7), labels))
        rate = calibrate_judge(*drawn[1]).prediction_powered
        change = change_between(drawn[0][0], drawn[1][0], (drawn[0][1], drawn[1][1])).rate
        assert rate is not None
        assert change is not None
        held[0] += rate.interval.low <= truth[1] <= rate.interval.high
        held[1] += change.interval.low <= truth[1] - truth[0] <= change.interval.high
    # 93 to 97% of 400, and what chance adds to that.
    assert all(0.92 * 400 <= times <= 0.98 * 400 for times in held), held


def test_a_judge_that_likes_length_is_told_apart_from_one_that_does_not() -> None:
    keys = [(f"q{n}", 1) for n in range(40)]
    lengths = {key: 50 + 25 * n for n, key in enumerate(keys)}
    labels = Labels(right=dict.fromkeys(keys, True), scores=dict.fromkeys(keys, 0.5))
    units = {key[0]: key[0] for key in keys}
    wordy = JudgedReplies({key: 0.3 + n / 100 for n, key in enumerate(keys)}, units, 0.7, lengths)
    fair = JudgedReplies({key: (n * 7 % 10) / 10 for n, key in enumerate(keys)}, units, 0.7, lengths)
    found, other = wordy.verbosity(labels), fair.verbosity(labels)
    assert found is not None
    assert other is not None
    assert found.value > 0.9
    assert other.interval is not None
    assert other.interval.low < 0 < other.interval.high
    on_one_line = JudgedReplies(
        {key: 0.5 + 0.5 * (n % 4 == 0) for n, key in enumerate(keys)},
        units,
        0.7,
        {key: 90 if n % 4 == 0 else 12 for n, key in enumerate(keys)},
    ).verbosity(labels)
    assert on_one_line is not None
    assert (on_one_line.value, on_one_line.interval) == (1.0, None)
