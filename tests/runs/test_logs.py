"""Scored logs: blocks in any order, processes, bad rows, resuming, stored logs."""

import csv
import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest

from answerkey.errors import InputError, InterruptedRunError
from answerkey.model.options import Scoring
from answerkey.model.run import LoggedResults, Run, Summary
from answerkey.model.tally import AlikeTrials, Tally, summarise
from answerkey.protocols import Progress, RunningScore
from answerkey.report.result_files import write_report
from answerkey.runs.api import score_replies
from answerkey.runs.log_files import Block, LogBlocks
from answerkey.runs.log_rows import BlockScorer, LogPlan
from answerkey.runs.log_table import LogTable
from answerkey.runs.logs import LogScoring
from answerkey.runs.workers import ProcessPool
from answerkey.scorers.grader import make_grader


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def rows(count: int, questions: int = 7) -> list[dict[str, Any]]:
    chosen = random.Random(5)
    return [
        {
            "id": f"q{n % questions}",
            "question": f"What is the rent of unit {n % questions}?",
            "category": "AB"[n % 2],
            "group": f"g{n % questions // 3}" if n % questions > 3 else None,
            "expected_tools": ["db"],
            "expected_keywords": [str(1000 + n % questions), "rent"],
            "answer": chosen.choice(
                [
                    f"The rent is ${1000 + n % questions:,}.",
                    "I do not know the rent.",
                    "Something went wrong.",
                ]
            ),
            "tools_used": chosen.choice([["db"], [], ["web", "db"]]),
            "latency_ms": round(chosen.uniform(5, 900), 1),
            "usage": {"input_tokens": n, "cost": chosen.random()},
        }
        for n in range(count)
    ]


def plan_and_blocks(log: list[dict[str, Any]], sizes: Iterator[int]) -> tuple[LogPlan, list[Block]]:
    blocks, first = list[Block](), 0
    while first < len(log):
        some = log[first : first + next(sizes)]
        lines = "".join(json.dumps(row) + "\n" for row in some).encode()
        blocks.append(Block(number=len(blocks), first=first, path="log", line=first, lines=lines))
        first += len(some)
    return LogPlan(recipe=make_grader().recipe, pass_mark=0.7), blocks


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_blocks_of_any_size_in_any_order_give_one_summary(seed: int) -> None:
    log = rows(200)
    whole_plan, whole_blocks = plan_and_blocks(log, iter([1000]))
    expected = put_together(whole_plan, whole_blocks, random.Random(0))
    chosen = random.Random(seed)
    plan, blocks = plan_and_blocks(log, iter(lambda: chosen.randrange(1, 40), 0))
    assert put_together(plan, blocks, chosen) == expected


def put_together(plan: LogPlan, blocks: list[Block], chosen: random.Random) -> Any:
    chosen.shuffle(blocks)
    table, tally = LogTable(), Tally(plan.pass_mark)
    for block in blocks:
        part = BlockScorer(plan, make_grader()).score(block)
        table.add(part)
        tally.merge(part.summary.tally)
    for some in table.questions():
        if isinstance(some, AlikeTrials):
            tally.add_single_trials(some)
            continue
        for totals in some:
            tally.add_question(totals)
    return tally.summary(None)


_CALLED = {"tools_used": None, "tool_calls": [{"name": "query_database", "duration_ms": 12.5}]}


@pytest.mark.parametrize("kept", ["trials", "nothing"])
@pytest.mark.parametrize("beside", [{}, {"group": "all"}, _CALLED], ids=["plain", "grouped", "timed calls"])
def test_a_log_is_summed_up_as_a_run_is(write_rows: Any, beside: dict[str, Any], kept: Any) -> None:
    log = [row | (beside if n % 3 else {}) for n, row in enumerate(rows(150))]
    run = score_replies(path := write_rows("log.jsonl", *log))
    if kept == "nothing":
        assert score_replies(path, how=LogScoring(results=kept)).summary == run.summary
    assert run.summary.error_interval is not None
    by_question = sorted(run.results, key=lambda trial: (int(trial.question.id[1:]), trial.number))
    assert plain(run.summary) == plain(summarise(by_question, planned=150))
    assert [trial.number for trial in by_question if trial.question.id == "q0"] == list(range(1, 23))


def plain(summary: Summary) -> Any:
    return json.loads(msgspec.json.encode(summary))


def test_several_processes_give_the_same_document(write_rows: Any) -> None:
    log = write_rows("log.jsonl", *rows(300))
    one, two = (document(score_replies(log, how=LogScoring(processes=count))) for count in (1, 2))
    assert one == two


@pytest.mark.parametrize(
    "scoring",
    [
        Scoring(),
        Scoring(match="literal", tool_mode="f1"),
        Scoring(match="smart"),
        Scoring(weights={"response_quality": 0.5, "tool_partial": 0.5}),
    ],
    ids=["standard", "literal", "smart", "other weights"],
)
def test_a_summary_alone_is_that_of_all_results(write_rows: Any, scoring: Scoring) -> None:
    odd = [
        {"id": "no text", "answer": None, "expected_keywords": ["a"]},
        {"id": "forbidden", "question": "Who?", "answer": "Ann", "forbidden_keywords": ["ann"]},
        {"id": "reference", "question": "Who?", "answer": "It was Ann.", "reference_answer": "Ann"},
        {
            "id": "arguments",
            "question": "Who?",
            "answer": "Ann",
            "expected_tools": [{"name": "db", "arguments": {"a": 1}}],
        },
        {
            "id": "calls",
            "answer": "Fine.",
            "tool_calls": [{"name": "db", "arguments": {"a": 1}, "duration_ms": 3.5}],
        },
        {"id": "sources", "answer": "Yes [1].", "sources": ["a", "a"], "relevant_documents": ["a"]},
        {"id": "checks", "answer": "Yes", "checks": [{"contains": "no"}]},
        {"id": "error", "answer": None, "error": "TimeoutError: too late", "latency_ms": 3},
        {"id": "umlaut", "answer": "Die Miete beträgt 1.200 €.", "expected_keywords": ["1200", "miete"]},
    ]
    log = write_rows("log.jsonl", *rows(60), *odd)
    kept, summed = (
        score_replies(log, scoring=scoring, how=LogScoring(results=kept)) for kept in ("trials", "nothing")
    )
    assert summed.summary == kept.summary
    lowest = sorted(
        (-1.0 if trial.scorecard.total is None else trial.scorecard.total) for trial in kept.results
    )
    assert isinstance(summed.results, LoggedResults)
    assert [trial.scorecard.total for trial in summed.results.worst] == lowest[:20]
    with pytest.raises(InputError, match="were not stored"):
        list(summed.results)


def document(run: Run) -> Any:
    found = run.to_dict()
    del found["run"]["created_at"], found["run"]["finished_at"]
    return found


def test_bad_rows_go_to_a_side_file_and_count_against_coverage(command: Any, write_rows: Any) -> None:
    fine = rows(3)
    empty = {**fine[0], "expected_keywords": [""]}
    write_rows("log.jsonl", fine[0], "{broken", fine[1], "[1]", fine[2], empty)
    done = command("score", "log.jsonl", "--json")
    assert done.code == 0
    assert len(done.document["results"]) == 3
    assert done.document["summary"]["coverage"] == 0.5
    assert any("3 rows could not be scored" in line for line in done.document["warnings"])
    bad = [json.loads(line) for line in Path("log.bad.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in bad] == [
        ("log.jsonl", 2),
        ("log.jsonl", 4),
        ("log.jsonl", 6),
    ]
    assert bad[0]["row"] == "{broken"
    assert "expected an object, got a list" in bad[1]["reason"]
    assert "is empty" in bad[2]["reason"]
    assert command("score", "log.jsonl", "--gate", "score >= 0").code == 1


def test_bad_rows_of_a_kind_have_one_reason_and_all_of_them_one_line(command: Any, write_rows: Any) -> None:
    write_rows("golden.jsonl", {"id": "a", "question": "Who?", "expected_keywords": ["Ann"]})
    wrong = ('{"id": "a", ' + " " * n + '"latency_ms": nope}' for n in range(30))
    unknown = ({"id": f"it's; check --questions {n}", "answer": "Ann"} for n in range(40))
    write_rows("log.jsonl", {"id": "a", "answer": "Ann"}, *wrong, *unknown)
    found = command("score", "log.jsonl", "--questions", "golden.jsonl", "--json").document
    assert found["summary"]["unscored"] == {
        "bad row: the golden set has no question with its id; check --questions": 40,
        "bad row: not valid JSON: JSON is malformed: invalid character": 30,
    }
    (told,) = (line for line in found["warnings"] if not line.startswith("coverage"))
    assert told == (
        "70 rows could not be scored and count against coverage: the golden set has no question with its id; "
        "check --questions (40) · not valid JSON: JSON is malformed: invalid character (30); "
        "they are in log.bad.jsonl with line and reason"
    )
    bad = [json.loads(line)["reason"] for line in Path("log.bad.jsonl").read_text().splitlines()]
    assert len(set(bad)) == 70


@pytest.mark.parametrize("first", [False, True], ids=["behind others", "first"])
@pytest.mark.parametrize("field", ["x", "tool_calls", "messages"])
def test_a_row_that_is_nested_too_deeply_is_a_bad_row(
    command: Any, folder: Path, write_rows: Any, field: str, first: bool
) -> None:
    fine = [{**row, "x": 1} for row in rows(20)]
    deep = f'{{"id": "deep", "answer": "Yes.", "{field}": {"[" * 1100}{"]" * 1100}}}'
    write_rows("log.jsonl", *([deep, *fine] if first else [*fine, deep]), "[" * 100_000)
    done = command("score", "log.jsonl", "--json")
    assert (done.code, done.document["summary"]["replies"]) == (0, 20)
    told = [json.loads(line) for line in (folder / "log.bad.jsonl").read_text().splitlines()]
    assert [row["line"] for row in told] == [1 if first else 21, 22]
    assert {row["reason"] for row in told} == {"nested too deeply"}


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_cut_off_archive_loses_only_what_is_cut_off(command: Any, folder: Path, ending: str) -> None:
    chosen = random.Random(3)
    text = "".join(
        json.dumps({**row, "answer": chosen.randbytes(100).hex()}) + "\n" for row in rows(3000)
    ).encode()
    packed = gzip.compress(text) if ending == "gz" else pyarrow.compress(text, codec="zstd", asbytes=True)
    (folder / f"log.jsonl.{ending}").write_bytes(packed[: len(packed) // 2])
    done = command("score", f"log.jsonl.{ending}", "--json")
    assert done.code == 0
    # zstd packs 128 kB at a time, which are there whole or not at all.
    blocks = len(text) // 2 // 131072 * 131072 if ending == "zst" else 0
    assert max(text[:blocks].count(b"\n"), 1200) <= len(done.document["results"]) < 1700
    told = [json.loads(line) for line in (folder / "log.bad.jsonl").read_text().splitlines()]
    missing = "the file is truncated; the amount of missing data is unknown"
    assert missing in told[-1]["reason"]
    assert told[-1]["line"] is None
    assert any(missing in line for line in done.document["warnings"])
    assert done.document["summary"]["coverage"] < 1


def test_a_damaged_file_among_others_goes_to_the_side_file(
    command: Any, folder: Path, write_rows: Any
) -> None:
    write_rows("a.jsonl", *rows(5))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b'{"id": "x"}')[:20])
    (folder / "c.json").write_text('[{"id": "y", "answer": "Yes."},\n {"id": ]')
    done = command("score", "a.jsonl", "b.jsonl.gz", "c.json", "--json")
    assert (done.code, done.document["summary"]["replies"]) == (0, 5)
    told = [json.loads(line) for line in (folder / "a.bad.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"]) for row in told] == [("b.jsonl.gz", None), ("c.json", 2)]
    assert "truncated" in told[0]["reason"]
    assert command("score", "b.jsonl.gz").code == 2


def told_of(folder: Path) -> list[tuple[int | None, str]]:
    lines = (folder / "log.bad.jsonl").read_text().splitlines()
    return [(row["line"], row["reason"]) for row in map(json.loads, lines)]


RAGGED = 'id,question,answer,tool_calls\n1,Who?,Ann,\n2,Who?,Ann,,,6\n3,Who?,Bob,\n4,Who?,Bob,[{\n5,Who?,"B"ob,\n6,Who?,Bob,\n'


def test_bad_rows_of_a_table_go_to_the_side_file(command: Any, folder: Path) -> None:
    (folder / "log.csv").write_text(RAGGED)
    done = command("score", "log.csv", "--json")
    assert (done.code, [row["id"] for row in done.document["results"]]) == (0, ["1", "3", "6"])
    told = dict(told_of(folder))
    assert sorted(map(str, told)) == ["3", "5", "6"]
    assert "6 cells where the header has 4" in told[3]
    assert "'tool_calls' is not valid JSON" in told[5]
    assert "not valid CSV" in told[6]
    assert done.document["summary"]["coverage"] == 0.5
    # A golden set must be right.
    outcome = command("lint", "log.csv")
    assert (outcome.code, "log.csv:3: error unreadable 6 cells" in outcome.out) == (2, True)


def test_an_empty_cell_is_an_empty_reply_as_in_json(command: Any, folder: Path) -> None:
    Path("golden.jsonl").write_text('{"id": "a", "question": "Who?", "expected_keywords": ["Ann"]}\n')
    Path("log.csv").write_text("id,reply,note\na,,x\na,Ann,y\n")
    found = command("score", "log.csv", "--questions", "golden.jsonl", "--json").document
    assert [result["error"] and result["error"]["kind"] for result in found["results"]] == ["empty", None]


@pytest.mark.parametrize("held", ["%s", '{"replies": %s}'], ids=["list", "under a key"])
def test_bad_items_of_a_list_go_to_the_side_file(command: Any, folder: Path, held: str) -> None:
    fine = [{"id": str(n), "question": "Who?", "answer": "Ann"} for n in range(3)]
    (folder / "log.json").write_text(held % json.dumps([fine[0], 5, fine[1], fine[2]]))
    done = command("score", "log.json", "--json")
    assert (done.code, done.document["summary"]["replies"]) == (0, 3)
    assert told_of(folder) == [(None, "item 2: expected an object, got a number")]
    outcome = command("lint", "log.json")
    assert (outcome.code, "item 2: expected an object" in outcome.out) == (2, True)


def test_bad_lines_go_to_the_side_file_with_a_map_too(command: Any, folder: Path, write_rows: Any) -> None:
    fine = {"id": "1", "question": "Who?", "said": "Ann"}
    write_rows("log.jsonl", fine, "{broken", "[1]", {**fine, "id": "2"})
    done = command("score", "log.jsonl", "--map", "answer=said", "--json")
    assert (done.code, done.document["summary"]["replies"]) == (0, 2)
    assert [line for line, _ in told_of(folder)] == [2, 3]


SAID = [
    {"role": "user", "content": "Who?"},
    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "db", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "Ann"},
    {"role": "assistant", "content": "Ann."},
]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_messages_and_sources_as_json_text_are_read(command: Any, folder: Path, ending: str) -> None:
    row = {
        "id": "1",
        "question": "Who?",
        "expected_keywords": ["Ann"] if ending == "jsonl" else "Ann",
        "messages": json.dumps(SAID),
        "sources": '["d1", {"id": "d2"}]',
    }
    if ending == "jsonl":
        (folder / "log.jsonl").write_text(json.dumps(row))
    elif ending == "csv":
        with (folder / "log.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, row)
            writer.writeheader()
            writer.writerow(row)
    else:
        typed = [{**row, "expected_keywords": ["Ann"]}]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(typed), folder / "log.parquet")
    [result] = command("score", f"log.{ending}", "--json").document["results"]
    assert result["reply"]["text"] == "Ann."
    assert [call["name"] for call in result["reply"]["tool_calls"]] == ["db"]
    assert [source["id"] for source in result["reply"]["sources"]] == ["d1", "d2"]
    assert result["error"] is None


@pytest.mark.parametrize("given", ["hello", "[1]", "[" * 2000, '{"role": "user"}', "[{broken"])
def test_a_text_without_messages_is_a_bad_row(
    command: Any, folder: Path, write_rows: Any, given: str
) -> None:
    fine = {"id": "1", "question": "Who?", "answer": "Ann"}
    write_rows("log.jsonl", fine, {"id": "2", "question": "Who?", "messages": given, "latency_ms": 3})
    done = command("score", "log.jsonl", "--json")
    assert (done.code, done.document["summary"]["replies"]) == (0, 1)
    [(line, reason)] = told_of(folder)
    assert (line, "holds no list of messages" in reason) == (2, True)
    # Beside an answer they decide nothing.
    write_rows("log.jsonl", {**fine, "messages": given})
    assert command("score", "log.jsonl", "--json").document["results"][0]["error"] is None


def test_folders_and_patterns(command: Any, folder: Path, write_rows: Any) -> None:
    (folder / "logs" / "part").mkdir(parents=True)
    write_rows("logs/a.jsonl", *rows(4))
    write_rows("logs/part/b.jsonl", *rows(6))
    (folder / "logs" / "_SUCCESS").write_text("")
    assert command("score", "logs", "--json").document["summary"]["replies"] == 10
    assert command("score", "logs/**/*.jsonl", "logs/a.jsonl", "--json").document["summary"]["replies"] == 10
    assert "no file matches" in command("score", "logs/*.parquet").err


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0" + bytes(range(256)) * 20


@pytest.mark.parametrize("content", [PNG, PNG[8:], bytes(9000)], ids=["known", "unknown", "zeros"])
def test_a_binary_file_is_no_log(command: Any, folder: Path, write_rows: Any, content: bytes) -> None:
    (folder / "logs").mkdir()
    write_rows("logs/a.jsonl", *rows(4))
    (folder / "logs" / "chart.dat").write_bytes(content)
    done = command("score", "logs", "--json").document
    assert (done["summary"]["replies"], done["summary"]["coverage"]) == (4, 1.0)
    assert any("chart.dat: is a binary file" in line and "skipped" in line for line in done["warnings"])
    outcome = command("score", "logs/a.jsonl", "logs/chart.dat")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "chart.dat: is a binary file, not text or a table" in outcome.err


def test_text_with_zero_bytes_is_text(command: Any, folder: Path) -> None:
    line = '{"id": "1", "question": "Who?", "answer": "Ann"}\n'
    (folder / "log.jsonl").write_text(line + "\0\n" + line)
    assert command("score", "log.jsonl", "--json").document["summary"]["replies"] == 2
    for encoding in ("utf-16", "utf-16-le"):
        (folder / "log.jsonl").write_bytes((line * 2).encode(encoding))
        assert command("score", "log.jsonl", "--json").document["summary"]["replies"] == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("bogus=answer", "answerkey has no field 'bogus'; use one of id, question"),
        ("anwser=answer", "did you mean 'answer'?"),
        ("answer=[[", "--map answer=[[ is not valid JMESPath"),
    ],
)
def test_a_map_that_means_nothing_is_refused(command: Any, write_rows: Any, given: str, says: str) -> None:
    write_rows("log.jsonl", *rows(2))
    outcome = command("score", "log.jsonl", "--map", given)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert says in outcome.err


def test_half_a_surrogate_pair_in_a_keyword_is_never_a_question_mark(command: Any, folder: Path) -> None:
    fine = '{"id": "1", "question": "Who?", "answer": "Why \\ud83d?", "expected_keywords": ["why"]}'
    bad = '{"id": "2", "question": "Who?", "answer": "Why?", "expected_keywords": ["\\ud83d"]}'
    (folder / "log.jsonl").write_text(f"{fine}\n{bad}\n")
    [result] = command("score", "log.jsonl", "--json").document["results"]
    assert (result["id"], result["reply"]["text"]) == ("1", "Why \ufffd?")
    assert told_of(folder)[0][0] == 2


def test_one_id_for_two_questions_is_told(command: Any, write_rows: Any) -> None:
    write_rows("a.jsonl", {"id": "1", "question": "Who?", "answer": "Ann"})
    write_rows("b.jsonl", {"id": "1", "question": "Where?", "answer": "Rome"})
    done = command("score", "a.jsonl", "b.jsonl", "--json")
    assert len(done.document["results"]) == 2
    assert any("1 id is used for more than one question (1)" in line for line in done.document["warnings"])


class StopsAfter(Progress):
    """Presses Ctrl-C after so many parts, and counts them."""

    def __init__(self, most: int) -> None:
        self.parts, self._most = 0, most

    def advance(self, running: RunningScore) -> None:
        self.parts += 1
        if self.parts == self._most:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("keywords", "expected_keywords"),
        ("Keywords", "expected_keywords"),
        ("expected_keyword", "expected_keywords"),
        ("expected_answer", "reference_answer"),
        ("ground_truth", "reference_answer"),
        ("expected_output", "reference_answer"),
        ("expected_tool", "expected_tools"),
        ("validation_keywords", "expected_keywords"),
    ],
)
def test_a_misnamed_expectation_is_never_a_note(command: Any, write_rows: Any, name: str, meant: str) -> None:
    log = write_rows("log.jsonl", {"id": "a", "question": "Rent?", name: ["1200"], "answer": "It is 13."})
    refused = command("score", log)
    assert refused.code == 2
    assert f"--map {meant}={name}" in refused.err


def test_other_columns_of_a_log_are_its_own_matter(command: Any, write_rows: Any) -> None:
    own = {"reference": "INV-17", "tool": "db", "expected_delivery": "2026-05-01", "keyphrase": "rent"}
    log = write_rows("log.jsonl", {"id": "a", "question": "Rent?", "answer": "It is 13.", **own})
    assert command("score", log).code == 0


def test_questions_are_found_as_others_type_them(command: Any, write_rows: Any) -> None:
    golden = write_rows(
        "golden.jsonl",
        {"id": "agent", "question": "Who is the agent?", "expected_keywords": ["Ann"]},
        {"id": "where", "question": "Where’s it?", "expected_keywords": ["Bern"]},
        {"id": "one", "question": "Same?", "expected_keywords": ["1"]},
        {"id": "two", "question": "same?", "expected_keywords": ["2"]},
    )
    asked = [("who is  the agent? ", "Ann"), ("Where's it?", "Bern"), ("Same?", "1"), ("same?", "2")]
    log = write_rows("log.jsonl", *[{"question": text, "answer": answer} for text, answer in asked])
    scored = command("score", log, "--questions", golden, "--json").document
    assert [row["id"] for row in scored["results"]] == ["agent", "where", "one", "two"]
    assert scored["summary"]["components"]["response_quality"] == 1.0
    replayed = command("run", golden, "--target", f"replay:{log}", "--json").document
    qualities = {row["id"]: row["components"]["response_quality"]["score"] for row in replayed["results"]}
    assert qualities == {"agent": 1.0, "where": 1.0, "one": 1.0, "two": 1.0}


@pytest.mark.parametrize("extra", [{}, {"session": "s"}])
def test_the_text_of_another_question_counts_more_than_an_id(
    command: Any, write_rows: Any, extra: dict[str, Any]
) -> None:
    golden = write_rows(
        "golden.jsonl",
        {"id": "1", "question": "Is parking free?", "expected_keywords": ["free"]},
        {"id": "2", "question": "Where are you?", "expected_keywords": ["Mill Lane"]},
    )
    # A log whose ids are row numbers.
    rows = [
        {"id": 1, "question": "Where are you?", "answer": "In Mill Lane.", "tools_used": [], **extra},
        {"id": 2, "question": "is parking  free", "answer": "Yes, it is free.", "tools_used": [], **extra},
        {"id": 1, "question": "Is parking FREE", "answer": "It is free.", "tools_used": [], **extra},
    ]
    log = write_rows("log.jsonl", *rows)
    run = command("score", log, "--questions", golden, "--json").document
    assert sorted(result["id"] for result in run["results"]) == ["1", "1", "2"]
    assert run["summary"]["score"] == 1.0
    assert not any("asks something else" in warning for warning in run["warnings"])
    replayed = command("run", golden, "--target", f"replay:{log}", "--json").document
    assert replayed["summary"]["score"] == 1.0
    assert not any("asks something else" in warning for warning in replayed["warnings"])
    write_rows(
        "log.jsonl", *rows, {"id": 2, "question": "Who are you?", "answer": "Ava.", "tools_used": [], **extra}
    )
    warnings = command("score", log, "--questions", golden, "--json").document["warnings"]
    (warning,) = [text for text in warnings if "asks something else" in text]
    assert "1 of 4 rows" in warning
    assert (
        "log.jsonl:4: id '2' is 'Where are you?' in the golden set, and the row asks 'Who are you?'"
        in warning
    )


def test_an_interrupted_scoring_resumes(folder: Path, write_rows: Callable[..., Path]) -> None:
    log = write_rows("log.jsonl", *({**row, "context": "x" * 40_000} for row in rows(200)))
    how = LogScoring(processes=1, resumable=True)
    with pytest.raises(InterruptedRunError, match="run the same command again to continue"):
        score_replies(log, how=how, progress=StopsAfter(3))
    blocks = len(list(LogBlocks([log])))
    kept = folder / "cache" / "answerkey" / "scoring"
    # SQLite may leave its own empty file beside it.
    (journal,) = kept.glob("*.journal")
    # As if the machine had stopped in the middle of writing.
    with journal.open("ab") as file:
        file.write(b"\x07" * 100)
    resumed = StopsAfter(0)
    again = score_replies(log, how=how, progress=resumed)
    assert resumed.parts < blocks
    assert not list(kept.iterdir())
    assert document(again) == document(score_replies(log, how=LogScoring(processes=1)))


@pytest.mark.parametrize("processes", [1, 2])
def test_rows_made_where_they_are_scored_are_the_same(folder: Path, write_rows: Any, processes: int) -> None:
    log = [*rows(30), {"id": 'odd "id" é', "answer": "1200", "trial": 4}, *rows(30)]
    path, written = write_rows("log.jsonl", *log), []
    for kept in ("trials", "lines"):
        how = LogScoring(processes=processes, results=kept)
        write_report(score_replies(path, how=how), folder / "out.jsonl")
        written.append((folder / "out.jsonl").read_bytes())
    assert written[0] == written[1]
    assert [json.loads(line)["trial"] for line in written[0].splitlines()][28:33] == [5, 5, 4, 6, 6]


def test_lines_that_cannot_be_read_where_they_were_are_sent(folder: Path, write_rows: Any) -> None:
    path = write_rows("log.jsonl", *rows(30))
    (block,) = LogBlocks([path])
    assert block.part is not None
    assert block.part.read() == block.lines == path.read_bytes()
    plan = LogPlan(recipe=make_grader().recipe, pass_mark=0.7)
    # Another file has the name now, as after the rotation of a log.
    path.rename("log.jsonl.1")
    path.write_bytes(b"x" * len(block.lines))
    assert block.part.read() is None
    pool = ProcessPool(plan, 1)
    try:
        (part,) = pool.score([block])
    finally:
        pool.close()
    assert (part.summary.trials, part.summary.bad) == (30, [])


def test_a_reply_that_is_too_costly_is_unscored_and_the_rest_is_scored(folder: Path, write_rows: Any) -> None:
    (folder / "checks.py").write_text(
        "def patient(question, reply):\n    while 'for ever' in reply.text:\n        pass\n    return True\n"
    )
    (folder / "answerkey.toml").write_text('[scorers.patient]\npython = "checks.py:patient"\n')
    log = rows(40)
    log[7]["answer"] = log[21]["answer"] = "It takes for ever."
    run = score_replies(write_rows("log.jsonl", *log), how=LogScoring(processes=2, scoring_seconds=0.5))
    unscored = [trial for trial in run.results if trial.score is None]
    assert [(trial.id, trial.position) for trial in unscored] == [("q0", 7), ("q0", 21)]
    assert [next(iter(trial.components.values())).reason for trial in unscored] == [
        "too costly: scoring q0 took more than 0.5 s"
    ] * 2
    assert (run.summary.trials, run.summary.harness) == (38, {"too_costly": 2})


def test_a_log_can_be_kept_as_a_run(command: Any, write_rows: Any) -> None:
    write_rows("log.jsonl", *rows(20))
    scored = command("score", "log.jsonl", "--name", "november", "--json").document
    assert scored["run"]["name"] == "november"
    shown = command("show", "november", "--json").document
    assert shown["summary"] == scored["summary"]
    assert len(shown["results"]) == 20
    command("score", "log.jsonl", "--name", "december")
    assert command("compare", "november", "december", "--json").document["verdict"] == "no clear difference"


def test_seconds_are_mapped_as_seconds(write_rows: Callable[..., Path], command: Any) -> None:
    write_rows(
        "log.jsonl",
        {"query": "Where?", "resp": "In Montrose.", "secs": 1.5, "expected_keywords": ["Montrose"]},
    )
    flags = ("score", "log.jsonl", "--map", "question=query", "--map", "answer=resp", "--json")
    assert command(*flags, "--map", "latency_s=secs").document["summary"]["latency_ms"]["mean"] == 1500
    refused = command(*flags, "--map", "latency_ms=secs")
    assert refused.code == 2
    assert "for seconds write --map latency_s=secs" in refused.err


def test_a_proposed_map_can_be_pasted_into_a_shell(write_rows: Callable[..., Path], command: Any) -> None:
    write_rows("log.jsonl", {"user question": "Where?", "bot text": "In Montrose, I think."})
    assert '--map question="user question" --map answer="bot text"' in command("score", "log.jsonl").err
