"""A program that is kept alive and answers lines with lines: which of its lines is the reply to which question.

Every question has an id. A program that echoes it is understood exactly, whatever else it writes. One that does not is
asked one question at a time, and started anew whenever it wrote a line too many, so that no line is ever taken for the
reply to a later question.
"""

import asyncio
import os
import sys

import msgspec

from answerkey.model.reply import Failure
from answerkey.targets.child_process import Child
from answerkey.text.sanitise import one_line

__all__ = ["LineHabits", "LineProgram"]

# A program that writes without being asked fills no more memory than so many lines.
_MOST_WAITING = 1000
# So long, what a program has already written needs to get here.
_ARRIVAL_S = 0.002
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
        # Its replies are JSON objects, so that a line of text is none.
        self.speaks_json = False
        # How often a program that echoes nothing wrote a line too many.
        self.mistakes = 0
        self._stray = 0

    def next_id(self) -> str:
        """An id for one question."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def id_in(self, line: bytes) -> str | None:
        """The id of a question of ours that a line echoes."""
        found = _object_in(line).get("id")
        return found if isinstance(found, str) and found.startswith(self._prefix) else None

    def is_object(self, line: bytes) -> bool:
        """Whether a line is a JSON object."""
        return bool(_object_in(line))

    def show_stray(self, line: bytes, why: str = "") -> None:
        """Tell the user of a line that is no reply; nothing is dropped in silence."""
        self._stray += 1
        if self._stray <= _MOST_SHOWN:
            said = one_line(line.decode("utf-8", "replace"), 200)
            self._say(f"a line that is no reply{why}: {said}")

    def conclude(self) -> None:
        """At the end, count what was not shown."""
        if self._stray > _MOST_SHOWN:
            self._say(f"{self._stray - _MOST_SHOWN} further lines that are no replies")

    def _say(self, message: str) -> None:
        sys.stderr.write(f"answerkey: {self._name} wrote {message}\n")


class LineProgram:
    """One living program."""

    def __init__(self, child: Child, habits: LineHabits) -> None:
        self.child = child
        self._habits = habits
        # Lines that were read and not used; what it wrote when it ended may lack its line break.
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._too_long = False
        self._reading = asyncio.create_task(self._read_lines())

    async def close(self) -> None:
        """End it, and show what it wrote last and nobody asked for."""
        for line in self._waiting():
            self._habits.show_stray(line, " (after its last reply, which may not be one either)")
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self.child.close()

    async def is_in_step(self) -> bool:
        """Whether the next line will belong to the next question; if not, it has to be started anew."""
        if not self.child.alive:
            return False
        if not self._habits.echoes:
            await asyncio.sleep(_ARRIVAL_S)
        stray = self._waiting()
        for line in stray:
            if not self._habits.echoes:
                # Then the line before it, which was text, was none.
                self._habits.speaks_json = self._habits.speaks_json or self._habits.is_object(line)
                self._habits.show_stray(line, " (after a reply, which may not be one either)")
            else:
                self._habits.show_stray(line)
        if stray and not self._habits.echoes:
            self._habits.mistakes += 1
            return False
        return True

    async def reply_to(self, identity: str) -> bytes | Failure | None:
        """The line that answers a question; None if one is too long, a failure if there is no telling or it ended."""
        habits = self._habits
        while True:
            line = await self._next_line()
            if not line.endswith(b"\n"):
                return None if self._too_long else await self._ended(line)
            echoed = habits.id_in(line)
            if echoed == identity:
                habits.echoes = True
                return line
            if habits.echoes or (habits.speaks_json and not habits.is_object(line)):
                habits.show_stray(line)
                continue
            if echoed is not None:
                return self._out_of_step("the program answered with the id of another question")
            return await self._only_one(identity, line)

    async def _only_one(self, identity: str, line: bytes) -> bytes | Failure:
        """The reply among the lines that are there, of a program that has not echoed an id so far."""
        habits = self._habits
        await asyncio.sleep(_ARRIVAL_S)
        lines = [line, *self._waiting()]
        replies = [one for one in lines if habits.id_in(one) == identity]
        habits.echoes = bool(replies)
        if not replies:
            objects = [one for one in lines if habits.is_object(one)]
            replies = objects or lines
            habits.speaks_json = habits.speaks_json or bool(objects)
        if len(replies) == 1:
            reply = replies[0]
            if reply.endswith(b"\n"):
                for stray in lines:
                    if stray is not reply:
                        habits.show_stray(stray)
                if len(lines) > 1 and not habits.echoes:
                    # More may come that would be taken for the next reply.
                    self.child.kill()
                if habits.mistakes < _MOST_MISTAKES or habits.echoes or habits.is_object(reply):
                    return reply
        for stray in lines:
            habits.show_stray(stray)
        habits.mistakes += 1
        return self._out_of_step("the program writes more lines than replies")

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


def _object_in(line: bytes) -> dict[str, object]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
