"""Verdicts: the schema that a judge must answer in, and reading one, strictly. What is not a verdict says why."""

import json
from typing import Any

import msgspec

from answerkey.judge.rubric import LOWEST, TOP, Rubric
from answerkey.text.sanitise import for_terminal

__all__ = [
    "PAIR_SCHEMA",
    "Graded",
    "NoVerdictError",
    "Verdict",
    "parse_pair",
    "parse_verdict",
    "quoted",
    "read_object",
    "verdict_schema",
]

_QUOTED = 120


class Graded(msgspec.Struct, frozen=True):
    """One criterion's grade, and why."""

    score: int
    reason: str


class Verdict(msgspec.Struct, frozen=True):
    """What one judge said once about one reply."""

    # Criterion → its grade.
    criteria: dict[str, Graded]


class NoVerdictError(Exception):
    """A judge's answer that holds no verdict; the message says what it was instead."""


def verdict_schema(rubric: Rubric) -> dict[str, Any]:
    """JSON Schema of a verdict: for each criterion the reason first, then a whole number."""
    grade = {
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "score": {"type": "integer", "enum": list(range(LOWEST, TOP + 1))},
        },
        "required": ["reason", "score"],
        "additionalProperties": False,
    }
    names = [criterion.name for criterion in rubric.criteria]
    return {
        "type": "object",
        "properties": dict.fromkeys(names, grade),
        "required": names,
        "additionalProperties": False,
    }


PAIR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "better": {"type": "string", "enum": ["1", "2", "tie"]}},
    "required": ["reason", "better"],
    "additionalProperties": False,
}


def parse_verdict(text: str, rubric: Rubric) -> Verdict:
    """Read a verdict. The whole answer must be it: an object inside prose may be quoted from the reply."""
    raw = read_object(text)
    found: dict[str, Graded] = {}
    for criterion in rubric.criteria:
        part = raw.get(criterion.name)
        if not isinstance(part, dict):
            raise NoVerdictError(f"the judge's verdict lacks {criterion.name!r}")
        score, reason = part.get("score"), part.get("reason")
        if isinstance(score, bool) or not isinstance(score, int) or not LOWEST <= score <= TOP:
            raise NoVerdictError(
                f"the judge's grade for {criterion.name!r} is {quoted(json.dumps(score))}, "
                f"not a whole number from {LOWEST} to {TOP}"
            )
        if not isinstance(reason, str):
            raise NoVerdictError(f"the judge gave no reason for {criterion.name!r}")
        found[criterion.name] = Graded(score, reason)
    return Verdict(found)


def parse_pair(text: str) -> tuple[str, str]:
    """Read which of two replies is better ("1", "2" or "tie"), and why."""
    raw = read_object(text)
    better, reason = raw.get("better"), raw.get("reason")
    if better not in ("1", "2", "tie"):
        raise NoVerdictError(f"the judge named {quoted(json.dumps(better))} as better, not 1, 2 or tie")
    return str(better), reason if isinstance(reason, str) else ""


def read_object(text: str) -> dict[str, Any]:
    """The JSON object that an answer is, and nothing around it but what models cannot leave off."""
    body = text.strip()
    # Reasoning models may think aloud first; what follows their last thought must then be all of the verdict.
    if body.startswith("<think>"):
        body = body.rpartition("</think>")[2].strip()
    # Some models fence JSON whatever they are told; the fence must then be all there is around it.
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        body = body[3:-3].removeprefix("json").strip()
    if not body:
        raise NoVerdictError("the judge's answer was empty")
    try:
        raw = json.loads(body, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        kind = "malformed JSON" if body[:1] in "{[" else "prose"
        raise NoVerdictError(f"the judge answered in {kind} instead of the verdict: {quoted(body)}") from None
    if not isinstance(raw, dict):
        raise NoVerdictError(f"the judge's answer is not a JSON object: {quoted(body)}")
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
