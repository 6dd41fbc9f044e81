"""How often the CI gates stop a chatbot that did not change but whose replies vary: `python tools/simulate/noisy_ci.py`.

Thirty questions with two keywords and a tool each. A third of them are unstable: at random, the reply lacks one keyword, or the
tool and both keywords. Baseline and candidate are the same chatbot, asked with the gates of the job that `answerkey init` writes.
"""

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any

import answerkey
from answerkey.config import Settings

QUESTIONS = [
    {
        "id": f"bike-{number:02}",
        "question": f"What does bike {number} cost, and what does it weigh?",
        "expected_tools": ["get_product"],
        "expected_keywords": [f"{1300 + number}", f"{11 + number / 10:.1f}"],
    }
    for number in range(30)
]
# Latency is measured, not simulated.
GATES = ("error_rate < 2%", "no regression", "worse == 0")
# The seven of the thirty questions that may lose a keyword, and the three that may fail.
LOSES_A_KEYWORD, FAILS = range(7), range(7, 10)


class VaryingBot:
    """Answers right, except that unstable questions go wrong with a probability."""

    def __init__(self, seed: int, rate: float) -> None:
        self._random, self._rate = random.Random(seed), rate

    def __call__(self, question: str) -> dict[str, Any]:
        number = int(question.split()[3])
        unlucky = self._random.random() < self._rate
        if unlucky and number in FAILS:
            return {"answer": "It is one of our nicest bikes.", "tools_used": []}
        weight = "" if unlucky and number in LOSES_A_KEYWORD else f" and weighs {11 + number / 10:.1f} kg"
        return {"answer": f"It costs ${1300 + number}{weight}.", "tools_used": ["get_product"]}


def count_stopped(runs: int, rate: float, folder: Path) -> int:
    """Compare the chatbot with itself so many times; returns how many comparisons failed a gate."""
    stopped = 0
    for number in range(runs):
        # Each pair has a store of its own.
        shared: dict[str, Any] = {"settings": Settings(), "store": str(folder / f"{rate}-{number}.db")}
        bot = VaryingBot(seed=number, rate=rate)
        answerkey.evaluate(QUESTIONS, bot, name="base", **shared)
        found = answerkey.evaluate(QUESTIONS, bot, baseline="base", confirm=5, gates=GATES, **shared)
        stopped += not found.passed
    return stopped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1, 0.3, 0.5])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for rate in arguments.rates:
            stopped = count_stopped(arguments.runs, rate, Path(folder))
            print(
                f"unstable questions go wrong {rate:.0%} of the time: {stopped} of {arguments.runs} stopped"
            )


if __name__ == "__main__":
    main()
