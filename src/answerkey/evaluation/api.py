"""The Python interface: one synchronous door over the asynchronous core."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from answerkey.config import Options, Scoring, Settings, load_settings
from answerkey.evaluation.inputs import QuestionsLike, golden_set
from answerkey.protocols import Target
from answerkey.question import Question
from answerkey.reply import Reply
from answerkey.run import Run
from answerkey.scorecard import Scorecard

__all__ = ["evaluate", "evaluate_async", "score", "score_replies"]

_Value = TypeVar("_Value")
TargetLike = str | Callable[..., Any] | Target


def evaluate(
    questions: QuestionsLike | None = None,
    target: TargetLike = "demo",
    options: Options | None = None,
    **changes: Any,
) -> Run:
    """Ask a chatbot a golden set and grade it; works in scripts and in a notebook's running loop.

    `changes` are fields of Options given by name: `evaluate("golden.jsonl", my_bot, repeat=3)`.
    """
    return _wait(evaluate_async(questions, target, options, **changes))


async def evaluate_async(
    questions: QuestionsLike | None = None,
    target: TargetLike = "demo",
    options: Options | None = None,
    **changes: Any,
) -> Run:
    """The same, awaited."""
    from answerkey.evaluation.live import ask_questions
    from answerkey.gate import evaluate_gates, parse_gate
    from answerkey.run import run_header
    from answerkey.store import open_store

    settings = load_settings()
    chosen = _options(settings, options, changes)
    gates = [parse_gate(gate) for gate in chosen.gates]
    folder = settings.folder if chosen.store == settings.store else None
    run = await ask_questions(
        golden_set(questions, settings),
        target,
        chosen,
        settings=settings,
        open_store=lambda: open_store(chosen.store, folder=folder),
    )
    if gates:
        run = msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, run_header(run))))
    return run


def score(
    question: Question | dict[str, Any],
    reply: Reply | str | dict[str, Any] | None,
    scoring: Scoring | None = None,
) -> Scorecard:
    """Grade one reply to one question."""
    from answerkey.datasets.questions import parse_question
    from answerkey.scorers.plan import make_grader
    from answerkey.targets.mapping import reply_from_payload

    asked = question if isinstance(question, Question) else parse_question({"question": "?", **question})
    given = reply if isinstance(reply, Reply) else reply_from_payload(reply)
    return make_grader(scoring or Scoring()).grade(asked, (given,))


def score_replies(
    replies: str | Path | Iterable[str | Path],
    questions: QuestionsLike | None = None,
    scoring: Scoring | None = None,
) -> Run:
    """Grade recorded replies from files."""
    from answerkey.evaluation.recorded import score_recorded
    from answerkey.scorers.plan import make_grader

    settings = load_settings()
    paths = [replies] if isinstance(replies, str | Path) else list(replies)
    golden = None if questions is None else golden_set(questions, settings)
    return score_recorded(paths, grader=make_grader(scoring or settings.scoring, settings), questions=golden)


def _options(settings: Settings, options: Options | None, changes: dict[str, Any]) -> Options:
    if options is None:
        return settings.options(**changes)
    return msgspec.structs.replace(options, **changes) if changes else options


def _wait(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine to its end, in a thread of its own where a loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[_Value] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  # handed on to the caller's thread, whatever it is
            failure.append(error)

    thread = threading.Thread(target=run, name="answerkey-evaluate")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
