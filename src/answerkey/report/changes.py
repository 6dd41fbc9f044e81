"""Why a question scores differently in another run: keywords, tools, errors and the judge, before and now."""

from collections.abc import Iterator
from typing import Any

import msgspec

from answerkey.model.scorecard import Scorecard
from answerkey.report.value_wording import name_words, score_percent
from answerkey.text.sanitise import one_line

__all__ = ["Change", "changes_between"]

_LISTED = 5
_SAME = 5e-4


class Change(msgspec.Struct, frozen=True):
    """One thing that is not as it was."""

    # better or worse; empty where that is not known.
    tone: str
    words: str

    def __str__(self) -> str:
        return self.words


def changes_between(base: Scorecard | None, candidate: Scorecard | None) -> tuple[Change, ...]:
    """What the candidate does worse and then what it does better; empty where both do the same."""
    if base is None or candidate is None:
        return ()
    found = dict.fromkeys(_changes(base, candidate))
    return tuple(sorted(found, key=lambda change: change.tone != "worse"))


def _changes(base: Scorecard, candidate: Scorecard) -> Iterator[Change]:
    before, now = (None if card.error is None else card.error.kind for card in (base, candidate))
    if before != now:
        if now is not None:
            yield Change("worse", f"now ends in an error: {name_words(now)}")
        elif before is not None:
            yield Change("better", f"no longer ends in an error: {name_words(before)}")
    explained = {"error_handling"} if before != now else set()
    pairs = zip(base.turns or (base,), candidate.turns or (candidate,), strict=False)
    for old, new in pairs:
        for name, key, lost, gained in (
            ("response_quality", "missing", "no longer says", "now says"),
            (
                "response_quality",
                "forbidden",
                "now says what is forbidden:",
                "no longer says what is forbidden:",
            ),
            ("tool_usage", "missing", "no longer calls", "now calls"),
            ("tool_usage", "extra", "now also calls", "no longer also calls"),
        ):
            had, has = _listed(old, name, key), _listed(new, name, key)
            if worse := [item for item in has if item not in had]:
                yield Change("worse", f"{lost} {_names(worse)}")
            if better := [item for item in had if item not in has]:
                yield Change("better", f"{gained} {_names(better)}")
            if had != has:
                explained.add(name)
    values = [(name, part.value) for name, part in base.components.items() if name not in explained]
    for name, old_value in [*values, ("judge", base.metrics.get("judge"))]:
        part = candidate.components.get(name)
        new_value = candidate.metrics.get(name) if part is None else part.value
        if old_value is None or new_value is None or abs(new_value - old_value) < _SAME:
            continue
        words = f"{name_words(name)} {score_percent(old_value)} → {score_percent(new_value)}"
        yield Change("better" if new_value > old_value else "worse", words)


def _listed(card: Scorecard, component: str, key: str) -> list[str]:
    part = card.components.get(component)
    listed: Any = () if part is None else part.details.get(key) or ()
    return [str(item) for item in listed]


def _names(names: list[str]) -> str:
    listed = ", ".join(one_line(name, 60) for name in names[:_LISTED])
    return listed if len(names) <= _LISTED else f"{listed} and {len(names) - _LISTED} more"
