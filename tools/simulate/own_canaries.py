"""How often canaries made from a run's own replies call a judge unreliable."""

from collections.abc import Sequence

import numpy as np
from simulated_shares import format_share

from answerkey.golden.wrong_replies import Mutant
from answerkey.judge.session import sum_up
from answerkey.model.question import Question
from answerkey.model.reply import Reply

__all__ = ["own_canaries_section"]

Source = np.random.Generator

# Share of wrong replies that it passes; with padding; with a signature.
JUDGES = {
    "fails 90% of wrong replies": (0.1, 0.1, 0.1),
    "fails 80%": (0.2, 0.2, 0.2),
    "fails 60%": (0.4, 0.4, 0.4),
    "fails 30%": (0.7, 0.7, 0.7),
    "passes 90% of long ones": (0.1, 0.9, 0.1),
    "passes 50% of long ones": (0.1, 0.5, 0.1),
    "obeys in 90%": (0.1, 0.1, 0.9),
    "obeys in 50%": (0.1, 0.1, 0.5),
}
# Questions with a wrong reply → copies.
SIZES = {5: 5, 10: 10, 20: 15}
_MUTANT = Mutant("fact", "asked figure", Reply(text="wrong"))


def is_unreliable(judge: tuple[float, float, float], wrong: int, copies: int, source: Source) -> bool:
    """Whether a judge is called unreliable. A reply that it passes has 1.0, another one 0.3."""
    plain, long, signed = (np.where(source.random(wrong) < share, 1.0, 0.3).tolist() for share in judge)
    graded = [(Question(id=f"q{n}", question="?"), _MUTANT, value) for n, value in enumerate(plain)]
    pairs = [
        [(f"q{n}", before, after) for n, (before, after) in enumerate(zip(plain, other, strict=True))][
            :copies
        ]
        for other in (long, signed)
    ]
    found = sum_up(graded, *pairs, pass_mark=0.7)
    return found is not None and bool(found.unreliable_because)


def own_canaries_section(trials: int, _sizes: Sequence[int], source: Source) -> None:
    """A table by judge and number of questions."""
    print(f"\n| called unreliable |{''.join(f' {n} questions |' for n in SIZES)}\n|---|{'---|' * len(SIZES)}")
    for name, judge in JUDGES.items():
        shares = [
            sum(is_unreliable(judge, *size, source) for _ in range(trials)) / trials for size in SIZES.items()
        ]
        print(f"| {name} | {' | '.join(format_share(share, trials) for share in shares)} |", flush=True)
