"""Panel: asks each judge for each sample, from the cache where it can, and reads the answers strictly."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from answerkey.judge.cache import JudgementCache
from answerkey.judge.client import Completion, JudgeCallError, JudgeClient
from answerkey.judge.item import Item
from answerkey.judge.judgement import Judgement, Opinion, combine
from answerkey.judge.ledger import Ledger
from answerkey.judge.prompt import PROMPT_HASH, judge_messages
from answerkey.judge.rubric import Rubric
from answerkey.judge.verdict import NoVerdictError, Verdict, parse_verdict, verdict_schema
from answerkey.model.judge_answer import Answer
from answerkey.model.options import JudgeSettings
from answerkey.transcripts.failures import failure_message

__all__ = ["Panel", "UnjudgedError"]

_Read = TypeVar("_Read")


class UnjudgedError(Exception):
    """One sample of one judge that has no verdict, with the kind of reason: refused, unreadable, unreachable, budget."""

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


class Panel:
    """One or several judges under one rubric."""

    def __init__(
        self,
        settings: JudgeSettings,
        rubric: Rubric,
        client: JudgeClient,
        cache: JudgementCache,
        ledger: Ledger,
    ) -> None:
        self.settings = settings
        self.rubric = rubric
        self._client = client
        self._cache = cache
        self._ledger = ledger
        self._schema = verdict_schema(rubric)
        # Calls whose answer others wait for as well: many replies of a run are alike.
        self._under_way: dict[str, asyncio.Future[str]] = {}
        # Answers that were there already.
        self.cached = 0

    def with_rubric(self, rubric: Rubric) -> "Panel":
        """The same judges, cache and ledger under another rubric."""
        return Panel(self.settings, rubric, self._client, self._cache, self._ledger)

    async def judge(self, item: Item, *, salt: str = "", model: str | None = None) -> Judgement:
        """Judge one item by all judges, or by one. A salt keeps an item's judgements apart from others of its like."""
        models = (model,) if model else self.settings.models
        if len(models) == 1:
            # The usual case, without the tasks that a panel needs.
            return combine((await self._opinion(models[0], item, salt),), self.rubric)
        opinions = await asyncio.gather(*(self._opinion(name, item, salt) for name in models))
        return combine(opinions, self.rubric)

    async def _opinion(self, model: str, item: Item, salt: str) -> Opinion:
        keys = [
            self.key(model, item.hash, sample, salt, rubric=self.rubric.hash)
            for sample in range(self.settings.samples)
        ]
        known = await self._cache.find(tuple(keys))
        asked = [self._verdict(model, item, key, sample, known) for sample, key in enumerate(keys)]
        outcomes = [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)
        verdicts = [outcome for outcome in outcomes if isinstance(outcome, Verdict)]
        failures = [outcome for outcome in outcomes if isinstance(outcome, UnjudgedError)]
        return Opinion(
            model,
            tuple(verdicts),
            tuple(str(failure) for failure in failures),
            tuple(failure.kind for failure in failures),
        )

    async def _verdict(
        self, model: str, item: Item, key: str, sample: int, known: Mapping[str, str]
    ) -> "Verdict | UnjudgedError":
        """A sample's verdict, or why there is none."""
        try:
            return await self.ask(
                model,
                lambda: judge_messages(self.rubric, item),
                self._schema,
                key=key,
                sample=sample,
                known=known,
                read=lambda text: parse_verdict(text, self.rubric),
            )
        except UnjudgedError as error:
            return error

    async def ask(
        self,
        model: str,
        messages: Callable[[], list[dict[str, str]]],
        schema: dict[str, Any],
        *,
        key: str,
        sample: int,
        read: Callable[[str], _Read],
        known: Mapping[str, str] | None = None,
    ) -> _Read:
        """One answer of one judge, from the cache or by asking; raises UnjudgedError with the reason."""
        if known is None:
            known = await self._cache.find((key,))
        if key in known:
            # An answer that an earlier answerkey took for a verdict may be none to this one: it is then asked for again.
            with suppress(NoVerdictError):
                found = read(known[key])
                self.cached += 1
                return found
        waiting = self._under_way.get(key)
        if waiting is not None:
            # If the call that it waits for fails, so does this one, for the same reason.
            text = await asyncio.shield(waiting)
            self.cached += 1
            return read(text)
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        try:
            text, found = await self._call(model, messages(), schema, key, sample, read)
        except BaseException as error:
            failure = (
                error if isinstance(error, UnjudgedError) else UnjudgedError("the run was stopped", "stopped")
            )
            future.set_exception(failure)
            # Nobody may be waiting; the exception is raised here anyway.
            future.exception()
            raise
        else:
            future.set_result(text)
        finally:
            del self._under_way[key]
        return found

    async def _call(
        self,
        model: str,
        messages: list[dict[str, str]],
        schema: dict[str, Any],
        key: str,
        sample: int,
        read: Callable[[str], _Read],
    ) -> tuple[str, _Read]:
        async with self._client.slots:
            reserved = await self._ledger.reserve(sum(len(message["content"]) for message in messages))
            if reserved is None:
                raise UnjudgedError(f"the judge's budget of {self.settings.budget:g} is used up", "budget")
            try:
                completion = await self._client.complete(
                    model, messages, schema, seed=self.settings.seed + sample
                )
                self._ledger.add(completion.spent)
            except JudgeCallError as error:
                raise UnjudgedError(str(error), "unreachable") from None
            finally:
                self._ledger.release(reserved)
        try:
            _check(completion)
            found = read(completion.text)
        except (NoVerdictError, UnjudgedError) as error:
            # Its cost is kept under a key that nobody looks up: a later run may ask again.
            failed = Answer(
                key=f"{key}/{_unique()}", model=model, text=completion.text, spent=completion.spent
            )
            await self._cache.add(failed)
            kind = error.kind if isinstance(error, UnjudgedError) else "unreadable"
            raise UnjudgedError(str(error), kind) from None
        await self._cache.add(Answer(key=key, model=model, text=completion.text, spent=completion.spent))
        return completion.text, found

    def key(self, model: str, shown: str, sample: int, salt: str = "", *, rubric: str) -> str:
        """What a judgement is kept by: everything that could change it."""
        settings = self.settings
        parts = [
            *(model, self._client.endpoint, PROMPT_HASH, rubric, salt, shown),
            *(settings.temperature, settings.seed + sample, sample, settings.max_tokens, settings.extra),
        ]
        return blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=16).hexdigest()


def _check(completion: Completion) -> None:
    if completion.refusal is not None or completion.finish == "content_filter":
        said = failure_message(completion.refusal or "content filter", 160)
        raise UnjudgedError(f"the judge refused: {said}", "refused")
    if completion.finish == "length":
        raise UnjudgedError("the judge's verdict was cut off: raise max_tokens", "unreadable")


def _unique() -> str:
    import secrets

    return secrets.token_hex(4)
