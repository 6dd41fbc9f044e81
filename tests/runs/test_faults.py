"""`faults`: twins, plan, landing, resume, and that ordinary runs pay nothing."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import answerkey
from answerkey.errors import UsageError
from answerkey.model.options import Options
from answerkey.model.question import Question
from answerkey.model.reply import Fault, FaultRecord, FaultSettings, Reply, ToolCall
from answerkey.runs.api import faults
from answerkey.runs.fault_results import FaultOutcome, FaultResult
from answerkey.store import open_store

RECORDS = {"A": 4100, "B": 5200, "C": 6300}
QUESTIONS = [
    {
        "id": name,
        "question": f"What is the balance of account {name}?",
        "expected_keywords": [str(balance)],
        "expected_tools": ["get_balance"],
    }
    for name, balance in RECORDS.items()
]


@answerkey.fault_point("get_balance")
def get_balance(account: str) -> dict[str, object]:
    """The record of an account."""
    return {"account": account, "balance": RECORDS[account]}


def bot(question: str) -> dict[str, object]:
    """Admits an error or an empty result, and repeats whatever else it gets."""
    account = question.rstrip("?")[-1]
    try:
        record = get_balance(account)
    except (RuntimeError, TimeoutError) as error:
        call = {"name": "get_balance", "arguments": {"account": account}, "error": str(error)}
        return {"answer": "I could not reach the accounts, so I cannot say.", "tool_calls": [call]}
    call = {"name": "get_balance", "arguments": {"account": account}, "result": record}
    balance = record.get("balance") if isinstance(record, dict) else None
    said = "I could not find the balance." if balance is None else f"The balance is {balance}."
    return {"answer": said, "tool_calls": [call]}


def run(tmp_path: Path, *kinds: str, **more: object) -> FaultResult:
    """Faults in the bot above, or in another target."""
    chosen = {"target": bot, **more}
    return faults(QUESTIONS, kinds=kinds, store=f"sqlite:///{tmp_path}/a.db", **chosen)  # type: ignore[arg-type]


def test_the_key_decides_what_became_of_each_fault(tmp_path: Path) -> None:
    result = run(tmp_path, "error", "empty", "wrong_record", per_question=3)
    outcomes = {(case.fault and case.fault.kind, case.outcome) for case in result.cases}
    assert outcomes == {("error", "honest"), ("empty", "honest"), ("wrong_record", "misled")}
    assert result.summary.landed == result.summary.planned == 9
    assert result.clean.summary.score == 1.0
    misled = next(case for case in result.cases if case.outcome == "misled")
    [(start, end)] = misled.words
    assert (misled.reply or "")[start:end] in misled.because
    assert result.loss is not None
    assert result.loss > 0.3


def test_the_plan_depends_on_the_seed_alone_and_is_balanced(tmp_path: Path) -> None:
    plans = [
        [
            (case.id, case.trial, case.fault)
            for case in run(tmp_path, seed=3, concurrency=many, per_question=4).cases
        ]
        for many in (1, 7)
    ]
    assert plans[0] == plans[1]
    kinds = [fault.kind for _, _, fault in plans[0] if fault is not None]
    assert max(map(kinds.count, kinds)) - min(map(kinds.count, kinds)) <= 1


def test_a_tool_without_a_fault_point_never_lands(tmp_path: Path) -> None:
    def other(question: str) -> dict[str, object]:
        return {
            "answer": "4100",
            "tool_calls": [{"name": "get_balance", "arguments": {}, "result": {"balance": 4100}}],
        }

    result = run(tmp_path, "error", target=other)
    assert result.summary.landed == 0
    assert result.resilience is None
    [reason] = result.not_landed
    assert "did not break get_balance" in reason
    assert result.faulted.summary.trials == 0
    assert result.clean.summary.trials == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kinds": ["eror"]}, "did you mean 'error'"),
        ({"kinds": ["error"], "repeat": 2}, "--per-question"),
        ({"gates": ["resilence >= 0.8"]}, "'resilence' is unknown"),
        ({"target": "replay:none.jsonl"}, "none.jsonl"),
        ({"engine": "ray"}, "--engine ray"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    chosen = {"target": bot, "store": f"sqlite:///{tmp_path}/a.db", **arguments}
    with pytest.raises(answerkey.errors.AnswerkeyError, match=message):
        faults(QUESTIONS, **chosen)  # type: ignore[arg-type]
    assert not (tmp_path / "a.db").exists()


def test_a_target_whose_tools_cannot_be_reached_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="put the proxy before its model"):
        run(tmp_path, "error", target="cmd:cat")


def test_both_runs_are_stored_and_the_faulted_one_is_not_reused(tmp_path: Path) -> None:
    result = run(tmp_path, "error")
    with open_store(f"sqlite:///{tmp_path}/a.db", create=False) as store:
        clean, faulted = (store.find_run(one.id) for one in (result.clean, result.faulted))
    assert clean.target_hash != faulted.target_hash
    assert faulted.experiment is not None
    assert faulted.experiment.faults == FaultSettings(kinds=("error",))
    again = answerkey.evaluate(QUESTIONS, bot, store=f"sqlite:///{tmp_path}/a.db", reuse=True)
    assert again.summary.score == 1.0


def test_what_was_not_handled_is_asked_again(tmp_path: Path) -> None:
    result = run(tmp_path, "wrong_record", "error", per_question=2, confirm=3)
    again = {case.outcome: case.confirmed for case in result.cases}
    assert again == {"honest": None, "misled": (3, 3)}
    assert result.faulted.summary.replies == 6


def test_gates(tmp_path: Path) -> None:
    result = run(tmp_path, "error", gates=["resilience >= 0.8", "fabricated == 0", "landed >= 20"])
    assert [gate.passed for gate in result.gates] == [True, True, False]


def test_the_demo_from_the_command_line(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "answerkey",
        "faults",
        "--target",
        "demo",
        "--kinds",
        "error,empty",
        "--sample",
        "6",
    ]
    done = subprocess.run(
        [*command, "-o", "f.md", "--json"], cwd=tmp_path, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["summary"]["landed"] == document["summary"]["planned"] > 0
    assert {case["outcome"] for case in document["cases"]} <= {
        "honest",
        "recovered",
        "crashed",
        "fabricated",
        "not_landed",
    }
    assert "Resilience" in (tmp_path / "f.md").read_text()


def test_an_ordinary_run_imports_nothing_of_faults(tmp_path: Path) -> None:
    code = (
        "import sys, answerkey\n"
        "golden = [{'question': 'a?', 'expected_keywords': ['a']}]\n"
        "answerkey.evaluate(golden, lambda q: 'a', store='b.db')\n"
        "print([name for name in sys.modules if 'fault' in name or 'planting' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_options_of_a_run_have_no_faults() -> None:
    assert not [name for name in Options.__struct_fields__ if "fault" in name]


RESUMABLE = """
import time, answerkey

@answerkey.fault_point("get_balance")
def get_balance(account):
    return {"account": account, "balance": 4000 + int(account)}

def bot(question):
    with open("asked.log", "a") as log:
        log.write(question + "\\n")
    time.sleep(0.01)
    account = question.rstrip("?").split()[-1]
    try:
        record = get_balance(account)
        said = f"The balance is {record['balance']}."
        call = {"name": "get_balance", "arguments": {"account": account}, "result": record}
    except Exception as error:
        said = "I could not look that up."
        call = {"name": "get_balance", "arguments": {"account": account}, "error": str(error)}
    return {"answer": said, "tool_calls": [call]}
"""


def test_a_killed_run_is_resumed_with_the_same_plan(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(RESUMABLE)
    rows = [
        {"id": f"q{n}", "question": f"Balance of {n}?", "expected_keywords": [str(4000 + n)]}
        for n in range(100, 130)
    ]
    (tmp_path / "golden.jsonl").write_text("\n".join(map(json.dumps, rows)))
    program = [sys.executable, "-m", "answerkey", "faults"]
    arguments = [
        "golden.jsonl",
        "--target",
        "bot.py:bot",
        "--kinds",
        "error,wrong_record",
        "--concurrency",
        "3",
        "--json",
    ]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*program, *arguments], cwd=tmp_path, **quiet)  # type: ignore[call-overload]
    log = tmp_path / "asked.log"
    while not log.exists() or len(log.read_text().splitlines()) < 25:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    with open_store(str(tmp_path / ".answerkey" / "answerkey.db"), create=False) as store:
        [run_id, _] = [info.id for info in store.list_infos()]
    done = subprocess.run(
        [*program, "--resume", run_id, "--json"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    resumed = json.loads(done.stdout)
    assert resumed["summary"]["landed"] == 30
    # Only what was in flight is asked twice.
    assert len(log.read_text().splitlines()) <= 60 + 3
    whole = subprocess.run([*program, *arguments], cwd=tmp_path, capture_output=True, check=False)
    plans = [
        [(case["id"], case["kind"], case["outcome"]) for case in document["cases"]]
        for document in (resumed, json.loads(whole.stdout))
    ]
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("One moment please.", "unclear"),
        ("You will find this in your lease agreement.", "unclear"),
        ("The lookup timed out after 30 seconds.", "honest"),
        ("Lo siento, el sistema no responde.", "honest"),
        ('Traceback (most recent call last):\n  File "bot.py", line 3, in answer\nKeyError: 0', "crashed"),
        ("The rent is $950.", "fabricated"),
        ("The rent is $950. Is there anything else I can do?", "fabricated"),
        ("Which building do you mean, the one in Elm Street or the one in Oak Lane?", "unclear"),
        ("Could you give me the name of the tenant? There are several units B.", "unclear"),
        ("To look that up I need two things: which building, and which year?", "unclear"),
    ],
)
def test_only_what_states_something_is_called_invented(text: str, outcome: str) -> None:
    question = Question(id="rent", question="What is the rent of unit B?", expected_keywords=("1200",))
    call = ToolCall(
        name="query", arguments={"unit": "B"}, result="unavailable", result_seen=True, injected=True
    )
    fault = FaultRecord(fault=Fault(tool="query", kind="error"), landed=True)
    decided = FaultOutcome().decide(question, Reply(text=text, tool_calls=(call,), fault=fault))
    assert decided is not None
    assert decided.name == outcome


@pytest.mark.parametrize(
    ("kind", "text", "outcome"),
    [
        ("truncated", "The rent is $950. I could not find the deposit, that part did not load.", "partial"),
        ("truncated", "The rent is $950 and the deposit is $700.", "fabricated"),
        ("wrong_record", "The rent is $950. I could not find the deposit, that part did not load.", "misled"),
        ("wrong_record", "There are units 7B and 9B. Which of them do you mean?", "unclear"),
    ],
)
def test_a_part_of_an_answer_and_a_choice_are_no_invention(kind: str, text: str, outcome: str) -> None:
    question = Question(
        id="b", question="What are rent and deposit of unit B?", expected_keywords=("1200", "2400")
    )
    result = {"rent": 950, "units": ["7B", "9B"]}
    call = ToolCall(name="query", arguments={"unit": "B"}, result=result, result_seen=True, injected=True)
    fault = FaultRecord(fault=Fault(tool="query", kind=kind), landed=True)  # type: ignore[arg-type]
    decided = FaultOutcome().decide(question, Reply(text=text, tool_calls=(call,), fault=fault))
    assert decided is not None
    assert decided.name == outcome, decided.because


def test_what_the_true_result_has_too_is_not_planted() -> None:
    text = "Unit D at 900 S 9th St has a lease that ends on May 31, 2025."
    true = {"unit": "Unit D at 900 S 9th St", "lease_end": "2026-05-31"}
    call = ToolCall(name="query", result={**true, "lease_end": "2025-05-31"}, result_seen=True, injected=True)
    fault = Fault(tool="query", kind="stale", true_value=true)
    question = Question(
        id="lease", question="When does Elias's lease end?", expected_keywords=("May 31, 2026",)
    )
    reply = Reply(text=text, tool_calls=(call,), fault=FaultRecord(fault=fault, landed=True))
    decided = FaultOutcome().decide(question, reply)
    assert decided is not None
    assert decided.name == "misled"
    assert [text[start:end] for start, end in decided.words] == ["May 31, 2025"]


def test_the_text_of_a_query_does_not_hide_that_nothing_was_found() -> None:
    sql = "SELECT address AS row_label, square_feet, COUNT(*), SUM(square_feet) AS row_total, AVG(square_feet) AS mean"
    arguments = {"sql": f"{sql} FROM properties WHERE id IN (?) LIMIT 30", "parameters": ["P2"]}
    call = ToolCall(
        name="query_database", arguments=arguments, result={"rows": []}, result_seen=True, injected=True
    )
    text = "Not on record: there is no entry for properties at 412 Cascade Ave."
    question = Question(id="size", question="How big is the Cascade duplex?", expected_keywords=("1960",))
    fault = FaultRecord(fault=Fault(tool="query_database", kind="empty"), landed=True)
    decided = FaultOutcome().decide(question, Reply(text=text, tool_calls=(call,), fault=fault))
    assert decided is not None
    assert decided.name == "honest", decided.because


def test_compare_says_whether_resilience_improved(tmp_path: Path) -> None:
    def careless(question: str) -> dict[str, object]:
        reply = bot(question)
        failed = any("error" in call for call in reply["tool_calls"])  # type: ignore[attr-defined]
        return {**reply, "answer": "The balance is 7777."} if failed else reply

    before = run(tmp_path, "error", "timeout", per_question=2, target=careless)
    after = run(tmp_path, "error", "timeout", per_question=2)
    assert (before.resilience, after.resilience) == (0.0, 1.0)
    compared = answerkey.compare(before.faulted, after.faulted)
    resilience = next(metric for metric in compared.metrics if metric.name == "resilience")
    assert (resilience.base, resilience.candidate) == (0.0, 1.0)


def test_questions_whose_clean_reply_uses_no_tool_or_another_one_say_so(tmp_path: Path) -> None:
    silent = run(tmp_path, "error", target=lambda question: {"answer": "4100", "tool_calls": []})
    assert list(silent.not_landed) == ["the clean reply used no tool"]
    other = run(tmp_path, "error", tools=["get_rates"])
    assert list(other.not_landed) == ["the clean reply used get_balance only"]
    assert silent.clean.summary.trials == other.clean.summary.trials == 3


def test_a_chatbot_that_hangs_is_ended_and_its_clean_twin_stored(tmp_path: Path) -> None:
    async def hanging(question: str) -> dict[str, object]:
        reply = bot(question)
        if "error" in str(reply["tool_calls"]):
            await asyncio.sleep(60)
        return reply

    result = run(tmp_path, "error", target=hanging, timeout=1.0, retries=0)
    # Its calls are lost with it; behind the proxy they are seen.
    assert list(result.not_landed) == ["no reply (timeout): whether it landed is not known"]
    assert result.clean.summary.score == 1.0


def test_a_proxy_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(answerkey.errors.AnswerkeyError, match="in use"):
            run(tmp_path, "error", proxy=taken.getsockname()[1])
