"""Logs follow the rules of `run`: texts that are missing, bad rows, copies, mappings, and where a row comes from."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.transcripts.recorded_rows import propose_maps

CHATS = [
    {
        "chat_id": f"c{number}",
        "user_message": f"What is {number % 20}?",
        "bot_message": f"It is {number % 20}.",
        "needs_fn": "look_up",
        "fns": ["look_up"],
    }
    for number in range(60)
]
MAPPED = ("--map", "question=user_message", "--map", "answer=bot_message")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_rows: Callable[..., Path]) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_rows("log.jsonl", *CHATS)


@pytest.mark.parametrize("more", [(), ("--map", "tools_used=fns"), ("-o", "x.html"), ("--json",)])
def test_a_log_without_any_reply_text_is_not_graded(log: Path, command: Any, more: tuple[str, ...]) -> None:
    done = command("score", "log.jsonl", "--map", "question=user_message", *more)
    assert done.code == 3
    assert "log.jsonl:1: has no reply text (the row has chat_id, bot_message, needs_fn" in done.err
    assert "--map answer=bot_message (none of 60 rows has one; nothing was graded)" in done.err
    assert done.out == ""
    assert not Path("x.html").exists()


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("frage", "antwort"),
        ("Pregunta", "Respuesta"),
        ("domanda", "risposta"),
        ("pergunta", "resposta"),
        ("vraag", "antwoord"),
        ("Fråga", "Svar"),
        ("pytanie", "odpowiedz"),
        ("Spørgsmål", "Svar"),
        ("question", "reponse"),
    ],
)
def test_a_map_is_proposed_for_names_of_other_languages(asked: str, answered: str) -> None:
    question = "Wie hoch ist die Miete der Wohnung A im Mai dieses Jahres?"
    row = {asked: question, "notiz": f"{question} {question}", answered: "1200 Euro", "werkzeuge": "db"}
    assert propose_maps(row).endswith(f"--map answer={answered}")
    if asked != "question":
        assert f"--map question={asked} " in propose_maps(row)
    assert propose_maps({"id": "a", asked: question}) == "write for example --map answer=FIELD"


def test_null_replies_and_errors_are_the_chatbots(tmp_path: Path, command: Any, write_rows: Any) -> None:
    log = write_rows("log.jsonl", {"id": "a", "answer": None}, {"id": "b", "error": "Connection refused"})
    document = command("score", str(log), "--json").document
    assert document["summary"]["errors"] == {"connection": 1, "null": 1}


def test_a_log_in_which_most_rows_lack_a_text_says_so(log: Path, command: Any, write_rows: Any) -> None:
    rows = [
        {**row, "answer": row["bot_message"]} if place % 3 == 0 else row for place, row in enumerate(CHATS)
    ]
    write_rows("log.jsonl", *rows)
    document = command("score", "log.jsonl", "--map", "question=user_message", "--json").document
    [said] = [line for line in document["warnings"] if "no reply text" in line]
    assert said.startswith("40 of 60 rows have no reply text and count as errors; log.jsonl:2: ")
    assert said.endswith("write for example --map answer=bot_message")


@pytest.mark.parametrize("place", [0, 1, 5])
@pytest.mark.parametrize("bad", ["[1, 2]", "{broken", "7"])
@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_a_bad_row_near_the_top_does_not_stop_a_log(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch, place: int, bad: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for mapped in (False, True):
        rows = [{"question": row["user_message"], "answer": row["bot_message"]} for row in CHATS]
        lines = [json.dumps(row) for row in (CHATS if mapped else rows)]
        lines.insert(place, bad)
        content = "\n".join(lines).encode()
        Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        document = command("score", name, *(MAPPED if mapped else ()), "--json").document
        assert document["summary"]["trials"] == 60
        [written] = Path("log.bad.jsonl").read_text().splitlines()
        assert json.loads(written)["line"] == place + 1


@pytest.mark.parametrize("golden", [(), ("--questions", "golden.jsonl")])
def test_rows_without_a_question_name_their_fields_and_the_maps_to_write(
    log: Path, command: Any, write_rows: Any, golden: tuple[str, ...]
) -> None:
    write_rows("golden.jsonl", {"question": "Where?", "expected_keywords": ["Montrose"]})
    done = command("score", "log.jsonl", *golden)
    assert done.code == 2
    assert done.err.strip() == (
        "answerkey: log.jsonl:1: has neither 'id' nor 'question' (the row has chat_id, user_message, bot_message, "
        "needs_fn, fns); write for example --map question=user_message --map answer=bot_message "
        "(none of 60 rows can be scored)"
    )


def test_a_single_name_is_mapped_as_a_list_of_one(log: Path, command: Any) -> None:
    maps = (*MAPPED, "--map", "expected_tools=needs_fn", "--map", "tools_used=fns[0]")
    document = command("score", "log.jsonl", *maps, "--json").document
    assert document["summary"]["components"]["tool_usage"] == 1.0
    assert [part["name"] for part in document["slices"]["tools"]] == ["look_up"]


def test_a_mapping_that_no_row_fits_is_found_before_the_file_is_read(
    log: Path, command: Any, write_rows: Any
) -> None:
    write_rows("log.jsonl", *({**row, "kw": {"a": 1}} for row in CHATS for _ in range(500)))
    done = command("score", "log.jsonl", *MAPPED, "--map", "expected_keywords=kw")
    assert done.code == 2
    # The message counts no rows: it comes before they were read.
    assert done.err.strip() == "answerkey: log.jsonl:1: 'expected_keywords' must be a list, not an object"


def test_exact_copies_are_counted_and_reported(log: Path, command: Any, write_rows: Any) -> None:
    write_rows("log.jsonl", *CHATS, *CHATS[:7], CHATS[0])
    document = command("score", "log.jsonl", *MAPPED, "--json").document
    assert document["summary"]["trials"] == 68
    [said] = [line for line in document["warnings"] if "copies" in line]
    assert said.startswith("8 of 68 rows are exact copies of another row; all are counted.")
    write_rows("log.jsonl", *CHATS)
    assert not [
        line
        for line in command("score", "log.jsonl", *MAPPED, "--json").document["warnings"]
        if "copies" in line
    ]


def test_a_stored_log_keeps_lines_and_columns(log: Path, command: Any) -> None:
    keep = ("--keep", "chat_id", "--name", "november")
    assert command("score", "log.jsonl", *MAPPED, *keep, "-o", "new.csv").code == 0
    assert command("rescore", "november", "--match", "literal").code == 0
    results = command("show", "november", "--json").document["results"]
    assert sorted((row["line"], row["columns"]["chat_id"]) for row in results) == [
        (number + 1, f"c{number}") for number in range(60)
    ]
    assert command("report", "november", "-o", "old.csv", "-o", "old.html").code == 0
    assert "chat_id" in Path("old.csv").read_text().splitlines()[0]
    assert "line 1, chat_id c0" in Path("old.html").read_text()
    shown = command("show", "november", "--question", results[0]["id"]).out
    assert "chat_id c0" in " ".join(shown.split())


@pytest.mark.parametrize("separator", [b"", b"\n" * 2])
def test_a_packed_line_without_end_is_refused(command: Any, tmp_path: Path, separator: bytes) -> None:
    packed = b'{"id": "q", "answer": "' + b"x" * (300 << 20) + separator + b'"}'
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(packed, 1))
    outcome = command("score", "log.jsonl.gz")
    assert outcome.code == 2
    assert "unpacks to more than 256 MB" in outcome.err


def test_an_empty_cell_of_tools_says_that_none_was_used(command: Callable[..., Any], tmp_path: Path) -> None:
    """The same log has one score as a table and as JSON Lines."""
    Path("golden.jsonl").write_text(
        '{"id": "a", "question": "Rent?", "expected_tools": ["query"]}\n'
        '{"id": "b", "question": "Hello?", "tools": "none"}\n'
        '{"id": "c", "question": "Bye?", "tools": "none"}\n'
    )
    Path("log.csv").write_text("id,answer,tools_used\na,It is $5.,query\nb,Hello!,\nc,Bye!,none\n")
    Path("log.jsonl").write_text(
        '{"id": "a", "answer": "It is $5.", "tools_used": ["query"]}\n'
        '{"id": "b", "answer": "Hello!", "tools_used": []}\n'
        '{"id": "c", "answer": "Bye!", "tools_used": []}\n'
    )
    table, lines = (
        command("score", name, "--questions", "golden.jsonl", "--json").document["summary"]
        for name in ("log.csv", "log.jsonl")
    )
    assert (table["score"], table["coverage"]) == (lines["score"], lines["coverage"]) == (1.0, 1.0)


def test_a_table_that_answerkey_wrote_can_be_scored(command: Any, tmp_path: Path) -> None:
    """The cells of its column "trial" are text."""
    Path("golden.csv").write_text("id,question,expected_keywords\na,Rent?,1200\n")
    Path("t.csv").write_text(
        "id,trial,question,expected_keywords,answer\na,1,Rent?,1200,1200\na,2.0,Rent?,1200,12\n"
    )
    done = command("score", "t.csv", "--json", "-o", "x.csv")
    assert done.code == 0
    again = command("score", "x.csv", "--questions", "golden.csv", "--json", "-o", "y.jsonl")
    assert (again.code, again.document["summary"]["score"]) == (0, done.document["summary"]["score"])
    assert [json.loads(line)["trial"] for line in Path("y.jsonl").read_text().splitlines()] == [1, 2]
    Path("t.csv").write_text("id,trial,question,answer\na,one,Rent?,1200\n")
    assert "'trial' must be a whole number" in command("score", "t.csv").err


@pytest.mark.parametrize(
    ("cell", "latency"),
    [
        *[("350", 350), ("350 ms", 350), ("1.2s", 1200), ("1e3", 1000)],
        *[("1,350", 1350), ("1.350,5", 1350.5), ("1,350.5 s", 1_350_500)],
        # Decimals in one country, thousands in another; and what is no time.
        *[("1,350 s", None), ("0,350", None), ("-5", None), ("fast", None), ("2 min", None), ("50%", None)],
    ],
)
def test_latencies_in_a_table_are_read_or_counted(
    command: Any, tmp_path: Path, cell: str, latency: float | None
) -> None:
    Path("t.csv").write_text(f'id,question,answer,latency_ms\na,Rent?,1200,"{cell}"\nb,Due?,May,\n')
    done = command("score", "t.csv", "--json", "-o", "x.jsonl")
    assert json.loads(Path("x.jsonl").read_text().splitlines()[0])["reply"]["latency_ms"] == latency
    unread = f"latency_ms of 1 row not read ({cell!r})"
    assert any(unread in line for line in done.document["warnings"]) == (latency is None)


def test_an_expectation_is_not_proposed_as_the_reply(command: Any, write_rows: Any) -> None:
    write_rows(
        "golden.jsonl",
        {"id": "a", "question": "Where?", "expected_keywords": [{"text": "Montrose, Colorado"}]},
    )
    done = command("score", "golden.jsonl")
    assert done.code == 3
    assert "this looks like a golden set" in done.err
    assert "--map answer=expected_keywords" not in done.err
