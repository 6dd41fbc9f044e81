"""Where a difference comes from: planted changes of known stage, noise, missing evidence."""

import json
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import answerkey as ak
from answerkey.config import Settings
from answerkey.model.comparison import Cause, Causes, Group, cause_lines
from answerkey.model.question import TruthSettings
from answerkey.model.run import Run
from answerkey.report.command_results import causes_sheet
from answerkey.runs.causes import causes
from answerkey.store import open_store
from free_ports import free_port
from runs.planted_bot import STAGES, PlantedBot, golden_set, make_database
from runs.scripted_model import serve_scripted

REPEAT = 5


BASES: dict[tuple[float, bool, str], Run] = {}


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The bot's database, and one with other amounts."""
    folder = tmp_path_factory.mktemp("books")
    return make_database(folder / "books.db"), make_database(folder / "changed.db", raised=500)


def run_bot(
    folder: Path,
    database: Path,
    *,
    repeat: int = REPEAT,
    truth: Path | None = None,
    edited: int = 0,
    **bot: Any,
) -> Run:
    settings = Settings()
    if truth is not None:
        settings = Settings(truth={"books": TruthSettings(url=f"sqlite:///{truth}")})
    questions = golden_set(computed=truth is not None, edited=edited)
    return ak.evaluate(
        questions,
        PlantedBot(database, **bot),
        settings=settings,
        repeat=repeat,
        store=str(folder / "runs.db"),
    )


def planted(databases: tuple[Path, Path], change: str, flaky: float, **more: Any) -> tuple[Run, Run]:
    """A base and a candidate with one planted change."""
    books, changed = databases
    base: dict[str, Any] = {"database": books, "flaky": flaky, "seed": 1, **more}
    candidate: dict[str, Any] = {**base, "seed": 2}
    if change in ("tool_removed", "wrong_sql", "worse_wording", "tool_breaks"):
        candidate["fault"] = change
    elif change == "data":
        candidate["database"] = changed
    elif change == "key":
        candidate["edited"] = 11
    elif change == "truth":
        base["truth"], candidate["truth"] = books, changed
    # The base is the same for most changes.
    key = (flaky, change == "truth", repr(more))
    if key not in BASES:
        BASES[key] = run_bot(books.parent, **base)
    return BASES[key], run_bot(books.parent, **candidate)


@pytest.mark.parametrize("flaky", [0.0, 0.3])
@pytest.mark.parametrize("change", STAGES)
def test_the_stage_of_a_planted_change(databases: tuple[Path, Path], change: str, flaky: float) -> None:
    found = ak.why(*planted(databases, change, flaky))
    stages = {case.id: case.stage for case in found.cases}
    payouts = [row["id"] for row in golden_set() if row["category"] == "payouts"]
    right = Counter(stages.get(identity) for identity in payouts)
    others = Counter(stage for identity, stage in stages.items() if identity not in payouts)
    assert right[STAGES[change]] >= 0.95 * len(payouts), right
    assert others.total() - others["noise"] <= 0.05 * 10


def test_the_same_version_twice_is_noise(tmp_path: Path, databases: tuple[Path, Path]) -> None:
    books, _ = databases
    runs = [run_bot(tmp_path, books, flaky=0.3, seed=seed) for seed in (1, 2)]
    found = ak.why(*runs)
    stages = Counter(case.stage for case in found.cases)
    assert stages.total() > 20
    assert stages["noise"] >= 0.95 * stages.total()
    assert found.losses == ()


def test_points_of_the_stages_add_up_and_groups_say_what_and_about_what(
    tmp_path: Path, databases: tuple[Path, Path]
) -> None:
    found = ak.why(*planted(databases, "tool_removed", 0.3))
    mean = 100 * found.difference["mean"]
    assert sum(stage.points for stage in found.stages) == pytest.approx(mean, abs=1e-4)
    tools = next(stage for stage in found.stages if stage.stage == "tools")
    assert tools.low <= tools.points <= tools.high < 0
    first = found.groups[0]
    assert first.words == "query_database was not called for questions about payouts"
    assert len(first.ids) == 30
    assert first.example in first.ids
    [one] = found.slices
    assert one.where in ({"category": "payouts"}, {"tool": "query_database"})


def test_arguments_that_differ_without_losing_the_fact_are_no_cause(
    tmp_path: Path, databases: tuple[Path, Path]
) -> None:
    """The query is another one and the result has the figure: the wording lost it."""

    class OtherQuery(PlantedBot):
        async def ask(self, ask: Any) -> ak.Reply:
            reply = await super().ask(ask)
            calls = [
                ak.ToolCall(
                    name=call.name,
                    arguments={**(call.arguments or {}), "limit": 5},
                    result=call.result,
                    result_seen=True,
                )
                for call in reply.tool_calls
            ]
            return ak.Reply(text="It is on your statement.", tool_calls=tuple(calls), evidence=reply.evidence)

    store = str(tmp_path / "runs.db")
    base = ak.evaluate(golden_set(), PlantedBot(databases[0]), store=store)
    candidate = ak.evaluate(golden_set(), OtherQuery(databases[0]), store=store)
    found = ak.why(base, candidate)
    assert {case.stage for case in found.cases} == {"text"}
    payout = next(case for case in found.cases if case.id == "payout-Aspen-May")
    assert payout.because == "the reply does not say 1448, although query_database returned it"
    digests = [side.tool_calls[0].result_digest for side in (payout.base, payout.candidate)]
    assert digests[0] == digests[1] is not None


@pytest.mark.parametrize(
    ("shows", "fault", "unseen"),
    [
        ("names", "wrong_sql", "results of tool calls were"),
        ("nothing", "worse_wording", "results of tool calls were"),
    ],
)
def test_what_was_not_observed_is_said_with_what_to_switch_on(
    tmp_path: Path, databases: tuple[Path, Path], shows: str, fault: str, unseen: str
) -> None:
    found = ak.why(*planted(databases, fault, 0.0, shows=shows))
    assert {case.stage for case in found.cases} == {"unobserved"}
    assert "--proxy or --traces" in found.cases[0].because


def test_one_run_is_explained_by_its_own_evidence(tmp_path: Path, databases: tuple[Path, Path]) -> None:
    found = causes(run_bot(tmp_path, databases[0], repeat=1, fault="tool_removed"))
    assert [group.words for group in found.groups] == [
        "query_database was not called for questions about payouts"
    ]
    assert found.groups[0].points == pytest.approx(-found.lost)


@pytest.mark.parametrize("variant", ["basic", "flaky"])
def test_at_most_six_groups_cover_what_the_demo_loses(tmp_path: Path, variant: str) -> None:
    store = str(tmp_path / "runs.db")
    base, run = (ak.evaluate(target=target, store=store) for target in ("demo", f"demo:{variant}"))
    alone, against = causes(run), ak.why(base, run)
    assert -sum(group.points for group in alone.groups[:6]) >= 0.9 * alone.lost
    assert -sum(group.points for group in against.losses[:6]) >= 0.9 * against.lost


def test_the_command(tmp_path: Path, databases: tuple[Path, Path], command: Any) -> None:
    store = databases[0].parent / "runs.db"
    base, candidate = planted(databases, "wrong_sql", 0.0)
    done = command("why", base.id, candidate.id, "--store", store)
    assert done.code == 0, done.err
    assert "query_database was called with other arguments (sql)" in " ".join(done.out.split())
    document = command("why", base.id, candidate.id, "--store", store, "--json").document
    assert document == json.loads(json.dumps(ak.why(base, candidate).to_dict()))
    assert {"difference", "stages", "groups", "slices", "cases", "facts", "notes"} == set(document)
    for ending in ("html", "md", "json"):
        done = command("why", base.id, candidate.id, "--store", store, "-o", f"why.{ending}")
        assert done.code == 0, done.err
        assert "query_database" in (tmp_path / f"why.{ending}").read_text()
    one = command("why", candidate.id, "--store", store, "--json").document
    assert one["groups"][0]["points"] == pytest.approx(-one["lost"])


def test_runs_that_cannot_be_explained(tmp_path: Path, databases: tuple[Path, Path], command: Any) -> None:
    store = tmp_path / "runs.db"
    run = run_bot(tmp_path, databases[0], repeat=1)
    other = ak.evaluate([{"question": "Who are you?"}], PlantedBot(databases[0]), store=str(store))
    for arguments, message in (
        ((run.id, other.id), "have no scored question in common"),
        ((run.id, run.id), "name the same run"),
        ((run.id, other.id, run.id), "why takes one run or two"),
    ):
        done = command("why", *arguments, "--store", store)
        assert (done.code, message in done.err) == (2, True), done.err


def test_without_tools_the_missing_words_are_the_cause(command: Any, write_rows: Any, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def answer(question):\n    return 'It costs 5.'\n")
    golden = write_rows(
        "plain.jsonl", {"id": "a", "question": "What does it cost?", "expected_keywords": ["7"]}
    )
    shown = command("run", golden, "--target", "bot.py:answer").out
    assert "lost points: the reply does not say the expected number" in shown
    assert "not observed" not in shown.split("Causes")[-1].split("Warnings")[0]


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (500, "boom", "the chatbot answered with HTTP 500"),
        # A redirect of every reply is a wrong address, and not scored.
        (409, "", "the chatbot answered with HTTP 409"),
        (200, "", "there was no reply"),
        (200, "{", "the reply was malformed"),
    ],
)
def test_each_kind_of_error_is_named_for_what_it_is(
    command: Any, write_rows: Any, chatbot: Any, status: int, body: str, words: str
) -> None:
    bot = chatbot(lambda _: web.Response(status=status, text=body, content_type="application/json"))
    golden = write_rows("plain.jsonl", {"id": "a", "question": "Price?", "expected_keywords": ["7"]})
    shown = command("run", golden, "--target", bot.url, "--retries", "0").out
    assert f"lost points: {words}" in shown


def test_lost_points_add_up() -> None:
    groups = [
        Group(signature=Cause(stage="text"), about="", ids=(), points=points, example="", because="")
        for points in (-8.05, -8.05, -7.95, -0.03)
    ]
    lines = cause_lines(groups, 24.08)
    assert round(sum(float(line.split()[0]) for line in lines), 1) == 24.1
    assert all(" of 24.1 lost" in line for line in lines)


@pytest.mark.parametrize("number", [4, 5])
def test_equal_losses_are_rounded_alike_in_every_output(number: int) -> None:
    groups = tuple(
        Group(signature=Cause(stage="text"), about="", ids=(), points=-40 / 15, example="", because="")
        for _ in range(number)
    )
    lost = -sum(group.points for group in groups)
    shown = [
        row[0].split()[0]
        for row in causes_sheet(Causes(lost=lost, questions=number, groups=groups)).tables[0].rows
    ]
    assert round(sum(map(float, shown)), 1) == round(lost, 1)
    assert shown[:4] == ["2.7", "2.7", "2.7", "2.6"]
    listed = [line.split()[0] for line in cause_lines(groups, lost)]
    assert listed[:3] == shown[:3]
    assert round(sum(map(float, listed)), 1) == round(lost, 1)


def test_a_cause_of_unanswerable_questions_is_in_plain_words() -> None:
    words = Cause(stage="tools", tool="find").words_about("unanswerable")
    assert words == "find was not called for unanswerable questions"


def test_changes_of_prompt_and_tools_are_seen_behind_the_proxy(tmp_path: Path) -> None:
    port = free_port()

    def run_with(prompt: str, *tools: str) -> Run:
        offered = [{"type": "function", "function": {"name": name}} for name in tools]

        def bot(question: str) -> str:
            messages = [{"role": "system", "content": prompt}, {"role": "user", "content": question}]
            body = json.dumps({"messages": messages, "tools": offered}).encode()
            address = f"http://127.0.0.1:{port}/openai/v1/chat/completions"
            with urllib.request.urlopen(urllib.request.Request(address, body)) as answer:
                answer.read()
            return "It is 7."

        with serve_scripted() as (address, _):
            return ak.evaluate(
                [{"question": "How many?", "expected_keywords": ["7"]}],
                bot,
                proxy=port,
                upstreams={"openai": address},
                store=str(tmp_path / "runs.db"),
            )

    first, second, third = run_with("Count.", "find"), run_with("Count well.", "find"), run_with("Count.")
    facts = {fact.name: (fact.base, fact.candidate) for fact in ak.why(first, second).facts}
    assert facts["prompt"][0] != facts["prompt"][1]
    assert facts["tool schemas"][0] == facts["tool schemas"][1] != "unknown"
    # The stored run says so, too.
    with open_store(str(tmp_path / "runs.db")) as store:
        assert store.find_run(first.info.id).target_version == first.info.target_version
    facts = {fact.name: (fact.base, fact.candidate) for fact in ak.why(first, third).facts}
    assert facts["prompt"][0] == facts["prompt"][1] != "unknown"
    assert facts["tool schemas"][0] != facts["tool schemas"][1]


def test_points_of_mixed_replies_are_divided_among_the_causes_of_the_trials(
    command: Any, write_rows: Any, tmp_path: Path
) -> None:
    golden = [
        {
            "id": name,
            "question": f"What does {name} cost?",
            "expected_tools": ["find"],
            "expected_keywords": ["7"],
        }
        for name in ("tea", "cake")
    ]
    write_rows("golden.jsonl", *golden)
    call = {"name": "find", "arguments": {}, "result": "It costs 7."}
    good = {"answer": "It costs 7.", "tool_calls": [call]}
    silent = {"answer": "It costs something.", "tool_calls": [call]}
    uncalled = {"answer": "It costs 7.", "tool_calls": []}
    failed = {"answer": None, "error": "connection refused", "tool_calls": []}

    def log(name: str, *tea: dict[str, Any]) -> None:
        rows = [{"id": "tea", "trial": number, **reply} for number, reply in enumerate(tea, 1)]
        rows += [{"id": "cake", "trial": number, **good} for number in (1, 2, 3)]
        write_rows(f"{name}.jsonl", *rows)
        done = command("score", f"{name}.jsonl", "--questions", "golden.jsonl", "--name", name)
        assert done.code == 0, done.err

    log("base", good, good, good)
    log("mixed", silent, uncalled, failed)
    document = command("why", "base", "mixed", "--json").document
    # Lost in the trials: 0.4 of the text, 0.4 of the tool, and everything of the failure.
    points = {stage["stage"]: stage["points"] for stage in document["stages"]}
    lost = {"error": -100 / 6, "tools": -40 / 6, "text": -40 / 6}
    assert points == pytest.approx(lost, abs=1e-5)
    assert sum(points.values()) == pytest.approx(100 * document["difference"]["mean"], abs=1e-4)
    groups = sorted(group["points"] for group in document["groups"])
    assert groups == pytest.approx(sorted(lost.values()), abs=1e-5)
    [case] = document["cases"]
    assert case["because"].count("% of the difference") == 3
    alone = command("why", "mixed", "--json").document
    assert sum(group["points"] for group in alone["groups"]) == pytest.approx(-alone["lost"], abs=1e-5)
    assert len(alone["groups"]) == 3
    # One number through every output.
    shown = ["16.7 of 30.0", "6.7 of 30.0", "6.6 of 30.0"]
    for arguments in (
        ("why", "base", "mixed"),
        ("why", "mixed"),
        ("compare", "base", "mixed"),
        ("show", "mixed"),
    ):
        text = command(*arguments).out
        assert all(part in text for part in shown), text
    for ending in ("md", "html"):
        for arguments in (("report", "mixed"), ("why", "base", "mixed"), ("compare", "base", "mixed")):
            assert command(*arguments, "-o", f"x.{ending}").code == 0
            text = (tmp_path / f"x.{ending}").read_text()
            assert all(part in text for part in shown), (arguments, ending)
