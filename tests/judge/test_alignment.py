"""The alignment loop on the command line: labels, disagreements, an edited rubric, agreement on held-out labels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import answerkey
from answerkey.cli.main import cli
from answerkey.errors import AnswerkeyError, ConfigError, InputError, UsageError
from answerkey.judge.calibration import JudgedReplies, Labels, align, is_held_out
from answerkey.store import open_store

from .judging import ScriptedJudge

STRICT = """
[[criteria]]
name = "accuracy"
weight = 100
question = "Is it right by the reference answer, and not by how sure the reply sounds?"
"""


def bot(question: str) -> str:
    number = int(question.split()[-1].rstrip("?"))
    if number % 3 == 0:
        return f"It is in Montrose ({number})."
    return f"A perfect answer ({number})." if number % 3 == 1 else f"Unknown ({number})."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strict.toml").write_text(STRICT)
    rows = [{"id": f"q{n}", "reply": bot(f"{n}?"), "correct": n % 3 == 0} for n in range(90)]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def judged(scripted: ScriptedJudge, model: str | tuple[str, ...] = "gullible") -> None:
    questions = [
        {"id": f"q{n}", "question": f"Where is number {n}?", "reference_answer": "In Montrose."}
        for n in range(90)
    ]
    answerkey.evaluate(questions, bot, judge=scripted.settings(model), name="judged")


def run(*command: str) -> dict[str, Any]:
    ended = CliRunner().invoke(cli, ["judge", *command, "--json"])
    assert ended.exit_code == 0, ended.output or ended.exception
    return json.loads(ended.output)


def test_the_loop_from_disagreements_to_a_better_rubric(folder: Path, scripted: ScriptedJudge) -> None:
    judged(scripted)
    seen = run("align", "judged", "--labels", "labels.jsonl")
    assert seen["verdict"] is None
    # It passes the replies that boast; none of those that are held out is shown.
    assert {row["reply"][:16] for row in seen["disagreements"]} == {"A perfect answer"}
    replies = JudgedReplies({}, {}, 0.7)
    assert not any(is_held_out(replies, (row["id"], 1)) for row in seen["disagreements"])
    assert seen["disagreements"][0]["because"] == "accuracy: It is worth 5."
    assert seen["tuning"]["before"]["labelled"] + seen["held_out"]["before"]["labelled"] == 90

    calls = scripted.count
    found = run("align", "judged", "--labels", "labels.jsonl", "--judge-rubric", "strict.toml")
    assert scripted.count == calls + 90
    assert found["verdict"] == "better"
    assert found["held_out"]["before"] == seen["held_out"]["before"]
    assert found["held_out"]["after"]["share"] == 1.0
    assert found["held_out"]["difference"]["low"] > 0
    assert found["disagreements"] == []

    # Again: the same verdicts, from the cache, and a second version in the store.
    shown = CliRunner().invoke(
        cli, ["judge", "align", "judged", "--labels", "labels.jsonl", "--judge-rubric", "strict.toml"]
    )
    assert "on held-out labels: better +" in shown.output
    assert "answerkey rescore" in shown.output
    assert scripted.count == calls + 90
    with open_store(".answerkey/answerkey.db") as store:
        judge = store.find_run("judged").judge
    assert judge is not None
    assert len(judge.rubric_versions) == 2

    # Rescoring by the edited rubric keeps the history.
    ended = CliRunner().invoke(cli, ["rescore", "judged", "--judge-rubric", "strict.toml"])
    assert ended.exit_code == 0, ended.output or ended.exception
    rows = run("rubrics")
    assert [row["tried"] is None for row in rows] == [True, False, False]
    assert {row["hash"] for row in rows} == {found["edited"]["hash"]}
    lines = CliRunner().invoke(cli, ["judge", "rubrics"]).output.splitlines()
    assert len(lines) == 3
    assert "→ 100.0%" in lines[1]


def test_a_stored_rubric_is_written_and_graded_by_again(folder: Path, scripted: ScriptedJudge) -> None:
    judged(scripted)
    before = run("align", "judged", "--labels", "labels.jsonl")
    start = before["rubric"]["hash"][:8]
    written = CliRunner().invoke(cli, ["judge", "rubrics", start, "-o", "standard.json"])
    assert "use it with: --judge-rubric standard.json" in written.output
    calls = scripted.count
    again = run("align", "judged", "--labels", "labels.jsonl", "--judge-rubric", "standard.json")
    # The same rubric, so that its verdicts come from the cache.
    assert again["edited"]["hash"] == before["rubric"]["hash"]
    assert scripted.count == calls
    assert again["verdict"] == "no clear difference"


def test_disagreements_within_a_panel_are_listed(folder: Path, scripted: ScriptedJudge) -> None:
    judged(scripted, ("gullible", "good", "good2"))
    found = run("align", "judged", "--labels", "labels.jsonl")
    assert found["disagreements"] == []
    panel = found["panel_disagreements"]
    assert panel
    assert all(row["judges"] == {"gullible": 1.0, "good": 0.0, "good2": 0.0} for row in panel)
    text = CliRunner().invoke(cli, ["judge", "align", "judged", "--labels", "labels.jsonl"]).output
    assert f"Replies that the judges of the panel disagree on: {len(panel)}" in text


@pytest.mark.parametrize(
    ("labels", "rubric", "error", "line"),
    [
        ("", None, InputError, "labels.jsonl: contains no labels"),
        ('{"id": "q1", "correct": null}', None, InputError, "labels.jsonl: contains no labels"),
        ('{"id": "other", "correct": true}', None, InputError, "labels.jsonl:1: the run has no reply to"),
        (
            '{"id": "q1", "reply": "Else", "correct": true}',
            None,
            InputError,
            "is of other replies than this",
        ),
        (
            '{"id": "q1", "correct": true}\n{"id": "q1", "correct": false}',
            None,
            UsageError,
            "evenly split on all 1 labelled replies",
        ),
        ('{"id": "q1", "correct": true}', None, UsageError, "1 label is too few to hold some out"),
        (None, STRICT.replace("weight = 100", "weight = 9"), ConfigError, "the weights add up to 9"),
        (None, STRICT + "[scale]\n1 = 'bad'", ConfigError, "scale: name at least the lowest and the highest"),
        (None, STRICT + "[scale]", ConfigError, "scale: is empty"),
        (None, "task = 'Grade it.'", ConfigError, "'criteria' is missing"),
    ],
)
def test_bad_input_is_one_line(
    folder: Path,
    scripted: ScriptedJudge,
    labels: str | None,
    rubric: str | None,
    error: type[AnswerkeyError],
    line: str,
) -> None:
    judged(scripted)
    if labels is not None:
        (folder / "labels.jsonl").write_text(labels)
    command = ["judge", "align", "judged", "--labels", "labels.jsonl"]
    if rubric is not None:
        (folder / "edited.toml").write_text(rubric)
        command += ["--judge-rubric", "edited.toml"]
    ended = CliRunner().invoke(cli, command)
    assert isinstance(ended.exception, error), ended.output
    assert line in str(ended.exception)
    assert "\n" not in str(ended.exception)


def test_labels_stay_held_out_when_more_are_added_and_many_rubrics_are_warned_about() -> None:
    keys = [(f"q{n}", 1) for n in range(200)]
    replies = JudgedReplies(dict.fromkeys(keys, 1.0), {"q0": "tax", "q1": "tax"}, 0.7)
    held_out = {key for key in keys if is_held_out(replies, key)}
    assert 70 <= len(held_out) <= 130
    assert (keys[0] in held_out) == (keys[1] in held_out)
    labels = Labels(right=dict.fromkeys(keys[:60], True), source="test")
    found = align(replies, labels)
    assert found.held_out.before.labelled == len(held_out & set(keys[:60]))
    assert not found.warnings
    with pytest.raises(UsageError, match="no reply has both a label and a verdict"):
        align(replies, Labels(right={}))
