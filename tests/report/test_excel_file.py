"""The Excel workbook, read back from its XML: sheets, numbers, texts that stay texts, and what Excel cannot hold."""

import csv
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import pytest

from answerkey.errors import UsageError
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import Run
from answerkey.model.scorecard import Trial
from answerkey.plugins import reports
from answerkey.report.result_files import atomic_file, write_report, write_reports
from answerkey.transcripts.tables import HeaderNames, refuse
from answerkey.transcripts.workbooks import read_workbook

from .conftest import make_card, make_result

pytest.importorskip("xlsxwriter", reason="the excel extra is not installed")

_XML = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


class Sheet:
    """A sheet as it stands in the file."""

    def __init__(self, root: ET.Element, shown: list[str]) -> None:
        self.root = root
        # Row by row: the column's letters → text, number or boolean.
        self.rows: list[dict[str, Any]] = []
        # Cell → how its number is shown.
        self.formats: dict[str, str] = {}
        for row in root.iter(f"{_XML}row"):
            self.rows.append({})
            for cell in row:
                place = cell.attrib["r"]
                self.rows[-1][place.rstrip("0123456789")] = _value(cell)
                self.formats[place] = shown[int(cell.get("s", 0))]

    @property
    def named(self) -> list[dict[str, Any]]:
        """The rows under the names of the first."""
        head, *rows = self.rows
        return [{name: row.get(column) for column, name in head.items()} for row in rows]

    def beside(self, label: str) -> list[Any]:
        """What stands in the row that begins with a label."""
        (row,) = [row for row in self.rows if row.get("A") == label]
        return list(row.values())[1:]


def _value(cell: ET.Element) -> Any:
    kind = cell.get("t", "n")
    # Nothing but these: a formula would have an element of its own.
    assert {part.tag for part in cell} <= {f"{_XML}v", f"{_XML}is"}
    if kind == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(f"{_XML}t"))
    number = cell.findtext(f"{_XML}v")
    assert number is not None
    assert kind in ("n", "b")
    return number == "1" if kind == "b" else float(number)


def sheets_of(path: Path) -> dict[str, Sheet]:
    with ZipFile(path) as archive:
        names = [
            sheet.attrib["name"]
            for sheet in ET.fromstring(archive.read("xl/workbook.xml")).iter(f"{_XML}sheet")
        ]
        styles = ET.fromstring(archive.read("xl/styles.xml"))
        codes = {
            entry.attrib["numFmtId"]: entry.attrib["formatCode"] for entry in styles.iter(f"{_XML}numFmt")
        }
        used = styles.find(f"{_XML}cellXfs")
        assert used is not None
        shown = [codes.get(entry.attrib["numFmtId"], "") for entry in used]
        return {
            name: Sheet(ET.fromstring(archive.read(f"xl/worksheets/sheet{number}.xml")), shown)
            for number, name in enumerate(names, start=1)
        }


def written(run: Run, folder: Path) -> dict[str, Sheet]:
    write_report(run, folder / "x.xlsx")
    return sheets_of(folder / "x.xlsx")


def reply_of(text: str) -> Trial:
    return make_result(Question(id="q", question="Which?"), Reply(text=text), make_card())


def test_the_sheets_of_a_run(golden_run: Run, tmp_path: Path) -> None:
    sheets = written(golden_run, tmp_path)
    assert list(sheets) == ["Summary", "Categories", "Results"]
    summary, figures = sheets["Summary"], golden_run.summary
    assert figures.interval is not None
    assert figures.cost is not None
    assert figures.latency_ms is not None
    assert summary.beside("score") == pytest.approx(
        [figures.score, figures.interval.low, figures.interval.high]
    )
    assert summary.beside("grade") == [figures.grade]
    assert summary.beside("run") == ["r-20261115-7f3a"]
    assert summary.beside("score >= 0.85") == [0.89, True]
    assert summary.beside("tax.score >= 0.9") == [0.46, False]
    assert summary.beside("response quality")[0] == pytest.approx(figures.components["response_quality"])
    assert summary.beside("a question")[0] == pytest.approx(figures.cost.question)
    assert {"A": "the judge was not available, so its metrics are missing"} in summary.rows
    categories = sheets["Categories"].named
    assert [row["category"] for row in categories] == ["documents", "tax", "property"]
    assert categories[-1]["score"] == 1
    assert categories[-1]["questions"] == 12


def test_results_are_those_of_the_csv_file(golden_run: Run, tmp_path: Path) -> None:
    write_reports(golden_run, [tmp_path / "x.xlsx", tmp_path / "x.csv"])
    sheet = sheets_of(tmp_path / "x.xlsx")["Results"]
    with (tmp_path / "x.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for found, row in zip(sheet.named, rows, strict=True):
        assert list(found) == list(row)
        for name, value in found.items():
            if isinstance(value, bool):
                assert str(value).lower() == row[name]
            elif isinstance(value, float):
                assert value == float(row[name])
            else:
                assert (value or "") == row[name]
    assert sheet.formats["E2"] == sheet.formats["H2"] == "0.000"
    pane = next(sheet.root.iter(f"{_XML}pane"))
    assert (pane.get("ySplit"), pane.get("state")) == ("1", "frozen")
    assert next(sheet.root.iter(f"{_XML}autoFilter")).attrib["ref"] == "A1:T16"
    widths = [float(column.attrib["width"]) for column in sheet.root.iter(f"{_XML}col")]
    assert max(widths) > 80
    assert min(widths) > 10


def test_a_score_never_reads_as_a_better_grade(run_of: Callable[..., Run], tmp_path: Path) -> None:
    card = make_card()
    scores = (0.899999, 0.8995, 0.9, 0.8887777, 0.9999, 1.0)
    results = [
        make_result(
            Question(id=f"q{score}", question="Which?"),
            Reply(text="This."),
            msgspec.structs.replace(card, total=score),
        )
        for score in scores
    ]
    sheet = written(run_of(results), tmp_path)["Results"]
    assert [row["score"] for row in sheet.named] == list(scores)
    exact, short = "0.000######", "0.000"
    assert [sheet.formats[f"E{row}"] for row in range(2, 8)] == [exact, exact, short, short, exact, short]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "{=SUM(A1:A9)}",
        "+1",
        "-1",
        "@SUM(A1)",
        "12",
        "https://evil.example/",
        "internal:Results!A1",
        "<r></is></c><c r='Z9'><f>1+1</f></c><c t='inlineStr'><is></r>",
        "<r><t>x</t></r>",
        "_x0041_",
        "  two\nlines\t ",
        "😀",
    ],
)
def test_texts_stay_texts(run_of: Callable[..., Run], tmp_path: Path, text: str) -> None:
    (row,) = written(run_of([reply_of(text)]), tmp_path)["Results"].named
    # Excel's own way to write what reads like one of its escapes.
    assert row["reply"] == text.replace("_x0041_", "_x005F_x0041_")
    with ZipFile(tmp_path / "x.xlsx") as archive:
        assert not [name for name in archive.namelist() if "rels" in name and "worksheets" in name]


def test_hostile_text_is_visible_and_cut_text_says_so(hostile_run: Run, tmp_path: Path) -> None:
    sheets = written(hostile_run, tmp_path)
    evil, long = sheets["Results"].named
    assert evil["reply"].startswith("=cmd|' /C calc'!A0 <script>")
    assert "␛[31mred␛]0;title␇ \\u202egnp.exe ␀NUL" in evil["reply"]
    for name in ("question", "reply", "components"):
        assert len(long[name]) == 32_767
    assert long["reply"].endswith("yyy … [cut: 1,000,000 characters]")
    assert any("␛[31m" in str(row.get("A")) for row in sheets["Summary"].rows)


def test_a_cell_is_measured_as_excel_does(run_of: Callable[..., Run], tmp_path: Path) -> None:
    fits, more = written(run_of([reply_of("😀" * 16_383 + "x"), reply_of("😀" * 16_384)]), tmp_path)[
        "Results"
    ].named
    assert fits["reply"] == "😀" * 16_383 + "x"
    assert more["reply"].endswith("😀 … [cut: 16,384 characters]")
    assert len(more["reply"].encode("utf-16-le")) in (2 * 32_767, 2 * 32_766)


def test_more_rows_than_excel_holds_name_the_other_formats(golden_run: Run, tmp_path: Path) -> None:
    many = msgspec.structs.replace(golden_run.summary, trials=1_048_576)
    with pytest.raises(UsageError, match=r"limited to 1,048,575 replies; use \.parquet or"):
        write_report(msgspec.structs.replace(golden_run, summary=many), tmp_path / "x.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_the_same_run_gives_the_same_file(golden_run: Run, tmp_path: Path) -> None:
    write_reports(golden_run, [tmp_path / "x.xlsx", tmp_path / "y.xlsx"])
    assert (tmp_path / "x.xlsx").read_bytes() == (tmp_path / "y.xlsx").read_bytes()


def test_an_empty_run(run_of: Callable[..., Run], tmp_path: Path) -> None:
    sheets = written(run_of([]), tmp_path)
    assert sheets["Results"].named == []
    assert sheets["Summary"].beside("questions") == [0]


def test_the_demo_against_a_baseline(command: Callable[..., Any], tmp_path: Path) -> None:
    asked = ("run", "--sample", "30", "--seed", "1")
    assert command(*asked, "--target", "demo:basic", "--name", "base").code == 0
    files = ("-o", "run.xlsx", "-o", "run.md")
    done = command(*asked, "--target", "demo", "--name", "candidate", "--baseline", "base", *files)
    assert done.code == 0, done.err
    assert command("report", "candidate", "-o", "report.xlsx").code == 0
    verdict = (tmp_path / "run.md").read_text().splitlines()[0].replace("&lt;", "<")
    for name in ("run.xlsx", "report.xlsx"):
        sheets = sheets_of(tmp_path / name)
        assert list(sheets) == ["Summary", "Categories", "Comparison", "Results"]
        assert len(sheets["Results"].named) == 30
        assert verdict.endswith(sheets["Comparison"].rows[0]["A"])
        assert " → " in sheets["Comparison"].beside("score")[0]
        assert "base replied" in [cell for row in sheets["Comparison"].rows for cell in row.values()]
    with (tmp_path / "run.xlsx").open("rb") as file:
        book = read_workbook(file, tmp_path / "run.xlsx", HeaderNames.of("records"), refuse)
        assert book.guesses == ("the sheet 'Summary' of a workbook",)
        assert {"score", "grade", "response quality"} <= {
            cell for _, row in book.rows for cell in row.values()
        }


def test_a_full_disk_is_one_line(golden_run: Run) -> None:
    full = Path("/dev/full")
    with pytest.raises(UsageError, match="/dev/full: cannot be written: No space"), atomic_file(full) as file:
        reports.get(".xlsx")(golden_run, file)
