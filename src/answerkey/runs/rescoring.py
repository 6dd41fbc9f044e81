"""Rescoring: new scorecards from stored replies; nothing is asked again."""

from collections.abc import Iterable
from functools import partial

import msgspec

from answerkey.model.judgement import JudgeRecord
from answerkey.model.question import Question, QuestionSet
from answerkey.model.run import Run, RunInfo, StreamedResults
from answerkey.model.scorecard import Trial
from answerkey.runs.bookkeeping import store_writer, summed_up
from answerkey.runs.context import RunContext
from answerkey.runs.progress import NoProgress, Progress, RunningScore
from answerkey.runs.recorder import Recorder, add_stored, judging_on
from answerkey.runs.stored import stored_trials
from answerkey.scorers.grader import Grader
from answerkey.store.sql import SqlStore

_BATCH = 500


async def rescore_run(
    assembly: RunContext,
    info: RunInfo,
    store: SqlStore,
    progress: Progress,
    *,
    questions: QuestionSet | None = None,
) -> Run:
    """Score a run's replies anew; with `questions`, against those expectations instead of the stored ones.

    A judge is asked again only for what it has not said already.
    """
    changed = msgspec.structs.replace(
        info,
        question_set_hash=info.question_set_hash if questions is None else questions.hash,
        options=assembly.options,
        judge=None,
        confirmation=None,
        **assembly.grader.run_fields,
    )
    # The run changes only once all new scorecards are in place.
    asked = store.questions(info.question_set_hash) if questions is None else iter(questions)
    count = store.count_questions(info.question_set_hash) if questions is None else len(questions)
    # Nobody planned how many replies a log has.
    planned = None if info.is_log else count * info.repeat
    if assembly.judge is None:
        progress.begin(changed, planned=planned, done=0)
        try:
            score_again(store, changed, asked, assembly.grader, progress)
        finally:
            progress.end()
    else:
        judged = await _judge_again(assembly, changed, store, asked)
        changed = msgspec.structs.replace(changed, judge=judged)
    store.update_run(changed, questions)
    return summed_up(store, changed, StreamedResults(partial(store.results, changed)), planned=planned)


async def _judge_again(
    assembly: RunContext, info: RunInfo, store: SqlStore, questions: Iterable[Question]
) -> JudgeRecord | None:
    writer = store_writer()
    async with judging_on(store, assembly.judge, info.id, writer) as judging:
        recorder = Recorder(store, info, assembly.grader, NoProgress(), judging=judging, writer=writer)
        async with recorder.recording():
            await add_stored(recorder, store, info, questions)
        return None if judging is None else judging.record()


def score_again(
    store: SqlStore,
    info: RunInfo,
    questions: Iterable[Question],
    grader: Grader,
    progress: Progress | None = None,
) -> None:
    """Write scorecards for the stored replies that still count, each in the place of the one that was there."""
    watched = progress or NoProgress()
    running = RunningScore()
    batch: list[Trial] = []
    written: set[tuple[int, int]] = set()
    for trial in stored_trials(store, info, questions):
        scored = trial.scored(grader.grade(trial.question, trial.replies))
        batch.append(scored)
        written.add((trial.position, trial.number))
        running.add(scored.scorecard)
        watched.advance(running)
        if len(batch) >= _BATCH:
            store.add(info, batch, with_replies=False)
            batch = []
    store.add(info, batch, with_replies=False)
    # At last: whoever is killed on the way leaves no run without scores.
    store.drop_scorecards(info, but=written)
