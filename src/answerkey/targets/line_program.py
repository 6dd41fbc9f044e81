"""A program that is kept alive and answers lines with lines: which of its lines is the reply to which question.

Every question has an id. A program that echoes it (or the conversation's) is understood exactly, whatever else it
writes. One that answers in JSON without it is started anew whenever it wrote a line too many. One that answers in plain
text, where nothing tells a reply from any other line, is started anew for every conversation.
"""

import asyncio
import contextlib
import os
import sys
from typing import NamedTuple

import msgspec

from answerkey.model.reply import Failure
from answerkey.targets.child_process import Child
from answerkey.text.sanitise import one_line

# A program that writes without being asked fills no more memory than so many lines.
_MOST_WAITING = 1000
# So long, what a program has already written needs to get here.
_ARRIVAL_S = 0.002
# So long, the first line of all that echoes nothing is held back: it may be a greeting, and the reply follow.
_SETTLE_S = 1.0
_MOST_SHOWN = 20
# After so many lines too many, what a program that echoes no id writes is no reply to anything.
_MOST_MISTAKES = 2


class LineHabits:
    """What is known of how the programs of one target write, and what of it was shown to the user."""

    def __init__(self, name: str) -> None:
        self._name = name
        # Ids of this target's questions all begin with this, so that one of another question is known as such.
        self._prefix = f"ask-{os.urandom(4).hex()}-"
        self._count = 0
        # It has given back a question's id.
        self.echoes = False
        # Its replies are JSON, so that a line of text is none.
        self.speaks_json = False
        # Its replies are text.
        self.speaks_text = False
        # How often a program that echoes nothing wrote a line too many.
        self.mistakes = 0
        self._stray = 0

    def next_id(self) -> str:
        """An id for one question."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def question_of(self, line: bytes, asked: "SentLine") -> str | None:
        """The id of a question of ours that a line echoes; that of its conversation will do."""
        found = _decoded(line)
        if not isinstance(found, dict):
            return None
        identity = found.get("id")
        if isinstance(identity, str) and identity.startswith(self._prefix):
            return identity
        return asked.identity if found.get("conversation_id") == asked.conversation_id else None

    def show_stray(self, line: bytes, why: str = "") -> None:
        """Tell the user of a line that is no reply; nothing is dropped in silence."""
        self._stray += 1
        if self._stray <= _MOST_SHOWN:
            said = one_line(line.decode("utf-8", "replace"), 200)
            self.say(f"a line that is no reply{why}: {said}")

    def conclude(self) -> None:
        """At the end, count what was not shown."""
        if self._stray > _MOST_SHOWN:
            self.say(f"{self._stray - _MOST_SHOWN} further lines that are no replies")

    def say(self, message: str) -> None:
        """Tell the user of something that it wrote."""
        sys.stderr.write(f"answerkey: {self._name} wrote {message}\n")


class SentLine(NamedTuple):
    """What a reply may echo."""

    identity: str
    conversation_id: str


class LineProgram:
    """One living program."""

    def __init__(self, child: Child, habits: LineHabits) -> None:
        self.child = child
        self._habits = habits
        # Lines that were read and not used; what it wrote when it ended may lack its line break.
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._too_long = False
        self._answered = 0
        self._reading = asyncio.create_task(self._read_lines())

    async def close(self) -> None:
        """Let it finish, and show what it wrote last and nobody asked for."""
        habits = self._habits
        unfinished = self.child.alive and not await self.child.finish()
        if not unfinished:
            await asyncio.wait({self._reading}, timeout=_SETTLE_S)
        stray = self._waiting()
        if self._answered and not habits.echoes:
            self._note_strays(stray)
            if not stray and unfinished and habits.speaks_text:
                habits.mistakes += 1
                habits.say("its reply before it had finished, so that it may not be one")
        else:
            for line in stray:
                habits.show_stray(line)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self.child.close()

    async def is_in_step(self, *, begins: bool) -> bool:
        """Whether the next line will belong to the next question, which may begin a conversation; if not, start it anew."""
        habits = self._habits
        if not self.child.alive:
            return False
        if habits.echoes:
            for line in self._waiting():
                habits.show_stray(line)
            return True
        if self._answered and begins and habits.speaks_text:
            return False
        await asyncio.sleep(_ARRIVAL_S if self._answered else 0)
        stray = self._waiting() if self._answered else []
        self._note_strays(stray)
        return not stray

    def _note_strays(self, stray: list[bytes]) -> None:
        for line in stray:
            # Then the line of text before it was none.
            self._habits.speaks_json = self._habits.speaks_json or _is_json(line)
            self._habits.show_stray(line, " (after a reply, which may not be one either)")
        self._habits.mistakes += bool(stray)

    async def reply_to(self, asked: SentLine) -> bytes | Failure | None:
        """The line that answers a question; None if one is too long, a failure if there is no telling or it ended."""
        habits = self._habits
        while True:
            line = await self._next_line()
            if not line.endswith(b"\n"):
                return None if self._too_long else await self._ended(line)
            echoed = habits.question_of(line, asked)
            if echoed == asked.identity:
                habits.echoes = True
                return line
            if habits.echoes or (habits.speaks_json and not _is_json(line)):
                habits.show_stray(line)
                continue
            if echoed is not None:
                return self._out_of_step("the program answered with the id of another question")
            return await self._only_one(asked, line)

    async def _only_one(self, asked: SentLine, line: bytes) -> bytes | Failure:
        """The reply among the lines that are there, of a program that has not echoed an id so far."""
        habits = self._habits
        lines = [line, *await self._further(_ARRIVAL_S)]
        replies = self._echoing(lines, asked)
        while not (replies or habits.speaks_json or habits.speaks_text):
            more = await self._further(_SETTLE_S)
            if not more:
                break
            lines += more
            replies = self._echoing(lines, asked)
        habits.echoes = bool(replies)
        if not replies:
            in_json = [one for one in lines if _is_json(one)]
            replies = in_json or lines
            habits.speaks_json = habits.speaks_json or bool(in_json)
        if len(replies) > 1 or (habits.mistakes >= _MOST_MISTAKES and not _is_json(replies[0])):
            for stray in lines:
                habits.show_stray(stray)
            habits.mistakes += 1
            return self._out_of_step("the program writes more lines than replies")
        for stray in lines:
            if stray is not replies[0]:
                habits.show_stray(stray)
        if len(lines) > 1 and not habits.echoes:
            # More may come that would be taken for the next reply.
            self.child.kill()
        habits.speaks_text = not habits.speaks_json
        self._answered += 1
        return replies[0]

    def _echoing(self, lines: list[bytes], asked: SentLine) -> list[bytes]:
        return [line for line in lines if self._habits.question_of(line, asked) == asked.identity]

    async def _further(self, seconds: float) -> list[bytes]:
        """Lines that come within so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                first = await self._next_line()
                return [first, *self._waiting()] if first.endswith(b"\n") else []
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

    def _waiting(self) -> list[bytes]:
        found: list[bytes] = []
        while not self._lines.empty():
            line = self._lines.get_nowait()
            if line.endswith(b"\n"):
                found.append(line)
            else:
                # It has ended, which the next one who asks is to find out.
                self._lines.put_nowait(line)
                break
        return found

    async def _next_line(self) -> bytes:
        line = await self._lines.get()
        if not line.endswith(b"\n"):
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
            await self._lines.put(line)


def _decoded(line: bytes) -> object:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.UNSET


def _is_json(line: bytes) -> bool:
    """Whether a line is an object, a list or null; a bare number or word is text."""
    found = _decoded(line)
    return found is None or isinstance(found, (dict, list))
