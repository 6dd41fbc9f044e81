"""The target `python:module:callable` (also `file.py:callable`): any function of the user's, in processes of its own.

One process is asked many questions at once, as a server would be, so that what it loads is loaded once. Only where
questions get in each other's way are they kept apart: when the process ends in their midst, or when an async function
blocks the loop that they share, each is asked in a process that works on nothing else.
"""

import asyncio
import sys
from collections.abc import Coroutine
from importlib.machinery import PathFinder
from pathlib import Path

import msgspec

from answerkey.errors import ConfigError, UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.protocols import Ask, AskAgainError, TargetContext
from answerkey.targets.http_session import UnderWay
from answerkey.targets.python_frames import Begin
from answerkey.targets.python_process import PythonProcess, start_python_process
from answerkey.targets.resolve import read_settings
from answerkey.targets.secrets import settings_hash
from answerkey.transcripts.plain_json import MOST_MEGABYTES
from answerkey.transcripts.reply_mapping import ReplyMapping, is_watched

# An event loop that stands still for so long keeps others waiting.
_PATIENCE_S = 1.0
# A conversation's next turn comes within this time; then a process that is to be ended is.
_LINGER_S = 1.0
# So many of the questions in whose midst a process ended are asked again at once.
_MOST_SUSPECTS = 4


class PythonSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a callable under test."""

    # "module:callable" or "file.py:callable".
    python: str
    # How many processes share the questions; as many as the concurrency means one question at a time in each.
    processes: int = 1
    # A reply that is larger is a failure.
    max_reply_mb: float = MOST_MEGABYTES
    reply: ReplyMapping | None = None


def make_isolated_target(rest: str, context: TargetContext) -> "IsolatedTarget":
    """The factory of the kind `python`."""
    return IsolatedTarget(
        read_settings(context, PythonSettings),
        name=context.name,
        concurrency=context.concurrency,
        folder=context.folder,
    )


class IsolatedTarget:
    """A callable in processes of its own as a chatbot."""

    def __init__(
        self,
        settings: PythonSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        folder: Path | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        if settings.processes < 1:
            raise ConfigError(f"processes = {settings.processes}: must be at least 1")
        self.name = name or f"python:{settings.python}"
        # Where its code is; None: that is not known before it is imported.
        self.code = _file_of(settings.python, folder)
        source = "" if self.code is None else self.code.read_text(errors="replace")
        # Another source is another chatbot.
        self.fingerprint = settings_hash("python", [settings.python, settings.reply, source])
        self._concurrency = concurrency
        self._begin = Begin(
            reference=settings.python,
            folder=None if folder is None else str(folder),
            path=sys.path,
            mapping=settings.reply,
            concurrency=-(-concurrency // settings.processes),
            max_reply_mb=settings.max_reply_mb,
            patience_s=patience_s,
            with_raw=is_watched(),
        )
        # Begin for a process that works on one question at a time.
        self._begin_alone = msgspec.structs.replace(self._begin, concurrency=1)
        self._processes: list[PythonProcess] = []
        self._starting = 0
        # Why the last process could not be started.
        self._refusal: UsageError | None = None
        # Conversations in whose midst a process ended or stood still: each is asked where no other is.
        self._suspects: set[str] = set()
        self._said_blocked = False
        # Set whenever a process has room, ended or was started.
        self._changed = asyncio.Event()
        # Starting processes and waiting for the end of old ones, which is given up when the target closes.
        self._chores: set[asyncio.Task[None]] = set()
        self._places: UnderWay[PythonProcess] = UnderWay(concurrency)

    async def __aenter__(self) -> "IsolatedTarget":
        self._changed = asyncio.Event()
        self._said_blocked = False
        # At once, so that a function that cannot be loaded is told before the first question.
        await self._start(self._begin)
        if self._refusal is not None:
            raise self._refusal
        return self

    async def __aexit__(self, *exc: object) -> None:
        chores, self._chores = self._chores, set()
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        processes, self._processes = self._processes, []
        await asyncio.gather(*(process.close() for process in processes))

    async def wait_for_room(self, ask: Ask) -> None:
        """Until a process is there that takes the question: starting one is not the chatbot's time."""
        await self._place(ask)

    async def ask(self, ask: Ask) -> Reply:
        """Ask once; a process that ends is the failure of the question that it was asked, and of no other."""
        process = await self._place(ask)
        if isinstance(process, Failure):
            return Reply(failure=process)
        self._places.keep(ask.conversation_id, process)
        try:
            reply = await process.ask(ask)
        except AskAgainError:
            self._suspects.add(ask.conversation_id)
            raise
        self._suspects.discard(ask.conversation_id)
        return reply

    async def _place(self, ask: Ask) -> PythonProcess | Failure:
        """The process to ask; a conversation stays in its own, and is lost with it if the chatbot may remember it."""
        before = self._places.get(ask.conversation_id) if ask.turn else None
        if before is not None:
            if before.ending is None:
                return before
            if before.ready.remembers:
                return Failure("exception", f"the conversation was lost: {before.ending.message}")
        alone = ask.conversation_id in self._suspects
        while True:
            for process in self._processes:
                if process.has_room and (process.is_private or not alone):
                    return process
            if self._may_start(alone):
                # Not in the question's own task: it may time out, and the process is wanted by others as well.
                self._refusal = None
                self._do(self._start(self._begin_alone if alone or self._said_blocked else self._begin))
            await self._changed.wait()
            if self._refusal is not None:
                raise self._refusal

    def _may_start(self, alone: bool) -> bool:
        """Whether to start another: one that many can share is waited for, and there is a limit to the others."""
        if not alone and not self._said_blocked:
            return not self._starting
        private = sum(process.is_private and not process.retiring for process in self._processes)
        most = self._concurrency if self._said_blocked else min(_MOST_SUSPECTS, self._concurrency)
        return private + self._starting < most

    async def _start(self, begin: Begin) -> None:
        self._starting += 1
        try:
            process = await start_python_process(begin)
        except UsageError as error:
            # For those who wait; the next question tries again.
            self._refusal = error
        else:
            process.on_stuck = self._replace
            process.on_blocked = self._keep_apart
            process.on_room = self._tell_changed
            self._processes.append(process)
        finally:
            self._starting -= 1
            self._tell_changed()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
        self._processes = [process for process in self._processes if process.ending is None]
        for process in self._processes:
            if process.retiring and not process.under_way and not process.lingers:
                process.lingers = True
                self._do(self._end_idle(process))

    def _replace(self, process: PythonProcess) -> None:
        """A question goes on though nobody waits for it: end its process, when another is there to take its place."""
        if not process.retiring and not process.is_replaced:
            process.is_replaced = True
            self._do(self._start_in_place_of(process))

    async def _start_in_place_of(self, process: PythonProcess) -> None:
        await self._start(process.begin)
        process.retiring = True
        self._tell_changed()

    def _keep_apart(self, process: PythonProcess) -> None:
        """From now on no question shares a loop: this function blocks it."""
        if self._concurrency == 1:
            return
        process.retiring = True
        if not self._said_blocked:
            self._said_blocked = True
            sys.stderr.write(
                f"answerkey: {self.name} blocks its event loop (an async function that waits without await); "
                "its questions are now asked in processes of their own\n"
            )
        self._tell_changed()

    async def _end_idle(self, process: PythonProcess) -> None:
        await asyncio.sleep(_LINGER_S)
        process.lingers = False
        if not process.under_way and process in self._processes:
            self._processes.remove(process)
            process.ending = process.ending or Failure(
                "timeout", "a question in it went on after its timeout"
            )
            await process.kill()

    def _do(self, chore: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


def _file_of(reference: str, folder: Path | None) -> Path | None:
    """The file of a callable's module, found without importing it."""
    place = reference.rpartition(":")[0]
    start = folder or Path()
    if place.endswith(".py") or "/" in place or "\\" in place:
        path: Path | None = start / place
    else:
        path = _module_file(place, [str(start.resolve()), *sys.path])
    return path if path is not None and path.is_file() else None


def _module_file(name: str, search: list[str]) -> Path | None:
    origin: str | None = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:count]), search)
        if spec is None:
            return None
        origin, search = spec.origin, list(spec.submodule_search_locations or [])
    return None if origin is None else Path(origin)
