"""Settings: `answerkey.toml` or `[tool.answerkey]` in pyproject.toml, checked strictly, and the Options of a run."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from math import fsum
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from answerkey.errors import ConfigError, UsageError
from answerkey.match.keywords import MatchMode
from answerkey.model.scorecard import DEFAULT_WEIGHTS, PASS_MARK
from answerkey.plugins import scorers

__all__ = [
    "TOOL_MODES",
    "JudgePrices",
    "JudgeSettings",
    "Options",
    "ScorerSettings",
    "Scoring",
    "Settings",
    "ToolMode",
    "check_weights",
    "load_settings",
]

ToolMode = Literal["standard", "partial", "f1", "ordered", "arguments"]
TOOL_MODES: tuple[ToolMode, ...] = get_args(ToolMode)

DEFAULT_STORE = ".answerkey/answerkey.db"


class Scoring(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How replies are scored: the settings of `[scoring]`."""

    weights: dict[str, float] = msgspec.field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    # A question passes at this score.
    pass_mark: float = PASS_MARK
    # How keywords are found: literal, standard or smart.
    match: MatchMode = "standard"
    # Whether `smart` also finds synonyms, by the optional extra `embeddings`.
    embeddings: bool = False
    # What tool usage gives credit for: standard is all or nothing.
    tool_mode: ToolMode = "standard"
    # Retrieval measures, as "nDCG@10" and "P@5"; None: the default ones, where a question has relevant documents.
    retrieval: tuple[str, ...] | None = None
    # What is cut from a chunk's id to get its document's ("" switches that off); None: the default pattern.
    chunk_pattern: str | None = None
    # Whether the claims of replies are checked against tool results, sources and question.
    groundedness: bool = True
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


class ScorerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A scorer of the user's: the settings of `[scorers.NAME]`."""

    # Where it is, as "checks.py:polite"; None: it is registered by that name.
    python: str | None = None
    # Its share of the score, beside `[scoring.weights]`; None: it is reported beside the score.
    weight: float | None = None
    # Which way it is better, where the scorer itself does not say.
    direction: Literal["higher", "lower"] | None = None
    # Everything else in the table: the scorer's own arguments.
    arguments: dict[str, Any] = {}


class JudgePrices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a judge costs, in any one currency per million tokens."""

    input: float
    output: float


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that grades replies: the settings of `[judge]`. Without a model, none does."""

    # A model's name, or several for a panel; "local" is the small model that needs no key.
    model: str | tuple[str, ...] = ()
    # An OpenAI-compatible endpoint; None: OPENAI_BASE_URL or OpenAI's own.
    base_url: str | None = None
    # The environment variable that holds the key; empty: no key is sent.
    api_key_env: str = "OPENAI_API_KEY"
    # The name of a rubric that comes with answerkey, or a file.
    rubric: str = "standard"
    # How often each reply is judged; the median counts.
    samples: int = 1
    temperature: float = 0.0
    # Sample number k is asked with seed + k.
    seed: int = 0
    # Judge calls under way at once (None: as many as questions), and begun per second.
    concurrency: int | None = None
    rate: float | None = None
    # Seconds that one attempt may take.
    timeout: float = 60.0
    # Further attempts after 429, 5xx or a connection that broke.
    retries: int = 3
    # The most that a run may spend on judging; needs prices.
    budget: float | None = None
    prices: JudgePrices | None = None
    # Items that must score low (and one that must not) in every judged run, else its judge is called unreliable.
    canaries: bool = True
    # Whether the judge also extracts and verifies the claims of replies that have evidence: one more call for each.
    claims: bool = True
    # Longer replies and sources are cut before the judge reads them.
    max_chars: int = 20_000
    # Sent as max_tokens where set.
    max_tokens: int | None = None
    # Further fields of the request, as a provider may need them.
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        for name, least in (("samples", 1), ("concurrency", 1), ("retries", 0), ("max_chars", 200)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise ConfigError(f"[judge] {name} = {getattr(self, name)}: must be at least {least}")
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
    # How often each question is asked.
    repeat: int = 1
    # Questions under way at once.
    concurrency: int = 10
    # Seconds that one attempt at one question may take.
    timeout: float = 60.0
    # Further attempts after 429, 503 or a refused connection.
    retries: int = 3
    # Questions begun per second, at most.
    rate: float | None = None
    # Only questions with these fields: "category=tax"; several are all required.
    where: tuple[str, ...] = ()
    # Only so many questions, drawn with the seed.
    sample: int | None = None
    seed: int = 0
    scoring: Scoring = Scoring()
    gates: tuple[str, ...] = ()
    # A run to compare with, for gates such as "no regression".
    baseline: str | None = None
    # Where the run is kept; None: the configured or default store.
    store: str | None = None
    engine: Literal["local", "ray"] = "local"
    judge: JudgeSettings = JudgeSettings()

    def __post_init__(self) -> None:
        for name, least in (("repeat", 1), ("concurrency", 1), ("retries", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} = {getattr(self, name)}: must be at least {least}")
        if not self.timeout > 0:
            raise ConfigError(f"timeout = {self.timeout:g}: must be more than 0 seconds")
        if self.rate is not None and not self.rate > 0:
            raise ConfigError(f"rate = {self.rate:g}: must be more than 0 questions per second")
        if self.sample is not None and self.sample < 1:
            raise ConfigError(f"sample = {self.sample}: must be at least 1")
        for condition in self.where:
            if "=" not in condition:
                raise ConfigError(f"where {condition!r}: write it as field=value, for example category=tax")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A configuration file."""

    # The golden set and the target that `run` uses when it is given none.
    questions: str | None = None
    target: str | None = None
    store: str | None = None
    run: dict[str, Any] = {}
    scoring: Scoring = Scoring()
    # Scorers of the user's, by the name that they are reported under.
    scorers: dict[str, ScorerSettings] = {}
    targets: dict[str, dict[str, Any]] = {}
    # Conditions that every run must meet: {expressions = ["score >= 0.85"]} or a plain list.
    gates: list[str] | dict[str, Any] = []
    judge: JudgeSettings = JudgeSettings()
    server: dict[str, Any] = {}
    # The file that all this came from.
    path: str | None = None

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file start from."""
        return Path(self.path).parent if self.path else Path()

    @property
    def gate_expressions(self) -> tuple[str, ...]:
        """The gates as expressions, however the file writes them."""
        if isinstance(self.gates, list):
            return tuple(self.gates)
        listed = self.gates.get("expressions", [])
        return tuple(str(expression) for expression in listed)

    def options(self, **overrides: Any) -> Options:
        """The Options of `[run]`, with what the caller gives on top (None: not given)."""
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            base = msgspec.convert({**self.run, **_plain(given)}, Options)
        except msgspec.ValidationError as error:
            raise ConfigError(_explain(error, self.path, "[run]", Options)) from None
        return msgspec.structs.replace(
            base,
            scoring=given.get("scoring", self.scoring),
            judge=given.get("judge", self.judge),
            gates=base.gates or self.gate_expressions,
            store=base.store or self.store,
        )


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in ("scoring", "judge")}


def load_settings(folder: Path | None = None) -> Settings:
    """The settings in force in a folder: the nearest configuration file at or above it, or the defaults."""
    start = (folder or Path.cwd()).resolve()
    named = os.environ.get("ANSWERKEY_CONFIG")
    if named:
        return _read(Path(named), _parse(Path(named)))
    for place in (start, *start.parents):
        own = place / "answerkey.toml"
        if own.is_file():
            return _read(own, _parse(own))
        project = place / "pyproject.toml"
        if project.is_file():
            section = _parse(project).get("tool", {}).get("answerkey")
            if section is not None:
                return _read(project, section)
    return Settings()


def _parse(path: Path) -> dict[str, Any]:
    import tomllib  # only where there is a file to read

    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None


def _read(path: Path, section: Mapping[str, Any]) -> Settings:
    if "path" in section:
        raise ConfigError(f"{path}: unknown setting 'path'")
    try:
        settings = msgspec.convert({**_with_scorers(section), "path": str(path)}, Settings)
        for name, scorer in settings.scorers.items():
            if scorer.python is not None:
                scorers.refer(name, scorer.python, settings.folder)
        return settings
    except msgspec.ValidationError as error:
        raise ConfigError(_explain(error, str(path), "", Settings)) from None
    except UsageError as error:
        raise ConfigError(f"{path}: {error}") from None


def _with_scorers(section: Mapping[str, Any]) -> dict[str, Any]:
    """The section with each scorer's free arguments apart, and with its weight among the scoring's."""
    tables = section.get("scorers", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError("[scorers] holds a table for each scorer, such as [scorers.polite]")
    own = set(ScorerSettings.__struct_fields__) - {"arguments"}
    split = {
        name: {
            **{key: value for key, value in table.items() if key in own},
            "arguments": {key: value for key, value in table.items() if key not in own},
        }
        for name, table in tables.items()
    }
    weights = {name: table["weight"] for name, table in tables.items() if table.get("weight") is not None}
    if not weights:
        return {**section, "scorers": split}
    scoring = section.get("scoring", {})
    listed = scoring.get("weights", DEFAULT_WEIGHTS)
    both = next((name for name in weights if name in listed), None)
    if both is not None:
        raise ConfigError(f"[scoring.weights] {both} and [scorers.{both}] weight say the same; keep one")
    joined = {**listed, **weights}
    numbers = [weight for weight in joined.values() if isinstance(weight, int | float)]
    if len(numbers) == len(joined) and abs(fsum(numbers) - 1) > 1e-9:
        places = " and ".join(f"[scorers.{name}] weight" for name in weights)
        raise ConfigError(
            f"[scoring.weights] ({fsum(listed.values()):g}) and {places} ({fsum(weights.values()):g}) "
            f"add up to {fsum(numbers):g}; change them so that they add up to 1"
        )
    return {**section, "scorers": split, "scoring": {**scoring, "weights": joined}}


def _explain(error: msgspec.ValidationError, path: str | None, section: str, model: Any) -> str:
    """msgspec's message in the user's terms, with the setting that was probably meant."""
    where = f"{path}: " if path else ""
    message = str(error)
    if "unknown field" in message:
        name = message.split("`")[1]
        inside = message.rsplit("`", 2)[1].lstrip("$.") if "at `" in message else section.strip("[]")
        inner: Any = {"scoring": Scoring, "judge": JudgeSettings, "judge.prices": JudgePrices}.get(
            inside, model
        )
        fields = inner.__struct_fields__
        close = get_close_matches(name, fields, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(fields))}"
        return f"{where}unknown setting {name!r}{f' in [{inside}]' if inside else ''}{hint}"
    return f"{where}{section + ' ' if section else ''}{message.replace('`$.', '`')}"
