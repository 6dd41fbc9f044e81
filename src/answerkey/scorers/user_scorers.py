"""Scorers that users bring: the checks of a golden case, and their own functions and objects.

A check is decided by itself or by a scorer; the mean of a case's checks is the metric or component `checks`. A function
`(question, reply)` or an object with `score` becomes a Scorer whose values are checked.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import update_wrapper
from math import fsum, isfinite
from numbers import Real
from pathlib import Path
from typing import Any, get_args, overload

import msgspec

from answerkey import plugins
from answerkey.errors import UsageError
from answerkey.model.question import Check, Question, rubric_name
from answerkey.model.reply import Reply
from answerkey.model.scorecard import HarnessFacts, Score, round_score
from answerkey.plugins import ScorerRegistry, load_python, scorers
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.scorers.evidence import has_evidence
from answerkey.text.normalise import compile_pattern, detect_language, misfit, one_line
from answerkey.text.patterns import blake2b

# What a function may also take by these names, and what it then needs.
_GIVEN: dict[str, Need] = {"earlier": "earlier", "judged": "judge"}
_DIRECTIONS = get_args(Direction)
_NEEDS = frozenset(get_args(Need))
_GIVES = "a scorer gives true, false, a number, a Score or None"


class OwnScorer(BaseScorer):
    """A user's function as a Scorer; it can still be called as the function that it is."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        version: str,
        direction: Direction | Mapping[str, Direction] = "higher",
        needs: Iterable[str] = (),
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.name = name
        self.version = version
        self.direction = direction
        _check_declared(name, direction, needs)
        signature = _signature(function)
        passed = [word for word in _GIVEN if signature is not None and word in signature.parameters]
        self.needs: frozenset[Need] = frozenset(needs) | {_GIVEN[word] for word in passed}  # type: ignore[assignment]  # checked
        self._passed = tuple(passed)
        self._arguments = dict(arguments or {})
        self._names = (name,) if isinstance(direction, str) else tuple(direction)
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self.function(*args, **kwargs)

    def score(
        self,
        question: Question,
        reply: Reply,
        *,
        earlier: Sequence[tuple[Question, Reply]] = (),
        judged: Sequence[Score] = (),
    ) -> Sequence[Score]:
        """What the function gives, made Scores; a value that is none is unscored, with the reason."""
        lacking = self._lacking(reply, judged)
        if lacking:
            return self._unscored(lacking)
        given = {"earlier": earlier, "judged": judged}
        try:
            more = {word: given[word] for word in self._passed} if self._passed else {}
            value = self.function(question, reply, **self._arguments, **more)
        except Exception as error:  # noqa: BLE001  # a scorer's failure is a score without a value
            reason = one_line(f"raised {type(error).__name__}: {error}", 200)
            return [Score(name, None, facts=HarnessFacts("scorer", reason)) for name in self._names]
        if isinstance(value, list | tuple):
            return self._several(value)
        return (_score(self._names[0], value),)

    def adapted(
        self,
        *,
        name: str | None = None,
        direction: Direction | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> "OwnScorer":
        """The same scorer with arguments, a name or a direction of the user's; refused where it does not take them."""
        given = {**self._arguments, **(arguments or {})}
        _check_call(self.function, self.name, given)
        if not isinstance(self.direction, str) and (direction or name not in (None, self.name)):
            raise UsageError(f"the scorer {self.name!r} gives several values, each with a name and direction")
        version = self.version
        if arguments:
            version += f"/{_hash(repr(sorted(arguments.items())).encode())}"
        return OwnScorer(
            self.function,
            name=name or self.name,
            version=version,
            direction=direction or self.direction,
            needs=self.needs,
            arguments=given,
        )

    def _lacking(self, reply: Reply, judged: Sequence[Score]) -> str | None:
        if not self.needs:
            return None
        if "judge" in self.needs and not judged:
            return "needs a judge: name one with --judge MODEL or [judge] model"
        if "sources" in self.needs and not (reply.sources or reply.evidence.sources_observed):
            return "needs sources: none were observed"
        if "evidence" in self.needs and not has_evidence(reply):
            return "needs evidence: no tool result and no source's text was observed"
        return None

    def _several(self, values: Sequence[Any]) -> Sequence[Score]:
        for value in values:
            if not isinstance(value, Score) or value.name not in self._names:
                named = f"a Score called {value.name!r}" if isinstance(value, Score) else _value_text(value)
                return self._unscored(f"gave {named} in a list; it declares {', '.join(self._names)}")
        return [_score(value.name, value) for value in values]

    def _unscored(self, reason: str) -> Sequence[Score]:
        return [_no_value(name, reason) for name in self._names]


def _no_value(name: str, reason: str, details: Mapping[str, Any] | None = None) -> Score:
    return Score(name, None, reason, None, {**(details or {}), "unscored": reason})


def _score(name: str, value: Any) -> Score:
    if isinstance(value, Score):
        made = _score(name, value.value)
        reason = value.reason or made.reason
        if made.value is None:
            return _no_value(name, reason if value.value is None else made.reason, value.details)
        details = {**value.details, "reason": value.reason} if value.reason else value.details
        return Score(name, made.value, reason, None, details)
    if value is None:
        return _no_value(name, "gave no value")
    if isinstance(value, bool):
        return Score(name, 1.0 if value else 0.0, "yes" if value else "no")
    if not isinstance(value, Real):
        return _no_value(name, f"gave {_value_text(value)}; {_GIVES}")
    number = float(value)
    return (
        Score(name, number) if isfinite(number) else _no_value(name, f"gave {number}, which is not a number")
    )


def _value_text(value: Any) -> str:
    kind = type(value).__name__
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine (write `def`, not `async def`)"
    return f"{one_line(repr(value), 40)} ({kind})"


@overload
def scorer(function: Callable[..., Any], /) -> OwnScorer: ...


@overload
def scorer(
    *,
    name: str | None = None,
    version: str | None = None,
    direction: Direction | Mapping[str, Direction] = "higher",
    needs: Iterable[str] = (),
) -> Callable[[Callable[..., Any]], OwnScorer]: ...


def scorer(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: str | None = None,
    direction: Direction | Mapping[str, Direction] = "higher",
    needs: Iterable[str] = (),
) -> OwnScorer | Callable[[Callable[..., Any]], OwnScorer]:
    """Make a function `(question, reply) -> bool | float | Score | None` a scorer, and register it by its name.

    Without `version`, it is a hash of the function's source: an edited scorer is another one. Helpers that it calls do not
    count; raise the version yourself when they change.
    """

    def registered(decorated: Callable[..., Any]) -> OwnScorer:
        made = _from_function(decorated, name, version, direction, needs)
        plugins.scorers.add(made.name, made)
        return made

    return registered if function is None else registered(function)


def make_scorer(
    part: Any,
    *,
    name: str | None = None,
    direction: Direction | None = None,
    arguments: Mapping[str, Any] | None = None,
    registry: plugins.ScorerRegistry = plugins.scorers,
) -> OwnScorer:
    """Make a Scorer from a function, a class, an object with `score`, or a name in the registry.

    The registry is the process-wide one unless a configuration's is given.
    """
    if isinstance(part, str):
        name, part = name or part, registry.get(part)
    if isinstance(part, type):
        try:
            part, arguments = part(**(arguments or {})), None
        except Exception as error:  # the user's class may raise anything
            raise UsageError(
                one_line(f"{part.__name__} cannot be made: {type(error).__name__}: {error}", 300)
            ) from error
    if isinstance(part, OwnScorer):
        made = part
    elif callable(getattr(part, "score", None)):
        made = _from_object(part, name)
    elif callable(part):
        made = _from_function(part, name, None, "higher", ())
    else:
        raise UsageError(
            f"{_value_text(part)} is not a scorer; give a function (question, reply) or an object with 'score'"
        )
    return made.adapted(name=name, direction=direction, arguments=arguments)


def _from_function(
    function: Callable[..., Any],
    name: str | None,
    version: str | None,
    direction: Direction | Mapping[str, Direction],
    needs: Iterable[str],
) -> OwnScorer:
    label = name or str(getattr(function, "__name__", type(function).__name__))
    if not label.replace(".", "_").isidentifier():
        raise UsageError(f"{label!r} cannot be a scorer's name: use letters, digits and _; give it name=…")
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"the scorer {label!r} is asynchronous; write it as a plain function")
    return OwnScorer(
        function,
        name=label,
        version=f"{label}/{version or _source_hash(function)}",
        direction=direction,
        needs=needs,
    )


def _from_object(part: Any, name: str | None) -> OwnScorer:
    label = getattr(part, "name", name)
    version = getattr(part, "version", None)
    if not isinstance(label, str) or not isinstance(version, str):
        raise UsageError(f"the scorer {_value_text(part)} needs a 'name' and a 'version', both text")
    return OwnScorer(
        part.score,
        name=label,
        version=version,
        direction=getattr(part, "direction", "higher"),
        needs=getattr(part, "needs", ()),
    )


def _check_declared(name: str, direction: Any, needs: Iterable[str]) -> None:
    declared = [direction] if isinstance(direction, str) else list(getattr(direction, "values", list)())
    if not declared or any(way not in _DIRECTIONS for way in declared):
        raise UsageError(
            f"the scorer {name!r}: direction is 'higher' or 'lower' (is better), not {direction!r}"
        )
    unknown = sorted(set(needs) - _NEEDS)
    if unknown:
        raise UsageError(
            f"the scorer {name!r} needs {unknown[0]!r}; what can be needed is {', '.join(sorted(_NEEDS))}"
        )


def _check_call(function: Callable[..., Any], name: str, arguments: Mapping[str, Any]) -> None:
    signature = _signature(function)
    if signature is None:
        # Whether it takes a reply shows when it is called.
        return
    taken = {word: () for word in _GIVEN if word in signature.parameters}
    try:
        signature.bind(None, None, **{**taken, **arguments})
    except TypeError as error:
        raise UsageError(
            f"the scorer {name!r} does not fit: {error}; it is called as {name}(question, reply)"
            + (f" with {', '.join(arguments)}" if arguments else "")
        ) from None


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """How a function is called; None for some compiled ones, of which nothing is known."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _source_hash(function: Callable[..., Any]) -> str:
    """Hash of a function's source; where there is none (typed at a prompt), of what it was compiled to."""
    subject: Any = function if inspect.isroutine(function) else type(function)
    try:
        return _hash(inspect.getsource(subject).encode())
    except (OSError, TypeError):
        code = getattr(subject, "__code__", None)
        return _hash(repr(tuple(_compiled(code))).encode()) if code is not None else "1"


def _compiled(code: Any) -> Iterator[Any]:
    yield code.co_code, code.co_names
    for constant in code.co_consts:
        # A function inside the function has an address in its text.
        if hasattr(constant, "co_code"):
            yield from _compiled(constant)
        else:
            yield constant


def _hash(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()


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
