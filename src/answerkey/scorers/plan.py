"""Which scorers a run uses: the three components, metrics beside them, and the user's own."""

from collections.abc import Iterable
from typing import Any

import msgspec

from answerkey import plugins
from answerkey.config import ScorerSettings, Settings
from answerkey.errors import ConfigError, UsageError
from answerkey.model.options import Scoring
from answerkey.plugins import ScorerRegistry
from answerkey.protocols import Direction, Scorer
from answerkey.scorers.grader import Grader, JudgeScores, directions_of
from answerkey.scorers.own import make_scorer
from answerkey.scorers.retrieval import CHUNK_PATTERN, Ranker


class GraderRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """All that a grader is made from, where that can be written down."""

    scoring: Scoring
    scorers: dict[str, ScorerSettings]
    # The configuration file, from whose folder paths start.
    path: str | None
    # The names of the judge's scores; None: there is no judge.
    judge: dict[str, Direction] | None = None
    # Whether some question of the set is unanswerable.
    has_unanswerable: bool = False


class _JudgeNames:
    """A judge whose scores are given to the grader."""

    version = ""

    def __init__(self, direction: dict[str, Direction]) -> None:
        self.direction = direction


def grader_by(recipe: GraderRecipe) -> Grader:
    """The grader that a recipe describes."""
    settings = Settings(scoring=recipe.scoring, scorers=recipe.scorers, path=recipe.path)
    judge = None if recipe.judge is None else _JudgeNames(recipe.judge)
    grader = make_grader(recipe.scoring, settings, judge=judge)
    if recipe.has_unanswerable:
        grader.measure_answerable()
    return grader


def make_grader(
    scoring: Scoring | None = None,
    settings: Settings | None = None,
    *,
    judge: JudgeScores | None = None,
    scorers: Iterable[Any] = (),
) -> Grader:
    """The grader for a scoring under the settings in force; with a judge, one that takes its scores.

    `scorers` are the caller's own (functions, objects, registered names), beside those of the configuration.
    """
    scoring = scoring or Scoring()
    settings = settings or Settings()
    own = {scorer.name: scorer for scorer in configured_scorers(settings)}
    # A scorer that the caller gives replaces the configured one of its name.
    registry = settings.scorer_registry
    given = _distinct(scorers, registry)
    own |= {scorer.name: scorer for scorer in given}
    known = {*directions_of(own.values()), *(judge.direction if judge is not None else ())}
    built_in = _built_in(scoring, settings)
    measured = directions_of(built_in)
    if judge is not None and (both := measured.keys() & judge.direction.keys()):
        raise ConfigError(
            f"both the judge and [grounded] model would give {min(both)!r}; keep one: [judge] claims = false, "
            "or no model under [grounded]"
        )
    known |= set(measured)
    for name in scoring.weights:
        # An installed scorer that has a weight need not be configured as well.
        if name not in known and registry.find(name) is not None:
            own[name] = make_scorer(name, registry=registry)
    grader = Grader(scoring, [*built_in, *own.values()], judge=judge)
    grader.registry = registry
    if not given and not registry.live():
        grader.recipe = GraderRecipe(
            scoring=scoring,
            scorers=settings.scorers,
            path=settings.path,
            judge=None if judge is None else dict(judge.direction),
        )
    return grader


def configured_scorers(settings: Settings) -> list[Scorer]:
    """The scorers of `[scorers.NAME]`, loaded; one that cannot be is refused with its name."""
    found: list[Scorer] = []
    for name, chosen in settings.scorers.items():
        try:
            found.append(
                make_scorer(
                    name,
                    direction=chosen.direction,
                    arguments=chosen.arguments,
                    registry=settings.scorer_registry,
                )
            )
        except UsageError as error:
            raise ConfigError(f"{settings.path}: [scorers.{name}] {error}") from None
    return found


def _distinct(scorers: Iterable[Any], registry: ScorerRegistry) -> list[Scorer]:
    made: list[Scorer] = [make_scorer(part, registry=registry) for part in scorers]
    names = [scorer.name for scorer in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two scorers are named {twice!r}; rename one")
    return made


def _built_in(scoring: Scoring, settings: Settings) -> list[Scorer]:
    ranker = Ranker(CHUNK_PATTERN if scoring.chunk_pattern is None else scoring.chunk_pattern)
    quality = {
        "mode": scoring.match,
        "threshold": scoring.match_threshold,
        "must": scoring.must,
        "whole_numbers": scoring.whole_numbers,
        "model": scoring.matching.model,
        "abbreviations": scoring.matching.abbreviations,
        "folder": settings.folder,
    }
    arguments: dict[str, dict[str, Any]] = {
        "tool_usage": {"mode": scoring.tool_mode, "aliases": scoring.tools.aliases},
        "response_quality": quality,
        "abstention": quality,
        "error_handling": {"settings": scoring.errors},
        "retrieval": {"measures": scoring.retrieval, "ranker": ranker},
        "source_hygiene": {"ranker": ranker},
        "checks": {
            "folder": settings.folder,
            "weighted": "checks" in scoring.weights,
            "registry": settings.scorer_registry,
        },
    }
    grounded = scoring.grounded
    if grounded.links:
        arguments["links"] = {}
    if grounded.model:
        arguments["groundedness"] = {
            "model": grounded.model,
            "calibration": grounded.calibration,
            "folder": settings.folder,
        }
    return [plugins.scorers.get(name)(**given) for name, given in arguments.items()]
