"""Grader: all scorers of a scoring, applied to a question's replies, give its Scorecard."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from math import fsum
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from answerkey import plugins
from answerkey.config import ScorerSettings, Settings
from answerkey.errors import ConfigError, InputError, UsageError
from answerkey.model.options import Scoring
from answerkey.model.question import RUBRIC_PREFIX, Question, QuestionSet
from answerkey.model.reply import HARNESS_PROBLEMS, ErrorKind, Failure, HarnessProblem, Reply
from answerkey.model.run import Summary
from answerkey.model.scorecard import (
    UNNUMBERED,
    ErrorFacts,
    HarnessFacts,
    JudgedShare,
    KeywordFacts,
    Score,
    Scorecard,
    Trial,
    TurnFacts,
    details,
    letter_grade,
    passes,
    round_score,
    total,
    unscored_card,
)
from answerkey.plugins import ScorerRegistry
from answerkey.protocols import BaseScorer, Direction, Scorer
from answerkey.scorers.components import Abstention, ResponseQuality
from answerkey.scorers.evidence import CHUNK_PATTERN, Ranker
from answerkey.scorers.user_scorers import Checks, make_scorer
from answerkey.text.normalise import one_line
from answerkey.text.patterns import blake2b

# Cards that are kept for further replies with the same scores.
_MOST_SHARED = 2000


class JudgeScores(Protocol):
    """What the grader must know of a judge, whose scores it is given: judging takes time and happens before."""

    @property
    def version(self) -> str:
        """Changes whenever the same reply could get another judgement."""
        ...

    @property
    def direction(self) -> Mapping[str, Direction]:
        """What its scores are called, and which way each is better."""
        ...


class ScorerCall(NamedTuple):
    """A scorer, and how it is called."""

    scorer: Scorer
    score: Callable[..., Score | Sequence[Score]]
    # The same, with no facts where the scorer can do without.
    score_value: Callable[..., Score | Sequence[Score]]
    # Whether it is given the earlier turns, and what the judge said.
    takes_earlier: bool
    takes_judged: bool
    # See `BaseScorer.silent_without`.
    silent_without: str | None

    @classmethod
    def of(cls, scorer: Scorer) -> "ScorerCall":
        """How a scorer is called."""
        silent = scorer.silent_without if isinstance(scorer, BaseScorer) else None
        needs = scorer.needs
        score_value = scorer.score_value if isinstance(scorer, ResponseQuality) else scorer.score
        return cls(scorer, scorer.score, score_value, "earlier" in needs, "judge" in needs, silent)


class Grader:
    """Applies scorers to replies. What is named in the weights is a component, everything else a metric."""

    def __init__(
        self, scoring: Scoring, scorers: Sequence[Scorer], *, judge: JudgeScores | None = None
    ) -> None:
        self.scoring = scoring
        # How to make the same grader in another process; None where a scorer exists in this one only.
        self.recipe: GraderRecipe | None = None
        # The scorers that checks in rows of a log may name.
        self.registry: ScorerRegistry = plugins.scorers
        self._judge = judge
        self._quality_shares = scoring.quality_shares
        self._blends = "judge" in self._quality_shares
        self._scorers = tuple(scorers)
        self._calls = [ScorerCall.of(scorer) for scorer in scorers]
        # (Has checks, has relevant documents, has sources) → the scorers that give such a reply a score.
        self._calls_by_reply: dict[tuple[bool, bool, bool], list[ScorerCall]] = {}
        # The ids of scores that replies share → these scores, and their card.
        self._shared: dict[tuple[int, ...], tuple[tuple[Score | Sequence[Score], ...], Scorecard]] = {}
        # Every name that a score may have, with the way in which it is better.
        self.directions: dict[str, Direction] = {
            **directions_of(self._scorers),
            **(judge.direction if judge is not None else {}),
        }
        self._check_names()

    def _check_names(self) -> None:
        seen: set[str] = set()
        for scorer in self._scorers:
            names = directions_of([scorer])
            for name in names:
                if name in Summary.__struct_fields__:
                    raise UsageError(
                        f"a scorer cannot be called {name!r}, which is a name in every summary; rename it"
                    )
                if name in seen:
                    raise UsageError(f"there is already a scorer {name!r}; rename one")
            seen.update(names)
        for name in self.scoring.weights:
            if name not in self.directions:
                raise ConfigError(
                    f"[scoring.weights] {name}: no such component; there are {', '.join(sorted(self.directions))}"
                    " (a scorer of your own needs [scorers.NAME] or scorers=[…])"
                )
            if self.directions[name] == "lower":
                raise ConfigError(
                    f"[scoring.weights] {name} is lower-is-better; components must be higher-is-better "
                    "(return 1 - value)"
                )

    def prepare(self) -> None:
        """Have the scorers load what their first reply would load, before anything is timed."""
        for scorer in self._scorers:
            scorer.prepare()

    def without_metrics(self) -> "Grader":
        """A grader that gives the same totals and no metrics, for replies of which only the total counts."""
        weighted = [one for one in self._scorers if directions_of([one]).keys() & self.scoring.weights.keys()]
        return Grader(self.scoring, weighted, judge=self._judge)

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers that it applies, in order."""
        return self._scorers

    @property
    def judged_names(self) -> frozenset[str]:
        """The scores that a judge has a hand in."""
        takers = [call.scorer for call in self._calls if call.takes_judged]
        found = {*directions_of(takers), *(self._judge.direction if self._judge is not None else ())}
        return frozenset(found | ({"response_quality"} if self._blends else set()))

    def set_spans(self, enabled: bool) -> None:
        """Whether scores include where each keyword was found; values alone are faster."""
        for scorer in self._scorers:
            if isinstance(scorer, ResponseQuality):
                scorer.spans = enabled

    @property
    def run_fields(self) -> dict[str, Any]:
        """How it scores, as fields of RunInfo."""
        scoring = self.scoring
        return {
            "match": scoring.match,
            "weights": scoring.weights,
            # Those that are not the usual one.
            "directions": {name: way for name, way in self.directions.items() if way == "lower"},
            "pass_mark": scoring.pass_mark,
            "scoring_hash": self.hash,
        }

    def check_questions(self, questions: QuestionSet) -> None:
        """Refuse, before anything is asked, a golden set whose checks can never be decided."""
        checks = [scorer for scorer in self._scorers if isinstance(scorer, Checks)]
        for question in questions if checks else ():
            for turn in question.turns or (question,):
                problem = checks[0].problem(turn) if turn.checks else None
                if problem:
                    raise InputError(problem, path=questions.path, line=question.line)

    def set_questions(self, questions: Iterable[Question]) -> None:
        """Measure `over_refused` if some question of the set that is scored is unanswerable."""
        if any(not turn.answerable for question in questions for turn in question.asks):
            self.measure_answerable()
            if self.recipe is not None:
                self.recipe = msgspec.structs.replace(self.recipe, has_unanswerable=True)

    def measure_answerable(self) -> None:
        """Measure of answerable questions too whether their replies decline."""
        for scorer in self._scorers:
            if isinstance(scorer, Abstention):
                scorer.measures_answerable = True

    @cached_property
    def hash(self) -> str:
        """Changes whenever the same replies could get other scores."""
        versions = [scorer.version for scorer in self._scorers]
        key = [msgspec.to_builtins(self.scoring), versions, self._judge.version if self._judge else None]
        return blake2b(msgspec.json.encode(key, order="sorted"), digest_size=8).hexdigest()

    def grade(
        self, question: Question, replies: Sequence[Reply], judged: Sequence[Sequence[Score]] = ()
    ) -> Scorecard:
        """Score the replies to a question's turns; a turn that was never reached scores as a null reply.

        `judged` are the judge's scores for each turn, where there is a judge: asking it takes time, so that happens before.
        """
        if not question.turns:
            pair = question, replies[0] if replies else Reply()
            return self._grade_turns([pair], judged[0] if judged else ())[0]
        turns = question.turns
        return self._mean_of_turns(
            [
                self.grade_turn(
                    turn,
                    replies[index] if index < len(replies) else Reply(),
                    judged[index] if index < len(judged) else (),
                    tuple(zip(turns[:index], replies, strict=False)),
                )
                for index, turn in enumerate(turns)
            ]
        )

    def grade_turn(
        self,
        question: Question,
        reply: Reply,
        judged: Sequence[Score] = (),
        earlier: Sequence[tuple[Question, Reply]] = (),
    ) -> Scorecard:
        """Score one reply to one turn; `earlier` are the turns before it, with their replies."""
        return self._grade_turns([(question, reply)], judged, earlier)[0]

    def grade_many(self, trials: Sequence[Trial], *, facts: bool = True) -> list[Scorecard]:
        """Score trials scorer by scorer, without a judge.

        Without `facts`, cards have the same values, trials with equal ones may share a card, and `explained` adds the facts.
        """
        facts = facts or self._blends or ResponseQuality.name not in self.scoring.weights
        plain = [trial for trial in trials if not trial.question.turns]
        pairs = [(trial.question, trial.replies[0] if trial.replies else Reply()) for trial in plain]
        graded = self._grade_turns(pairs, facts=facts)
        if len(plain) == len(trials):
            return graded
        cards = iter(graded)
        return [
            self.grade(trial.question, trial.replies) if trial.question.turns else next(cards)
            for trial in trials
        ]

    def explained(self, trial: Trial) -> Scorecard:
        """The card of a trial that was graded without facts, with its facts."""
        card, name = trial.scorecard, ResponseQuality.name
        score = card.components.get(name)
        if score is None or score.value is None or score.facts is not None:
            return card
        quality = next(scorer for scorer in self._scorers if isinstance(scorer, ResponseQuality))
        found = quality.score(trial.question, trial.replies[0] if trial.replies else Reply())
        components = card.components | {name: msgspec.structs.replace(found, weight=score.weight)}
        return msgspec.structs.replace(card, components=components)

    def _grade_turns(
        self,
        pairs: Sequence[tuple[Question, Reply]],
        judged: Sequence[Score] = (),
        earlier: Sequence[tuple[Question, Reply]] = (),
        *,
        facts: bool = True,
    ) -> list[Scorecard]:
        """Score replies; those of which the same scorers have something to say go through each scorer together."""
        cards: dict[int, Scorecard] = {}
        alike: dict[tuple[bool, bool, bool], list[int]] = {}
        for place, (question, reply) in enumerate(pairs):
            failure = reply.failure
            if failure is not None and failure.kind in HARNESS_PROBLEMS:
                cards[place] = self.unscored(failure.message, failure.kind)
            else:
                has = (bool(question.checks), bool(question.relevant_documents), bool(reply.sources))
                alike.setdefault(has, []).append(place)
        for has, places in alike.items():
            some = pairs if len(places) == len(pairs) else [pairs[place] for place in places]
            calls = self._calls_by_reply.get(has) or self._calls_for(has)
            columns = self._columns(calls, some, judged, earlier, facts=facts)
            rows = zip(*columns, strict=True) if columns else repeat(())
            for place, scores in zip(places, rows, strict=False):
                cards[place] = self._card_of(scores, judged) if facts else self._shared_card(scores)
        return [*map(cards.__getitem__, range(len(pairs)))]

    def _calls_for(self, has: tuple[bool, bool, bool]) -> list[ScorerCall]:
        """The scorers that give such a reply a score."""
        there = zip(("checks", "relevant_documents", "sources"), has, strict=True)
        absent = {name for name, is_there in there if not is_there}
        calls = self._calls_by_reply[has] = [
            call for call in self._calls if call.silent_without not in absent
        ]
        return calls

    def _columns(
        self,
        calls: Sequence[ScorerCall],
        pairs: Sequence[tuple[Question, Reply]],
        judged: Sequence[Score],
        earlier: Sequence[tuple[Question, Reply]],
        *,
        facts: bool,
    ) -> list[list[Score | Sequence[Score]]]:
        """What each scorer gives for each reply."""
        columns: list[list[Score | Sequence[Score]]] = []
        for call in calls:
            score_reply = call.score if facts else call.score_value
            column: list[Score | Sequence[Score]] = []
            columns.append(column)
            for question, reply in pairs:
                try:
                    if call.takes_judged:
                        column.append(score_reply(question, reply, earlier=earlier, judged=judged))
                    elif call.takes_earlier:
                        column.append(score_reply(question, reply, earlier=earlier))
                    else:
                        column.append(score_reply(question, reply))
                except Exception as error:  # noqa: BLE001  # a scorer's failure is a score without a value, never the end of a run
                    reason = one_line(f"could not be scored: {type(error).__name__}: {error}", 200)
                    why = HarnessFacts("scorer", reason)
                    column.append([Score(name, None, facts=why) for name in directions_of([call.scorer])])
        return columns

    def _shared_card(self, scores: tuple[Score | Sequence[Score], ...]) -> Scorecard:
        """The card of these scores, which is one for all replies that were given the very same ones."""
        key = tuple(map(id, scores))
        known = self._shared.get(key)
        if known is not None:
            return known[1]
        card = self._card_of(scores, ())
        # The message of an error is its reply's own.
        if card.error is None and len(self._shared) < _MOST_SHARED:
            # The scores are kept as well: no other ones have their ids then.
            self._shared[key] = scores, card
        return card

    def _card_of(self, results: tuple[Score | Sequence[Score], ...], judged: Sequence[Score]) -> Scorecard:
        weights = self.scoring.weights
        components: dict[str, Score] = {}
        metrics: dict[str, float | None] = {}
        findings: dict[str, Any] = {}
        error: Failure | None = None
        scores: list[Score] = []
        for result in results:
            scores += (result,) if isinstance(result, Score) else result
        if judged:
            # What the judge said of a check's rubric is the check's to report.
            scores += [score for score in judged if not score.name.startswith(RUBRIC_PREFIX)]
        for score in scores:
            name, value, facts = score.name, score.value, score.facts
            if name not in weights:
                metrics[name] = value
                if facts is not None or score.details:
                    findings[name] = details(score)
            else:
                if self._blends and name == "response_quality":
                    score = _blended(score, judged, self._quality_shares)  # the same score, blended
                elif value is not None and not 0.0 <= value <= 1.0:
                    score = _out_of_range(score)  # the same score, unscored
                components[name] = Score(
                    name, score.value, score.reason, weights[name], score.details, score.facts
                )
            if type(facts) is ErrorFacts:
                error = Failure(cast("ErrorKind", facts.kind), facts.message)
        if len(components) < len(weights):
            components |= {
                name: Score(name, None, "its scorer said nothing of this reply", weight)
                for name, weight in weights.items()
                if name not in components
            }
        points = total({name: score.value for name, score in components.items()}, weights)
        return self._card(points, components, metrics, findings=findings, error=error)

    def unscored(self, reason: str, problem: HarnessProblem) -> Scorecard:
        """The scorecard of a reply that the harness itself could not ask for or score."""
        return unscored_card(self.scoring.weights, reason, problem)

    def too_costly(self, question: Question, number: int, seconds: float) -> Scorecard:
        """The scorecard of a trial that could not be graded within its budget."""
        trial = "" if number == UNNUMBERED else f" (trial {number})"
        reason = f"too costly: scoring {question.id}{trial} took more than {seconds:g} s"
        return self.unscored(reason, "too_costly")

    def _mean_of_turns(self, cards: Sequence[Scorecard]) -> Scorecard:
        components = {
            name: _mean_component(name, [card.components.get(name) for card in cards])
            for name in dict.fromkeys(name for card in cards for name in card.components)
        }
        names = dict.fromkeys(name for card in cards for name in card.metrics)
        totals = [card.total for card in cards if card.total is not None]
        # A turn without a score leaves the conversation without one, as a component does its reply.
        points = round_score(fsum(totals) / len(totals)) if len(totals) == len(cards) else None
        metrics = {name: _mean([card.metrics.get(name) for card in cards]) for name in names}
        error = next((card.error for card in cards if card.error is not None), None)
        return self._card(points, components, metrics, error=error, turns=tuple(cards))

    def _card(
        self,
        points: float | None,
        components: dict[str, Score],
        metrics: dict[str, float | None],
        *,
        error: Failure | None,
        findings: dict[str, Any] | None = None,
        turns: tuple[Scorecard, ...] = (),
    ) -> Scorecard:
        return Scorecard(
            components=components,
            total=points,
            grade=None if points is None else letter_grade(points),
            passed=passes(points, self.scoring.pass_mark),
            metrics=metrics,
            findings=findings or {},
            error=error,
            turns=turns,
        )


def directions_of(scorers: Iterable[Scorer]) -> dict[str, Direction]:
    """Every name that the scorers may give a value under, with the way in which it is better."""
    found: dict[str, Direction] = {}
    for scorer in scorers:
        declared = scorer.direction
        found |= {scorer.name: declared} if isinstance(declared, str) else dict(declared)
    return found


def _blended(keywords: Score, judged: Sequence[Score], shares: Mapping[str, float]) -> Score:
    """Response quality as far as it is the judge's; without a judgement it is unscored, never a part of itself."""
    judge = next((score for score in judged if score.name == "judge"), None)
    share = shares.get("keywords", 0.0)
    judged_share = JudgedShare(
        by_keywords=keywords.value,
        by_judge=None if judge is None else judge.value,
        reason="no judge was asked" if judge is None else judge.reason,
        blended=bool(share),
    )
    if not isinstance(keywords.facts, KeywordFacts):
        # Its scorer failed: there is nothing to blend with.
        return keywords
    facts = msgspec.structs.replace(keywords.facts, judged=judged_share)
    if judge is None or judge.value is None:
        value = None
    elif not share:
        value = judge.value
    else:
        value = round_score(share * (keywords.value or 0.0) + shares["judge"] * judge.value)
    return Score(keywords.name, value, facts=facts)


def _out_of_range(score: Score) -> Score:
    return Score(score.name, None, f"gave {score.value:g}, which is not between 0 and 1", None, score.details)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _mean_component(name: str, turns: Sequence[Score | None]) -> Score:
    """A component over a conversation's turns; a turn without a value leaves it without one."""
    scored = [turn for turn in turns if turn is not None]
    unscored = any(turn.value is None for turn in scored)
    # Spans stay with their turn.
    facts = TurnFacts(tuple(map(_without_spans, scored)))
    return Score(
        name,
        None if unscored else _mean([turn.value for turn in scored]),
        weight=scored[0].weight,
        facts=facts,
    )


def _without_spans(score: Score) -> Score:
    facts = score.facts
    if not isinstance(facts, KeywordFacts) or not facts.matches:
        return score
    return msgspec.structs.replace(score, facts=msgspec.structs.replace(facts, matches=()))


# Which scorers a run uses: the three components, metrics beside them, and the user's own.


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


def quality_arguments(scoring: Scoring, settings: Settings) -> dict[str, Any]:
    """The arguments of ResponseQuality, for it and for scorers that decide by it."""
    return {
        "mode": scoring.match,
        "threshold": scoring.match_threshold,
        "must": scoring.must,
        "whole_numbers": scoring.whole_numbers,
        "model": scoring.matching.model,
        "abbreviations": scoring.matching.abbreviations,
        "folder": settings.folder,
    }


def _built_in(scoring: Scoring, settings: Settings) -> list[Scorer]:
    ranker = Ranker(CHUNK_PATTERN if scoring.chunk_pattern is None else scoring.chunk_pattern)
    quality = quality_arguments(scoring, settings)
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
