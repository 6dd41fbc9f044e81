"""Runs the benchmarks and updates the tables of docs/measurements/performance.md.

    python benchmarks/performance_page.py [BLOCK ...] [--output FILE]

Runs the named benchmarks, or all of them, and puts what each prints between its marks on the page, with the day, the
versions and the class of machine; then the page's plots are drawn from its tables. `--output` takes one block from a file with
what its benchmark has printed.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "measurements" / "performance.md"
# Block → the script and its arguments.
BLOCKS = {
    "peers": ("peers",),
    "asking": ("asking.py", "--large", "100000"),
    "logs": ("logs/compare_logs.py",),
    "parts": ("logs/row_parts.py",),
    "growth": ("growth/grow_logs.py", "10000", "100000", "1000000"),
    "runs": ("growth/grow_runs.py",),
    "store": ("store",),
    "compare": ("compare_large.py",),
}


def write_block(page: Path, name: str, printed: str) -> None:
    """Put what a benchmark printed between the marks of a block; lines beside a table become a list."""
    text = page.read_text()
    marks = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    if not marks.search(text):
        raise SystemExit(f"{page}: it has no line <!-- {name}: begin -->")
    lines = [
        line if not line or line.startswith("|") else f"- {line}" for line in printed.strip().splitlines()
    ]
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    page.write_text(marks.sub(lambda found: f"{found[1]}{machine()}\n\n{body}\n{found[2]}", text))


def machine() -> str:
    """When and on what kind of machine, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"answerkey {version('answerkey')}",
        f"Python {platform.python_version()}",
        f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB",
    ]
    return f"Measured {', '.join(parts)}."


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("blocks", nargs="*", choices=[[], *BLOCKS], metavar="BLOCK")
    options.add_argument("--output", type=Path, help="what the benchmark of one block has printed already")
    chosen = options.parse_args()
    for name in chosen.blocks or BLOCKS:
        if chosen.output:
            printed = chosen.output.read_text()
        else:
            script, *arguments = BLOCKS[name]
            command = [sys.executable, str(HERE / script), *arguments]
            print(f"{name} …", file=sys.stderr, flush=True)
            printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            print(printed)
        write_block(PAGE, name, printed)
    uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    plots = [uv, "run", "--quiet", "--no-project", "--with", "matplotlib", str(HERE / "plots.py")]
    subprocess.run(plots, check=True)


if __name__ == "__main__":
    main()
