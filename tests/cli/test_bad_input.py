"""Bad input gets one clear line and its exit code, and nothing is written."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FINE = {"id": "a", "question": "Yes or no?", "expected_keywords": ["yes"]}
BOT = "def answer(question):\n    return {'answer': 'yes', 'tools_used': []}\n"


@pytest.fixture
def folder(tmp_path: Path, write_rows: Callable[..., Path]) -> Path:
    write_rows("fine.jsonl", FINE)
    write_rows("broken.jsonl", FINE, {"question": "b"}, '{"question": ', {"question": "d"}, {"question": "e"})
    write_rows("typed.jsonl", {"question": "x", "expected_tools": 5})
    (tmp_path / "bot.py").write_text(BOT)
    return tmp_path


CASES = [
    (["run", "missing.jsonl"], 2, "missing.jsonl: no such file"),
    (["run", "fin.jsonl"], 2, "fin.jsonl: no such file; did you mean 'fine.jsonl'?"),
    (["run", "broken.jsonl", "--target", "bot.py:answer"], 2, "broken.jsonl:3: not valid JSON"),
    (
        ["run", "typed.jsonl", "--target", "bot.py:answer"],
        2,
        "typed.jsonl:1: 'expected_tools' must be a list",
    ),
    (["run", "fine.jsonl", "--target", "nosuch"], 2, "nosuch"),
    (["run", "fine.jsonl", "--target", "bot.py:nosuch"], 2, "nosuch"),
    (["run", "fine.jsonl", "--target", "http://127.0.0.1:9/chat"], 3, "127.0.0.1:9"),
    (["run", "fine.jsonl", "--target", "bot.py:answer", "--gate", "skore >= 1"], 2, "skore"),
    (["run", "fine.jsonl", "--target", "bot.py:answer", "--gate", "score >= "], 2, "score >="),
    (
        ["run", "fine.jsonl", "--target", "bot.py:answer", "--repeat", "0"],
        2,
        "repeat = 0: must be at least 1",
    ),
    (["run", "fine.jsonl", "--target", "bot.py:answer", "--rate", "fast"], 2, "--rate 'fast'"),
    (["run", "fine.jsonl", "--target", "bot.py:answer", "--where", "tax"], 2, "field=value"),
    (["run", "fine.jsonl", "--target", "bot.py:answer", "--where", "category=tax"], 2, "no question matches"),
    (["run", "fine.jsonl", "--target", "bot.py:answer", "-o", "report.docx"], 2, ".html"),
    (["run", "fine.jsonl", "--target", "bot.py:answer", "-o", "none/report.html"], 2, "does not exist"),
    (["run", "fine.jsonl", "--match", "psychic"], 2, "--match"),
    (["score", "missing.jsonl"], 2, "missing.jsonl: no such file"),
    (["score", "typed.jsonl"], 2, "typed.jsonl:1: 'expected_tools' must be a list"),
    (["show", "latest"], 2, "answerkey run"),
    (["resume", "nosuch"], 2, "answerkey"),
    (["nosuch"], 2, "no command 'nosuch'"),
    (["runn"], 2, "did you mean 'run'"),
    (["run", "--nosuch"], 2, "--nosuch"),
]


@pytest.mark.parametrize(("arguments", "code", "says"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_one_clear_line(command: Any, folder: Path, arguments: list[str], code: int, says: str) -> None:
    before = {path.name for path in folder.iterdir()}
    outcome = command(*arguments)
    assert outcome.code == code
    assert says in outcome.err
    assert outcome.err.startswith("answerkey: ")
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""
    assert {path.name for path in folder.iterdir()} - before <= {"__pycache__"}


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        (
            "[scoring.weights]\ntool_usage = 0.4\nresponse_quality = 0.4\nerror_handling = 0.1\n",
            "add up to 0.9",
        ),
        ("[scoring]\nmatsch = 'smart'\n", "did you mean 'match'"),
        (
            "[scoring]\nmatch = 'psychic'\n",
            "scoring.match: 'psychic' is unknown; use literal, standard, smart",
        ),
        ("[run]\nrepeat = 'often'\n", "[run] repeat: must be a whole number, not text"),
        ("[run]\nrepeat = 1.5\n", "[run] repeat: must be a whole number, not a fraction"),
        ("[judge]\nmodel = 3\n", "judge.model: must be text or a list, not a whole number"),
        ("[match]\nmodel = 3\n", "match.model: must be text"),
        (
            "[errors]\nadd = [{text = 'x', kind = 'foo'}]\n",
            "errors.add[0].kind: 'foo' is unknown; use connection",
        ),
        ("[errors]\nadd = [{txt = 'x'}]\n", "unknown setting 'txt' in [errors.add]; did you mean 'text'?"),
        ("[judge.judges.a]\nmodl = 'x'\n", "unknown setting 'modl' in [judge.judges]; did you mean 'model'?"),
        ("[notify.smtp]\nhost = 'x'\n", "notify.smtp: 'from' is missing"),
        ("colour = 'red'\n", "unknown setting 'colour'"),
        ("[scoring\n", "not valid TOML"),
    ],
)
def test_a_bad_configuration(command: Any, folder: Path, toml: str, says: str) -> None:
    (folder / "answerkey.toml").write_text(toml)
    outcome = command("run", "fine.jsonl", "--target", "bot.py:answer")
    assert outcome.code == 2
    assert says in outcome.err
    assert "answerkey.toml" in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (folder / ".answerkey").exists()


@pytest.mark.parametrize("there", [False, True], ids=["folder", "file"])
def test_a_read_only_store(command: Any, folder: Path, there: bool) -> None:
    store = folder / "ro" / "x.db"
    store.parent.mkdir()
    if there:
        command("run", "fine.jsonl", "--target", "bot.py:answer", "--store", store)
        store.chmod(0o400)
    before = sorted(path.name for path in store.parent.iterdir())
    store.parent.chmod(0o500)
    # Root may write anywhere, unless it gives that up.
    obedient = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    outcome = subprocess.run(
        [
            *(*obedient, sys.executable, "-m", "answerkey"),
            *("run", "fine.jsonl", "--target", "bot.py:answer", "--store", store),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 2
    assert "it cannot be written; make it writable or use another --store" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert sorted(path.name for path in store.parent.iterdir()) == before


def test_a_store_that_cannot_be_written(command: Any, folder: Path) -> None:
    # Works for root too: what stands in the folder's place is a file.
    (folder / "file").write_text("x")
    outcome = command("run", "fine.jsonl", "--target", "bot.py:answer", "--store", folder / "file" / "x.db")
    assert outcome.code == 2
    assert "--store" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_hostile_error_message_cannot_write_to_the_terminal(command: Any, folder: Path) -> None:
    outcome = command("run", "fine.jsonl", "--target", "no\x1b[2Jsuch\nthing")
    assert outcome.code == 2
    assert "\x1b" not in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", "0<&- >&- 2>&-"])
def test_closed_streams_are_no_error_and_their_descriptors_are_not_used(folder: Path, closed: str) -> None:
    line = f'"{sys.executable}" -m answerkey run fine.jsonl --target bot.py:answer --json {closed}'
    assert subprocess.run(["sh", "-c", line], cwd=folder, check=False).returncode == 0
    shown = subprocess.run(
        [sys.executable, "-m", "answerkey", "show", "--json"], cwd=folder, capture_output=True, check=True
    )
    assert b'"score":1.0' in shown.stdout.replace(b" ", b"")


def test_a_reader_that_closes_the_pipe_is_no_failed_gate(folder: Path, command: Any) -> None:
    assert command("run", "fine.jsonl", "--target", "bot.py:answer").code == 0
    line = f'{{ "{sys.executable}" -m answerkey show --json; echo $? >&2; }} | true'
    done = subprocess.run(["sh", "-c", line], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stderr == "0\n"


@pytest.mark.parametrize("wanted", ["", "--json"])
def test_a_failed_gate_fails_although_the_reader_closes_the_pipe(folder: Path, wanted: str) -> None:
    gated = f'"{sys.executable}" -m answerkey run fine.jsonl --target bot.py:answer --gate "questions >= 99" {wanted}'
    line = f"{{ {gated}; echo $? >&2; }} | true"
    done = subprocess.run(["sh", "-c", line], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "1"


def test_files_of_the_folder_do_not_replace_installed_packages(
    folder: Path, write_rows: Callable[..., Path]
) -> None:
    for name in ("click", "rich", "jinja2", "msgspec"):
        (folder / f"{name}.py").write_text("raise SystemExit('a file of the folder was imported')\n")
    (folder / "own.py").write_text("def polite(question, reply):\n    return 1.0\n")
    (folder / "answerkey.toml").write_text('[scorers.polite]\npython = "own.py:polite"\n')
    done = subprocess.run(
        [sys.executable, "-m", "answerkey", "run", "fine.jsonl", "--target", "demo", "-o", "r.html"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "polite" in (folder / "r.html").read_text()


@pytest.mark.parametrize("program", ["python3 nobot.py", "bash nobot.sh", "python3 -c 'import nomodule'"])
def test_a_program_that_never_starts_is_not_a_bad_chatbot(command, write_rows, program):
    write_rows(
        "golden.jsonl", *({"question": f"Question {n}?", "expected_keywords": [str(n)]} for n in range(3))
    )
    done = command("run", "golden.jsonl", "--target", f"cmd:{program}")
    assert done.code == 3
    assert "no question could be asked: the program ended with exit code" in done.err
    assert command("show", "--json").document["summary"]["score"] is None


def test_a_program_that_fails_after_it_has_started_is_graded(command, write_rows, tmp_path):
    (tmp_path / "bot.py").write_text("import sys\nsys.stdin.readline()\nraise ValueError('no such price')\n")
    write_rows(
        "golden.jsonl", *({"question": f"Question {n}?", "expected_keywords": [str(n)]} for n in range(3))
    )
    done = command("run", "golden.jsonl", "--target", "cmd:python3 bot.py", "--json")
    assert done.code == 0
    assert done.document["summary"]["errors"] == {"exception": 3}


def test_a_golden_set_is_not_taken_for_replies(command, write_rows):
    write_rows(
        "golden.jsonl", {"id": "a", "question": "Price?", "category": "prices", "expected_keywords": ["7"]}
    )
    done = command("score", "golden.jsonl")
    assert done.code == 3
    assert "this looks like a golden set" in done.err
    assert "--map" not in done.err


def test_a_trailing_comma_is_named(command, tmp_path):
    (tmp_path / "golden.json").write_text('[\n{"question": "Price?", "expected_keywords": ["7"]},\n]')
    done = command("lint", "golden.json")
    assert done.code == 2
    assert "golden.json:3: not valid JSON: JSON is malformed: trailing comma in array" in done.err


def test_resuming_a_complete_run_says_that_nothing_is_missing(command, write_rows, tmp_path):
    (tmp_path / "bot.py").write_text(BOT)
    write_rows("golden.jsonl", FINE)
    command("run", "golden.jsonl", "--target", "bot.py:answer")
    assert "nothing is missing: this run is complete" in command("resume").out


def test_one_bad_row_is_one_row(command, write_rows):
    rows = ({"question": f"Price {n}?", "reply": str(n), "expected_keywords": [str(n)]} for n in range(3))
    write_rows("log.jsonl", *rows, '{"question": ')
    assert "1 row could not be scored and counts against coverage" in command("score", "log.jsonl").out
