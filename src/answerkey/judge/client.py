"""Seat: one judge of a panel: which API it is asked by, where, with which key, at what price, and what it understands."""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import accumulate
from math import fsum
from typing import Any
from urllib.parse import urlsplit

import msgspec

from answerkey.engine.local_engine import LONGEST_WAIT, RateLimiter, backoff
from answerkey.errors import ConfigError
from answerkey.judge.prompt import Graded, Rubric, UnjudgedError, Verdict, json_body, parse_verdict
from answerkey.model.judgement import Spent
from answerkey.model.options import JudgeModel, JudgeSettings, Price, price_of
from answerkey.model.reply import Reply, Usage
from answerkey.providers import KNOWN_APIS, ModelApi, Prompt, SaidToken, read_step
from answerkey.targets.http_client import Endpoint, HttpClient, NotHttpError, read_endpoint
from answerkey.targets.http_target import is_refused, retry_after_seconds
from answerkey.targets.secrets import Secrets
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.json_values import as_dict

# Ways to ask for JSON, strictest first; an endpoint that refuses one is asked in the next.
FORMS = ("json_schema", "json_object", "plain")
_OF_FORM = (
    *("response_format", "json_schema", "json_object", "structured output"),
    *("output_config", "responsejsonschema", "responsemimetype", "response_mime_type"),
)
_UNWANTED = (
    *("unsupported", "not support", "unknown", "not permitted", "only"),
    *("not allowed", "not enabled", "not available"),
)
# Parameters that a model may not take; it is then asked without. The last stands for its settings of all APIs.
_PROBABILITIES = "logprobs"
_SPARED = ("temperature", "seed", "max_tokens", _PROBABILITIES)
# Tokens told at each place of a verdict: as many as a scale of single digits has grades.
_LIKELIEST = 10


class Seat:
    """One judge."""

    def __init__(
        self,
        name: str,
        settings: JudgeSettings,
        prices: Mapping[str, Price],
        secrets: Secrets,
        *,
        endpoint: str | None = None,
    ) -> None:
        own = settings.judges.get(name, JudgeModel())
        kind, api = provider_of(name, own)
        prefixed = kind != "openai" or name.startswith("openai:")
        self.model = own.model or (name.partition(":")[2] if prefixed and ":" in name else name)
        if settings.probabilities and api.tokens is None:
            raise ConfigError(
                f"[judge] probabilities: the {api.name} API, which {name} is asked by, tells none; leave it off, "
                "or set samples = 5 and a temperature"
            )
        self._api = api
        self._settings = settings
        self.base_url = _base_url(name, own, settings, kind, api)
        parts = urlsplit(self.base_url)
        self.address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
        # What a judgement's key knows of it: a gateway has several models of one name under several paths. The local judge has
        # another port each time it is started.
        place = parts.netloc + parts.path.rstrip("/").removesuffix("/v1")
        self.endpoint = endpoint or (place if kind == "openai" else f"{kind} {place}")
        self._key_env = _key_env(own, settings, api)
        self._key = self._read_key(secrets, optional=loopback)
        self.price = own.prices or settings.prices or price_of(self.model, prices, base_url=self.base_url)
        # Which of FORMS it takes, and parameters that it does not.
        self.form = 0
        self.dropped: set[str] = set(api.without)

    def _read_key(self, secrets: Secrets, *, optional: bool) -> str | None:
        name = self._key_env
        key = os.environ.get(name, "").strip() if name else ""
        if key:
            if any(char in key for char in "\r\n\0"):
                raise ConfigError(f"the judge's key in {name} has a line break in it")
            secrets.add(name, key)
            return key
        if name and not optional:
            raise ConfigError(
                f"the judge at {self.base_url} needs a key: export {name}=…, "
                'or set [judge] api_key_env = "" if it takes none, or use --judge local'
            )
        return None

    def target(self) -> tuple[Endpoint, dict[str, str]]:
        """Where it is asked, and with which headers."""
        headers = {
            "User-Agent": "answerkey",
            "Accept": "application/json",
            "Content-Type": "application/json",
            **self._api.headers(self._key),
        }
        return read_endpoint(self.base_url + self._api.path(self.model, False)), headers

    def body(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: dict[str, Any],
        seed: int,
        *,
        probabilities: bool = False,
    ) -> dict[str, Any]:
        """What is sent; with `probabilities`, the answer's tokens are wanted with theirs."""
        settings = self._settings
        parameters: dict[str, Any] = {"temperature": settings.temperature, "seed": seed}
        if settings.max_tokens is not None:
            name = "max_completion_tokens" if "max_tokens" in self.dropped else "max_tokens"
            parameters[name] = settings.max_tokens
        kept = {name: value for name, value in parameters.items() if name not in self.dropped}
        form = FORMS[self.form]
        prompt = Prompt(
            model=self.model,
            system="\n\n".join(one["content"] for one in messages if one["role"] == "system"),
            messages=[
                self._api.said("assistant" if one["role"] == "assistant" else "user", one["content"])
                for one in messages
                if one["role"] != "system"
            ],
            schema=schema if form == "json_schema" else None,
            as_json=form == "json_object",
            parameters=kept,
            likeliest=_LIKELIEST if probabilities and _PROBABILITIES not in self.dropped else None,
        )
        return {**self._api.body(prompt), **settings.extra}

    def read(self, raw: Any) -> Reply | None:
        """What an answer says; None if it is none."""
        return read_step(self._api, raw).reply if self._api.answers(as_dict(raw)) else None

    def tokens(self, raw: Any) -> tuple[SaidToken, ...]:
        """An answer's tokens with their probabilities, where it has them."""
        return () if self._api.tokens is None else self._api.tokens(as_dict(raw))

    def adapt(self, message: str, param: str) -> bool:
        """Ask otherwise where the endpoint said which part of the request it does not take."""
        told = f"{param} {message}".lower()
        if self.form < len(FORMS) - 1 and any(word in told for word in _OF_FORM):
            self.form += 1
            return True
        for name in _SPARED:
            unwanted = any(word in told for word in _UNWANTED)
            if name not in self.dropped and (param in (name, f"top_{name}") or (name in told and unwanted)):
                self.dropped.add(name)
                return True
        return False

    def with_remedy(self, status: int, reason: str) -> str:
        """A refusal, with what can be done about it."""
        if 300 <= status < 400:
            return f"the judge at {self.base_url} redirects (HTTP {status}); use the address it redirects to"
        remedies = {
            401: f"; check the key in {self._key_env or 'the endpoint'}",
            403: "; check what the key is allowed",
            404: f"; check the model's name ({self.model}) and base_url ({self.base_url})",
        }
        return reason + remedies.get(status, "")


def provider_of(name: str, own: JudgeModel) -> tuple[str, ModelApi]:
    """The provider of a judge: as configured, as its name begins (`anthropic:MODEL`), or else OpenAI's API."""
    prefix = name.partition(":")[0]
    kind = own.provider or (prefix if ":" in name and prefix in KNOWN_APIS else "openai")
    return kind, KNOWN_APIS[kind]


def _base_url(name: str, own: JudgeModel, settings: JudgeSettings, kind: str, api: ModelApi) -> str:
    others = {provider_of(one, settings.judges.get(one, JudgeModel()))[0] for one in settings.models}
    # The panel's address is that of judges of one kind; of several kinds, it is OpenAI's.
    shared = settings.base_url if kind == "openai" or others == {kind} else None
    base = own.base_url or shared or os.environ.get(api.base_url_env) or api.base_url
    where = f"[judge.judges.{name}]" if own.base_url else "[judge]"
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{where} base_url = {base!r} is not an http:// or https:// address")
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"{where} base_url holds a name, password or query; put the key into an environment variable "
            "and name that with api_key_env"
        )
    return base.rstrip("/")


def _key_env(own: JudgeModel, settings: JudgeSettings, api: ModelApi) -> str:
    if own.api_key_env is not None:
        return own.api_key_env
    if settings.api_key_env not in KNOWN_APIS["openai"].key_env:
        return settings.api_key_env
    return next((name for name in api.key_env if name in os.environ), api.key_env[0])


# Ledger: what judging has cost, and whether the budget allows another call.


# Before the first verdict nobody knows how long they are; later the longest seen counts.
_OUTPUT_GUESS = 600
# Fewer characters per token than any usual tokenizer, so that the guess is on the safe side.
_CHARS_PER_TOKEN = 2.5


def spent_on(usage: Usage | None, price: Price | None) -> Spent:
    """What a completion's usage comes to; a cost that the provider states itself counts without a price."""
    used = usage or Usage()
    cost = used.cost if price is None else price.cost(used)
    return Spent(used.input_tokens or 0, used.output_tokens or 0, cost)


class Ledger:
    """Counts calls. A call begins only if the budget still covers it and all others under way."""

    def __init__(self, budget: float | None, before: Spent, *, priced: bool) -> None:
        self._budget = budget
        # What calls under way may cost, each.
        self._reserved: list[float] = []
        self._ended = asyncio.Event()
        self._longest_output = 0
        self.input_tokens = before.input_tokens
        self.output_tokens = before.output_tokens
        self.cost = before.cost or 0.0
        # False: some call's cost is unknown, and so is the sum.
        self.cost_known = priced
        self.calls = 0
        # Calls that the budget did not allow.
        self.refused = 0

    @asynccontextmanager
    async def reserved(self, characters: int, price: Price | None) -> AsyncIterator[None]:
        """Set aside what a call may cost while it is under way.

        Raises UnjudgedError if the budget does not cover it once all other calls have ended.
        """
        if self._budget is None or price is None:
            yield
            return
        while True:
            output = self._longest_output or _OUTPUT_GUESS
            usage = Usage(input_tokens=round(characters / _CHARS_PER_TOKEN), output_tokens=output)
            guess = price.cost(usage) or 0.0
            if self.cost + sum(self._reserved) + guess <= self._budget:
                break
            if not self._reserved:
                self.refused += 1
                raise UnjudgedError(f"the judge's budget of {self._budget:g} is used up", "budget")
            # Those under way may turn out cheaper than was set aside for them.
            await self._ended.wait()
        self._reserved.append(guess)
        try:
            yield
        finally:
            self._reserved.remove(guess)
            self._ended.set()
            self._ended = asyncio.Event()

    def add(self, spent: Spent) -> None:
        """Count a call that was answered."""
        self.calls += 1
        self.input_tokens += spent.input_tokens
        self.output_tokens += spent.output_tokens
        self._longest_output = max(self._longest_output, spent.output_tokens)
        if spent.cost is not None:
            self.cost += spent.cost
            self.cost_known = self.cost_known or self.calls == 1
        else:
            self.cost_known = False


# JudgeClient: the judges of a panel asked over HTTP, with pacing, retries and what each of them understands.


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
        self._pacers = {seat.base_url: RateLimiter(settings.rate) for seat in self.seats.values()}
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
            await self._pacers[base_url].wait()
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


# Grades weighed by probability: how probable a judge found each grade of the scale where it wrote one.
#
# The probabilities are those of the tokens at the grade's place in the verdict, so a grade must be told by its first
# character. What is kept of an answer is its text and, by criterion, the probabilities of the grades.


_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
# A token may begin before its grade: with a space, or with what ends the name.
_GRADE = re.compile(r'[\s":]*(-?\d*)')


class _Kept(msgspec.Struct, frozen=True):
    """An answer as it is kept."""

    text: str
    # Criterion → grade → its probability among the grades; a criterion is missing where none were told.
    probabilities: dict[str, dict[int, float]] = {}


def is_told_by_first_token(rubric: Rubric) -> bool:
    """Whether each grade of the scale begins with another character."""
    grades = range(rubric.lowest, rubric.top + 1)
    return len({str(grade)[0] for grade in grades}) == len(grades)


def check_scale(rubric: Rubric) -> None:
    """Refuse a scale whose grades begin alike, as 1 and 10 do."""
    if not is_told_by_first_token(rubric):
        raise ConfigError(
            f"[judge] probabilities: grades from {rubric.lowest} to {rubric.top} (rubric {rubric.name!r}) are not told "
            "apart by their first digit; use a scale within 0 to 9, or leave probabilities off"
        )


def keep_with_probabilities(completion: Completion, rubric: Rubric) -> str:
    """What is kept of an answer; raises UnjudgedError if it is no verdict."""
    text = completion.text
    verdict = parse_verdict(text, rubric)
    ends = list(accumulate(len(token.said) for token in completion.tokens))
    # What was thought before, or a mark at the end, may be among the tokens and not in the text.
    start = b"".join(token.said for token in completion.tokens).rfind(_octets(text)) if ends else -1
    found = {}
    for name, place in (_grade_places(text) if start >= 0 else {}).items():
        octet = start + len(_octets(text[:place]))
        token = completion.tokens[next(number for number, end in enumerate(ends) if octet < end)]
        probabilities = _of_grades(token, range(rubric.lowest, rubric.top + 1))
        if name in verdict and verdict[name].score in probabilities:
            found[name] = probabilities
    return msgspec.json.encode(_Kept(text, found)).decode()


def read_with_probabilities(kept: str, rubric: Rubric) -> Verdict:
    """The verdict in what was kept, as strict as any, with each grade's probabilities."""
    try:
        answer = msgspec.json.decode(kept, type=_Kept)
    except msgspec.DecodeError as error:
        raise UnjudgedError(f"what was kept of the judge's answer cannot be read: {error}") from None
    return {
        name: Graded(graded.score, graded.reason, answer.probabilities.get(name))
        for name, graded in parse_verdict(answer.text, rubric).items()
    }


def _grade_places(text: str) -> dict[str, int]:
    """Criterion → where its grade begins in a text that is a verdict."""
    body = json_body(text)
    offset = text.rfind(body)
    places: dict[str, int] = {}
    # The name that was met last in each object that is open.
    names: list[str] = []
    before = ""
    for lexeme in _LEXEME.finditer(body):
        found = lexeme[0]
        if found in ("{", "["):
            names.append("")
        elif found in ("}", "]"):
            names.pop()
        elif found == ":":
            names[-1] = json.loads(before)
        elif before == ":" and names[1:] == ["score"]:
            places[names[0]] = offset + lexeme.start()
        before = found
    return places


def _of_grades(token: SaidToken, grades: Sequence[int]) -> dict[int, float]:
    """The probabilities of the grades among those of tokens, adding up to 1; the same grade may be told in two ways."""
    by_grade: dict[int, list[float]] = {}
    for said, probability in token.probabilities.items():
        match = _GRADE.match(said)
        digits = match[1] if match else ""
        grade = next((grade for grade in grades if digits and str(grade).startswith(digits)), None)
        if grade is not None:
            by_grade.setdefault(grade, []).append(probability)
    whole = fsum(fsum(told) for told in by_grade.values())
    if not whole:
        return {}
    return {grade: round(fsum(by_grade[grade]) / whole, 6) for grade in sorted(by_grade)}


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "replace")
