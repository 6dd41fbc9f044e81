"""Are the verdicts right at their stated rate? Seeded simulation of every test and interval that answerkey reports.

    benchmarks/statistics [--trials N] [--sizes 15,50,200,1000] [--only SECTION] [--seed S]

Sections: differences (false alarms of two equal chatbots, coverage of every difference), unseen (the same of populations
drawn by chance), means (coverage of one run's score), rates (McNemar, Newcombe, Wilson), clusters, anytime (continuous
peeking), family (Holm), power (against a paired t test). Every row is judged against the bounds in bounds.py: pass, FAIL,
or discrete or hidden where the data allow no more.
"""

import argparse
import random
import sys
import time

from bounds import Judge
from sections import SECTIONS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks/statistics", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--trials", type=int, default=2000, help="simulated experiments per row (default 2000)"
    )
    parser.add_argument(
        "--sizes", default="15,50,200,1000", help="numbers of questions (default 15,50,200,1000)"
    )
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    judge = Judge()
    began = time.process_time()
    for name in options.only or SECTIONS:
        SECTIONS[name](judge, options.trials, sizes, random.Random(f"{options.seed} {name}"))
    print(f"\n{options.trials} trials a row, {time.process_time() - began:.0f} CPU s")
    for hidden in judge.hidden:
        print(f"hidden {hidden}")
    for outside in judge.tolerated:
        print(f"outside, of those drawn by chance: {outside}")
    for broken in judge.broken:
        print(f"FAIL {broken}")
    others = {
        "too discrete": judge.discrete,
        "hidden": len(judge.hidden),
        "tolerated": len(judge.tolerated),
        "fail": len(judge.broken),
    }
    print(f"{judge.rows} rows: {judge.rows - sum(others.values())} pass", end="")
    print("".join(f", {count} {name}" for name, count in others.items()))
    return 1 if judge.broken else 0


if __name__ == "__main__":
    sys.exit(main())
