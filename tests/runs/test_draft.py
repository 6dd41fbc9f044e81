"""Coverage of real questions, and drafts that expect only what a tool result supports."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerkey.errors import UsageError
from answerkey.model.question import Question, QuestionSet
from answerkey.runs.draft import accepted_case

GOLDEN = {"id": "rent", "question": "What is the rent of unit A?", "expected_keywords": ["1200"]}
OTHER = {"question": "Who manages unit C?", "expected_keywords": ["Keystone"]}
DEPOSIT = "How much is the deposit of unit B?"


def _row(question: str, answer: str | None, result: object = None, **more: object) -> dict[str, object]:
    calls = [{"name": "query_database", "arguments": {"sql": "SELECT deposit FROM units"}, "result": result}]
    return {"question": question, "answer": answer, "tool_calls": calls if result else [], **more}


@pytest.fixture
def draft(command: Callable[..., Any], write_rows: Callable[..., Path]) -> Callable[..., Any]:
    """The document of `draft` for the rows of a log."""
    write_rows("golden.jsonl", GOLDEN, OTHER)

    def run(*rows: object, arguments: tuple[str, ...] = ()) -> Any:
        write_rows("log.jsonl", *rows)
        done = command("draft", "log.jsonl", "--questions", "golden.jsonl", "--json", *arguments)
        assert done.code == 0, done.err
        return done.document

    return run


def test_covered_questions_count_and_others_are_drafted(draft: Callable[..., Any]) -> None:
    asked = [_row("rent of unit a please", "It is $1,200.")] * 3
    deposit = _row(DEPOSIT, "The deposit of unit B is $2,450.", [{"deposit": 2450}])
    document = draft(*asked, deposit, deposit)
    # Two different questions prove little, so the estimate is near the true 0.6 and its interval is wide.
    coverage = document["coverage"]
    assert 0.5 < coverage["value"] < 0.8
    assert coverage["low"] < 0.6 < coverage["high"]
    assert (coverage["questions"], coverage["distinct"]) == (5, 2)
    assert document["holes"] == [{"count": 2, "failures": 0, "examples": [DEPOSIT]}]
    [case] = document["drafts"]
    assert case["expected_tools"] == ["query_database"]
    assert case["expected_keywords"] == [{"number": 2450.0, "must": True}]
    assert case["evidence"]["source"] == "log.jsonl:4"
    assert case["evidence"]["links"][0]["where"] == "tool_calls[0].result[0].deposit"


def test_another_unit_is_another_question(draft: Callable[..., Any]) -> None:
    document = draft(_row("What is the rent of unit E?", "I do not know."), _row("rent of unit a?", "$1,200"))
    assert [hole["examples"] for hole in document["holes"]] == [["What is the rent of unit E?"]]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (_row(DEPOSIT, "I encountered an error while searching."), "failed: error_text"),
        (
            _row(DEPOSIT, "The deposit of unit B is $9,999.", [{"deposit": 2450}]),
            "9,999' is in no tool result",
        ),
        (_row(DEPOSIT, "The deposit of unit B is $2,450."), "no tool result"),
        (_row(DEPOSIT, "The deposit of unit B is $2,450.", [{"deposit": 2450}], rating="down"), "disliked"),
        (_row(DEPOSIT, "I have no record of the deposit of unit B.", [{"id": 7}]), "does not know"),
        (_row(DEPOSIT, "The roof was inspected, for $2,450.", [{"deposit": 2450}]), "no sentence"),
        ({"question": DEPOSIT}, "there is no reply"),
        (
            _row("Is the deposit of unit B high?", "The deposit of unit B is $2,450.", [{"d": 2450}]),
            "no sentence",
        ),
        (
            _row("When is the deposit of unit B due?", "The deposit of unit B is $2,450.", [{"d": 2450}]),
            "no sentence",
        ),
        (
            _row(
                "deposit of unit B in 2023", "In 2024 the deposit of unit B was $2,450.", [{"deposit": 2450}]
            ),
            "2024' is in no tool result",
        ),
        (
            _row("What deposit did Ann Lee pay?", "The deposit of Bo Day, paid, is $2,450.", [{"d": 2450}]),
            "no sentence",
        ),
    ],
)
def test_a_doubtful_reply_gives_no_expectations(
    row: dict[str, object], reason: str, draft: Callable[..., Any]
) -> None:
    [case] = draft(row)["drafts"]
    assert "expected_keywords" not in case
    [warning] = [one for one in case["warnings"] if not one.startswith("personal data")]
    assert reason in warning


def test_only_the_kind_of_fact_that_is_asked_for_is_expected(draft: Callable[..., Any]) -> None:
    result = [{"purchase_price": 298000, "acquired_on": "2023-06-09"}]
    answer = "The duplex was bought on June 9, 2023 for $298,000."
    for question, expected in (
        ("When was the duplex bought?", [{"date": "June 9, 2023", "must": True}]),
        ("How much was the duplex bought for?", [{"number": 298000.0, "must": True}]),
        ("purchase price duplex", [{"number": 298000.0, "must": True}]),
        ("bought duplex", None),
    ):
        [case] = draft(_row(question, answer, result))["drafts"]
        assert case.get("expected_keywords") == expected, question


@pytest.mark.parametrize(
    ("question", "answer", "result"),
    [
        (
            "inspection of 9th street",
            "Inspection Report 2024, 900 9th Street: two breaker panels were found.",
            {"title": "Inspection Report 2024, 900 9th Street", "text": "Two breaker panels were found."},
        ),
        (
            "who filed the taxes of 2023",
            "The taxes of 2023 were filed on March 8, 2024.",
            {"text": "The taxes of 2023 were filed on March 8, 2024."},
        ),
        (
            "which files do we have",
            "The files we have say that the fee is $450.",
            {"text": "The files we have say that the fee is $450."},
        ),
        (
            "who did the taxes",
            "The taxes: $1,184.50 on May 3, 2023 and $1,184.90 on June 4, 2023, to Ann Lee.",
            [{"party": "Ann Lee", "taxes": [1184.5, 1184.9], "paid": ["2023-05-03", "2023-06-04"]}],
        ),
    ],
)
def test_figures_that_do_not_answer_are_not_expected(
    question: str, answer: str, result: object, draft: Callable[..., Any]
) -> None:
    [case] = draft(_row(question, answer, result))["drafts"]
    assert "expected_keywords" not in case


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        # Of which year, the reply does not say.
        ("when is form 1065 due", "Form 1065 is due each year by March 15.", None),
        (
            "when is form 1065 due",
            "Form 1065 is due on March 16, 2026.",
            [{"date": "March 16, 2026", "must": True}],
        ),
        ("how old is the roof", "The roof is about 17 years old.", None),
        ("how old is the roof", "The roof is 17 years old.", [{"number": 17.0, "must": True}]),
    ],
)
def test_dates_of_any_year_and_estimates_are_not_expected(
    question: str, answer: str, expected: object, draft: Callable[..., Any]
) -> None:
    [case] = draft(_row(question, answer, [{"text": answer}]))["drafts"]
    assert case.get("expected_keywords") == expected


def test_holes_are_ranked_by_traffic_and_failures(draft: Callable[..., Any]) -> None:
    again = {"conversation_id": "c1"}
    document = draft(
        *[_row("Which paint is on the fence?", "Green.")] * 2,
        _row("When is the garden watered?", "I encountered an error while searching.", **again),
        _row("When is the garden watered, please?", "I encountered an error while searching.", **again),
        _row("Is the chimney swept?", "Yes."),
    )
    assert [hole["examples"][0] for hole in document["holes"]] == [
        "When is the garden watered?",
        "Which paint is on the fence?",
        "Is the chimney swept?",
    ]
    assert document["holes"][0]["failures"] == 2


def test_greetings_are_asked_and_are_no_holes(draft: Callable[..., Any]) -> None:
    greetings = ("hi", "Hello there!", "thanks a lot", "Guten Morgen", "ok, thank you very much")
    document = draft(*(_row(text, "You are welcome.") for text in (*greetings, f"Hey, {DEPOSIT}", "help")))
    assert [hole["examples"] for hole in document["holes"]] == [[f"Hey, {DEPOSIT}"], ["help"]]
    assert len(document["drafts"]) == 2
    assert document["coverage"]["questions"] == 7


def test_an_observed_query_becomes_a_computed_expectation(draft: Callable[..., Any]) -> None:
    with sqlite3.connect("books.db") as books:
        books.execute("CREATE TABLE units (deposit INTEGER)")
        books.execute("INSERT INTO units VALUES (2450)")
    books.close()
    Path("answerkey.toml").write_text('[truth.books]\nurl = "sqlite:///books.db"\n')
    row = _row(DEPOSIT, "The deposit of unit B is $2,450.", [{"deposit": 2450}])
    [case] = draft(row)["drafts"]
    assert case["expected_keywords"] == [{"sql": "SELECT deposit FROM units", "from": "books", "must": True}]
    with sqlite3.connect("books.db") as books:
        books.execute("UPDATE units SET deposit = 1")
    books.close()
    [case] = draft(row)["drafts"]
    # The query does not give the figure now: the figure itself is expected.
    assert case["expected_keywords"] == [{"number": 2450.0, "must": True}]


def test_personal_data_is_listed(draft: Callable[..., Any]) -> None:
    [case] = draft({"question": "Write to jane@example.com or call +1 970 555 0199 for Jane Doering"})[
        "drafts"
    ]
    shown = " ".join(case["warnings"])
    assert all(part in shown for part in ("jane@example.com", "970 555 0199", "Jane Doering"))


def test_a_list_says_how_often_each_question_was_asked(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    write_rows("golden.jsonl", GOLDEN, OTHER)
    Path("asked.csv").write_text("query;count\nHow much is parking?;30\nRent of unit A?;10\n")
    document = command("draft", "asked.csv", "--questions", "golden.jsonl", "--json").document
    assert (document["coverage"]["questions"], document["coverage"]["distinct"]) == (40, 2)
    assert document["holes"] == [{"count": 30, "failures": 0, "examples": ["How much is parking?"]}]


def test_a_later_turn_is_read_with_the_first_question(
    draft: Callable[..., Any], command: Callable[..., Any]
) -> None:
    def conversation(*replies: str) -> dict[str, object]:
        asked = ["What is the rent of unit A?", "And the deposit?"]
        pairs = zip(asked, replies, strict=True)
        steps = [(("user", question), ("assistant", reply)) for question, reply in pairs]
        turns = [{"question": question} for question in asked]
        messages = [{"role": role, "content": text} for step in steps for role, text in step]
        return {"id": "c", "turns": turns, "messages": messages}

    first = draft(conversation("It is $1,200.", "I do not know."), arguments=("-o", "d.jsonl"))
    [case] = first["drafts"]
    assert [turn["question"] for turn in case["turns"]] == ["What is the rent of unit A?", "And the deposit?"]
    with Path("golden.jsonl").open("a") as golden:
        golden.write(json.dumps({"id": "rent-deposit", "turns": case["turns"]}) + "\n")
    assert draft(conversation("It is $1,200.", "I do not know."))["holes"] == []
    assert "rent of unit A? → And the deposit?" in command("review", "--drafts", "d.jsonl", "--list").out


def test_lists_databases_and_runs_are_sources(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    write_rows("golden.jsonl", GOLDEN, OTHER)
    Path("list.md").write_text("# Rent\n- What is the rent of unit A?\n- 家賃はいくらですか\n")
    with sqlite3.connect("app.db") as log:
        log.execute("CREATE TABLE log (query TEXT)")
        log.execute("INSERT INTO log VALUES ('Wie hoch ist die Miete?')")
    log.close()
    write_rows("replies.jsonl", {"question": "Is the chimney swept?", "answer": "Yes."})
    assert command("score", "replies.jsonl", "--name", "november").code == 0
    sql = ("--sql", "SELECT query AS question FROM log")
    golden = ("--questions", "golden.jsonl", "--json")
    done = command("draft", "list.md", "sqlite:///app.db", "november", *sql, *golden)
    assert done.code == 0, done.err
    assert done.document["coverage"]["questions"] == 4
    asked = {case["question"] for case in done.document["drafts"]}
    assert asked == {"家賃はいくらですか", "Wie hoch ist die Miete?", "Is the chimney swept?"}


@pytest.mark.parametrize(
    ("source", "content", "problem"),
    [
        ("nothing.jsonl", None, "nothing.jsonl: no such file, and no run"),
        ("empty.jsonl", "", "the sources have no questions"),
        ("bad.jsonl", '{"answer": 1}\n', "has neither 'id' nor 'question'"),
        ("picture.txt", "\x89PNG\0", "picture.txt"),
    ],
)
def test_bad_sources(source: str, content: str | None, problem: str, command: Callable[..., Any]) -> None:
    if content is not None:
        Path(source).write_bytes(content.encode("latin-1"))
    refused = command("draft", source, "-o", "drafts.jsonl")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert problem in refused.err
    assert not Path("drafts.jsonl").exists()


def test_an_accepted_draft_keeps_its_provenance_and_near_misses_are_refused() -> None:
    golden = QuestionSet(questions=(Question(id="rent", question="What is the rent of unit A?"),))
    case = {"id": "draft-1", "question": DEPOSIT, "evidence": {"source": "log.jsonl:4"}, "warnings": ["x"]}
    row = accepted_case(case, golden, "Ann")
    assert {name: row[name] for name in ("id", "question")} == {"id": "draft-1", "question": DEPOSIT}
    provenance = row["provenance"]
    assert isinstance(provenance, dict)
    assert (provenance["source"], provenance["accepted_by"]) == ("log.jsonl:4", "Ann")
    assert "warnings" not in row
    with pytest.raises(UsageError, match="nearly the same as case 'rent'"):
        accepted_case({**case, "question": "what is the rent of unit A, please"}, golden, "Ann")
    with pytest.raises(UsageError, match="not a golden case"):
        accepted_case({**case, "expected_keywords": [""]}, golden, "Ann")


def test_drafts_of_a_file_are_listed(draft: Callable[..., Any], command: Callable[..., Any]) -> None:
    draft(_row(DEPOSIT, "The deposit of unit B is $2,450.", [{"deposit": 2450}]), arguments=("-o", "d.jsonl"))
    assert command("review", "--drafts", "d.jsonl", "--list").out.endswith("\n1 draft\n")
    listed = command("review", "--drafts", "d.jsonl", "--json")
    assert listed.code == 0
    assert listed.document["drafts"] == [json.loads(Path("d.jsonl").read_text())]


BIKES = (
    "How much does an e-bike cost per day?",
    "What is the deposit for an e-bike?",
    "When are you open on Saturday?",
    "Is a helmet included?",
    "How do I cancel a booking?",
    "Which bikes are free on 5 May?",
)
BIKE_CASES = tuple(
    {"id": f"bike-{number}", "question": one, "expected_keywords": ["42"]}
    for number, one in enumerate(BIKES, 1)
)
COVERED = ("ebike day price?", "deposit e-bike", "how to cancel my booking")
OTHER_THINGS = (
    "How much does a city bike cost per day?",
    "How much does a tandem cost per day?",
    "what is the deposit for a cargo bike",
    "When are you open on Monday?",
    "Is a lock included?",
    "Is a child seat included?",
    "How do I change a booking?",
    "Which bikes are free on 9 June?",
    "how much is a helmet",
    "Can I bring my dog?",
    "do you repair bikes",
    "late return fee?",
)


def test_questions_about_other_things_are_not_covered(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    write_rows("golden.jsonl", *BIKE_CASES)
    write_rows("log.jsonl", *({"question": one} for one in COVERED + OTHER_THINGS))
    document = command("draft", "log.jsonl", "--questions", "golden.jsonl", "--json").document
    coverage = document["coverage"]
    # Three of 15; few questions, so the interval is wide.
    assert coverage["low"] <= 0.2 <= coverage["high"] < 0.85
    assert coverage["likely"] == 3
    assert coverage["unsure"] <= 3
    holes = {text for hole in document["holes"] for text in hole["examples"]}
    assert holes == set(OTHER_THINGS)
    [city] = [case for case in document["drafts"] if "city" in case["question"]]
    assert f"perhaps the same as case 'bike-1': {BIKES[0]}" in city["warnings"]
    shown = command("draft", "log.jsonl", "--questions", "golden.jsonl").out
    assert "“golden” covers between" in shown
    assert f"3 probably covered, {coverage['unsure']} unsure" in shown


@pytest.mark.parametrize("name", ["campsite", "climbing", "roastery", "vetclinic"])
def test_coverage_of_other_domains(
    name: str, command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    folder = Path(__file__).parents[2] / "labelled" / "traffic"
    asked = [json.loads(line) for line in (folder / f"{name}.asked.jsonl").read_text().splitlines()]
    golden = [json.loads(line) for line in (folder / f"{name}.golden.jsonl").read_text().splitlines()]
    write_rows("log.jsonl", *({"question": row["text"], "count": row["times"]} for row in asked))
    for visible in (golden, golden[::2]):
        write_rows("golden.jsonl", *visible)
        document = command("draft", "log.jsonl", "--questions", "golden.jsonl", "--json").document
        ids = {case["id"] for case in visible}
        covered = sum(row["times"] for row in asked if row["intent"] in ids)
        share = covered / sum(row["times"] for row in asked)
        assert document["coverage"]["low"] <= share <= document["coverage"]["high"]
        assert document["coverage"]["high"] - document["coverage"]["low"] < 0.6
        listed = {text for hole in document["holes"] for text in hole["examples"]}
        hidden = {row["intent"] for row in asked} - ids - {"noise"}
        found = {row["intent"] for row in asked if row["text"] in listed} & hidden
        assert len(found) >= 0.8 * len(hidden)


def test_questions_in_another_language_are_not_compared(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    write_rows("golden.jsonl", *BIKE_CASES)
    german = ("Was kostet ein Elektrorad am Tag?", "Wann ist am Samstag geöffnet?", "Ist ein Helm dabei?")
    write_rows("log.jsonl", *({"question": one} for one in COVERED + german))
    document = command("draft", "log.jsonl", "--questions", "golden.jsonl", "--json").document
    coverage = document["coverage"]
    assert (coverage["likely"], coverage["unsure"]) == (3, 3)
    assert coverage["low"] <= 0.5 <= coverage["high"]
    assert coverage["high"] > 0.9
    for case in document["drafts"]:
        assert any("in another language" in warning for warning in case["warnings"])
