"""How often `answerkey why` names the stage of a planted change, and calls noise a cause.

    python benchmarks/planted_causes.py [--seeds N]

A small chatbot over SQLite answers 40 questions five times; the change concerns 30 of them. A share of the replies fails at
random.
"""

import argparse
import sys
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import answerkey
from answerkey.config import Settings
from answerkey.model.question import TruthSettings
from answerkey.model.run import Run
from answerkey.runs.causes import causes
from runs.planted_bot import STAGES, PlantedBot, golden_set, make_database

PLANTED = {**STAGES, "nothing": "noise"}
FLAKY = (0.0, 0.1, 0.2, 0.3)
REPEAT = 5
# Numbers of runs, so that each has its own random failures.
SEEDS = count(1)


class Planted:
    """Pairs of runs with one planted change."""

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "runs.db")
        self.books = make_database(folder / "books.db")
        self.changed = make_database(folder / "changed.db", raised=500)

    def pair(self, change: str, flaky: float) -> tuple[Run, Run]:
        """A base and a candidate."""
        is_truth = change == "truth"
        base = self._run(self.books, truth=self.books if is_truth else None, flaky=flaky)
        candidate = self._run(
            self.changed if change == "data" else self.books,
            truth=self.changed if is_truth else None,
            edited=11 if change == "key" else 0,
            flaky=flaky,
            **({} if change in ("data", "key", "truth", "nothing") else {"fault": change}),
        )
        return base, candidate

    def _run(self, database: Path, *, truth: Path | None, edited: int = 0, **bot: Any) -> Run:
        settings = Settings()
        if truth is not None:
            settings = Settings(truth={"books": TruthSettings(url=f"sqlite:///{truth}")})
        return answerkey.evaluate(
            golden_set(computed=truth is not None, edited=edited),
            PlantedBot(database, seed=next(SEEDS), **bot),
            settings=settings,
            repeat=REPEAT,
            store=self.store,
        )


def main() -> None:
    """Print a line for each change and share of random failures, then how much the groups of the demo cover."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    payouts = {row["id"] for row in golden_set() if row["category"] == "payouts"}
    with tempfile.TemporaryDirectory() as folder:
        planted = Planted(Path(folder))
        for change, stage in PLANTED.items():
            for flaky in FLAKY:
                right = noisy = others = 0
                for _ in range(options.seeds):
                    cases = answerkey.why(*planted.pair(change, flaky)).cases
                    concerned = set() if change == "nothing" else payouts
                    found = Counter(case.stage for case in cases if case.id in concerned)
                    right += found[stage]
                    rest = [case for case in cases if case.id not in concerned]
                    others += len(rest)
                    noisy += sum(case.stage != "noise" for case in rest)
                of = 0 if change == "nothing" else options.seeds * len(payouts)
                print(
                    f"{change}, {flaky:.0%} flaky: stage right {right}/{of}, noise called a cause {noisy}/{others}"
                )
        base = answerkey.evaluate(target="demo", store=planted.store)
        for variant in ("demo:basic", "demo:flaky"):
            run = answerkey.evaluate(target=variant, store=planted.store)
            alone, against = causes(run), answerkey.why(base, run)
            shares = (
                -sum(group.points for group in groups[:6]) / lost
                for groups, lost in ((alone.groups, alone.lost), (against.losses, against.lost))
            )
            print(
                f"{variant}: six groups cover {', '.join(f'{share:.1%}' for share in shares)} of the lost points"
            )


if __name__ == "__main__":
    main()
