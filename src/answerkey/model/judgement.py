"""Verdicts on replies: feedback of people, and judgements of models — cached answers, the judge of a run, rubrics of checks.

Feedback is for the production replies that people give verdicts on, and its statistics.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from answerkey.errors import ConfigError, UsageError, explain_validation
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Scorecard
from answerkey.stats.intervals import Interval, wilson_interval
from answerkey.stats.paired import Difference

FeedbackSource = Literal["user", "review", "import"]
# A verdict at or above this is positive: satisfaction is positive ÷ all.
POSITIVE = 0.5
# Maximum characters of a comment.
COMMENT_LIMIT = 20_000

_UP = frozenset(("up", "thumbs_up", "thumbs-up", "👍", "positive", "good", "yes", "true", "like", "1", "+1"))
_DOWN = frozenset(("down", "thumbs_down", "thumbs-down", "👎", "negative", "bad", "no", "false", "0", "-1"))
_RIGHT = frozenset(("trust", "pass", "passed", "correct", "right", "ok", "accept", "accepted"))
_WRONG = frozenset(("distrust", "dislike", "fail", "failed", "incorrect", "wrong", "reject", "rejected"))


class ReplyKey(msgspec.Struct, frozen=True):
    """The key of a run's reply in the store."""

    run_id: str
    ask_hash: str
    trial: int
    # The chatbot's hash: a run may be resumed with a changed chatbot.
    target_hash: str = ""


class Feedback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One person's verdict on one reply."""

    id: str
    created_at: str
    # 1.0: thumb up, 0.0: thumb down, or a score between.
    value: float
    # A visitor of a chat page, a reviewer in the review lane, or another tool's export.
    source: FeedbackSource = "user"
    comment: str = ""
    author: str | None = None
    # What the reply should have been.
    correction: str | None = None
    # The chatbot's own ids of the reply.
    response_id: str | None = None
    trace_id: str | None = None
    conversation_id: str | None = None
    # The reply in the store, of a run or of production; both None: not matched yet.
    reply: ReplyKey | None = None
    production_id: str | None = None
    question: str | None = None
    category: str | None = None
    # Sender: a site, a person, or a local program; empty for imports and reviews.
    sender: str = ""
    # The same key again is the same verdict.
    idempotency_key: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def positive(self) -> bool:
        """Whether it counts as satisfied."""
        return self.value >= POSITIVE

    @property
    def matched(self) -> bool:
        """Whether its reply is known."""
        return self.reply is not None or self.production_id is not None


class ProductionReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply that the chatbot gave to a real user."""

    # The chatbot's own id, or a generated one.
    id: str
    # When it was given, if the sender says so, and when it was received.
    created_at: str
    received_at: str | None = None
    # Sender: a site, a person, or a local program.
    sender: str = ""
    # The chatbot's model and version, if the sender names them.
    model: str | None = None
    version: str | None = None
    question: str
    reply: Reply
    category: str | None = None
    # What else was sent with it, e.g. persona, locale or tenant.
    metadata: dict[str, str] = {}
    # None: the golden set does not have the question.
    score: float | None = None
    scorecard: Scorecard | None = None
    # Hash of the golden set and scoring of its last grading.
    graded_by: str | None = None


def read_value(value: Any) -> float:
    """Return a verdict as a number from 0 to 1; accepts thumbs in the usual words, yes or no, and scores."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _UP | _RIGHT:
            return 1.0
        if word in _DOWN | _WRONG:
            return 0.0
        try:
            value = float(word)
        except ValueError:
            raise UsageError(_wrong(value)) from None
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    raise UsageError(_wrong(value))


def _wrong(value: Any) -> str:
    return f'value {str(value)[:60]!r}: give "up", "down", true, false or a number from 0 to 1'


class CategoryFeedback(msgspec.Struct, frozen=True):
    """Verdicts on one category's replies."""

    category: str
    feedback: int
    positive: int
    satisfaction: float


class DayFeedback(msgspec.Struct, frozen=True):
    """Verdicts of one day."""

    day: str
    feedback: int
    positive: int
    satisfaction: float


class FeedbackTheme(msgspec.Struct, frozen=True):
    """Words that several comments share."""

    words: str
    comments: int
    negative: int
    example: str


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How people's verdicts agree with answerkey's scores of the same replies."""

    # Replies with a verdict and a score; of several verdicts on a reply, the mean counts.
    pairs: int
    # Pearson's r with its 95% interval; None: too few pairs, or all verdicts are the same.
    correlation: float | None
    low: float | None
    high: float | None
    mean_score_positive: float | None
    mean_score_negative: float | None


class FeedbackStats(msgspec.Struct, frozen=True, kw_only=True):
    """All feedback in figures. Reviewers' verdicts are counted separately from users'."""

    feedback: int
    positive: int
    negative: int
    # Positive ÷ all; None without any. Its interval is over replies: verdicts on one reply are not independent.
    satisfaction: float | None
    satisfaction_interval: Interval | None = None
    # Replies that users could rate: of production, and of runs that users rated.
    queries: int
    # Feedback on those replies ÷ their number; None when no such reply is known.
    feedback_rate: float | None
    comments: int
    # Verdicts without a known reply.
    unmatched: int
    reviews: int
    reviews_trusted: int
    categories: tuple[CategoryFeedback, ...]
    days: tuple[DayFeedback, ...]
    themes: tuple[FeedbackTheme, ...]
    agreement: Agreement

    @property
    def gate_numbers(self) -> dict[str, float | None]:
        """What gates can be about."""
        interval = self.satisfaction_interval
        return {
            "satisfaction": self.satisfaction,
            "satisfaction.low": None if interval is None else interval.low,
            "satisfaction.high": None if interval is None else interval.high,
            "feedback": self.feedback,
            "feedback_rate": self.feedback_rate,
            "unmatched": self.unmatched,
        }


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens and cost of calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    # None: no price is known.
    cost: float | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One cached answer of one judge."""

    key: str
    model: str
    # The text, with token probabilities if they were asked for. It is parsed at each use, as strictly as a new answer.
    text: str
    spent: Spent = Spent()


# JudgeRecord: the `judge` section of the run document, as a run stores it.


class CanaryResult(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's verdict on a canary: an item whose right grade is known."""

    kind: str
    model: str
    # None: the judge gave no verdict.
    score: float | None
    # None: unknown, because there is no verdict.
    passed: bool | None
    reason: str = ""
    # Why there is no verdict: "refused", "unreadable", "unreachable", "budget".
    unjudged: str | None = None


class GradeShift(msgspec.Struct, frozen=True):
    """By how much a judge grades copies of wrong replies higher, on average; without an interval: too few replies to say."""

    pairs: int
    mean: float
    low: float | None
    high: float | None


class PassedWrongReply(msgspec.Struct, frozen=True):
    """A wrong reply that a judge passes."""

    id: str
    # How it was made: "asked figure", "nothing found", …
    made_by: str
    reply: str
    score: float


class OwnCanaries(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's verdicts on canaries made from the run's own replies."""

    # Wrong replies with a verdict, and those of them that it fails; the share with its 95% interval.
    wrong: int
    refused: int
    specificity: float
    low: float | None
    high: float | None
    # Copies of wrong replies with words that add nothing, and with a claim that they were approved.
    padded: GradeShift | None = None
    signed: GradeShift | None = None
    # Wrong replies without a verdict.
    unjudged: int = 0
    # The first wrong replies that it passes.
    passed: tuple[PassedWrongReply, ...] = ()
    unreliable_because: tuple[str, ...] = ()


class RubricRecord(msgspec.Struct, frozen=True):
    """The rubric that replies were graded by."""

    name: str
    hash: str
    # Criterion → share of the score.
    weights: dict[str, float]
    # The whole rubric, so that every version can be read again; None in records of older versions of answerkey.
    content: dict[str, Any] | None = None


class UnscoredReason(msgspec.Struct, frozen=True):
    """How many replies have no verdict for one kind of reason, and its first wording."""

    count: int
    reason: str


class ProbabilityCounts(msgspec.Struct, frozen=True):
    """Verdicts with token probabilities, and verdicts in which the written grade counts."""

    weighed: int
    plain: int


class TokenCounts(msgspec.Struct, frozen=True):
    """Tokens sent to the judges and received from them."""

    input: int
    output: int


class ClaimsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The check of replies' claims against their evidence."""

    model: str
    prompt_hash: str
    # How well the judge does on labelled sentences, in words.
    reliability: str
    # Replies whose claims were checked, and replies without a usable answer of the judge.
    checked: int
    unscored: int
    # Why, for the first of them.
    unscored_because: str | None


# With a lower Krippendorff's α, a panel's grades are not reliable (Krippendorff draws the line at .667 for tentative
# conclusions; intervals of α of some fifty replies are ± .1 wide).
MIN_PANEL_AGREEMENT = 0.6


class CalibrationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The last comparison of a run's judge with people's labels of its replies."""

    at: str
    source: str
    # Labelled replies, the share on which judge and people agree, and Cohen's κ.
    labelled: int
    agreement: float
    kappa: float | None


class LabelAgreement(msgspec.Struct, frozen=True):
    """How often a judge agrees with people's labels, with the 95% interval over units, and Cohen's κ."""

    labelled: int
    share: float
    low: float
    high: float
    kappa: float | None


class AgreementChange(msgspec.Struct, frozen=True):
    """The agreement on the same labels under the run's rubric, and under an edited one."""

    before: LabelAgreement
    # None: no edited rubric was given.
    after: LabelAgreement | None = None
    difference: Difference | None = None


class RubricVersion(msgspec.Struct, frozen=True, kw_only=True):
    """An edited rubric that the labelled replies of a run were graded by again."""

    at: str
    model: str
    rubric: RubricRecord
    # Where the labels come from.
    labels: str
    # On the labels whose disagreements were shown, and on those that were held out.
    tuning: AgreementChange
    held_out: AgreementChange


class JudgeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who judged a run, how, how reliably, and what it cost."""

    # The models' names, joined and one by one.
    model: str
    models: tuple[str, ...]
    endpoint: str
    # Model → how it was asked for JSON.
    response_format: dict[str, str] = {}
    # Model → parameters that it does not accept and was asked without.
    dropped_parameters: dict[str, list[str]] = {}
    rubric: RubricRecord
    prompt_hash: str
    samples: int = 1
    temperature: float = 0.0
    seed: int = 0
    budget: float | None = None
    # None: probabilities were not asked for.
    probabilities: ProbabilityCounts | None = None
    # Whether every canary was graded right, the run's own within chance; None: unknown.
    reliable: bool | None = None
    unreliable_because: tuple[str, ...] = ()
    canaries: tuple[CanaryResult, ...] = ()
    # None: none were asked, or none could be made.
    own_canaries: OwnCanaries | None = None
    # Replies with a verdict, and replies without one.
    judged: int = 0
    unscored: int = 0
    # Kind of reason → replies without a verdict.
    unscored_because: dict[str, UnscoredReason] = {}
    # Share of replies on which all samples agree; None with one sample.
    self_consistency: float | None = None
    # Of a panel: score → Krippendorff's α.
    agreement: dict[str, float | None] | None = None
    # Score that depends on the judge → replies that lack it because there is no verdict.
    touches: dict[str, int] = {}
    calls: int = 0
    # Verdicts that were already in the store.
    cached: int = 0
    # Unreadable answers that were asked for again.
    asked_again: int = 0
    tokens: TokenCounts = TokenCounts(0, 0)
    # None: no price is known.
    cost: float | None = None
    budget_stopped: bool = False
    # None: claims were not checked.
    claims: ClaimsRecord | None = None
    # None: never compared with people.
    calibration: CalibrationRecord | None = None
    # Rubrics that were tried on the labelled replies, oldest first.
    rubric_versions: tuple[RubricVersion, ...] = ()

    @property
    def failed_canaries(self) -> bool:
        """Whether canaries were asked and not all of them are known to be graded right."""
        return bool(self.canaries) and not self.reliable

    @property
    def panel_agreement(self) -> float | None:
        """Krippendorff's α of a panel on the replies' grades; None: one model, or nothing varies."""
        return (self.agreement or {}).get("judge")

    @property
    def panel_disagrees(self) -> bool:
        """Whether the models of a panel agree too little for their mean to be relied on."""
        return self.panel_agreement is not None and self.panel_agreement < MIN_PANEL_AGREEMENT


# Rubrics of checks.


# Grade (a whole number) → its meaning; "pass/fail" is short for 0 and 1.
Scale = dict[str, str] | Literal["pass/fail"]
DEFAULT_SCALE = {1: "", 5: ""}
_PASS_FAIL = {0: "it fails", 1: "it passes"}
_WIDEST = 100


class GradedExample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An example reply with its right grades, for the judge."""

    reply: str
    # Criterion → grade; for a check, which has one criterion, the grade.
    grades: dict[str, int] | int
    question: str = ""
    reference_answer: str = ""
    reason: str = ""


class CheckRubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rubric of a golden question's check."""

    question: str
    scale: Scale = {}
    examples: tuple[GradedExample, ...] = ()


def grades_of(scale: Scale) -> dict[int, str]:
    """Return grade → meaning, lowest first; raises ValueError if the scale is invalid."""
    if scale == "pass/fail":
        return _PASS_FAIL
    assert not isinstance(scale, str)  # the literal above is the only one
    if not scale:
        return DEFAULT_SCALE
    try:
        numbers = sorted((int(grade), words) for grade, words in scale.items())
    except ValueError:
        strange = next(grade for grade in scale if not grade.lstrip("-").isdigit())
        raise ValueError(f"scale {strange!r}: grades are whole numbers") from None
    if len(numbers) < 2 or numbers[-1][0] - numbers[0][0] > _WIDEST:
        raise ValueError(f"scale: name at least the lowest and the highest grade, at most {_WIDEST} apart")
    return dict(numbers)


def read_check_rubric(expected: object) -> CheckRubric:
    """Read the rubric of a check, a text or an object; raises ValueError if it is invalid."""
    if isinstance(expected, str):
        expected = {"question": expected}
    try:
        rubric = msgspec.convert(expected, CheckRubric)
    except msgspec.ValidationError as error:
        raise ValueError(explain_validation(error)) from None
    if not rubric.question.strip():
        raise ValueError("must be a text that says what the judge looks for")
    grades = grades_of(rubric.scale)
    for example in rubric.examples:
        if not isinstance(example.grades, int) or not min(grades) <= example.grades <= max(grades):
            raise ValueError(f"an example's grades must be a number from {min(grades)} to {max(grades)}")
    return rubric


# Calibration on labelled sentences: how well a judge or model separates supported sentences from unsupported ones.


NOT_CALIBRATED = "not calibrated: see answerkey judge calibrate --sentences"


class SentenceCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `answerkey judge calibrate --sentences`."""

    # The judge's or entailment model's name.
    model: str
    # A sentence counts as supported at this probability; 0.5 for a judge, which says yes or no.
    threshold: float
    # Labelled sentences with a verdict, and without one.
    sentences: int
    unjudged: int
    # Share of supported sentences that it calls supported; share of the others that it calls unsupported.
    supported_found: float
    supported_interval: Interval | None
    unsupported_found: float
    unsupported_interval: Interval | None

    @property
    def in_words(self) -> str:
        """One line to show with a groundedness score."""
        return (
            f"on {self.sentences} labelled sentences it finds {self.supported_found:.0%} of the supported ones"
            f"{_within(self.supported_interval)} and {self.unsupported_found:.0%} of the others"
            f"{_within(self.unsupported_interval)}"
        )


def _within(interval: Interval | None) -> str:
    return "" if interval is None else f" [{interval.low:.0%}, {interval.high:.0%}]"


def calibrate_sentences(
    model: str, verdicts: Sequence[tuple[bool, float | None]], *, threshold: float | None = None
) -> SentenceCalibration:
    """Calibrate from (labelled as supported, the model's probability); without a threshold, the best one is chosen.

    A threshold chosen on the same sentences makes the figures slightly too good.
    """
    judged = [(label, value) for label, value in verdicts if value is not None]
    yes, no = ([value for label, value in judged if label is kind] for kind in (True, False))
    if not yes or not no:
        raise ConfigError(
            "calibration needs labelled sentences of both kinds, supported and not, with a verdict"
        )
    cuts = sorted({0.5, *(value for _, value in judged)}) if threshold is None else [threshold]
    best = max(cuts, key=lambda cut: _share(yes, cut) - _share(no, cut))
    supported, flagged = sum(value >= best for value in yes), sum(value < best for value in no)
    return SentenceCalibration(
        model=model,
        threshold=best,
        sentences=len(judged),
        unjudged=len(verdicts) - len(judged),
        supported_found=supported / len(yes),
        supported_interval=wilson_interval(supported, len(yes)),
        unsupported_found=flagged / len(no),
        unsupported_interval=wilson_interval(flagged, len(no)),
    )


def _share(values: Sequence[float], cut: float) -> float:
    return sum(value >= cut for value in values) / len(values)


def read_calibration(path: Path, model: str) -> SentenceCalibration:
    """Read a calibration file; raises ConfigError if it is of another model."""
    try:
        calibration = msgspec.json.decode(path.read_bytes(), type=SentenceCalibration)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path}: not a calibration: {error}; create one with judge calibrate --sentences"
        ) from None
    if calibration.model != model:
        raise ConfigError(f"{path}: calibrates {calibration.model!r}, not {model!r}; calibrate again")
    return calibration
