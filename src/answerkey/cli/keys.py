"""Single keys from a terminal, without a return key after each; what is typed ahead is not lost."""

import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["Keys", "single_keys"]

# What arrow and function keys send: none of its letters is a key of ours.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?")


class Keys:
    """Reads standard input key by key, within `single_keys`."""

    def __init__(self) -> None:
        self._typed: deque[str] = deque()

    def next_of(self, meaningful: str) -> str:
        """The next key among these; others are passed over. Ctrl-C and Ctrl-D end the command."""
        while True:
            while not self._typed:
                self._typed.extend(_SEQUENCE.sub("", _read()).lower())
            key = self._typed.popleft()
            if key in ("\x03", "\x04"):
                raise click.Abort
            if key in meaningful:
                return key


@contextmanager
def single_keys(on: bool = True) -> Iterator[None]:
    """The terminal gives each key at once and shows none; with `on` false, whole lines again for a while."""
    try:
        import termios
    except ModuleNotFoundError:
        # Windows: click reads single keys by itself.
        yield
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    now = termios.tcgetattr(fd)
    flags = termios.ICANON | termios.ECHO
    now[3] = now[3] & ~flags if on else now[3] | flags
    # Drain, not flush: what was typed already counts.
    termios.tcsetattr(fd, termios.TCSADRAIN, now)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _read() -> str:
    """What was typed, at least one key."""
    if os.name == "nt":
        return click.getchar()
    typed = os.read(sys.stdin.fileno(), 1024)
    if not typed:
        raise click.Abort
    return typed.decode(errors="replace")
