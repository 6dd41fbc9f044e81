"""What a judge of pairs leans to beside their quality: the place where a reply stands, its length, its own kind of model."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from answerkey.stats.intervals import Interval, wilson_interval
from answerkey.stats.rates import mcnemar_p_value

if TYPE_CHECKING:
    from answerkey.judge.pairwise import PairVerdict

Place = Literal["first", "second"]
Side = Literal["base", "candidate"]
# Families of models, by what their names hold.
_FAMILIES = {
    "gpt": r"gpt|\bo[134]\b|o[134]-",
    "claude": "claude",
    "gemini": "gemini|gemma",
    "llama": "llama",
    "mistral": "mistral|mixtral|ministral",
    "qwen": "qwen|qwq",
    "deepseek": "deepseek",
    "grok": "grok",
}


class Lean(msgspec.Struct, frozen=True):
    """How often something was preferred; a half if the judge does not care."""

    share: float
    n: int
    interval: Interval | None
    # Sign test: is it a half?
    p_value: float | None

    @property
    def clear(self) -> bool:
        """Whether it is no chance."""
        return self.p_value is not None and self.p_value < 0.05


class OwnKind(msgspec.Struct, frozen=True):
    """A judge, and which of the two chatbots is of its own family."""

    judge: str
    own: Side
    # How often it preferred that one, and how often the panel's other judges did, in the same pairs.
    lean: Lean
    others: Lean | None


class PairBias(msgspec.Struct, frozen=True, kw_only=True):
    """The `bias` of a comparison by a judge."""

    # Of the verdicts that went by the order alone, how many named the first.
    position: Lean | None
    # The place that it prefers, where that is clear.
    prefers: Place | None
    # Of the pairs of the same score that it decided, in how many the longer reply won.
    length: Lean | None
    # Of the same pairs, where one chatbot is of the judge's own family.
    self_preference: tuple[OwnKind, ...] = ()


def bias_of(verdicts: Sequence["PairVerdict"], targets: Mapping[Side, str]) -> PairBias:
    """What the verdicts show; `targets` names both chatbots, or their models."""
    places = [place for verdict in verdicts for place in verdict.places.values()]
    position = _lean(place == "first" for place in places)
    prefers: Place | None = None
    if position is not None and position.clear:
        prefers = "first" if position.share > 0.5 else "second"
    # Replies that the score tells apart are rightly preferred.
    equal = [verdict for verdict in verdicts if verdict.same_score]
    return PairBias(
        position=position,
        prefers=prefers,
        length=_lean(v.outcome == v.longer for v in equal if v.longer and v.outcome in ("base", "candidate")),
        self_preference=tuple(_own_kinds(equal, targets)),
    )


def bias_warnings(bias: PairBias) -> Iterable[str]:
    """What of it a reader must know."""
    if bias.prefers is not None and bias.position is not None:
        yield (
            f"the judge prefers the reply that stands {bias.prefers}: of {bias.position.n} verdicts that went by the "
            f"order alone, {bias.position.share:.0%} named the first"
        )
    if bias.length is not None and bias.length.clear:
        which = "longer" if bias.length.share > 0.5 else "shorter"
        share = max(bias.length.share, 1 - bias.length.share)
        yield f"the judge prefers {which} replies: they won {share:.0%} of {bias.length.n} pairs of the same score"
    for own in bias.self_preference:
        if (
            own.lean.clear
            and own.lean.share > 0.5
            and (own.others is None or own.others.share < own.lean.share)
        ):
            yield (
                f"{own.judge} prefers the {own.own}, a model of its own family: it won {own.lean.share:.0%} of "
                f"{own.lean.n} pairs of the same score"
            )


def _own_kinds(equal: Sequence["PairVerdict"], targets: Mapping[Side, str]) -> Iterable[OwnKind]:
    families = {side: _family(target) for side, target in targets.items()}
    for judge in dict.fromkeys(judge for verdict in equal for judge in verdict.by_judge):
        kind = _family(judge)
        sides = [side for side, family in families.items() if kind is not None and family == kind]
        if len(sides) != 1:
            continue
        own = sides[0]
        decided = [v for v in equal if v.by_judge.get(judge) in ("base", "candidate")]
        lean = _lean(v.by_judge[judge] == own for v in decided)
        rest = [said for v in decided for name, said in v.by_judge.items() if name != judge and said != "tie"]
        if lean is not None:
            yield OwnKind(judge, own, lean, _lean(said == own for said in rest))


def _family(name: str) -> str | None:
    return next((family for family, words in _FAMILIES.items() if re.search(words, name.lower())), None)


def _lean(preferred: Iterable[bool]) -> Lean | None:
    found = list(preferred)
    if not found:
        return None
    times = sum(found)
    share = times / len(found)
    return Lean(
        share, len(found), wilson_interval(times, len(found)), mcnemar_p_value(times, len(found) - times)
    )
