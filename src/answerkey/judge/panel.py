"""Panel: asks each judge for each sample, from the cache where it can, and reads the answers strictly."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from answerkey.judge.client import Completion, JudgeClient
from answerkey.judge.grade_probabilities import (
    is_told_by_first_token,
    keep_with_probabilities,
    read_with_probabilities,
)
from answerkey.judge.item import Item
from answerkey.judge.judgement_cache import JudgementCache
from answerkey.judge.judgement_of_reply import Judgement, combine
from answerkey.judge.ledger import Ledger
from answerkey.judge.prompt import PROMPT_HASH, again_messages, judge_messages
from answerkey.judge.rubric import Rubric
from answerkey.judge.verdict import UnjudgedError, parse_verdict, verdict_schema
from answerkey.model.judge_answer import Answer
from answerkey.model.options import JudgeSettings
from answerkey.transcripts.failures import failure_message

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
