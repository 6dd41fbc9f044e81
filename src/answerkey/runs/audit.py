"""`audit`: tests the answer key itself.

Two questions: what do trivial baseline bots score (the floor), and would a wrong reply pass (the strength)? A set with a high
floor or a low strength measures little, whatever its chatbots score.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import fsum
from random import Random
from typing import Any

import msgspec

from answerkey.config import Settings, load_settings
from answerkey.datasets.expectations import expectation_value
from answerkey.evidence.records import Fact, facts_of
from answerkey.golden.wrong_replies import (
    APART,
    BOTS,
    COUNTED,
    BaselineBot,
    BaselineBots,
    Family,
    Mutant,
    baseline_reply,
    wrong_replies,
)
from answerkey.match.keywords import find_keywords
from answerkey.model.options import Scoring
from answerkey.model.question import (
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    Question,
    QuestionSet,
    TextExpectation,
    describe_expectation,
    group_of,
    is_essential,
)
from answerkey.model.reply import JsonObject, Reply
from answerkey.model.run import GateResult, KeyFloor, KeyQuality, KeyStrength, Run
from answerkey.model.scorecard import Scorecard, Trial, details, round_score, total
from answerkey.runs.context import QuestionsLike, golden_set, with_truth
from answerkey.scorers.grader import Grader, make_grader
from answerkey.stats.intervals import mean_interval
from answerkey.text.normalise import one_line
from answerkey.text.numbers import parse_number

# Keywords listed in a reason.
_MOST_KEYWORDS = 8
# Right replies of a question that a proposal is tried on.
_MOST_RIGHT = 20


class BotScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a bot on the whole set."""

    name: str
    # What it does, in words.
    description: str
    score: float
    # Ids of the questions that it passes.
    passed: tuple[str, ...]
    # Whether it counts for the floor.
    knows_nothing: bool


class QuestionFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The best score of a baseline bot on a question."""

    id: str
    floor: float
    # The bot with that score, and the reasons.
    bot: str
    because: str
    passed: bool


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """What trivial bots score on a set."""

    bots: tuple[BotScore, ...]
    questions: tuple[QuestionFloor, ...]

    @property
    def value(self) -> float:
        """The best mean score of a bot that knows nothing."""
        return self.best.score

    @property
    def best(self) -> BotScore:
        """The bot with the best mean score among those that know nothing."""
        return max((bot for bot in self.bots if bot.knows_nothing), key=lambda bot: bot.score)


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one question, or of one turn of a conversation."""

    # In words.
    change: str
    # The changed fields as they are written in a golden set.
    fields: JsonObject
    # Wrong replies that pass now and would not any more.
    gain: int
    # Right replies that pass now and would not any more.
    right_replies_lost: int
    # The turn with its changed key, and which turn of the conversation it is.
    turn: Question
    turn_index: int = 0


class Survivor(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong reply that passes."""

    family: Family
    operator: str
    reply: str
    score: float


class FamilyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one family of wrong replies."""

    name: Family
    mutants: int
    # Those that do not pass.
    refused: int
    mean_score: float | None


class QuestionStrength(msgspec.Struct, frozen=True, kw_only=True):
    """What the key of one question refuses."""

    id: str
    # None: no wrong reply could be made.
    strong: bool | None
    survivors: tuple[Survivor, ...] = ()
    fixes: tuple[Proposal, ...] = ()


class KeyTest(msgspec.Struct, frozen=True, kw_only=True):
    """The result of trying wrong replies on a set."""

    # None: no wrong reply could be made for any question.
    strength: KeyStrength | None
    # The mean score of a bot whose tools are right and whose facts are all wrong.
    always_wrong_score: float | None
    families: tuple[FamilyResult, ...]
    questions: tuple[QuestionStrength, ...]


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit."""

    # What the trivial bots scored.
    trivial: Floor
    # None: only the bots were tried.
    key: KeyTest | None

    @property
    def floor(self) -> float:
        """The best mean score of a bot that knows nothing."""
        return self.trivial.value

    @property
    def strength(self) -> KeyStrength | None:
        """The strength of the key; None if it was not measured."""
        return self.key.strength if self.key is not None else None


def audit(
    questions: QuestionsLike | None = None,
    *,
    run: Run | None = None,
    scoring: Scoring | None = None,
    settings: Settings | None = None,
) -> Audit:
    """Test an answer key: `.strength` and `.floor`, and question by question what would pass.

    Args:
        questions: A golden set or its path; by default the configured one.
        run: A run of the set; wrong replies are made from its passing replies.
        scoring: How replies are graded; by default as configured.

    >>> audit([{"question": "Who?", "expected_keywords": ["Ann"], "reference_answer": "Ann."}]).floor
    0.6
    """
    settings = settings or load_settings()
    golden, _ = with_truth(golden_set(questions, settings), settings)
    trials = () if run is None else run.results
    return audit_questions(golden, scoring or settings.scoring, settings, trials=trials)


def audit_questions(
    questions: QuestionSet,
    scoring: Scoring | None = None,
    settings: Settings | None = None,
    *,
    trials: Iterable[Trial] = (),
    bots_only: bool = False,
) -> Audit:
    """Have every bot answer every question, and try wrong replies made from good ones.

    `trials` are recorded: those that pass are the good replies; else reference answers are, else replies composed from
    the key.
    """
    grader = make_grader(scoring, settings)
    grader.set_spans(False)
    floor = measure_floor(questions, grader)
    key = None if bots_only else try_wrong_replies(questions, grader, trials, propose=True)
    return Audit(trivial=floor, key=key)


def audit_document(audit: Audit) -> dict[str, Any]:
    """The document of `audit --json`."""
    key = audit.key
    tested = {} if key is None else {question.id: question for question in key.questions}
    return {
        "floor": audit.floor,
        "bots": [msgspec.to_builtins(bot) for bot in audit.trivial.bots],
        "strength": None if audit.strength is None else msgspec.to_builtins(audit.strength),
        "always_wrong_score": None if key is None else key.always_wrong_score,
        "families": [] if key is None else [msgspec.to_builtins(family) for family in key.families],
        "questions": [
            {"id": question.id, "floor": question.floor, "because": question.because}
            | _strength_document(tested.get(question.id))
            for question in audit.trivial.questions
        ],
    }


def audit_gates(audit: Audit, gates: Sequence[str]) -> list[GateResult]:
    """Evaluate gates on `strength`, `strength.low`, `floor` and `always_wrong_score`."""
    from answerkey.gates import GateSubject, evaluate_gates, parse_gate

    if not gates:
        return []
    strength, key = audit.strength, audit.key
    numbers: dict[str, float | str | None] = {
        "floor": audit.floor,
        "strength": None if strength is None else strength.value,
        "strength.low": None if strength is None else strength.low,
        "strength.high": None if strength is None else strength.high,
        "always_wrong_score": None if key is None else key.always_wrong_score,
    }
    return evaluate_gates([parse_gate(gate) for gate in gates], GateSubject(numbers=numbers))


def proposed_questions(audit: Audit, questions: QuestionSet) -> list[Question]:
    """The weak questions that a change would help, each with its best change made."""
    fixes = {} if audit.key is None else {question.id: question.fixes for question in audit.key.questions}
    changed: list[Question] = []
    for question in questions:
        best: dict[int, Proposal] = {}
        for fix in fixes.get(question.id, ()):
            best.setdefault(fix.turn_index, fix)
        # Written out, a computed value would become a fixed one.
        if not best or question.computed_values:
            continue
        turns = [best[index].turn if index in best else turn for index, turn in enumerate(question.asks)]
        changed.append(msgspec.structs.replace(question, turns=tuple(turns)) if question.turns else turns[0])
    return changed


def _strength_document(question: QuestionStrength | None) -> dict[str, Any]:
    if question is None:
        return {"strong": None, "survivors": [], "fix": []}
    return {
        "strong": question.strong,
        "survivors": [msgspec.to_builtins(survivor) for survivor in question.survivors],
        "fix": [
            {
                "change": fix.change,
                "fields": fix.fields,
                "gain": fix.gain,
                "right_replies_lost": fix.right_replies_lost,
            }
            for fix in question.fixes
        ],
    }


# The floor.


def measure_floor(questions: QuestionSet, grader: Grader, *, only: Container[str] | None = None) -> Floor:
    """Score every baseline bot on every question, or on those with the ids `only`."""
    grader = grader.without_metrics()
    bots = BaselineBots(questions)
    scores: dict[str, list[float]] = {bot.name: [] for bot in BOTS}
    passed: dict[str, list[str]] = {bot.name: [] for bot in BOTS}
    floors: list[QuestionFloor] = []
    for question in questions:
        if only is not None and question.id not in only:
            continue
        cards = _bot_cards(question, bots, grader)
        for bot in BOTS:
            card = cards[bot]
            scores[bot.name].append(card.total or 0.0)
            if card.passed:
                passed[bot.name].append(question.id)
        floors.append(_floor(question, cards))
    bot_scores = tuple(
        BotScore(
            name=bot.name,
            description=bot.description,
            score=round_score(fsum(scores[bot.name]) / len(scores[bot.name])) if scores[bot.name] else 0.0,
            passed=tuple(passed[bot.name]),
            knows_nothing=bot.knows_nothing,
        )
        for bot in BOTS
    )
    return Floor(bots=bot_scores, questions=tuple(floors))


def best_trivial_bot(
    questions: QuestionSet, grader: Grader, *, only: Container[str] | None = None
) -> tuple[BaselineBot, float]:
    """The bot with the best mean score among those that know nothing, as `measure_floor` has it, by the standard's scorers.

    By these, tool usage depends on the calls and all else on the text: each policy is graded once, not each combination.
    """
    grader = grader.without_metrics()
    bots = BaselineBots(questions)
    trivial = [bot for bot in BOTS if bot.knows_nothing]
    # As many pairs as there are policies: each has to occur in one.
    tools, texts = (
        list(dict.fromkeys(names)) for names in zip(*((bot.tools, bot.text) for bot in trivial), strict=True)
    )
    pairs = [(tools[n % len(tools)], texts[n % len(texts)]) for n in range(max(len(tools), len(texts)))]
    weights = grader.scoring.weights
    scores: dict[BaselineBot, list[float]] = {bot: [] for bot in trivial}
    for question in questions:
        if only is not None and question.id not in only:
            continue
        calls = [bots.calls(turn) for turn in question.asks]
        said = [bots.texts(question, turn) for turn in question.asks]
        by_tools: dict[str, list[float | None]] = {}
        by_text: dict[str, list[dict[str, float | None]]] = {}
        for called, text in pairs:
            replies = [
                baseline_reply(one[called], other[text]) for one, other in zip(calls, said, strict=True)
            ]
            card = grader.grade(question, replies)
            values = [
                {name: score.value for name, score in turn.components.items()}
                for turn in card.turns or (card,)
            ]
            by_tools[called] = [turn.get(_BY_TOOLS) for turn in values]
            by_text[text] = values
        for bot in trivial:
            turns = zip(by_text[bot.text], by_tools[bot.tools], strict=True)
            totals = [total(values | {_BY_TOOLS: tool}, weights) for values, tool in turns]
            known = [one for one in totals if one is not None]
            scores[bot].append(round_score(fsum(known) / len(known)) if len(known) == len(totals) else 0.0)
    means = {
        bot: round_score(fsum(values) / len(values)) if values else 0.0 for bot, values in scores.items()
    }
    best = max(means, key=lambda bot: means[bot])
    return best, means[best]


# The component that depends on a reply's calls.
_BY_TOOLS = "tool_usage"


def _bot_cards(question: Question, bots: BaselineBots, grader: Grader) -> dict[BaselineBot, Scorecard]:
    """The scorecard of each bot; bots that make the same calls and say the same are graded once."""
    calls = [bots.calls(turn) for turn in question.asks]
    texts = [bots.texts(question, turn) for turn in question.asks]
    graded: dict[Any, Scorecard] = {}
    cards: dict[BaselineBot, Scorecard] = {}
    for bot in BOTS:
        parts = [(called[bot.tools], said[bot.text]) for called, said in zip(calls, texts, strict=True)]
        key = tuple((tuple(call.name for call in called), said) for called, said in parts)
        if key not in graded:
            graded[key] = grader.grade(question, [baseline_reply(*part) for part in parts])
        cards[bot] = graded[key]
    return cards


def _floor(question: Question, cards: Mapping[BaselineBot, Scorecard]) -> QuestionFloor:
    trivial = [bot for bot in cards if bot.knows_nothing]
    best = max(trivial, key=lambda bot: cards[bot].total or 0.0)
    card = cards[best]
    reasons = "; ".join(_reasons(question, best, card))
    return QuestionFloor(
        id=question.id,
        floor=card.total or 0.0,
        bot=best.name,
        because=f"{best.description}: {reasons or 'it only gives no error'}",
        passed=card.passed,
    )


def _reasons(question: Question, bot: BaselineBot, card: Scorecard) -> Iterable[str]:
    """Why a bot scores on a question."""
    values = {name: score.value for name, score in card.components.items()}
    if values.get("tool_usage") and not any(turn.expected_tools for turn in question.asks):
        yield "no tool is expected"
    if values.get("response_quality") and not any(turn.expected_keywords for turn in question.asks):
        yield "no keyword is expected"
    if not all(turn.answerable for turn in question.asks) and bot.text == "nothing-found":
        yield "the question has no answer"
    keywords = _found_keywords(card)
    if keywords:
        more = len(keywords) - _MOST_KEYWORDS
        listed = ", ".join(keywords[:_MOST_KEYWORDS]) + (f" and {more} more" if more > 0 else "")
        yield f"{_SOURCE_OF_KEYWORDS[bot.text]} {listed}"


# Text policy → where the keywords that it finds are.
_SOURCE_OF_KEYWORDS = {
    "silent": "an empty reply contains",
    "echo": "the question itself contains",
    "nothing-found": "“nothing on record” contains",
    "parrot": "other questions' keywords contain",
}


def _found_keywords(card: Scorecard) -> list[str]:
    qualities = [turn.components.get("response_quality") for turn in card.turns or (card,)]
    found = (word for one in qualities if one is not None for word in details(one).get("found", ()))
    return list(dict.fromkeys(one_line(word, 80) for word in found))


# The strength.


def try_wrong_replies(
    questions: QuestionSet,
    grader: Grader,
    trials: Iterable[Trial] = (),
    *,
    propose: bool = False,
    only: Container[str] | None = None,
    until_weak: bool = False,
) -> KeyTest:
    """Grade wrong replies to every question, or to those with the ids `only`.

    `until_weak`: of a question, no more than strength and `always_wrong_score` need.
    """
    grader = grader.without_metrics()
    right = _right_replies(questions, trials, grader)
    recorded = {place: replies[0] for place, replies in right.items() if replies}
    return _key_test(
        [
            _try_question(question, mutants, grader, right, propose=propose, until_weak=until_weak)
            for question, mutants in wrong_replies(questions, recorded, only=only)
        ]
    )


# Questions beside a sample that lend names and replies to its wrong replies.
_MOST_OTHERS = 280


def key_quality(questions: QuestionSet, grader: Grader, *, sample: int) -> KeyQuality:
    """Strength and floor on a random sample of a set, the same one every time, without recorded replies.

    Every first run of a golden set pays for this, so it does without what `audit` lists beside these figures.
    """
    only = None
    if sample < len(questions):
        # Wrong replies are made from the set's other questions, for which some of them are enough.
        drawn = Random(0).sample(list(questions), min(_MOST_OTHERS + sample, len(questions)))
        only = {question.id for question in drawn[:sample]}
        questions = questions.subset(drawn)
    key = try_wrong_replies(questions, grader, only=only, until_weak=True)
    bot, score = best_trivial_bot(questions, grader, only=only)
    floor = KeyFloor(value=score, bot=bot.description, questions=min(sample, len(questions)))
    return KeyQuality(strength=key.strength, always_wrong_score=key.always_wrong_score, floor=floor)


# (question id, index of the turn) → replies that pass.
_RepliesByTurn = Mapping[tuple[str, int], Sequence[Reply]]


def _right_replies(questions: QuestionSet, trials: Iterable[Trial], grader: Grader) -> _RepliesByTurn:
    """The recorded replies that pass by the key as it is now."""
    right: dict[tuple[str, int], list[Reply]] = defaultdict(list)
    known = {question.id: question for question in questions}
    for trial in trials:
        question = known.get(trial.question.id)
        if question is None:
            continue
        for index, reply in enumerate(trial.replies):
            replies = right[trial.question.id, index]
            if reply.text and len(replies) < _MOST_RIGHT and _passes(grader, question.asks[index], reply):
                replies.append(reply)
    return right


def _passes(grader: Grader, turn: Question, reply: Reply) -> bool:
    return grader.grade_turn(turn, reply).passed


class _Tried(msgspec.Struct, frozen=True):
    """A question with what became of its wrong replies."""

    question: Question
    result: QuestionStrength
    # (family, score, passed)
    outcomes: list[tuple[Family, float, bool]]


def _try_question(
    question: Question,
    mutants: Sequence[Iterable[Mutant]],
    grader: Grader,
    right: _RepliesByTurn,
    *,
    propose: bool,
    until_weak: bool,
) -> _Tried:
    outcomes: list[tuple[Family, float, bool]] = []
    survivors: list[Survivor] = []
    fixes: list[Proposal] = []
    for index, turn in enumerate(question.asks):
        surviving: list[Mutant] = []
        for mutant in mutants[index]:
            # Wrong facts come first; where there are some, the score of always being wrong is theirs.
            if until_weak and mutant.family != "fact" and survivors and outcomes[0][0] == "fact":
                break
            if until_weak and mutant.family in APART:
                break
            card = grader.grade_turn(turn, mutant.reply)
            if card.total is None:
                # What could not be scored was not refused.
                continue
            outcomes.append((mutant.family, card.total, card.passed))
            if card.passed and mutant.family in COUNTED:
                surviving.append(mutant)
                survivors.append(
                    Survivor(
                        family=mutant.family,
                        operator=mutant.operator,
                        reply=mutant.reply.text or "",
                        score=card.total,
                    )
                )
        if propose and surviving:
            replies = _RightReplies(turn, right.get((question.id, index), ()), surviving[0].reply)
            fixes += _propose_changes(turn, surviving, replies, partial(_passes, grader), index)
    tried = any(family in COUNTED for family, _, _ in outcomes)
    result = QuestionStrength(
        id=question.id,
        strong=not survivors if tried else None,
        survivors=tuple(survivors),
        fixes=tuple(fixes),
    )
    return _Tried(question, result, outcomes)


def _key_test(tested: Sequence[_Tried]) -> KeyTest:
    pairs = [(one.question, one.result.strong) for one in tested if one.result.strong is not None]
    values = [float(strong) for _, strong in pairs if strong is not None]
    interval = mean_interval(values, [group_of(question) or question.id for question, _ in pairs])
    strength = None
    if interval is not None:
        strength = KeyStrength(
            value=round_score(fsum(values) / len(values)),
            low=round_score(interval.low),
            high=round_score(interval.high),
            questions=len(values),
            strong=int(sum(values)),
        )
    wrong = [score for one in tested if (score := _always_wrong(one)) is not None]
    return KeyTest(
        strength=strength,
        always_wrong_score=round_score(fsum(wrong) / len(wrong)) if wrong else None,
        families=tuple(_family(name, tested) for name in (*COUNTED, *APART)),
        questions=tuple(one.result for one in tested),
    )


def _always_wrong(one: _Tried) -> float | None:
    """The mean score of a question's wrong facts; where it has none, of replies to other questions."""
    for wanted in ("fact", "subject"):
        scores = [score for family, score, _ in one.outcomes if family == wanted]
        if scores:
            return fsum(scores) / len(scores)
    return None


def _family(name: Family, tested: Sequence[_Tried]) -> FamilyResult:
    outcomes = [(score, passed) for one in tested for family, score, passed in one.outcomes if family == name]
    passed = Counter(passed for _, passed in outcomes)
    scores = [score for score, _ in outcomes]
    return FamilyResult(
        name=name,
        mutants=len(outcomes),
        refused=passed[False],
        mean_score=round_score(fsum(scores) / len(scores)) if scores else None,
    )


# Proposals: the smallest change of a question's key that refuses wrong replies which pass. Never applied by themselves.

# Changes that are combined, and proposals for a question.
_MOST_COMBINED = 3
_MOST_PROPOSED = 3
# Facts of the right replies that are tried as expectations.
_MOST_FACTS = 12

# Whether a reply to a turn passes.
_Passes = Callable[[Question, Reply], bool]


class _RightReplies:
    """The replies to a turn that are known to be right: recorded ones, the reference answer, those marked by a person."""

    def __init__(self, turn: Question, recorded: Sequence[Reply], form: Reply) -> None:
        """`form` is a reply with the right tools."""
        texts = [text for text in (turn.reference_answer, *turn.also_right) if text and text.strip()]
        self.replies = [*recorded, *(msgspec.structs.replace(form, text=text) for text in texts)]

    def common_facts(self, excluded: set[object]) -> list[tuple[Fact, str]]:
        """The facts that every right reply states, each with its text in the last of them."""
        if not self.replies:
            return []
        *others, last = [reply.text or "" for reply in self.replies]
        shared = {fact.key for fact in facts_of(last)}.intersection(
            *({fact.key for fact in facts_of(text)} for text in others)
        )
        facts = {
            fact.key: (fact, last[fact.start : fact.end])
            for fact in facts_of(last)
            if fact.key in shared - excluded and not fact.is_doubtful
        }
        return list(facts.values())[:_MOST_FACTS]


def _propose_changes(
    turn: Question, survivors: Sequence[Mutant], right: _RightReplies, passes: _Passes, turn_index: int = 0
) -> list[Proposal]:
    """Changes that refuse some of the surviving wrong replies: the best first, alone or combined."""
    accepted = [reply for reply in right.replies if passes(turn, reply)]
    trial = _Trial(turn, survivors, accepted, passes)
    singles = [trial.proposal([change]) for change in _changes(turn, right)]
    singles = sorted((one for one in singles if one[0].gain), key=lambda one: _cost(one[0]))
    if not singles:
        return []
    best, combined = singles[0]
    for _, changes in singles[1:]:
        if best.gain == len(survivors) or len(combined) == _MOST_COMBINED:
            break
        together, both = trial.proposal([*combined, *changes])
        if together.gain > best.gain and together.right_replies_lost <= best.right_replies_lost:
            best, combined = together, both
    others = [
        proposal for proposal, _ in singles if proposal.gain == best.gain and proposal.change != best.change
    ]
    proposed = [best, *others][:_MOST_PROPOSED]
    return [msgspec.structs.replace(proposal, turn_index=turn_index) for proposal in proposed]


class _Change(msgspec.Struct, frozen=True):
    """One expectation that replaces another, or a new one."""

    words: str
    expectation: Expectation
    # Index of the expectation that it replaces; None: it is new.
    replaces: int | None = None


class _Trial:
    """What a change does to the wrong replies that pass and to the right ones."""

    def __init__(
        self, turn: Question, survivors: Sequence[Mutant], accepted: Sequence[Reply], passes: _Passes
    ) -> None:
        self._turn, self._survivors, self._accepted, self._passes = turn, survivors, accepted, passes

    def proposal(self, changes: list[_Change]) -> tuple[Proposal, list[_Change]]:
        expected = list(self._turn.expected_keywords)
        replaced = [change.replaces for change in changes if change.replaces is not None]
        if len(set(replaced)) < len(replaced):
            # Two changes of one expectation cannot be combined.
            return self.proposal(changes[:-1])
        for change in changes:
            if change.replaces is None:
                expected.append(change.expectation)
            else:
                expected[change.replaces] = change.expectation
        turn = msgspec.structs.replace(self._turn, expected_keywords=tuple(expected))
        proposal = Proposal(
            change="; ".join(change.words for change in changes),
            fields={"expected_keywords": [expectation_value(one) for one in expected]},
            gain=sum(not self._passes(turn, mutant.reply) for mutant in self._survivors),
            right_replies_lost=sum(not self._passes(turn, reply) for reply in self._accepted),
            turn=turn,
        )
        return proposal, changes


def _cost(proposal: Proposal) -> tuple[int, int]:
    return proposal.right_replies_lost, -proposal.gain


def _changes(turn: Question, right: _RightReplies) -> Iterator[_Change]:
    """Single changes, those of the existing key first.

    What the question contains proves nothing however essential it is: a fact of the answer takes its place.
    """
    in_words: list[int] = []
    for index, expectation in enumerate(turn.expected_keywords):
        if is_essential(expectation) or isinstance(expectation, ComputedExpectation):
            continue
        [match] = find_keywords([expectation], turn.question)
        if match.found:
            in_words.append(index)
        else:
            yield _Change(f"mark {describe_expectation(expectation)} as must", _essential(expectation), index)
    in_question = {fact.key for fact in facts_of(turn.question)}
    in_key = {fact.key for one in turn.expected_keywords for fact in facts_of(describe_expectation(one))}
    for fact, text in right.common_facts(in_question | in_key):
        expectation = _expected(fact, text)
        words = f"{describe_expectation(expectation)} as must"
        if in_words:
            index = in_words[0]
            echo = describe_expectation(turn.expected_keywords[index])
            yield _Change(f"replace {echo}, which the question contains, by {words}", expectation, index)
        yield _Change(f"add {words}", expectation)


def _essential(expectation: Expectation) -> Expectation:
    if not isinstance(expectation, str):
        return msgspec.structs.replace(expectation, must=True)
    number = parse_number(expectation)
    # A number is compared as a whole: 5 is not in 2025.
    return (
        TextExpectation(expectation, must=True)
        if number is None
        else NumberExpectation(float(number), must=True)
    )


def _expected(fact: Fact, text: str) -> Expectation:
    if fact.kind == "figure" and isinstance(fact.key, tuple) and isinstance(fact.key[1], float):
        return NumberExpectation(fact.key[1], must=True)
    return (
        DateExpectation(text, must=True)
        if fact.kind in ("date", "time")
        else TextExpectation(text, must=True)
    )
