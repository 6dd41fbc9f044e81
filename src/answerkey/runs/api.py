"""Public entry points used by Python, the command line and pytest.

Each function imports only what it needs, so that commands start fast. The synchronous ones also work inside the running
loop of a notebook.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import Settings, load_settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import InputError, UsageError
from answerkey.model.options import JudgeSettings, Options, Scoring
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.model.run import Run, RunInfo
from answerkey.model.scorecard import Scorecard, worded_card
from answerkey.protocols import NO_PROGRESS, Progress
from answerkey.runs.context import (
    JudgeLike,
    QuestionsLike,
    RunContext,
    check_questions_given,
    choose_target,
    golden_set,
    judge_settings,
    make_context,
    make_options,
    select_questions,
    wait_for,
    with_truth,
)
from answerkey.runs.stored import find_baseline, given_run, open_configured_store
from answerkey.scorers.grader import make_grader
from answerkey.transcripts.files import input_path
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import reply_from_payload

if TYPE_CHECKING:
    from answerkey.gates import Gate
    from answerkey.model.comparison import Comparison
    from answerkey.protocols import BaseTarget
    from answerkey.runs.bisect import Bisection
    from answerkey.runs.fault_results import FaultResult
    from answerkey.runs.logs import LogScoring
    from answerkey.runs.run_variants import Experiment
    from answerkey.store.sql import SqlStore
    from answerkey.targets.resolve import TargetLike

# Another judge for a stored run, or a function that changes the settings of its own.
JudgeChange = JudgeLike | Callable[[JudgeSettings], JudgeSettings]


def evaluate(
    questions: QuestionsLike | None = None,
    target: "TargetLike | None" = None,
    options: Options | None = None,
    *,
    scorers: Sequence[Any] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Run:
    """Ask a chatbot the questions of a golden set and grade the replies.

    `scorers` are custom scorers, used in addition to those of the configuration. `changes` are fields of Options:
    `evaluate("golden.jsonl", my_bot, repeat=3)`.
    """
    return wait_for(
        evaluate_async(
            questions, target, options, scorers=scorers, settings=settings, progress=progress, **changes
        )
    )


async def evaluate_async(
    questions: QuestionsLike | None = None,
    target: "TargetLike | None" = None,
    options: Options | None = None,
    *,
    scorers: Sequence[Any] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Run:
    """`evaluate` as a coroutine."""
    from answerkey.runs.run import ask_run, new_run

    settings = settings or load_settings()
    chosen = make_options(settings, options, changes)
    # Whatever is wrong is reported before the first question is asked.
    context = make_context(chosen, settings, scorers=scorers, progress=progress)
    golden, context = _with_questions(context, questions, chosen)
    _check_slices(context.gates, golden)
    baseline = find_baseline(settings, chosen)
    if chosen.baseline is not None:
        # The reference by its id, since `latest` will be another run; without a baseline, nothing to confirm.
        by_id = {"baseline": None, "confirm": 0} if baseline is None else {"baseline": baseline.id}
        context = msgspec.structs.replace(context, options=msgspec.structs.replace(chosen, **by_id))
    if context.options.confirm:
        from answerkey.runs.stored import check_confirm

        check_confirm(context)
    chatbot = choose_target(target, settings, questions=questions, options=chosen)
    check_questions_given(questions, [chatbot], settings)
    async with context.target(chatbot) as opened:
        # Only once the target answers: a mistyped one leaves no store behind.
        store = open_configured_store(settings, chosen.store)
        spec = chatbot if isinstance(chatbot, str) else None
        if chosen.reuse:
            from answerkey.runs.run_variants import ask_with_reuse

            run = await ask_with_reuse(context, store, golden, opened, spec)
        else:
            run = await ask_run(context, store, golden, opened, new_run(context, opened, spec, golden))
        notes = [*_default_notes(questions, target, settings), *_reading_notes(golden)]
        if chosen.baseline is not None and baseline is None:
            notes.append(f"baseline {chosen.baseline!r} does not exist yet: nothing was compared")
        run = msgspec.structs.replace(run, warnings=(*run.warnings, *notes))
        return await _with_verdicts(run, context, store, opened, baseline)


def resume(
    run: str | Run = "latest",
    *,
    target: "TargetLike | None" = None,
    judge: JudgeChange | None = None,
    scorers: Sequence[Any] = (),
    store: str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    wait: bool = False,
    accept_changes: bool = False,
    budget: float | None = None,
) -> Run:
    """Ask what an interrupted run lacks; `judge` and `budget` replace those of the run.

    If another process owns the run, RunOwnedError is raised, or with `wait` its end is awaited. If the chatbot, the
    golden set or the scoring has changed, UsageError says which; with `accept_changes`, a new run is made from the
    replies that are still valid.
    """
    from answerkey.runs.run_variants import resume_run

    settings = settings or load_settings()
    opened_store, info, options = _stored_run(run, settings, store, judge, budget)
    context = make_context(options, settings, scorers=scorers, progress=progress)
    baseline = None if options.baseline is None else opened_store.find_run(options.baseline)

    return resume_run(
        context,
        info,
        opened_store,
        lambda finished, opened: _with_verdicts(finished, context, opened_store, opened, baseline),
        target=target,
        wait=wait,
        accept_changes=accept_changes,
    )


def rescore(
    run: str | Run = "latest",
    *,
    scoring: Scoring | None = None,
    questions: QuestionSet | None = None,
    judge: JudgeChange | None = None,
    scorers: Sequence[Any] = (),
    store: str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    recompute_truth: bool = False,
    change_baseline: bool = False,
) -> Run:
    """Score the stored replies of a run again, by default with the configured scoring; nothing is asked.

    The run keeps its id, baseline and gates, which are evaluated on the new scores; the old scores stay in the store, and
    `info.rescored` says how it was scored before. A run that is a named baseline is refused if its scores would be of
    another kind, unless `change_baseline`. Computed expectations keep the values that were stored with the run, unless
    `recompute_truth`; without it, `questions` with a computed expectation that the run has no value for are refused.
    """
    from answerkey.runs.run_variants import (
        asked_part,
        current_questions,
        golden_file_has_changed,
        rescore_run,
        with_values_of_run,
    )
    from answerkey.runs.stored import decided

    settings = settings or load_settings()
    opened = open_configured_store(settings, store, create=False)
    info = opened.find_run(run if isinstance(run, str) else run.id)
    own = info.options.judge
    options = msgspec.structs.replace(
        info.options,
        scoring=scoring or settings.scoring,
        judge=_changed_judge(judge, own if own.models else settings.judge),
        outputs=(),
    )
    # A gate may name a metric that the new scoring does not have: it then fails, once the replies are scored.
    ungated = msgspec.structs.replace(options, gates=(), baseline=None)
    context = make_context(ungated, settings, scorers=scorers, progress=progress)
    context = msgspec.structs.replace(context, options=options)
    notes = []
    if questions is not None:
        questions = asked_part(questions, info, opened)
    if questions is not None and not recompute_truth:
        questions = with_values_of_run(questions, info, opened)
    elif not recompute_truth and golden_file_has_changed(info, context, opened):
        notes.append(
            f"the golden set {info.question_path} has changed since the run; the expectations stored with the run were used; "
            f"to use those of the file: answerkey rescore {info.id} --questions {info.question_path}"
        )
    is_changed = recompute_truth or context.grader.hash != info.scoring_hash
    if is_changed or (questions is not None and questions.hash != info.question_set_hash):
        _check_baseline(info, opened, change_baseline=change_baseline)
    if recompute_truth:
        questions, truth = with_truth(questions or current_questions(info, context, opened), settings)
        context = msgspec.structs.replace(context, truth=truth)
    rescored = wait_for(rescore_run(context, info, opened, questions=questions))
    rescored = msgspec.structs.replace(rescored, warnings=(*rescored.warnings, *notes))
    return decided(rescored, opened)


def _check_baseline(info: RunInfo, store: "SqlStore", *, change_baseline: bool) -> None:
    """Refuse to change the scores of a baseline in silence: later runs are compared with them."""
    names = [name for name, run_id in store.baselines().items() if run_id == info.id]
    if names and not change_baseline:
        raise UsageError(
            f"run {info.id} is the baseline {names[0]!r}: other settings would change what later runs are compared with; "
            "to do that, add --change-baseline"
        )


def compare(base: Run | str, candidate: Run | str, *, margin: float | None = None) -> "Comparison":
    """Compare two runs, or stored runs by name; `.verdict` says whether the candidate is better.

    With a `margin`, the verdict is "same" if the interval is within ± the margin.
    """
    from answerkey.comparison import compare_runs
    from answerkey.comparison.columns import columns_from_run

    first, second = (columns_from_run(given_run(run)) for run in (base, candidate))
    return compare_runs(first, second, margin=margin)


def ab(
    questions: QuestionsLike | None = None,
    a: "TargetLike | None" = None,
    b: "TargetLike | None" = None,
    options: Options | None = None,
    *,
    early_stop: bool = False,
    looks: int = 0,
    resume: str | None = None,
    gates: Sequence[str] = (),
    judge: JudgeChange | None = None,
    scorers: Sequence[Any] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> "Experiment":
    """Ask two chatbots the same questions, interleaved, and decide whether `b` is better than `a`.

    `early_stop` may end it after any question, `looks` after each of that many equal parts. `gates` are evaluated on
    `b`; those on a comparison, on its difference to `a`. `resume` continues an interrupted experiment, given the id of
    either of its runs; there, `judge` changes the judge and `budget` the budget.
    """
    from answerkey.runs.run_variants import ask_experiment, compare_experiment, resume_experiment

    settings = settings or load_settings()
    chosen = make_options(settings, options, changes)
    if resume is not None:
        store, info, continued = _stored_run(resume, settings, chosen.store, judge, chosen.budget)
        context = make_context(continued, settings, scorers=scorers, progress=progress)
        parsed = _experiment_gates(context, gates)
        asked = wait_for(resume_experiment(context, info, store))
        return compare_experiment(context, asked).with_gates(parsed)
    if a is None or b is None:
        raise UsageError("an experiment needs two targets: --a T --b T")
    check_questions_given(questions, [a, b], settings)
    # The configured gates and baseline are for runs.
    context = make_context(
        msgspec.structs.replace(chosen, gates=(), baseline=None), settings, scorers=scorers, progress=progress
    )
    parsed = _experiment_gates(context, gates)
    golden, context = _with_questions(context, questions, chosen)
    _check_slices(parsed, golden)
    asking = ask_experiment(context, golden, (a, b), early_stop=early_stop, looks=looks)
    # Large sets are freed before their runs are compared.
    del golden
    return compare_experiment(context, wait_for(asking)).with_gates(parsed)


def _check_slices(gates: "Sequence[Gate]", golden: QuestionSet) -> None:
    if gates:
        from answerkey.gates import check_slices  # most runs have no gates

        check_slices(gates, golden)


def _experiment_gates(context: RunContext, gates: Sequence[str]) -> "list[Gate]":
    from answerkey.gates import check_gates  # most runs have no gates

    return check_gates(gates, context.grader.directions, baseline="a")[: len(gates)]


def bisect(
    good: str,
    bad: str,
    questions: QuestionsLike | None = None,
    target: str | None = None,
    options: Options | None = None,
    *,
    repository: Path | None = None,
    setup: str | None = None,
    start: str | None = None,
    note: Callable[[str], object] = lambda line: None,
    settings: Settings | None = None,
    **changes: Any,
) -> "Bisection":
    """Find the commit that made a chatbot worse, by asking checkouts of its commits the questions that flipped.

    Args:
        good: The commit before, or a stored run of one.
        bad: The commit after it.
        questions: The golden set.
        target: The chatbot, started in a checkout of each commit.
        repository: The chatbot's git repository, by default the one of the configuration.
        setup: Command run once in each checkout; a commit at which it fails is skipped.
        start: Command that starts the chatbot's server in a checkout.
        note: Gets a line for each commit that is asked.
    """
    from answerkey.runs.bisect import find_commit

    settings = settings or load_settings()
    # The configured gates and baseline are for runs.
    chosen = msgspec.structs.replace(
        make_options(settings, options, changes), gates=(), baseline=None, confirm=0, reuse=False, outputs=()
    )
    golden, context = _with_questions(make_context(chosen, settings), questions, chosen)
    spec = choose_target(target, settings, questions=questions, options=chosen)
    if not isinstance(spec, str):
        raise UsageError("bisect starts the chatbot in checkouts of its commits; name it, e.g. bot.py:answer")
    check_questions_given(questions, [spec], settings)
    finding = find_commit(
        context, golden, spec, good, bad, repository=repository, setup=setup, start=start, note=note
    )
    return wait_for(finding)


def faults(
    questions: QuestionsLike | None = None,
    target: "TargetLike | None" = None,
    options: Options | None = None,
    *,
    kinds: Sequence[str] = (),
    tools: Sequence[str] = (),
    per_question: int = 1,
    confirm: int = 0,
    resume: str | None = None,
    gates: Sequence[str] = (),
    judge: JudgeChange | None = None,
    scorers: Sequence[Any] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> "FaultResult":
    """Ask each question clean and with faults in the results of its tools, and decide what the chatbot made of them.

    Args:
        questions: The golden set.
        target: The chatbot: one that the proxy observes, a model with tools, or Python with `@answerkey.fault_point`.
        kinds: Kinds of faults; all of them by default.
        tools: Tools to break; by default those that the clean replies used.
        per_question: Faults for each question.
        confirm: Ask each question that was not handled this many more times with the same fault.
        resume: Continue an interrupted run, given the id of either of its runs.
        gates: Such as "resilience >= 0.8", "fabricated == 0" and "landed >= 20".

    >>> answerkey.faults("questions.jsonl", target=my_bot, kinds=["error", "empty"]).outcomes  # doctest: +SKIP
    """
    from answerkey.runs.fault_results import FaultOutcome, check_fault_gates, with_fault_gates
    from answerkey.runs.faults import fault_settings, resume_faults, run_faults
    from answerkey.scorers.grader import quality_arguments

    settings = settings or load_settings()
    chosen = make_options(settings, options, changes)
    check_fault_gates(gates)
    if resume is not None:
        store, info, continued = _stored_run(resume, settings, chosen.store, judge, chosen.budget)
        outcome = FaultOutcome(**quality_arguments(continued.scoring, settings))
        context = make_context(continued, settings, scorers=[*scorers, outcome], progress=progress)
        return with_fault_gates(wait_for(resume_faults(context, info, store)), gates)
    planned = fault_settings(kinds, tools, per_question, chosen)
    # The configured gates and baseline are for runs.
    chosen = msgspec.structs.replace(chosen, gates=(), baseline=None, confirm=0, reuse=False)
    outcome = FaultOutcome(**quality_arguments(chosen.scoring, settings))
    context = make_context(chosen, settings, scorers=[*scorers, outcome], progress=progress)
    golden, context = _with_questions(context, questions, chosen)
    target = choose_target(target, settings, questions=questions, options=chosen)
    check_questions_given(questions, [target], settings)
    return with_fault_gates(wait_for(run_faults(context, golden, target, planned, confirm=confirm)), gates)


def score(
    question: Question | dict[str, Any],
    reply: Reply | str | dict[str, Any] | None,
    scoring: Scoring | None = None,
    *,
    scorers: Sequence[Any] = (),
) -> Scorecard:
    """Grade one reply to one question."""
    case = question if isinstance(question, Question) else parse_question({"question": "?", **question})
    read = (
        reply
        if isinstance(reply, Reply)
        else reply_from_payload(reply, context=QuestionContext(case.question))
    )
    return worded_card(make_grader(scoring or Scoring(), scorers=scorers).grade(case, (read,)))


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
    """Grade recorded replies from files, folders and patterns; a judge's answers are cached in the store.

    `fields` maps fields of the rows: field → JMESPath. With `keep` or a `name`, the scored log is stored as a run.
    """
    from answerkey.runs.logs import LogScoring, score_judged_log, score_log, store_log

    settings, progress = settings or load_settings(), progress or NO_PROGRESS
    keep = keep or name is not None
    how = how or LogScoring()
    paths = [input_path(path) for path in ([replies] if isinstance(replies, str | Path) else replies)]
    options = settings.options(
        scoring=scoring or settings.scoring, judge=judge_settings(judge, settings.judge)
    )
    context = make_context(
        msgspec.structs.replace(options, gates=tuple(gates), baseline=None), settings, scorers=scorers
    )
    how = msgspec.structs.replace(
        how,
        fields=dict(fields or how.fields),
        results="trials" if keep or _gates_read_trials(context.gates, how) else how.results,
        scoring_seconds=how.scoring_seconds or options.scoring_seconds,
    )
    grader, judge_of_log = context.grader, context.judge
    golden = None
    if questions is not None:
        golden, context = _prepared(context, golden_set(questions, settings))
    opened = open_configured_store(settings, store) if keep or judge_of_log is not None else None
    with nullcontext() if opened is None or keep else opened:
        if judge_of_log is None or opened is None:
            run = score_log(paths, grader=grader, questions=golden, how=how, progress=progress)
        else:
            scoring_log = score_judged_log(
                paths,
                grader=grader,
                judge=judge_of_log,
                store=opened,
                questions=golden,
                how=how,
                progress=progress,
            )
            run = wait_for(scoring_log)
    if keep and opened is not None:
        run = store_log(run, opened, name, golden)
    return _with_gates(run, context, opened if keep else None)


def _gates_read_trials(gates: "Sequence[Gate]", how: "LogScoring") -> bool:
    """Whether a gate looks at each question, or the causes of its failure are shown instead of results."""
    return any(gate.kind == "question" for gate in gates) or (bool(gates) and how.results == "nothing")


# Measures of `score --qrels` when none is named.
TREC_MEASURES = ("nDCG@10", "P@10", "R@10", "AP", "RR")


def evaluate_trec_run(
    run: str | Path, qrels: str | Path, measures: str | Sequence[str] = TREC_MEASURES
) -> dict[str, Any]:
    """The document of `answerkey score RUN --qrels QRELS`: the mean of each measure, and the number of queries.

    Queries in only one of the files are not part of the means, as in trec_eval without `-c`, and are counted.
    """
    from answerkey.datasets.evals_and_trec import read_qrels, read_trec_run
    from answerkey.scorers.evidence import evaluate_runs, parse_measures

    parsed = parse_measures(measures if isinstance(measures, str) else tuple(measures))
    if not parsed:
        raise UsageError("no retrieval measure given; name some, for example --metrics nDCG@10,P@5,AP,RR")
    judged, retrieved = read_qrels(qrels), read_trec_run(run)
    values = evaluate_runs(parsed, judged, retrieved)
    if not values:
        examples = f"{next(iter(retrieved))!r} in the run, {next(iter(judged))!r} in the qrels"
        raise InputError(
            f"no query is in both the run and {qrels} ({examples}); check the query ids", path=run
        )
    return {
        "metrics": {
            measure.name: fsum(query[measure.name] for query in values.values()) / len(values)
            for measure in parsed
        },
        "queries": len(values),
        "queries_without_judgements": len(retrieved.keys() - judged.keys()),
        "queries_not_retrieved": len(judged.keys() - retrieved.keys()),
    }


def _default_notes(
    questions: QuestionsLike | None, target: "TargetLike | None", settings: Settings
) -> Iterator[str]:
    """What was used because nothing was given or configured."""
    if questions is not None or settings.questions is not None:
        return
    if target is None and settings.target is None:
        yield (
            "nothing is configured here, so the built-in demo chatbot was asked; "
            "for yours: answerkey init --target http://localhost:8000/chat"
        )


# Warnings of a run about values in its golden set; `lint` shows all.
_MOST_READ_NOTES = 5


def _reading_notes(golden: QuestionSet) -> Iterator[str]:
    """Warnings about how the golden set was read."""
    if golden.read_as:
        yield f"the golden set was read as: {golden.read_as}"
    for note in golden.notes[:_MOST_READ_NOTES]:
        yield f"the golden set, line {note.line}: {note.message}; {note.remedy}"
    if len(golden.notes) > _MOST_READ_NOTES:
        yield f"{len(golden.notes) - _MOST_READ_NOTES} more values like these: run answerkey lint"
    if golden.unknown_fields:
        yield f"fields of the golden set that are treated as notes: {', '.join(golden.unknown_fields)}"


def _with_questions(
    context: RunContext, questions: QuestionsLike | None, chosen: Options
) -> tuple[QuestionSet, RunContext]:
    """The chosen questions of a golden set, prepared for asking."""
    return _prepared(context, select_questions(golden_set(questions, context.settings, chosen.map), chosen))


def _prepared(context: RunContext, golden: QuestionSet) -> tuple[QuestionSet, RunContext]:
    """A golden set, checked and with its computed expectations."""
    context.grader.check_questions(golden)
    golden, truth = with_truth(golden, context.settings)
    context.grader.set_questions(golden)
    return golden, msgspec.structs.replace(context, truth=truth)


def _stored_run(
    run: str | Run, settings: Settings, store: str | None, judge: JudgeChange | None, budget: float | None
) -> "tuple[SqlStore, RunInfo, Options]":
    """A run to continue: its store, and its options with the given judge and budget and the configured prices."""
    opened = open_configured_store(settings, store, create=False)
    info = opened.find_run(run if isinstance(run, str) else run.id)
    own = info.options
    options = msgspec.structs.replace(
        own,
        judge=_changed_judge(judge, own.judge),
        budget=own.budget if budget is None else budget,
        prices=settings.prices or own.prices,
    )
    return opened, info, options


def _changed_judge(judge: JudgeChange | None, own: JudgeSettings) -> JudgeSettings:
    return judge(own) if callable(judge) else judge_settings(judge, own)


async def _with_verdicts(
    run: Run, context: RunContext, store: "SqlStore", target: "BaseTarget", baseline: RunInfo | None
) -> Run:
    """A finished run with its comparison, confirmed changes, earlier runs and gates, as the options ask for."""
    options = context.options
    if baseline is not None:
        from answerkey.runs.stored import compare_with_baseline

        run = compare_with_baseline(run, baseline, store, margin=options.margin)
        if options.confirm:
            from answerkey.runs.stored import confirm_changes

            run = await confirm_changes(run, context, target, baseline, store)
    # The job summary of GitHub is a report as well.
    if options.outputs or os.environ.get("GITHUB_STEP_SUMMARY"):
        from answerkey.runs.stored import with_earlier_runs

        run = with_earlier_runs(run, store)
    return _with_gates(run, context, store)


def _with_gates(run: Run, context: RunContext, store: "SqlStore | None") -> Run:
    if not context.gates:
        return run
    from answerkey.runs.stored import with_gates

    return with_gates(run, context.gates, store)
