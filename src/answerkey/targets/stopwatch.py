"""How long a chatbot took: started where the chatbot begins to work, so that waiting for it to be free does not count."""

import time

from answerkey.model.reply import Timings


class Stopwatch:
    """Times one question; it runs from when it is made unless it is started later."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin, or begin again."""
        self._began = time.perf_counter()
        self._first: float | None = None
        self._ended: float | None = None

    def chunk(self) -> None:
        """Something of the reply arrived."""
        if self._first is None:
            self._first = time.perf_counter()

    def stop(self) -> None:
        """The reply is there; what follows is not the chatbot's time, unless it is stopped again."""
        self._ended = time.perf_counter()

    def resume(self) -> None:
        """There is more to come after all."""
        self._ended = None

    def timings(self) -> Timings:
        """What was measured, up to now if it was not stopped."""
        ended = time.perf_counter() if self._ended is None else self._ended
        return Timings(
            latency_ms=(ended - self._began) * 1000,
            first_byte_ms=None if self._first is None else (self._first - self._began) * 1000,
        )
