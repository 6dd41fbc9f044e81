"""Judge: a configured judge or panel, checked before anything is asked, and what its scores are kept by."""

from collections.abc import Mapping
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import msgspec

from answerkey.errors import ConfigError
from answerkey.judge.canaries import Canaries, load_canaries
from answerkey.judge.claims import GROUNDEDNESS
from answerkey.judge.client import JudgeClient
from answerkey.judge.grade_probabilities import check_scale
from answerkey.judge.judgement_of_reply import JUDGE
from answerkey.judge.prompt import CLAIMS_HASH, PROMPT_HASH
from answerkey.judge.rubric import PairRubric, Rubric, load_pair_rubric, load_rubric
from answerkey.model.options import JudgeSettings, Scoring
from answerkey.model.prices import Price
from answerkey.model.sentence_calibration import NOT_CALIBRATED, read_calibration
from answerkey.protocols import Direction

# The name of the small model that comes in a package and needs no key.
LOCAL = "local"


class Judge:
    """A judge that can be asked; `JudgingSession` asks it."""

    def __init__(
        self,
        settings: JudgeSettings,
        *,
        folder: Path | None = None,
        prices: Mapping[str, Price] | None = None,
        reliability: str = NOT_CALIBRATED,
    ) -> None:
        if not settings.models:
            raise ConfigError("no judge is configured; name one with --judge MODEL or [judge] model")
        if LOCAL in settings.models and len(settings.models) > 1:
            raise ConfigError("the local judge cannot sit on a panel; name it alone: --judge local")
        self.settings = settings
        # What models cost, by name, beside those that are listed.
        self.prices = prices or {}
        # How well its verdicts on claims did on labelled sentences.
        self.reliability = reliability
        self.rubric: Rubric = load_rubric(settings.rubric, folder=folder)
        if settings.probabilities:
            check_scale(self.rubric)
        self.pair_rubric: PairRubric = load_pair_rubric(settings.pair_rubric, folder=folder)
        own = settings.canaries if isinstance(settings.canaries, str) else None
        self.canaries: Canaries = load_canaries(None if own is None else (folder or Path()) / own)
        # What its scores are called.
        self.score_names = (JUDGE, *(f"{JUDGE}_{name}" for name in self.rubric.weights))
        # The scores that it has a hand in, and those that make up the total; whoever makes the grader knows them all.
        self.touches: frozenset[str] = frozenset(self.score_names)
        self.weighted: frozenset[str] = frozenset()
        claims = (GROUNDEDNESS,) if settings.claims else ()
        # Which way its scores are better.
        self.direction: Mapping[str, Direction] = dict.fromkeys((*self.score_names, *claims), "higher")
        if settings.model != LOCAL:
            # Only to find a missing key, price or a bad address before anything is asked.
            client = JudgeClient(settings, self.prices)
            free = next((name for name, seat in client.seats.items() if seat.price is None), None)
            if settings.budget is not None and free is not None:
                raise ConfigError(
                    f"a judge's budget needs its prices: --judge-price IN/OUT, or [prices] {free!r} = "
                    "{input = 0.15, output = 0.60} per million tokens"
                )

    @cached_property
    def version(self) -> str:
        """Changes whenever the same reply could get another judgement."""
        settings = self.settings
        parts = [
            *(settings.models, PROMPT_HASH, self.rubric.hash, settings.samples, settings.temperature),
            *(settings.seed, settings.max_chars, settings.max_tokens, settings.extra, settings.base_url),
            *((CLAIMS_HASH,) if settings.claims else ()),
            *(("probabilities",) if settings.probabilities else ()),
            # What a judge costs changes no verdict.
            *(msgspec.structs.replace(own, prices=None) for own in settings.judges.values()),
        ]
        encoded = msgspec.json.encode(parts, order="deterministic")
        return f"judge/1/{blake2b(encoded, digest_size=8).hexdigest()}"


def make_judge(
    settings: JudgeSettings,
    scoring: Scoring,
    *,
    folder: Path | None = None,
    prices: Mapping[str, Price] | None = None,
) -> Judge | None:
    """The configured judge; None if there is none and the scoring needs none."""
    if settings.models:
        named = scoring.grounded.calibration
        if not named or scoring.grounded.model:
            return Judge(settings, folder=folder, prices=prices)
        known = read_calibration((folder or Path()) / named, settings.models[0])
        return Judge(settings, folder=folder, prices=prices, reliability=known.in_words)
    if scoring.needs_judge:
        raise ConfigError(
            "the scoring makes a judge part of the score; name one with --judge MODEL or [judge] model"
        )
    return None
