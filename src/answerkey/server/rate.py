"""RateLimit: a token bucket for every sender."""

import time
from collections import OrderedDict

__all__ = ["RateLimit"]

# Senders remembered; beyond, the one that was quiet longest is forgotten (and starts with a full bucket again).
_SENDERS = 10_000


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
