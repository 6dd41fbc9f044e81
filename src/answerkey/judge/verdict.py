"""Verdicts: the schema that a judge must answer in, and reading one, strictly. What is not a verdict says why."""

import json
from math import fsum
from typing import Any

import msgspec

from answerkey.judge.rubric import Rubric
from answerkey.text.sanitise import for_terminal

_QUOTED = 120


class Graded(msgspec.Struct, frozen=True, omit_defaults=True):
    """One criterion's grade, and why."""

    score: int
    reason: str
    # Grade → how probable the judge found it; None: that was not asked for, or not told.
    probabilities: dict[int, float] | None = None

    @property
    def mean(self) -> float:
        """What counts: the mean of the grades by their probabilities, or else the grade that was written."""
        if self.probabilities is None:
            return self.score
        return fsum(grade * share for grade, share in self.probabilities.items()) / fsum(
            self.probabilities.values()
        )


# What one judge said once about one reply: criterion → its grade.
Verdict = dict[str, Graded]


class UnjudgedError(Exception):
    """Why one answer of one judge is no verdict, with the kind of reason.

    Kinds: refused, unreadable, cut off, unreachable, budget.
    """

    def __init__(self, reason: str, kind: str = "unreadable") -> None:
        super().__init__(reason)
        self.kind = kind


def object_schema(**properties: Any) -> dict[str, Any]:
    """JSON Schema of an object that has all of these and nothing else, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def verdict_schema(rubric: Rubric) -> dict[str, Any]:
    """JSON Schema of a verdict: for each criterion the reason first, then a whole number."""
    score = {"type": "integer", "enum": list(range(rubric.lowest, rubric.top + 1))}
    grade = object_schema(reason={"type": "string"}, score=score)
    return object_schema(**dict.fromkeys(rubric.weights, grade))


PAIR_SCHEMA = object_schema(reason={"type": "string"}, better={"type": "string", "enum": ["1", "2", "tie"]})


def parse_verdict(text: str, rubric: Rubric) -> Verdict:
    """Read a verdict. The whole answer must be it: an object inside prose may be quoted from the reply."""
    raw = read_object(text)
    found: Verdict = {}
    for criterion in rubric.criteria:
        part = raw.get(criterion.name)
        if not isinstance(part, dict):
            raise UnjudgedError(f"the judge's verdict lacks {criterion.name!r}")
        score, reason = part.get("score"), part.get("reason")
        if isinstance(score, bool) or not isinstance(score, int) or not rubric.lowest <= score <= rubric.top:
            raise UnjudgedError(
                f"the judge's grade for {criterion.name!r} is {quoted(json.dumps(score))}, "
                f"not a whole number from {rubric.lowest} to {rubric.top}"
            )
        if not isinstance(reason, str):
            raise UnjudgedError(f"the judge gave no reason for {criterion.name!r}")
        found[criterion.name] = Graded(score, reason)
    return found


def parse_pair(text: str) -> tuple[str, str]:
    """Read which of two replies is better ("1", "2" or "tie"), and why."""
    raw = read_object(text)
    better, reason = raw.get("better"), raw.get("reason")
    if better not in ("1", "2", "tie"):
        raise UnjudgedError(f"the judge named {quoted(json.dumps(better))} as better, not 1, 2 or tie")
    return str(better), reason if isinstance(reason, str) else ""


def json_body(text: str) -> str:
    """An answer without what models cannot leave off."""
    body = text.strip()
    # Reasoning models may think aloud first; what follows their last thought must then be all of the verdict.
    if body.startswith("<think>"):
        body = body.rpartition("</think>")[2].strip()
    # Some models fence JSON whatever they are told; the fence must then be all there is around it.
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        body = body[3:-3].removeprefix("json").strip()
    return body


def read_object(text: str) -> dict[str, Any]:
    """The JSON object that an answer is, and nothing around it but what models cannot leave off."""
    body = json_body(text)
    if not body:
        raise UnjudgedError("the judge's answer was empty")
    try:
        raw = json.loads(body, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        kind = "malformed JSON" if body[:1] in "{[" else "prose"
        raise UnjudgedError(f"the judge answered in {kind} instead of the verdict: {quoted(body)}") from None
    if not isinstance(raw, dict):
        raise UnjudgedError(f"the judge's answer is not a JSON object: {quoted(body)}")
    return raw


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def quoted(text: str) -> str:
    """The beginning of what a judge said, fit for a message."""
    text = " ".join(for_terminal(text[: 4 * _QUOTED]).split())
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"
