"""A judge's comparison of two runs as lines of text."""

from collections.abc import Iterator

from answerkey.judge.pair_judging import Pairwise
from answerkey.text.sanitise import one_line

__all__ = ["pairwise_lines"]


def pairwise_lines(found: Pairwise) -> Iterator[str]:
    """The verdict first, then what it rests on."""
    yield f"Judged by {one_line(found.model, 60)}, in both orders: {found.verdict}"
    yield f"  candidate wins {found.wins}, loses {found.losses}, ties {found.ties} of {found.pairs} pairs"
    if found.win_rate is not None and found.interval is not None:
        p_value = "" if found.p_value is None else f", p = {found.p_value:.3g}"
        within = f"[{found.interval.low:.1%}, {found.interval.high:.1%}]"
        yield f"  win rate {found.win_rate:.1%} {within}{p_value} (ties count half)"
    if found.self_consistency is not None:
        yield f"  self-consistency {found.self_consistency:.1%} (same verdict with the order swapped)"
    cost = "" if found.cost is None else f", cost {found.cost:.4f}"
    yield f"  {found.calls} calls, {found.cached} answers known before{cost}"
    for warning in found.warnings:
        yield f"! {one_line(warning, 300)}"
