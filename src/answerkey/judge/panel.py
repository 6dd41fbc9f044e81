"""Judgements under their keys: read before a judge is asked, written before its verdict counts.

Reads and writes of many calls share transactions: whatever is wanted while one is under way goes into the next.
A verdict counts only once it is on disk, so that a killed run never pays twice for what it had counted.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib import resources
from math import fsum
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from answerkey.errors import ConfigError
from answerkey.judge.client import (
    Completion,
    JudgeClient,
    Ledger,
    is_told_by_first_token,
    keep_with_probabilities,
    read_with_probabilities,
)
from answerkey.judge.prompt import (
    PROMPT_HASH,
    Item,
    Rubric,
    UnjudgedError,
    Verdict,
    again_messages,
    item_of,
    judge_messages,
    parse_verdict,
    verdict_schema,
)
from answerkey.model.judgement import Answer, CanaryResult, UnscoredReason
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.stats.agreement import krippendorff_alpha
from answerkey.transcripts.failures import failure_message

if TYPE_CHECKING:
    from answerkey.store.review import SqlJudgements


_GATHERING_S = 0.01


class _Job(NamedTuple):
    """An answer to be kept, or without one a key to be looked up."""

    key: str
    answer: Answer | None
    done: "asyncio.Future[str | None]"


class JudgementCache:
    """Batched access to the judgements of a store; without one, answers last as long as the process."""

    def __init__(self, store: "SqlJudgements | None", run_id: str, executor: Executor | None = None) -> None:
        self._store = store
        self._run_id = run_id
        self._executor = executor
        self._memory: dict[str, str] = {}
        self._jobs: list[_Job] = []
        self._work = asyncio.Event()
        self._clerk: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "JudgementCache":
        self._clerk = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._clerk is not None:
            self._clerk.cancel()
            with suppress(asyncio.CancelledError):
                await self._clerk
        # What arrived but was not written yet has been paid for.
        self._exchange([job for job in self._jobs if job.answer is not None])

    async def find(self, key: str) -> str | None:
        """The answer under a key, if it is there."""
        return await self._wait(key, None)

    async def add(self, answer: Answer) -> None:
        """Keep an answer; returns once it is on disk."""
        await self._wait(answer.key, answer)

    async def _wait(self, key: str, answer: Answer | None) -> str | None:
        job = _Job(key, answer, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._work.set()
        return await job.done

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        served = loop.time() - _GATHERING_S
        while True:
            await self._work.wait()
            # A moment for others to join: one transaction for many costs hardly more than one for each. The first of
            # many, or one of few, need not wait.
            await asyncio.sleep(max(0.0, served + _GATHERING_S - loop.time()))
            served = loop.time()
            jobs, self._jobs = self._jobs, []
            self._work.clear()
            try:
                # Shielded: what has been paid for is written even if nobody waits for it any more.
                found = await asyncio.shield(loop.run_in_executor(self._executor, self._exchange, jobs))
            except Exception as error:  # noqa: BLE001  # handed to those who wait, whatever it is
                for job in jobs:
                    if not job.done.done():
                        job.done.set_exception(error)
                continue
            for job in jobs:
                if not job.done.done():
                    job.done.set_result(found.get(job.key))

    def _exchange(self, jobs: Sequence[_Job]) -> Mapping[str, str]:
        answers = [job.answer for job in jobs if job.answer is not None]
        if self._store is None:
            self._memory.update((answer.key, answer.text) for answer in answers)
            return self._memory
        if answers:
            self._store.add_answers(self._run_id, answers)
        keys = list(dict.fromkeys(job.key for job in jobs if job.answer is None))
        return self._store.find_answers(keys) if keys else {}


# Judgement: what a panel makes of one reply; the median of its judges and samples, or the reason why there is none.


# The metric's name; each criterion's is this with its name behind.
JUDGE = "judge"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply is worth to the judges."""

    # None: it could not be judged.
    value: float | None
    reason: str
    # Criterion → 0 … 1.
    criteria: dict[str, float] = {}
    # Judge → its own value under JUDGE, and that of each criterion, 0 … 1.
    by_judge: dict[str, dict[str, float]] = {}
    # Whether all samples of every judge came to the same grades; None with one sample.
    consistent: bool | None = None
    # Why it could not be judged, as a kind.
    kind: str | None = None
    details: dict[str, Any] = {}


def worthless(rubric: Rubric) -> Judgement:
    """A null or empty reply: there is nothing to ask a judge about."""
    reason = "there is no text to judge"
    return Judgement(value=0.0, reason=reason, criteria=dict.fromkeys(rubric.weights, 0.0))


def combine(outcomes: Mapping[str, Sequence[Verdict | UnjudgedError]], rubric: Rubric) -> Judgement:
    """The median over a judge's samples, then over the judges; most of each must have given a verdict.

    Without that the reply is unscored, never a zero.
    """
    verdicts = {model: [one for one in said if isinstance(one, dict)] for model, said in outcomes.items()}
    counted = {model: found for model, found in verdicts.items() if 2 * len(found) > len(outcomes[model])}
    failures = [
        (f"{model}: {one}" if len(outcomes) > 1 else str(one), one.kind)
        for model, said in outcomes.items()
        for one in said
        if isinstance(one, UnjudgedError)
    ]
    if 2 * len(counted) <= len(outcomes):
        return Judgement(value=None, reason=failures[0][0], kind=failures[0][1])
    by_judge = {
        model: {
            name: rubric.share_of(median(verdict[name].mean for verdict in found)) for name in rubric.weights
        }
        for model, found in counted.items()
    }
    criteria = {name: median(given[name] for given in by_judge.values()) for name in rubric.weights}
    details: dict[str, Any] = {
        "judges": [
            {"model": model, "samples": msgspec.to_builtins(found, str_keys=True)}
            for model, found in counted.items()
        ]
    }
    if failures:
        details["failures"] = [reason for reason, _ in failures]
    unanimous = all(verdict == found[0] for found in _grades(counted) for verdict in found)
    return Judgement(
        value=weighted(criteria, rubric),
        reason="; ".join(
            f"{name} {round(rubric.grade_of(value), 2):g}/{rubric.top}" for name, value in criteria.items()
        ),
        criteria=criteria,
        by_judge={model: {JUDGE: weighted(given, rubric), **given} for model, given in by_judge.items()},
        consistent=unanimous if any(len(found) > 1 for found in counted.values()) else None,
        details=details,
    )


def _grades(verdicts: Mapping[str, Sequence[Verdict]]) -> list[list[dict[str, int]]]:
    """Each judge's verdicts without their reasons."""
    return [
        [{name: graded.score for name, graded in verdict.items()} for verdict in found]
        for found in verdicts.values()
    ]


def weighted(criteria: Mapping[str, float], rubric: Rubric) -> float:
    """The criteria's weighted mean."""
    return round_score(fsum(rubric.weights[name] * value for name, value in criteria.items()))


def scores_of(judgement: Judgement, rubric: Rubric) -> tuple[Score, ...]:
    """A judgement as scores: the whole, and each criterion beside it."""
    details: dict[str, Any] = {"value": judgement.value, "reason": judgement.reason, **judgement.details}
    whole = Score(JUDGE, judgement.value, judgement.reason, None, details)
    parts = (
        Score(
            f"{JUDGE}_{name}",
            None if judgement.value is None else judgement.criteria.get(name),
            judgement.reason if judgement.value is None else "",
        )
        for name in rubric.weights
    )
    return (whole, *parts)


class JudgementCounts:
    """Counts a run's judgements: verdicts, reasons for missing ones, and agreement between judges."""

    def __init__(self, models: Sequence[str]) -> None:
        self._models = models
        self.judged = 0
        # Kind of reason → replies without a verdict.
        self.unscored_because: dict[str, UnscoredReason] = {}
        self._consistent: Counter[bool] = Counter()
        # Of a panel: score name → model → its grades, item by item; None where it gave none.
        self._ratings: dict[str, dict[str, list[float | None]]] = {}

    def add(self, judgement: Judgement) -> None:
        """Count one judgement."""
        if judgement.value is None:
            kind = judgement.kind or "unreadable"
            before = self.unscored_because.get(kind, UnscoredReason(0, judgement.reason))
            self.unscored_because[kind] = UnscoredReason(before.count + 1, before.reason)
            return
        self.judged += 1
        if judgement.consistent is not None:
            self._consistent[judgement.consistent] += 1
        if len(self._models) > 1 and judgement.by_judge:
            for name in (JUDGE, *judgement.criteria):
                ratings = self._ratings.setdefault(name, {model: [] for model in self._models})
                for model, grades in ratings.items():
                    grades.append(judgement.by_judge.get(model, {}).get(name))

    @property
    def unscored(self) -> int:
        """Replies without a verdict."""
        return sum(reason.count for reason in self.unscored_because.values())

    @property
    def self_consistency(self) -> float | None:
        """Share of replies on which all samples agree; None with one sample."""
        repeated = self._consistent.total()
        return round(self._consistent[True] / repeated, 9) if repeated else None

    @property
    def agreement(self) -> dict[str, float | None] | None:
        """Krippendorff's α by score name; None for a single judge."""
        alphas = {name: krippendorff_alpha(list(ratings.values())) for name, ratings in self._ratings.items()}
        return {name: None if alpha is None else round(alpha, 6) for name, alpha in alphas.items()} or None


# Panel: asks each judge for each sample, from the cache where it can, and reads the answers strictly.


_Read = TypeVar("_Read")


class Inquiry(NamedTuple, Generic[_Read]):
    """What a judge is asked to do with an item."""

    # Changes with the wording; part of every answer's key.
    hash: str
    # JSON Schema of the answer.
    schema: dict[str, Any]
    messages: Callable[[Item], list[dict[str, str]]]
    # Reads what was kept of an answer, or raises UnjudgedError.
    read: Callable[[str], _Read]
    # What is kept of an answer whose tokens have probabilities, which are then asked for; None: its text.
    keep: Callable[[Completion], str] | None = None


class Panel:
    """One or several judges, asked through one client, cache and budget."""

    def __init__(
        self, settings: JudgeSettings, client: JudgeClient, cache: JudgementCache, ledger: Ledger
    ) -> None:
        self.settings = settings
        self._client = client
        self._cache = cache
        self._ledger = ledger
        # Calls whose answer others wait for as well: many replies of a run are alike.
        self._under_way: dict[str, asyncio.Future[str]] = {}
        # Answers that were there already, and those that could not be read and were asked for once more.
        self.cached = 0
        self.asked_again = 0
        # Where probabilities are wanted: verdicts that have them, and those of which the written grades count.
        self.weighed = 0
        self.unweighed = 0

    async def judge(
        self, item: Item, rubric: Rubric, *, salt: str = "", model: str | None = None
    ) -> Judgement:
        """Judge one item by all judges, or by one. A salt keeps an item's judgements apart from others of its like."""
        weighed = self.settings.probabilities and is_told_by_first_token(rubric)
        inquiry = Inquiry(
            f"{rubric.hash}/probabilities" if weighed else rubric.hash,
            verdict_schema(rubric),
            lambda item: judge_messages(rubric, item),
            lambda kept: (read_with_probabilities if weighed else parse_verdict)(kept, rubric),
            (lambda completion: keep_with_probabilities(completion, rubric)) if weighed else None,
        )
        models = (model,) if model else self.settings.models
        samples = self.settings.samples
        found = await outcomes(
            self.ask(name, inquiry, item, sample=sample, salt=salt)
            for name in models
            for sample in range(samples)
        )
        if self.settings.probabilities:
            verdicts = [one for one in found if not isinstance(one, UnjudgedError)]
            plain = sum(any(grade.probabilities is None for grade in one.values()) for one in verdicts)
            self.weighed += len(verdicts) - plain
            self.unweighed += plain
        said = {name: found[place * samples :][:samples] for place, name in enumerate(models)}
        return combine(said, rubric)

    async def ask(
        self, model: str, inquiry: Inquiry[_Read], item: Item, *, sample: int = 0, salt: str = ""
    ) -> _Read:
        """One answer of one judge, from the cache or by asking; raises UnjudgedError with the reason."""
        key = self._key(model, inquiry.hash, item, sample, salt)
        known = await self._cache.find(key)
        if known is not None:
            # An answer that an earlier answerkey took for a verdict may be none to this one: it is then asked for again.
            with suppress(UnjudgedError):
                found = inquiry.read(known)
                self.cached += 1
                return found
        waiting = self._under_way.get(key)
        if waiting is not None:
            # If the call that it waits for fails, so does this one, for the same reason.
            text = await asyncio.shield(waiting)
            self.cached += 1
            return inquiry.read(text)
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        try:
            text, found = await self._call(model, inquiry, item, key, self.settings.seed + sample)
        except BaseException as error:
            stopped = UnjudgedError("the run was stopped", "stopped")
            future.set_exception(error if isinstance(error, UnjudgedError) else stopped)
            # Nobody may be waiting; the exception is raised here anyway.
            future.exception()
            raise
        else:
            future.set_result(text)
        finally:
            del self._under_way[key]
        return found

    async def _call(
        self, model: str, inquiry: Inquiry[_Read], item: Item, key: str, seed: int
    ) -> tuple[str, _Read]:
        """Ask; an answer that cannot be read is asked for once more, with what is wrong with it."""
        messages = inquiry.messages(item)
        again = False
        while True:
            length = sum(len(message["content"]) for message in messages)
            async with self._client.slots, self._ledger.reserved(length, self._client.seats[model].price):
                completion = await self._client.complete(
                    model, messages, inquiry.schema, seed=seed, probabilities=inquiry.keep is not None
                )
                self._ledger.add(completion.spent)
            text, spent = completion.text, completion.spent
            try:
                _check(completion)
                kept = text if inquiry.keep is None else inquiry.keep(completion)
                found = inquiry.read(kept)
            except UnjudgedError as error:
                # Its cost is kept under a key that nobody looks up: a later run may ask again.
                failed = Answer(key=f"{key}/{secrets.token_hex(4)}", model=model, text=text, spent=spent)
                await self._cache.add(failed)
                if again or error.kind != "unreadable":
                    raise
                messages, again = [*messages, *again_messages(text, str(error))], True
                self.asked_again += 1
            else:
                await self._cache.add(Answer(key=key, model=model, text=kept, spent=spent))
                return kept, found

    def _key(self, model: str, asked: str, item: Item, sample: int, salt: str) -> str:
        """What an answer is kept by: everything that could change it."""
        settings = self.settings
        parts = [
            *(
                self._client.seats[model].model,
                self._client.seats[model].endpoint,
                PROMPT_HASH,
                asked,
                salt,
                item.hash,
            ),
            *(settings.temperature, settings.seed + sample, sample, settings.max_tokens, settings.extra),
        ]
        return blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=16).hexdigest()


async def outcomes(asked: Iterable[Awaitable[_Read]]) -> list[_Read | UnjudgedError]:
    """What became of calls that were under way together: each one's answer, or why it has none."""
    found = await asyncio.gather(*asked, return_exceptions=True)
    for outcome in found:
        if isinstance(outcome, BaseException) and not isinstance(outcome, UnjudgedError):
            raise outcome
    return cast("list[_Read | UnjudgedError]", found)


def _check(completion: Completion) -> None:
    if completion.refusal is not None or completion.finish == "content_filter":
        said = failure_message(completion.refusal or "content filter", 160)
        raise UnjudgedError(f"the judge refused: {said}", "refused")
    if completion.finish == "length":
        raise UnjudgedError("the judge's verdict was cut off: raise max_tokens", "cut off")


# Canaries: items whose right grade is known, put to every judge of a run; one that gets them wrong is named.


class Canary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply that is plainly bad (or, one of them, plainly good)."""

    kind: str
    question: str
    reference_answer: str
    reply: str
    # It must score less than this,
    below: float | None = None
    # or at least this.
    least: float | None = None

    def holds(self, score: float) -> bool:
        """Whether a judge's score is one that the canary allows."""
        return (self.below is None or score < self.below) and (self.least is None or score >= self.least)


class PairCanary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two replies of which one is plainly better."""

    kind: str
    question: str
    reference_answer: str
    better: str
    worse: str


class Canaries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of canaries."""

    canary: tuple[Canary, ...] = ()
    pair: tuple[PairCanary, ...] = ()


@cache
def load_canaries(own: Path | None = None) -> Canaries:
    """The canaries, and those of a file beside them."""
    text = (resources.files("answerkey.judge") / "canaries.toml").read_text(encoding="utf-8")
    found = msgspec.toml.decode(text, type=Canaries)
    if own is None:
        return found
    try:
        more = msgspec.toml.decode(own.read_text(encoding="utf-8-sig"), type=Canaries)
    except OSError as error:
        raise ConfigError(f"canaries {own}: cannot be read: {error.strerror or error}") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(f"canaries {own}: {str(error).replace('`$.', '`')}") from None
    return Canaries(canary=found.canary + more.canary, pair=found.pair + more.pair)


async def ask_canaries(
    panel: Panel, rubric: Rubric, canaries: Sequence[Canary], run_id: str
) -> list[CanaryResult]:
    """Put every canary to every judge. Their answers are cached for this run only: the next run tests its judge anew."""
    asked = [(model, canary) for model in panel.settings.models for canary in canaries]
    return await asyncio.gather(*(_ask(panel, rubric, model, canary, run_id) for model, canary in asked))


async def _ask(panel: Panel, rubric: Rubric, model: str, canary: Canary, run_id: str) -> CanaryResult:
    question = Question(id="canary", question=canary.question, reference_answer=canary.reference_answer)
    item = item_of(question, Reply(text=canary.reply))
    judged = await panel.judge(item, rubric, salt=f"canary/{run_id}", model=model)
    return CanaryResult(
        kind=canary.kind,
        model=model,
        score=judged.value,
        passed=None if judged.value is None else canary.holds(judged.value),
        reason=judged.reason,
        unjudged=judged.kind,
    )


def reliability(canaries: Sequence[CanaryResult]) -> tuple[bool | None, list[str]]:
    """Whether the canaries came out right (None: not known), and what was wrong in words."""
    wrong = [
        f"{canary.model} gave the {canary.kind!r} canary {canary.score:.2f}"
        for canary in canaries
        if canary.passed is False
    ]
    if wrong:
        return False, wrong
    silent = [
        f"{canary.model} gave no verdict on the {canary.kind!r} canary: {canary.reason}"
        for canary in canaries
        if canary.passed is None
    ]
    return (True if canaries and not silent else None), silent
