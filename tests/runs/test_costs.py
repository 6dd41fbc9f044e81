"""What a run costs: prices of models and chatbots, a budget that stops the asking, cost a question and a point."""

import asyncio
from typing import Any

import pytest

import answerkey as ak
from answerkey.errors import ConfigError
from answerkey.model.options import Price, price_of
from answerkey.model.reply import Usage

ROWS = [
    {"id": f"q{number}", "question": f"Name number {number}?", "expected_keywords": [str(number), "no"]}
    for number in range(8)
]


def spend(body: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    return {"answer": f"no {body['question']}", "tools_used": [], "usage": usage}


def test_a_price_counts_tokens_cached_ones_and_replies() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    assert Price(input=2, output=10).cost(usage) == 3.0
    assert Price(input=2, output=10, cached=0.5).cost(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 1)
    assert Price(reply=0.02).cost(None) == 0.02
    assert Price(input=2, output=10).cost(None) is None
    with pytest.raises(ConfigError, match="must not be negative"):
        Price(input=-1, output=0)


def test_a_listed_price_holds_for_dated_versions_and_not_on_this_machine() -> None:
    listed = price_of("gpt-4o-mini", {})
    assert listed == Price(input=0.15, cached=0.075, output=0.6)
    assert price_of("openai/gpt-4o-mini-2024-07-18", {}) == listed
    assert price_of("claude-haiku-4-5-20251001", {}) == Price(input=1.0, cached=0.1, output=5.0)
    assert price_of("gpt-4o-mini", {}, base_url="http://127.0.0.1:8080/v1") is None
    assert price_of("gpt-4o-minor", {}) is None
    own = Price(input=1, output=1)
    assert price_of("gpt-4o-mini", {"gpt-4o-mini": own}, base_url="http://localhost/v1") == own


def test_a_run_says_what_a_question_and_a_point_cost(chatbot: Any, write_rows: Any, command: Any) -> None:
    bot = chatbot(spend)
    prices = {bot.url: Price(input=1.0, output=2.0)}
    run = ak.evaluate(write_rows("g.jsonl", *ROWS), bot.url, prices=prices)
    assert run.summary.usage["cost"] == pytest.approx(8 * 0.002)
    cost = run.summary.cost
    assert cost is not None
    assert (cost.questions, cost.question) == (8, 0.002)
    assert cost.point == pytest.approx(8 * 0.002 / (8 * run.summary.score))
    assert run.summary.categories[0].cost == cost
    assert run.to_dict()["summary"]["cost"]["question"] == 0.002
    assert "$0.0020 per question ($0.0020–$0.0020)" in command("show", run.id).out


def test_a_budget_stops_the_asking_and_resume_goes_on(chatbot: Any, write_rows: Any, command: Any) -> None:
    bot = chatbot(spend)
    prices = {bot.url: Price(input=1.0, output=2.0)}
    run = ak.evaluate(write_rows("g.jsonl", *ROWS), bot.url, prices=prices, budget=0.0065, concurrency=1)
    assert run.info.status == "interrupted"
    assert (run.summary.replies, run.summary.coverage) == (3, 0.375)
    assert any(
        "asking stopped: the budget of 0.0065 is used up (0.006 spent" in line for line in run.warnings
    )
    assert any("coverage 37.5%" in line for line in run.warnings)
    again = command("resume", run.id, "--json").document
    assert again["summary"]["replies"] == 3
    whole = command("resume", run.id, "--budget", "1", "--json").document
    assert (whole["run"]["status"], whole["summary"]["coverage"]) == ("complete", 1.0)
    assert not any("budget" in line for line in whole["warnings"])


def test_a_budget_holds_at_full_concurrency_from_the_first_reply(
    chatbot: Any, write_rows: Any, command: Any
) -> None:
    async def answer(body: dict[str, Any]) -> dict[str, Any]:
        # Of the last run, the replies wait until several questions are asked at once.
        if bot.under_way > 1:
            several.set()
        if len(bot.asked) > 5:
            await several.wait()
        return {"answer": "yes", "tools_used": [], "cost": 1.0}

    bot, several = chatbot(answer), asyncio.Event()
    golden = write_rows("g.jsonl", *({"question": f"Is it {i}?"} for i in range(30)))
    run = ("run", golden, "--target", bot.url, "--concurrency", "10", "--json")
    document = command(*run, "--budget", "3.5").document
    assert document["summary"]["replies"] == len(bot.asked) == 3
    assert document["summary"]["cost"]["question"] == 1.0
    # Less than a reply costs: the first one cannot be avoided.
    command(*run, "--budget", "0.5")
    assert len(bot.asked) == 4
    assert bot.most_under_way == 1
    command(*run, "--budget", "100", "--timeout", "20")
    assert bot.most_under_way > 1


def test_failures_before_the_first_price_are_asked_one_by_one(
    chatbot: Any, write_rows: Any, command: Any
) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return {"error": "down"} if len(bot.asked) < 4 else {"answer": "yes", "tools_used": [], "cost": 1.0}

    bot = chatbot(answer)
    golden = write_rows("g.jsonl", *({"question": f"Is it {i}?"} for i in range(30)))
    command("run", golden, "--target", bot.url, "--concurrency", "10", "--budget", "1.5", "--json")
    assert len(bot.asked) == 4


def test_a_budget_that_cannot_be_kept_stops_after_the_first_replies(chatbot: Any, write_rows: Any) -> None:
    bot = chatbot(spend)
    run = ak.evaluate(write_rows("g.jsonl", *ROWS), bot.url, budget=1.0, concurrency=1)
    assert run.summary.replies == 1
    assert any("cannot be enforced, because the cost of a reply is unknown" in line for line in run.warnings)


def test_a_negative_cost_is_no_cost_and_keeps_no_budget_open(chatbot: Any, write_rows: Any) -> None:
    bot = chatbot(lambda body: {"answer": "yes", "cost": -5.0})
    run = ak.evaluate(write_rows("g.jsonl", *ROWS), bot.url, budget=1.0, concurrency=1)
    assert run.summary.replies == 1
    assert any("cannot be enforced, because the cost of a reply is unknown" in line for line in run.warnings)


def test_configured_prices_are_read_strictly(command: Any, write_rows: Any, tmp_path: Any) -> None:
    questions = write_rows("g.jsonl", *ROWS)
    (tmp_path / "answerkey.toml").write_text('[prices]\n"my-bot" = {inputs = 1.0}\n')
    refused = command("run", questions)
    assert refused.code == 2
    assert "unknown setting 'inputs'" in refused.err
    assert "did you mean 'input'?" in refused.err


def test_a_budget_ends_an_experiment_after_the_same_questions_of_both(
    chatbot: Any, write_rows: Any, command: Any, tmp_path: Any
) -> None:
    cheap, dear = chatbot(spend), chatbot(spend)
    lines = [
        f'"{cheap.url}" = {{input = 1.0, output = 2.0}}',
        f'"{dear.url}" = {{input = 3.0, output = 6.0}}',
    ]
    (tmp_path / "answerkey.toml").write_text("\n".join(["[prices]", *lines, ""]))
    questions = write_rows("g.jsonl", *ROWS)
    asked = ("ab", questions, "--a", cheap.url, "--b", dear.url, "--concurrency", "1", "--json")
    document = command(*asked, "--budget", "0.025").document
    # A question costs 0.008 in both; a fourth would go beyond it.
    assert (document["asked"], document["planned"], document["comparison"]["paired"]) == (6, 16, 3)
    [warning] = document["warnings"]
    assert "asking stopped for both after the same questions: the budget of 0.025 is used up" in warning
    assert command("show", document["a"]["run"], "--json").document["run"]["status"] == "interrupted"
    whole = command("ab", "--resume", document["b"]["run"], "--budget", "1", "--json").document
    assert (whole["asked"], whole["comparison"]["paired"], whole["warnings"]) == (16, 8, [])


async def call_a_tool_and_hang(body: dict[str, Any]) -> dict[str, Any]:
    """A model that calls a tool, and never answers once it has the result."""
    if body["messages"][-1]["role"] == "tool":
        await asyncio.sleep(1.5)
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    return {
        "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 0},
    }


def test_both_arms_keep_the_calls_and_costs_of_questions_that_timed_out(
    chatbot: Any, write_rows: Any, command: Any, tmp_path: Any
) -> None:
    model = chatbot(call_a_tool_and_hang)
    base = model.url.replace("/chat", "/v1")
    table = f'openai = "m"\nbase_url = "{base}"\n[[targets.NAME.tools]]\nname = "look_up"\nresult = 7\n'
    tables = [f"[targets.{name}]\n{table.replace('NAME', name)}" for name in ("one", "other")]
    (tmp_path / "answerkey.toml").write_text(
        "".join([*tables, '[prices]\n"m" = {input = 1.0, output = 1.0}\n'])
    )
    row = {"id": "q", "question": "What?", "expected_tools": ["look_up"]}
    flags = (write_rows("g.jsonl", row), "--timeout", "0.5", "--json")
    document = command("ab", *flags, "--a", "one", "--b", "other").document
    alone = command("run", *flags, "--target", "one").document
    arms = [command("show", document[arm]["run"], "--json").document for arm in ("a", "b")]
    for run in (alone, *arms):
        [result] = run["results"]
        assert result["reply"]["error"]["kind"] == "timeout"
        assert result["reply"]["tools_used"] == ["look_up"]
        assert run["summary"]["cost"]["question"] == pytest.approx(0.001)
        assert run["summary"]["score"] == alone["summary"]["score"] > 0
