"""Score, Scorecard and Trial: what one reply is worth, component by component, the facts behind it, and their wording.

Only here do the facts of a score become a reason and the fields of a document.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from math import floor, fsum
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Failure, HarnessProblem, Reply

COMPONENTS = ("tool_usage", "response_quality", "error_handling")
DEFAULT_WEIGHTS: dict[str, float] = {"tool_usage": 0.40, "response_quality": 0.40, "error_handling": 0.20}
PASS_MARK = 0.70

# The letter grades with the lowest score of each, the best first; a lower score than all of them is an F.
GRADE_BOUNDS = (("A", 0.90), ("B", 0.80), ("C", 0.70), ("D", 0.60))
# Scores are compared to nine decimals: sums of floating-point numbers may end up below the exact value.
_HALF_UNIT = 5e-10


class KeywordMatch(msgspec.Struct, frozen=True, gc=False):
    """Whether, where and why one expected keyword was found in a reply."""

    keyword: str
    found: bool
    # Which rule decided: "substring", "number", "range", "date", "pattern", "smart:…" or "none".
    rule: str
    # Span of the matched text in the reply; None: nothing matched.
    start: int | None = None
    end: int | None = None
    # The matched text itself.
    text: str = ""
    why: str = ""


class ToolFacts(msgspec.Struct, frozen=True, omit_defaults=True, tag="tools"):
    """What tool usage was decided from."""

    # Expected tools that were not called, and called tools that were not expected.
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    # Forbidden tools that were called, and tools called although none should be.
    forbidden: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    # Whether the question expects a tool, and whether every call could be observed.
    expects_tools: bool = True
    observed: bool = True
    # Tools must not be called, none of them was seen, and calls could not be observed: nothing proves that none was called.
    absence_unproved: bool = False
    # Reported names that count as another: (reported, counted as).
    renamed: tuple[tuple[str, str], ...] = ()
    # How partial credit was given; "standard": none.
    mode: str = "standard"


class ExpectationNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """An expectation that is essential or computed."""

    # Its name in `found` and `missing`.
    keyword: str
    must: bool = False
    # What its value was computed from; empty: written by hand.
    expression: str = ""


class KeywordFacts(msgspec.Struct, frozen=True, omit_defaults=True, tag="keywords"):
    """What response quality was decided from."""

    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    # Where each keyword is; empty unless requested.
    matches: tuple[KeywordMatch, ...] = ()
    # Those that are essential or computed.
    notes: tuple[ExpectationNote, ...] = ()
    # Forbidden keywords that the reply says.
    forbidden: tuple[KeywordMatch, ...] = ()
    # Whether the reply conveys the reference answer; None: keywords decided.
    conveys_reference: bool | None = None
    # Whether the reply declines to answer a question that has no answer; None: the question has one.
    declined: bool | None = None
    # Of a question that has no answer: whether there is no reply at all, which does not decline.
    no_reply: bool = False
    # With a judge's share in response quality: the value by keywords alone, the judge's value and its reason.
    judged: "JudgedShare | None" = None


class JudgedShare(msgspec.Struct, frozen=True, omit_defaults=True):
    """A judge's part in response quality."""

    by_keywords: float | None = None
    by_judge: float | None = None
    reason: str = ""
    # Whether keywords have a share too.
    blended: bool = False


class ErrorFacts(msgspec.Struct, frozen=True, omit_defaults=True, tag="error"):
    """The error that error handling was decided from."""

    kind: str
    message: str
    # The words that decided, and their span in the reply; None: the target reported the error itself.
    because: tuple[str, ...] | None = None
    span: tuple[int, int] | None = None


class SuspectedFacts(msgspec.Struct, frozen=True, omit_defaults=True, tag="suspected"):
    """An error that the reply's text suggests and that is not certain enough to be charged."""

    kind: str
    # The words of the reply that raised the suspicion.
    words: str
    # How likely the reply is an error.
    probability: float
    # Span of the words in the reply.
    span: tuple[int, int] | None = None


class HarnessFacts(msgspec.Struct, frozen=True, omit_defaults=True, tag="harness"):
    """Why the harness could not score a reply; never charged to the chatbot."""

    problem: HarnessProblem
    message: str


class TurnFacts(msgspec.Struct, frozen=True, tag="turns"):
    """One component over the turns of a conversation."""

    turns: tuple["Score", ...]


Facts = ToolFacts | KeywordFacts | ErrorFacts | SuspectedFacts | HarnessFacts | TurnFacts


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """One component's or metric's value.

    Built-in components carry typed facts, which `model.reasons` puts into words where they are shown; other scorers
    and judges give their reason and details themselves.
    """

    name: str
    # None: it could not be scored. A component without a value leaves its reply without a score.
    value: float | None
    reason: str = ""
    # Its share of the total; None for a metric, which is reported beside the total.
    weight: float | None = None
    details: dict[str, Any] = {}
    facts: Facts | None = None

    @property
    def score(self) -> float | None:
        """The value, under its name in the run document."""
        return self.value


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """All scores of one reply; of a conversation, the mean of its turns with the turns beside it."""

    components: dict[str, Score]
    # None if a component that has a weight has no value: the reply is unscored as a whole.
    total: float | None
    grade: str | None
    passed: bool
    metrics: dict[str, float | None] = {}
    # Findings that are more than a number (claims, judge's reasons), by scorer's name.
    findings: dict[str, Any] = {}
    # The failure that counted: the target's own, or one that the text shows.
    error: Failure | None = None
    turns: tuple["Scorecard", ...] = ()

    @property
    def score(self) -> float | None:
        """The total, under the name that the run document has for it."""
        return self.total

    @property
    def suspected(self) -> SuspectedFacts | None:
        """The error that the reply is suspected of, which costs nothing."""
        score = self.components.get("error_handling")
        return score.facts if score is not None and isinstance(score.facts, SuspectedFacts) else None


# Of a reply that nothing has been said about yet.
UNSCORED = Scorecard(components={}, total=None, grade=None, passed=False)


def unscored_card(weights: Mapping[str, float], reason: str, problem: HarnessProblem) -> Scorecard:
    """The scorecard of a reply that the harness itself could not ask for or score: no component has a value."""
    facts = HarnessFacts(problem, reason)
    components = {name: Score(name, None, weight=weight, facts=facts) for name, weight in weights.items()}
    return Scorecard(components=components, total=None, grade=None, passed=False)


def harness_problem(card: Scorecard) -> str | None:
    """Which of its own problems the harness had with a reply that has no score; None: another reason."""
    for turn in card.turns or (card,):
        for score in turn.components.values():
            if score.value is None and score.weight and isinstance(score.facts, HarnessFacts):
                return score.facts.problem
    return None


def round_score(value: float) -> float:
    """A score as it is compared and shown: 0.4 + 0.3 + 0.2 is 0.9 and an A."""
    return round(value, 9)


def round_down(value: float, digits: int = 3) -> float:
    """A score rounded to `digits`, never rounded up into a better grade: 0.899999 is a B and must not read 0.900."""
    scale: int = 10**digits
    return floor(round(value, 9) * scale + 1e-6) / scale


def shown_score(score: float | None, digits: int = 3) -> str:
    """A score as it reads everywhere."""
    return "–" if score is None else f"{round_down(score, digits):.{digits}f}"


def lowest_score(bound: float) -> float:
    """The lowest score, not rounded, that reaches a bound; databases and arrays compare with this."""
    return bound - _HALF_UNIT


def highest_score(bound: float) -> float:
    """The highest score, not rounded, that does not exceed a bound; databases and arrays compare with this."""
    return bound + _HALF_UNIT


def passes(score: float | None, pass_mark: float) -> bool:
    """Whether a score reaches the pass mark; what could not be scored does not.

    >>> passes(0.4 + 0.3, 0.7), passes(0.699999, 0.7), passes(None, 0.7)
    (True, False, False)
    """
    return score is not None and score >= pass_mark - _HALF_UNIT


def fails_once(scores: Iterable[float | None], pass_mark: float) -> bool:
    """Whether one of the scores of a question is below the pass mark: a critical one fails by a single wrong reply.

    >>> fails_once([1.0, 1.0, 0.6], 0.7), fails_once([1.0, None], 0.7)
    (True, False)
    """
    return any(score is not None and not passes(score, pass_mark) for score in scores)


def letter_grade(score: float) -> str:
    """The letter for a score: 0.4 + 0.3 + 0.2 is an A, 0.899999 a B."""
    for letter, bound in GRADE_BOUNDS:
        if score >= bound - _HALF_UNIT:
            return letter
    return "F"


def mean_score(scores: Iterable[float | None]) -> float | None:
    """The score of a question over its trials: the mean of those that could be scored; None if none could."""
    if isinstance(scores, list) and len(scores) == 1:
        return None if scores[0] is None else round_score(scores[0])
    known = [score for score in scores if score is not None]
    return round_score(fsum(known) / len(known)) if known else None


def total(values: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """The weighted sum; None if a component with a weight has no value: left out, failing would pay."""
    weighed = 0.0
    for name, weight in weights.items():
        value = values.get(name)
        if value is not None:
            weighed += weight * value
        elif weight:
            return None
    return round_score(weighed)


# Trial: one question asked once, from plan to scorecard; and ScoreBatch: scores column by column.


# The number of a trial from a log whose row has none, until the whole log is known.
UNNUMBERED = -1


class RowOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in a log a trial comes from."""

    # Line or row of its file; None: the format has none.
    line: int | None = None
    # Other columns of the row that the user asked to keep.
    columns: dict[str, Any] = {}


class Trial(msgspec.Struct, frozen=True):
    """One question asked once. Planned, it has no reply yet; asked, its replies; scored, its scorecard too."""

    question: Question
    # 1 for the first time that a run asks the question.
    number: int = 1
    # The question's place in the set, by which results are kept in order.
    position: int = 0
    # One for each turn that was reached; a plain question has one.
    replies: tuple[Reply, ...] = ()
    scorecard: Scorecard = UNSCORED
    # Index of the chatbot that is asked, in a run that asks several.
    arm: int = 0
    # None: it was asked live.
    origin: RowOrigin | None = None

    def answered(self, replies: tuple[Reply, ...]) -> "Trial":
        """The same trial, now asked."""
        return Trial(
            self.question, self.number, self.position, replies, self.scorecard, self.arm, self.origin
        )

    def scored(self, scorecard: Scorecard) -> "Trial":
        """The same trial, now scored."""
        return Trial(
            self.question, self.number, self.position, self.replies, scorecard, self.arm, self.origin
        )

    @property
    def reply(self) -> Reply:
        """The last reply, which is the only one of a plain question; a null reply where none was reached."""
        return self.replies[-1] if self.replies else Reply()

    # What the run document has of a result, under its names.

    @property
    def id(self) -> str:
        """The question's id."""
        return self.question.id

    @property
    def trial(self) -> int:
        """Which time of asking this is, from 1."""
        return self.number

    @property
    def category(self) -> str:
        """The question's category."""
        return self.question.category

    @property
    def score(self) -> float | None:
        """What the reply is worth; None if it could not be scored."""
        return self.scorecard.total

    @property
    def grade(self) -> str | None:
        """The letter for the score."""
        return self.scorecard.grade

    @property
    def passed(self) -> bool:
        """Whether it reached the pass mark."""
        return self.scorecard.passed

    @property
    def components(self) -> dict[str, Score]:
        """The components of the score, each with its reason."""

        return {name: worded(score) for name, score in self.scorecard.components.items()}

    @property
    def metrics(self) -> dict[str, float | None]:
        """What is reported beside the score."""
        return self.scorecard.metrics

    @property
    def error(self) -> Failure | None:
        """What went wrong: the charged failure, or else the one that the target reported."""
        seen = (reply.failure for reply in self.replies if reply.failure is not None)
        return self.scorecard.error or next(seen, None)

    def __repr__(self) -> str:
        score = "unscored" if self.score is None else f"{shown_score(self.score)} {self.grade}"
        return f"<Trial {self.id!r}: {score}>"

    @property
    def latency_ms(self) -> float | None:
        """Time the chatbot took over all turns."""
        return total_latency(self.replies)

    @property
    def cost(self) -> float | None:
        """What its replies cost together; None if that is not known of one that was answered."""
        if len(self.replies) == 1:
            return None if self.replies[0].usage is None else self.replies[0].usage.cost
        costs = [None if reply.usage is None else reply.usage.cost for reply in self.replies]
        unknown = any(
            cost is None and reply.failure is None for cost, reply in zip(costs, self.replies, strict=True)
        )
        known = [cost for cost in costs if cost is not None]
        return fsum(known) if known and not unknown else None


def trials_by_question(results: Iterable[Trial]) -> Iterator[list[Trial]]:
    """The trials of each question; those of one question come one after the other."""
    for _, trials in groupby(results, key=attrgetter("question.id")):
        yield list(trials)


def total_latency(replies: Sequence[Reply]) -> float | None:
    """Milliseconds that replies took together; None if none was timed."""
    if len(replies) == 1:
        return replies[0].timings.latency_ms
    taken = [reply.timings.latency_ms for reply in replies if reply.timings.latency_ms is not None]
    return fsum(taken) if taken else None


class ScoreBatch(NamedTuple):
    """Some trials, column by column, grouped by question. A missing value is None, or NaN in an array."""

    ids: Sequence[str]
    # 16 bytes each.
    content_hashes: Sequence[bytes]
    categories: Sequence[str]
    scores: Sequence[float | None]
    error_kinds: Sequence[str | None]
    latencies_ms: Sequence[float | None]
    costs: Sequence[float | None]
    components: Mapping[str, Sequence[float | None]]
    metrics: Mapping[str, Sequence[float | None]]


def reason(score: Score) -> str:
    """Why a score has its value, in words.

    >>> reason(Score("response_quality", 0.5, facts=KeywordFacts(found=("900",), missing=("CO",))))
    '1 of 2 keywords found; missing CO'
    """
    facts = score.facts
    if score.reason or facts is None:
        return score.reason
    if isinstance(facts, ToolFacts):
        return _tool_reason(facts, score.value)
    if isinstance(facts, KeywordFacts):
        return _quality_reason(facts)
    if isinstance(facts, ErrorFacts):
        # The message is in the reply's own words unless a tool or the form as a whole is to blame.
        quoted = facts.span is not None and facts.kind != "tool"
        return f"{facts.kind}: '{facts.message}'" if quoted else f"{facts.kind}: {facts.message}"
    if isinstance(facts, SuspectedFacts):
        return f"no error; suspected {facts.kind} ({facts.probability:.0%}): '{facts.words}'"
    if isinstance(facts, HarnessFacts):
        return facts.message
    lost = [f"turn {number}: {reason(turn)}" for number, turn in _numbered(facts) if turn.value != 1.0]
    return "; ".join(lost) or reason(facts.turns[0])


def details(score: Score, convert: Callable[[Any], Any] = msgspec.to_builtins) -> dict[str, Any]:
    """What a document lists of a score beside its value, weight and reason; `convert` is applied to structs in it."""
    facts = score.facts
    if facts is None:
        return score.details
    if isinstance(facts, ToolFacts):
        listed: dict[str, Any] = {"missing": list(facts.missing), "extra": list(facts.extra)}
        if facts.forbidden:
            listed["forbidden"] = list(facts.forbidden)
    elif isinstance(facts, KeywordFacts):
        listed = _quality_details(facts, convert)
    elif isinstance(facts, ErrorFacts):
        listed = {"kind": facts.kind, "message": facts.message}
        if facts.because is not None:
            listed |= {"because": list(facts.because), "span": facts.span and list(facts.span)}
    elif isinstance(facts, SuspectedFacts):
        suspected = {"kind": facts.kind, "words": facts.words, "probability": facts.probability}
        listed = {"suspected": {**suspected, "span": facts.span and list(facts.span)}}
    elif isinstance(facts, HarnessFacts):
        listed = {"unscored": facts.message, "harness": facts.problem}
    else:
        listed = _joined(details(turn) for turn in facts.turns)
    return {**listed, **score.details} if score.details else listed


def worded(score: Score) -> Score:
    """The same score with its reason and details filled in, for readers outside."""
    if score.facts is None:
        return score
    return Score(score.name, score.value, reason(score), score.weight, details(score), score.facts)


def worded_card(card: Scorecard) -> Scorecard:
    """The same scorecard with every reason filled in."""
    return msgspec.structs.replace(
        card,
        components={name: worded(score) for name, score in card.components.items()},
        turns=tuple(map(worded_card, card.turns)),
    )


# Few findings make up all tool usage.
@lru_cache(maxsize=1000)
def _tool_reason(facts: ToolFacts, value: float | None) -> str:
    renamed = "; ".join(f"{reported} counts as {name}" for reported, name in facts.renamed)
    words = _tool_words(facts, value)
    return f"{words} ({renamed})" if renamed else words


def _tool_words(facts: ToolFacts, value: float | None) -> str:
    if facts.unwanted:
        return f"called {_names(facts.unwanted)} where no tool should be used"
    if facts.forbidden:
        return f"called {_names(facts.forbidden)}, which is forbidden"
    if facts.absence_unproved and not facts.missing:
        return "tool calls were not observed: whether a forbidden tool was called is unknown"
    if not facts.expects_tools:
        return "no tool expected"
    if facts.missing:
        unseen = "" if facts.observed else " (tool calls were not observed)"
        instead = f"; called {_names(facts.extra)}" if facts.extra else ""
        words = f"did not call {_names(facts.missing)}{unseen}{instead}"
    else:
        words = "called every expected tool"
    return words if facts.mode == "standard" else f"{words}; {facts.mode} credit {value or 0.0:.2f}"


def _quality_reason(facts: KeywordFacts) -> str:
    words = _keyword_reason(facts)
    judged = facts.judged
    if judged is None:
        return words
    if judged.by_judge is None:
        return f"not judged: {judged.reason}"
    return f"judge: {judged.reason}; {words}" if judged.blended else f"judge: {judged.reason}"


# Of a question without an answer: why it failed, with and without a reply. A greeting or a question back states no answer.
_UNDECLINED = ("does not decline, although there is no answer", "there is no reply")


def _keyword_reason(facts: KeywordFacts) -> str:
    if facts.forbidden:
        return f"says {_names(match.keyword for match in facts.forbidden)}, which is forbidden"
    if facts.conveys_reference is not None:
        verb = "conveys" if facts.conveys_reference else "does not convey"
        return f"{verb} the reference answer (no keyword is expected, so it was matched by smart)"
    expected = len(facts.found) + len(facts.missing)
    if facts.declined is not None:
        words = "says that it is not known" if facts.declined else _UNDECLINED[facts.no_reply]
        return f"{words}; {_found_words(facts)}" if expected else words
    if not expected:
        return "no keyword expected"
    essential = [note.keyword for note in facts.notes if note.must and note.keyword in facts.missing]
    if essential:
        verb = "is" if len(essential) == 1 else "are"
        return f"missing {_names(marked_computed(essential, facts))}, which {verb} essential"
    return _found_words(facts)


def _found_words(facts: KeywordFacts) -> str:
    words = f"{len(facts.found)} of {len(facts.found) + len(facts.missing)} keywords found"
    return f"{words}; missing {_names(marked_computed(facts.missing, facts))}" if facts.missing else words


def marked_computed(names: Iterable[str], facts: KeywordFacts) -> list[str]:
    """Names of expectations, those with a computed value marked: "3960 (computed)"."""
    if not facts.notes:
        return list(names)
    computed = {note.keyword for note in facts.notes if note.expression}
    return [f"{name} (computed)" if name in computed else name for name in names]


def _quality_details(facts: KeywordFacts, convert: Callable[[Any], Any]) -> dict[str, Any]:
    names = [match.keyword for match in facts.matches] or [*facts.found, *facts.missing]
    listed: dict[str, Any] = {
        "found": list(facts.found),
        "missing": list(facts.missing),
        "expected": _expected(names, facts) if facts.notes else [{"keyword": name} for name in names],
        "matches": [convert(match) for match in facts.matches],
    }
    if facts.declined is not None:
        listed["declined"] = facts.declined
    if facts.forbidden:
        listed["forbidden"] = [match.keyword for match in facts.forbidden]
        listed["forbidden_matches"] = [convert(match) for match in facts.forbidden]
    if facts.judged is not None:
        listed["keywords"], listed["judge"] = facts.judged.by_keywords, facts.judged.by_judge
    return listed


def _expected(names: Iterable[str], facts: KeywordFacts) -> list[dict[str, Any]]:
    """The expectations, with what is essential or computed."""
    notes = {note.keyword: note for note in facts.notes}
    listed: list[dict[str, Any]] = []
    for name in names:
        note = notes.get(name, ExpectationNote(name))
        must = {"must": True} if note.must else {}
        computed = {"computed": True, "expression": note.expression} if note.expression else {}
        listed.append({"keyword": name, **must, **computed})
    return listed


def _numbered(facts: TurnFacts) -> Iterable[tuple[int, Score]]:
    return enumerate(facts.turns, start=1)


def _joined(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The turns' lists of names, one after the other; spans stay with their turn."""
    joined: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                joined.setdefault(name, []).extend(value)
    return joined


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)
