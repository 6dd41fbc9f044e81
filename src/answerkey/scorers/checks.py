"""The checks of a golden case: each decided, by itself or by a scorer, and their mean as the metric or component `checks`."""

from collections.abc import Callable, Sequence
from math import fsum
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import UsageError
from answerkey.model.question import Check, Question, rubric_name
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.plugins import ScorerRegistry, load_python, scorers
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.scorers.own import OwnScorer, make_scorer
from answerkey.text.differences import misfit
from answerkey.text.normalise import compile_pattern, detect_language, one_line

# A value from 0 to 1 (None: unknown) and the reason in words.
Outcome = tuple[float | None, str]

_SHOWN = 80


def _verdict(passed: bool, reason: str) -> Outcome:
    return (1.0 if passed else 0.0), reason


def _contains(expected: Any, reply: Reply) -> Outcome:
    wanted = expected if isinstance(expected, list) else [expected]
    text = (reply.text or "").casefold()
    missing = [one_line(part, _SHOWN) for part in wanted if part.casefold() not in text]
    return _verdict(not missing, f"does not say {', '.join(missing)}" if missing else "says it")


def _equals(expected: Any, reply: Reply) -> Outcome:
    text = (reply.text or "").strip()
    if isinstance(expected, str):
        return _verdict(text == expected.strip(), f"the reply is {one_line(text, _SHOWN)!r}")
    value, problem = _json(text)
    if problem:
        return 0.0, problem
    # True == 1 in Python, but not in JSON.
    same = msgspec.json.encode(value, order="sorted") == msgspec.json.encode(expected, order="sorted")
    return _verdict(same, f"the reply is {one_line(text, _SHOWN)}")


def _regex(expected: Any, reply: Reply) -> Outcome:
    pattern = compile_pattern(expected)
    if pattern.problem:
        return None, f"the pattern does not compile: {pattern.problem}"
    found = pattern.search(reply.text or "")
    return (0.0, found) if isinstance(found, str) else (1.0, f"found at {found[0]}")


def _is_json(expected: Any, reply: Reply) -> Outcome:
    _, problem = _json((reply.text or "").strip())
    return _verdict((problem is None) is expected, problem or "it is JSON")


def _json_schema(expected: Any, reply: Reply) -> Outcome:
    value, problem = _json((reply.text or "").strip())
    problem = problem or misfit(value, expected)
    return _verdict(problem is None, one_line(problem, 200) if problem else "it fits the schema")


def _json(text: str) -> tuple[Any, str | None]:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace")), None
    except msgspec.DecodeError as error:
        fenced = " (it is in a code fence)" if text.startswith("```") else ""
        return None, f"the reply is not JSON{fenced}: {error}"


def _max_latency_ms(expected: Any, reply: Reply) -> Outcome:
    taken = reply.timings.latency_ms
    if taken is None:
        return None, "the latency was not measured"
    return _verdict(taken <= expected, f"took {taken:,.0f} ms, at most {expected:g}")


def _max_cost(expected: Any, reply: Reply) -> Outcome:
    cost = None if reply.usage is None else reply.usage.cost
    if cost is None:
        return None, "the cost was not reported"
    return _verdict(cost <= expected, f"cost {cost:g}, at most {expected:g}")


def _max_words(expected: Any, reply: Reply) -> Outcome:
    words = len((reply.text or "").split())
    return _verdict(words <= expected, f"{words} words, at most {expected:g}")


def _language(expected: Any, reply: Reply) -> Outcome:
    language, reason = detect_language(reply.text or "")
    return (None, reason) if language is None else _verdict(language == expected, f"{language}: {reason}")


# Kind → how it is decided. A null reply is an empty text here; what fails about it shows under error handling.
DECIDED: dict[str, Callable[[Any, Reply], Outcome]] = {
    "contains": _contains,
    "equals": _equals,
    "regex": _regex,
    "is_json": _is_json,
    "json_schema": _json_schema,
    "max_latency_ms": _max_latency_ms,
    "max_cost": _max_cost,
    "max_words": _max_words,
    "language": _language,
}


class Checks(BaseScorer):
    """Decides a question's checks; one that cannot be decided leaves `checks` without a value."""

    name = "checks"
    version = "checks/1"
    direction: Direction = "higher"
    # For checks by scorers that look at the conversation, and for rubrics.
    needs: frozenset[Need] = frozenset({"earlier", "judge"})

    def __init__(
        self, folder: Path | None = None, *, weighted: bool = False, registry: ScorerRegistry = scorers
    ) -> None:
        # The folder that `python` checks are relative to.
        self._folder = folder
        # The scorers that a check may name.
        self._registry = registry
        # As a component, a question without checks has all of them; as a metric, it has none.
        self._without: tuple[Score, ...] = (Score(self.name, 1.0, "no check expected"),) if weighted else ()
        self.silent_without = None if weighted else "checks"
        # Scorers that checks name, by kind and arguments; or why there is none.
        self._scorers: dict[bytes, OwnScorer | UsageError] = {}

    def score(
        self,
        question: Question,
        reply: Reply,
        *,
        earlier: Sequence[tuple[Question, Reply]] = (),
        judged: Sequence[Score] = (),
    ) -> Sequence[Score]:
        """The weighted mean, with each check's name, value and reason in the details."""
        if not question.checks:
            return self._without
        found = [(check, self._outcome(check, question, reply, earlier, judged)) for check in question.checks]
        details: dict[str, Any] = {
            "checks": [
                {
                    "name": check.name,
                    "kind": check.kind,
                    "score": value,
                    "weight": check.weight,
                    "reason": reason,
                }
                for check, (value, reason) in found
            ]
        }
        unsure = [f"{check.name}: {reason}" for check, (value, reason) in found if value is None]
        if unsure:
            return (Score(self.name, None, one_line("; ".join(unsure), 300), None, details),)
        values = [(check.weight, value) for check, (value, _) in found if value is not None]
        mean = fsum(weight * value for weight, value in values) / fsum(weight for weight, _ in values)
        failed = [f"{check.name}: {reason}" for check, (value, reason) in found if value != 1.0]
        passed = f"{len(found) - len(failed)} of {len(found)} checks passed"
        reason = one_line("; ".join([passed, *failed]), 300)
        return (Score(self.name, round_score(mean), reason, None, details),)

    def problem(self, question: Question) -> str | None:
        """Why a question's checks can never be decided: a file that is not there, arguments that a scorer does not take."""
        for check in question.checks:
            if check.kind in DECIDED or check.kind == "rubric":
                continue
            made = self._scorer(check)
            if isinstance(made, UsageError):
                return f"check {check.name!r}: {made}"
        return None

    def _outcome(
        self,
        check: Check,
        question: Question,
        reply: Reply,
        earlier: Sequence[tuple[Question, Reply]],
        judged: Sequence[Score],
    ) -> Outcome:
        decide = DECIDED.get(check.kind)
        if decide is not None:
            return decide(check.expected, reply)
        if check.kind == "rubric":
            return _judged_rubric(check, judged)
        made = self._scorer(check)
        if isinstance(made, UsageError):
            return None, str(made)
        scores = made.score(question, reply, earlier=earlier, judged=judged)
        score = next((one for one in scores if one.name == made.name), None)
        if score is None or score.value is None:
            return None, "gave no value" if score is None else score.reason
        if not 0 <= score.value <= 1:
            return None, f"gave {score.value:g}, which is not between 0 and 1"
        return score.value, score.reason

    def _scorer(self, check: Check) -> OwnScorer | UsageError:
        key = msgspec.json.encode([check.kind, check.expected], order="sorted")
        if key not in self._scorers:
            try:
                self._scorers[key] = self._made(check)
            except UsageError as error:
                self._scorers[key] = error
        return self._scorers[key]

    def _made(self, check: Check) -> OwnScorer:
        if check.kind == "python":
            made = make_scorer(load_python(check.expected, self._folder)[0])
        else:
            made = make_scorer(check.kind, arguments=check.expected, registry=self._registry)
        if made.direction == "lower":
            raise UsageError(
                f"the scorer {made.name!r} is lower-is-better; checks must be higher-is-better (return 1 - value)"
            )
        return made


def _judged_rubric(check: Check, judged: Sequence[Score]) -> Outcome:
    for score in judged:
        if score.name == rubric_name(check.expected):
            return score.value, score.reason
    return None, "needs a judge: name one with --judge MODEL or [judge] model"
