"""User-defined scorers: a function `(question, reply)` or an object with `score` becomes a Scorer whose values are checked."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import update_wrapper
from hashlib import blake2b
from math import isfinite
from numbers import Real
from typing import Any, get_args, overload

from answerkey import plugins
from answerkey.errors import UsageError
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import HarnessFacts, Score
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.scorers.groundedness import has_evidence
from answerkey.text.normalise import one_line

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
