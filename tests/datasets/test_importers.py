"""Files of other tools, most written by the tools themselves (peers/README.md), as golden sets and replies."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from answerkey.datasets.golden_sets import parse_question, read_questions
from answerkey.errors import InputError
from answerkey.model.question import QuestionSet
from answerkey.plugins import exporters, importers
from answerkey.protocols import Imported

PEERS = Path(__file__).parent / "peers"
NAMES = sorted(importers.built_in())


def imported(name: str, *files: str) -> tuple[list[dict[str, Any]], Imported]:
    found = importers.get(name)([PEERS / file for file in files])
    return list(found.rows), found


def test_promptfoo_assertions_become_what_they_mean() -> None:
    rows, found = imported("promptfoo", "promptfooconfig.yaml")
    first, pays, pays_now, fee, hello, rude = rows
    assert first == {
        "question": "Answer: Which lease ends first?",
        "prompt": "Answer: {{question}}",
        "category": "leases",
        "description": "first",
        "vars": {"question": "Which lease ends first?", "street": "9th Street"},
        "expected_keywords": ["9th Street", ["May", "05/2026"], {"regex": "leases? \\d+"}],
        "forbidden_keywords": ["I do not know"],
        "reference_answer": "Lease 9 ends first.",
        "expected_tools": [{"name": "search", "arguments": {"query": "lease", "tags": [["a", "b"]]}}],
        "checks": [
            {"max_latency_ms": 5000},
            {"rubric": "names the street", "name": "street", "weight": 2},
        ],
    }
    assert [pays["question"], pays_now["question"]] == ["Answer: Who pays?", "Answer: Who pays now?"]
    assert pays["checks"][1:] == [{"equals": "The tenant."}, {"is_json": True}]
    assert pays["expected_keywords"] == ["tenant", "pays"]
    assert (fee["category"], fee["expected_keywords"]) == ("fees", ["900", "year"])
    assert fee["reference_answer"] == "It is 900 a year."
    assert hello["checks"][-1] == {"equals": "Hello!"}
    assert rude["forbidden_keywords"] == ["idiot", "fool"]
    assert found.notes == (
        "not carried over: the threshold of 'similar' (promptfooconfig.yaml item 1; promptfoo-tests.csv line 2)",
        "not carried over: the assertion 'javascript' (promptfooconfig.yaml item 1; promptfoo-tests.csv line 3)",
        "not carried over: the threshold of an assert-set: all of its assertions count (promptfooconfig.yaml item 2)",
        "6 questions are rendered prompts; --map question=NAME takes a variable instead",
    )


PROMPTFOO = """
prompts:
  - What is the capital of {{country}}{% if x %}{% endif %}?
  - Something else about {{country}}
defaultTest:
  vars: {country: Chile}
  assert: [{type: icontains, value: "the {{kind}}"}]
tests:
  - vars: {country: France, kind: city}
  - {description: no variables of its own}
  - vars: {country: France, kind: city}
  - tests.py
scenarios:
  - config: [{vars: {kind: big}}, {vars: {kind: small}}]
    tests: [{vars: {country: Peru}}, {vars: {country: Mali}}]
"""


def from_promptfoo(folder: Path, text: str, **fields: str) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    (folder / "promptfooconfig.yaml").write_text(text)
    found = importers.get("promptfoo")([folder / "promptfooconfig.yaml"], fields)
    return list(found.rows), found.notes


def test_promptfoo_prompts_are_rendered_and_every_loss_is_listed(tmp_path: Path) -> None:
    rows, notes = from_promptfoo(tmp_path, PROMPTFOO)
    capitals = [row["question"].removeprefix("What is the capital of ") for row in rows]
    assert capitals == ["France?", "Chile?", "France?", "Peru?", "Mali?", "Peru?", "Mali?"]
    assert rows[0]["vars"] == {"country": "France", "kind": "city"}
    assert [row["expected_keywords"] for row in rows[3:]] == [["the big"]] * 2 + [["the small"]] * 2
    assert len({row.get("id", row["question"]) for row in rows}) == 7
    for lost in (
        "template code",
        "1 further prompts",
        "the tests of 'tests.py' (no such file)",
        "rendered prompts",
    ):
        assert any(lost in note for note in notes), lost
    chosen, _ = from_promptfoo(tmp_path, PROMPTFOO, question="country")
    assert chosen[0]["question"] == "France"


def test_each_promptfoo_test_has_a_prompt_whose_variables_it_has(tmp_path: Path) -> None:
    (tmp_path / "rent.md").write_text("900 a year")
    rows, notes = from_promptfoo(
        tmp_path,
        """
prompts: ["Write about {{topic}}", "Explain {{concept}} by {{text}}"]
tests:
  - {vars: {topic: coffee}}
  - {vars: {concept: rent, text: file://rent.md}}
  - {vars: {concept: rent}}
  - {vars: {topic: "{{answerBefore}}"}}
  - {vars: {topic: file://cat.jpg}}
  - {path: "file://more.ts:tests", config: {size: 3}}
""",
    )
    questions = ["Write about coffee", "Explain rent by 900 a year", "Write about file://cat.jpg"]
    assert [row["question"] for row in rows] == questions
    for lost in (
        "the variable answerBefore",
        "the text of 'file://cat.jpg'",
        "the tests of 'file://more.ts:tests'",
    ):
        assert any(lost in note for note in notes), lost


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            # It is not known how the prompt would ask for it.
            "prompts: [file://missing.txt]\ntests: [{vars: {topic: bananas}}]",
            "the variables topic, none of which is",
        ),
        (
            "prompts: [file://missing.txt]\ntests: [{vars: {a: x, b: y}}]",
            "the variables a, b, none of which is",
        ),
        (
            "prompts: [file://bot.py]\ntests: [{assert: []}]",
            "without variables and without a prompt in the file",
        ),
        ("prompts: [Hi]\ntests: file://gone.csv", "the tests of 'file://gone.csv' (no such file)"),
        ("prompts: [Hi]\nredteam: {plugins: [pii]}", "promptfoo redteam generate"),
    ],
)
def test_a_promptfoo_configuration_without_readable_tests_says_why(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        from_promptfoo(tmp_path, text)
    assert says in str(caught.value)


def test_the_question_of_a_promptfoo_chat_prompt_is_its_user_message(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who pays {{what}}?"}]
    rows, notes = from_promptfoo(
        tmp_path, json.dumps({"prompts": [json.dumps(chat)], "tests": [{"vars": {"what": "rent"}}]})
    )
    assert rows[0]["question"] == "Who pays rent?"
    assert any("a system message" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("chat.json", '[{"role": "user", "content": "Who pays {{what}}?"}]'),
        ("chat.yaml", "- role: user\n  content: 'Who pays {{what}}?'"),
        ("chat.yaml", "- role: user\n  content: {{asked}}"),
        ("chat.json", '[{"role": "user", "content": {{asked | dump}}}]'),
        ("both.txt", "Who pays {{what}}?\n---\nAnd who owns {{that}}?"),
        ("a*.txt", "{{ asked | trim }}"),
    ],
)
def test_the_question_of_a_promptfoo_prompt_in_a_file(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name.replace("*", "b")).write_text(content)
    variables = {"what": 'the "net" rent', "asked": 'Who pays the "net" rent?'}
    rows, notes = from_promptfoo(
        tmp_path, json.dumps({"prompts": [f"file://{name}"], "tests": [{"vars": variables}]})
    )
    assert [row["question"] for row in rows] == ['Who pays the "net" rent?']
    assert not any("filter" in note for note in notes)


def test_a_promptfoo_assertion_on_a_transformed_reply_is_not_one_on_the_reply(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text("assert: [{type: contains, value: rent}]")
    rows, notes = from_promptfoo(
        tmp_path,
        """
prompts: ["{{question}}"]
defaultTest: file://shared.yaml
tests: [{vars: {question: Who pays?}, assert: [{type: equals, value: Ana, transform: "output.name"}]}]
""",
    )
    assert rows == [{"question": "Who pays?", "expected_keywords": ["rent"]}]
    assert any("the assertion 'equals' with a transform" in note for note in notes)


def test_promptfoo_tests_in_files_that_a_pattern_names(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("one", "two"):
        (tmp_path / "tests" / f"{name}.yaml").write_text(f"- vars: {{topic: {name}}}")
    rows, notes = from_promptfoo(
        tmp_path, "prompts: ['About {{topic}}']\ntests: ['tests/*.yaml', 'none/*.yaml']"
    )
    assert [row["question"] for row in rows] == ["About one", "About two"]
    assert any("the tests of 'none/*.yaml' (no such file)" in note for note in notes)


def test_deepeval_goldens_in_each_of_its_forms() -> None:
    rows, found = imported("deepeval", "deepeval.json")
    assert rows[0]["expected_tools"] == [
        {"name": "search", "arguments": {"query": "lease", "tags": [["a", "b"]]}}
    ]
    assert (rows[0]["reference_answer"], rows[0]["category"]) == ("The one of 9th Street.", "leases")
    assert rows[0]["owner"] == "Ana"
    assert (rows[1]["answer"], rows[1]["tools_used"]) == ("The tenant.", ["search"])
    assert rows[1]["sources"] == [{"text": "The tenant pays."}]
    assert found.kind == "replies"
    assert found.notes == ("not carried over: 'custom_column_key_values' (item 2)",)
    for other in ("deepeval.jsonl", "deepeval.csv"):
        same, _ = imported("deepeval", other)
        for row, again in zip(rows, same, strict=True):
            for field in (
                "question",
                "reference_answer",
                "expected_tools",
                "tools_used",
                "category",
                "answer",
            ):
                assert again.get(field) == row.get(field), (other, field)


def test_ragas_samples_and_conversations() -> None:
    rows, found = imported("ragas", "ragas-single.jsonl")
    assert (rows[0]["question"], rows[0]["reference_answer"]) == ("Which lease ends first?", "Lease 9.")
    assert rows[0]["relevant_documents"] == ["lease-9", "4"]
    assert rows[0]["checks"] == [{"rubric": "score1_description: wrong; score5_description: right"}]
    assert found.notes == ("not carried over: 'reference_contexts' (line 2)",)
    [again], _ = imported("ragas", "ragas-single.csv")
    assert again == rows[0]
    [talk], _ = imported("ragas", "ragas-multi.jsonl")
    assert talk["expected_tools"] == [{"name": "search", "arguments": {"query": "lease"}}]
    assert [message["type"] for message in talk["messages"]] == ["human", "ai", "tool", "ai"]


def test_inspect_samples_and_logs() -> None:
    rows, found = imported("inspect", "inspect-samples.jsonl")
    assert (rows[0]["id"], rows[0]["expected_keywords"]) == ("first", [["Lease 9", "the ninth"]])
    assert (rows[1]["id"], rows[1]["question"]) == ("2", "Who pays?")
    assert rows[1]["reference_answer"] == "The tenant"
    assert found.notes[:2] == (
        "not carried over: a system message (line 2)",
        "not carried over: 'choices' (line 2)",
    )
    replies, log = imported("inspect", "inspect-log.json")
    assert log.kind == "replies"
    assert {row["id"]: row["answer"] for row in replies} == {"first": "Lease 9.", "2": "The tenant."}
    assert {row["trial"] for row in replies} == {1}


def test_langsmith_and_langfuse() -> None:
    rows, found = imported("langsmith", "langsmith.jsonl")
    assert [row["question"] for row in rows] == ["Which lease ends first?", "Who pays?", "Hello?"]
    assert [row.get("reference_answer") for row in rows] == ["Lease 9.", "The tenant.", None]
    assert (rows[0]["category"], rows[0]["owner"]) == ("leases", "Ana")
    assert found.notes == (
        "not carried over: the input 'locale' (line 3)",
        "1 of 3 rows expect nothing of a reply: add keywords or tools",
    )
    rows, _ = imported("langfuse", "langfuse.json")
    assert [(row["id"], row["reference_answer"]) for row in rows] == [
        ("i1", "Lease 9."),
        ("i2", "The tenant."),
    ]


def test_openai_evals() -> None:
    rows, found = imported("openai-evals", "openai-evals-belarusian_rhyme.jsonl")
    assert rows[0]["question"] == "grass, church"
    assert rows[0]["expected_keywords"] == [["трава, царква", "царква, трава"]]
    assert found.notes == ("not carried over: a system message (lines 1, 2)",)


def test_bfcl_finds_its_possible_answers() -> None:
    rows, _ = imported("bfcl", "BFCL_v4_simple_python.json")
    assert rows[0]["category"] == "simple_python"
    assert rows[0]["expected_tools"] == [
        {"name": "calculate_triangle_area", "arguments": {"base": [10], "height": [5], "unit": ["units", ""]}}
    ]
    rows, _ = imported("bfcl", "BFCL_v4_irrelevance.json")
    assert rows[0]["tools"] == "none"
    rows, found = imported("bfcl", "BFCL_v4_multi_turn_base.json")
    assert rows[0]["turns"][0]["expected_tools"][0] == {"name": "cd", "arguments": {"folder": "document"}}
    assert rows[0]["turns"][2]["expected_tools"] == ["sort"]
    assert any(note.startswith("not carried over: arguments without a name") for note in found.notes)


def test_tau2_tasks() -> None:
    rows, found = imported("tau2", "tau2-airline-tasks.json")
    assert rows[0]["question"].startswith("You want to cancel reservation EHGLP3.")
    assert rows[0]["checks"] == [{"rubric": "Agent should refuse to proceed with the cancellation."}]
    assert (rows[1]["expected_keywords"], rows[1]["category"]) == (["4"], "airline")
    assert rows[1]["expected_tools"][1] == {
        "name": "get_user_details",
        "arguments": {"user_id": "anya_garcia_5901"},
    }
    assert "not carried over: 'reward_basis' (items 1, 2)" in found.notes


def test_a_hugging_face_table(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = [{"id": 7, "question": "Who?", "answer": "I", "level": "easy"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "train-00000.parquet")
    found = importers.get("hf")([tmp_path / "train-00000.parquet"])
    assert list(found.rows) == [{"id": "7", "question": "Who?", "reference_answer": "I", "level": "easy"}]
    assert found.notes == ("read as: column 'answer' as reference_answer",)


ROWS = [
    {
        "id": "fee",
        "question": "What is the fee?",
        "category": "fees",
        "expected_tools": [{"name": "query", "arguments": {"year": 2024}}],
        "expected_keywords": ["900", ["9th", "ninth"]],
        "reference_answer": "It is 900.",
        "relevant_documents": ["lease-9"],
        "checks": [{"rubric": "is polite"}],
    },
    {"id": "hello", "question": "Hello?", "reference_answer": "Hello!", "tools": "none"},
]
# What comes back of each row after a way there and back, besides the question; all else is in the notes of the export.
CARRIED: dict[str, Sequence[str]] = {
    "bfcl": ("id",),
    "deepeval": ("id", "category", "expected_tools", "reference_answer"),
    "hf": ("id", "category", "expected_tools", "expected_keywords", "reference_answer", "checks", "tools"),
    "inspect": ("id", "category", "reference_answer"),
    "langfuse": ("id", "category", "reference_answer"),
    "langsmith": ("id", "reference_answer", "category"),
    "openai-evals": ("reference_answer",),
    "promptfoo": ("id", "category", "expected_tools", "expected_keywords", "reference_answer", "checks"),
    "ragas": ("reference_answer", "relevant_documents"),
    "tau2": ("id", "expected_tools", "checks"),
}


@pytest.mark.parametrize("name", CARRIED)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    golden = QuestionSet(questions=tuple(parse_question(row) for row in ROWS))
    exported = exporters.get(name)(golden)
    for file, content in exported.files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"".join(content))
    back = list(importers.get(name)([tmp_path / next(iter(exported.files))]).rows)
    for row, again in zip(ROWS, back, strict=True):
        assert again["question"] == row["question"]
        for field in CARRIED[name]:
            assert again.get(field, "uncategorised" if field == "category" else None) in (
                row.get(field),
                "uncategorised",
            ), field
    noted = " ".join(exported.notes)
    lost = {"expected_keywords": "a keyword that is not plain text"} if name == "tau2" else {}
    for field in ("expected_keywords", "checks"):
        assert field in CARRIED[name] or f"{lost.get(field, repr(field))} (question fee)" in noted


def test_parquet_reads_back_as_the_same_set(tmp_path: Path) -> None:
    golden = QuestionSet(questions=tuple(parse_question(row) for row in ROWS))
    [content] = exporters.get("hf")(golden).files["questions.parquet"]
    (tmp_path / "q.parquet").write_bytes(content)
    assert read_questions(tmp_path / "q.parquet").hash == golden.hash


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("beir", "trec", "hf")])
def test_another_kind_of_file_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('[{"colour": "red"}, {"colour": "blue"}]')
    with pytest.raises(InputError) as caught:
        list(importers.get(name)([tmp_path / "other.json"]).rows)
    assert "\n" not in str(caught.value)


def test_the_command_maps_lists_and_writes_nothing_by_halves(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    shutil.copy(PEERS / "langsmith.jsonl", tmp_path)
    bad = (tmp_path / "langsmith.jsonl").read_text() + json.dumps({"inputs": {"a": 1, "b": 2}}) + "\n"
    (tmp_path / "bad.jsonl").write_text(bad)
    (tmp_path / "golden.jsonl").write_text("as it was")
    done = command("import", "langsmith", "bad.jsonl", "-o", "golden.jsonl")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "bad.jsonl: line 4: has no 'question'" in done.err
    assert (tmp_path / "golden.jsonl").read_text() == "as it was"
    done = command(
        "import", "langsmith", "langsmith.jsonl", "--map", "id=metadata.owner", "-o", "golden.jsonl"
    )
    assert done.code == 0, done.err
    assert "note: not carried over: the input 'locale' (line 3)" in done.err
    assert next(iter(read_questions(tmp_path / "golden.jsonl"))).id == "Ana"
    done = command("import", "bfcl", "langsmith.jsonl", "--map", "id=x")
    assert (done.code, "has fixed fields; remove --map" in done.err) == (2, True)


EVAL = {
    "object": "eval",
    "name": "leases",
    "data_source_config": {"type": "custom", "item_schema": {}},
    "testing_criteria": [
        {
            "type": "string_check",
            "name": "exact",
            "input": "{{sample.output_text}}",
            "reference": "{{item.amount}}",
            "operation": "eq",
        },
        {
            "type": "string_check",
            "name": "has",
            "input": "{{ sample.output_text }}",
            "reference": "{{item.unit}}",
            "operation": "ilike",
        },
        {
            "type": "string_check",
            "name": "not",
            "input": "{{sample.output_text}}",
            "reference": "x",
            "operation": "ne",
        },
        {
            "type": "text_similarity",
            "name": "near",
            "input": "{{sample.output_text}}",
            "reference": "{{item.amount}}",
            "evaluation_metric": "bleu",
            "pass_threshold": 0.5,
        },
        {
            "type": "score_model",
            "name": "tone",
            "model": "gpt-4o",
            "range": [1, 7],
            "pass_threshold": 5,
            "input": [
                {
                    "role": "user",
                    "content": {
                        "type": "input_text",
                        "text": "Is {{sample.output_text}} polite about {{item.unit}}?",
                    },
                }
            ],
        },
        {
            "type": "label_model",
            "name": "kind",
            "model": "gpt-4o",
            "labels": ["a", "b"],
            "passing_labels": ["a"],
            "input": [{"role": "developer", "content": "Label {{sample.output_text}}."}],
        },
        {"type": "python", "name": "code", "source": "def grade(sample, item): return 1.0"},
    ],
}
ITEMS = [{"fee": "rent", "amount": "900", "unit": "USD"}, {"fee": "deposit", "amount": "1800", "unit": "EUR"}]
RUN = {
    "object": "eval.run",
    "data_source": {
        "type": "completions",
        "input_messages": {
            "type": "template",
            "template": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": {"type": "input_text", "text": "How much is the {{item.fee}}?"}},
            ],
        },
        "source": {"type": "file_content", "content": [{"item": item} for item in ITEMS]},
    },
}


def from_openai(folder: Path, **documents: Any) -> tuple[list[dict[str, Any]], Imported]:
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    found = importers.get("openai-evals")([folder / f"{name}.json" for name in documents])
    return list(found.rows), found


def test_an_eval_of_openais_platform_becomes_a_golden_set(tmp_path: Path) -> None:
    rows, found = from_openai(tmp_path, run=RUN, eval=EVAL)
    assert found.kind == "questions"
    assert [row["question"] for row in rows] == ["How much is the rent?", "How much is the deposit?"]
    assert rows[0]["expected_keywords"] == ["USD"]
    assert rows[0]["reference_answer"] == "900"
    assert rows[0]["checks"] == [
        {"equals": "900"},
        {"rubric": "Is the reply polite about USD?", "name": "tone"},
        {"rubric": "Label the reply.\nIt passes if the label is a.", "name": "kind"},
    ]
    for lost in (
        "'not', whose operation is 'ne'",
        "'near', its metric 'bleu'",
        "'tone', its scale",
        "'code', of the type 'python'",
    ):
        assert any(lost in note for note in found.notes), lost


def test_output_items_of_openais_platform_become_replies(tmp_path: Path) -> None:
    items = {
        "object": "list",
        "data": [
            {
                "object": "eval.run.output_item",
                "datasource_item": item,
                "results": [{"name": "exact", "passed": True, "score": 1.0, "sample": None}],
                "sample": {"input": [], "output": [{"role": "assistant", "content": said}], "error": error},
            }
            for item, said, error in (
                (ITEMS[0], "900", None),
                (ITEMS[1], None, {"code": "x", "message": "rate limit"}),
            )
        ],
    }
    run = {
        "object": "eval.run",
        "data_source": {**RUN["data_source"], "source": {"type": "file_id", "id": "f-1"}},
    }  # type: ignore[dict-item]
    rows, found = from_openai(tmp_path, eval=EVAL, run=run, items=items)
    assert found.kind == "replies"
    assert [row.get("answer") for row in rows] == ["900", None]
    assert rows[1]["error"] == "rate limit"
    assert rows[0]["question"] == "How much is the rent?"
    assert any("the data of a run in 'f-1'" in note for note in found.notes)


def test_output_items_take_the_place_of_the_runs_data_with_their_own_prompt_calls_and_tokens(
    tmp_path: Path,
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    sent = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "The rent, in euros?"}]
    item = {
        "object": "eval.run.output_item",
        "datasource_item": ITEMS[0],
        "results": [],
        "sample": {
            "input": sent,
            "output": [{"role": "assistant", "content": "900", "tool_calls": [call]}],
            "finish_reason": "stop",
            "usage": {"prompt_tokens": 20, "completion_tokens": 10},
        },
    }
    rows, found = from_openai(
        tmp_path, eval=EVAL, run=RUN, items={"object": "list", "data": [item], "has_more": True}
    )
    assert found.kind == "replies"
    (row,) = rows
    assert (row["question"], row["answer"]) == ("The rent, in euros?", "900")
    assert row["tool_calls"] == [call]
    assert row["usage"] == {"prompt_tokens": 20, "completion_tokens": 10}
    for lost in ("(has_more)", "a row of the data that has no output item", "a system message"):
        assert any(lost in note for note in found.notes), lost


def test_criteria_that_look_at_more_or_less_than_the_reply_are_listed_not_accused(tmp_path: Path) -> None:
    check = {"type": "string_check", "operation": "eq", "reference": "{{item.amount}}"}
    similar = {"type": "text_similarity", "evaluation_metric": "bleu", "reference": "{{item.amount}}"}
    rubric = {
        "type": "score_model",
        "model": "gpt-4o",
        "input": [{"role": "user", "content": "{{item.no}}?"}],
    }
    criteria = [
        {**check, "name": "before", "input": "Answer: {{sample.output_text}}"},
        {**check, "name": "json", "input": "{{sample.output_json.amount}}"},
        {**check, "name": "lacks", "input": "{{ sample.output_text }}", "reference": "{{item.no}}"},
        {**similar, "name": "similar", "input": "{{item.unit}}"},
        {**rubric, "name": "rubric"},
    ]
    rows, found = from_openai(tmp_path, eval={"object": "eval", "testing_criteria": criteria}, run=RUN)
    for row in rows:
        assert row.keys().isdisjoint({"checks", "expected_keywords", "reference_answer"})
    for lost in (
        "'before', whose input is more than the reply",
        "'json', which does not look at the reply",
        "'lacks', whose reference {{item.no}} the item lacks",
        "'similar', which does not look at the reply",
        "'rubric', whose prompt has {{item.no}}, which the item lacks",
    ):
        assert any(lost in note for note in found.notes), lost


def test_an_eval_without_data_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="criteria or a run without its data"):
        from_openai(tmp_path, eval=EVAL)
