"""JudgeClient: the judges of a panel asked over HTTP, with pacing, retries and what each of them understands."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from answerkey.engine.local_engine import LONGEST_WAIT, Pacer, backoff
from answerkey.judge.ledger import spent_on
from answerkey.judge.seat import FORMS, Seat
from answerkey.judge.verdict import UnjudgedError
from answerkey.model.judge_answer import Spent
from answerkey.model.options import JudgeSettings
from answerkey.model.prices import Price
from answerkey.providers.model_api import SaidToken
from answerkey.targets.http_client import Endpoint, HttpClient, NotHttpError
from answerkey.targets.http_reply import retry_after_seconds
from answerkey.targets.http_session import is_refused
from answerkey.targets.secrets import Secrets
from answerkey.transcripts.failures import failure_message

_MOST_BYTES = 4 * 1024 * 1024
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504, 529))
# So many calls in a row that found nobody there: the endpoint is down, and nothing more is asked of it.
_DOWN_AFTER = 10
# Calls under way at once where nobody says how many.
_AT_ONCE = 10
# How long a connection may take to be made, and what a refusal takes beyond the trips of its messages.
_CONNECT_S = 5.0
_REFUSAL_S = 0.01
_REFUSAL_TRIPS = 5


class Completion(msgspec.Struct, frozen=True):
    """What a model answered."""

    text: str
    # What it said instead, if it refused.
    refusal: str | None
    finish: str | None
    spent: Spent
    # What it said token by token, with probabilities, if it was asked for them and told them.
    tokens: tuple[SaidToken, ...] = ()


class _FailedCallError(Exception):
    """A request without a completion that may be made again."""

    def __init__(self, reason: str, wait: float | None = 0.0) -> None:
        super().__init__(reason)
        # Seconds; 0 for the usual. None: it will be put differently, which is no retry.
        self.wait = wait


class JudgeClient:
    """Asks judges."""

    def __init__(
        self, settings: JudgeSettings, prices: Mapping[str, Price], *, endpoint: str | None = None
    ) -> None:
        self._settings = settings
        self._secrets = Secrets()
        self.seats = {
            name: Seat(name, settings, prices, self._secrets, endpoint=endpoint) for name in settings.models
        }
        # One for each call that may be under way; whoever calls takes one first.
        self.at_once = settings.concurrency or _AT_ONCE
        self.slots = asyncio.Semaphore(self.at_once)
        self._client: HttpClient | None = None
        # Of each judge, read once and not for every call.
        self._targets: dict[str, tuple[Endpoint, dict[str, str]]] = {}
        # Base address → what paces the calls to it, and how many in a row found nobody there.
        self._pacers = {seat.base_url: Pacer(settings.rate) for seat in self.seats.values()}
        self._nobody_there = Counter[str]()
        # A judge or a base address → why nothing more is asked of it.
        self._down: dict[str, str] = {}

    async def __aenter__(self) -> "JudgeClient":
        self._targets = {name: seat.target() for name, seat in self.seats.items()}
        self._client = HttpClient()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def time_to_refuse(self) -> float | None:
        """Seconds within which the endpoint would have refused a wrong key or model; None if nobody is there.

        A refusal takes a few trips to and fro (connecting, TLS, the request), a verdict much longer.
        """
        addresses = {seat.address for seat in self.seats.values()}
        trips = await asyncio.gather(*(_trip(address) for address in addresses))
        slowest = max((trip for trip in trips if trip is not None), default=0.0)
        return None if None in trips else _REFUSAL_S + _REFUSAL_TRIPS * slowest

    def document(self) -> dict[str, Any]:
        """The endpoints, how each model was asked for JSON, and parameters that one did not take and was asked without."""
        seats = self.seats.items()
        return {
            "endpoint": " + ".join(dict.fromkeys(seat.endpoint for _, seat in seats)),
            "response_format": {name: FORMS[seat.form] for name, seat in seats},
            "dropped_parameters": {name: sorted(seat.dropped) for name, seat in seats if seat.dropped},
        }

    async def complete(
        self,
        model: str,
        messages: list[dict[str, str]],
        schema: dict[str, Any],
        *,
        seed: int,
        probabilities: bool = False,
    ) -> Completion:
        """Ask a model; raises UnjudgedError when it cannot be asked, after the retries that may help."""
        seat = self.seats[model]
        base_url = seat.base_url
        body = partial(seat.body, messages, schema, seed, probabilities=probabilities)
        attempt = 1
        while True:
            down = self._down.get(base_url) or self._down.get(model)
            if down is not None:
                raise _unreachable(down)
            await self._pacers[base_url].turn()
            try:
                completion = await self._attempt(model, body)
            except _FailedCallError as failed:
                if failed.wait is None:
                    continue
                if attempt > self._settings.retries or failed.wait > LONGEST_WAIT:
                    self._note_absence(base_url, str(failed))
                    raise _unreachable(str(failed)) from None
                await asyncio.sleep(failed.wait or backoff(attempt))
                attempt += 1
            else:
                self._nobody_there[base_url] = 0
                return completion

    async def _attempt(self, model: str, make_body: Callable[[], dict[str, Any]]) -> Completion:
        """One request. What it says changes with what is learnt of the model."""
        if self._client is None:
            raise _unreachable("the judge is not open")
        seat, (endpoint, headers) = self.seats[model], self._targets[model]
        body = make_body()
        try:
            # A redirect could carry the key to another server, and is not followed.
            async with (
                asyncio.timeout(self._settings.timeout),
                await self._client.request(
                    "POST", endpoint, headers=headers, body=msgspec.json.encode(body)
                ) as response,
            ):
                content = await response.read(_MOST_BYTES)
                status, retry_after = response.status, response.headers.get("retry-after")
        except TimeoutError:
            raise _FailedCallError(f"the judge gave no answer within {self._settings.timeout:g} s") from None
        except (OSError, NotHttpError) as error:
            said = self._said(f"the judge at {seat.base_url} cannot be reached: {_cause(error)}")
            raise _FailedCallError(said) from None
        if status == 200:
            return self._completion(content, seat)
        message, param, code = _error(content)
        reason = self._said(f"the judge {model} answered HTTP {status}: {message or 'no reason given'}")
        if status in (400, 422):
            # Another call may have learnt meanwhile what this model does not take.
            learnt = make_body() != body
            if learnt or seat.adapt(message, param):
                raise _FailedCallError(reason, wait=None)
            if code == "content_filter":
                return Completion("", message or "content filter", "content_filter", Spent())
            raise _unreachable(reason)
        if status in _RETRIED and code != "insufficient_quota":
            raise self._paused(seat, reason, retry_after_seconds(retry_after))
        self._down[model] = reason = seat.with_remedy(status, reason)
        raise _unreachable(reason)

    def _paused(self, seat: Seat, reason: str, asked: float | None) -> _FailedCallError:
        """A refusal that may pass, after the time that the endpoint asked for, which the other calls wait for too."""
        if asked is None:
            return _FailedCallError(reason)
        if asked > LONGEST_WAIT:
            # Nobody waits so long; the others need not wait either to learn it.
            return _FailedCallError(f"{reason}; it asks to wait {asked:g} s", asked)
        self._pacers[seat.base_url].pause(asked)
        return _FailedCallError(reason, asked or 0.01)

    def _completion(self, content: bytes, seat: Seat) -> Completion:
        try:
            raw = msgspec.json.decode(content)
            answered = seat.read(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answered = None
        if answered is None:
            raise _unreachable(
                f"{seat.base_url} answered something that is no chat completion; is base_url right?"
            )
        refusal = None
        if answered.finish == "refusal":
            refusal = answered.text or "it gave no reason"
        elif answered.finish != "length" and answered.failure is not None:
            refusal = answered.failure.message
        return Completion(
            self._secrets.redact(answered.text or ""),
            refusal,
            "content_filter" if answered.finish == "filter" else answered.finish,
            spent_on(answered.usage, seat.price),
            seat.tokens(raw),
        )

    def _note_absence(self, base_url: str, reason: str) -> None:
        self._nobody_there[base_url] += 1
        missed = self._nobody_there[base_url]
        if missed >= _DOWN_AFTER:
            self._down[base_url] = f"{reason} ({missed} calls in a row failed, so no more were made)"

    def _said(self, text: str) -> str:
        return failure_message(self._secrets.redact(text), 300)


async def _trip(address: tuple[str, int]) -> float | None:
    """Seconds that connecting takes; None if nobody is there."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(*address)
    except OSError:
        return None
    writer.close()
    return loop.time() - begun


def _unreachable(reason: str) -> UnjudgedError:
    return UnjudgedError(reason, "unreachable")


def _cause(error: Exception) -> str:
    if is_refused(error):
        return "connection refused"
    return str(error) or type(error).__name__


def _error(content: bytes) -> tuple[str, str, str]:
    """Message, parameter and code of an error body, as far as it has them."""
    try:
        raw = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content[:500].decode("utf-8", "replace"), "", ""
    error = raw.get("error", raw) if isinstance(raw, dict) else raw
    if not isinstance(error, dict):
        return str(error), "", ""
    message = error.get("message") or error.get("detail") or ""
    return str(message), str(error.get("param") or ""), str(error.get("code") or "")
