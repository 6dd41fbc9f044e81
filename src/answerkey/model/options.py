"""Options: how a run is made and how its replies are scored; stored with the run, for `resume` and `rescore`."""

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
from answerkey.text.patterns import lazy

ToolMode = Literal["standard", "partial", "f1", "ordered", "arguments"]
TOOL_MODES: tuple[ToolMode, ...] = get_args(ToolMode)


# Price: what tokens and replies cost, by `[prices]` or by the bundled, dated list.


# Version at the end of a model's name.
_VERSION = lazy(r"(?:-\d{4}-\d\d-\d\d|[-@]\d{8}|-\d{3}|-latest)\Z")


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Price of a model or chatbot, in any one currency; of tokens, per million."""

    # Both or neither.
    input: float | None = None
    output: float | None = None
    # Price of input tokens that the provider had cached; None: the price of the others.
    cached: float | None = None
    # Price of each reply, in addition to its tokens.
    reply: float = 0.0

    def __post_init__(self) -> None:
        example = "write for example {input = 0.15, output = 0.60}, per million tokens"
        if (self.input is None) != (self.output is None):
            missing = "input" if self.input is None else "output"
            raise ConfigError(f"a price without `{missing}`; {example}")
        if not min(self.input or 0.0, self.output or 0.0, self.cached or 0.0, self.reply) >= 0:
            raise ConfigError(f"a price must not be negative; {example}")

    def cost(self, usage: Usage | None) -> float | None:
        """The cost of a reply; None if it depends on tokens that are unknown."""
        used = usage or Usage()
        if self.input is None or self.output is None:
            return self.reply
        if used.input_tokens is None and used.output_tokens is None:
            return None
        read, cached = used.input_tokens or 0, min(used.cached_tokens or 0, used.input_tokens or 0)
        cheaper = 0.0 if self.cached is None else cached * (self.input - self.cached)
        return self.reply + (read * self.input - cheaper + (used.output_tokens or 0) * self.output) / 1e6


def price_of(model: str, configured: Mapping[str, Price], *, base_url: str = "") -> Price | None:
    """The configured price of a model, or else the listed one unless the model runs on this machine."""
    names = list(_spellings(model))
    own = next((configured[name] for name in names if name in configured), None)
    if own is not None or urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1"):
        return own
    listed = _listed()
    return next((listed[name] for name in names if name in listed), None)


def priced(reply: Reply, price: Price) -> Reply:
    """A reply with its cost, unless it states its own."""
    own = reply.usage or Usage()
    # A failed reply is paid for only if tokens were used.
    unpaid = reply.failure is not None and own.input_tokens is None and own.output_tokens is None
    cost = None if own.cost is not None or unpaid else price.cost(own)
    if cost is None:
        return reply
    return msgspec.structs.replace(reply, usage=msgspec.structs.replace(own, cost=round(cost, 12)))


def _spellings(model: str) -> Iterator[str]:
    """A model's full name, then without provider, then without version."""
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        yield name
        yield _VERSION.sub("", name)


@cache
def _listed() -> dict[str, Price]:
    import tomllib  # only where something has a price

    prices = tomllib.loads(Path(__file__).with_name("prices.toml").read_text("utf-8"))
    return msgspec.convert(prices["models"], dict[str, Price])


# TargetVersion


_LONGEST = 60


class TargetVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The version of the chatbot that was asked, as far as known."""

    # `[targets.NAME] version`.
    version: str | None = None
    # Git commit of the code's folder, and whether the folder has uncommitted changes.
    commit: str | None = None
    changed: bool = False
    # Name of a model target, and the hashes of its system prompt and of the tools that it is given.
    model: str | None = None
    prompt_hash: str | None = None
    tools_hash: str | None = None

    @property
    def words(self) -> str:
        """The version in one line; empty if unknown."""
        commit = self.commit and f"{self.commit}{' changed' if self.changed else ''}"
        prompt = self.prompt_hash and f"prompt {self.prompt_hash}"
        return ", ".join(part for part in (self.version, commit, self.model, prompt) if part)


def check_label(name: str, what: str) -> None:
    """Refuse a tag or version that is empty, too long or unprintable."""
    if not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise UsageError(f"{what} {name[:70]!r}: use up to {_LONGEST} printable characters")


class GroundedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[grounded]`: how replies are compared with their evidence."""

    # Whether the metrics `linked` and `novelty` are computed and links stored; pages show links in any case.
    links: bool = False
    # A folder with an entailment model in ONNX form, or its name on the hub: gives `groundedness`.
    model: str = ""
    # File of `answerkey judge calibrate --sentences`: its threshold is used and its figures are shown.
    calibration: str = ""


class MatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[match]`: what `smart` uses to find keywords."""

    # A folder with an entailment model in ONNX form, or its name on the hub: replaces the fitted trees of `smart`.
    model: str = ""
    # Further abbreviations, each with its meaning: {PO = "purchase order"}.
    abbreviations: dict[str, str] = {}


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[tools]`: names of tools."""

    # Name that a chatbot reports → name in the golden set.
    aliases: dict[str, str] = {}


class AddedError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `[errors] add`: a reply that is an error."""

    # The whole reply, or a /pattern/ that occurs in it.
    text: str
    kind: ErrorKind = "error_text"


class ErrorSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[errors]`: corrections of the error detection."""

    # Replies that are not errors: whole texts, or /patterns/ that occur in them.
    allow: tuple[str, ...] = ()
    # Replies that are errors, by default of the kind `error_text`.
    add: tuple[str | AddedError, ...] = ()
    # Whether suspected errors are listed.
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
    """`[scoring]`: how replies are scored."""

    weights: dict[str, float] = msgspec.field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    # A question passes at this score.
    pass_mark: float = PASS_MARK
    # How keywords are found: literal, standard or smart.
    match: MatchMode = "standard"
    # How sure `smart` must be that it found a keyword.
    match_threshold: Threshold = "even"
    # Which expectations are essential: those marked `must`, or all numbers too.
    must: Literal["marked", "numbers"] = "marked"
    # A number keyword is not found inside a longer number: 310 is not in "$1,310".
    whole_numbers: bool = False
    # What tool usage gives credit for: standard is all or nothing.
    tool_mode: ToolMode = "standard"
    # Retrieval measures, e.g. "nDCG@10" and "P@5"; None: the default ones, if a question has relevant documents.
    retrieval: tuple[str, ...] | None = None
    # Pattern removed from a chunk's id to get its document's ("": nothing); None: the default pattern.
    chunk_pattern: str | None = None
    # The settings of `[match]`.
    matching: MatchSettings = MatchSettings()
    # The settings of `[grounded]`.
    grounded: GroundedSettings = GroundedSettings()
    # The settings of `[tools]`.
    tools: ToolSettings = ToolSettings()
    # The settings of `[errors]`.
    errors: ErrorSettings = DEFAULT_ERRORS
    # Response quality: keywords, the judge's score, or shares of both that add up to 1.
    quality: Literal["keywords", "judge"] | dict[Literal["keywords", "judge"], float] = "keywords"

    def __post_init__(self) -> None:
        # msgspec checks a file's values, but not those of Python.
        for name, known in (("match", MatchMode), ("match_threshold", Threshold), ("tool_mode", ToolMode)):
            value = getattr(self, name)
            if value not in get_args(known):
                raise ConfigError(f"[scoring] {name} = {value!r}: use {', '.join(get_args(known))}")
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
        """Shares of keywords and judge in response quality."""
        if isinstance(self.quality, str):
            return {self.quality: 1.0}
        return {str(name): share for name, share in self.quality.items()}

    @property
    def needs_judge(self) -> bool:
        """Whether the score depends on a judge."""
        return self.quality_shares.get("judge", 0.0) > 0 or any(
            name == "judge" or name.startswith("judge_") for name in self.weights
        )


def check_weights(weights: Mapping[str, float]) -> None:
    """Refuse negative weights, and weights that do not add up to 1."""
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
    """`[judge.judges.NAME]`: settings of one judge of a panel that differ from the others'."""

    # The provider's name of the model; None: NAME.
    model: str | None = None
    # API of the model; None: by the prefix of NAME (`anthropic:…`, `gemini:…`), else OpenAI's.
    provider: Literal["openai", "anthropic", "gemini", "ollama"] | None = None
    base_url: str | None = None
    # Environment variable with the key; empty: no key; None: the provider's usual variable.
    api_key_env: str | None = None
    prices: Price | None = None


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[judge]`: the model that grades replies; without a model, there is no judge."""

    # A model's name, or several for a panel; "local" is the small model that needs no key. `anthropic:MODEL`,
    # `gemini:MODEL` and `ollama:MODEL` use those providers' own APIs.
    model: str | tuple[str, ...] = ()
    # Name of a judge → settings that differ from the following ones.
    judges: dict[str, JudgeModel] = {}
    # OpenAI-compatible endpoint; None: OPENAI_BASE_URL or OpenAI's own.
    base_url: str | None = None
    # Environment variable with the key; empty: no key is sent.
    api_key_env: str = "OPENAI_API_KEY"
    # Name of a bundled rubric, or a file.
    rubric: str = "standard"
    # The same, for comparing pairs of replies.
    pair_rubric: str = "pairwise"
    # How often each reply is judged; the median counts.
    samples: int = 1
    temperature: float = 0.0
    # Whether a grade is the mean of all grades, weighted by the judge's token probabilities.
    probabilities: bool = False
    # Sample number k is asked with seed + k.
    seed: int = 0
    # Maximum concurrent judge calls (None: 10), and calls per second.
    concurrency: int | None = None
    rate: float | None = None
    # Timeout of one attempt in seconds.
    timeout: float = 60.0
    # Retries after 429, 5xx or a broken connection.
    retries: int = 3
    # Maximum cost of judging a run; needs prices.
    budget: float | None = None
    # Price of every judge; None: by `[prices]`, else by the bundled list.
    prices: Price | None = None
    # Whether items with a known grade are judged in every run, to see whether the judge is reliable; or a file with more.
    canaries: bool | str = True
    # Whether wrong replies made from the run's replies are judged too: at most 50 calls, cached across runs.
    own_canaries: bool = True
    # Whether the judge also verifies the claims of replies with evidence: one more call for each.
    claims: bool = True
    # Longer replies and sources are shortened for the judge.
    max_chars: int = 20_000
    # Sent as max_tokens, if set.
    max_tokens: int | None = None
    # Further fields of the request.
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
            raise ConfigError("[judge] model: the names of a panel must be different and not empty")

    @property
    def models(self) -> tuple[str, ...]:
        """One judge, a panel, or none."""
        return (self.model,) if isinstance(self.model, str) else self.model


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is made: `[run]`, the flags of `answerkey run`, and the argument of `evaluate`."""

    name: str | None = None
    # Further names, e.g. of a release.
    tags: tuple[str, ...] = ()
    # Trials per question.
    repeat: int = 1
    # Maximum concurrent questions.
    concurrency: int = 10
    # Timeout of one attempt in seconds.
    timeout: float = 60.0
    # Retries after 429, 503 or a refused connection.
    retries: int = 3
    # Maximum questions per second.
    rate: float | None = None
    # CPU limit in seconds for scoring one reply; beyond it, the reply is unscored.
    scoring_seconds: float = 10.0
    # Conditions on the questions, e.g. "category=tax"; all must hold.
    where: tuple[str, ...] = ()
    # Size of a random sample of the questions, drawn with the seed.
    sample: int | None = None
    seed: int = 0
    # Field of the golden set → JMESPath or name of a column.
    map: dict[str, str] = {}
    scoring: Scoring = Scoring()
    gates: tuple[str, ...] = ()
    # Run to compare with.
    baseline: str | None = None
    # Whether the run may start although its baseline does not exist yet.
    allow_missing_baseline: bool = False
    # How often a question that got worse since the baseline is asked again.
    confirm: int = 0
    # `[gates] latency_factor`: "no regression in latency" allows this many times the baseline's median and 95th percentile.
    latency_factor: float = 1.5
    # Differences within ± this are equivalent; None: no margin.
    margin: float | None = None
    # Whether replies of an earlier run are reused, if question and target are unchanged.
    reuse: bool = False
    # Report files to write at the end.
    outputs: tuple[str, ...] = ()
    # Store; None: the configured or default one.
    store: str | None = None
    # Seconds to wait for an unreachable store before the run is interrupted.
    store_patience: float = 300.0
    # Engine: local, ray, or one from a plug-in.
    engine: str = "local"
    # Ray cluster, HOST:PORT; None: that of this machine.
    ray_address: str | None = None
    # Maximum cost of replies and judging; then the run stops.
    budget: float | None = None
    # `[prices]`: model, or name of a target → price.
    prices: dict[str, Price] = {}
    # Loopback port that receives the chatbot's spans (OTLP/HTTP); 0: any free one; None: no receiver.
    traces: int | None = None
    # Seconds without a further span after which a trace is complete.
    trace_quiet: float = 0.5
    # Seconds to wait for a reply's spans; later ones are missing.
    trace_patience: float = 10.0
    # Loopback port of the recording proxy; 0: any free one; None: no proxy.
    proxy: int | None = None
    # Path of the proxy (openai, anthropic, gemini, ollama, or any other name) → address behind it.
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
