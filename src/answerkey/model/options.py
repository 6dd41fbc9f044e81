"""Options: how a run is made and how its replies are scored, as a run keeps it for `resume` and `rescore`."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from math import fsum
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError, UsageError
from answerkey.model.reply import ErrorKind, Reply, Usage
from answerkey.model.scorecard import DEFAULT_WEIGHTS, PASS_MARK
from answerkey.text.normalise import MatchMode, Threshold, check_pattern

ToolMode = Literal["standard", "partial", "f1", "ordered", "arguments"]
TOOL_MODES: tuple[ToolMode, ...] = get_args(ToolMode)


# Price: what a model's tokens cost, by `[prices]` or by the dated list that comes with answerkey; and what a reply cost.


# What follows a model's name in the names of its versions.
_VERSION = re.compile(r"(?:-\d{4}-\d\d-\d\d|[-@]\d{8}|-\d{3}|-latest)\Z")


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model or a chatbot costs, in any one currency: tokens by the million."""

    # Both or neither.
    input: float | None = None
    output: float | None = None
    # Of input tokens that were read from the provider's cache; None: as much as others.
    cached: float | None = None
    # Of each reply, whatever its tokens.
    reply: float = 0.0

    def __post_init__(self) -> None:
        example = "write for example {input = 0.15, output = 0.60}, per million tokens"
        if (self.input is None) != (self.output is None):
            missing = "input" if self.input is None else "output"
            raise ConfigError(f"a price without `{missing}`; {example}")
        if not min(self.input or 0.0, self.output or 0.0, self.cached or 0.0, self.reply) >= 0:
            raise ConfigError(f"a price must not be negative; {example}")

    def cost(self, usage: Usage | None) -> float | None:
        """What a reply cost; None where its tokens are not known and count."""
        used = usage or Usage()
        if self.input is None or self.output is None:
            return self.reply
        if used.input_tokens is None and used.output_tokens is None:
            return None
        read, cached = used.input_tokens or 0, min(used.cached_tokens or 0, used.input_tokens or 0)
        cheaper = 0.0 if self.cached is None else cached * (self.input - self.cached)
        return self.reply + (read * self.input - cheaper + (used.output_tokens or 0) * self.output) / 1e6


def price_of(model: str, configured: Mapping[str, Price], *, base_url: str = "") -> Price | None:
    """What a model costs: as configured, or else as listed, unless it is served on this machine."""
    names = list(_spellings(model))
    found = next((configured[name] for name in names if name in configured), None)
    if found is not None or urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1"):
        return found
    listed = _listed()
    return next((listed[name] for name in names if name in listed), None)


def priced(reply: Reply, price: Price) -> Reply:
    """A reply with its cost, where it does not state that itself."""
    own = reply.usage or Usage()
    # Tokens are paid for even where nothing came of them.
    in_vain = reply.failure is not None and own.input_tokens is None and own.output_tokens is None
    cost = None if own.cost is not None or in_vain else price.cost(own)
    if cost is None:
        return reply
    return msgspec.structs.replace(reply, usage=msgspec.structs.replace(own, cost=round(cost, 12)))


def _spellings(model: str) -> Iterator[str]:
    """A model's name as it is given, without its provider, and without its version."""
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        yield name
        yield _VERSION.sub("", name)


@cache
def _listed() -> dict[str, Price]:
    import tomllib  # only where something has a price

    found = tomllib.loads(Path(__file__).with_name("prices.toml").read_text("utf-8"))
    return msgspec.convert(found["models"], dict[str, Price])


# TargetVersion: which version of a chatbot was asked, as far as that can be known.


_LONGEST = 60


class TargetVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The version of a chatbot, as far as known."""

    # As the configuration says it: `[targets.NAME] version`.
    version: str | None = None
    # The git commit of the folder that its code is in, and whether the folder has changes since.
    commit: str | None = None
    changed: bool = False
    # Of a model under test: its name, and the hash of its system prompt.
    model: str | None = None
    prompt_hash: str | None = None

    @property
    def words(self) -> str:
        """In one line; empty: nothing is known."""
        commit = self.commit and f"{self.commit}{' changed' if self.changed else ''}"
        prompt = self.prompt_hash and f"prompt {self.prompt_hash}"
        return ", ".join(part for part in (self.version, commit, self.model, prompt) if part)


def check_label(name: str, what: str) -> None:
    """Refuse a tag or a version that no list could show."""
    if not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise UsageError(f"{what} {name[:70]!r}: use up to {_LONGEST} printable characters")


class GroundedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a reply's evidence: the settings of `[grounded]`."""

    # Whether `linked` and `novelty` are counted, and the links kept; pages show links in any case.
    links: bool = False
    # A folder with an entailment model in ONNX form, or its name on the hub: gives `groundedness`.
    model: str = ""
    # A file of `answerkey judge calibrate --sentences`: its threshold is used, and its figures are shown.
    calibration: str = ""


class MatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who decides whether a keyword is said: the settings of `[match]`."""

    # A folder with an entailment model in ONNX form, or its name on the hub: replaces the fitted trees of `smart`.
    model: str = ""
    # Abbreviations that `smart` knows beside its own, each with its meaning: {PO = "purchase order"}.
    abbreviations: dict[str, str] = {}


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of tools: the settings of `[tools]`."""

    # Name that a chatbot reports → name in the golden set.
    aliases: dict[str, str] = {}


class AddedError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply that is an error in this chatbot: an entry of `[errors] add`."""

    # The whole reply, or a /pattern/ that occurs in it.
    text: str
    kind: ErrorKind = "error_text"


class ErrorSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which replies are errors, where the default is wrong for a chatbot: the settings of `[errors]`."""

    # Replies that are not errors: whole texts, or /patterns/ that occur in them.
    allow: tuple[str, ...] = ()
    # Replies that are errors; a plain text is an `error_text`.
    add: tuple[str | AddedError, ...] = ()
    # Whether replies that are merely suspicious are listed.
    suspect: bool = True

    def __post_init__(self) -> None:
        listed = [("allow", text) for text in self.allow]
        listed += [("add", error.text) for error in self.added]
        for name, text in listed:
            pattern = error_pattern(text)
            if not (text if pattern is None else pattern).strip():
                raise ConfigError(
                    f"[errors] {name}: an entry is empty; remove it or write a text or a /pattern/"
                )
            problem = None if pattern is None else check_pattern(pattern)
            if problem is not None:
                raise ConfigError(f"[errors] {name} = {text!r}: the pattern does not compile: {problem}")

    @property
    def added(self) -> tuple[AddedError, ...]:
        """The added errors, each with its kind."""
        return tuple(AddedError(text=entry) if isinstance(entry, str) else entry for entry in self.add)


DEFAULT_ERRORS = ErrorSettings()


def error_pattern(text: str) -> str | None:
    """The pattern in an entry of `[errors]`; None if the entry is a plain text."""
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == "/" else None


class Scoring(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How replies are scored: the settings of `[scoring]`."""

    weights: dict[str, float] = msgspec.field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    # A question passes at this score.
    pass_mark: float = PASS_MARK
    # How keywords are found: literal, standard or smart.
    match: MatchMode = "standard"
    # How sure `smart` must be that a keyword is said.
    match_threshold: Threshold = "even"
    # Which expectations are essential: those marked `must`, or all numbers too.
    must: Literal["marked", "numbers"] = "marked"
    # A number keyword is not found inside a longer number: 310 is not in "$1,310".
    whole_numbers: bool = False
    # What tool usage gives credit for: standard is all or nothing.
    tool_mode: ToolMode = "standard"
    # Retrieval measures, as "nDCG@10" and "P@5"; None: the default ones, where a question has relevant documents.
    retrieval: tuple[str, ...] | None = None
    # What is cut from a chunk's id to get its document's ("" switches that off); None: the default pattern.
    chunk_pattern: str | None = None
    # The settings of `[match]`.
    matching: MatchSettings = MatchSettings()
    # The settings of `[grounded]`.
    grounded: GroundedSettings = GroundedSettings()
    # The settings of `[tools]`.
    tools: ToolSettings = ToolSettings()
    # The settings of `[errors]`.
    errors: ErrorSettings = DEFAULT_ERRORS
    # What response quality is made of: keywords, the judge's score, or shares of both that add up to 1.
    quality: Literal["keywords", "judge"] | dict[Literal["keywords", "judge"], float] = "keywords"

    def __post_init__(self) -> None:
        check_weights(self.weights)
        shares = self.quality_shares
        if not all(share >= 0 for share in shares.values()) or abs(fsum(shares.values()) - 1) > 1e-9:
            raise ConfigError(
                f"[scoring] quality: shares add up to {fsum(shares.values()):g}; "
                "write for example {judge = 0.5, keywords = 0.5}, shares of at least 0 that add up to 1"
            )
        if not 0 <= self.pass_mark <= 1:
            raise ConfigError(f"[scoring] pass_mark = {self.pass_mark:g}: must be between 0 and 1")

    @property
    def quality_shares(self) -> dict[str, float]:
        """What response quality is made of, as shares."""
        if isinstance(self.quality, str):
            return {self.quality: 1.0}
        return {str(name): share for name, share in self.quality.items()}

    @property
    def needs_judge(self) -> bool:
        """Whether the total cannot be had without a judge."""
        return self.quality_shares.get("judge", 0.0) > 0 or any(
            name == "judge" or name.startswith("judge_") for name in self.weights
        )


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse weights that do not make a mean."""
    for name, weight in weights.items():
        if not weight >= 0:
            raise ConfigError(f"[scoring.weights] {name} = {weight:g}: a weight must not be negative")
    if abs(fsum(weights.values()) - 1) > 1e-9:
        raise ConfigError(
            f"[scoring.weights] add up to {fsum(weights.values()):g}; change them so that they add up to 1"
        )


def _check_least(settings: msgspec.Struct, section: str, **least: int) -> None:
    for name, smallest in least.items():
        value = getattr(settings, name)
        if value is not None and value < smallest:
            raise ConfigError(f"{section}{name} = {value}: must be at least {smallest}")


class JudgeModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One judge of a panel where it differs from the others: the settings of `[judge.judges.NAME]`."""

    # The provider's name of the model; None: NAME.
    model: str | None = None
    # Whose API it is; None: as NAME begins (`anthropic:…`, `gemini:…`), or OpenAI's.
    provider: Literal["openai", "anthropic", "gemini", "ollama"] | None = None
    base_url: str | None = None
    # The environment variable that holds its key; empty: it needs none; None: the provider's usual one.
    api_key_env: str | None = None
    prices: Price | None = None


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that grades replies: the settings of `[judge]`. Without a model, none does."""

    # A model's name, or several for a panel; "local" is the small model that needs no key.
    # `anthropic:MODEL`, `gemini:MODEL` and `ollama:MODEL` are asked by those providers' own APIs.
    model: str | tuple[str, ...] = ()
    # Name → how that judge is asked, where it differs from what follows.
    judges: dict[str, JudgeModel] = {}
    # An OpenAI-compatible endpoint; None: OPENAI_BASE_URL or OpenAI's own.
    base_url: str | None = None
    # The environment variable that holds the key; empty: no key is sent.
    api_key_env: str = "OPENAI_API_KEY"
    # The name of a rubric that comes with answerkey, or a file.
    rubric: str = "standard"
    # The same of the rubric by which pairs of replies are compared.
    pair_rubric: str = "pairwise"
    # How often each reply is judged; the median counts.
    samples: int = 1
    temperature: float = 0.0
    # Whether a grade is the mean of the scale's grades, weighted by how probable the judge found each of them.
    probabilities: bool = False
    # Sample number k is asked with seed + k.
    seed: int = 0
    # Maximum concurrent judge calls (None: 10), and calls per second.
    concurrency: int | None = None
    rate: float | None = None
    # Seconds that one attempt may take.
    timeout: float = 60.0
    # Further attempts after 429, 5xx or a connection that broke.
    retries: int = 3
    # The most that a run may spend on judging; needs prices.
    budget: float | None = None
    # What every judge costs; None: as `[prices]` says of each model, or else the list that comes with answerkey.
    prices: Price | None = None
    # Items that must score low (and one that must not) in every judged run, else its judge is called unreliable; a file
    # has more of them.
    canaries: bool | str = True
    # Whether wrong replies made from the run's own test the judge too: at most 50 calls, cached across runs.
    own_canaries: bool = True
    # Whether the judge also extracts and verifies the claims of replies that have evidence: one more call for each.
    claims: bool = True
    # Longer replies and sources are cut before the judge reads them.
    max_chars: int = 20_000
    # Sent as max_tokens where set.
    max_tokens: int | None = None
    # Further fields of the request, as a provider may need them.
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        _check_least(self, "[judge] ", samples=1, concurrency=1, retries=0, max_chars=200)
        for name in ("timeout", "rate", "budget", "max_tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"[judge] {name} = {value:g}: must be more than 0")
        if not 0 <= self.temperature <= 2:
            raise ConfigError(f"[judge] temperature = {self.temperature:g}: must be between 0 and 2")
        if any(not model.strip() for model in self.models) or len(set(self.models)) < len(self.models):
            raise ConfigError("[judge] model: every judge of a panel needs a name of its own")

    @property
    def models(self) -> tuple[str, ...]:
        """The judges, one or a panel; none if there is no judging."""
        return (self.model,) if isinstance(self.model, str) else self.model


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is made: the settings of `[run]`, the flags of `answerkey run` and the argument of `evaluate`."""

    name: str | None = None
    # What the run is called by beside its name, such as a release.
    tags: tuple[str, ...] = ()
    # How often each question is asked.
    repeat: int = 1
    # Maximum concurrent questions.
    concurrency: int = 10
    # Seconds that one attempt at one question may take.
    timeout: float = 60.0
    # Further attempts after 429, 503 or a refused connection.
    retries: int = 3
    # Questions begun per second, at most.
    rate: float | None = None
    # Seconds of CPU that scoring one reply may take; one that takes more is unscored.
    scoring_seconds: float = 10.0
    # Only questions with these fields: "category=tax"; several are all required.
    where: tuple[str, ...] = ()
    # Size of a random sample of the questions, drawn with the seed.
    sample: int | None = None
    seed: int = 0
    # Where the golden set has its fields: field → JMESPath or the name of a column.
    map: dict[str, str] = {}
    scoring: Scoring = Scoring()
    gates: tuple[str, ...] = ()
    # A run to compare with, for gates such as "no regression".
    baseline: str | None = None
    # Whether a run may start without its baseline: the first run of a project has none.
    allow_missing_baseline: bool = False
    # How often a question that got worse since the baseline is asked again; 0: not at all.
    confirm: int = 0
    # "no regression in latency" allows this many times the baseline's median and 95th percentile: `[gates] latency_factor`.
    latency_factor: float = 1.5
    # Differences of the score within ± this do not matter: then two runs can be the same.
    margin: float | None = None
    # Whether replies of an earlier run are used again, where question and target are unchanged.
    reuse: bool = False
    # Reports to write when it has ended, for `resume` too.
    outputs: tuple[str, ...] = ()
    # Where the run is kept; None: the configured or default store.
    store: str | None = None
    # Seconds to wait for a store that cannot be reached, before the run is interrupted.
    store_patience: float = 300.0
    # Engine: local, ray, or one from a plug-in.
    engine: str = "local"
    # The Ray cluster, as HOST:PORT; None: the one that this machine belongs to.
    ray_address: str | None = None
    # The most that the chatbot's replies and their judging may cost: then nothing more is asked.
    budget: float | None = None
    # What models, or targets by their name, cost: the settings of `[prices]`.
    prices: dict[str, Price] = {}
    # The port on loopback where the chatbot's spans are received (OTLP/HTTP); 0: any free one; None: not at all.
    traces: int | None = None
    # Seconds without a further span after which a whole trace is taken to be complete.
    trace_quiet: float = 0.5
    # Seconds after a reply for its spans to arrive; what comes later is missing.
    trace_patience: float = 10.0
    # The port on loopback of the recording proxy before model APIs and MCP servers; 0: any free one; None: none.
    proxy: int | None = None
    # What is behind the proxy's paths: openai, anthropic, gemini, ollama, or a name that the user chose → its address.
    upstreams: dict[str, str] = {}
    judge: JudgeSettings = JudgeSettings()

    def __post_init__(self) -> None:
        _check_least(self, "", repeat=1, concurrency=1, retries=0, sample=1, confirm=0)
        for name in ("timeout", "scoring_seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} = {getattr(self, name):g}: must be more than 0 seconds")
        for name in ("store_patience", "trace_quiet", "trace_patience"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} = {getattr(self, name):g}: must be 0 seconds or more")
        for name in ("traces", "proxy"):
            if getattr(self, name) is not None and not 0 <= getattr(self, name) < 65536:
                raise ConfigError(f"{name} = {getattr(self, name)}: must be a port, from 0 to 65535")
        if self.margin is not None and not 0 < self.margin < 1:
            raise ConfigError(f"margin = {self.margin:g}: must be between 0 and 1; 0.02 is two points")
        if not self.latency_factor >= 1:
            raise ConfigError(f"[gates] latency_factor = {self.latency_factor:g}: must be 1 or more")
        if self.budget is not None and not self.budget > 0:
            raise ConfigError(f"budget = {self.budget:g}: must be more than 0")
        if self.rate is not None and not self.rate > 0:
            raise ConfigError(f"rate = {self.rate:g}: must be more than 0 questions per second")
        for tag in self.tags:
            check_label(tag, "tag")
        for condition in self.where:
            if "=" not in condition:
                raise ConfigError(f"where {condition!r}: write it as field=value, for example category=tax")
