"""Limits: how often a client and a person may ask, each by a bucket that fills again."""

import time
from collections import OrderedDict

from answerkey.server.roles import INTAKE, LOCAL, Visitor
from answerkey.server.settings import ServerSettings

# Senders remembered; beyond, the one that was quiet longest is forgotten (and starts with a full bucket again).
_SENDERS = 10_000
# A site's key stands in a page that many visitors have open: together they may send more often than one of them.
_MANY = 10


class RateLimit:
    """Lets every sender send `burst` at once and `per_minute` on average."""

    def __init__(self, per_minute: float, burst: int) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, sender: str) -> float:
        """0 if the sender may go on (and it is counted), else the seconds to wait."""
        now = time.monotonic()
        level, then = self._buckets.pop(sender, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._per_second)
        missing = 1 - level
        self._buckets[sender] = (level if missing > 0 else level - 1, now)
        if len(self._buckets) > _SENDERS:
            self._buckets.popitem(last=False)
        return missing / self._per_second if missing > 0 else 0.0


class Limits:
    """The limits of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        rate, burst = settings.rate_per_minute, settings.burst
        self._sent_by_client = RateLimit(rate, burst)
        self._sent_by_name = RateLimit(_MANY * rate, _MANY * burst)
        # Guessing a token must be slow, whatever the limit for feedback is.
        self._sign_ins = RateLimit(30, 10)
        self._asked = RateLimit(settings.requests_per_minute, max(1, int(settings.requests_per_minute / 4)))

    def wait(self, method: str, path: str, client: str, who: Visitor | None) -> float:
        """The seconds that this visitor must wait first; 0: none."""
        if method == "POST" and path == "/login":
            return self._sign_ins.wait(client)
        if method == "POST" and path in INTAKE:
            waiting = self._sent_by_client.wait(client)
            # What the client may not send is not charged to those who share its key.
            return waiting or (
                self._sent_by_name.wait(who.sender) if who is not None and who != LOCAL else 0.0
            )
        if who == LOCAL or path.startswith("/static/"):
            return 0.0
        return self._asked.wait(client if who is None else who.sender)
