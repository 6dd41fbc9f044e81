"""The target `cmd:PROGRAM ARGS`: a program that answers JSON lines while it lives, or is run once for every question."""

import asyncio
import contextlib
import shlex
import shutil
from pathlib import Path
from typing import Any, Literal

import msgspec

from answerkey.errors import ConfigError, UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.protocols import Ask, TargetContext
from answerkey.targets.child_process import Child, start_child
from answerkey.targets.http_session import UnderWay
from answerkey.targets.line_program import LineHabits, LineProgram, SentLine
from answerkey.targets.request_template import compile_template, encode_body, values_of
from answerkey.targets.resolve import read_settings
from answerkey.targets.secrets import Secrets, settings_hash
from answerkey.targets.stopwatch import Stopwatch
from answerkey.text.sanitise import decode_text
from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.json_shapes import as_dict, as_list
from answerkey.transcripts.plain_json import MOST_MEGABYTES, admit_reply, decode_json, too_large
from answerkey.transcripts.reply_mapping import ReplyMapping, note_raw, reply_from_payload

_MEGABYTE = 1024 * 1024


class CommandSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a command target."""

    # The program and its arguments; "{{question}}" and the like in them are filled in when it is run once per question.
    cmd: str | list[str]
    # lines: it is kept alive and answers one JSON line with one line. once: it is run anew for every question.
    mode: Literal["lines", "once"] = "lines"
    # How many of it are kept alive; the turns of a conversation stay with one of them.
    processes: int = 1
    # Added to the environment; `${ENV}` is expanded.
    env: dict[str, str] = {}
    # Where it is started.
    folder: str | None = None
    # The JSON that it gets, if not {"question", "conversation_id", "turn"}; "id" is added, for it to give back.
    body: dict[str, Any] | None = None
    reply: ReplyMapping | None = None
    # A reply that is larger is a failure.
    max_reply_mb: float = MOST_MEGABYTES


def make_command_target(rest: str, context: TargetContext) -> "CommandTarget":
    """The factory of the kind `cmd`."""
    settings = read_settings(context, CommandSettings)
    if context.folder is not None:
        settings = msgspec.structs.replace(settings, folder=str(context.folder / (settings.folder or "")))
    return CommandTarget(settings, name=context.name, concurrency=context.concurrency)


class CommandTarget:
    """A program as a chatbot."""

    def __init__(
        self,
        settings: CommandSettings,
        *,
        name: str | None = None,
        concurrency: int = 10,
        secrets: Secrets | None = None,
    ) -> None:
        try:
            self._command = shlex.split(settings.cmd) if isinstance(settings.cmd, str) else list(settings.cmd)
        except ValueError as error:
            raise UsageError(
                f"cmd {settings.cmd!r} cannot be split into words: {str(error).lower()}"
            ) from None
        if not self._command:
            raise UsageError("cmd names no program; write cmd:PROGRAM ARGS")
        if settings.processes < 1:
            raise ConfigError(f"processes = {settings.processes}: must be at least 1")
        self.name = name or f"cmd:{shlex.join(self._command)}"
        self.fingerprint = settings_hash("cmd", [settings, self._command])
        # Where its code is: a file among its arguments, or else the folder where it is started.
        self.code = _code_of(self._command, Path(settings.folder or ""))
        # How many questions it can work on at once: one for every living program.
        self.capacity = settings.processes if settings.mode == "lines" else None
        self._settings = settings
        self._secrets = secrets or Secrets()
        self._most_bytes = int(settings.max_reply_mb * _MEGABYTE)
        default = {name: "{{" + name + "}}" for name in ("question", "conversation_id", "turn")}
        self._body = compile_template(settings.body or default, f"target {self.name}: body")
        # A program that is kept alive gets its arguments as they are.
        filled = self._command if settings.mode == "once" else []
        self._arguments = compile_template(filled, f"target {self.name}: cmd")
        self._env: dict[str, str] = {}
        self._slots: list[_Slot] = []
        self._running: set[Child] = set()
        self._habits = LineHabits(self.name)
        # Which slot a conversation began in.
        self._places: UnderWay[_Slot] = UnderWay(concurrency)

    async def __aenter__(self) -> "CommandTarget":
        self._env = self._secrets.expand(self._settings.env, f"target {self.name}: env")
        if self._settings.mode == "once":
            program = self._command[0]
            place = self._settings.folder if "/" in program else None
            if shutil.which(str(Path(place, program)) if place else program) is None:
                raise UsageError(f"there is no program {program!r}; check the target's cmd")
        else:
            self._slots = [_Slot() for _ in range(self._settings.processes)]
            # The first is started at once, so that a program that does not exist is told before the first question.
            self._slots[0].program = await self._start_program()
        return self

    async def __aexit__(self, *exc: object) -> None:
        ending = [slot.program.close() for slot in self._slots if slot.program is not None]
        ending += [child.close() for child in self._running]
        self._slots = []
        await asyncio.gather(*ending)
        self._running.clear()
        self._habits.conclude()

    async def ask(self, ask: Ask) -> Reply:
        """Ask once; a program that dies is a failure of this reply, and the next question gets a new one."""
        reply = await (self._run_once(ask) if self._settings.mode == "once" else self._ask_line(ask))
        return self._secrets.redact_reply(admit_reply(reply))

    async def _ask_line(self, ask: Ask) -> Reply:
        slot = self._slot(ask)
        slot.waiting += 1
        try:
            async with slot.lock:
                if slot.program is None or not await slot.program.is_in_step(begins=not ask.turn):
                    if slot.program is not None:
                        await slot.program.close()
                    slot.program = await self._start_program()
                return await self._exchange(slot.program, ask)
        finally:
            slot.waiting -= 1

    async def _exchange(self, program: LineProgram, ask: Ask) -> Reply:
        watch = Stopwatch()
        identity = self._habits.next_id()
        try:
            await self._send(program.child, ask, identity)
            line = await program.reply_to(SentLine(identity, ask.conversation_id))
        except asyncio.CancelledError:
            # Its answer would come when the next question is waiting for one.
            program.child.kill()
            raise
        timings = watch.timings()
        if isinstance(line, Failure):
            reply = Reply(failure=line)
        elif line is None:
            program.child.kill()
            reply = too_large(self._settings.max_reply_mb)
        else:
            reply = self._read(line, Asked(ask.question, ask.turn, ask.turn > 0), identity)
        return msgspec.structs.replace(reply, timings=timings)

    async def _run_once(self, ask: Ask) -> Reply:
        watch = Stopwatch()
        child = await self._start([str(part) for part in as_list(self._arguments.fill(values_of(ask)))])
        self._running.add(child)
        try:
            await self._send(child, ask)
            child.stdin.close()
            output = bytearray()
            while (chunk := await child.stdout.read(65536)) and len(output) <= self._most_bytes:
                output += chunk
            if len(output) > self._most_bytes:
                large = too_large(self._settings.max_reply_mb)
                return msgspec.structs.replace(large, timings=watch.timings())
            await child.process.wait()
            timings = watch.timings()
            if child.process.returncode != 0:
                reply = Reply(failure=await child.failure())
            else:
                reply = self._read(bytes(output), Asked(ask.question, ask.turn, ask.turn > 0))
            return msgspec.structs.replace(reply, timings=timings)
        finally:
            child.kill()
            self._running.discard(child)
            await asyncio.shield(child.close())

    async def _send(self, child: Child, ask: Ask, identity: str | None = None) -> None:
        body = as_dict(self._body.fill(values_of(ask)))
        if identity is not None:
            body = {"id": identity, **body}
        # A program that reads nothing may answer all the same; one that ended is found out by its output.
        with contextlib.suppress(ConnectionError):
            child.stdin.write(encode_body(body) + b"\n")
            await child.stdin.drain()

    def _read(self, raw: bytes, asked: Asked, identity: str | None = None) -> Reply:
        """JSON as a reply's fields; anything else is the answer itself."""
        text, wrong = decode_text(raw)
        text = text.strip("\r\n")
        note_raw(lambda: text)
        if wrong is not None:
            return Reply(text=text, failure=Failure("malformed", wrong))
        try:
            payload = decode_json(text)
        except (ValueError, RecursionError):
            return Reply(text=text)
        if isinstance(payload, dict) and identity is not None and payload.get("id") == identity:
            # Our id of the question, not the chatbot's of its reply.
            del payload["id"]
        # A bare number or word is what it says, not a JSON value.
        return reply_from_payload(
            payload if isinstance(payload, (dict, list)) or payload is None else text,
            mapping=self._settings.reply,
            asked=asked,
        )

    def _slot(self, ask: Ask) -> "_Slot":
        slot = self._places.get(ask.conversation_id) if ask.turn else None
        if slot is None:
            slot = min(self._slots, key=lambda one: one.waiting)
        self._places.keep(ask.conversation_id, slot)
        return slot

    async def _start_program(self) -> LineProgram:
        return LineProgram(await self._start(self._command), self._habits)

    async def _start(self, command: list[str]) -> Child:
        return await start_child(
            command, env=self._env, folder=self._settings.folder, longest_line=self._most_bytes
        )


class _Slot:
    """A place for one living program."""

    def __init__(self) -> None:
        self.program: LineProgram | None = None
        self.lock = asyncio.Lock()
        self.waiting = 0


def _code_of(command: list[str], folder: Path) -> Path:
    try:
        return next((folder / word for word in command[1:] if (folder / word).is_file()), folder)
    except OSError:
        # An argument that is too long to be a name.
        return folder
