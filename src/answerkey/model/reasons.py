"""The wording of scores: the one place where the facts of a score become a reason and the fields of a document."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from answerkey.model.scorecard import (
    ErrorFacts,
    ExpectationNote,
    HarnessFacts,
    KeywordFacts,
    Score,
    Scorecard,
    SuspectedFacts,
    ToolFacts,
    TurnFacts,
)


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
