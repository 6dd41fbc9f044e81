"""What trivial bots score, and which wrong replies pass, through the scorers that every chatbot gets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import answerkey
from answerkey.datasets.golden_sets import parse_question
from answerkey.golden.wrong_replies import wrong_replies
from answerkey.model.options import Scoring
from answerkey.model.question import QuestionSet
from answerkey.model.reply import Evidence, Reply, ToolCall
from answerkey.model.run import KeyFloor
from answerkey.model.scorecard import Trial
from answerkey.runs.audit import Audit, KeyTest, audit_document, audit_questions, key_quality
from answerkey.scorers.grader import make_grader


def question_set(*rows: dict[str, Any]) -> QuestionSet:
    questions = [parse_question({"id": f"q{index}", **row}) for index, row in enumerate(rows, start=1)]
    return QuestionSet(questions=tuple(questions))


def audit(*rows: dict[str, Any], scoring: Scoring | None = None) -> Audit:
    return audit_questions(question_set(*rows), scoring)


def key_test(*rows: dict[str, Any]) -> KeyTest:
    key = audit(*rows).key
    assert key is not None
    return key


def scores(result: Audit) -> dict[str, float]:
    return {bot.name: bot.score for bot in result.trivial.bots}


AUGUST = {
    "question": "What was my rental income in August 2024?",
    "expected_tools": ["query_database"],
    "expected_keywords": ["August", "2024", "rental", "income", "16144"],
    "reference_answer": "Your rental income in August 2024 was $16,144.",
}
EIN = {
    "question": "What is our tax number?",
    "expected_tools": ["query_database"],
    "expected_keywords": ["83-4567890"],
    "reference_answer": "The EIN is 83-4567890.",
}


def test_a_wrong_date_is_a_day_that_exists() -> None:
    rows = [
        {"question": f"When is tax {number} due?", "reference_answer": "It is due on March 31, 2026."}
        for number in range(30)
    ]
    dates = {
        (mutant.reply.text or "").removeprefix("It is due on ").removesuffix(", 2026.")
        for _, [mutants] in wrong_replies(question_set(*rows))
        for mutant in mutants
        if mutant.operator == "date"
    }
    assert len(dates) > 2
    assert dates <= {"May 31", "July 31", "August 31", "October 31", "December 31", "January 31"}


def test_a_reply_that_cannot_be_scored_is_not_refused() -> None:
    total = {"sql": "SELECT 1", "from": "books", "must": True}
    row = {"question": "How much?", "expected_keywords": [total], "reference_answer": "It is $1,420."}
    # Its expectation has no value.
    key = key_test(row, AUGUST)
    assert [question.strong for question in key.questions] == [None, False]
    assert key.strength is not None
    assert key.strength.questions == 1


# The floor.


def test_every_policy_is_combined_with_every_other() -> None:
    found = scores(audit(EIN))
    assert len(found) == 20
    assert found["no-tool+silent"] == 0.0
    assert found["no-tool+echo"] == 0.2
    assert found["every-tool+echo"] == 0.6
    assert found["right-tools+nothing-found"] == 0.6


def test_a_bot_that_calls_every_tool_and_repeats_the_question_is_tried() -> None:
    # The keywords are all in the question: the two halves alone score 0.6 and 0.6, together 1.0.
    result = audit({**AUGUST, "expected_keywords": ["August", "2024", "rental"]}, EIN)
    assert scores(result)["every-tool+echo"] == pytest.approx((1.0 + 0.6) / 2)
    assert result.trivial.questions[0].passed
    assert "repeats the question" in result.trivial.questions[0].because
    assert "the question itself contains August, 2024, rental" in result.trivial.questions[0].because


def test_the_floor_names_the_bot_that_calls_every_tool_and_repeats_the_question(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    tools = ["query_database", "search_document_content", "list_business_documents"]
    subjects = ["rental income", "property taxes", "operating agreement", "insurance policies", "mortgage"]
    rows = [
        {
            "question": f"What can you tell me about our {subject} in 2025?",
            "expected_tools": [tools[index % 3]],
            "expected_keywords": [*subject.split(), "2025"],
        }
        for index, subject in enumerate(subjects)
    ]
    audited = command("audit", write_rows("golden.jsonl", *rows))
    assert "Floor 1.000: a bot that calls every tool and repeats the question passes 5 of 5" in audited.out


def test_the_floor_says_that_each_question_listed_has_a_bot_of_its_own(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    rows = [
        {"question": "Where is it?", "expected_tools": ["db", "map"], "expected_keywords": ["Oslo", "5"]},
        {"id": "hi", "question": "Say hello", "tools": "none", "expected_keywords": ["hello", "world"]},
        {"question": "What was earned?", "expected_tools": ["db"], "expected_keywords": ["16144"]},
        {"question": "Who runs it?", "expected_tools": ["db"], "expected_keywords": ["Ann"]},
    ]
    audit = ("audit", write_rows("golden.jsonl", *rows), "--bots-only")
    floor, _, heading, question, *_ = command(*audit).out.strip().splitlines()
    assert "passes 0 of 4 questions; of the bots that know no answer, none has a better mean score." in floor
    assert heading == "1 question is passed by one of these bots; the best one on each:"
    assert question.split()[:2] == ["0.800", "hi"]


def test_a_denied_answer_is_reported_apart(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    out = command("audit", write_rows("golden.jsonl", {"id": "b", **EIN})).out
    assert (
        "Not counted in the strength, refused: the right text without its tool 100% · the right reply denied"
        in out
    )
    assert "No keyword sees that the right value is denied or hidden in a list" in out


@pytest.mark.parametrize(
    ("question", "reply", "operators"),
    [
        ("How much do we owe on the cabin?", "We owe $271,872 to Sneffels Community Bank.", {"asked figure"}),
        ("Which month had the highest costs?", "January 2024 with $1,125.", {"date"}),
        ("Who approved order 5520?", "Marcus Vale approved it on June 9, 2023.", {"name"}),
        ("What is the address of the office?", "It is at 318 Main St, Delta, for $900.", {"name"}),
        ("Did we file the report?", "Yes, with FinCEN on February 27, 2024.", set()),
        ("What does the policy not cover?", "Flood, mold and damage by pets above $500.", set()),
        (
            "What was the rent in 2019?",
            "There is no record of any rent in 2019.",
            {"made-up answer"},
        ),
    ],
)
def test_only_what_is_asked_for_is_changed(question: str, reply: str, operators: set[str]) -> None:
    other = {
        "question": "Who is the agent?",
        "expected_keywords": ["Ann"],
        "reference_answer": "It is Ann Lee.",
    }
    row = {"question": question, "expected_keywords": ["x"], "reference_answer": reply}
    [(_, [mutants]), _] = wrong_replies(question_set(row, other))
    facts = [mutant for mutant in mutants if mutant.family == "fact"]
    assert {mutant.operator for mutant in facts} == operators
    assert all("Bank." in (mutant.reply.text or "") for mutant in facts if "Bank." in reply)


def test_the_tools_of_the_most_similar_question_are_tried() -> None:
    other = {**AUGUST, "question": "What was my rental income in July 2024?", "expected_tools": ["search"]}
    found = scores(audit(AUGUST, other))
    assert found["similar-tools+silent"] == 0.0
    assert found["right-tools+silent"] == 0.4


def test_without_expectations_every_bot_passes() -> None:
    result = audit({"question": "Hello"})
    assert result.floor == 1.0
    assert all(bot.passed == ("q1",) for bot in result.trivial.bots if not bot.name.endswith("silent"))


def test_the_parrot_knows_only_the_other_questions_keywords() -> None:
    assert scores(audit(EIN, AUGUST))["no-tool+parrot"] == 0.2
    first = {**EIN, "expected_tools": [], "expected_keywords": ["Montrose"]}
    second = {"question": "Which town?", "expected_keywords": [["Montrose", "Ouray"]]}
    assert scores(audit(first, second))["no-tool+parrot"] == 1.0


def test_calling_every_tool_does_not_help_where_a_tool_is_forbidden() -> None:
    other = {"question": "What is the weather?", "expected_tools": ["weather"]}
    result = audit({**EIN, "forbidden_tools": ["weather"]}, other)
    assert scores(result)["every-tool+echo"] == pytest.approx((0.2 + 1.0) / 2)


def test_a_conversation_is_answered_turn_by_turn() -> None:
    turns = [
        {"question": "Where is Montrose?", "expected_keywords": ["Montrose"]},
        {"question": "And its zip?", "expected_keywords": ["81401"]},
    ]
    assert scores(audit({"turns": turns}))["no-tool+echo"] == pytest.approx((1.0 + 0.6) / 2)


def test_the_configured_scoring_counts() -> None:
    only_words = Scoring(weights={"tool_usage": 0.0, "response_quality": 1.0, "error_handling": 0.0})
    assert scores(audit(AUGUST, scoring=only_words))["no-tool+echo"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    "weights",
    [
        {"tool_usage": 0.4, "response_quality": 0.4, "error_handling": 0.2},
        {"tool_usage": 0.0, "response_quality": 1.0, "error_handling": 0.0},
        {"tool_usage": 0.9, "response_quality": 0.0, "error_handling": 0.1},
    ],
)
def test_the_floor_of_a_run_is_that_of_audit(weights: dict[str, float]) -> None:
    turns = [
        {"question": "Where is Montrose?", "expected_tools": ["map"], "expected_keywords": ["Montrose"]},
        {"question": "And its zip?", "expected_keywords": ["81401"]},
    ]
    other = {"question": "What is the weather?", "expected_tools": ["weather"], "forbidden_tools": ["map"]}
    unknown = {"question": "Who lives on the moon?", "answerable": False}
    questions = question_set(AUGUST, EIN, {"turns": turns}, other, unknown)
    scoring = Scoring(weights=weights)
    audited = audit_questions(questions, scoring)
    found = key_quality(questions, make_grader(scoring), sample=len(questions))
    best = audited.trivial.best
    assert found.floor == KeyFloor(value=best.score, bot=best.description, questions=5)
    assert found.strength == audited.strength
    assert audited.key is not None
    assert found.always_wrong_score == audited.key.always_wrong_score


# The strength.


def test_a_question_with_one_specific_keyword_is_strong() -> None:
    key = key_test(EIN)
    assert key.strength is not None
    assert (key.strength.value, key.strength.strong, key.strength.questions) == (1.0, 1, 1)
    assert key.questions[0].strong
    families = {family.name: family for family in key.families}
    assert families["fact"].mutants == families["fact"].refused > 0
    assert families["nothing"].mutants == families["nothing"].refused > 0


@pytest.mark.parametrize(("keyword", "strong"), [("14 days", False), ({"regex": r"\b14 days\b"}, True)])
def test_a_digit_before_a_number_with_its_unit_is_tried(keyword: object, strong: bool) -> None:
    reference = "You can return it within 14 days."
    row = {
        "id": "a",
        "question": "How long can I return it?",
        "expected_keywords": [keyword],
        "reference_answer": reference,
    }
    key = key_test(row)
    assert key.questions[0].strong is strong
    assert any("114 days" in one.reply for one in key.questions[0].survivors) is not strong


def test_more_keywords_weaken_the_pass_rule() -> None:
    key = key_test(AUGUST)
    assert key.strength is not None
    assert key.strength.value == 0.0
    wrong = [survivor for survivor in key.questions[0].survivors if survivor.operator == "asked figure"]
    assert len(wrong) == 1
    assert "16,144" not in wrong[0].reply
    assert wrong[0].score == pytest.approx(0.92)


def test_the_proposal_names_the_value_that_matters() -> None:
    key = key_test(AUGUST)
    best = key.questions[0].fixes[0]
    assert "16144" in best.change
    assert best.gain == len(key.questions[0].survivors)
    assert best.right_replies_lost == 0
    assert {"number": 16144.0, "must": True}.items() <= best.fields["expected_keywords"][-1].items()  # type: ignore[index, union-attr]


def test_the_proposal_makes_the_question_strong() -> None:
    row = {**AUGUST, "expected_keywords": key_test(AUGUST).questions[0].fixes[0].fields["expected_keywords"]}
    key = key_test(row)
    assert key.strength is not None
    assert key.strength.value == 1.0


def test_a_fact_of_the_reference_is_proposed_where_the_key_has_none() -> None:
    vague = {**AUGUST, "expected_keywords": ["income"]}
    question = key_test(vague).questions[0]
    assert any(survivor.family == "nothing" for survivor in question.survivors)
    assert question.fixes[0].change == "replace income, which the question contains, by 16144 as must"
    assert question.fixes[0].fields["expected_keywords"] == [{"number": 16144.0, "must": True}]
    assert not any("mark income" in fix.change for fix in question.fixes)


def test_a_word_of_the_question_is_no_proposal_where_no_answer_is_known() -> None:
    vague = {"question": AUGUST["question"], "expected_keywords": ["income", "16144"]}
    assert {fix.change for fix in key_test(vague).questions[0].fixes} == {"mark 16144 as must"}


def test_the_reply_to_a_similar_question_is_tried() -> None:
    july = {
        **AUGUST,
        "question": "What was my rental income in July 2024?",
        "reference_answer": "Your rental income in July 2024 was $15,020.",
    }
    survivors = key_test({**AUGUST, "expected_keywords": ["income"]}, july).questions[0].survivors
    assert ("subject", "Your rental income in July 2024 was $15,020.") in {
        (survivor.family, survivor.reply) for survivor in survivors
    }


def test_what_the_question_says_is_not_changed() -> None:
    for survivor in key_test(AUGUST).questions[0].survivors:
        if survivor.family == "fact":
            assert "August 2024" in survivor.reply


def test_an_address_is_not_a_figure_to_change() -> None:
    row = {
        "question": "How much did we pay for the fourplex?",
        "expected_keywords": ["430000", "fourplex"],
        "reference_answer": "The fourplex at 900 S 9th St, Montrose, CO 81401 cost $430,000.",
    }
    facts = [survivor.reply for survivor in key_test(row).questions[0].survivors if survivor.family == "fact"]
    assert facts
    assert all("900 S 9th St, Montrose, CO 81401" in reply for reply in facts)


def test_a_reply_that_a_person_marked_as_right_is_not_wrong() -> None:
    before = key_test({**AUGUST, "expected_keywords": ["income"]}).questions[0].survivors
    marked = {**AUGUST, "expected_keywords": ["income"], "also_right": [before[0].reply]}
    after = key_test(marked).questions[0].survivors
    assert before[0].reply not in [survivor.reply for survivor in after]
    assert len(after) == len(before) - 1


def test_saying_nothing_is_right_where_there_is_no_answer() -> None:
    row = {
        "question": "What is the wifi password?",
        "answerable": False,
        "reference_answer": "It is not on record.",
    }
    operators = {survivor.operator for survivor in key_test(row).questions[0].survivors}
    assert not operators & {"nothing found", "empty talk"}


def test_the_other_rows_of_a_tool_result_are_tried() -> None:
    questions = question_set({**AUGUST, "expected_keywords": ["income"], "reference_answer": None})
    rows = [{"month": "July", "income": 15020}, {"month": "August", "income": 16144}]
    call = ToolCall(name="query_database", result=rows, result_seen=True)
    reply = Reply(
        text="Your rental income in August 2024 was $16,144.",
        tool_calls=(call,),
        evidence=Evidence(tools_observed=True),
    )
    [question] = questions.questions
    key = audit_questions(questions, trials=[Trial(question, 1, 0, (reply,))]).key
    assert key is not None
    replies = {survivor.operator: survivor.reply for survivor in key.questions[0].survivors}
    assert replies["another row"] == "Your rental income in August 2024 was $15,020."


def test_a_failing_recorded_reply_is_not_a_good_one() -> None:
    questions = question_set(EIN)
    [question] = questions.questions
    reply = Reply(text="It is 11-1111111.", evidence=Evidence(tools_observed=True))
    with_run = audit_questions(questions, trials=[Trial(question, 1, 0, (reply,))]).key
    assert with_run is not None
    assert with_run.questions == key_test(EIN).questions


def test_the_same_wrong_replies_are_tried_every_time() -> None:
    assert key_test(AUGUST, EIN) == key_test(AUGUST, EIN)


def test_questions_without_an_answer_to_change_are_not_counted() -> None:
    key = key_test({"question": "Hello"}, EIN)
    assert key.strength is not None
    assert key.strength.questions == 1
    assert key.questions[0].strong is None


# The entry points.


def test_audit_in_python_takes_a_run() -> None:
    rows = [{"id": "a", **AUGUST}, {"id": "b", **EIN}]
    run = answerkey.evaluate(
        rows, lambda question: {"answer": "The EIN is 83-4567890.", "tools_used": ["query_database"]}
    )
    result = answerkey.audit(rows, run=run)
    assert result.strength is not None
    assert (result.strength.strong, result.strength.questions) == (1, 2)
    assert result.floor == pytest.approx((0.92 + 0.6) / 2)


def test_the_document() -> None:
    document = audit_document(audit(AUGUST, EIN))
    assert list(document) == [
        "floor",
        "bots",
        "strength",
        "always_wrong_score",
        "families",
        "questions",
    ]
    assert set(document["strength"]) == {"value", "low", "high", "questions", "strong"}
    assert set(document["families"][0]) == {"name", "mutants", "refused", "mean_score"}
    assert set(document["questions"][0]) == {"id", "floor", "because", "strong", "survivors", "fix"}
    assert set(document["questions"][0]["survivors"][0]) == {"family", "operator", "reply", "score"}
    assert {"change", "gain", "right_replies_lost"} <= set(document["questions"][0]["fix"][0])
    assert document["floor"] == max(bot["score"] for bot in document["bots"] if bot["knows_nothing"])


def test_gates_decide_the_exit_code(command: Callable[..., Any], write_rows: Callable[..., Path]) -> None:
    golden = write_rows("golden.jsonl", {"id": "a", **AUGUST}, {"id": "b", **EIN})
    assert command("audit", golden, "--gate", "strength >= 0.5", "--json").code == 0
    failed = command("audit", golden, "--gate", "strength >= 0.9", "--json")
    assert failed.code == 1
    assert failed.document["gates"][0]["value"] == 0.5
    assert command("audit", golden, "--max-floor", "0.5").code == 1


def test_proposals_are_written_as_a_golden_set(
    command: Callable[..., Any], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    golden = write_rows("golden.jsonl", {"id": "a", **AUGUST}, {"id": "b", **EIN})
    before = golden.read_bytes()
    assert command("audit", golden, "-o", tmp_path / "proposals.jsonl").code == 0
    assert golden.read_bytes() == before
    [row] = [json.loads(line) for line in (tmp_path / "proposals.jsonl").read_text().splitlines()]
    assert row["id"] == "a"
    assert command("audit", tmp_path / "proposals.jsonl", "--gate", "strength == 1").code == 0


def test_a_run_of_other_questions_is_refused(
    command: Callable[..., Any], write_rows: Callable[..., Path]
) -> None:
    write_rows("bot.py", "def answer(question):\n    return 'The EIN is 83-4567890.'\n")
    golden = write_rows("golden.jsonl", {"id": "b", **EIN})
    assert command("run", golden, "--target", "bot.py:answer").code == 0
    assert command("audit", golden, "--run", "latest", "--json").code == 0
    other = write_rows("other.jsonl", {"id": "x", "question": "Who?", "expected_keywords": ["Ann"]})
    refused = command("audit", other, "--run", "latest")
    assert refused.code == 2
    assert "has no reply to any question" in refused.err


def test_a_very_long_reply_is_no_problem() -> None:
    row = {
        **AUGUST,
        "reference_answer": "Your rental income in August 2024 was $16,144. " + "word " * 200_000,
    }
    assert key_test(row).strength is not None
