"""The Python interface: one synchronous door over the asynchronous core."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from answerkey.config import JudgeSettings, Options, Scoring, Settings, load_settings
from answerkey.evaluation.inputs import QuestionsLike, golden_set
from answerkey.evaluation.waiting import wait_for
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import Run
from answerkey.model.scorecard import Scorecard
from answerkey.protocols import Target

__all__ = ["evaluate", "evaluate_async", "score", "score_replies"]

JudgeLike = JudgeSettings | str | Sequence[str]
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
    return wait_for(evaluate_async(questions, target, options, **changes))


async def evaluate_async(
    questions: QuestionsLike | None = None,
    target: TargetLike = "demo",
    options: Options | None = None,
    **changes: Any,
) -> Run:
    """The same, awaited."""
    from answerkey.comparison.judging import judge_run
    from answerkey.evaluation.live import ask_questions
    from answerkey.gate import check_gates
    from answerkey.store import open_run_store, open_store

    settings = load_settings()
    chosen = _options(settings, options, changes)
    gates = check_gates(chosen.gates, chosen.baseline)
    folder = settings.folder if chosen.store == settings.store else None
    golden = golden_set(questions, settings)
    baseline = None
    if chosen.baseline is not None:
        # Looked up before the run, after which `latest` is another one.
        with open_store(chosen.store, folder=folder, create=False) as store:
            baseline = store.find_run(chosen.baseline)
    run = await ask_questions(
        golden,
        target,
        chosen,
        settings=settings,
        open_store=lambda: open_run_store(chosen.store, folder=folder),
    )
    if gates or baseline is not None:
        with open_store(chosen.store, folder=folder) as store:
            run, _ = judge_run(run, gates, baseline=baseline, store=store)
    return run


def score(
    question: Question | dict[str, Any],
    reply: Reply | str | dict[str, Any] | None,
    scoring: Scoring | None = None,
) -> Scorecard:
    """Grade one reply to one question."""
    from answerkey.datasets.questions import parse_question
    from answerkey.scorers.plan import make_grader
    from answerkey.transcripts.reply_mapping import reply_from_payload

    asked = question if isinstance(question, Question) else parse_question({"question": "?", **question})
    given = reply if isinstance(reply, Reply) else reply_from_payload(reply)
    return make_grader(scoring or Scoring()).grade(asked, (given,))


def score_replies(
    replies: str | Path | Iterable[str | Path],
    questions: QuestionsLike | None = None,
    scoring: Scoring | None = None,
    judge: "JudgeLike | None" = None,
) -> Run:
    """Grade recorded replies from files; a judge's answers are remembered in the configured store."""
    from answerkey.evaluation.judged_log import judge_recorded
    from answerkey.evaluation.recorded import score_recorded
    from answerkey.judge.judge import make_judge
    from answerkey.scorers.plan import make_grader
    from answerkey.store import open_store

    settings = load_settings()
    paths = [replies] if isinstance(replies, str | Path) else list(replies)
    golden = None if questions is None else golden_set(questions, settings)
    chosen = scoring or settings.scoring
    asked = make_judge(judge_settings(judge, settings.judge), chosen, folder=settings.folder)
    grader = make_grader(chosen, settings, judge=asked)
    if asked is None:
        return score_recorded(paths, grader=grader, questions=golden)
    with open_store(settings.store, folder=settings.folder) as store:
        return judge_recorded(paths, grader=grader, judge=asked, store=store, questions=golden)


def judge_settings(judge: "JudgeLike | None", base: JudgeSettings) -> JudgeSettings:
    """A judge as callers name it: settings, or a model (several for a panel) with the configured ones."""
    if judge is None:
        return base
    if isinstance(judge, JudgeSettings):
        return judge
    return msgspec.structs.replace(base, model=judge if isinstance(judge, str) else tuple(judge))


def _options(settings: Settings, options: Options | None, changes: dict[str, Any]) -> Options:
    if "judge" in changes:
        base = settings.judge if options is None else options.judge
        changes = {**changes, "judge": judge_settings(changes["judge"], base)}
    if options is None:
        return settings.options(**changes)
    return msgspec.structs.replace(options, **changes) if changes else options
