"""Two stored runs put before a judge, question by question."""

import asyncio
from collections.abc import Iterator

from answerkey.errors import UsageError
from answerkey.judge.calibration import Side
from answerkey.judge.pairwise import Pair, Pairwise, ask_pair_canaries, judge_pair, sum_up_pairs
from answerkey.judge.session import Judge, open_judging
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.runs.bookkeeping import store_writer
from answerkey.store.review import SqlJudgements
from answerkey.store.sql import SqlStore


async def judge_runs(store: SqlStore, base: RunInfo, candidate: RunInfo, judge: Judge) -> Pairwise:
    """Judge every question that both runs answered; what was judged before is not asked again."""
    pairs = list(_pairs(store, base, candidate))
    if not pairs:
        raise UsageError("the runs have no question in common that both answered")
    paid_by = f"{base.id}:{candidate.id}"
    kept = SqlJudgements(store)
    with store_writer() as writer:
        async with open_judging(
            judge, run_id=paid_by, store=kept, executor=writer, canaries=False
        ) as session:
            panel, rubric = session.panel, judge.pair_rubric
            known = judge.canaries.pair if judge.settings.canaries else ()
            canaries = asyncio.create_task(ask_pair_canaries(panel, rubric, known, f"canary/{paid_by}"))
            verdicts = await asyncio.gather(*(judge_pair(panel, pair, rubric) for pair in pairs))
            tested = await canaries
            record = session.record()
    targets: dict[Side, str] = {"base": base.target, "candidate": candidate.target}
    return sum_up_pairs(
        verdicts,
        model=record.model,
        calls=record.calls,
        cached=record.cached,
        cost=record.cost,
        canaries=tested,
        targets=targets,
    )


def _pairs(store: SqlStore, base: RunInfo, candidate: RunInfo) -> Iterator[Pair]:
    replies: dict[tuple[str, int], tuple[tuple[Reply, ...], float | None]] = {
        (result.question.ask_hash, result.number): (result.replies, result.scorecard.total)
        for result in store.results(base)
    }
    for result in store.results(candidate):
        other = replies.get((result.question.ask_hash, result.number))
        if other is not None:
            before, score = other
            total = result.scorecard.total
            same = None if score is None or total is None else score == total
            yield Pair(result.question, result.number, before, result.replies, same)
