"""Ordinary files, as people and other programs save them, through the command line: one meaning in every format."""

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from workbook_files import write_workbook

Command = Callable[..., Any]
Write = Callable[..., Path]
FORMATS = ("jsonl", "json", "yaml", "csv", "tsv", "xlsx", "parquet", "db")
TOOLS_GOLDEN = (
    {
        "id": "q1",
        "question": "Where is it?",
        "expected_tools": ["db", "map"],
        "expected_keywords": ["Main St"],
    },
    {"id": "q2", "question": "Say hello", "tools": "none", "expected_keywords": ["hello"]},
)


def write_log(folder: Path, ending: str, rows: list[dict[str, str]]) -> tuple[str, ...]:
    """Write a log of texts in a format; returns the arguments of `score` that read it."""
    path = folder / f"log.{ending}"
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending in ("json", "yaml"):
        # JSON is YAML too.
        path.write_text(json.dumps(rows))
    elif ending in ("csv", "tsv"):
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter=",\t"[ending == "tsv"]).writerows(table)
    elif ending == "xlsx":
        write_workbook(path, {"Log": table})
    elif ending == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with sqlite3.connect(path) as database:
            database.execute(f"CREATE TABLE log ({', '.join(rows[0])})")
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f"INSERT INTO log VALUES ({marks})", table[1:])
        return f"sqlite:///{path}", "--sql", "SELECT * FROM log"
    return (str(path),)


@pytest.mark.parametrize(
    ("two", "none"),
    [
        ("db; map", "none"),
        ("db, map", "n/a"),
        ("db|map", "-"),
        ("db\nmap", "None"),
        ("1. db\n2. map", "null"),
        ('["db", "map"]', '["none"]'),
        ("['db', 'map']", "[]"),
        ("db -> map", "—"),
        ("db;map;", "no tools"),
    ],
)
def test_tools_given_as_text_mean_the_same_in_every_format(
    two: str, none: str, command: Command, write_rows: Write, tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *TOOLS_GOLDEN)
    rows = [
        {"id": "q1", "answer": "It is 5 Main St", "tools_used": two},
        {"id": "q2", "answer": "hello", "tools_used": none},
    ]
    for ending in FORMATS:
        log = write_log(tmp_path, ending, rows)
        done = command("score", *log, "--questions", "golden.jsonl", "--json")
        results = done.document["results"]
        assert [result["reply"]["tools_used"] for result in results] == [["db", "map"], []], ending
        assert [result["score"] for result in results] == [1.0, 1.0], ending


def test_a_golden_set_that_expects_the_tool_none_is_refused_with_the_remedy(
    command: Command, write_rows: Write
) -> None:
    write_rows("golden.jsonl", {"question": "Hello?", "expected_tools": ["none"]})
    done = command("lint", "golden.jsonl")
    assert done.code == 2
    assert '"tools": "none"' in done.out


@pytest.mark.parametrize(
    ("cell", "field"), [("none", {"tools": "none"}), ("n/a", {}), ("-", {"tools": "none"})]
)
def test_a_cell_says_that_no_tool_or_any_tool_is_expected(
    cell: str, field: dict[str, str], command: Command, tmp_path: Path
) -> None:
    (tmp_path / "golden.csv").write_text(f"id,question,expected_tools\nq1,Who?,{cell}\nq2,Where?,db\n")
    command("export", "jsonl", "golden.csv", "-o", "golden.jsonl")
    first = json.loads((tmp_path / "golden.jsonl").read_text().splitlines()[0])
    assert first == {"id": "q1", "question": "Who?", **field}


OWN_LOG = (
    {"id": "q1", "answer": "It is 5 Main St", "tools_used": ["db", "map"], "latency_ms": 1200.5},
    {"id": "q1", "answer": "Main St\n=5", "tools_used": ["db"], "trial": 2},
    {"id": "q2", "answer": None, "error": "DatabaseError: Connection refused", "tools_used": ["db", "db"]},
)


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "xlsx", "parquet"])
def test_own_results_are_read_back_with_the_same_numbers(
    ending: str, command: Command, write_rows: Write, tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *TOOLS_GOLDEN)
    write_rows("log.jsonl", *OWN_LOG)
    first = command("score", "log.jsonl", "--questions", "golden.jsonl", "-o", f"own.{ending}", "--json")
    again = command("score", f"own.{ending}", "--questions", "golden.jsonl", "--json")
    replayed = command("run", "golden.jsonl", "--target", f"replay:own.{ending}", "--repeat", "2", "--json")
    for name in ("score", "components", "errors", "latency_ms"):
        assert again.document["summary"][name] == first.document["summary"][name], name
    assert [
        (result["id"], result["trial"], result["score"]) for result in replayed.document["results"][:2]
    ] == [("q1", 1, 1.0), ("q1", 2, 0.6)]
    named = command("report", f"own.{ending}", "-o", "report.html")
    assert named.code == 2
    assert f"answerkey score own.{ending}" in named.err


def test_own_results_and_the_golden_set_in_the_folder_of_a_log_are_left_out(
    command: Command, write_rows: Write, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    golden = write_rows("logs/golden.jsonl", *TOOLS_GOLDEN)
    write_rows("logs/log.jsonl", *OWN_LOG)
    (tmp_path / "logs" / "README.md").write_text("# About these logs\nWritten in May.\n")
    outputs = [f"logs/own.{ending}" for ending in ("jsonl", "json", "csv", "xlsx", "parquet", "html")]
    score = ("score", "logs", "--questions", golden, *(part for path in outputs for part in ("-o", path)))
    first = command(*score, "--json").document
    # The outputs are written again: they are not part of the log.
    again = command(*score, "--json").document
    assert again["summary"] == first["summary"]
    assert again["summary"]["replies"] == 3
    [own] = [line for line in again["warnings"] if "answerkey wrote" in line]
    assert "logs/own.csv" in own
    pattern = command("score", "logs/*.*", "--questions", golden, "--json").document
    assert pattern["summary"]["replies"] == 3
    (tmp_path / "logs" / "log.jsonl").unlink()
    none = command("score", "logs", "--questions", golden)
    assert none.code == 2
    assert "no recorded replies" in none.err


def test_a_title_that_is_called_like_a_column_is_not_the_header(command: Command, tmp_path: Path) -> None:
    write_workbook(
        tmp_path / "golden.xlsx",
        {
            "Overview": [["Questions", "2"], ["Status", "open"]],
            "Set": [["Questions"], ["Question", "Keywords"], ["Who runs it?", "Miller"], ["Where?", "Oslo"]],
        },
    )
    done = command("export", "jsonl", "golden.xlsx", "-o", "golden.jsonl")
    assert done.code == 0
    rows = [json.loads(line) for line in (tmp_path / "golden.jsonl").read_text().splitlines()]
    assert [(row["question"], row["expected_keywords"]) for row in rows] == [
        ("Who runs it?", ["Miller"]),
        ("Where?", ["Oslo"]),
    ]


def test_a_log_and_its_replay_leave_the_same_questions_unscored(command: Command, write_rows: Write) -> None:
    write_rows("golden.jsonl", *TOOLS_GOLDEN, {"id": "q3", "question": "And now?"})
    hello = {"id": "q2", "answer": "hello", "tools_used": []}
    write_rows("log.jsonl", hello, {"id": "other", "answer": "I sell cars.", "tools_used": []})
    scored = command("score", "log.jsonl", "--questions", "golden.jsonl", "--json").document
    replayed = command("run", "golden.jsonl", "--target", "replay:log.jsonl", "--json").document
    for document in (scored, replayed):
        assert document["summary"]["score"] == 1.0
        assert document["summary"]["errors"] == {}
        assert document["summary"]["coverage"] < 0.5
        assert any("the golden set has no question with i" in line for line in document["warnings"])
    # The replies that are there, and the two questions without one; a row of a log is a planned score too.
    assert round(replayed["summary"]["coverage"], 3) == 0.333
    assert round(scored["summary"]["coverage"], 3) == 0.25
    failed = command("run", "golden.jsonl", "--target", "replay:log.jsonl", "--gate", "score >= 0.5")
    assert failed.code == 1
    write_rows("others.jsonl", {"id": "other", "answer": "I sell cars."})
    assert command("run", "golden.jsonl", "--target", "replay:others.jsonl").code == 3


def keywords_in(command: Command, name: str) -> list[Any]:
    """The keywords of each question of a golden set, as `export` writes them."""
    done = command("export", "jsonl", name)
    assert done.code == 0, done.err
    return [json.loads(line).get("expected_keywords") for line in done.out.splitlines()]


def test_commas_in_a_cell_do_not_split_dates_and_amounts(command: Command, tmp_path: Path) -> None:
    (tmp_path / "golden.csv").write_text(
        "question,expected_keywords\n"
        'When?,"March 5, 2024"\nHow much?,"Mar 5, 2024, $1,200.50"\nAll?,"900, 9th, Montrose"\n'
        'And in Germany?,"5. März 2024, €1.200,50, 4,90"\nWhich month?,"August, 2024"\n'
    )
    assert keywords_in(command, "golden.csv") == [
        ["March 5, 2024"],
        ["Mar 5, 2024", "$1,200.50"],
        ["900", "9th", "Montrose"],
        ["5. März 2024", "€1.200,50", "4,90"],
        ["August", "2024"],
    ]


def test_lint_names_cells_that_were_perhaps_split_wrongly(command: Command, tmp_path: Path) -> None:
    table = 'question,expected_keywords\nWho?,"Smith, John"\nWhat was earned?,"{}"\n'
    (tmp_path / "commas.csv").write_text(table.format("rent, interest"))
    found = command("lint", "commas.csv", "--json").document["findings"]
    [finding] = [one for one in found if one["code"] == "split-at-comma"]
    assert finding["line"] == 2
    assert '["Smith, John"]' in finding["remedy"]
    (tmp_path / "semicolons.csv").write_text(
        table.format("rent; interest") + 'What else?,"fees, dues, tips"\n'
    )
    assert keywords_in(command, "semicolons.csv")[0] == ["Smith, John"]
    found = command("lint", "semicolons.csv", "--json").document["findings"]
    [finding] = [one for one in found if one["code"] in ("split-at-comma", "not-split")]
    assert (finding["code"], finding["line"]) == ("not-split", 4)
    # A cell may be JSON.
    (tmp_path / "json.csv").write_text(
        'question,expected_keywords\nWho?,"[""Smith, John""]"\nWhat?,"a1, b2"\n'
    )
    assert keywords_in(command, "json.csv") == [["Smith, John"], ["a1", "b2"]]


@pytest.mark.parametrize(
    ("typed", "right", "wrong"),
    [
        ("120 m²", "It has 120 square metres.", "It has 210 m²."),
        ("€1.200", "Das macht 1.200 €.", "Das macht 1,20 €."),
        ("1.200 €", "It is 1,200 euros.", "It is 12 euros."),
        ("1.200", "Es sind 1200.", "Es sind 12."),
        ("1.200,50 €", "Das macht 1200,50 €.", "Das macht 1200 €."),
        ("5 %", "The fee is 5%.", "The fee is 50%."),
        ("3 Stück", "Es sind 3 Stück.", "Es sind 4 Stück."),
        ("2 Mio. €", "The fund has 2 million euros.", "The fund has 2 euros."),
        ("1,200.50 USD", "You owe $1,200.50.", "You owe $1,200.05."),
        ("12 months", "It runs for 12 months.", "It runs for 10 months."),
    ],
)
def test_an_expected_number_may_have_a_unit(
    typed: str, right: str, wrong: str, command: Command, tmp_path: Path, write_rows: Write
) -> None:
    (tmp_path / "golden.csv").write_text(f'id;question;expected_numbers\nq1;How much?;"{typed}"\n')
    write_rows("golden.jsonl", {"id": "q1", "question": "How much?", "expected_numbers": typed})
    write_rows("log.jsonl", *({"id": "q1", "answer": reply, "tools_used": []} for reply in (right, wrong)))
    for golden in ("golden.csv", "golden.jsonl"):
        done = command("score", "log.jsonl", "--questions", golden, "--json")
        assert done.code == 0, done.err
        qualities = [result["components"]["response_quality"]["score"] for result in done.document["results"]]
        assert qualities == [1.0, 0.0], golden


@pytest.mark.parametrize("typed", ["5-6", "3 or 4", "5:30", "2024-08-01", "about five or so"])
def test_an_expected_number_that_is_none_is_refused_with_the_remedy(
    typed: str, command: Command, write_rows: Write
) -> None:
    write_rows("golden.jsonl", {"question": "How much?", "expected_numbers": [typed]})
    done = command("lint", "golden.jsonl")
    assert done.code == 2
    assert "5..6" in done.out
    assert "expected_dates" in done.out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("questions.txt", "Where is the shop?\nHow do I return an item, and when?\nWho, then, pays?\n"),
        ("questions.txt", "How do I pay, please?\n"),
        ("questions.md", "# Shop\n- Where is it?\n- When, exactly, is it open?\n"),
        ("questions.yaml", "- Where is it?\n- When is it open?\n"),
    ],
)
def test_a_list_of_questions_is_imported_first(
    name: str, text: str, command: Command, tmp_path: Path, write_rows: Write
) -> None:
    (tmp_path / name).write_text(text)
    write_rows("log.jsonl", {"question": "Where is it?", "answer": "Here."})
    for arguments in (
        ("run", name, "--target", "demo"),
        ("lint", name),
        ("score", name),
        ("score", "log.jsonl", "--questions", name),
    ):
        done = command(*arguments)
        assert done.code == 2, arguments
        assert f"answerkey import list {name} -o golden.jsonl" in done.out + done.err, arguments
    assert command("import", "list", name, "-o", "golden.jsonl").code == 0


def test_a_web_page_is_no_log(command: Command, tmp_path: Path) -> None:
    (tmp_path / "log.html").write_text("<!doctype html>\n<p>Hello, world</p>\n")
    done = command("score", "log.html")
    assert done.code == 2
    assert "is a web page" in done.err


@pytest.mark.parametrize("chosen", [("--where", "category=place"), ("--sample", "2", "--seed", "3")])
def test_rescore_with_another_golden_set_keeps_to_the_questions_of_the_run(
    chosen: tuple[str, ...], command: Command, write_rows: Write, tmp_path: Path
) -> None:
    (tmp_path / "bot.py").write_text(
        "def answer(question):\n    return {'answer': 'In Oslo', 'tools_used': []}\n"
    )
    rows = [
        {"id": f"q{i}", "question": f"Where is {i}?", "category": ("place", "time")[i % 2]} for i in range(4)
    ]
    write_rows("golden.jsonl", *({**row, "expected_keywords": ["Oslo"]} for row in rows))
    first = command(
        "run", "golden.jsonl", "--target", "bot.py:answer", *chosen, "--name", "one", "--json"
    ).document
    # Another question in front would shift a sample.
    new = {"id": "new", "question": "Who?", "expected_keywords": ["Ann"]}
    write_rows("other.jsonl", new, *({**row, "expected_keywords": ["Bergen"]} for row in rows))
    again = command("rescore", "one", "--questions", "other.jsonl", "--json").document
    assert [result["id"] for result in again["results"]] == [result["id"] for result in first["results"]]
    assert (again["summary"]["questions"], again["summary"]["coverage"]) == (2, 1.0)
    assert {result["components"]["response_quality"]["score"] for result in again["results"]} == {0.0}
    # What the run did not ask is not in it; a golden set without any of its questions is refused.
    write_rows("strange.jsonl", new)
    assert command("rescore", "one", "--questions", "strange.jsonl").code == 2


@pytest.mark.parametrize(
    "reply",
    [
        "x",
        "The bike costs $420 and comes from Oslo in 30 days.",
        "I can help with Orders, Returns and the Company.",
    ],
)
def test_lint_finds_nothing_in_the_golden_set_of_init(reply: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(f"def answer(question):\n    return {{'answer': {reply!r}}}\n")
    assert command("init", "--target", "bot.py:answer").code == 0
    done = command("lint")
    assert (done.code, done.out) == (0, "no findings in 3 questions\n")


GERMAN_GOLDEN = (
    {
        "id": "1",
        "question": "Wo ist das Büro?",
        "expected_tools": ["karte"],
        "expected_keywords": ["Hauptstraße 5"],
    },
    {
        "id": "2",
        "question": "Was kostet es?",
        "expected_tools": ["preise"],
        "expected_keywords": ["1.200,50"],
    },
)
GERMAN_ROWS = (
    {"id": "1", "question": "Wo ist das Büro?", "answer": "In der Hauptstraße 5.", "tools_used": ["karte"]},
    {"id": "2", "question": "Was kostet es?", "answer": "Es kostet 1200,50 €.", "tools_used": ["preise"]},
)
GERMAN_TABLE = (
    "id;question;answer;tools_used;latency_ms\r\n"
    '1;Wo ist das Büro?;"In der Hauptstraße 5.";karte;"120,5"\r\n'
    "2;Was kostet es?;Es kostet 1.200,50 €.;preise;1.250,5\r\n"
)


@pytest.mark.parametrize(
    "content",
    [
        ("\ufeff" + GERMAN_TABLE).encode(),
        GERMAN_TABLE.encode("cp1252"),
        GERMAN_TABLE.encode("utf-16"),
        ("sep=;\r\n" + GERMAN_TABLE).encode(),
        ("\r\n" + GERMAN_TABLE.replace("\r\n", "\r\n\r\n")).encode(),
        GERMAN_TABLE.replace("\r\n", ";;\r\n").encode(),
        (GERMAN_TABLE + ";;;;\r\n" * 3).encode(),
        GERMAN_TABLE.replace("question;answer;tools_used", "Frage;Antwort;Werkzeuge").encode(),
        GERMAN_TABLE.replace(
            "id;question;answer;tools_used", "ID ; Question ; Answer ; Tools Used "
        ).encode(),
    ],
    ids=["bom", "cp1252", "utf-16", "sep", "empty-lines", "trailing", "empty-rows", "german", "spaces"],
)
def test_tables_as_a_spreadsheet_saves_them(
    content: bytes, command: Command, write_rows: Write, tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GERMAN_GOLDEN)
    (tmp_path / "log.csv").write_bytes(content)
    document = command("score", "log.csv", "--questions", "golden.jsonl", "--json").document
    assert (document["summary"]["score"], document["summary"]["coverage"]) == (1.0, 1.0)
    if b"latency" in content or content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        assert [result["reply"]["latency_ms"] for result in document["results"]] == [120.5, 1250.5]


def _renamed(**names: str) -> str:
    rows = ({names.get(name, name): value for name, value in row.items()} for row in GERMAN_ROWS)
    return "\n".join(map(json.dumps, rows))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("commas.jsonl", ",\n".join(map(json.dumps, GERMAN_ROWS)) + ",\n"),
        ("array.jsonl", json.dumps(GERMAN_ROWS)),
        ("pretty.jsonl", "\n".join(json.dumps(row, indent=2) for row in GERMAN_ROWS)),
        ("python.jsonl", "\n".join(map(str, GERMAN_ROWS))),
        ("nan.jsonl", "\n".join(json.dumps({**row, "latency_ms": float("nan")}) for row in GERMAN_ROWS)),
        ("crlf.jsonl", "\ufeff" + "\r\n\r\n".join(map(json.dumps, GERMAN_ROWS)) + "\r\n\r\n"),
        ("array.json", json.dumps(GERMAN_ROWS, indent=2)),
        ("wrapped.json", json.dumps({"exported": "2024-05-01", "replies": GERMAN_ROWS})),
        ("by_id.json", json.dumps({row["id"]: {**row, "id": row["id"]} for row in GERMAN_ROWS})),
        ("question_id.jsonl", _renamed(id="question_id")),
        ("capitals.jsonl", _renamed(id="ID", question="Question", answer="Answer", tools_used="Tools Used")),
        (
            "typed.jsonl",
            "\n".join(
                json.dumps({**row, "id": None, "question": text})
                for row, text in zip(GERMAN_ROWS, ("WO ist das büro", "Was kostet es ?"), strict=True)
            ),
        ),
        (
            "chats.json",
            json.dumps(
                {
                    "conversations": [
                        {
                            "id": f"chat {row['id']}",
                            "messages": [
                                {"role": "user", "content": row["question"]},
                                {"role": "assistant", "content": row["answer"]},
                            ],
                            "tools_used": row["tools_used"],
                        }
                        for row in GERMAN_ROWS
                    ]
                }
            ),
        ),
    ],
)
def test_json_as_programs_and_people_write_it(
    name: str, text: str, command: Command, write_rows: Write, tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GERMAN_GOLDEN)
    (tmp_path / name).write_bytes(text.encode())
    done = command("score", name, "--questions", "golden.jsonl", "--json")
    assert done.code == 0, done.err
    summary = done.document["summary"]
    assert (summary["score"], summary["replies"], summary["coverage"]) == (1.0, 2, 1.0)


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("chat.txt", "User: Wo ist das Büro?\nBot: Hauptstraße 5\n", "write one object a line"),
        (
            "chat.txt",
            "[01.02.24, 10:11] Anna: Wo ist das Büro?\n[01.02.24, 10:12] Bot: Da\n",
            "one object a line",
        ),
        ("app.log", '2024-01-01 INFO {"id": "1"}\n2024-01-01 INFO {"id": "2"}\n', "write one object a line"),
        (
            "turns.json",
            '[{"role": "user", "content": "Wo?"}, {"role": "assistant", "content": "Da"}]',
            '"messages"',
        ),
        ("turns.csv", "conversation,role,content\nc1,user,Wo?\nc1,assistant,Da\n", '"messages"'),
    ],
)
def test_what_is_no_log_says_what_to_write(
    name: str, text: str, remedy: str, command: Command, write_rows: Write, tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GERMAN_GOLDEN)
    (tmp_path / name).write_text(text)
    done = command("score", name, "--questions", "golden.jsonl")
    assert done.code == 2
    assert remedy in done.err


def test_a_field_that_seems_to_list_the_tools_is_named(
    command: Command, write_rows: Write, tmp_path: Path
) -> None:
    write_rows("golden.jsonl", *GERMAN_GOLDEN)
    (tmp_path / "log.jsonl").write_text(_renamed(tools_used="tools"))
    score = ("score", "log.jsonl", "--questions", "golden.jsonl")
    warnings = command(*score, "--json").document["warnings"]
    assert "if tools lists the tools that a reply used, add --map tools_used=tools" in warnings
    mapped = command(*score, "--map", "tools_used=tools", "--json").document
    assert mapped["summary"]["score"] == 1.0


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("commas.jsonl", '{"question": "Who?", "expected_keywords": ["a1"]},\n', [["a1"]]),
        ("python.jsonl", "{'question': 'Who?', 'expected_keywords': ['a1']}\n", [["a1"]]),
        ("by_id.json", '{"q1": {"question": "Who?", "expected_keywords": ["a1"]}}', [["a1"]]),
        (
            "german.csv",
            "\ufeffFrage;Stichwörter\r\nWer?;Anna, Bo\r\nWo?;Oslo;\r\n;;\r\n",
            [["Anna", "Bo"], ["Oslo"]],
        ),
        ("title.csv", "\n\nQuestions for our bot\n\nquestion,keywords\nWho?,Ann\n", [["Ann"]]),
    ],
)
def test_golden_sets_as_people_write_them(
    name: str, text: str, expected: list[list[str]], command: Command, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert keywords_in(command, name) == expected


def test_another_sheet_with_questions_is_named(command: Command, tmp_path: Path) -> None:
    head = ["Question", "Keywords"]
    write_workbook(
        tmp_path / "golden.xlsx", {"May": [head, ["Who?", "Ann"]], "June": [head, ["Where?", "Oslo"]]}
    )
    lint = command("lint", "golden.xlsx")
    assert (
        "not the sheet 'June' with the same columns, to be named as golden.xlsx#June" in lint.err + lint.out
    )
    assert keywords_in(command, "golden.xlsx#June") == [["Oslo"]]


def test_cells_that_programs_leave_and_lists_that_are_texts_are_named(
    command: Command, tmp_path: Path, write_rows: Write
) -> None:
    (tmp_path / "golden.csv").write_text(
        "question;expected_keywords;answerable\nWho?;nan;WAHR\nWhere?;Oslo;nein\n"
    )
    found = command("lint", "golden.csv", "--json").document["findings"]
    assert [finding["line"] for finding in found if finding["code"] == "placeholder"] == [2]
    write_rows("golden.jsonl", {"question": "Who?", "expected_keywords": "Ann"})
    assert 'write ["Ann"]' in command("lint", "golden.jsonl").out
