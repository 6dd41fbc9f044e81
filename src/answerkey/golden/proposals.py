"""Proposals: the smallest change of a question's key that refuses wrong replies which pass. Never applied by themselves."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from answerkey.datasets.expectations import expectation_value
from answerkey.golden.facts import Fact, facts_of
from answerkey.golden.mutants import Mutant
from answerkey.model.expectation import (
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    TextExpectation,
    describe_expectation,
    is_essential,
)
from answerkey.model.question import Question
from answerkey.model.reply import JsonObject, Reply
from answerkey.text.numbers import parse_number

# Changes that are combined, and proposals for a question.
_MOST_COMBINED = 3
_MOST_PROPOSED = 3
# Facts of the right replies that are tried as expectations.
_MOST_FACTS = 12

# Whether a reply to a turn passes.
Passes = Callable[[Question, Reply], bool]


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


class RightReplies:
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


def propose_changes(
    turn: Question, survivors: Sequence[Mutant], right: RightReplies, passes: Passes, turn_index: int = 0
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
        self, turn: Question, survivors: Sequence[Mutant], accepted: Sequence[Reply], passes: Passes
    ) -> None:
        self._turn, self._survivors, self._accepted, self._passes = turn, survivors, accepted, passes

    def proposal(self, changes: list[_Change]) -> tuple[Proposal, list[_Change]]:
        expected = list(self._turn.expected_keywords)
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


def _changes(turn: Question, right: RightReplies) -> Iterator[_Change]:
    """Single changes, those of the existing key first."""
    for index, expectation in enumerate(turn.expected_keywords):
        if not is_essential(expectation) and not isinstance(expectation, ComputedExpectation):
            yield _Change(f"mark {describe_expectation(expectation)} as must", _essential(expectation), index)
    in_question = {fact.key for fact in facts_of(turn.question)}
    in_key = {fact.key for one in turn.expected_keywords for fact in facts_of(describe_expectation(one))}
    for fact, text in right.common_facts(in_question | in_key):
        expectation = _expected(fact, text)
        yield _Change(f"add {describe_expectation(expectation)} as must", expectation)


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
