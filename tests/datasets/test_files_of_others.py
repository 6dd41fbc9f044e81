"""Files as colleagues and other tools write them: read by what they hold, and said how."""

import csv
import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.datasets.golden_sets import read_questions
from answerkey.errors import InputError
from answerkey.model.question import describe_expectation

TABLE = [
    ["Question", "Keywords", "Tools"],
    ["Was kostet die Müllabfuhr, im Jahr?", "900, 9th, Montrose", "query_database"],
    ["Which fee is 1,200?", "1,200", ""],
]
QUESTION, KEYWORDS = TABLE[1][0], ("900", "9th", "Montrose")


def delimited(separator: str, encoding: str = "utf-8", first: str = "") -> bytes:
    lines = [separator.join(f'"{cell}"' if separator in cell else cell for cell in row) for row in TABLE]
    return (first + "\n".join(lines) + "\n").encode(encoding)


def workbook(rows: list[list[str]]) -> bytes:
    """A workbook as Excel writes it: shared texts, a number, an empty cell that is not there."""
    texts = sorted({cell for row in rows for cell in row if cell})
    xmlns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    of = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    cells = [
        "".join(
            f'<c r="{"ABCDEF"[column]}{line}" t="s"><v>{texts.index(cell)}</v></c>'
            for column, cell in enumerate(row)
            if cell
        )
        for line, row in enumerate(rows, start=1)
    ]
    sheet = "".join(f'<row r="{line}">{row}</row>' for line, row in enumerate(cells, start=1))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook {xmlns} xmlns:r="{of}"><sheets><sheet name="Golden" r:id="rId7"/></sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            '<Relationships><Relationship Id="rId7" Target="worksheets/sheet1.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/sharedStrings.xml",
            f"<sst {xmlns}>{''.join(f'<si><t>{text}</t></si>' for text in texts)}</sst>",
        )
        archive.writestr(
            "xl/worksheets/sheet1.xml", f"<worksheet {xmlns}><sheetData>{sheet}</sheetData></worksheet>"
        )
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("plain.csv", delimited(","), "column 'Question' as question"),
        (
            "excel.csv",
            delimited(";", "cp1252"),
            "text in Windows-1252; a table with semicolons between cells",
        ),
        ("stated.csv", delimited(";", first="sep=;\n"), "a table with semicolons between cells"),
        ("unicode.txt", delimited("\t", "utf-16"), "text in UTF-16; a table with tabs between cells"),
        ("no_mark.csv", delimited(",", "utf-16-le"), "text in UTF-16"),
        ("tabs.tsv", delimited("\t"), "column 'Keywords' as expected_keywords"),
        ("bars", delimited("|"), "a table with bars between cells"),
        ("packed.csv.gz", gzip.compress(delimited(",")), "expected_keywords split at commas"),
        ("book.xlsx", workbook(TABLE), "the sheet 'Golden' of a workbook"),
        ("misnamed.csv", workbook(TABLE), "the sheet 'Golden' of a workbook"),
    ],
)
def test_a_colleagues_table(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    golden = read_questions(tmp_path / name)
    first, second = golden
    assert (first.question, first.expected_keywords) == (QUESTION, KEYWORDS)
    assert [tool.name for tool in first.expected_tools] == ["query_database"]
    # A comma inside a number splits nothing.
    assert (second.expected_keywords, second.expected_tools) == (("1,200",), ())
    assert said in golden.read_as
    assert "expected_keywords split at commas" in golden.read_as
    assert first.line == (3 if name == "stated.csv" else 2)


@pytest.mark.parametrize(
    ("cell", "keywords"),
    [
        ("4,90", ["4,90"]),
        ("1.234,50 €", ["1.234,50 €"]),
        ("rent, 4,90", ["rent", "4,90"]),
        ("16,144,Montrose", ["16,144", "Montrose"]),
        ("900,9th", ["900", "9th"]),
        ("1,2,3", ["1", "2", "3"]),
        ("442300,16144", ["442300", "16144"]),
    ],
)
def test_a_comma_inside_a_number_of_a_cell_splits_nothing(
    tmp_path: Path, cell: str, keywords: list[str]
) -> None:
    path = tmp_path / "golden.csv"
    path.write_text(
        f"question;expected_keywords;relevant_documents\nHow much?;{cell};12,345\nWho?;Ann,Ben;\n"
    )
    question = read_questions(path).questions[0]
    assert list(question.expected_keywords) == keywords
    assert list(question.relevant_documents) == ["12", "345"]


ROWS = [{"id": "a", "question": "A?", "expected_keywords": ["x"]}, {"id": "b", "question": "B?"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def zstd(content: bytes) -> bytes:
    import pyarrow

    return pyarrow.Codec("zstd").compress(content, asbytes=True)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("lines.json", LINES, "JSON Lines"),
        ("lines.txt", LINES, "JSON Lines"),
        ("list.jsonl", json.dumps(ROWS, indent=1).encode(), "JSON"),
        ("list.csv", json.dumps(ROWS).encode(), ""),
        ("lines.jsonl.gz", gzip.compress(LINES), "JSON Lines"),
        ("lines.jsonl", gzip.compress(LINES), ""),
        ("lines.jsonl.zst", zstd(LINES), "JSON Lines"),
        ("lines.jsonl", LINES.decode().encode("utf-16"), "text in UTF-16"),
        ("held.json", json.dumps({"version": 2, "results": ROWS}).encode(), "the rows under 'results'"),
        ("deeper.json", json.dumps({"results": {"data": ROWS}}).encode(), "the rows under 'results.data'"),
        ("unusual.json", json.dumps({"v": 2, "fragen": ROWS}).encode(), "the rows under 'fragen'"),
        ("questions.yml", b"items:\n- {id: a, question: 'A?', expected_keywords: [x]}\n- {id: b, question: 'B?'}\n",
         "the rows under 'items'"),
    ],
)  # fmt: skip
def test_content_decides_not_the_name(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    golden = read_questions(tmp_path / name)
    assert [(question.id, question.expected_keywords) for question in golden] == [("a", ("x",)), ("b", ())]
    assert golden.read_as == said


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(delimited(";")))))
    )
    golden = read_questions("-")
    assert (golden.name, golden.path, len(golden)) == ("stdin", None, 2)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("cut.jsonl.gz", gzip.compress(LINES * 100)[:40], "truncated or damaged"),
        ("cut.xlsx", workbook(TABLE)[:-90], "is an archive, but not an Excel workbook"),
        ("other.csv", b"Vraag,Antwoord\nWie?,Ik\n", ":2: has no 'question'; it has Vraag, .*--map question=FIELD"),
        ("ragged.csv", b"question;id\nx\n", "1 cells where the header has 2 .question, id., read with semicolons"),
        ("two.json", b'{"a": [{"q": 1}], "b": [{"q": 1}]}', "lists under a, b; say which with --map rows=KEY"),
        ("no.json", b'{"a": 1}', "it has a; say which with --map rows=KEY"),
    ],
)  # fmt: skip
def test_bad_files_are_one_line_with_the_remedy(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read_questions(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_an_older_harness_report_is_graded_as_it_is(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    golden = [
        {"id": "fee", "question": "What is the fee?", "expected_tools": ["db"], "expected_keywords": ["900"]},
        {"id": "who", "question": "Who?", "expected_tools": ["db"], "expected_keywords": ["Montrose"]},
    ]
    write_rows("golden.jsonl", *golden)
    results = [
        {
            "question": row["question"],
            "response": text,
            "sources": [],
            "expected": {"tools": ["db"]},
            "checks": {"tool_usage": {"actual": tools, "passed": True}},
        }
        for row, text, tools in zip(golden, ("It is 900.", "Nobody."), (["db"], ["web"]), strict=True)
    ]
    (tmp_path / "report.json").write_text(json.dumps({"score": 0.5, "results": results}))
    maps = ("--map", "answer=response", "--map", "tools_used=checks.tool_usage.actual")
    done = command("score", "report.json", "--questions", "golden.jsonl", *maps, "--json")
    assert done.code == 0, done.err
    assert [
        (row["id"], row["reply"]["text"], row["reply"]["tools_used"]) for row in done.document["results"]
    ] == [
        ("fee", "It is 900.", ["db"]),
        ("who", "Nobody.", ["web"]),
    ]
    assert done.document["results"][0]["score"] == 1.0
    assert "report.json was read as: the rows under 'results'" in done.document["warnings"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--map", "answer"], "write FIELD=JMESPATH"),
        (["--map", "answer=a", "--map", "answer=b"], "given twice"),
        (["--map", "anwser=response"], "did you mean 'answer'?"),
        (["--map", "answer=respons"], "finds nothing in any row; there are question, response"),
        (["--map", "rows=elsewhere"], "--map rows=elsewhere finds no list in it; there are results"),
    ],
)
def test_a_map_that_finds_nothing_is_refused(
    command: Callable[..., Any], tmp_path: Path, arguments: list[str], says: str
) -> None:
    (tmp_path / "r.json").write_text('{"results": [{"question": "Who?", "response": "I"}]}')
    done = command("score", "r.json", *arguments, "-o", "out.jsonl")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err
    assert not (tmp_path / "out.jsonl").exists()


def test_columns_are_mapped_by_flag_or_configuration(command: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("Frage Text;Erwartet\nWho wrote the lease?;Montrose and 900\n")
    maps = ("--map", "question=Frage Text", "--map", "expected_keywords=Erwartet")
    done = command("lint", "g.csv", *maps)
    assert done.code == 0, done.err
    assert "read as: a table with semicolons between cells" in done.err
    (tmp_path / "answerkey.toml").write_text(
        '[map]\nquestion = "Frage Text"\nexpected_keywords = "Erwartet"\n'
    )
    for arguments in (
        ("lint", "g.csv"),
        ("export", "jsonl", "g.csv"),
        ("run", "g.csv", "--target", "cmd:echo Montrose", "--json"),
    ):
        done = command(*arguments)
        assert "Traceback" not in done.err
        assert done.code == 0, done.err
    assert done.document["results"][0]["question"] == "Who wrote the lease?"
    assert any("read as: a table with semicolons" in warning for warning in done.document["warnings"])


@pytest.mark.parametrize(
    ("cell", "keywords"),
    [
        ('{"date": "09:00"}; {"date": "13:00"}', ["09:00", "13:00"]),
        ('Krone; {"number": 5}; must: {"number": 11}', ["Krone", "5", "11"]),
        ("2.5..3.5", ["2.5 to 3.5"]),
        ('{"number": 24.5, "must": true}', ["24.5"]),
        ('[{"number": 24.5, "must": true}]', ["24.5"]),
    ],
)
def test_a_cell_may_hold_objects(tmp_path: Path, cell: str, keywords: list[str]) -> None:
    table = tmp_path / "golden.csv"
    with table.open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([["question", "expected_keywords"], ["What?", cell]])
    [question] = read_questions(table)
    assert [describe_expectation(keyword) for keyword in question.expected_keywords] == keywords
