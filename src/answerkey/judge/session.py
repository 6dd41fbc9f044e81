"""Claims by a judge: a reply's factual claims, extracted and each verified against the evidence by a model."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.errors import ConfigError, JudgeUnusableError
from answerkey.judge.client import FORMS, JudgeClient, Ledger, check_scale
from answerkey.judge.panel import (
    JUDGE,
    Canaries,
    Inquiry,
    Judgement,
    JudgementCache,
    JudgementCounts,
    Panel,
    ask_canaries,
    load_canaries,
    reliability,
    scores_of,
    worthless,
)
from answerkey.judge.prompt import (
    CHECK,
    CLAIMS_HASH,
    PROMPT_HASH,
    Item,
    PairRubric,
    Rubric,
    UnjudgedError,
    check_rubric,
    claims_messages,
    item_of,
    load_pair_rubric,
    load_rubric,
    object_schema,
    quoted,
    read_object,
)
from answerkey.model.judgement import (
    NOT_CALIBRATED,
    CanaryResult,
    ClaimsRecord,
    JudgeRecord,
    ProbabilityCounts,
    RubricRecord,
    Spent,
    TokenCounts,
    read_calibration,
)
from answerkey.model.options import JudgeSettings, Price, Scoring
from answerkey.model.question import Question, rubric_name
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.protocols import Direction
from answerkey.scorers.groundedness import has_evidence

if TYPE_CHECKING:
    from answerkey.store.review import SqlJudgements


# The metric's name, whoever gives it.
GROUNDEDNESS = "groundedness"
# An answer with more is no list of a reply's claims, but a model that cannot stop.
_MOST_CLAIMS = 500
# Characters of a claim and of its evidence that are kept.
_MOST_TEXT = 500

# The evidence comes before the verdict on it, so that the verdict can follow from it.
_CLAIM_SCHEMA = object_schema(
    claim={"type": "string"}, evidence={"type": "string"}, supported={"type": "boolean"}
)
CLAIMS_SCHEMA = object_schema(claims={"type": "array", "items": _CLAIM_SCHEMA})


class Claim(msgspec.Struct, frozen=True):
    """One claim of a reply, and what the judge makes of it."""

    claim: str
    supported: bool
    # The words of the evidence that support it, or why nothing does.
    evidence: str


def parse_claims(text: str) -> tuple[Claim, ...]:
    """Read the claims, strictly: one that has no clear verdict makes the whole answer unreadable."""
    claims = read_object(text).get("claims")
    if not isinstance(claims, list):
        raise UnjudgedError("the judge's answer has no list of claims")
    if len(claims) > _MOST_CLAIMS:
        raise UnjudgedError(f"the judge listed {len(claims):,} claims, more than {_MOST_CLAIMS}")
    return tuple(_claim(part, number) for number, part in enumerate(claims, start=1))


def _claim(part: Any, number: int) -> Claim:
    if not isinstance(part, dict):
        raise UnjudgedError(f"the judge's claim {number} is not an object: {quoted(json.dumps(part))}")
    claim, supported, evidence = part.get("claim"), part.get("supported"), part.get("evidence")
    if not isinstance(claim, str) or not claim.strip():
        raise UnjudgedError(f"the judge's claim {number} has no text")
    if not isinstance(supported, bool):
        raise UnjudgedError(
            f"the judge's verdict on claim {number} is {quoted(json.dumps(supported))}, not true or false"
        )
    if not isinstance(evidence, str):
        raise UnjudgedError(f"the judge named no evidence for claim {number}")
    return Claim(_kept(claim), supported, _kept(evidence))


def _kept(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


CLAIMS = Inquiry(CLAIMS_HASH, CLAIMS_SCHEMA, claims_messages, parse_claims)


class ClaimCheck:
    """Has the claims of replies checked, one call each; of a panel, by its first judge."""

    def __init__(self, panel: Panel, reliability: str = NOT_CALIBRATED) -> None:
        self._panel = panel
        # How well the judge did on labelled sentences, for wherever its verdicts are shown.
        self._reliability = reliability
        self._settings = panel.settings
        self._model = panel.settings.models[0]
        # Replies whose claims were checked, and those for which the judge gave no usable answer.
        self.checked = 0
        self.unscored = 0
        # Why, for the first of them.
        self.reason = ""

    async def scores(
        self,
        question: Question,
        reply: Reply,
        *,
        earlier: Sequence[tuple[str, str | None]] = (),
        context: str | None = None,
    ) -> tuple[Score, ...]:
        """`groundedness` of a reply; nothing, and no call, without text or observed evidence."""
        if not self._settings.claims or not (reply.text or "").strip() or not has_evidence(reply):
            return ()
        most = self._settings.max_chars
        item = item_of(question, reply, earlier=earlier, context=context, max_chars=most, for_claims=True)
        claims: tuple[Claim, ...] = ()
        value = None
        try:
            claims = await self._panel.ask(self._model, CLAIMS, item)
        except UnjudgedError as error:
            reason = str(error)
            self.unscored += 1
            self.reason = self.reason or reason
        else:
            self.checked += 1
            reason = "the judge found no factual claim in the reply"
        if claims:
            supported = sum(claim.supported for claim in claims)
            value = round_score(supported / len(claims))
            reason = f"{supported} of {len(claims)} claims supported"
            if item.evidence_cut:
                reason += f"; the judge saw the first {most:,} characters of the evidence"
        documents = msgspec.to_builtins([*claims])
        details = {
            "score": value,
            "claims": documents,
            "unsupported": [document for document in documents if not document["supported"]],
            "model": self._model,
            "reason": reason,
            "reliability": self._reliability,
        }
        return (Score(GROUNDEDNESS, value, reason, details=details),)

    def record(self) -> ClaimsRecord | None:
        """Return what was checked; None if checking claims is off."""
        if not self._settings.claims:
            return None
        return ClaimsRecord(
            model=self._model,
            prompt_hash=CLAIMS_HASH,
            reliability=self._reliability,
            checked=self.checked,
            unscored=self.unscored,
            unscored_because=self.reason or None,
        )


# Judge: a configured judge or panel, checked before anything is asked, and what its scores are kept by.


# The name of the small model that comes in a package and needs no key.
LOCAL = "local"


class Judge:
    """A judge that can be asked; `JudgingSession` asks it."""

    def __init__(
        self,
        settings: JudgeSettings,
        *,
        folder: Path | None = None,
        prices: Mapping[str, Price] | None = None,
        reliability: str = NOT_CALIBRATED,
    ) -> None:
        if not settings.models:
            raise ConfigError("no judge is configured; name one with --judge MODEL or [judge] model")
        if LOCAL in settings.models and len(settings.models) > 1:
            raise ConfigError("the local judge cannot sit on a panel; name it alone: --judge local")
        self.settings = settings
        # What models cost, by name, beside those that are listed.
        self.prices = prices or {}
        # How well its verdicts on claims did on labelled sentences.
        self.reliability = reliability
        self.rubric: Rubric = load_rubric(settings.rubric, folder=folder)
        if settings.probabilities:
            check_scale(self.rubric)
        self.pair_rubric: PairRubric = load_pair_rubric(settings.pair_rubric, folder=folder)
        own = settings.canaries if isinstance(settings.canaries, str) else None
        self.canaries: Canaries = load_canaries(None if own is None else (folder or Path()) / own)
        # What its scores are called.
        self.score_names = (JUDGE, *(f"{JUDGE}_{name}" for name in self.rubric.weights))
        # The scores that it has a hand in, and those that make up the total; whoever makes the grader knows them all.
        self.touches: frozenset[str] = frozenset(self.score_names)
        self.weighted: frozenset[str] = frozenset()
        claims = (GROUNDEDNESS,) if settings.claims else ()
        # Which way its scores are better.
        self.direction: Mapping[str, Direction] = dict.fromkeys((*self.score_names, *claims), "higher")
        if settings.model != LOCAL:
            # Only to find a missing key, price or a bad address before anything is asked.
            client = JudgeClient(settings, self.prices)
            free = next((name for name, seat in client.seats.items() if seat.price is None), None)
            if settings.budget is not None and free is not None:
                raise ConfigError(
                    f"a judge's budget needs its prices: --judge-price IN/OUT, or [prices] {free!r} = "
                    "{input = 0.15, output = 0.60} per million tokens"
                )

    @cached_property
    def version(self) -> str:
        """Changes whenever the same reply could get another judgement."""
        settings = self.settings
        parts = [
            *(settings.models, PROMPT_HASH, self.rubric.hash, settings.samples, settings.temperature),
            *(settings.seed, settings.max_chars, settings.max_tokens, settings.extra, settings.base_url),
            *((CLAIMS_HASH,) if settings.claims else ()),
            *(("probabilities",) if settings.probabilities else ()),
            # What a judge costs changes no verdict.
            *(msgspec.structs.replace(own, prices=None) for own in settings.judges.values()),
        ]
        encoded = msgspec.json.encode(parts, order="deterministic")
        return f"judge/1/{blake2b(encoded, digest_size=8).hexdigest()}"


def make_judge(
    settings: JudgeSettings,
    scoring: Scoring,
    *,
    folder: Path | None = None,
    prices: Mapping[str, Price] | None = None,
) -> Judge | None:
    """The configured judge; None if there is none and the scoring needs none."""
    if settings.models:
        named = scoring.grounded.calibration
        if not named or scoring.grounded.model:
            return Judge(settings, folder=folder, prices=prices)
        known = read_calibration((folder or Path()) / named, settings.models[0])
        return Judge(settings, folder=folder, prices=prices, reliability=known.in_words)
    if scoring.needs_judge:
        raise ConfigError(
            "the scoring makes a judge part of the score; name one with --judge MODEL or [judge] model"
        )
    return None


# JudgingSession: one run's judging, from opening the endpoint to the `judge` section of the run document.


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

    def record(self) -> JudgeRecord:
        """Return the `judge` section of the run document."""
        settings, ledger, panel, counts = self._settings, self._ledger, self.panel, self._counts
        seats = self._client.seats.items()
        reliable, because = reliability(self._canaries)
        return JudgeRecord(
            model=" + ".join(settings.models),
            models=settings.models,
            endpoint=" + ".join(dict.fromkeys(seat.endpoint for _, seat in seats)),
            response_format={name: FORMS[seat.form] for name, seat in seats},
            dropped_parameters={name: sorted(seat.dropped) for name, seat in seats if seat.dropped},
            rubric=RubricRecord(self.rubric.name, self.rubric.hash, self.rubric.weights),
            prompt_hash=PROMPT_HASH,
            samples=settings.samples,
            temperature=settings.temperature,
            seed=settings.seed,
            budget=settings.budget,
            probabilities=ProbabilityCounts(panel.weighed, panel.unweighed)
            if settings.probabilities
            else None,
            reliable=reliable,
            unreliable_because=tuple(because),
            canaries=tuple(self._canaries),
            judged=counts.judged,
            unscored=counts.unscored,
            unscored_because=counts.unscored_because,
            self_consistency=counts.self_consistency,
            agreement=counts.agreement,
            touches=self._touches(counts.unscored),
            calls=ledger.calls,
            cached=panel.cached,
            asked_again=panel.asked_again,
            tokens=TokenCounts(ledger.input_tokens, ledger.output_tokens),
            cost=round(ledger.cost, 6) if ledger.cost_known else None,
            budget_stopped=ledger.refused > 0,
            claims=self._claims.record(),
        )


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
