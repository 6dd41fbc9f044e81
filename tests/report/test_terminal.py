"""The terminal report fits its terminal and cannot be taken over by what a chatbot wrote."""

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from answerkey.model.run import Run
from answerkey.report.terminal import bar, print_report
from answerkey.runs.stored import run_warnings


def printed(run: Run, width: int | None = None) -> str:
    out = io.StringIO()
    print_report(run, file=out, width=width)
    return out.getvalue()


def test_it_shows_grade_score_interval_and_reasons(golden_run: Run) -> None:
    text = printed(golden_run)
    summary = golden_run.summary
    assert re.search(rf"{summary.grade}\s+0\.874\s+95% interval 0\.\d{{3}}–0\.\d{{3}}", text)
    assert "missing keywords: depreciation (−0.08)" in text
    assert "did not call search_document_content (−0.40)" in text
    assert "error: timeout – no answer within 60 s (−0.20)" in text
    assert "tool calls were not observed in 1 of 15 replies" in text
    assert "FAILED" in text
    assert text.index("documents") < text.index("property")


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_lines_fit_the_width(golden_run: Run, hostile_run: Run, width: int) -> None:
    for run in (golden_run, hostile_run):
        assert max(len(line) for line in printed(run, width).splitlines()) <= width


def test_a_pipe_gets_no_escape_and_no_trailing_space(golden_run: Run, hostile_run: Run) -> None:
    for run in (golden_run, hostile_run):
        text = printed(run)
        assert "\x1b" not in text
        assert "\x00" not in text
        assert "\u202e" not in text
        assert not any(line.endswith(" ") for line in text.splitlines())


def test_an_incomplete_run_says_so_beside_its_score(golden_run: Run, run_of: object) -> None:
    partial = run_of(list(golden_run.results), planned=30)  # type: ignore[operator]
    text = printed(partial)
    assert "coverage 50%: this run is not complete" in text
    assert f"answerkey resume {partial.id}" in text


SCRIPT = """
import sys; sys.path.insert(0, sys.argv[1])
from report import conftest
from answerkey.report.terminal import print_report
print_report(conftest.make_run(conftest.golden_results()))
"""


def on_terminal(**environment: str) -> str:
    tests = str(Path(__file__).parent.parent)
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "90", **environment}
    env = {name: value for name, value in env.items() if name != "NO_COLOR" or "NO_COLOR" in environment}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, tests], stdout=slave, env=env)
    os.close(slave)
    read = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        read += part
    assert process.wait() == 0
    os.close(master)
    return read.decode()


def test_colour_on_a_terminal_unless_no_color() -> None:
    assert re.search("\x1b\\[[0-9;]*3[0-9]", on_terminal())
    assert not re.search("\x1b\\[[0-9;]*3[0-9]", on_terminal(NO_COLOR="1"))


def test_an_ascii_stream_gets_plain_bars(golden_run: Run) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    print_report(golden_run, file=out)
    out.flush()
    assert b"####" in raw.getvalue()


def test_bars() -> None:
    assert bar(0.5, 4) == "██  "
    assert bar(1.0, 4) == "████"
    assert bar(None, 2) == "  "
    assert bar(0.5, 4, plain=True) == "##.."


def test_a_coverage_below_the_whole_reads_the_same_in_the_report_and_its_warnings(
    golden_run: Run,
) -> None:
    run = golden_run
    for share, shown in ((0.9999, "99.9%"), (0.9986, "99.8%")):
        summary = msgspec.structs.replace(run.summary, coverage=share)
        (warning,) = (line for line in run_warnings(run.info, summary) if line.startswith("coverage"))
        assert warning.startswith(f"coverage {shown}:")
        assert f"coverage {shown}:" in printed(msgspec.structs.replace(run, summary=summary))
