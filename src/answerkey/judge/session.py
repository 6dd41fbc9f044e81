"""JudgingSession: one run's judging, from opening the endpoint to the `judge` section of the run document."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from answerkey.errors import JudgeUnusableError
from answerkey.judge.cache import JudgementCache, JudgementStore
from answerkey.judge.canaries import CanaryResult, ask_canaries
from answerkey.judge.claims import ClaimCheck
from answerkey.judge.client import JudgeClient
from answerkey.judge.item import item_of
from answerkey.judge.judge import LOCAL, Judge
from answerkey.judge.judgement import scores_of, worthless
from answerkey.judge.judging_tally import Tally, canary_documents, reliability
from answerkey.judge.ledger import Ledger
from answerkey.judge.panel import Panel
from answerkey.judge.prompt import PROMPT_HASH
from answerkey.judge.rubric_checks import RubricChecks
from answerkey.model.judge_answer import Spent
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score

__all__ = ["JudgingSession", "open_judging"]


class JudgingSession:
    """Judges replies, and keeps count."""

    def __init__(self, judge: Judge, client: JudgeClient, panel: Panel, ledger: Ledger) -> None:
        self.judge_settings = judge.settings
        self.rubric = judge.rubric
        self.panel = panel
        self._client = client
        self._ledger = ledger
        # With the settings that are really used: the local judge has less room.
        self._claims = ClaimCheck(panel.settings, panel)
        self._rubrics = RubricChecks(panel)
        self._tally = Tally(judge.settings)
        self._canaries: tuple[CanaryResult, ...] = ()
        self._checking: asyncio.Task[None] | None = None

    @property
    def at_once(self) -> int:
        """Judge calls that may be under way at once."""
        return self._client.at_once

    async def judge(self, question: Question, replies: Sequence[Reply]) -> tuple[tuple[Score, ...], ...]:
        """The judge's scores for each turn of a question."""
        found: list[tuple[Score, ...]] = []
        earlier: list[tuple[str, str | None]] = []
        for index, turn in enumerate(question.asks):
            reply = replies[index] if index < len(replies) else Reply()
            context = turn.context or question.context
            item = None
            if not (reply.text or "").strip():
                judgement = worthless(self.rubric)
            else:
                item = item_of(
                    turn,
                    reply,
                    earlier=earlier,
                    context=context,
                    # What is really used: the local judge has less room than the settings may say.
                    max_chars=self.panel.settings.max_chars,
                )
                judgement = await self.panel.judge(item)
            self._tally.add(judgement)
            claims = await self._claims.scores(turn, reply, earlier=earlier, context=context)
            rubrics = await self._rubrics.scores(turn, item) if turn.checks else ()
            found.append((*scores_of(judgement, self.rubric), *claims, *rubrics))
            earlier.append((turn.question, reply.text))
        return tuple(found)

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
        self._canaries = await ask_canaries(self.panel, run_id)
        if all(canary.unjudged == "unreachable" for canary in self._canaries):
            raise JudgeUnusableError(self._canaries[0].reason)

    @property
    def pending(self) -> bool:
        """Whether canaries are still under way."""
        return self._checking is not None and not self._checking.done()

    @property
    def failure(self) -> BaseException | None:
        """Why there is no point in going on, as soon as that is known."""
        checking = self._checking
        if checking is None or not checking.done() or checking.cancelled():
            return None
        return checking.exception()

    async def checked(self) -> None:
        """Return once the canaries are back; raises JudgeUnusableError."""
        if self._checking is not None:
            await self._checking

    async def close(self) -> None:
        """Canaries that are still under way are given up."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.gather(self._checking, return_exceptions=True)

    def document(self) -> dict[str, Any]:
        """The `judge` section of the run document."""
        settings = self.judge_settings
        reliable, because = reliability(self._canaries)
        return {
            "model": " + ".join(settings.models),
            "models": list(settings.models),
            "endpoint": self._client.endpoint,
            "rubric": {"name": self.rubric.name, "hash": self.rubric.hash, "weights": self.rubric.weights},
            "prompt_hash": PROMPT_HASH,
            "samples": settings.samples,
            "temperature": settings.temperature,
            "seed": settings.seed,
            "budget": settings.budget,
            "reliable": reliable,
            "unreliable_because": list(because),
            "canaries": canary_documents(self._canaries),
            **self._tally.document(self._ledger, self.panel.cached),
            "claims": self._claims.document(),
            "response_format": self._client.formats(),
            "dropped_parameters": self._client.dropped(),
        }


@asynccontextmanager
async def open_judging(
    judge: Judge,
    *,
    run_id: str,
    store: JudgementStore | None = None,
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
            from answerkey.judge.local import local_settings, started

            address = await opened.enter_async_context(started())
            settings, endpoint = local_settings(settings, address), LOCAL
        client = await opened.enter_async_context(JudgeClient(settings, endpoint=endpoint))
        cache = await opened.enter_async_context(JudgementCache(store, run_id, executor))
        before = Spent() if store is None else store.spent_on(run_id)
        ledger = Ledger(settings.budget, settings.prices, before)
        panel = Panel(settings, judge.rubric, client, cache, ledger)
        session = JudgingSession(judge, client, panel, ledger)
        if settings.canaries if canaries is None else canaries:
            opened.push_async_callback(session.close)
            await session.check(run_id, beside=beside)
        yield session
