"""Objects that can be run as chatbots: which of their methods takes the question, and in which form.

The frameworks' agents are known by the names of their types; none of the frameworks is imported.
"""

import asyncio
import contextvars
import inspect
import queue
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import settings_hash
from answerkey.errors import UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.observe.observations import join_observations
from answerkey.observe.trace_reading import Collected, in_process_spans
from answerkey.plugins import load_python
from answerkey.protocols import Ask, BaseTarget
from answerkey.targets.resolve import Stopwatch
from answerkey.transcripts.fields import failure_message
from answerkey.transcripts.json_values import (
    MOST_MEGABYTES,
    admit_reply,
    as_builtin,
    as_json,
    json_text,
    too_large,
)
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import (
    ReplyMapping,
    Streamed,
    exception_text,
    failure_from_exception,
    note_raw,
    reply_from_exception,
    reply_from_object,
    retryable_from_exception,
)

if TYPE_CHECKING:
    from answerkey.fault_points import FaultScope

# Asks, and whether its result must be awaited.
_Asking = tuple[Callable[[Ask], Any], bool]
# Methods that take the question, asynchronous ones first.
_METHODS = ("ainvoke", "invoke", "arun", "run", "achat", "chat", "aquery", "query", "ask")


def as_function(target: Any) -> Callable[..., object] | None:
    """The function that asks an object: the object itself, or a method of an agent or runnable; None if there is none."""
    if inspect.isroutine(target):
        return target
    asking = _agent(target) or _runnable(target)
    if asking is not None:
        return _as_asking_function(asking, target)
    if callable(target):
        return target  # type: ignore[no-any-return]
    return next((one for name in _METHODS if callable(one := getattr(target, name, None))), None)


def _as_asking_function(asking: _Asking, target: object) -> Callable[[Ask], object]:
    """The function with one parameter `ask`, so that it gets the whole Ask."""
    begin, is_async = asking

    def called(ask: Ask) -> object:
        return begin(ask)

    async def awaited(ask: Ask) -> object:
        return await begin(ask)

    function = awaited if is_async else called
    function.__qualname__ = type(target).__qualname__
    function.__module__ = type(target).__module__
    return function


def _agent(target: Any) -> _Asking | None:
    """How an agent of a framework is run: by the package and name of one of its classes."""
    for cls in type(target).__mro__:
        package = cls.__module__.partition(".")[0]
        begin = _AGENTS.get((package, cls.__name__))
        if begin is not None:
            return partial(begin, target), package != "smolagents"
    return None


def _openai_agent(agent: Any, ask: Ask) -> object:
    return sys.modules[type(agent).__module__.partition(".")[0]].Runner.run(agent, ask.question)


_BY_QUESTION, _BY_TASK, _BY_MESSAGE = (
    lambda agent, ask: agent.run(ask.question),
    lambda agent, ask: agent.run(task=ask.question),
    lambda agent, ask: agent.run(user_msg=ask.question),
)
_AGENTS: dict[tuple[str, str], Callable[[Any, Ask], object]] = {
    ("agents", "AgentBase"): _openai_agent,
    ("agents", "Agent"): _openai_agent,
    ("pydantic_ai", "AbstractAgent"): _BY_QUESTION,
    ("pydantic_ai", "Agent"): _BY_QUESTION,
    ("autogen_agentchat", "TaskRunner"): _BY_TASK,
    ("autogen_agentchat", "BaseChatAgent"): _BY_TASK,
    ("autogen_agentchat", "BaseGroupChat"): _BY_TASK,
    ("llama_index", "BaseWorkflowAgent"): _BY_MESSAGE,
    ("llama_index", "AgentWorkflow"): _BY_MESSAGE,
    ("crewai", "Crew"): lambda crew, ask: crew.kickoff_async(inputs={"question": ask.question}),
    ("smolagents", "MultiStepAgent"): lambda agent, ask: agent.run(
        ask.question, reset=not ask.turn, return_full_result=True
    ),
}


def _runnable(target: Any) -> _Asking | None:
    """LangChain's protocol: `ainvoke(input, config)`, whose input is text, messages or an object with one of them."""
    invoke, ainvoke = getattr(target, "invoke", None), getattr(target, "ainvoke", None)
    run = ainvoke if callable(ainvoke) else invoke
    if not callable(run):
        return None
    fill = _input_of(target)
    takes_config = any(part.name == "config" for part in _parameters(run) or ())

    def begin(ask: Ask) -> object:
        config = {"configurable": {"thread_id": ask.conversation_id}}
        return run(fill(ask.question), config) if takes_config else run(fill(ask.question))

    return begin, run is ainvoke


def _input_of(target: Any) -> Callable[[str], object]:
    """The input of a runnable, by its input schema or keys; without them, the question itself."""
    schema = getattr(target, "get_input_jsonschema", None)
    fields = (
        schema().get("properties")
        if callable(schema)
        else dict.fromkeys(getattr(target, "input_keys", None) or ())
    )
    if not isinstance(fields, dict) or not fields:
        return lambda question: question
    if "messages" in fields:
        return lambda question: {"messages": [{"role": "user", "content": question}]}
    known = [name for name in ("question", "input", "query", "prompt", "text") if name in fields]
    name = (known or list(fields))[0]
    return lambda question: {name: question}


# Maximum calls that may still be running after their timeout.
_MOST_ABANDONED = 256


class _Worker(threading.Thread):
    """A daemon thread that makes calls one after the other; None ends it."""

    def __init__(self) -> None:
        super().__init__(name="answerkey-target", daemon=True)
        self.calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def run(self) -> None:
        while (call := self.calls.get()) is not None:
            call()


class WorkerThreads:
    """Daemon threads for callables that block: a call that never returns does not delay the end of the run.

    A call whose task is cancelled (a timeout) frees its slot at once; its thread continues until it returns. Threads are used
    again, so that what a chatbot keeps for each thread (a connection, a model) is made once.
    """

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)
        self._idle: list[_Worker] = []
        self._abandoned: set[_Worker] = set()
        self._closed = False

    async def run(self, function: Callable[[], object]) -> object:
        """The result of `function` called in a thread; raises what it raises."""
        async with self._free:
            if len(self._abandoned) >= _MOST_ABANDONED:
                raise TimeoutError(
                    f"{len(self._abandoned)} calls that timed out are still running; no more are started"
                )
            loop = asyncio.get_running_loop()
            future: asyncio.Future[object] = loop.create_future()
            context, ended = contextvars.copy_context(), threading.Event()
            worker = self._idle_worker()

            def work() -> None:
                result: object = None
                error: BaseException | None = None
                try:
                    result = context.run(function)
                except BaseException as raised:  # noqa: BLE001  # raised to the caller: even SystemExit must not end the thread
                    error = _for_future(raised)
                ended.set()
                self._release(worker)
                # If the loop was closed during the call, the result is not needed.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(_settle, future, result, error)

            worker.calls.put(work)
            try:
                return await future
            except asyncio.CancelledError:
                if not ended.is_set():
                    self._abandoned.add(worker)
                raise

    def close(self) -> None:
        """Let the idle threads end; busy ones end when their call returns."""
        self._closed = True
        for worker in self._idle:
            worker.calls.put(None)

    def _idle_worker(self) -> _Worker:
        if self._idle:
            return self._idle.pop()
        worker = _Worker()
        worker.start()
        return worker

    def _release(self, worker: _Worker) -> None:
        self._abandoned.discard(worker)
        self._idle.append(worker)
        if self._closed:
            worker.calls.put(None)


def _settle(future: "asyncio.Future[object]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _for_future(error: BaseException) -> BaseException:
    """The error in a form that a future accepts and that only fails this question."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__}: {exception_text(error)}")
    wrapped.__cause__ = error
    return wrapped


# PythonTarget: a sync or async callable in this process, for `evaluate(target=function)` and for the process of
# `python:module:callable`.


# Parameters that are filled by name, beside the question itself.
_EXTRAS = ("conversation_id", "context", "turn", "trial", "traceparent")
_MEGABYTE = 1024 * 1024
# Bytes counted for an object in a stream, so that an endless stream is noticed.
_OBJECT_BYTES = 200
# Whether the running code is the chatbot's; worker threads run in a copy of the context.
_in_chatbot: ContextVar[bool] = ContextVar("answerkey_in_chatbot", default=False)


class _TooLargeError(Exception):
    """A stream of text has grown beyond the limit."""


class _DividedOutput:
    """Standard output, but stderr for chatbots."""

    def __init__(self, real: Any) -> None:
        self.real = real
        # Number of open targets.
        self.users = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if _in_chatbot.get() else self.real, name)


@contextmanager
def _diverting() -> Iterator[None]:
    """Make `_divert_here` work while a target is open."""
    divided = sys.stdout if isinstance(sys.stdout, _DividedOutput) else _DividedOutput(sys.stdout)
    divided.users += 1
    sys.stdout = divided
    try:
        yield
    finally:
        divided.users -= 1
        # Other code may have replaced it since.
        if not divided.users and sys.stdout is divided:
            sys.stdout = divided.real


@contextmanager
def _divert_here() -> Iterator[None]:
    """Send what the code inside prints, and its threads of answerkey, to stderr."""
    token = _in_chatbot.set(True)
    try:
        yield
    finally:
        _in_chatbot.reset(token)


def _faulted(ask: Ask) -> "AbstractContextManager[FaultScope | None]":
    """The fault of a question, for the fault points of the chatbot."""
    if ask.fault is None:
        return nullcontext()
    from answerkey.fault_points import fault_scope  # only runs of `faults` need it

    return fault_scope(ask.fault)


class PythonTarget(BaseTarget):
    """A callable as a chatbot: it takes the question and returns a str, dict, Reply or anything that can be read as one."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str | None = None,
        mapping: ReplyMapping | None = None,
        concurrency: int = 10,
        max_reply_mb: float = MOST_MEGABYTES,
    ) -> None:
        self.name = name or f"python:{_name_of(function)}"
        self.fingerprint = settings_hash("python", [self.name, _source_of(function), mapping])
        # None: it has no file.
        self.code = _file_of(function)
        self._function = function
        self._arguments = _arguments_for(function)
        # Whether a call runs on the event loop, where it can be cancelled and can block.
        self.is_async = _is_async(function)
        # Whether it gets the conversation id.
        self.remembers = _gets_conversation_id(function)
        self._max_reply_mb = max_reply_mb
        # By its fault points.
        self.takes_faults = True
        self._open = ExitStack()
        self._mapping = mapping
        self._concurrency = concurrency
        self._threads = WorkerThreads(concurrency)

    async def __aenter__(self) -> "PythonTarget":
        # It may be opened again in another event loop.
        self._threads = WorkerThreads(self._concurrency)
        self._open.enter_context(_diverting())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._threads.close()
        self._open.close()

    async def ask(self, ask: Ask) -> Reply:
        """Call it once; an exception becomes the failure of the reply, except for cancellation and Ctrl-C."""
        watch = Stopwatch()
        spans = Collected()
        scope: FaultScope | None = None
        try:
            with _divert_here(), in_process_spans(ask.traceparent) as spans, _faulted(ask) as scope:
                result = await self._call(ask, watch)
            reply = self._read_object(result, ask)
        except _TooLargeError:
            reply = too_large(self._max_reply_mb)
        except BaseException as error:
            if _is_cancellation(error):
                raise
            retryable = retryable_from_exception(error)
            if retryable is not None:
                raise retryable from error
            reply = reply_from_exception(error)
        if scope is not None and scope.record is not None:
            reply = msgspec.structs.replace(reply, fault=scope.record)
        if spans.spans:
            reply = admit_reply(join_observations(reply, [spans.observation()]), self._max_reply_mb)
        timings = watch.timings()
        if reply.timings.first_byte_ms is not None and timings.first_byte_ms is None:
            timings = msgspec.structs.replace(timings, first_byte_ms=reply.timings.first_byte_ms)
        return msgspec.structs.replace(reply, timings=timings)

    def _read_object(self, result: object, ask: Ask) -> Reply:
        """The reply in what the chatbot returned; an object that cannot be read is not the chatbot's error."""
        try:
            return self._read(result, ask)
        except Exception as error:  # noqa: BLE001  # reading calls methods of foreign objects
            why = failure_from_exception(error).message
            message = (
                f"the returned {type(result).__name__} could not be read: {why}; return a text or a dict"
            )
            return Reply(failure=Failure("mapping", failure_message(message)))

    def _read(self, result: object, ask: Ask) -> Reply:
        if isinstance(result, (str, bytes)) and len(result) > self._max_reply_mb * _MEGABYTE:
            return too_large(self._max_reply_mb)
        note_raw(lambda: result if isinstance(result, str) else json_text(as_json(as_builtin(result))))
        reply = reply_from_object(
            result, mapping=self._mapping, context=QuestionContext(ask.question, ask.turn, ask.turn > 0)
        )
        return admit_reply(reply, self._max_reply_mb)

    async def _call(self, ask: Ask, watch: Stopwatch) -> object:
        positional, named = self._arguments(ask)

        def call() -> object:
            watch.start()
            result = self._function(*positional, **named)
            if isinstance(result, Iterator):
                items = _Collecting(watch, self._max_reply_mb)
                for item in result:
                    items.add(item)
                result = items
            watch.stop()
            return result

        result = call() if self.is_async else await self._threads.run(call)
        # The result of an async generator function is not awaitable.
        if isinstance(result, AsyncIterator) or inspect.isawaitable(result):
            watch.resume()
            result = await (self._collect(result, watch) if isinstance(result, AsyncIterator) else result)
            watch.stop()
        return result

    async def _collect(self, stream: AsyncIterator[object], watch: Stopwatch) -> Streamed:
        items = _Collecting(watch, self._max_reply_mb)
        async for item in stream:
            items.add(item)
        return items


class _Collecting(Streamed):
    """The items of a stream so far, with a size limit."""

    def __init__(self, watch: Stopwatch, most_megabytes: float) -> None:
        self._watch = watch
        self._room = most_megabytes * _MEGABYTE

    def add(self, item: object) -> None:
        self._watch.chunk()
        self.append(item)
        # The fields of an object are not counted.
        self._room -= len(item) if isinstance(item, (str, bytes)) else _OBJECT_BYTES
        if self._room < 0:
            raise _TooLargeError


def _is_cancellation(error: BaseException) -> bool:
    """Whether the engine cancelled the question or the user pressed Ctrl-C; chatbots raise the same exceptions."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    # Where a loop handles Ctrl-C, it cancels the run instead of raising this.
    return (
        isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def _is_async(function: Callable[..., object]) -> bool:
    while hasattr(function, "func"):
        function = function.func
    call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004  # the method itself is wanted
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _gets_conversation_id(function: Callable[..., object]) -> bool:
    return any(
        part.name == "conversation_id" or part.kind is part.VAR_KEYWORD or _takes_ask(part)
        for part in _parameters(function) or ()
    )


def _takes_ask(part: inspect.Parameter) -> bool:
    return part.name == "ask" or part.annotation in (Ask, "Ask")


def _arguments_for(
    function: Callable[..., object],
) -> Callable[[Ask], tuple[tuple[object, ...], dict[str, object]]]:
    """How to call it by its signature: with the question, with further arguments by name, or with the whole Ask."""
    parameters = _parameters(function)
    if parameters is None:
        return lambda ask: ((ask.question,), {})
    positional = [
        part for part in parameters if part.kind in (part.POSITIONAL_ONLY, part.POSITIONAL_OR_KEYWORD)
    ]
    if not positional and not any(part.kind is part.VAR_POSITIONAL for part in parameters):
        raise UsageError(f"{_name_of(function)} takes no argument; a target takes the question")
    if positional and _takes_ask(positional[0]):
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
            f"{_name_of(function)} needs {', '.join(unfilled)}, which a target does not get; "
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
        raise UsageError(
            f"{reference} is not a callable; a target is a function that takes a question, or an object with .invoke or .run"
        )
    source = getattr(module, "__file__", None)
    return function, Path(source).read_text(errors="replace") if source and Path(source).is_file() else ""


def _instance(cls: type, reference: str) -> object:
    try:
        made = cls()
    except Exception as error:  # the user's class may raise anything
        raise UsageError(
            failure_message(
                f"{reference} is a class that cannot be instantiated: {type(error).__name__}: {error}"
            )
        ) from error
    return made


def _name_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}:{name}"


def _source_of(function: Callable[..., object]) -> str:
    """The source of a callable, which identifies its version; empty if it has none."""
    try:
        return inspect.getsource(_written(function))
    except (OSError, TypeError):
        return ""


def _file_of(function: Callable[..., object]) -> Path | None:
    try:
        found = inspect.getsourcefile(_written(function))
    except TypeError:
        return None
    return None if found is None else Path(found)


def _written(function: Callable[..., object]) -> Any:
    """The part of a callable that has source code: itself, or its class."""
    return function if inspect.isroutine(function) else type(function)
