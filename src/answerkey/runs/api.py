"""The doors to every flow: what Python, the command line and pytest call, each in the same way.

A door loads only its own flow, so that each starts at once. The synchronous ones also work inside a notebook's running
loop.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import Settings, load_settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import UsageError
from answerkey.model.options import JudgeSettings, Options, Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Scorecard
from answerkey.runs.context import (
    JudgeLike,
    QuestionsLike,
    RunContext,
    golden_set,
    judge_settings,
    make_context,
    make_options,
    select_questions,
)
from answerkey.runs.progress import NoProgress, Progress, wait_for
from answerkey.runs.stored import find_baseline, open_configured_store
from answerkey.scorers.plan import make_grader
from answerkey.targets.resolve import TargetLike
from answerkey.transcripts.conversation import QuestionContext
from answerkey.transcripts.payloads import reply_from_payload

if TYPE_CHECKING:
    from answerkey.gates import Gate
    from answerkey.runs.experiment import Experiment
    from answerkey.runs.live import Asking
    from answerkey.runs.recorded import LogScoring
    from answerkey.store.sql import SqlStore

# A judge in the place of a stored run's own, or what is to change of that one.
JudgeChange = JudgeLike | Callable[[JudgeSettings], JudgeSettings]


def evaluate(
    questions: QuestionsLike | None = None,
    target: TargetLike | None = None,
    options: Options | None = None,
    *,
    scorers: Sequence[Any] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Run:
    """Ask a chatbot a golden set and grade it; works in scripts and in a notebook's running loop.

    `scorers` are scorers of the caller's own, beside those of the configuration. `changes` are fields of Options given
    by name: `evaluate("golden.jsonl", my_bot, repeat=3)`.
    """
    return wait_for(
        evaluate_async(
            questions, target, options, scorers=scorers, settings=settings, progress=progress, **changes
        )
    )


async def evaluate_async(
    questions: QuestionsLike | None = None,
    target: TargetLike | None = None,
    options: Options | None = None,
    *,
    scorers: Sequence[Any] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Run:
    """The same, awaited."""
    from answerkey.runs.live import Asking, ask_run

    settings = settings or load_settings()
    chosen = make_options(settings, options, changes)
    # Everything that can be wrong is found before the first question is asked.
    assembly = make_context(chosen, settings, scorers=scorers)
    golden = select_questions(golden_set(questions, settings, chosen.map), chosen)
    assembly.grader.check_questions(golden)
    baseline = find_baseline(settings, chosen.store, chosen.baseline)
    if baseline is not None:
        kept = msgspec.structs.replace(chosen, baseline=baseline.id)
        assembly = msgspec.structs.replace(assembly, options=kept)
    if chosen.confirm:
        from answerkey.runs.confirming import check_confirm

        check_confirm(assembly)
    given = target if target is not None else settings.target or "demo"
    async with assembly.target(given) as opened:
        # Only once the target answers: one that is mistyped leaves no store behind.
        store = open_configured_store(settings, chosen.store)
        spec = given if isinstance(given, str) else None
        asking = Asking(assembly, golden, opened, spec, store, progress or NoProgress())
        if chosen.reuse:
            from answerkey.runs.resuming import ask_reusing as ask_run
        run = await ask_run(asking)
        run = msgspec.structs.replace(run, warnings=(*run.warnings, *_reading_notes(golden)))
        return await _with_verdicts(run, asking, baseline)


def resume(
    run: str = "latest",
    *,
    target: TargetLike | None = None,
    judge: JudgeChange | None = None,
    scorers: Sequence[Any] = (),
    store: str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    wait: bool = False,
    accept_changes: bool = False,
    budget: float | None = None,
) -> Run:
    """Ask only what a run still lacks; `judge` and `budget` take the place of the run's own.

    While another process asks the run, RunOwnedError is raised, or with `wait` its end awaited. Where the chatbot, the
    golden set or the scoring is not as it was, UsageError says which; with `accept_changes`, a new run is made that
    begins with the replies that still hold.
    """
    from answerkey.runs.resuming import resume_run

    settings = settings or load_settings()
    opened_store = open_configured_store(settings, store, create=False)
    info = opened_store.find_run(run)
    options = msgspec.structs.replace(
        info.options,
        judge=_changed_judge(judge, info.options.judge),
        budget=info.options.budget if budget is None else budget,
        prices=settings.prices or info.options.prices,
    )
    assembly = make_context(options, settings, scorers=scorers)
    baseline = None if options.baseline is None else opened_store.find_run(options.baseline)

    return resume_run(
        assembly,
        info,
        opened_store,
        progress or NoProgress(),
        lambda asked, asking: _with_verdicts(asked, asking, baseline),
        target=target,
        wait=wait,
        accept_changes=accept_changes,
    )


def rescore(
    run: str = "latest",
    *,
    scoring: Scoring | None = None,
    questions: QuestionSet | None = None,
    judge: JudgeChange | None = None,
    scorers: Sequence[Any] = (),
    store: str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Run:
    """Score a run's stored replies anew, by default under the scoring that is configured now; nothing is asked."""
    from answerkey.runs.rescoring import rescore_run

    settings = settings or load_settings()
    opened = open_configured_store(settings, store, create=False)
    info = opened.find_run(run)
    own = info.options.judge
    options = msgspec.structs.replace(
        info.options,
        scoring=scoring or settings.scoring,
        judge=_changed_judge(judge, own if own.models else settings.judge),
        # Gates were for the run as it was scored then.
        gates=(),
        outputs=(),
    )
    assembly = make_context(options, settings, scorers=scorers)
    scored = wait_for(rescore_run(assembly, info, opened, progress or NoProgress(), questions=questions))
    if options.baseline is None:
        return scored
    from answerkey.runs.verdicts import decided

    return decided(scored, opened, gated=False)


def ab(
    questions: QuestionsLike | None = None,
    a: TargetLike | None = None,
    b: TargetLike | None = None,
    options: Options | None = None,
    *,
    early_stop: bool = False,
    looks: int = 0,
    resume: str | None = None,
    gates: Sequence[str] = (),
    scorers: Sequence[Any] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> "Experiment":
    """Ask two chatbots the same questions, interleaved, and say whether `b` is better than `a`.

    `early_stop` may end it after any question, `looks` after each of so many equal parts. `gates` are held against `b`, those
    on a comparison against its difference to `a`.
    `resume` goes on with an interrupted experiment: the id of either of its runs.
    """
    from answerkey.runs.experiment import resume_experiment, run_experiment

    settings = settings or load_settings()
    chosen = make_options(settings, options, changes)
    watched = progress or NoProgress()
    if resume is not None:
        store = open_configured_store(settings, chosen.store, create=False)
        info = store.find_run(resume)
        kept = info.options
        again = msgspec.structs.replace(kept, budget=kept.budget if chosen.budget is None else chosen.budget)
        assembly = make_context(again, settings, scorers=scorers)
        held = _experiment_gates(assembly, gates)
        return wait_for(resume_experiment(assembly, info, store, watched)).with_gates(held)
    if a is None or b is None:
        raise UsageError("an experiment needs two targets: --a T --b T")
    # The configured gates and baseline are for runs.
    assembly = make_context(
        msgspec.structs.replace(chosen, gates=(), baseline=None), settings, scorers=scorers
    )
    held = _experiment_gates(assembly, gates)
    golden = select_questions(golden_set(questions, settings, chosen.map), chosen)
    assembly.grader.check_questions(golden)
    asked = run_experiment(assembly, golden, (a, b), watched, early_stop=early_stop, looks=looks)
    return wait_for(asked).with_gates(held)


def _experiment_gates(assembly: RunContext, gates: Sequence[str]) -> "list[Gate]":
    from answerkey.gates import check_gates  # loaded where there are conditions

    return check_gates(gates, assembly.grader.directions, baseline="a")[: len(gates)]


def score(
    question: Question | dict[str, Any],
    reply: Reply | str | dict[str, Any] | None,
    scoring: Scoring | None = None,
    *,
    scorers: Sequence[Any] = (),
) -> Scorecard:
    """Grade one reply to one question."""
    asked = question if isinstance(question, Question) else parse_question({"question": "?", **question})
    given = (
        reply
        if isinstance(reply, Reply)
        else reply_from_payload(reply, asked=QuestionContext(asked.question))
    )
    return make_grader(scoring or Scoring(), scorers=scorers).grade(asked, (given,))


def score_replies(
    replies: str | Path | Iterable[str | Path],
    questions: QuestionsLike | None = None,
    scoring: Scoring | None = None,
    judge: JudgeLike | None = None,
    *,
    how: "LogScoring | None" = None,
    fields: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
    scorers: Sequence[Any] = (),
    store: str | None = None,
    name: str | None = None,
    keep: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Run:
    """Grade recorded replies from files, folders and patterns; a judge's answers are remembered in the store.

    `fields` says where the replies' rows have their fields: field → JMESPath. With `keep` or a `name`, the scored log is kept
    in the store as a run.
    """
    from answerkey.runs.recorded import LogScoring

    settings = settings or load_settings()
    keep = keep or name is not None
    how = how or LogScoring()
    paths = [Path(replies)] if isinstance(replies, str | Path) else [Path(path) for path in replies]
    options = settings.options(
        scoring=scoring or settings.scoring, judge=judge_settings(judge, settings.judge)
    )
    how = msgspec.structs.replace(
        how,
        fields=dict(fields or how.fields),
        kept="trials" if keep else how.kept,
        scoring_seconds=how.scoring_seconds or options.scoring_seconds,
    )
    assembly = make_context(
        msgspec.structs.replace(options, gates=tuple(gates), baseline=None), settings, scorers=scorers
    )
    golden = None if questions is None else golden_set(questions, settings)
    if golden is not None:
        assembly.grader.check_questions(golden)
    opened = open_configured_store(settings, store) if keep or assembly.judge is not None else None
    with nullcontext() if opened is None or keep else opened:
        run = _scored_log(paths, assembly, opened, golden, how, progress or NoProgress())
    if keep and opened is not None:
        from answerkey.runs.kept_log import keep_log

        run = keep_log(run, opened, name, golden)
    return _with_gates(run, assembly)


def _scored_log(
    paths: Sequence[Path],
    assembly: RunContext,
    store: "SqlStore | None",
    golden: QuestionSet | None,
    how: "LogScoring",
    progress: Progress,
) -> Run:
    """Recorded replies graded, with what a judge says of them where there is one."""
    grader = assembly.grader
    if assembly.judge is None or store is None:
        from answerkey.runs.recorded import score_recorded

        return score_recorded(paths, grader=grader, questions=golden, how=how, progress=progress)
    from answerkey.runs.judged_log import score_judged

    judge = assembly.judge
    return wait_for(
        score_judged(
            paths, grader=grader, judge=judge, store=store, questions=golden, how=how, progress=progress
        )
    )


def _reading_notes(golden: QuestionSet) -> Iterator[str]:
    """What a reader must know of how the golden set was read."""
    if golden.read_as:
        yield f"the golden set was read as: {golden.read_as}"
    if golden.unknown_fields:
        yield f"fields of the golden set that are kept as notes: {', '.join(golden.unknown_fields)}"


def _changed_judge(judge: JudgeChange | None, own: JudgeSettings) -> JudgeSettings:
    return judge(own) if callable(judge) else judge_settings(judge, own)


async def _with_verdicts(run: Run, asking: "Asking", baseline: RunInfo | None) -> Run:
    """A run that was asked, with its comparison, its flips confirmed and its gates, where it has any."""
    assembly, store = asking.assembly, asking.store
    if baseline is not None:
        from answerkey.runs.verdicts import compare_with_baseline

        run = compare_with_baseline(run, baseline, store, margin=assembly.options.margin)
        if assembly.options.confirm:
            from answerkey.runs.confirming import confirm_flips

            run = await confirm_flips(run, assembly, asking.target, baseline, store)
    # A job's summary is a report as well.
    if assembly.options.outputs or os.environ.get("GITHUB_STEP_SUMMARY"):
        from answerkey.runs.verdicts import with_earlier_runs

        run = with_earlier_runs(run, store)
    return _with_gates(run, assembly)


def _with_gates(run: Run, assembly: RunContext) -> Run:
    if not assembly.gates:
        return run
    from answerkey.runs.verdicts import with_gates

    return with_gates(run, assembly.gates)
