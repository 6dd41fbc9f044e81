"""Report files: chosen by ending, written whole or not at all, and safe whatever a chatbot wrote."""

import csv
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from zipfile import ZipFile

import pytest
from click.testing import CliRunner

from answerkey.cli.main import cli
from answerkey.errors import UsageError
from answerkey.model.run import Run
from answerkey.plugins import reports
from answerkey.report.result_files import append_row, atomic_file, check_output, write_report, write_reports


def test_json_is_the_run_document(golden_run: Run, tmp_path: Path) -> None:
    write_report(golden_run, tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    assert document == json.loads(json.dumps(golden_run.to_dict()))
    assert list(document)[:3] == ["schema", "run", "summary"]
    assert len(document["results"]) == 15


def test_json_of_an_empty_run(run_of: object, tmp_path: Path) -> None:
    write_report(run_of([]), tmp_path / "x.json")  # type: ignore[operator]
    assert json.loads((tmp_path / "x.json").read_text())["results"] == []


def test_jsonl_has_a_row_per_reply(golden_run: Run, tmp_path: Path) -> None:
    write_report(golden_run, tmp_path / "x.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows][-1] == "august"
    assert rows[-1]["error"] == {"kind": "timeout", "message": "no answer within 60 s"}
    assert rows[0]["error"] is None
    assert rows[0]["components"]["response_quality"]["found"] == ["900", "9th", "Montrose", "CO"]
    assert {"id", "trial", "score", "grade", "components", "error", "metrics"} <= set(rows[0])


def test_csv_opens_in_a_spreadsheet(golden_run: Run, tmp_path: Path) -> None:
    write_report(golden_run, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    with (tmp_path / "x.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    basis = next(row for row in rows if row["id"] == "basis")
    assert basis["score"] == "0.92"
    assert basis["response_quality"] == "0.8"
    assert basis["lost_points"] == "missing keywords: depreciation (−0.08)"
    assert json.loads(basis["components"])["response_quality"]["missing"] == ["depreciation"]


def test_csv_shows_control_characters_as_signs(hostile_run: Run, tmp_path: Path) -> None:
    write_report(hostile_run, tmp_path / "x.csv")
    text = (tmp_path / "x.csv").read_text("utf-8-sig")
    assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(text)
    assert "␛[31mred␛]0;title␇ \\u202egnp.exe" in text


def test_parquet_has_the_same_rows(golden_run: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the parquet extra is not installed")
    write_reports(golden_run, [tmp_path / "x.parquet", tmp_path / "x.jsonl"])
    rows = parquet.read_table(tmp_path / "x.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    for row, line in zip(rows, lines, strict=True):
        for name in ("id", "trial", "question", "category", "score", "grade", "passed", "error", "metrics"):
            assert row[name] == line[name]
        for name, component in line["components"].items():
            assert row["components"][name]["score"] == component["score"]
        assert row["reply"]["tools_used"] == line["reply"]["tools_used"]


def test_the_parquet_file_of_a_log_has_the_rows_of_its_lines(tmp_path: Path) -> None:
    """Plain rows, which are written from their lines, and one with a call whose result may have any shape."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="the parquet extra is not installed")
    call = {"name": "db", "arguments": {"sql": "SELECT 1"}, "result": "one"}
    given: list[dict[str, object]] = [
        {"id": "a", "question": "A?", "answer": "It is 1,200.", "expected_keywords": ["1200"]},
        {"id": "b", "question": "B?", "answer": None, "tools_used": ["db"], "latency_ms": 12.5},
        {
            "id": "a",
            "question": "A?",
            "answer": "It is half of a pair: \ud800.",
            "expected_keywords": ["half", "two"],
        },
    ]
    for name, rows in (
        ("plain", given),
        ("mixed", [*given, {"id": "c", "question": "C?", "answer": "1", "tool_calls": [call]}]),
    ):
        log = tmp_path / f"{name}.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        done = CliRunner().invoke(
            cli, ["score", str(log), *(f"-o{tmp_path / name}.{end}" for end in ("rows.jsonl", "parquet"))]
        )
        assert done.exit_code == 0, done.output
        lines = [json.loads(line) for line in (tmp_path / f"{name}.rows.jsonl").read_text().splitlines()]
        found = parquet.read_table(tmp_path / f"{name}.parquet").to_pylist()
        # Without other files, rows are stored with what tables have of them only.
        done = CliRunner().invoke(cli, ["score", str(log), f"-o{tmp_path / 'alone'}.parquet"])
        assert done.exit_code == 0, done.output
        assert parquet.read_table(tmp_path / "alone.parquet").to_pylist() == found
        assert len(found) == len(lines) == len(rows)
        for row, line in zip(found, lines, strict=True):
            for field in ("id", "trial", "question", "score", "grade", "passed", "error", "metrics"):
                assert row[field] == line[field]
            assert row["reply"]["text"] == line["reply"]["text"]
            assert row["reply"]["latency_ms"] == line["reply"]["latency_ms"]
            assert row["components"]["response_quality"]["found"] == line["components"][
                "response_quality"
            ].get("found")
    assert found[-1]["reply"]["tool_calls"][0]["arguments"] == '{"sql":"SELECT 1"}'
    assert found[-1]["reply"]["tool_calls"][0]["result"] == '"one"'


@pytest.mark.parametrize("ending", reports.built_in())
def test_hostile_text_in_every_field_of_every_format(hostile_run: Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    write_report(hostile_run, path)
    if ending == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="the parquet extra is not installed")
        assert len(parquet.read_table(path)) == 2
        return
    if ending == ".xlsx":
        # What its cells hold is in test_excel_file.py.
        with ZipFile(path) as archive:
            text = "".join(archive.read(name).decode() for name in archive.namelist())
    else:
        text = path.read_text("utf-8-sig")
    assert "\ud800" not in text
    if ending == ".csv":
        # Data is kept as it is, except for what a spreadsheet would run.
        csv.field_size_limit(10_000_000)
        rows = list(csv.DictReader(text.splitlines(keepends=True)))
        assert len(rows) == 2
        assert rows[0]["reply"].startswith("'=cmd")
    else:
        assert "\x1b" not in text
        assert "\x00" not in text
    if ending == ".junit.xml":
        ET.fromstring(text)
    if ending in (".md", ".junit.xml", ".xlsx"):
        assert "<script" not in text


def test_unknown_endings_are_refused_with_the_list(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.pdf: unknown report format.*\.html .*\.junit\.xml"):
        check_output(tmp_path / "x.pdf")
    with pytest.raises(UsageError, match="unknown report format"):
        check_output(tmp_path / "x.xml")


@pytest.mark.parametrize("ending", reports.built_in())
def test_known_endings_are_accepted(tmp_path: Path, ending: str) -> None:
    check_output(tmp_path / f"X{ending.upper()}")


def test_paths_that_cannot_be_written_are_refused_before(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist; create it first"):
        check_output(tmp_path / "missing" / "x.json")
    (tmp_path / "d.json").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        check_output(tmp_path / "d.json")
    if os.geteuid() != 0:
        # Root may write anywhere, so that only other users can see this one.
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        with pytest.raises(UsageError, match="no permission"):
            check_output(locked / "x.json")


def test_several_outputs_are_checked_before_the_first_is_written(golden_run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_reports(golden_run, [tmp_path / "good.json", tmp_path / "bad.pdf"])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")

    def fail() -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_a_device_is_written_directly() -> None:
    with atomic_file(Path("/dev/null")) as file:
        file.write(b"x")
    assert not Path("/dev/null").is_file()


def test_an_ending_that_another_package_brings(
    golden_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site"
    (package / "answerkey_words-1.dist-info").mkdir(parents=True)
    (package / "answerkey_words-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: answerkey-words\nVersion: 1\n"
    )
    (package / "answerkey_words-1.dist-info" / "entry_points.txt").write_text(
        "[answerkey.reports]\n.words = answerkey_words:write\n.broken = answerkey_words:nothing\n"
    )
    (package / "answerkey_words.py").write_text(
        "def write(run, file): file.write(run.summary.grade.encode())\n"
    )
    monkeypatch.syspath_prepend(str(package))
    write_report(golden_run, tmp_path / "x.words")
    assert (tmp_path / "x.words").read_text() == golden_run.summary.grade
    with pytest.raises(UsageError, match=r"use one of \.html .*\.junit\.xml .*\.broken \.words"):
        check_output(tmp_path / "x.pdf")
    with pytest.raises(
        UsageError, match=r"the report '\.broken' of the package answerkey-words cannot be loaded"
    ):
        check_output(tmp_path / "x.broken")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("g.jsonl", '{"id":"a"}', '{"id":"a"}\n{"id": "b", "question": "Is it?"}\n'),
        ("g.yaml", "# set\n- id: a # one\n  question: Was it?\n", None),
        ("g.json", '[{"id": "a", "question": "Was it?"}]\n', None),
    ],
)
def test_a_row_is_added_to_a_golden_set_in_its_own_style(tmp_path, name, before, after):
    path = tmp_path / name
    path.write_text(before)
    append_row(path, {"id": "b", "question": "Is it?"})
    written = {
        "g.yaml": before + "- id: b\n  question: Is it?\n",
        "g.json": '[{"id": "a", "question": "Was it?"}, {"id": "b", "question": "Is it?"}]\n',
    }
    assert path.read_text() == (after or written[name])
