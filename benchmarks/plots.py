"""The plots of docs/measurements/performance.md, drawn from the tables on the page.

    uv run --no-project --with matplotlib benchmarks/plots.py

`performance_page.py` calls it after a table has changed. matplotlib is installed in a separate environment.
"""

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot
from matplotlib.axes import Axes

DOCS = Path(__file__).parents[1] / "docs" / "measurements"
# The order of the colours, which a reader who sees few can tell apart (Okabe and Ito).
TINTS = ("#0072b2", "#d55e00", "#009e73")


def table(block: str) -> list[list[str]]:
    """The rows of a block's first table, without its head."""
    page = (DOCS / "performance.md").read_text()
    body = page.partition(f"<!-- {block}: begin -->")[2].partition(f"<!-- {block}: end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    return rows[2:]


def number(cell: str) -> float:
    """The first number of a cell, without its separators."""
    found = re.search(r"[\d.]+", cell.replace(",", ""))
    if found is None:
        raise SystemExit(f"docs/measurements/performance.md: no number in {cell!r}")
    return float(found[0])


def save(name: str) -> None:
    """Write the figure at hand; the same figures give the same file."""
    pyplot.tight_layout()
    pyplot.savefig(DOCS / "plots" / f"{name}.svg", metadata={"Date": None})
    pyplot.close()


def draw_peers() -> None:
    """CPU of each harness for the same job, as times answerkey's."""
    _, *peers = table("peers")
    names = ["answerkey", *(row[0].rpartition(" ")[0] for row in peers)]
    ratios = [1.0, *(number(row[1].partition("(")[2]) for row in peers)]
    pyplot.figure(figsize=(7, 2.8))
    axes = pyplot.gca()
    axes.bar_label(
        axes.barh(names, ratios, color=[TINTS[0], *["#999999"] * len(peers)]), fmt="%.1f×", padding=3
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(ratios))
    axes.set_xlabel("CPU time for the same questions, times answerkey's")
    save("peers")


def draw_growth() -> None:
    """What a row costs, and the memory of all processes, as the log grows."""
    shapes: dict[str, list[tuple[float, float, float]]] = {}
    for shape, rows, _, cost, _, memory in table("growth"):
        shapes.setdefault(shape, []).append((number(rows), number(cost), number(memory)))
    left: Axes
    right: Axes
    _, (left, right) = pyplot.subplots(1, 2, figsize=(7, 2.8))
    for axes, part, words in ((left, 1, "CPU µs a row"), (right, 2, "memory of all processes, MB")):
        for tint, (shape, points) in zip(TINTS, shapes.items(), strict=False):
            axes.plot(
                [point[0] for point in points],
                [point[part] for point in points],
                "o-",
                color=tint,
                label=shape,
            )
        axes.set(xscale="log", xlabel="rows", ylabel=words, ylim=(0, None))
        axes.legend(frameon=False)
    save("growth")


if __name__ == "__main__":
    mpl.use("svg")
    # Text stays text, so that pages can be searched and the files are small.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "answerkey", "axes.spines.top": False})
    mpl.rcParams["axes.spines.right"] = False
    (DOCS / "plots").mkdir(exist_ok=True)
    draw_peers()
    draw_growth()
