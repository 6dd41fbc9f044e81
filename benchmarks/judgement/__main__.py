"""How well the small text decisions hold on authors left out of the fit: `python benchmarks/judgement [PART …] [--old SRC]`.

A PART is a module beside this file with `table(arguments)`, which prints its table: errors, keywords, links. Without one, all of
them. SRC is the `src` folder of an older checkout, whose detector is shown beside the present one.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The parts and the scripts that fit the weights.
sys.path[:0] = [str(HERE), str(HERE.parent)]

if __name__ == "__main__":
    parts = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__main__")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--old", metavar="SRC", help="src folder of an older checkout to compare with")
    arguments = parser.parse_args()
    for part in arguments.part or parts:
        import_module(part).table(arguments)
