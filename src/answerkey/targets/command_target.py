"""The target `cmd:PROGRAM ARGS`: a program that answers JSON lines while it runs, or is run once for each question.

Programs are started without a shell in their own session, and ended together with their children.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.config import Secrets, settings_hash
from answerkey.errors import ConfigError, UsageError
from answerkey.model.reply import Failure, Reply
from answerkey.observe.observations import child_environment
from answerkey.protocols import Ask, BaseTarget, TargetContext
from answerkey.targets.resolve import (
    PerConversation,
    Stopwatch,
    Template,
    read_settings,
    values_of,
)
from answerkey.text.normalise import decode_text, one_line
from answerkey.transcripts.fields import classify_error, failure_message
from answerkey.transcripts.json_values import (
    MOST_MEGABYTES,
    admit_reply,
    as_dict,
    as_list,
    decode_json,
    encode_json,
    too_large,
)
from answerkey.transcripts.messages import QuestionContext
from answerkey.transcripts.payloads import ReplyMapping, note_raw, reply_from_payload

_GRACE_S = 1.0
# The last lines of stderr, for the message of a failure.
_LAST_LINES = 30
_LONGEST_LINE = 2000


class Child:
    """A running program with its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the process has no pipes")
        self.process = process
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._stderr = process.stderr
        self._killed = False
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._listening = asyncio.create_task(self._listen())

    @property
    def alive(self) -> bool:
        return self.process.returncode is None and not self._killed

    def kill(self) -> None:
        self._killed = True
        end_session(self.process)

    async def finish(self) -> bool:
        """Close the program's input; whether the program then ends by itself, like one that waits for the next question."""
        self.stdin.close()
        return await ended_within(self.process, _GRACE_S)

    async def close(self) -> None:
        """End the program: close its input, then send SIGTERM, then kill it."""
        if self.alive and not await self.finish():
            end_session(self.process, signal.SIGTERM)
            await ended_within(self.process, _GRACE_S)
        self.kill()
        await self.process.wait()
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening

    async def failure(self) -> Failure:
        """Why the program ended, or closed its output: its exit code and the last lines of its stderr."""
        by_itself = self._killed or await ended_within(self.process, _GRACE_S)
        if not by_itself:
            self.kill()
            await self.process.wait()
        # The last lines may still be in the pipe.
        await asyncio.wait({self._listening}, timeout=_GRACE_S)
        code = self.process.returncode or 0
        ending = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if not by_itself:
            ending = "closed its standard output without ending"
        said = next((line for line in reversed(self._last) if line.strip()), "")
        is_memory = by_itself and code == -signal.SIGKILL
        kind = classify_error(said) if said else "memory" if is_memory else "exception"
        return Failure(kind, failure_message(f"the program {ending}" + (f": {said}" if said else "")))

    async def _listen(self) -> None:
        rest = b""
        while chunk := await self._stderr.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            self._last.extend(
                line[:_LONGEST_LINE].decode("utf-8", "replace") for line in lines[-_LAST_LINES:]
            )
            rest = rest[-_LONGEST_LINE:]
        if rest:
            self._last.append(rest.decode("utf-8", "replace"))


async def ended_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether a process ends by itself within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        return False
    return True


def end_session(process: asyncio.subprocess.Process, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process and its children, which get it even if the process itself has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def start_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: str | None,
    longest_line: int,
) -> Child:
    """Start a program; raises UsageError if it cannot be started."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**child_environment(), **env},
            cwd=folder,
            limit=longest_line,
            # answerkey handles Ctrl-C, and the whole session can be killed at once.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        # The same error is raised for a missing working directory.
        missing = (
            f"folder {folder!r}"
            if folder is not None and error.filename == folder
            else f"program {command[0]!r}"
        )
        raise UsageError(f"there is no {missing}; check the target's cmd") from None
    except (PermissionError, OSError, ValueError) as error:
        raise UsageError(failure_message(f"the program {command[0]!r} cannot be started: {error}")) from None
    return Child(process)


# Which line of a program is the reply to which question.
#
# Every question has an id. If the program echoes it (or the conversation's id), replies are recognised exactly, whatever else
# it writes. A program that answers in JSON without an id is restarted whenever it wrote an extra line. A program that answers
# in plain text, where replies look like any other line, is restarted for each conversation.


# Maximum unread lines, so that a program that writes unasked does not fill the memory.
_MOST_WAITING = 1000
# Time for lines that a program has written to arrive.
_ARRIVAL_S = 0.002
# How long the very first line without an id is held back: it may be a greeting before the reply.
_SETTLE_S = 1.0
_MOST_SHOWN = 20
# After this many extra lines, text lines of a program that echoes no id are not accepted as replies.
_MOST_MISTAKES = 2


class LineHabits:
    """How the programs of one target write, as observed so far; reports lines that are not replies."""

    def __init__(self, name: str) -> None:
        self._name = name
        # All ids of this target's questions begin with this, so that the id of another question is recognised.
        self._prefix = f"ask-{os.urandom(4).hex()}-"
        self._count = 0
        # It has echoed a question's id.
        self.echoes = False
        # Its replies are JSON, so a line of text is not a reply.
        self.speaks_json = False
        # Its replies are text.
        self.speaks_text = False
        # Number of extra lines of a program that echoes no id.
        self.mistakes = 0
        # It has written a line.
        self.has_written = False
        self._stray = 0

    def next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def question_of(self, line: bytes, sent: "SentLine") -> str | None:
        """The id of the question that a line echoes, itself or by its conversation id; None if it echoes none."""
        found = _decoded(line)
        if not isinstance(found, dict):
            return None
        identity = found.get("id")
        if isinstance(identity, str) and identity.startswith(self._prefix):
            return identity
        return sent.identity if found.get("conversation_id") == sent.conversation_id else None

    def show_stray(self, line: bytes, why: str = "") -> None:
        """Report a line that is not a reply."""
        self._stray += 1
        if self._stray <= _MOST_SHOWN:
            text = one_line(line.decode("utf-8", "replace"), 200)
            self.report(f"a line that is not a reply{why}: {text}")

    def conclude(self) -> None:
        """Report the number of lines that were not shown."""
        if self._stray > _MOST_SHOWN:
            self.report(f"{self._stray - _MOST_SHOWN} further lines that are not replies")

    def report(self, message: str) -> None:
        """Write a message about the program's output to stderr."""
        sys.stderr.write(f"answerkey: {self._name} wrote {message}\n")


class SentLine(NamedTuple):
    """The ids that a reply may echo."""

    identity: str
    conversation_id: str


class Line(NamedTuple):
    """A line that a program wrote."""

    content: bytes
    # When it arrived: waiting for further lines is not the program's time.
    at: float

    @property
    def is_whole(self) -> bool:
        """Whether it has its line break; otherwise the program ended or wrote a line that is too long."""
        return self.content.endswith(b"\n")


class LineProgram:
    """One running program."""

    def __init__(self, child: Child, habits: LineHabits) -> None:
        self.child = child
        self._habits = habits
        # Lines that were read and not used; the last one may lack its line break.
        self._lines: asyncio.Queue[Line] = asyncio.Queue(_MOST_WAITING)
        self._too_long = False
        self._answered = 0
        self._reading = asyncio.create_task(self._read_lines())

    async def close(self) -> None:
        """Let the program finish, and report its unread lines."""
        habits = self._habits
        unfinished = self.child.alive and not await self.child.finish()
        if not unfinished:
            await asyncio.wait({self._reading}, timeout=_SETTLE_S)
        stray = self._waiting()
        if self._answered and not habits.echoes:
            self._note_strays(stray)
            if not stray and unfinished and habits.speaks_text:
                habits.mistakes += 1
                habits.report("its reply before it had finished, so it may not be a reply")
        else:
            for line in stray:
                habits.show_stray(line.content)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self.child.close()

    async def is_in_step(self, *, begins: bool) -> bool:
        """Whether the next line will be the reply to the next question; if not, the program must be restarted."""
        habits = self._habits
        if not self.child.alive:
            return False
        if habits.echoes:
            for line in self._waiting():
                habits.show_stray(line.content)
            return True
        if self._answered and begins and habits.speaks_text:
            return False
        await asyncio.sleep(_ARRIVAL_S if self._answered else 0)
        stray = self._waiting() if self._answered else []
        self._note_strays(stray)
        return not stray

    def _note_strays(self, stray: list[Line]) -> None:
        for line in stray:
            # Then the line of text before it was not a reply.
            self._habits.speaks_json = self._habits.speaks_json or _is_json(line.content)
            self._habits.show_stray(line.content, " (after a reply, which may not be one either)")
        self._habits.mistakes += bool(stray)

    async def reply_to(self, sent: SentLine) -> Line | Failure | None:
        """The line that answers a question; None if it is too long; a failure if it is unclear or the program ended."""
        habits = self._habits
        while True:
            line = await self._next_line()
            if not line.is_whole:
                return None if self._too_long else await self._ended(line.content)
            echoed = habits.question_of(line.content, sent)
            if echoed == sent.identity:
                habits.echoes = True
                return line
            if habits.echoes or (habits.speaks_json and not _is_json(line.content)):
                habits.show_stray(line.content)
                continue
            if echoed is not None:
                return self._out_of_step("the program answered with the id of another question")
            return await self._only_one(sent, line)

    async def _only_one(self, sent: SentLine, line: Line) -> Line | Failure:
        """The reply among the lines that have arrived, from a program that has not echoed an id so far."""
        habits = self._habits
        lines = [line, *await self._further(_ARRIVAL_S)]
        replies = self._echoing(lines, sent)
        while not (replies or habits.speaks_json or habits.speaks_text):
            more = await self._further(_SETTLE_S)
            if not more:
                break
            lines += more
            replies = self._echoing(lines, sent)
        habits.echoes = bool(replies)
        if not replies:
            in_json = [one for one in lines if _is_json(one.content)]
            replies = in_json or lines
            habits.speaks_json = habits.speaks_json or bool(in_json)
        if len(replies) > 1 or (habits.mistakes >= _MOST_MISTAKES and not _is_json(replies[0].content)):
            for stray in lines:
                habits.show_stray(stray.content)
            habits.mistakes += 1
            return self._out_of_step("the program writes more lines than replies (a reply is one line)")
        for stray in lines:
            if stray is not replies[0]:
                habits.show_stray(stray.content)
        if len(lines) > 1 and not habits.echoes:
            # Further lines would be taken for the next reply.
            self.child.kill()
        habits.speaks_text = not habits.speaks_json
        self._answered += 1
        return replies[0]

    def _echoing(self, lines: list[Line], sent: SentLine) -> list[Line]:
        return [line for line in lines if self._habits.question_of(line.content, sent) == sent.identity]

    async def _further(self, seconds: float) -> list[Line]:
        """Lines that arrive within some seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                first = await self._next_line()
                return [first, *self._waiting()] if first.is_whole else []
        return []

    async def _ended(self, rest: bytes) -> Failure:
        failure = await self.child.failure()
        if rest:
            self._habits.show_stray(rest)
            return Failure(failure.kind, f"{failure.message} (in the middle of a line)")
        return failure

    def _out_of_step(self, what: str) -> Failure:
        self.child.kill()
        return Failure("malformed", f'{what}; let it give back the question\'s "id" in each reply')

    def _waiting(self) -> list[Line]:
        found: list[Line] = []
        while not self._lines.empty():
            line = self._lines.get_nowait()
            if line.is_whole:
                found.append(line)
            else:
                # It has ended, which the next one who asks is to find out.
                self._lines.put_nowait(line)
                break
        return found

    async def _next_line(self) -> Line:
        line = await self._lines.get()
        if not line.is_whole:
            self._lines.put_nowait(line)
        return line

    async def _read_lines(self) -> None:
        """Lines as they come; the last is what is left when it ends or writes one that is too long."""
        line = b"\n"
        while line.endswith(b"\n"):
            try:
                line = await self.child.stdout.readline()
            except ValueError:
                self._too_long = True
                line = b""
            self._habits.has_written = self._habits.has_written or bool(line)
            await self._lines.put(Line(line, time.perf_counter()))


def _decoded(line: bytes) -> object:
    """The JSON of a line, read as leniently as a reply; UNSET if it is not JSON."""
    try:
        return decode_json(decode_text(line)[0])
    except ValueError:
        return msgspec.UNSET


def _is_json(line: bytes) -> bool:
    """Whether a line is an object, a list or null; a bare number or word is text."""
    found = _decoded(line)
    return found is None or isinstance(found, (dict, list))


_MEGABYTE = 1024 * 1024


class CommandSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a command target."""

    # The program and its arguments, a template if mode is "once".
    cmd: str | list[str]
    # lines: it keeps running and answers each JSON line with one line. once: it is run for each question.
    mode: Literal["lines", "once"] = "lines"
    # Number of running programs; the turns of a conversation stay with one of them.
    processes: int = 1
    # Added to the environment; `${ENV}` is expanded.
    env: dict[str, str] = {}
    # Working directory.
    folder: str | None = None
    # A template of the JSON line, if not {"question", "conversation_id", "turn"}; "id" is added, to be echoed.
    body: dict[str, Any] | None = None
    reply: ReplyMapping | None = None
    # A larger reply is a failure.
    max_reply_mb: float = MOST_MEGABYTES


def make_command_target(rest: str, context: TargetContext) -> "CommandTarget":
    """The factory of the kind `cmd`."""
    settings = read_settings(context, CommandSettings)
    if context.folder is not None:
        settings = msgspec.structs.replace(settings, folder=str(context.folder / (settings.folder or "")))
    return CommandTarget(settings, name=context.name, concurrency=context.concurrency)


class CommandTarget(BaseTarget):
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
            raise UsageError("cmd has no program; write cmd:PROGRAM ARGS")
        if settings.processes < 1:
            raise ConfigError(f"processes = {settings.processes}: must be at least 1")
        self.name = name or f"cmd:{shlex.join(self._command)}"
        self.fingerprint = settings_hash("cmd", [settings, self._command])
        # A file among its arguments, or else its working directory.
        self.code = _code_of(self._command, Path(settings.folder or ""))
        self.capacity = settings.processes if settings.mode == "lines" else None
        self._settings = settings
        self._secrets = secrets or Secrets()
        self._most_bytes = int(settings.max_reply_mb * _MEGABYTE)
        default = {name: "{{" + name + "}}" for name in ("question", "conversation_id", "turn")}
        self._body = Template(settings.body or default, f"target {self.name}: body")
        # Arguments are a template only if mode is "once".
        filled = self._command if settings.mode == "once" else []
        self._arguments = Template(filled, f"target {self.name}: cmd")
        self._env: dict[str, str] = {}
        self._slots: list[_Slot] = []
        self._running: set[Child] = set()
        self._habits = LineHabits(self.name)
        self._timed_out = False
        # Conversation → its slot.
        self._slot_of: PerConversation[_Slot] = PerConversation(concurrency)

    async def __aenter__(self) -> "CommandTarget":
        self._env = self._secrets.expand(self._settings.env, f"target {self.name}: env")
        if self._settings.mode == "once":
            program = self._command[0]
            place = self._settings.folder if "/" in program else None
            if shutil.which(str(Path(place, program)) if place else program) is None:
                raise UsageError(f"there is no program {program!r}; check the target's cmd")
        else:
            self._slots = [_Slot() for _ in range(self._settings.processes)]
            # The first is started at once, so that a missing program is an error before the first question.
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
        """Ask once; if the program dies, this reply is a failure, and the next question gets a new program."""
        reply = await (self._run_once(ask) if self._settings.mode == "once" else self._ask_line(ask))
        return self._secrets.redact_reply(admit_reply(reply))

    def warnings(self) -> list[str]:
        """What is wrong if the program answered nothing."""
        if not self._timed_out or self._habits.has_written:
            return []
        return [
            f"{self.name} wrote no line before its time was up; if it reads its input to the end before it answers, "
            'set mode = "once" in its [targets.NAME] table'
        ]

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
            # Its answer would be taken for that of the next question.
            program.child.kill()
            self._timed_out = True
            raise
        watch.stop(line.at if isinstance(line, Line) else None)
        timings = watch.timings()
        if isinstance(line, Failure):
            reply = Reply(failure=line)
        elif line is None:
            program.child.kill()
            reply = too_large(self._settings.max_reply_mb)
        else:
            reply = self._read(line.content, QuestionContext(ask.question, ask.turn, ask.turn > 0), identity)
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
                reply = self._read(bytes(output), QuestionContext(ask.question, ask.turn, ask.turn > 0))
            return msgspec.structs.replace(reply, timings=timings)
        finally:
            child.kill()
            self._running.discard(child)
            await asyncio.shield(child.close())

    async def _send(self, child: Child, ask: Ask, identity: str | None = None) -> None:
        body = as_dict(self._body.fill(values_of(ask)))
        if identity is not None:
            body = {"id": identity, **body}
        # A program need not read its input; one that ended is noticed by its output.
        with contextlib.suppress(ConnectionError):
            child.stdin.write(encode_json(body) + b"\n")
            await child.stdin.drain()

    def _read(self, raw: bytes, context: QuestionContext, identity: str | None = None) -> Reply:
        """The reply in JSON; any other text is the answer itself."""
        text, wrong = decode_text(raw)
        text = text.strip("\r\n")
        note_raw(lambda: text)
        if wrong is not None:
            return Reply(text=text, failure=Failure("malformed", wrong))
        try:
            payload = decode_json(text)
        except ValueError:
            return Reply(text=text)
        if isinstance(payload, dict) and identity is not None and payload.get("id") == identity:
            # The id of the question, not an id of the reply.
            del payload["id"]
        # A bare number or word is text, not a JSON value.
        return reply_from_payload(
            payload if isinstance(payload, (dict, list)) or payload is None else text,
            mapping=self._settings.reply,
            context=context,
        )

    def _slot(self, ask: Ask) -> "_Slot":
        slot = self._slot_of.get(ask.conversation_id) if ask.turn else None
        if slot is None:
            slot = min(self._slots, key=lambda one: one.waiting)
        self._slot_of.set(ask.conversation_id, slot)
        return slot

    async def _start_program(self) -> LineProgram:
        return LineProgram(await self._start(self._command), self._habits)

    async def _start(self, command: list[str]) -> Child:
        return await start_child(
            command, env=self._env, folder=self._settings.folder, longest_line=self._most_bytes
        )


class _Slot:
    """A slot for one running program."""

    def __init__(self) -> None:
        self.program: LineProgram | None = None
        self.lock = asyncio.Lock()
        self.waiting = 0


def _code_of(command: list[str], folder: Path) -> Path:
    try:
        return next((folder / word for word in command[1:] if (folder / word).is_file()), folder)
    except OSError:
        # An argument that is too long for a file name.
        return folder
