"""The panel: one or several judges asked through a cache, their verdicts combined, and canaries that test them.

An answer is looked up before a judge is asked, and counts only once it is on disk, so that a killed run never pays twice.
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
from answerkey.judge.client import Completion, JudgeClient, Ledger
from answerkey.judge.prompt import (
    PROMPT_HASH,
    Item,
    Rubric,
    UnjudgedError,
    Verdict,
    encode_weighed,
    has_distinct_first_digits,
    item_of,
    judge_messages,
    parse_verdict,
    parse_weighed,
    retry_messages,
    verdict_schema,
)
from answerkey.model.judgement import Answer, CanaryResult, UnscoredReason
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.stats.paired import krippendorff_alpha
from answerkey.transcripts.fields import failure_message

if TYPE_CHECKING:
    from answerkey.store.feedback import SqlJudgements


# Cache. Lookups and writes that arrive during a transaction share the next one.


# The least time between two transactions.
_BATCH_S = 0.01


class _Job(NamedTuple):
    """An answer to store, or a key to look up."""

    key: str
    answer: Answer | None
    done: "asyncio.Future[str | None]"


class JudgementCache:
    """Batched access to the judgements in a store; without a store, answers are held in memory."""

    def __init__(self, store: "SqlJudgements | None", run_id: str, executor: Executor | None = None) -> None:
        self._store = store
        self._run_id = run_id
        self._executor = executor
        self._memory: dict[str, str] = {}
        self._jobs: list[_Job] = []
        self._work = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "JudgementCache":
        self._worker = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        # Answers not written yet have been paid for.
        self._exchange([job for job in self._jobs if job.answer is not None])

    async def find(self, key: str) -> str | None:
        """Look up the answer under a key."""
        return await self._wait(key, None)

    async def add(self, answer: Answer) -> None:
        """Store an answer; returns once it is on disk."""
        await self._wait(answer.key, answer)

    async def _wait(self, key: str, answer: Answer | None) -> str | None:
        job = _Job(key, answer, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._work.set()
        return await job.done

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time() - _BATCH_S
        while True:
            await self._work.wait()
            # Wait for more jobs, unless the last transaction was long ago.
            await asyncio.sleep(max(0.0, last + _BATCH_S - loop.time()))
            last = loop.time()
            jobs, self._jobs = self._jobs, []
            self._work.clear()
            try:
                # Shielded: paid answers are written even after a cancellation.
                answers = await asyncio.shield(loop.run_in_executor(self._executor, self._exchange, jobs))
            except Exception as error:  # noqa: BLE001  # passed on to the callers
                for job in jobs:
                    if not job.done.done():
                        job.done.set_exception(error)
                continue
            for job in jobs:
                if not job.done.done():
                    job.done.set_result(answers.get(job.key))

    def _exchange(self, jobs: Sequence[_Job]) -> Mapping[str, str]:
        answers = [job.answer for job in jobs if job.answer is not None]
        if self._store is None:
            self._memory.update((answer.key, answer.text) for answer in answers)
            return self._memory
        if answers:
            self._store.add_answers(self._run_id, answers)
        keys = list(dict.fromkeys(job.key for job in jobs if job.answer is None))
        return self._store.find_answers(keys) if keys else {}


# Judgement: the median over judges and samples.


# Name of the metric; a criterion's metric is `judge_CRITERION`.
JUDGE = "judge"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The panel's verdict on one reply."""

    # None: there is no verdict.
    value: float | None
    reason: str
    # Criterion → 0 … 1.
    criteria: dict[str, float] = {}
    # Judge → its value under JUDGE, and of each criterion, 0 … 1.
    by_judge: dict[str, dict[str, float]] = {}
    # Whether all samples of each judge gave the same grades; None with one sample.
    consistent: bool | None = None
    # Why there is no verdict: a kind of UnjudgedError.
    kind: str | None = None
    details: dict[str, Any] = {}


def empty_judgement(rubric: Rubric) -> Judgement:
    """Return the judgement of a null or empty reply: 0, without a call."""
    reason = "there is no text to judge"
    return Judgement(value=0.0, reason=reason, criteria=dict.fromkeys(rubric.weights, 0.0))


def combine(outcomes: Mapping[str, Sequence[Verdict | UnjudgedError]], rubric: Rubric) -> Judgement:
    """Return the median over each judge's samples, then over the judges.

    A majority of a judge's samples, and of the judges, must be verdicts; otherwise the reply is unscored, never zero.
    """
    verdicts = {
        model: [one for one in results if isinstance(one, dict)] for model, results in outcomes.items()
    }
    counted = {model: given for model, given in verdicts.items() if 2 * len(given) > len(outcomes[model])}
    failures = [
        (f"{model}: {one}" if len(outcomes) > 1 else str(one), one.kind)
        for model, results in outcomes.items()
        for one in results
        if isinstance(one, UnjudgedError)
    ]
    if 2 * len(counted) <= len(outcomes):
        return Judgement(value=None, reason=failures[0][0], kind=failures[0][1])
    by_judge = {
        model: {
            name: rubric.share_of(median(verdict[name].mean for verdict in given)) for name in rubric.weights
        }
        for model, given in counted.items()
    }
    criteria = {name: median(shares[name] for shares in by_judge.values()) for name in rubric.weights}
    details: dict[str, Any] = {
        "judges": [
            {
                "model": model,
                "value": weighted(by_judge[model], rubric),
                "samples": msgspec.to_builtins(given, str_keys=True),
            }
            for model, given in counted.items()
        ]
    }
    if failures:
        details["failures"] = [reason for reason, _ in failures]
    unanimous = all(len({_written_grades(verdict) for verdict in given}) == 1 for given in counted.values())
    return Judgement(
        value=weighted(criteria, rubric),
        reason="; ".join(
            f"{name} {round(rubric.grade_of(value), 2):g}/{rubric.top}" for name, value in criteria.items()
        ),
        criteria=criteria,
        by_judge={model: {JUDGE: weighted(own, rubric), **own} for model, own in by_judge.items()},
        consistent=unanimous if any(len(given) > 1 for given in counted.values()) else None,
        details=details,
    )


def _written_grades(verdict: Verdict) -> tuple[int, ...]:
    return tuple(graded.score for graded in verdict.values())


def weighted(criteria: Mapping[str, float], rubric: Rubric) -> float:
    return round_score(fsum(rubric.weights[name] * value for name, value in criteria.items()))


def scores_of(judgement: Judgement, rubric: Rubric) -> tuple[Score, ...]:
    """Return a judgement as scores: the total, then each criterion."""
    details: dict[str, Any] = {"value": judgement.value, "reason": judgement.reason, **judgement.details}
    total = Score(JUDGE, judgement.value, judgement.reason, None, details)
    parts = (
        Score(
            f"{JUDGE}_{name}",
            None if judgement.value is None else judgement.criteria.get(name),
            judgement.reason if judgement.value is None else "",
        )
        for name in rubric.weights
    )
    return (total, *parts)


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


# Panel.


_Answer = TypeVar("_Answer")


class JudgeTask(NamedTuple, Generic[_Answer]):
    """What judges do with an item: grade it, compare two replies, or check claims."""

    # Hash of the wording; part of every answer's key.
    hash: str
    # JSON Schema of the answer.
    schema: dict[str, Any]
    messages: Callable[[Item], list[dict[str, str]]]
    # Reads a cached answer, or raises UnjudgedError.
    read: Callable[[str], _Answer]
    # Encodes an answer with token probabilities for the cache; None: no probabilities, the text is cached.
    encode: Callable[[Completion], str] | None = None


class Panel:
    """One or several judges with a shared client, cache and budget."""

    def __init__(
        self, settings: JudgeSettings, client: JudgeClient, cache: JudgementCache, ledger: Ledger
    ) -> None:
        self.settings = settings
        self._client = client
        self._cache = cache
        self._ledger = ledger
        # Key → call in flight, for equal replies that wait for the same answer.
        self._in_flight: dict[str, asyncio.Future[str]] = {}
        # Answers from the cache, and unreadable answers that were asked for once more.
        self.cached = 0
        self.asked_again = 0
        # Verdicts with token probabilities, and verdicts that should have them and do not.
        self.weighed = 0
        self.unweighed = 0

    async def judge(
        self, item: Item, rubric: Rubric, *, salt: str = "", model: str | None = None
    ) -> Judgement:
        """Have one item graded by all judges, or by one. A salt separates its cached answers from those of equal items."""
        task = self._grading_task(rubric)
        models = (model,) if model else self.settings.models
        samples = self.settings.samples
        results = await gather_outcomes(
            self.ask(name, task, item, sample=sample, salt=salt)
            for name in models
            for sample in range(samples)
        )
        if self.settings.probabilities:
            verdicts = [one for one in results if not isinstance(one, UnjudgedError)]
            plain = sum(any(grade.probabilities is None for grade in one.values()) for one in verdicts)
            self.weighed += len(verdicts) - plain
            self.unweighed += plain
        by_model = {name: results[index * samples :][:samples] for index, name in enumerate(models)}
        return combine(by_model, rubric)

    def _grading_task(self, rubric: Rubric) -> JudgeTask[Verdict]:
        def messages(item: Item) -> list[dict[str, str]]:
            return judge_messages(rubric, item)

        if not self.settings.probabilities or not has_distinct_first_digits(rubric):
            return JudgeTask(
                rubric.hash, verdict_schema(rubric), messages, lambda text: parse_verdict(text, rubric)
            )
        return JudgeTask(
            f"{rubric.hash}/probabilities",
            verdict_schema(rubric),
            messages,
            lambda encoded: parse_weighed(encoded, rubric),
            lambda completion: encode_weighed(completion.text, completion.tokens, rubric),
        )

    async def ask(
        self, model: str, task: JudgeTask[_Answer], item: Item, *, sample: int = 0, salt: str = ""
    ) -> _Answer:
        """Return one answer of one judge, from the cache or by a call; raises UnjudgedError with the reason."""
        key = self._key(model, task.hash, item, sample, salt)
        cached = await self._cache.find(key)
        if cached is not None:
            # An answer that this version cannot read is asked for again.
            with suppress(UnjudgedError):
                answer = task.read(cached)
                self.cached += 1
                return answer
        waiting = self._in_flight.get(key)
        if waiting is not None:
            # Fails with the call that it waits for, for the same reason.
            text = await asyncio.shield(waiting)
            self.cached += 1
            return task.read(text)
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        try:
            text, answer = await self._call(model, task, item, key, self.settings.seed + sample)
        except BaseException as error:
            stopped = UnjudgedError("the run was stopped", "stopped")
            future.set_exception(error if isinstance(error, UnjudgedError) else stopped)
            # Mark it as retrieved, in case no other call waits; it is raised here anyway.
            future.exception()
            raise
        else:
            future.set_result(text)
        finally:
            del self._in_flight[key]
        return answer

    async def _call(
        self, model: str, task: JudgeTask[_Answer], item: Item, key: str, seed: int
    ) -> tuple[str, _Answer]:
        """Ask; an unreadable answer is asked for once more, with the reason."""
        messages = task.messages(item)
        repeated = False
        while True:
            length = sum(len(message["content"]) for message in messages)
            price = self._client.members[model].price
            async with self._client.slots, self._ledger.reserved(length, price) as estimate:
                completion = await self._client.complete(
                    model, messages, task.schema, seed=seed, probabilities=task.encode is not None
                )
                self._ledger.add(completion.spent, estimate)
            text, spent = completion.text, completion.spent
            try:
                _check_finish(completion)
                encoded = text if task.encode is None else task.encode(completion)
                answer = task.read(encoded)
            except UnjudgedError as error:
                # Stored for its cost, under a key that is never looked up: a later run may ask again.
                failed = Answer(key=f"{key}/{secrets.token_hex(4)}", model=model, text=text, spent=spent)
                await self._cache.add(failed)
                if repeated or error.kind != "unreadable":
                    raise
                messages, repeated = [*messages, *retry_messages(text, str(error))], True
                self.asked_again += 1
            else:
                await self._cache.add(Answer(key=key, model=model, text=encoded, spent=spent))
                return encoded, answer

    def _key(self, model: str, task_hash: str, item: Item, sample: int, salt: str) -> str:
        """Return the cache key: a hash of everything that could change the answer."""
        settings, member = self.settings, self._client.members[model]
        parts = [
            member.model,
            member.endpoint,
            PROMPT_HASH,
            task_hash,
            salt,
            item.hash,
            settings.temperature,
            settings.seed + sample,
            sample,
            settings.max_tokens,
            settings.extra,
        ]
        return blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=16).hexdigest()


async def gather_outcomes(calls: Iterable[Awaitable[_Answer]]) -> list[_Answer | UnjudgedError]:
    """Run calls concurrently; return each answer, or the error that says why there is none."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, UnjudgedError):
            raise outcome
    return cast("list[_Answer | UnjudgedError]", outcomes)


def _check_finish(completion: Completion) -> None:
    if completion.refusal is not None or completion.finish == "content_filter":
        reason = failure_message(completion.refusal or "content filter", 160)
        raise UnjudgedError(f"the judge refused: {reason}", "refused")
    if completion.finish == "length":
        raise UnjudgedError("the judge's verdict was cut off: raise max_tokens", "cut off")


# Canaries: items whose right grade is known. A judge that grades them wrong is unreliable.


class Canary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply that is clearly bad, or clearly good."""

    kind: str
    question: str
    reference_answer: str
    reply: str
    # The score must be below this,
    below: float | None = None
    # or at least this.
    least: float | None = None

    def passes(self, score: float) -> bool:
        """Whether a judge's score is right."""
        return (self.below is None or score < self.below) and (self.least is None or score >= self.least)


class PairCanary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two replies of which one is clearly better."""

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
    """Load the bundled canaries, and those of the user's file."""
    text = (resources.files("answerkey.judge") / "canaries.toml").read_text(encoding="utf-8")
    bundled = msgspec.toml.decode(text, type=Canaries)
    if own is None:
        return bundled
    try:
        more = msgspec.toml.decode(own.read_text(encoding="utf-8-sig"), type=Canaries)
    except OSError as error:
        raise ConfigError(f"canaries {own}: cannot be read: {error.strerror or error}") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise ConfigError(f"canaries {own}: {str(error).replace('`$.', '`')}") from None
    return Canaries(canary=bundled.canary + more.canary, pair=bundled.pair + more.pair)


async def ask_canaries(
    panel: Panel, rubric: Rubric, canaries: Sequence[Canary], run_id: str
) -> list[CanaryResult]:
    """Have every judge grade every canary. Answers are cached for this run only: each run tests its judges again."""
    calls = [
        _ask(panel, rubric, model, canary, run_id) for model in panel.settings.models for canary in canaries
    ]
    return await asyncio.gather(*calls)


async def _ask(panel: Panel, rubric: Rubric, model: str, canary: Canary, run_id: str) -> CanaryResult:
    question = Question(id="canary", question=canary.question, reference_answer=canary.reference_answer)
    item = item_of(question, Reply(text=canary.reply))
    judged = await panel.judge(item, rubric, salt=f"canary/{run_id}", model=model)
    return CanaryResult(
        kind=canary.kind,
        model=model,
        score=judged.value,
        passed=None if judged.value is None else canary.passes(judged.value),
        reason=judged.reason,
        unjudged=judged.kind,
    )


def reliability(canaries: Sequence[CanaryResult]) -> tuple[bool | None, list[str]]:
    """Return whether all canaries were graded right (None: unknown), and what is wrong."""
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
