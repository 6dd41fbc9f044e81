"""Why questions lost points: the first stage that differs, and groups of questions with one cause.

The stage is the first that differs from a better reply to the same question, or from the key. A stage counts only if what the
reply should say is absent from what that stage handed on: arguments that differ although the facts were in the result are not
a cause. Where the evidence for that is missing, the stage is `unobserved`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb
from typing import Any, cast, get_args

import msgspec

from answerkey.match.keywords import find_keywords, is_number
from answerkey.model.comparison import Cause, Causes, FactKind, Group, Stage
from answerkey.model.question import (
    UNCATEGORISED,
    DateExpectation,
    Expectation,
    PatternExpectation,
    Question,
    describe_expectation,
    expected_options,
)
from answerkey.model.reply import Failure, Reply, ToolCall, result_digest
from answerkey.model.run import Run
from answerkey.model.scorecard import (
    KeywordFacts,
    Scorecard,
    ToolFacts,
    Trial,
    mean_score,
    round_score,
)
from answerkey.stats.intervals import FaultRates
from answerkey.text.normalise import MatchMode
from answerkey.text.patterns import lazy

# A group is "about" a category if at least this share of its questions is of it, and fewer of all questions are.
_MOSTLY = 0.8
_ORDER: tuple[Stage, ...] = get_args(Stage)
# A share of repeats that shows a fault is another one in the other version if chance is rarer than this.
_ALPHA = 0.05
# The same for all faults of a question together, by the rates of faults of the other version's questions.
_RARE = 0.01
NOISE = Cause(stage="noise", compared=True)
_NO_TOOLS = ToolFacts(expects_tools=False)
_NO_KEYWORDS = KeywordFacts()


class Exchange(msgspec.Struct, frozen=True):
    """One turn of a trial: what was asked, replied, and scored, and the calls and sources up to it."""

    question: Question
    reply: Reply
    card: Scorecard
    # This turn's and the earlier ones'.
    replies: tuple[Reply, ...]

    @property
    def tools(self) -> ToolFacts:
        """What tool usage was decided from."""
        score = self.card.components.get("tool_usage")
        return score.facts if score is not None and isinstance(score.facts, ToolFacts) else _NO_TOOLS

    @property
    def keywords(self) -> KeywordFacts:
        """What response quality was decided from."""
        score = self.card.components.get("response_quality")
        return score.facts if score is not None and isinstance(score.facts, KeywordFacts) else _NO_KEYWORDS

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.reply.tool_calls

    @property
    def results_seen(self) -> bool:
        """Whether what the tools returned is known: of every call, and of every call that was made."""
        replies = self.replies
        return all(reply.evidence.tools_observed for reply in replies) and all(
            call.result_seen or call.error is not None for reply in replies for call in reply.tool_calls
        )

    @property
    def passed_on(self) -> str:
        """Everything that the tools and the retriever handed on, and the question, as one text."""
        parts: list[str] = [self.question.question, self.question.context or ""]
        for reply in self.replies:
            for call in reply.tool_calls:
                parts += _leaves(call.result)
            for source in reply.sources:
                parts += [source.title or "", source.text or "", *_leaves(source.metadata)]
        return "\n".join(parts)


def exchanges(trial: Trial) -> list[Exchange]:
    """The turns of a trial that were reached; of a plain question, the question itself."""
    cards = trial.scorecard.turns or (trial.scorecard,)
    replies = trial.replies or (Reply(),)
    asks = trial.question.asks
    return [
        Exchange(ask, replies[at] if at < len(replies) else Reply(), card, replies[: at + 1])
        for at, (ask, card) in enumerate(zip(asks, cards, strict=False))
    ]


def own_cause(trial: Trial, mode: MatchMode = "standard") -> Cause | None:
    """Why a trial lost points, by its own evidence; None if it lost none or could not be scored."""
    for exchange in exchanges(trial):
        if exchange.card.total is not None and exchange.card.total < 1.0:
            return _first_fault(exchange, None, mode)
    return None


# Causes of one question, the main one first, with the share of its lost points that each has; the shares add up to 1.
Shares = list[tuple[Cause, float]]


def causes_of_change(
    worse: Sequence[Trial],
    better: Sequence[Trial],
    mode: MatchMode = "standard",
    *,
    rescored: bool = False,
    rates: FaultRates | None = None,
) -> Shares:
    """Why one version's trials of a question score lower than the other's: the causes of its trials.

    What the better version loses by the same cause is not part of the difference.

    Args:
        worse: The trials of the version with the lower mean.
        better: Those of the other version.
        mode: How expectations are found in tool results.
        rescored: The two runs were scored differently.
        rates: How often replies of the better version have faults, where that is known from repeats.
    """
    reference = max(better, key=lambda trial: trial.score or 0.0)
    faults = [_fault_against(trial, reference, mode, rescored=rescored) for trial in worse]
    before = [_fault_against(trial, reference, mode, rescored=rescored) for trial in better]
    main = _main_cause(faults, before, rates)
    if main == NOISE:
        return [(NOISE, 1.0)]
    losses, usual = _losses(worse, faults, reference), _losses(better, before, reference)
    return _shares(
        main, {signature: loss - usual.get(signature, 0.0) for signature, loss in losses.items()}, faults
    )


def _losses(trials: Sequence[Trial], faults: Sequence[Cause | None], reference: Trial) -> dict[Cause, float]:
    """Signature → what trials with this fault lose against a better one, as a mean of all trials."""
    losses: dict[Cause, float] = {}
    for trial, fault in zip(trials, faults, strict=True):
        if fault is not None:
            lost = (reference.score or 0.0) - (trial.score or 0.0)
            losses[fault.signature] = losses.get(fault.signature, 0.0) + lost / len(trials)
    return losses


def _shares(main: Cause, losses: Mapping[Cause, float], faults: Iterable[Cause | None]) -> Shares:
    """The share that each cause has of what all of them lost; the main one is first."""
    causes = {fault.signature: fault for fault in reversed(list(faults)) if fault is not None}
    parts = {signature: loss for signature, loss in losses.items() if loss > 0}
    total = sum(parts.values())
    if not total:
        return [(main, 1.0)]
    ordered = sorted(parts, key=lambda signature: (signature != main.signature, -parts[signature]))
    return [
        (main if signature == main.signature else causes[signature], parts[signature] / total)
        for signature in ordered
    ]


def _main_cause(
    faults: Sequence[Cause | None], before: Sequence[Cause | None], rates: FaultRates | None
) -> Cause:
    """The cause at the first stage that differs more often than chance allows."""
    found = [fault for fault in faults if fault is not None]
    if not found:
        return NOISE
    counts, counts_before = _stage_counts(faults), _stage_counts(before)
    for stage in sorted(counts, key=_ORDER.index):
        if _separated(counts[stage], len(faults), counts_before[stage], len(before)):
            return next(fault for fault in found if fault.stage == stage)
    ill, of, ill_before, of_before = len(found), len(faults), counts_before.total(), len(before)
    is_rare = rates is not None and rates.chance(ill, of, ill_before, of_before) <= _RARE
    if is_rare or _separated(ill, of, ill_before, of_before):
        # No stage is alone responsible; the most frequent one is named.
        stage = counts.most_common(1)[0][0]
        return next(fault for fault in found if fault.stage == stage)
    return NOISE


def _stage_counts(faults: Iterable[Cause | None]) -> Counter[Stage]:
    return Counter(fault.stage for fault in faults if fault is not None)


def _separated(faults: int, trials: int, before: int, trials_before: int) -> bool:
    """Whether a fault belongs to one version: always there and never in the other, or Fisher's exact test says so."""
    if faults == trials and before == 0:
        return True
    every, total = trials + trials_before, faults + before
    tail = sum(
        comb(trials, k) * comb(trials_before, total - k)
        for k in range(faults, min(trials, total) + 1)
        if total - k <= trials_before
    )
    return tail / comb(every, total) <= _ALPHA


def _fault_against(trial: Trial, reference: Trial, mode: MatchMode, *, rescored: bool) -> Cause | None:
    """The first stage at which a trial falls behind a better one; None if it does not."""
    if (trial.score or 0.0) >= round_score(reference.score or 0.0):
        return None
    pairs = list(zip(exchanges(trial), exchanges(reference), strict=False))
    for worse, better in pairs:
        if (worse.card.total or 0.0) < (better.card.total or 0.0):
            return _first_fault(worse, better, mode, rescored=rescored)
    return _first_fault(*pairs[-1], mode, rescored=rescored) if pairs else None


def _first_fault(
    worse: Exchange, better: Exchange | None, mode: MatchMode, *, rescored: bool = False
) -> Cause:
    compared = better is not None
    lost = _lost_facts(worse, better)
    if better is not None and (edited := _key_change(worse, better, lost)) is not None:
        return edited
    error = worse.card.error
    if error is not None and (better is None or better.card.error is None):
        failed = next((call.name for call in worse.calls if call.error is not None), "")
        return Cause(
            stage="error",
            error=error.kind,
            tool=failed,
            after_tools=bool(worse.calls),
            status=_http_status(error),
            compared=compared,
        )
    if (tools := _tool_fault(worse, better)) is not None:
        return tools
    if (lower := _lower(worse, better, "response_quality")) and lost:
        return _fact_fault(worse, better, lost, mode)
    if lower and (said := _text_fault(worse, better)) is not None:
        return said
    stage: Stage = "key" if rescored else "judge"
    if better is not None and stage == "judge" and worse.reply.text != better.reply.text:
        return Cause(stage="text", kind="score", compared=True)
    return Cause(stage=stage, kind="score", compared=compared)


_STATUS = lazy(r"HTTP (\d{3})\b")


def _http_status(error: Failure) -> str:
    found = _STATUS.match(error.message) if error.kind == "http" else None
    return "" if found is None else found[1]


# The key.


def _key_change(worse: Exchange, better: Exchange, lost: Sequence[str]) -> Cause | None:
    """An expectation that only the worse reply's key has, if the points were lost by it."""
    if worse.question.content_hash == better.question.content_hash:
        return None
    known = {*better.keywords.found, *better.keywords.missing}
    new = tuple(name for name in lost if name not in known)
    tools = {tool.name for tool in better.question.expected_tools}
    new_tools = tuple(name for name in worse.tools.missing if name not in tools)
    forbidden = set(worse.tools.forbidden) - set(better.question.forbidden_tools)
    if not (new or new_tools or forbidden):
        return None
    same_definition = worse.question.definition_hash == better.question.definition_hash
    return Cause(
        stage="truth" if same_definition else "key",
        facts=(*new, *new_tools, *sorted(forbidden)),
        compared=True,
    )


# Tools.


def _tool_fault(worse: Exchange, better: Exchange | None) -> Cause | None:
    if not _lower(worse, better, "tool_usage"):
        return None
    facts, compared = worse.tools, better is not None
    wrong = facts.unwanted or facts.forbidden
    if wrong:
        return Cause(stage="tools", tool=wrong[0], unwanted=True, compared=compared)
    other = () if better is None else better.tools.missing
    missing = [name for name in facts.missing if name not in other] or list(facts.missing)
    if not missing:
        return None
    if not facts.observed and missing[0] not in worse.reply.tools_used:
        return Cause(stage="unobserved", unseen="tool calls were", compared=compared)
    return Cause(stage="tools", tool=missing[0], instead=facts.extra, compared=compared)


# What the reply should say.


def _lost_facts(worse: Exchange, better: Exchange | None) -> tuple[str, ...]:
    also_missing = set() if better is None else set(better.keywords.missing)
    return tuple(name for name in worse.keywords.missing if name not in also_missing)


def _fact_fault(worse: Exchange, better: Exchange | None, lost: Sequence[str], mode: MatchMode) -> Cause:
    """Which stage the missing facts were lost at: in the text, if the tools handed all of them on."""
    compared = better is not None
    expected = {describe_expectation(one): one for one in worse.question.expected_keywords}
    wanted = [expected[name] for name in lost if name in expected]
    common: dict[str, Any] = {"facts": tuple(lost), "kind": _kind(wanted), "compared": compared}
    last = worse.calls[-1].name if worse.calls else ""
    absent = _absent(wanted, worse.passed_on, mode)
    if not absent:
        return Cause(stage="text", tool=last, **common)
    if better is not None and not any(map(_is_value, absent)):
        # Words that no tool handed on in the better version either are of its own wording.
        absent = [one for one in absent if one not in _absent(absent, better.passed_on, mode)]
    if not absent or _is_same_evidence(worse, better):
        return Cause(stage="text", **common)
    if better is None and not worse.results_seen:
        # What tools handed on is unknown; that the reply lacks it is not.
        return Cause(stage="text", **common)
    if not worse.results_seen:
        what = "tool calls were" if not worse.calls else "results of tool calls were"
        return Cause(stage="unobserved", unseen=what, **common)
    if better is None:
        # Without calls there is nothing but the text to blame.
        return Cause(stage="tool_results" if last else "text", tool=last, **common)
    if not better.results_seen:
        return Cause(stage="unobserved", unseen="results of the other version's tool calls were", **common)
    return _calls_fault(worse, better, common)


def _calls_fault(worse: Exchange, better: Exchange, common: dict[str, Any]) -> Cause:
    """The first difference between the calls of two replies, of which the worse one did not get the facts."""
    if worse.reply.tools_used != better.reply.tools_used:
        had, has = Counter(better.reply.tools_used), Counter(worse.reply.tools_used)
        fewer, more = list(had - has), list(has - had)
        # Repeating a call, or making another one first, is the same choice of tools.
        if fewer and fewer[0] not in has:
            return Cause(stage="tools", tool=fewer[0], instead=tuple(more), **common)
    for mine, other in zip(worse.calls, better.calls, strict=False):
        if mine.name == other.name and _arguments(mine) != _arguments(other):
            return Cause(stage="arguments", tool=mine.name, arguments=_differing(mine, other), **common)
        if result_digest(mine) != result_digest(other) or mine.error != other.error:
            return Cause(stage="tool_results", tool=mine.name, **common)
    if len(worse.calls) != len(better.calls):
        last = (worse.calls or better.calls)[-1].name
        return Cause(stage="arguments", tool=last, **common)
    return Cause(stage="text", **common)


def _is_same_evidence(worse: Exchange, better: Exchange | None) -> bool:
    """Whether both replies rest on the same calls as far as seen, results included."""
    seen = worse.results_seen and better is not None and better.results_seen
    return seen and better is not None and bool(worse.calls) and _made(worse) == _made(better)


def _made(exchange: Exchange) -> list[tuple[str, Any, str | None, str | None]]:
    """The calls without ids and times."""
    return [(call.name, _arguments(call), result_digest(call), call.error) for call in exchange.calls]


def _text_fault(worse: Exchange, better: Exchange | None) -> Cause | None:
    """What the text says that it must not, or does not convey."""
    facts, compared = worse.keywords, better is not None
    kind: FactKind = ""
    if facts.forbidden:
        kind = "forbidden"
    elif facts.declined is False:
        kind = "declining"
    elif facts.conveys_reference is False:
        kind = "answer"
    if not kind:
        return None
    same_text = better is not None and worse.reply.text == better.reply.text
    if same_text and facts.judged is not None:
        return None
    calls_seen = worse.results_seen and (better is None or better.results_seen)
    if better is not None and calls_seen and worse.calls and kind != "declining":
        found = _calls_fault(worse, better, {"kind": kind, "compared": True})
        # Other calls with the same results have handed on the same.
        results = [[result_digest(call) for call in one.calls] for one in (worse, better)]
        if found.stage != "text" and results[0] != results[1]:
            return found
    if not calls_seen and kind == "answer":
        return Cause(stage="unobserved", unseen="results of tool calls were", kind=kind, compared=compared)
    return Cause(stage="text", kind=kind, compared=compared)


def _absent(expected: Sequence[Expectation], text: str, mode: MatchMode) -> list[Expectation]:
    """The expectations that the evidence does not contain."""
    found = find_keywords(expected, text, "standard" if mode == "literal" else mode)
    return [one for one, match in zip(expected, found, strict=True) if not match.found]


def _kind(expected: Sequence[Expectation]) -> FactKind:
    """The kind of the first missing fact that is a number or date, else of the first one."""
    kinds = [_kind_of(one) for one in expected]
    return next((kind for kind in ("number", "date") if kind in kinds), kinds[0] if kinds else "text")


def _is_value(one: Expectation) -> bool:
    """Whether it is a number or a date, or a pattern with one, which may be computed from what the tools handed on."""
    kind = _kind_of(one)
    return kind in ("number", "date") or (
        kind == "pattern" and any(map(str.isdigit, describe_expectation(one)))
    )


def _kind_of(one: Expectation) -> FactKind:
    if is_number(one):
        return "number"
    options = expected_options(one)
    if all(isinstance(option, DateExpectation) for option in options):
        return "date"
    return "pattern" if all(isinstance(option, PatternExpectation) for option in options) else "text"


# Parts of replies.


def _lower(worse: Exchange, better: Exchange | None, component: str) -> bool:
    """Whether a component has a lower value than in the better reply, or than it could have."""
    mine = worse.card.components.get(component)
    if mine is None or not mine.weight or mine.value is None:
        return False
    other = 1.0 if better is None else _value(better, component)
    return mine.value < other


def _value(exchange: Exchange, component: str) -> float:
    score = exchange.card.components.get(component)
    return 1.0 if score is None or score.value is None else score.value


def _arguments(call: ToolCall) -> Any:
    return call.arguments if call.arguments is not None else call.arguments_text


def _differing(mine: ToolCall, other: ToolCall) -> tuple[str, ...]:
    if mine.arguments is None or other.arguments is None:
        return ()
    first, second = mine.arguments, other.arguments
    return tuple(sorted(name for name in {*first, *second} if first.get(name) != second.get(name)))


def _leaves(value: Any) -> Iterator[str]:
    """The texts and numbers of a JSON value."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack += [*item.values()][::-1]
        elif isinstance(item, list | tuple):
            stack += item[::-1]
        elif item is not None:
            yield item if isinstance(item, str) else f"{cast('object', item)}"


# Groups.


class _Members(msgspec.Struct):
    """The questions of a signature so far."""

    ids: list[str]
    categories: Counter[str]
    # Sum of score differences.
    total: float
    # Of the question that lost most.
    most: float
    example: str
    because: str


class Grouping:
    """Groups of causes, one question at a time: memory is a reference for each question that lost or gained points."""

    def __init__(self, categories: Mapping[str, int] | None = None) -> None:
        self._members: dict[tuple[Cause, bool], _Members] = {}
        # Category → all of its questions, where they are known beforehand; otherwise `see` counts them.
        self._categories = Counter(categories or {})

    def see(self, question: Question) -> None:
        """Count a question, whether it lost points or not."""
        self._categories[question.category] += 1

    def add(self, question: Question, shares: Shares, difference: float) -> None:
        """Add a question with the change of its score, divided among its causes."""
        for cause, share in shares:
            self._add(question, cause, difference * share)

    def _add(self, question: Question, cause: Cause, difference: float) -> None:
        """Losses and gains are different groups."""
        key = (cause.signature, difference < 0)
        members = self._members.get(key)
        if members is None:
            members = self._members[key] = _Members([], Counter(), 0.0, 0.0, question.id, cause.words)
        members.ids.append(question.id)
        members.categories[question.category] += 1
        members.total += difference
        if abs(difference) > members.most:
            members.most, members.example, members.because = abs(difference), question.id, cause.words

    def add_trials(self, trials: Sequence[Trial], mode: MatchMode) -> float | None:
        """Add a question of one run, each trial by its own cause; returns its score, None if it could not be scored."""
        score = mean_score([trial.scorecard.total for trial in trials])
        if score is None:
            return None
        self.see(trials[0].question)
        if score < 1.0:
            losses: dict[Cause, float] = {}
            # The worst trial names the main cause.
            faults = []
            for trial in sorted(trials, key=lambda trial: 1.0 if trial.score is None else trial.score):
                if trial.score is not None and (cause := own_cause(trial, mode)) is not None:
                    faults.append(cause)
                    losses[cause.signature] = losses.get(cause.signature, 0.0) + 1.0 - trial.score
            if faults:
                self.add(trials[0].question, _shares(faults[0], losses, faults), score - 1.0)
        return score

    @property
    def questions(self) -> int:
        """The number of questions, those without a change included."""
        return self._categories.total()

    def groups(self) -> tuple[Group, ...]:
        """The groups: losses, the largest first, then gains."""
        scale = 100.0 / max(1, self.questions)
        found = [
            Group(
                signature=signature,
                about=self._about(members),
                ids=tuple(members.ids),
                points=round(members.total * scale, 6),
                example=members.example,
                because=members.because,
            )
            for (signature, _), members in self._members.items()
        ]
        return tuple(sorted(found, key=lambda group: (group.points > 0, -abs(group.points), group.words)))

    def _about(self, members: _Members) -> str:
        """The category of most of a group's questions, if that says something."""
        [(category, number)] = members.categories.most_common(1)
        of_all = self._categories[category] / max(1, self.questions)
        says = number >= 2 and number >= _MOSTLY * len(members.ids) and of_all < _MOSTLY
        return category if says and category != UNCATEGORISED else ""


def causes(run: Run) -> Causes:
    """Say why one run lost points: groups with their counts and costs, largest first, and slices worse than the rest.

    The results are read once, question by question; pages and reports show the groups' `words`, `ids` and `points`.

    Args:
        run: Any run, e.g. `store.load_run(info)`.
    """
    import numpy as np  # only comparisons and slices need it

    from answerkey.comparison.columns import find_slices

    grouping = Grouping()
    questions: list[Question] = []
    scores: list[float] = []
    for trials in run.by_question():
        score = grouping.add_trials(trials, run.info.options.scoring.match)
        if score is not None:
            questions.append(slim_question(trials[0].question))
            scores.append(score)
    values = np.array(scores)
    return Causes(
        lost=round(100.0 * float((1.0 - values).mean()), 6) if scores else 0.0,
        questions=int(np.count_nonzero(values < 1.0)),
        groups=grouping.groups(),
        slices=find_slices(questions, values) if scores else (),
    )


def slim_question(question: Question) -> Question:
    """A question with what slices need of it."""
    return Question(
        id=question.id,
        question=question.question,
        category=question.category,
        expected_tools=question.expected_tools,
        group=question.group,
        persona=question.persona,
        tags=question.tags,
        turns=question.turns,
        metadata=question.metadata,
    )
