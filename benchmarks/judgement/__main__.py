"""The small text decisions on authors left out of the fit: `python benchmarks/judgement [PART …]`.

A PART is a module beside this file with `table(arguments)`, which prints its table: errors, keywords, links. Without one, all of
them. `--old SRC` is the `src` folder of an older checkout, whose verdicts are shown beside the present ones. `--trivia PATH` are
judged trivia answers (needs scikit-learn), `--attributed PATH` attributed replies, for novelty.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools" / "fit")]

if __name__ == "__main__":
    parts = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__main__")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--old", metavar="SRC", help="src folder of an older checkout to compare with")
    parser.add_argument("--trivia", type=Path, metavar="PATH", help="judged trivia answers, for keywords")
    parser.add_argument("--attributed", type=Path, metavar="PATH", help="begin_dev.jsonl, for links")
    arguments = parser.parse_args()
    for part in arguments.part or parts:
        import_module(part).table(arguments)
