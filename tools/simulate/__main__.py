"""Are the verdicts right at their stated rate? Seeded simulation of every test and interval that answerkey reports.

    python tools/simulate [--trials N] [--sizes 15,20,50,200,1000] [--only SECTION] [--seed S]

Sections: differences-STRUCTURE (false alarms, coverage and power, beside Student's t over units) and means-STRUCTURE
(coverage of one run's score), of units alone, in fives and in conversations; plan (power at the planned size), early (false
alarms of experiments whose failures are slow or quick), confirm (broken and noisy chatbots before the documented CI set-up),
repeats (its decision, by K), edges-* (near-perfect clustered scores, the seam of two methods, looks at lopsided changes,
small pilots, people's verdicts), own-canaries (judges called unreliable), judge (coverage of what labels correct), loopback
(the same of verdicts that came over HTTP). Each prints a Markdown table, as docs/measurements/statistics.md has them.
"""

import argparse
import sys
import time

import numpy as np
from sections import SECTIONS


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=1000, help="simulated experiments per row (1000)")
    parser.add_argument("--sizes", default="15,20,50,200,1000", help="numbers of units")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    began = time.process_time()
    for name in options.only or SECTIONS:
        SECTIONS[name](options.trials, sizes, np.random.default_rng(options.seed))
    print(f"\n{options.trials} trials a row, {time.process_time() - began:.0f} CPU s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
