import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from answerkey.errors import UsageError
from answerkey.model.reply import Reply
from answerkey.protocols import Ask, RetryableError
from answerkey.targets.python_target import PythonTarget, load_callable

from .asking import ask


def test_a_function_that_gives_text() -> None:
    reply = ask(PythonTarget(lambda question: question.upper()), "hi")
    assert reply.text == "HI"
    assert reply.timings.latency_ms is not None
    assert reply.timings.latency_ms >= 0


def test_an_async_function_that_gives_a_dict() -> None:
    async def bot(question: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"answer": question, "tools_used": ["a"], "latency_ms": 99999}

    reply = ask(PythonTarget(bot), "hi")
    assert (reply.text, reply.tools_used) == ("hi", ("a",))
    assert reply.timings.latency_ms is not None
    assert reply.timings.latency_ms < 90000, "what was measured counts, not what the chatbot claims"


def test_signatures() -> None:
    def with_conversation(question: str, conversation_id: str) -> str:
        return f"{question}/{conversation_id}"

    def with_ask(ask: Ask) -> str:
        return f"{ask.question}/{ask.turn}"

    def with_keywords(question: str, **more: Any) -> str:
        return f"{question}/{sorted(more)}"

    class Bot:
        def __call__(self, question: str, *, turn: int = 0) -> str:
            return f"{question}/{turn}"

    def call_api(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        return {"output": prompt + context["vars"]["question"]}

    assert ask(PythonTarget(with_conversation), "q").text == "q/c-1"
    assert ask(PythonTarget(with_ask), "q", turn=3).text == "q/3"
    assert ask(PythonTarget(with_keywords), "q").text == "q/['conversation_id']"
    assert ask(PythonTarget(Bot()), "q", turn=2).text == "q/2"
    assert ask(PythonTarget(call_api), "q").text == "qq"


def test_a_signature_that_cannot_be_filled_is_refused() -> None:
    def bot(question: str, database: str) -> str:
        return question + database

    with pytest.raises(UsageError, match="needs database"):
        PythonTarget(bot)
    with pytest.raises(UsageError, match="takes no argument"):
        PythonTarget(lambda: "x")


def test_streams_are_joined() -> None:
    def chunks(question: str) -> Iterator[str]:
        yield "a"
        yield "b"

    async def async_chunks(question: str) -> AsyncIterator[str]:
        yield "c"
        yield "d"

    first, second = ask(PythonTarget(chunks)), ask(PythonTarget(async_chunks))
    assert (first.text, second.text) == ("ab", "cd")
    assert first.timings.first_byte_ms is not None
    assert second.timings.first_byte_ms is not None


class ToolExecutionError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ToolExecutionError("Document not found"), "tool"),
        (ConnectionResetError("gone"), "connection"),
        (TimeoutError(), "timeout"),
        (MemoryError(), "memory"),
        (KeyError("x"), "exception"),
        (SystemExit(3), "exception"),
        (StopIteration(), "exception"),
        (asyncio.CancelledError(), "exception"),
        (GeneratorExit(), "exception"),
        (KeyboardInterrupt(), "exception"),
        (BaseException("odd"), "exception"),
    ],
)
def test_what_it_raises_is_the_replys_failure(error: BaseException, kind: str) -> None:
    def bot(question: str) -> str:
        raise error

    async def async_bot(question: str) -> str:
        raise error

    targets = [bot] if isinstance(error, StopIteration) else [bot, async_bot]
    for function in targets:
        reply = ask(PythonTarget(function))
        assert reply.failure is not None
        assert reply.failure.kind == kind
        assert type(error).__name__ in reply.failure.message
        assert reply.timings.latency_ms is not None


def test_calls_that_an_exception_carries_are_kept() -> None:
    def bot(question: str) -> str:
        error = ToolExecutionError("no")
        error.tool_calls = [{"name": "search"}]  # type: ignore[attr-defined]
        raise error

    assert ask(PythonTarget(bot)).tools_used == ("search",)


def test_rate_limits_and_refused_connections_are_for_the_engine_to_retry() -> None:
    class RateLimitError(Exception):
        status_code = 429
        headers: ClassVar = {"Retry-After": "7"}

    def limited(question: str) -> str:
        raise RateLimitError("slow down")

    def refused(question: str) -> str:
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(RetryableError) as caught:
        ask(PythonTarget(limited))
    assert (caught.value.failure.kind, caught.value.retry_after) == ("rate_limit", 7.0)
    with pytest.raises(RetryableError) as caught:
        ask(PythonTarget(refused))
    assert (caught.value.failure.kind, caught.value.retry_after) == ("connection", None)


def test_blocking_functions_run_side_by_side_up_to_the_concurrency() -> None:
    meet = threading.Barrier(4, timeout=10)

    def bot(question: str) -> str:
        meet.wait()
        return question

    async def run() -> list[Reply]:
        async with PythonTarget(bot, concurrency=4) as target:
            asks = [Ask(question=str(n), conversation_id=str(n)) for n in range(8)]
            return await asyncio.gather(*(target.ask(one) for one in asks))

    assert [reply.text for reply in asyncio.run(run())] == [str(n) for n in range(8)]


def test_what_a_chatbot_keeps_for_each_thread_is_made_once_a_thread() -> None:
    kept, made = threading.local(), []

    def bot(question: str) -> str:
        if not hasattr(kept, "model"):
            kept.model = question
            made.append(question)
        return question

    async def run() -> None:
        async with PythonTarget(bot, concurrency=2) as target:
            asks = [Ask(question=str(n), conversation_id=str(n)) for n in range(20)]
            await asyncio.gather(*(target.ask(one) for one in asks))

    asyncio.run(run())
    assert 0 < len(made) <= 2


def test_a_call_that_never_returns_costs_its_thread_only() -> None:
    stuck = threading.Event()

    def bot(question: str) -> str:
        if question == "stuck":
            stuck.wait(30)
        return question

    async def run() -> Reply:
        async with PythonTarget(bot, concurrency=1) as target:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await target.ask(Ask(question="stuck", conversation_id="1"))
            return await target.ask(Ask(question="next", conversation_id="2"))

    began = time.monotonic()
    assert asyncio.run(run()).text == "next"
    assert time.monotonic() - began < 20
    stuck.set()


def test_loading_by_module_and_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_bot_a.py").write_text("def bot(question):\n    return 'a ' + question\n")
    (tmp_path / "my_bot_b.py").write_text(
        "class Bot:\n    def ask(self, question):\n        return 'b ' + question\n"
    )
    function, source = load_callable("my_bot_a:bot")
    assert function("x") == "a x"
    assert "def bot" in source
    assert load_callable("my_bot_a.py:bot")[0]("x") == "a x"
    assert load_callable(f"{tmp_path}/my_bot_b.py:Bot")[0]("x") == "b x"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_module_x:bot", "there is no module 'no_such_module_x'"),
        ("missing.py:bot", "there is no file missing.py"),
        ("broken_syntax.py:bot", "importing broken_syntax.py failed: SyntaxError"),
        ("needs_more.py:bot", "there is no module 'not_installed_thing'; install it first"),
        ("exits.py:bot", "importing exits.py failed: SystemExit"),
        ("fine.py:bto", "fine.py has no 'bto'; it has bot"),
        ("fine.py:value", "is not a callable"),
        ("fine", "names no callable"),
    ],
)
def test_import_problems_are_one_clear_line(
    reference: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_syntax.py").write_text("def bot(:\n")
    (tmp_path / "needs_more.py").write_text("import not_installed_thing\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "fine.py").write_text("value = 3\ndef bot(question): return question\n")
    with pytest.raises(UsageError, match=message) as caught:
        load_callable(reference)
    assert "\n" not in str(caught.value)


def test_another_source_is_another_target() -> None:
    def first(question: str) -> str:
        return "a"

    def second(question: str) -> str:
        return "b"

    second.__qualname__ = first.__qualname__
    assert PythonTarget(first).fingerprint == PythonTarget(first).fingerprint
    assert PythonTarget(first).fingerprint != PythonTarget(second).fingerprint


def test_what_it_prints_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    def bot(question: str) -> str:
        print("from a thread")
        return question

    async def async_bot(question: str) -> str:
        print("from the loop")
        await asyncio.sleep(0)
        print("from the loop again")
        return question

    async def run() -> None:
        async with PythonTarget(bot) as first, PythonTarget(async_bot) as second:
            asking = [target.ask(Ask(question="q", conversation_id="1")) for target in (first, second)]
            await asyncio.gather(*asking)
            print("from the caller")

    asyncio.run(run())
    print("afterwards")
    out, err = capsys.readouterr()
    assert out == "from the caller\nafterwards\n"
    assert set(err.splitlines()) == {"from a thread", "from the loop", "from the loop again"}


def test_a_question_that_the_engine_gives_up_is_cancelled() -> None:
    begun = asyncio.Event()

    async def bot(question: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return question

    async def run() -> None:
        async with PythonTarget(bot) as target:
            task = asyncio.create_task(target.ask(Ask(question="q", conversation_id="1")))
            await begun.wait()
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()

    asyncio.run(run())


def test_one_size_limit() -> None:
    def endless(question: str) -> Iterator[str]:
        while True:
            yield "x" * 1000

    def huge(question: str) -> Any:
        return (
            {"answer": "a", "sources": [{"text": "x" * 2_000_000}]} if question == "dict" else "x" * 2_000_000
        )

    for function, question in ((endless, ""), (huge, "text"), (huge, "dict")):
        reply = ask(PythonTarget(function, max_reply_mb=1), question)
        assert reply.text is None
        assert reply.failure is not None
        assert (reply.failure.kind, "larger than 1 MB" in reply.failure.message) == ("malformed", True)


class Unknown:
    """An object that nobody knows."""


def test_a_generator_of_objects_is_put_together_and_never_written_out() -> None:
    def chunk(**delta: Any) -> SimpleNamespace:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return SimpleNamespace(choices=[choice], object="chat.completion.chunk", id="c")

    reply = ask(PythonTarget(lambda question: iter([chunk(content="He"), chunk(content="llo")])))
    assert (reply.text, reply.evidence.kind, reply.evidence.completeness) == ("Hello", "stream", "partial")
    odd = ask(PythonTarget(lambda question: iter([Unknown(), Unknown()])))
    assert odd.text is None
    assert odd.failure is not None
    assert odd.failure.kind == "malformed"
    assert "Unknown" in odd.failure.message
    mixed = ask(PythonTarget(lambda question: iter(["Hel", "lo", Unknown()])))
    assert (mixed.text, mixed.evidence.unread) == ("Hello", ("a Unknown object",))
    assert not mixed.evidence.tools_observed


def test_a_later_turn_is_read_from_its_own_question() -> None:
    def bot(question: str) -> Any:
        call = {"id": "c", "type": "function", "function": {"name": "old", "arguments": "{}"}}
        earlier = [{"role": "user", "content": "First?"}, {"role": "assistant", "tool_calls": [call]}]
        return [*earlier, {"role": "user", "content": question}, {"role": "assistant", "content": "Second."}]

    reply = ask(PythonTarget(bot), "And then?", turn=1)
    assert (reply.text, reply.tools_used, reply.evidence.tools_observed) == ("Second.", (), True)


class Dynamic:
    """An object that makes up any attribute, such as an RPC stub or the tools of Strands' agents."""

    def __init__(self) -> None:
        self.answer = "It is 1."

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_: object) -> None:
            raise AttributeError(f"Tool '{name}' not found")

        return missing


class Unreadable:
    def to_dict(self) -> dict[str, Any]:
        raise RuntimeError("not connected")


def test_an_object_that_makes_up_attributes_is_read_by_its_fields() -> None:
    reply = ask(PythonTarget(lambda question: Dynamic()), "q")
    assert (reply.text, reply.failure) == ("It is 1.", None)


def test_an_object_that_cannot_be_read_is_not_charged_to_the_chatbot() -> None:
    reply = ask(PythonTarget(lambda question: Unreadable()), "q")
    assert reply.failure is not None
    assert reply.failure.kind == "mapping"
    assert "not connected" in reply.failure.message
