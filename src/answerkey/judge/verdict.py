"""Verdicts: the JSON that a judge must answer with, and strict readers of its answers.

With token probabilities, a grade is the mean of the scale's grades, weighted by how probable the judge found each of them at
the position where it wrote one. The cached answer is then its text with those probabilities, by criterion.
"""

import json
import re
from collections.abc import Sequence
from itertools import accumulate
from math import fsum
from typing import Any

import msgspec

from answerkey.errors import ConfigError
from answerkey.judge.prompt import Rubric
from answerkey.providers import AnswerToken
from answerkey.text.normalise import for_terminal

# Characters of an answer that a message quotes.
_QUOTED = 120
# A longer list does not come from the reply, but from a model that cannot stop.
_MAX_CLAIMS = 500
# Characters stored of a claim and of its evidence.
_MAX_CLAIM_CHARS = 500


class UnjudgedError(Exception):
    """There is no verdict; says why, and the kind of reason: refused, unreadable, cut off, unreachable or budget."""

    def __init__(self, reason: str, kind: str = "unreadable") -> None:
        super().__init__(reason)
        self.kind = kind


class Graded(msgspec.Struct, frozen=True, omit_defaults=True):
    """One criterion's grade, and why."""

    score: int
    reason: str
    # Grade → its probability; None: not asked for, or not returned.
    probabilities: dict[int, float] | None = None

    @property
    def mean(self) -> float:
        """The mean grade by probability, or the written grade without probabilities."""
        if self.probabilities is None:
            return self.score
        total = fsum(self.probabilities.values())
        return fsum(grade * share for grade, share in self.probabilities.items()) / total


# What one judge said once about one reply: criterion → its grade.
Verdict = dict[str, Graded]


class Claim(msgspec.Struct, frozen=True):
    """One claim of a reply, and whether the evidence supports it."""

    claim: str
    supported: bool
    # The words of the evidence that support it, or why nothing does.
    evidence: str


def _object_schema(**properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def verdict_schema(rubric: Rubric) -> dict[str, Any]:
    """Return the JSON Schema of a verdict: for each criterion the reason first, then a whole number."""
    score = {"type": "integer", "enum": list(range(rubric.lowest, rubric.top + 1))}
    grade = _object_schema(reason={"type": "string"}, score=score)
    return _object_schema(**dict.fromkeys(rubric.weights, grade))


PAIR_SCHEMA = _object_schema(reason={"type": "string"}, better={"type": "string", "enum": ["1", "2", "tie"]})
# The evidence comes before the verdict, so that the verdict can follow from it.
_CLAIM_SCHEMA = _object_schema(
    claim={"type": "string"}, evidence={"type": "string"}, supported={"type": "boolean"}
)
CLAIMS_SCHEMA = _object_schema(claims={"type": "array", "items": _CLAIM_SCHEMA})


def parse_verdict(text: str, rubric: Rubric) -> Verdict:
    """Read a verdict. The whole answer must be the object: one inside prose may be quoted from the reply."""
    raw = _read_object(text)
    verdict: Verdict = {}
    for criterion in rubric.criteria:
        part = raw.get(criterion.name)
        if not isinstance(part, dict):
            raise UnjudgedError(f"the judge's verdict lacks {criterion.name!r}")
        score, reason = part.get("score"), part.get("reason")
        if isinstance(score, bool) or not isinstance(score, int) or not rubric.lowest <= score <= rubric.top:
            raise UnjudgedError(
                f"the judge's grade for {criterion.name!r} is {_quote(json.dumps(score))}, "
                f"not a whole number from {rubric.lowest} to {rubric.top}"
            )
        if not isinstance(reason, str):
            raise UnjudgedError(f"the judge gave no reason for {criterion.name!r}")
        verdict[criterion.name] = Graded(score, reason)
    return verdict


def parse_pair(text: str) -> tuple[str, str]:
    """Read which of two replies is better ("1", "2" or "tie"), and why."""
    raw = _read_object(text)
    better, reason = raw.get("better"), raw.get("reason")
    if better not in ("1", "2", "tie"):
        raise UnjudgedError(f"the judge named {_quote(json.dumps(better))} as better, not 1, 2 or tie")
    return str(better), reason if isinstance(reason, str) else ""


def parse_claims(text: str) -> tuple[Claim, ...]:
    """Read the claims; one without a clear verdict makes the whole answer unreadable."""
    claims = _read_object(text).get("claims")
    if not isinstance(claims, list):
        raise UnjudgedError("the judge's answer has no list of claims")
    if len(claims) > _MAX_CLAIMS:
        raise UnjudgedError(f"the judge listed {len(claims):,} claims, more than {_MAX_CLAIMS}")
    return tuple(_parse_claim(part, number) for number, part in enumerate(claims, start=1))


def _parse_claim(part: Any, number: int) -> Claim:
    if not isinstance(part, dict):
        raise UnjudgedError(f"the judge's claim {number} is not an object: {_quote(json.dumps(part))}")
    claim, supported, evidence = part.get("claim"), part.get("supported"), part.get("evidence")
    if not isinstance(claim, str) or not claim.strip():
        raise UnjudgedError(f"the judge's claim {number} has no text")
    if not isinstance(supported, bool):
        raise UnjudgedError(
            f"the judge's verdict on claim {number} is {_quote(json.dumps(supported))}, not true or false"
        )
    if not isinstance(evidence, str):
        raise UnjudgedError(f"the judge named no evidence for claim {number}")
    return Claim(_cut_claim(claim), supported, _cut_claim(evidence))


def _cut_claim(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MAX_CLAIM_CHARS else f"{text[:_MAX_CLAIM_CHARS]}…"


def _json_body(text: str) -> str:
    """Return an answer without the think block and the code fence that some models always add."""
    body = text.strip()
    # What follows the last thought must be the whole verdict.
    if body.startswith("<think>"):
        body = body.rpartition("</think>")[2].strip()
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        body = body[3:-3].removeprefix("json").strip()
    return body


def _read_object(text: str) -> dict[str, Any]:
    """Return the JSON object that is the whole answer."""
    body = _json_body(text)
    if not body:
        raise UnjudgedError("the judge's answer was empty")
    try:
        raw = json.loads(body, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        kind = "malformed JSON" if body[:1] in "{[" else "prose"
        raise UnjudgedError(f"the judge answered in {kind} instead of the verdict: {_quote(body)}") from None
    if not isinstance(raw, dict):
        raise UnjudgedError(f"the judge's answer is not a JSON object: {_quote(body)}")
    return raw


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("duplicate key")
    return unique


def _quote(text: str) -> str:
    """Return the beginning of an answer on one line, safe for a terminal."""
    text = " ".join(for_terminal(text[: 4 * _QUOTED]).split())
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"


# Token probabilities.


_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
# A token may begin before its grade: with a space, or with the end of the name.
_GRADE = re.compile(r'[\s":]*(-?\d*)')


class _WeighedAnswer(msgspec.Struct, frozen=True):
    """An answer with token probabilities, as it is cached."""

    text: str
    # Criterion → grade → its probability among the grades; a criterion without probabilities is missing.
    probabilities: dict[str, dict[int, float]] = {}


def has_distinct_first_digits(rubric: Rubric) -> bool:
    """Whether the first character identifies each grade of the scale; tokens are read by it."""
    grades = range(rubric.lowest, rubric.top + 1)
    return len({str(grade)[0] for grade in grades}) == len(grades)


def check_scale(rubric: Rubric) -> None:
    """Refuse a scale with grades that begin with the same digit, e.g. 1 and 10."""
    if not has_distinct_first_digits(rubric):
        raise ConfigError(
            f"[judge] probabilities: grades from {rubric.lowest} to {rubric.top} (rubric {rubric.name!r}) share first "
            "digits; use a scale within 0 to 9, or turn probabilities off"
        )


def encode_weighed(text: str, tokens: Sequence[AnswerToken], rubric: Rubric) -> str:
    """Return an answer with its grades' probabilities, to be cached; raises UnjudgedError if it is not a verdict."""
    verdict = parse_verdict(text, rubric)
    ends = list(accumulate(len(token.octets) for token in tokens))
    # Thoughts before the text or a marker after it may be among the tokens.
    start = b"".join(token.octets for token in tokens).rfind(_utf8(text)) if ends else -1
    probabilities = {}
    for name, position in (_grade_positions(text) if start >= 0 else {}).items():
        offset = start + len(_utf8(text[:position]))
        token = tokens[next(number for number, end in enumerate(ends) if offset < end)]
        weights = _grade_probabilities(token, range(rubric.lowest, rubric.top + 1))
        if name in verdict and verdict[name].score in weights:
            probabilities[name] = weights
    return msgspec.json.encode(_WeighedAnswer(text, probabilities)).decode()


def parse_weighed(encoded: str, rubric: Rubric) -> Verdict:
    """Read a cached answer with probabilities, as strictly as any other."""
    try:
        answer = msgspec.json.decode(encoded, type=_WeighedAnswer)
    except msgspec.DecodeError as error:
        raise UnjudgedError(f"the cached judge answer is unreadable: {error}") from None
    return {
        name: Graded(graded.score, graded.reason, answer.probabilities.get(name))
        for name, graded in parse_verdict(answer.text, rubric).items()
    }


def _grade_positions(text: str) -> dict[str, int]:
    """Return criterion → index of its grade in a text that is a verdict."""
    body = _json_body(text)
    offset = text.rfind(body)
    positions: dict[str, int] = {}
    # The latest name in each object that is open.
    names: list[str] = []
    before = ""
    for match in _LEXEME.finditer(body):
        lexeme = match[0]
        if lexeme in ("{", "["):
            names.append("")
        elif lexeme in ("}", "]"):
            names.pop()
        elif lexeme == ":":
            names[-1] = json.loads(before)
        elif before == ":" and names[1:] == ["score"]:
            positions[names[0]] = offset + match.start()
        before = lexeme
    return positions


def _grade_probabilities(token: AnswerToken, grades: Sequence[int]) -> dict[int, float]:
    """Return the probabilities of the grades among a token's alternatives, scaled to add up to 1."""
    by_grade: dict[int, list[float]] = {}
    for alternative, probability in token.probabilities.items():
        match = _GRADE.match(alternative)
        digits = match[1] if match else ""
        grade = next((grade for grade in grades if digits and str(grade).startswith(digits)), None)
        if grade is not None:
            by_grade.setdefault(grade, []).append(probability)
    total = fsum(fsum(parts) for parts in by_grade.values())
    if not total:
        return {}
    return {grade: round(fsum(by_grade[grade]) / total, 6) for grade in sorted(by_grade)}


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
