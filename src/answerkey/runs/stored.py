"""Stored runs: open the configured store, load runs, make their warnings; and verdicts on finished runs.

A verdict is a comparison with a baseline, a confirmation of changed questions, or gates. Comparing needs NumPy, which is loaded
only when two runs are compared.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from answerkey.config import Settings, load_settings
from answerkey.errors import AnswerkeyError, StoreMissingError, UnknownNameError, UsageError
from answerkey.gates import FEEDBACK_NAMES, Gate, GateSubject, check_gates, evaluate_gates, parse_gate
from answerkey.model.comparison import AskedAgain, Comparison, Confirmation, QuestionChange
from answerkey.model.judgement import MIN_PANEL_AGREEMENT, JudgeRecord
from answerkey.model.options import Options
from answerkey.model.question import Question, QuestionSet
from answerkey.model.run import (
    BAD_ROW,
    EarlierRun,
    GateResult,
    GateResults,
    Run,
    RunInfo,
    StreamedResults,
    Summary,
)
from answerkey.model.scorecard import Trial, lowest_score, reason, round_down, round_score, shown_score
from answerkey.runs.causes import NOISE, Grouping, Shares, causes_of_change
from answerkey.stats.intervals import Repeats, chance_of_no_success, dominant_unit
from answerkey.store import open_store
from answerkey.text.dates import local_time
from answerkey.text.normalise import count

if TYPE_CHECKING:
    from answerkey.protocols import BaseTarget
    from answerkey.runs.context import RunContext
    from answerkey.store.sql import SqlStore


def new_run_id() -> str:
    return os.urandom(5).hex()


# Tag of the runs of a bisection.
BISECT_TAG = "bisect"


def is_of_bisection(info: RunInfo) -> bool:
    """Whether a bisection asked it, of a checkout that is gone."""
    return BISECT_TAG in info.tags and info.target_spec is None


def resume_command(info: RunInfo) -> str:
    """The command that continues a run."""
    if is_of_bisection(info):
        return "the same `answerkey bisect` command"
    link = info.experiment
    command = "resume" if link is None else "ab --resume" if link.faults is None else "faults --resume"
    return f"answerkey {command} {info.id}"


def open_configured_store(settings: Settings, url: str | None = None, *, create: bool = True) -> "SqlStore":
    """The store at a URL, by default that of ANSWERKEY_STORE, of the configuration, or `.answerkey/answerkey.db`."""
    named = url or os.environ.get("ANSWERKEY_STORE")
    if named:
        return open_store(named, create=create)
    # A path in the configuration is relative to its file.
    return open_store(settings.store, folder=settings.folder, create=create)


def find_baseline(settings: Settings, options: Options) -> RunInfo | None:
    """The baseline run; looked up before a run begins, because it may change what `latest` means.

    None: there is none, or none is needed.
    """
    if options.baseline is None:
        return None
    try:
        with open_configured_store(settings, options.store, create=False) as opened:
            return opened.find_run(options.baseline)
    except (UnknownNameError, StoreMissingError) as error:
        if options.allow_missing_baseline:
            return None
        raise UsageError(
            f"baseline {options.baseline!r} does not exist, so nothing can be compared ({error}); make it with "
            "`answerkey baseline set NAME RUN`, or let a first run pass without it: --allow-missing-baseline"
        ) from None


def given_run(run: Run | str, settings: Settings | None = None) -> Run:
    """A run, or the stored one of this name in the configured store."""
    if isinstance(run, Run):
        return run
    if not isinstance(run, str):
        raise UsageError(f"a run is a Run, or the id or name of a stored one, not {run!r}")
    # Results are read from the store later, so it stays open.
    return load_stored_run(open_configured_store(settings or load_settings(), create=False), run)


def load_stored_run(store: "SqlStore", reference: str) -> Run:
    """The run that a reference names (an id, a unique prefix, a name, `latest`, `latest~1`), with its warnings."""
    run = store.load_run(store.find_run(reference))
    return msgspec.structs.replace(run, warnings=run.warnings or run_warnings(run.info, run.summary))


def stored_trials(store: "SqlStore", info: RunInfo, questions: Iterable[Question]) -> Iterator[Trial]:
    """The stored trials of these questions that count: of the run's target, and within its repeats."""
    for position, question in enumerate(questions):
        yield from trials_at(store, info, position, question)


def trials_at(store: "SqlStore", info: RunInfo, position: int, question: Question) -> Iterator[Trial]:
    """The stored trials of one question that count."""
    for number, replies in store.trials_of(info, question.ask_hash):
        # Rows of a log may have any trial number, and all of them count.
        if info.is_log or number <= info.repeat:
            yield Trial(question, number, position, replies)


def recorded_trials(settings: Settings, reference: str, questions: QuestionSet) -> list[Trial]:
    """The stored replies of a run to the questions of a set; a run without any is refused."""
    with open_configured_store(settings, create=False) as store:
        info = store.find_run(reference)
        trials = list(stored_trials(store, info, questions))
    if not trials:
        raise UsageError(
            f"run {info.id} ({info.name}) has no reply to any question of {questions.name}; choose a run of this set"
        )
    return trials


def run_warnings(info: RunInfo, summary: Summary, *, where_bad_rows_are: str = "") -> tuple[str, ...]:
    """One line for each thing that was not observed, not asked or not scored.

    `where_bad_rows_are` names the file of rows that could not be scored.
    """
    lines = [_rescored_line(info)] if info.rescored else []
    if info.status != "complete" or summary.coverage < 1:
        never_asked = summary.planned - summary.trials - sum(summary.unscored.values())
        remedy = f"; continue with: {resume_command(info)}" if never_asked > 0 else ""
        planned = f"{count(summary.planned, 'trial was', 'trials were')} planned"
        if info.is_log:
            # A log has no chatbot to ask.
            remedy = f", {never_asked} of them questions without a reply" if never_asked > 0 else ""
            planned = f"the log should have {summary.planned} scores"
        lines.append(
            f"coverage {round_down(summary.coverage):.1%}: {planned} and {summary.planned - summary.trials} have no score{remedy}"
        )
    if info.stopped:
        lines.append(f"asking stopped: {info.stopped}; continue with: {resume_command(info)} --budget …")
    if info.options.reuse and info.made_from:
        lines.append(
            f"replies of run {info.made_from} were reused where question and target are unchanged: their latency is "
            "ignored, and the server is assumed unchanged"
        )
    if dominant := dominant_unit(summary.largest_unit or 0, sum(summary.grades.values())):
        lines.append(dominant)
    if summary.expecting_nothing:
        lines.append(
            f"{summary.expecting_nothing} of {summary.questions} questions expect nothing of the text: any text has full "
            "response quality there; give them keywords or a reference answer"
        )
    about_tools = any(part.name != "(none)" for part in summary.slices.get("tools", ())) or any(
        reason.startswith("tool_usage:") for reason in summary.unscored
    )
    if summary.tools_unobserved and about_tools:
        lines.append(
            f"tool calls were not observed in {summary.tools_unobserved} of {summary.replies} replies, or only in part: a "
            "call that was not seen counts as not made; supply them as 'tools_used' or 'tool_calls' in the reply, map "
            "them in the configuration, or observe them from outside (--traces, --proxy)"
        )
    if cut := summary.finishes.get("length"):
        lines.append(
            f"{cut} of {count(summary.replies, 'reply', 'replies')} {'was' if cut == 1 else 'were'} cut off at the "
            "model's token limit; "
            "raise it, e.g. parameters = { max_tokens = … } of the target"
        )
    for words, number in summary.unscored.items():
        if not words.startswith(BAD_ROW):
            lines.append(f"not scored: {words} ({number} of {summary.planned})")
    again = "score it again with a larger" if info.is_log else f"continue with: {resume_command(info)}"
    return (
        *lines,
        *_bad_row_warnings(summary.unscored, where_bad_rows_are),
        *_judge_warnings(info.judge, again),
    )


def _rescored_line(info: RunInfo) -> str:
    last = info.rescored[-1]
    changed = [
        f"match {last.match}" if last.match != info.match else "",
        "other expectations" if last.question_set_hash != info.question_set_hash else "",
        "other scoring settings"
        if last.scoring_hash != info.scoring_hash and last.match == info.match
        else "",
    ]
    how = ", ".join(filter(None, changed)) or "the same settings"
    return f"rescored {local_time(last.at)}: before, the score was {shown_score(last.score)} by {how}"


# Reasons why rows were not scored that a warning lists.
_REASONS_LISTED = 3


def _bad_row_warnings(unscored: Mapping[str, int], where_they_are: str) -> Iterator[str]:
    """One line for all of them, with the most frequent reasons."""
    bad = {
        reason.removeprefix(BAD_ROW): count
        for reason, count in unscored.items()
        if reason.startswith(BAD_ROW)
    }
    if bad:
        listed = [f"{reason} ({count})" for reason, count in bad.items()][:_REASONS_LISTED]
        most = " · ".join(listed) if len(bad) > 1 else next(iter(bad))
        if len(bad) > len(listed):
            most += f" · other reasons ({sum(bad.values()) - sum([*bad.values()][: len(listed)])})"
        written = f"; {where_they_are}" if where_they_are else ""
        rows, verb = ("1 row", "counts") if sum(bad.values()) == 1 else (f"{sum(bad.values())} rows", "count")
        yield f"{rows} could not be scored and {verb} against coverage: {most}{written}"


def _judge_warnings(judge: JudgeRecord | None, again: str) -> Iterator[str]:
    if judge is None:
        return
    because = "; ".join(judge.unreliable_because)
    if judge.reliable is False:
        yield f"the judge's scores are unreliable: {because}; use another model, and see answerkey judge calibrate"
    elif judge.reliable is None and because:
        yield f"judge reliability is unknown: {because}"
    if judge.panel_disagrees:
        yield (
            f"the judges of the panel disagree (Krippendorff α {judge.panel_agreement:.2f}, below {MIN_PANEL_AGREEMENT:g}): "
            "their mean is not reliable; make the rubric more specific, and see answerkey judge calibrate"
        )
    for kind, unscored in judge.unscored_because.items():
        share = f"{unscored.count} of {judge.judged + judge.unscored} replies"
        if kind == "budget":
            yield f"judging stopped: {unscored.reason}; {share} were not judged; {again} --judge-budget …"
        else:
            yield f"{share} were not judged ({kind}), for example: {unscored.reason}"
    verdicts = judge.probabilities
    if verdicts is not None and verdicts.plain:
        yield (
            f"{verdicts.plain} of {verdicts.plain + verdicts.weighed} verdicts came without probabilities; "
            "their written grades count"
        )
    claims = judge.claims
    if claims is not None and claims.unscored:
        share = f"{claims.unscored} of {claims.checked + claims.unscored} replies"
        yield f"the judge did not check the claims of {share}, for example: {claims.unscored_because}"


# Flips, and losses, whose texts are looked up; reports show no more.
_MOST_WORDINGS = 50
_LONGEST_TEXT = 2_000
# Questions that got worse whose causes are looked up; `answerkey why` explains any number.
_MOST_EXPLAINED = 500
# Number of earlier runs in a trend.
_EARLIER = 9
_FIGURES = ("score", "grade", "interval", "passed", "questions", "latency_ms")


def compare_with_baseline(
    run: Run, baseline: RunInfo, store: "SqlStore", *, margin: float | None = None
) -> Run:
    """The run with its comparison to a baseline."""
    from answerkey.comparison import compare_runs
    from answerkey.comparison.columns import columns_from_run, columns_from_store

    if isinstance(run.results, StreamedResults):
        base, candidate = columns_from_store(store, [baseline, run.info])
    else:
        [base], candidate = columns_from_store(store, [baseline]), columns_from_run(run)
    comparison = with_wordings(compare_runs(base, candidate, margin=margin), store, run.info)
    return msgspec.structs.replace(run, comparison=comparison)


def decided_run(store: "SqlStore", reference: str) -> Run:
    """A stored run with everything that a report needs: earlier runs, comparison and gates."""
    return decided(with_earlier_runs(load_stored_run(store, reference), store), store)


def decided(run: Run, store: "SqlStore") -> Run:
    """A run with its comparison and the results of its gates."""
    options = run.info.options
    gates = [parse_gate(gate) for gate in options.gates]
    gone = ""
    if options.baseline is not None:
        gates += [] if any(gate.needs_comparison for gate in gates) else [parse_gate("no regression")]
        try:
            run = compare_with_baseline(run, store.find_run(options.baseline), store, margin=options.margin)
        except AnswerkeyError as error:
            gone = f"cannot be evaluated any more: {error}"
            warning = f"the baseline of this run {gone}"
            run = msgspec.structs.replace(run, warnings=(*run.warnings, warning))
    if not gone:
        return with_gates(run, gates, store)
    # Without the baseline, the gates on it fail: a deleted run does not let them pass.
    decidable = [gate for gate in gates if not gate.needs_comparison]
    results = iter(with_gates(run, decidable, store).gates)
    return msgspec.structs.replace(
        run,
        gates=tuple(
            GateResult(gate.text, False, None, gone) if gate.needs_comparison else next(results)
            for gate in gates
        ),
    )


def with_earlier_runs(run: Run, store: "SqlStore") -> Run:
    """The run with the earlier runs of the same chatbot on the same golden set."""
    from answerkey.store.sql import RunTable

    earlier = tuple(
        EarlierRun(
            id=row.info.id,
            name=row.info.name,
            created_at=row.info.created_at,
            question_set_hash=row.info.question_set_hash,
            **{name: getattr(row.figures, name) for name in _FIGURES},
        )
        for row in reversed(RunTable(store).earlier(run.info, _EARLIER))
    )
    return msgspec.structs.replace(run, earlier=earlier)


def with_gates(run: Run, gates: Sequence[Gate], store: "SqlStore | None" = None) -> Run:
    """Return the run with the results of its gates; a store has the feedback of users."""
    subject = _gate_subject(run, gates, store)
    return msgspec.structs.replace(run, gates=tuple(evaluate_gates(gates, subject, unknown_fails=True)))


def _gate_subject(run: Run, gates: Sequence[Gate], store: "SqlStore | None") -> GateSubject:
    subject = GateSubject.of_run(run)
    if store is None or not any(gate.name in FEEDBACK_NAMES for gate in gates):
        return subject
    from answerkey.store.production import feedback_stats  # few runs are judged by it

    # A scorer may have the same name.
    numbers = {**feedback_stats(store).gate_numbers, **subject.numbers}
    return msgspec.structs.replace(subject, numbers=numbers)


def check(run: Run, *conditions: str) -> GateResults:
    """Evaluate conditions on a finished run; an unknown name is an error."""
    scores = (*run.summary.components, *run.summary.metrics)
    baseline = None if run.comparison is None else run.comparison.base.id
    gates = check_gates(conditions, scores, baseline=baseline)[: len(conditions)]
    return GateResults(evaluate_gates(gates, GateSubject.of_run(run)))


def gates_of_stored(
    store: "SqlStore", info: RunInfo, gates: Sequence[Gate], comparison: Comparison | None
) -> list[GateResult]:
    """Evaluate gates on a stored run and its comparison."""
    if not gates:
        return []
    run = msgspec.structs.replace(store.load_run(info), comparison=comparison)
    return evaluate_gates(gates, _gate_subject(run, gates, store))


def with_wordings(comparison: Comparison, store: "SqlStore", candidate: RunInfo) -> Comparison:
    """A comparison with its causes, whose first flips and losses have the question, both replies, and reasons."""
    if not comparison.flips and not comparison.losses:
        return comparison
    base = store.find_run(comparison.base.id)

    def worded(changes: tuple[QuestionChange, ...]) -> tuple[QuestionChange, ...]:
        first = [_with_texts(change, store, base, candidate) for change in changes[:_MOST_WORDINGS]]
        return (*first, *changes[_MOST_WORDINGS:])

    comparison = msgspec.structs.replace(
        comparison, flips=worded(comparison.flips), losses=worded(comparison.losses)
    )
    return with_causes(comparison, store, candidate)


def with_causes(comparison: Comparison, store: "SqlStore", candidate: RunInfo) -> Comparison:
    """A comparison with the causes of its lost points; without, if too many questions got worse to look them all up.

    A question that asking again did not confirm is noise.
    """
    fallen = comparison.fallen
    if not fallen or len(fallen) > _MOST_EXPLAINED:
        return comparison
    base = store.find_run(comparison.base.id)
    mode, rescored = candidate.options.scoring.match, base.scoring_hash != candidate.scoring_hash
    categories = {part.name: part.difference.pairs for part in comparison.categories if part.difference}
    grouping = Grouping(categories or {"": comparison.paired})
    for change in fallen:
        better = [one for one in store.results_of(base, change.id) if one.score is not None]
        worse = [one for one in store.results_of(candidate, change.id) if one.score is not None]
        if not better or not worse:
            # Of very many trials, those that are looked up have no score.
            continue
        shares: Shares = [(NOISE, 1.0)]
        if change.kind != "flaky":
            shares = causes_of_change(worse, better, mode, rescored=rescored)
        grouping.add(worse[0].question, shares, change.score_to - change.score_from)
    return msgspec.structs.replace(comparison, causes=grouping.groups())


def _with_texts(
    change: QuestionChange, store: "SqlStore", base: RunInfo, candidate: RunInfo
) -> QuestionChange:
    fell = change.kind != "fixed"
    before = _typical(store, base, change.id, best=fell)
    after = _typical(store, candidate, change.id, best=not fell)
    lost = (after if fell else before).scorecard
    reasons = [reason(part) for part in lost.components.values() if part.weight and (part.value or 0.0) < 1]
    return msgspec.structs.replace(
        change,
        question=after.question.question,
        reply_from=_reply_text(before),
        reply_to=_reply_text(after),
        because="; ".join(reason for reason in reasons if reason)[:_LONGEST_TEXT],
    )


def _typical(store: "SqlStore", info: RunInfo, question_id: str, *, best: bool) -> Trial:
    """The best or the worst trial of a question, which shows what changed."""
    trials = store.results_of(info, question_id)
    return (max if best else min)(trials, key=lambda trial: trial.score or 0.0)


def _reply_text(trial: Trial) -> str:
    """The reply, or the error instead of it."""
    wrong = trial.error
    text = trial.reply.text if trial.reply.text or wrong is None else f"({wrong.kind}: {wrong.message})"
    return (text or "(nothing)")[:_LONGEST_TEXT]


# Confirming changes

# Accepted probability of calling an unstable question broken or worse, over all changes of a run.
_ALPHA = 0.05
# Changes of each kind that are asked again; with more, the mean shows the regression.
_MOST_ASKED = 100
# Questions that fail in both runs which are asked again before one is confirmed, and how often in total: whether hard
# questions pass now and then shows only on those. The questions to be confirmed are asked as often in total.
_MOST_CONTROLS = 20
_CONTROL_REPLIES = 20


def check_confirm(context: "RunContext") -> None:
    """Refuse --confirm without a baseline or with a judge, before anything is asked."""
    options = context.options
    if options.confirm and options.baseline is None:
        raise UsageError("--confirm asks again what got worse since a baseline; add --baseline RUN")
    if options.confirm and options.scoring.needs_judge:
        raise UsageError(
            "--confirm scores replies without a judge, but the judge is part of the score; use --repeat instead"
        )


async def confirm_changes(
    run: Run, context: "RunContext", target: "BaseTarget", baseline: RunInfo, store: "SqlStore"
) -> Run:
    """Ask changed questions again; returns the run with a comparison that says which are confirmed broken or worse.

    One failure instead of one pass may be chance in a chatbot whose replies vary. Each question that flipped or whose
    score fell is asked a few more times, of the candidate, and of the base if that is another target that still answers.
    A reply succeeds if it passes or, where the question did not flip, if it reaches the base's score. If a question never
    succeeds, it is asked until there are 20 replies in all, and questions that fail in both runs are asked again too: does a
    hard question pass now and then? If no question
    ever changes, the chatbot is taken as deterministic, and a question that never succeeds is broken or worse. Otherwise, a
    distribution of pass rates is fitted to the unstable questions (`chance_of_no_success`); questions that never succeed
    are broken or worse if one such among all would be rarer than 1 in 20 by instability alone. A question that the base
    fails too is not broken by the candidate. The further replies are not part of the run.
    """
    comparison, times = run.comparison, context.options.confirm
    if comparison is None or not times:
        return run
    changes = [change for kind in ("broken", "fixed", "worse") for change in _first(comparison, kind)]
    mark = lowest_score(run.info.pass_mark)
    goals = {change.id: change.score_from if change.kind == "worse" else mark for change in changes}
    questions = [question for question in store.questions(run.info.question_set_hash) if question.id in goals]
    candidate = await _success_counts(context, target, questions, goals, times)
    controls, further = Repeats(successes=(), times=times), 0
    if any(candidate.get(change.id) == 0 for change in changes if change.kind != "fixed"):
        controls = await _ask_failing(run, context, target, store)
        # A few repeats cannot show that a question never succeeds.
        silent = {change.id for change in changes if change.kind != "fixed" and candidate.get(change.id) == 0}
        further = max(math.ceil(_CONTROL_REPLIES / len(silent)) - times, 0)
        if further:
            again = [question for question in questions if question.id in silent]
            counts = await _success_counts(context, target, again, goals, further)
            candidate |= {
                name: None if count is None else min(count, times) for name, count in counts.items()
            }
    base: dict[str, int | None] = {}
    if changes and baseline.target_spec is not None and baseline.target_spec != run.info.target_spec:
        try:
            async with context.target(baseline.target_spec) as opened:
                base = await _success_counts(context, opened, questions, goals, times)
        except AnswerkeyError:
            # The old version is usually gone; the candidate alone must do.
            base = {}
    confirmation = _confirmation(changes, candidate, base, times, further, controls)
    info = msgspec.structs.replace(run.info, confirmation=confirmation)
    store.update_run(info)
    # As `compare_runs` does for a stored run.
    comparison = with_causes(comparison.with_confirmation(confirmation), store, info)
    return msgspec.structs.replace(run, info=info, comparison=comparison)


async def _ask_failing(run: Run, context: "RunContext", target: "BaseTarget", store: "SqlStore") -> Repeats:
    """Ask questions again that fail in both runs."""
    comparison = run.comparison
    assert comparison is not None  # the caller has looked
    mark = lowest_score(run.info.pass_mark)
    other = {change.id for change in comparison.flips} | {question.id for question in comparison.unpaired}
    scores: dict[str, list[float]] = {}
    for trial in run.results:
        if trial.score is not None and trial.id not in other:
            scores.setdefault(trial.id, []).append(trial.score)
    failing = [
        name for name, values in scores.items() if round_score(math.fsum(values) / len(values)) < mark
    ][:_MOST_CONTROLS]
    questions = [
        question for question in store.questions(run.info.question_set_hash) if question.id in failing
    ]
    times = math.ceil(_CONTROL_REPLIES / max(len(questions), 1))
    counts = await _success_counts(context, target, questions, dict.fromkeys(failing, mark), times)
    successes = [count for count in counts.values() if count is not None]
    return Repeats(successes=successes, times=times, passed=0, failed=2)


def _first(comparison: Comparison, kind: str) -> list[QuestionChange]:
    changes = (*comparison.flips, *comparison.losses)
    return [change for change in changes if change.kind == kind][:_MOST_ASKED]


async def _success_counts(
    context: "RunContext",
    target: "BaseTarget",
    questions: Sequence[Question],
    goals: Mapping[str, float],
    times: int,
) -> dict[str, int | None]:
    """Question id → how often its score reaches its goal; None if one of its replies could not be scored."""
    from answerkey.runs.run import ask_and_grade  # commands that only read runs need not load it

    trials = (
        Trial(question, number, position)
        for number in range(1, times + 1)
        for position, question in enumerate(questions)
    )
    reached: dict[str, int | None] = dict.fromkeys((question.id for question in questions), 0)
    async for trial in ask_and_grade(context, target, trials):
        count, score = reached[trial.id], trial.score
        if count is None or score is None:
            reached[trial.id] = None
        else:
            reached[trial.id] = count + (score >= goals[trial.id])
    return reached


def _confirmation(
    changes: Iterable[QuestionChange],
    candidate: dict[str, int | None],
    base: dict[str, int | None],
    times: int,
    further: int,
    controls: Repeats,
) -> Confirmation:
    again = [(change, candidate.get(change.id), base.get(change.id)) for change in changes]
    counted = [(change.kind, count) for change, count, _ in again if count is not None]
    fell = Repeats(successes=[count for kind, count in counted if kind != "fixed"], times=times)
    fixed = Repeats(
        successes=[count for kind, count in counted if kind == "fixed"], times=times, left_out=times
    )
    groups = (fell, fixed, controls)
    varied = any(group.varied for group in groups)
    by_chance = chance_of_no_success(groups, times + further) * len(fell.successes) if varied else 0.0
    return Confirmation(
        times=times,
        deterministic=not varied,
        controls=len(controls.successes),
        questions=tuple(
            AskedAgain(
                id=change.id,
                kind=change.kind,
                candidate_passed=count,
                base_passed=before,
                confirmed=change.kind != "fixed"
                and count == 0
                and before in (None, times)
                and by_chance < _ALPHA,
            )
            for change, count, before in again
        ),
    )
