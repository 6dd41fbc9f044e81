"""The target `python:module:callable` (also `file.py:callable`): any function of the user's, sync or async."""

import hashlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec

from answerkey.errors import UsageError
from answerkey.model.reply import Reply
from answerkey.plugins import load_python
from answerkey.protocols import Ask, TargetContext
from answerkey.targets.runnables import as_function
from answerkey.targets.secrets import settings_hash
from answerkey.targets.stopwatch import Stopwatch
from answerkey.targets.table_settings import read_settings
from answerkey.targets.worker_threads import WorkerThreads
from answerkey.transcripts.conversation import asked_in
from answerkey.transcripts.failures import failure_message, retryable_from_exception
from answerkey.transcripts.reply_mapping import (
    ReplyMapping,
    Streamed,
    reply_from_exception,
    reply_from_object,
)

__all__ = ["PythonTarget", "load_callable", "make_python_target"]

# Parameters that are filled by name, beside the question itself.
_EXTRAS = ("conversation_id", "context", "turn", "trial", "traceparent")


class PythonSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a callable under test."""

    # "module:callable" or "file.py:callable".
    python: str
    reply: ReplyMapping | None = None


def make_python_target(rest: str, context: TargetContext) -> "PythonTarget":
    """The factory of the kind `python`."""
    settings = read_settings(context, PythonSettings)
    function, source = load_callable(settings.python, context.folder)
    return PythonTarget(
        function,
        name=context.name or f"python:{settings.python}",
        fingerprint=settings_hash("python", [settings, source]),
        mapping=settings.reply,
        concurrency=context.concurrency,
    )


class PythonTarget:
    """A callable as a chatbot: it takes the question and gives a str, dict, Reply or anything that can be read as one."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str | None = None,
        fingerprint: str | None = None,
        mapping: ReplyMapping | None = None,
        concurrency: int = 10,
    ) -> None:
        self.name = name or f"python:{_name_of(function)}"
        self.fingerprint = fingerprint or _hash(
            self.name, _source_of(function), msgspec.json.encode(mapping).decode()
        )
        self._function = function
        self._arguments = _arguments_for(function)
        self._is_async = _is_async(function)
        self._mapping = mapping
        self._concurrency = concurrency
        self._threads = WorkerThreads(concurrency)

    async def __aenter__(self) -> "PythonTarget":
        # Anew each time: it may be opened again in another event loop.
        self._threads = WorkerThreads(self._concurrency)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._threads.close()

    async def ask(self, ask: Ask) -> Reply:
        """Call it once; what it raises is the reply's failure."""
        watch = Stopwatch()
        try:
            reply = reply_from_object(
                await self._call(ask, watch), mapping=self._mapping, asked=asked_in(ask)
            )
        except (Exception, SystemExit) as error:  # the user's code may raise anything, and it is data
            retryable = retryable_from_exception(error)
            if retryable is not None:
                raise retryable from error
            return msgspec.structs.replace(reply_from_exception(error), timings=watch.timings())
        timings = watch.timings()
        if reply.timings.first_byte_ms is not None and timings.first_byte_ms is None:
            timings = msgspec.structs.replace(timings, first_byte_ms=reply.timings.first_byte_ms)
        return msgspec.structs.replace(reply, timings=timings)

    async def _call(self, ask: Ask, watch: Stopwatch) -> object:
        positional, named = self._arguments(ask)

        def call() -> object:
            watch.start()
            result = self._function(*positional, **named)
            if isinstance(result, Iterator):
                result = Streamed(_items(result, watch))
            watch.stop()
            return result

        result = call() if self._is_async else await self._threads.run(call)
        # An async generator function is async without being awaitable.
        if isinstance(result, AsyncIterator) or inspect.isawaitable(result):
            watch.resume()
            result = await (_joined(result, watch) if isinstance(result, AsyncIterator) else result)
            watch.stop()
        return result


def _items(stream: Iterator[object], watch: Stopwatch) -> Iterator[object]:
    for item in stream:
        watch.chunk()
        yield item


async def _joined(stream: AsyncIterator[object], watch: Stopwatch) -> Streamed:
    items = Streamed()
    async for item in stream:
        watch.chunk()
        items.append(item)
    return items


def _is_async(function: Callable[..., object]) -> bool:
    while hasattr(function, "func"):
        function = function.func
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004  # the method itself is wanted
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


def _arguments_for(
    function: Callable[..., object],
) -> Callable[[Ask], tuple[tuple[object, ...], dict[str, object]]]:
    """How to call it, from its signature: with the question, with more by name, or with the whole Ask."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return lambda ask: ((ask.question,), {})
    positional = [
        part for part in parameters if part.kind in (part.POSITIONAL_ONLY, part.POSITIONAL_OR_KEYWORD)
    ]
    if not positional and not any(part.kind is part.VAR_POSITIONAL for part in parameters):
        raise UsageError(f"{_name_of(function)} takes no argument; a target takes the question")
    if positional and (positional[0].name == "ask" or positional[0].annotation in (Ask, "Ask")):
        return lambda ask: ((ask,), {})
    names = [part.name for part in positional]
    if names[:3] == ["prompt", "options", "context"]:
        # promptfoo's call_api(prompt, options, context).
        return lambda ask: ((ask.question, {"config": {}}, {"vars": {"question": ask.question}}), {})
    by_name = [
        part.name for part in parameters if part.name in _EXTRAS and part.kind is not part.POSITIONAL_ONLY
    ]
    if any(part.kind is part.VAR_KEYWORD for part in parameters) and "conversation_id" not in by_name:
        by_name.append("conversation_id")
    unfilled = [
        part.name
        for part in parameters[1:]
        if part.default is part.empty
        and part.kind not in (part.VAR_POSITIONAL, part.VAR_KEYWORD)
        and part.name not in by_name
    ]
    if unfilled:
        raise UsageError(
            f"{_name_of(function)} needs {', '.join(unfilled)}, which a target is not given; "
            f"it may take the question and {', '.join(_EXTRAS)}",
        )
    return lambda ask: ((ask.question,), {name: getattr(ask, name) for name in by_name})


def load_callable(reference: str, start: Path | None = None) -> tuple[Callable[..., object], str]:
    """The callable behind "module:name" or "path/file.py:name", and its source for the fingerprint.

    Modules and files are looked for in the folder `start`, or else in the current one.
    """
    found, module = load_python(reference, start)
    if isinstance(found, type):
        found = _instance(found, reference)
    function = as_function(found)
    if function is None:
        raise UsageError(f"{reference} is not a callable; a target is a function that takes a question")
    source = getattr(module, "__file__", None)
    return function, Path(source).read_text(errors="replace") if source and Path(source).is_file() else ""


def _instance(cls: type, reference: str) -> object:
    try:
        made = cls()
    except Exception as error:  # the user's class may raise anything
        raise UsageError(
            failure_message(f"{reference} is a class that cannot be made: {type(error).__name__}: {error}")
        ) from error
    return made


def _name_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}:{name}"


def _source_of(function: Callable[..., object]) -> str:
    """The callable's source: another source is another chatbot. Without it, its name has to do."""
    try:
        return inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):
        return ""


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
