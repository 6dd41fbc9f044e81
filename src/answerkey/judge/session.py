"""JudgingSession: one run's judging, from opening the endpoint to the `judge` section of the run document."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import JudgeUnusableError
from answerkey.judge.canaries import CanaryResult, ask_canaries, reliability
from answerkey.judge.claims import GROUNDEDNESS, ClaimCheck
from answerkey.judge.client import JudgeClient
from answerkey.judge.configured_judge import LOCAL, Judge
from answerkey.judge.item import Item, item_of
from answerkey.judge.judgement_cache import JudgementCache
from answerkey.judge.judgement_of_reply import Judgement, JudgementCounts, scores_of, worthless
from answerkey.judge.ledger import Ledger
from answerkey.judge.panel import Panel
from answerkey.judge.prompt import PROMPT_HASH
from answerkey.judge.rubric import CHECK, Rubric, check_rubric
from answerkey.model.judge_answer import Spent
from answerkey.model.question import Question, rubric_name
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score

if TYPE_CHECKING:
    from answerkey.store.judgements import SqlJudgements


class JudgingSession:
    """Judges replies, and keeps count."""

    def __init__(self, judge: Judge, client: JudgeClient, panel: Panel, ledger: Ledger) -> None:
        self.rubric = judge.rubric
        self.panel = panel
        # As configured; the panel's are those that are really used: the local judge has less room.
        self._settings = judge.settings
        self._client = client
        # Judge calls that may be under way at once.
        self.at_once = client.at_once
        self._ledger = ledger
        self._judge = judge
        # Golden cases' rubrics that were asked, and those of them without a verdict.
        self._rubrics = [0, 0]
        self._claims = ClaimCheck(panel, judge.reliability)
        self._counts = JudgementCounts(judge.settings.models)
        self._canaries: list[CanaryResult] = []
        # Done at once where no canaries are asked.
        self._checking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._checking.set_result(None)

    async def judge(self, question: Question, replies: Sequence[Reply]) -> tuple[tuple[Score, ...], ...]:
        """The judge's scores for each turn of a question."""
        found: list[tuple[Score, ...]] = []
        earlier: list[tuple[str, str | None]] = []
        for index, turn in enumerate(question.asks):
            reply = replies[index] if index < len(replies) else Reply()
            context = turn.context or question.context
            item = None
            if (reply.text or "").strip():
                most = self.panel.settings.max_chars
                item = item_of(turn, reply, earlier=earlier, context=context, max_chars=most)
            judgement = await self._judgement(item, self.rubric)
            self._counts.add(judgement)
            claims = await self._claims.scores(turn, reply, earlier=earlier, context=context)
            wanted = {rubric_name(one.expected): one.expected for one in turn.checks if one.kind == "rubric"}
            rubrics = [await self._check_score(name, asked, item) for name, asked in wanted.items()]
            found.append((*scores_of(judgement, self.rubric), *claims, *rubrics))
            earlier.append((turn.question, reply.text))
        return tuple(found)

    async def _judgement(self, item: Item | None, rubric: Rubric) -> Judgement:
        """No item: there is no text to judge."""
        return worthless(rubric) if item is None else await self.panel.judge(item, rubric)

    async def _check_score(self, name: str, asked: object, item: Item | None) -> Score:
        """The score of a golden case's rubric, which its checks find by the name, with what the first judge said of it."""
        rubric = check_rubric(asked)
        judgement = await self._judgement(item, rubric)
        self._rubrics[0] += 1
        self._rubrics[1] += judgement.value is None
        reason = judgement.reason
        for judge in judgement.details.get("judges", ()):
            graded = next((sample[CHECK] for sample in judge["samples"] if sample[CHECK]["reason"]), None)
            if graded is not None:
                reason = f"{graded['score']} of {rubric.top}: {graded['reason']}"
                break
        return Score(name, judgement.value, reason)

    async def check(self, run_id: str, *, beside: bool) -> None:
        """Put the canaries to the judges. A judge that cannot be asked at all is found here.

        `beside`: goes on once the judge had the time to refuse; `checked` tells the rest.
        """
        self._checking = asyncio.create_task(self._ask_canaries(run_id))
        patience = await self._client.time_to_refuse() if beside else None
        await asyncio.wait((self._checking,), timeout=patience)
        if self.failure is not None:
            raise JudgeUnusableError(f"{self.failure}; nothing was judged or asked") from None

    async def _ask_canaries(self, run_id: str) -> None:
        self._canaries = await ask_canaries(self.panel, self.rubric, self._judge.canaries.canary, run_id)
        if all(canary.unjudged == "unreachable" for canary in self._canaries):
            raise JudgeUnusableError(self._canaries[0].reason)

    @property
    def cost(self) -> float:
        """What judging the run has cost, as far as it is known."""
        return self._ledger.cost

    @property
    def pending(self) -> bool:
        """Whether canaries are still under way."""
        return not self._checking.done()

    @property
    def failure(self) -> BaseException | None:
        """Why there is no point in going on, as soon as that is known."""
        return None if self.pending or self._checking.cancelled() else self._checking.exception()

    async def checked(self) -> None:
        """Return once the canaries are back; raises JudgeUnusableError."""
        await self._checking

    async def close(self) -> None:
        """Canaries that are still under way are given up."""
        self._checking.cancel()
        await asyncio.gather(self._checking, return_exceptions=True)

    def _touches(self, unscored: int) -> dict[str, int]:
        """Each score that the judge has a hand in, and how many replies lack it for want of a verdict.

        A component that lacks one leaves its reply without a score, which the coverage tells.
        """
        checks, judge = "checks", self._judge
        missing = dict.fromkeys(judge.score_names, unscored)
        missing |= {GROUNDEDNESS: self._claims.unscored, checks: self._rubrics[1]}
        names = judge.touches if self._rubrics[0] else judge.touches - {checks}
        return {name: 0 if name in judge.weighted else missing.get(name, 0) for name in sorted(names)} | (
            {"score": 0} if names & judge.weighted else {}
        )

    def document(self) -> dict[str, Any]:
        """The `judge` section of the run document."""
        settings, ledger = self._settings, self._ledger
        reliable, because = reliability(self._canaries)
        counts = self._counts.document()
        return {
            "model": " + ".join(settings.models),
            "models": list(settings.models),
            **self._client.document(),
            "rubric": {"name": self.rubric.name, "hash": self.rubric.hash, "weights": self.rubric.weights},
            "prompt_hash": PROMPT_HASH,
            **{name: getattr(settings, name) for name in ("samples", "temperature", "seed", "budget")},
            # Verdicts with probabilities, and those of which the grades that were written count.
            "probabilities": {"weighed": self.panel.weighed, "plain": self.panel.unweighed}
            if settings.probabilities
            else None,
            "reliable": reliable,
            "unreliable_because": because,
            "canaries": msgspec.to_builtins(self._canaries),
            **counts,
            "touches": self._touches(counts["unscored"]),
            "calls": ledger.calls,
            "cached": self.panel.cached,
            "asked_again": self.panel.asked_again,
            "tokens": {"input": ledger.input_tokens, "output": ledger.output_tokens},
            "cost": round(ledger.cost, 6) if ledger.cost_known else None,
            "budget_stopped": ledger.refused > 0,
            "claims": self._claims.document(),
        }


@asynccontextmanager
async def open_judging(
    judge: Judge,
    *,
    run_id: str,
    store: "SqlJudgements | None" = None,
    executor: Executor | None = None,
    canaries: bool | None = None,
    beside: bool = False,
) -> AsyncIterator[JudgingSession]:
    """Open a judge for a run. What the run has paid already counts towards its budget.

    `beside`: the canaries may still be under way when the body begins; it then waits for `checked` before it ends.
    """
    async with AsyncExitStack() as opened:
        settings = judge.settings
        endpoint = None
        if settings.model == LOCAL:
            from answerkey.judge.llama_server import local_settings, started

            address = await opened.enter_async_context(started())
            settings, endpoint = local_settings(settings, address), LOCAL
        client = await opened.enter_async_context(JudgeClient(settings, judge.prices, endpoint=endpoint))
        cache = await opened.enter_async_context(JudgementCache(store, run_id, executor))
        before = Spent() if store is None else store.spent_on(run_id)
        priced = all(seat.price is not None for seat in client.seats.values())
        ledger = Ledger(settings.budget, before, priced=priced)
        panel = Panel(settings, client, cache, ledger)
        session = JudgingSession(judge, client, panel, ledger)
        if settings.canaries if canaries is None else canaries:
            opened.push_async_callback(session.close)
            await session.check(run_id, beside=beside)
        yield session
