"""Seat: one judge of a panel: which API it is asked by, where, with which key, at what price, and what it understands."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from answerkey.errors import ConfigError
from answerkey.model.options import JudgeModel, JudgeSettings
from answerkey.model.prices import Price, price_of
from answerkey.model.reply import Reply
from answerkey.providers.known_apis import KNOWN_APIS
from answerkey.providers.model_api import ModelApi, Prompt, SaidToken, read_step
from answerkey.targets.http_client import Endpoint, read_endpoint
from answerkey.targets.secrets import Secrets
from answerkey.transcripts.json_shapes import as_dict

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
