"""WholeTally: what is added up for a run as a whole only. Sums are whole numbers, so that the order of adding does not matter."""

from collections import Counter
from collections.abc import Iterable

from answerkey.model.reasons import reason
from answerkey.model.reply import Reply, Usage
from answerkey.model.scorecard import Scorecard, Trial, harness_problem
from answerkey.model.summary import SlowQuestion
from answerkey.stats.durations import Durations

_SLOWEST_LISTED = 5
# Reasons may hold a message of any kind: so many different ones are kept apart, so many are listed, up to this length.
_REASONS_KEPT = 1000
_REASONS_LISTED = 20
_REASON_LENGTH = 200
_OTHERS = "other reasons"
# Milliseconds are summed in nanoseconds, usage (tokens, money) in parts of 10¹².
_NANOSECONDS = 1e6
_PARTS = 10**12
_PHASES = ("tools", "rest", "first_byte", "queue", "retry")


class WholeTally:
    """What is only added up for the run as a whole."""

    def __init__(self) -> None:
        self.tools_unobserved = 0
        # How replies ended that did not end by themselves.
        self.finishes: Counter[str] = Counter()
        self.harness: Counter[str] = Counter()
        self.tool_ms: dict[str, Durations] = {}
        self._unscored: Counter[str] = Counter()
        # Nanoseconds by phase; replies that were timed, and those of them whose first byte was.
        self._phases = dict.fromkeys(_PHASES, 0)
        self._timed = self._first_bytes = 0
        # Question → its slowest trial; a few of the slowest.
        self._slow: dict[str, float] = {}
        # What takes less than this is not among them.
        self.slow_from = 0.0
        self._usage: Counter[str] = Counter()

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        if trial.scorecard.total is None:
            problem = harness_problem(trial.scorecard)
            if problem is not None:
                self.harness[problem] += 1
            self.add_unscored(_unscored_reason(trial.scorecard, problem))
        for reply in trial.replies:
            self.add_reply(reply)
        self.add_time(trial.question.id, trial.latency_ms)

    def add_time(self, identity: str, taken: float | None) -> None:
        """Count what a trial of a question took."""
        if taken is not None and taken >= self.slow_from:
            self._add_slow(identity, taken)

    def merge(self, other: "WholeTally") -> None:
        """Add what another has counted."""
        self.tools_unobserved += other.tools_unobserved
        self.finishes.update(other.finishes)
        self.harness.update(other.harness)
        for reason, times in other._unscored.items():
            self.add_unscored(reason, times)
        for name, taken in other.tool_ms.items():
            self.tool_ms.setdefault(name, Durations()).merge(taken)
        self._timed += other._timed
        self._first_bytes += other._first_bytes
        for name, nanoseconds in other._phases.items():
            self._phases[name] += nanoseconds
        for identity, slow in other._slow.items():
            self._add_slow(identity, slow)
        self._usage.update(other._usage)

    def add_times(self, taken: Iterable[float]) -> None:
        """Count replies that say nothing else of the run as a whole than what they took."""
        nanoseconds = [round(one * _NANOSECONDS) for one in taken]
        self._timed += len(nanoseconds)
        self._phases["rest"] += sum(nanoseconds)

    def add_unscored(self, reason: str, times: int = 1) -> None:
        """Count trials that have no score for a reason."""
        listed = reason in self._unscored or len(self._unscored) < _REASONS_KEPT
        self._unscored[reason if listed else _OTHERS] += times

    def _add_slow(self, identity: str, taken: float) -> None:
        self._slow[identity] = max(taken, self._slow.get(identity, 0.0))
        if len(self._slow) > _SLOWEST_LISTED:
            self._slow = dict(self._ranked()[:_SLOWEST_LISTED])
            self.slow_from = min(self._slow.values())

    def _ranked(self) -> list[tuple[str, float]]:
        return sorted(self._slow.items(), key=lambda slow: (-slow[1], slow[0]))

    def add_reply(self, reply: Reply) -> None:
        """Count one reply."""
        self.tools_unobserved += not reply.evidence.tools_observed and reply.failure is None
        if reply.finish is not None:
            self.finishes[reply.finish] += 1
        tools_ms = 0.0
        for call in reply.tool_calls:
            if call.duration_ms is not None:
                tools_ms += call.duration_ms
                taken = self.tool_ms.get(call.name)
                if taken is None:
                    taken = self.tool_ms[call.name] = Durations()
                taken.add(call.duration_ms)
        timings = reply.timings
        if timings.latency_ms is not None:
            self._timed += 1
            self._phases["rest"] += round(max(0.0, timings.latency_ms - tools_ms) * _NANOSECONDS)
            if tools_ms:
                self._phases["tools"] += round(tools_ms * _NANOSECONDS)
            if timings.first_byte_ms is not None:
                self._first_bytes += 1
                self._phases["first_byte"] += round(timings.first_byte_ms * _NANOSECONDS)
            if timings.queue_ms or timings.retry_ms:
                self._phases["queue"] += round(timings.queue_ms * _NANOSECONDS)
                self._phases["retry"] += round(timings.retry_ms * _NANOSECONDS)
        if reply.usage is not None:
            self.add_usage(reply.usage)

    def add_usage(self, usage: Usage) -> None:
        """Count what a reply used."""
        for name in usage.__struct_fields__:
            amount = getattr(usage, name)
            if amount is not None:
                self._usage[name] += round(amount * _PARTS)

    def unscored_reasons(self) -> dict[str, int]:
        """Why trials have no score, the most frequent reason first."""
        ranked = sorted(self._unscored.items(), key=lambda found: (found[0] == _OTHERS, -found[1], found[0]))
        listed = dict(ranked[:_REASONS_LISTED])
        rest = sum(times for _, times in ranked[_REASONS_LISTED:])
        return listed | ({_OTHERS: listed.get(_OTHERS, 0) + rest} if rest else {})

    def phases_ms(self) -> dict[str, float]:
        """The mean time of each phase."""
        counts = {name: self._first_bytes if name == "first_byte" else self._timed for name in _PHASES}
        return {
            name: round(self._phases[name] / counts[name] / _NANOSECONDS, 3)
            for name in _PHASES
            if counts[name]
        }

    def slowest(self) -> tuple[SlowQuestion, ...]:
        """The questions that took longest, the slowest first."""
        return tuple(SlowQuestion(identity, round(taken, 3)) for identity, taken in self._ranked())

    def usage(self) -> dict[str, float]:
        """What was used up in all."""
        return {
            name: amount // _PARTS if amount % _PARTS == 0 and name != "cost" else round(amount / _PARTS, 9)
            for name, amount in self._usage.items()
        }


def _unscored_reason(card: Scorecard, problem: str | None) -> str:
    """Why a trial has no score: the first component that has a weight and no value."""
    for score in card.components.values():
        if score.value is None and score.weight:
            if problem not in (None, "scorer"):
                return f"harness: {problem}: {reason(score)[:_REASON_LENGTH]}"
            return f"{score.name}: {reason(score)[:_REASON_LENGTH]}"
    return "not scored"
