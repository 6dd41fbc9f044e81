"""The context of a run: its settings, golden set, target, scorers and gates; what the key expects, and how good the key is.

Expectations are computed and preconditions checked before the first question. The strength of the key says how much a grade is
worth, and must cost little: a random sample of the questions, wrong replies made from the key alone, only the scorers of the
standard, and once for a golden set under a scoring.
"""

import gc
import os
import threading
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from answerkey.config import Settings
from answerkey.datasets.golden_sets import LoadedQuestions, load_questions, parse_question
from answerkey.errors import InputError, TruthError, UsageError, nearest_name
from answerkey.model.options import GroundedSettings, JudgeSettings, Options, Scoring, price_of
from answerkey.model.question import Question, QuestionSet, RunTruth
from answerkey.model.run import KeyQuality, RunInfo, Summary
from answerkey.model.scorecard import DEFAULT_WEIGHTS
from answerkey.plugins import ScorerRegistry, engines, load_object
from answerkey.protocols import NO_PROGRESS, BaseEngine, BaseTarget, Direction, Engine, Progress
from answerkey.scorers.grader import Grader, make_grader
from answerkey.text.patterns import lazy

if TYPE_CHECKING:
    from answerkey.gates import Gate
    from answerkey.golden.truth import Resolved
    from answerkey.judge.session import Judge
    from answerkey.store.sql import SqlStore
    from answerkey.targets.resolve import TargetLike


def with_truth(questions: QuestionSet, settings: Settings) -> tuple[QuestionSet, RunTruth | None]:
    """The questions with their computed values; None if nothing was computed or checked.

    Raises TruthError with one line for each value that is missing and each precondition that does not hold.
    """
    if not settings.world and not questions.has_computed:
        return questions, None
    # A run without truth does not load its sources.
    resolved = compute_truth(questions, settings)
    if resolved.problems:
        raise TruthError("\n".join(resolved.problems))
    return resolved.questions, resolved.truth


def compute_truth(questions: QuestionSet, settings: Settings) -> "Resolved":
    """Everything that can be computed and checked, with the problems."""
    from answerkey.golden.truth import resolve

    return resolve(questions, settings.truth, tuple(settings.world), settings.folder)


def truth_document(resolved: "Resolved") -> dict[str, Any]:
    """The document of `truth --json`."""
    return {
        "world": msgspec.to_builtins(resolved.truth.world),
        "keys": msgspec.to_builtins(resolved.keys),
        "problems": resolved.problems,
    }


# Questions that are tried; `audit` tries all.
SAMPLE = 60
# With fewer questions, a share of them says little.
_FEWEST = 5


def with_key_quality(
    summary: Summary, questions: QuestionSet | None, scoring: Scoring, info: RunInfo, store: "SqlStore | None"
) -> Summary:
    """The summary with strength and floor of the key; unchanged where they cannot be measured by the standard's scorers."""
    if questions is None or len(questions) < _FEWEST or not _is_standard(scoring):
        return summary
    before = None if store is None else store.earlier_summary(info)
    known = before if before is not None and before.floor is not None else _measure(questions, scoring)
    return msgspec.structs.replace(
        summary, strength=known.strength, always_wrong_score=known.always_wrong_score, floor=known.floor
    )


def _is_standard(scoring: Scoring) -> bool:
    """Whether neither a judge, nor a model, nor a scorer of the user decides what passes."""
    return (
        scoring.weights.keys() <= DEFAULT_WEIGHTS.keys()
        and not scoring.needs_judge
        and not scoring.matching.model
    )


def _measure(questions: QuestionSet, scoring: Scoring) -> KeyQuality:
    from answerkey.runs.audit import key_quality  # only the first run of a golden set needs it

    # Groundedness is a metric, and its model is slow.
    grader = make_grader(msgspec.structs.replace(scoring, grounded=GroundedSettings()))
    grader.set_spans(False)
    return key_quality(questions, grader, sample=SAMPLE)


# The golden set and the chatbot that come with the package, as an argument of `answerkey run`.
DEMO = "demo"
# Environment variables set by CI services.
_CI_VARIABLES = (
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "JENKINS_URL",
    "TF_BUILD",
    "TEAMCITY_VERSION",
    "CODEBUILD_BUILD_ID",
)
_CONFIG = "answerkey.toml"
# Usual names of a golden set.
_GOLDEN_NAME = lazy(r"(golden|questions).*\.(jsonl?|ya?ml|csv|xlsx)")

JudgeLike = JudgeSettings | str | Sequence[str]
QuestionsLike = str | Path | QuestionSet | Iterable[Question | Mapping[str, Any]]


class RunContext(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Settings and parts of one command that asks or grades."""

    settings: Settings
    options: Options
    grader: Grader
    # None: replies are graded without a model.
    judge: "Judge | None"
    gates: "tuple[Gate, ...]"
    progress: Progress = NO_PROGRESS
    # Computed expectations; None: nothing was computed.
    truth: RunTruth | None = None

    @cached_property
    def engine(self) -> Engine:
        """Asks the questions; logs and rescoring do without."""
        return engines.get(self.options.engine)(self.options)

    def target(self, spec: "TargetLike") -> BaseTarget:
        """The target of a spec, not open yet, with the observers of these options."""
        [target] = self.targets([spec])
        return target

    def targets(self, specs: "Sequence[TargetLike]") -> list[BaseTarget]:
        """The targets of several specs, which share one set of observers."""
        targets = [self._unobserved(spec) for spec in specs]
        if self.options.traces is None and self.options.proxy is None:
            return targets
        from answerkey.observe.observers import ObservedTarget, Observers  # few runs have an observer

        observers = Observers(self.options)
        return [ObservedTarget(target, observers) for target in targets]

    def _unobserved(self, spec: "TargetLike") -> BaseTarget:
        from answerkey.targets.resolve import PricedTarget, resolve_target  # logs have no target

        make = partial(
            resolve_target,
            spec,
            settings=self.settings.targets,
            concurrency=self.options.concurrency,
            folder=self.settings.folder,
            configured=self.settings.target,
        )
        target = make()
        prices = self.options.prices
        price = prices.get(target.name)
        if price is None and target.model:
            price = price_of(target.model, prices, base_url=target.base_url)
        # An engine from a plug-in need not derive from BaseEngine.
        if isinstance(self.engine, BaseEngine):
            target = self.engine.place_target(target, make)
        return target if price is None else PricedTarget(target, price)


def make_context(
    options: Options, settings: Settings, *, scorers: Sequence[Any] = (), progress: Progress | None = None
) -> RunContext:
    """Make the parts of a command; raises an error if one is misconfigured."""
    judge = _make_judge(options, settings)
    grader = make_grader(options.scoring, settings, judge=judge, scorers=scorers)
    if judge is not None:
        judge.touches, judge.weighted = grader.judged_names, frozenset(options.scoring.weights)
    return RunContext(
        settings=settings,
        options=options,
        grader=grader,
        judge=judge,
        gates=_make_gates(options, grader.directions),
        progress=progress or NO_PROGRESS,
    )


def _make_gates(options: Options, measures: Mapping[str, Direction]) -> "tuple[Gate, ...]":
    """The gates of a run; raises an error for a name that is not one of its measures."""
    if not options.gates and options.baseline is None:
        return ()
    from answerkey.gates import check_gates  # most runs have no gates

    return tuple(check_gates(options.gates, measures, baseline=options.baseline))


def _make_judge(options: Options, settings: Settings) -> "Judge | None":
    """The judge of a run, by default with the concurrency of the chatbot; None if there is none."""
    judge, scoring = options.judge, options.scoring
    if not judge.models and not scoring.needs_judge:
        # Most runs have none, and need not load it.
        return None
    from answerkey.judge.session import make_judge

    if judge.concurrency is None:
        judge = msgspec.structs.replace(judge, concurrency=options.concurrency)
    return make_judge(judge, scoring, folder=settings.folder, prices=options.prices)


def make_options(settings: Settings, options: Options | None, changes: Mapping[str, Any]) -> Options:
    """The configured options or `options`, with `changes` by field name."""
    fields = dict(changes)
    if "judge" in fields:
        base = settings.judge if options is None else options.judge
        fields["judge"] = judge_settings(fields["judge"], base)
    if options is None:
        return settings.options(**fields)
    return msgspec.structs.replace(options, **fields) if fields else options


def judge_settings(judge: JudgeLike | None, base: JudgeSettings) -> JudgeSettings:
    """Settings of a judge given as settings, or as a model (several for a panel) with the other settings of `base`."""
    if judge is None:
        return base
    if isinstance(judge, JudgeSettings):
        return judge
    if not isinstance(judge, str | Sequence):
        raise UsageError(f"judge must be a model's name, several names or JudgeSettings, not {judge!r}")
    return msgspec.structs.replace(base, model=judge if isinstance(judge, str) else tuple(judge))


def choose_target(
    target: "TargetLike | None",
    settings: Settings,
    *,
    questions: QuestionsLike | None = None,
    options: Options | None = None,
) -> "TargetLike":
    """The given or configured chatbot; the demo only where it is asked for or nothing at all suggests another one.

    A job that lost its configuration must not pass because the demo answers well.
    """
    if target is not None:
        return target
    if settings.target is not None:
        return settings.target
    if is_demo_set(questions):
        return DEMO
    reason = _own_chatbot_expected(settings, questions, options)
    if reason is not None:
        raise UsageError(f"no chatbot to ask: {reason} (`--target demo` asks the built-in demo)")
    return DEMO


def check_questions_given(
    questions: QuestionsLike | None, targets: "Iterable[TargetLike]", settings: Settings
) -> None:
    """Refuse to ask a chatbot the demo's questions because no golden set was given: its score would mean nothing."""
    if questions is not None or settings.questions is not None:
        return
    other = next((target for target in targets if not _is_demo(target, settings)), None)
    if other is not None:
        command = f" --target {other}" if isinstance(other, str) else ""
        raise UsageError(
            f"no golden set to ask: name it, e.g. `answerkey run golden.jsonl{command}`, or add questions = ... to {_CONFIG}; "
            "`demo` as the golden set asks the built-in demo's questions"
        )


def _is_demo(target: "TargetLike", settings: Settings) -> bool:
    if not isinstance(target, str):
        return False
    return DEMO in settings.targets.get(target, {target.partition(":")[0]: ""})


def is_demo_set(questions: object) -> bool:
    """Whether an argument names the bundled golden set: "demo", unless there is such a file."""
    return str(questions) == DEMO and not Path(DEMO).exists()


def _own_chatbot_expected(
    settings: Settings, questions: QuestionsLike | None, options: Options | None
) -> str | None:
    """What suggests that the user has a chatbot of their own, and the remedy; None: nothing does."""
    if settings.path is not None:
        return f"{settings.path} names no target; add target = ... to it, or use --target T"
    if misnamed := _misnamed_configuration():
        return misnamed
    without = f"there is no {_CONFIG} here or above"
    remedy = "run the command in your project's folder, or use --target T"
    if questions is not None:
        return f"a golden set was given and {without}; {remedy}"
    if options is not None and (options.gates or options.baseline is not None):
        return f"{without}, and the demo must not decide a gate; {remedy}"
    if variable := next((name for name in _CI_VARIABLES if os.environ.get(name)), None):
        return f"{without}, and this is a CI job ({variable} is set); {remedy}"
    names = sorted(path.name for path in Path().iterdir())
    if golden := next((name for name in names if _GOLDEN_NAME.fullmatch(name)), None):
        return f"there is a golden set ({golden}) but no {_CONFIG}; use --target T, or `answerkey init --target T`"
    return None


def _misnamed_configuration() -> str | None:
    """A configuration with a typo in its name or one folder further down, and the remedy."""
    names = [path.name for path in Path().glob("*.toml")]
    if near := nearest_name(_CONFIG, names, cutoff=0.8):
        return f"{near} is not read; rename it to {_CONFIG}"
    if below := next(iter(sorted(Path().glob(f"*/{_CONFIG}"))), None):
        return f"the configuration is {below}; run the command in {below.parent}/"
    return None


def golden_set(
    questions: QuestionsLike | None, settings: Settings, fields: Mapping[str, str] | None = None
) -> QuestionSet:
    """A question set from a path, from objects, from the configuration, or the bundled one.

    `fields` maps the fields of a file, by default as configured.
    """
    if isinstance(questions, QuestionSet):
        return questions
    if questions is None or isinstance(questions, str | Path):
        loaded = load_golden_set(questions, settings, fields)
        if loaded.error is not None:
            raise loaded.error
        return loaded.questions
    return _from_objects(questions, settings.scorer_registry)


def load_golden_set(
    path: str | Path | None, settings: Settings, fields: Mapping[str, str] | None = None
) -> LoadedQuestions:
    """What can be read of a golden set, by default the configured or the bundled one, and all its problems."""
    if is_demo_set(path) or (path is None and settings.questions is None):
        return load_questions(load_object("answerkey_demo:golden_set_path")())
    if path is None:
        path = settings.folder / str(settings.questions)
    return load_questions(
        path,
        fields=fields or settings.map,
        registry=settings.scorer_registry,
        functions=settings.row_functions,
    )


def _from_objects(items: Iterable[Question | Mapping[str, Any]], registry: ScorerRegistry) -> QuestionSet:
    parsed: list[Question] = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, Question):
            parsed.append(item)
            continue
        try:
            parsed.append(parse_question(item, registry=registry))
        except ValueError as error:
            raise InputError(f"question {number}: {error}") from None
    ids = Counter(question.id for question in parsed)
    if repeated := [name for name, count in ids.items() if count > 1]:
        raise UsageError(f"several questions have the id {repeated[0]!r}; ids must be unique")
    if not parsed:
        raise UsageError("the golden set has no questions")
    return QuestionSet(questions=tuple(parsed))


def select_questions(questions: QuestionSet, options: Options) -> QuestionSet:
    """The questions that match every condition (`--where`), then a seeded sample of them in the order of the set."""
    where, sample = options.where, options.sample
    if not where and sample is None:
        return questions
    chosen = [question for question in questions if all(_matches(question, condition) for condition in where)]
    if not chosen:
        categories = ", ".join(sorted({question.category for question in questions})[:8])
        raise UsageError(f"no question matches {' and '.join(where)}; categories: {categories}")
    if sample is not None and sample < len(chosen):
        from random import Random  # few runs draw a sample

        chosen_indexes = set(Random(options.seed).sample(range(len(chosen)), sample))
        chosen = [question for index, question in enumerate(chosen) if index in chosen_indexes]
    return questions.subset(chosen)


def _matches(question: Question, condition: str) -> bool:
    field, _, values = condition.partition("=")
    field = field.strip()
    negated = field.endswith("!")
    field = field.removesuffix("!")
    accepted = {value.strip() for value in values.split(",")}
    return bool(accepted & _values(question, field)) != negated


def _values(question: Question, field: str) -> set[str]:
    if field in ("tag", "tags"):
        return set(question.tags)
    if field in ("tool", "tools", "expected_tools"):
        return {tool.name for turn in question.asks for tool in turn.expected_tools}
    if field in ("id", "category", "persona"):
        value = getattr(question, field)
    elif field in question.metadata:
        value = question.metadata[field]
    else:
        return set()
    return {str(item) for item in value} if isinstance(value, list) else {str(value)}


# Running a coroutine from synchronous code, also inside a running loop (notebook, server).

_Value = TypeVar("_Value")
# New objects between two garbage collections. With Python's 700, a judged run spends 5% of its time collecting; this
# many take a few megabytes at most.
_NEW_OBJECTS = 5000


def wait_for(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Run a coroutine to its end; in a new thread if a loop is running already."""
    import asyncio  # commands that do not ask start without it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        with _fewer_collections():
            return asyncio.run(work)
    outcome: list[_Value] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  # raised again in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=run, name="answerkey-evaluate")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collect garbage less often; only if the process does nothing else."""
    before = gc.get_threshold()
    if 0 < before[0] < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
