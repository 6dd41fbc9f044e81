"""Stored runs: open the configured store, load runs, and make their warnings."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from answerkey.config import Settings, load_settings
from answerkey.errors import StoreMissingError, UnknownNameError, UsageError
from answerkey.model.judgement import MIN_PANEL_AGREEMENT, JudgeRecord
from answerkey.model.options import Options
from answerkey.model.question import Question, QuestionSet
from answerkey.model.run import BAD_ROW, Run, RunInfo, Summary
from answerkey.model.scorecard import Trial, round_down, shown_score
from answerkey.stats.intervals import dominant_unit
from answerkey.store import open_store
from answerkey.text.dates import local_time

if TYPE_CHECKING:
    from answerkey.store.sql import SqlStore


def new_run_id() -> str:
    """A random id for a new run."""
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
        planned = f"{summary.planned} trials were planned"
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
            f"{cut} of {summary.replies} replies were cut off at the model's token limit; raise it, e.g. "
            "parameters = { max_tokens = … } of the target"
        )
    for reason, count in summary.unscored.items():
        if not reason.startswith(BAD_ROW):
            lines.append(f"not scored: {reason} ({count} of {summary.planned})")
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
