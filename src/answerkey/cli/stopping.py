"""How a command is stopped: SIGTERM and SIGHUP do what Ctrl-C does, so that a run ends resumable with all it has."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stopped_like_ctrl_c"]


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """While the body runs; a signal that is ignored, as under nohup, stays so."""
    before = {}
    # Windows has no SIGHUP, and only the main thread may decide.
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a shell's background.
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)
