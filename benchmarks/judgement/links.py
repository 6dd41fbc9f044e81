"""Links on labelled replies, by author, and how well novelty separates replies that are not attributable to their passage."""

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from labelled_links import labelled_rows, measure

from answerkey.evidence.records import Words, novelty


def area_under_curve(positive: list[float], negative: list[float]) -> float:
    """How often a positive is above a negative, ties half."""
    above = sum((one > other) + 0.5 * (one == other) for one in positive for other in negative)
    return above / (len(positive) * len(negative))


def novelty_curve(path: Path) -> dict[str, float]:
    """By part of the attributed replies: how well novelty separates those that are not fully attributable.

    "two labels" leaves the generic replies out, which claim nothing: fully attributable against not attributable.
    """
    parts: dict[str, tuple[list[float], list[float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        value = novelty(Words(row["response"]), Words(row["knowledge"]))
        names = ["all", row["id"].rsplit("-", 1)[0], *(["two labels"] if row["label"] != "Generic" else [])]
        for name in names:
            more, less = parts.setdefault(name, ([], []))
            (less if row["label"] == "Fully attributable" else more).append(1.0 if value is None else value)
    return {name: area_under_curve(*lists) for name, lists in parts.items()}


def table(arguments: argparse.Namespace) -> None:
    """Print the figures, by author and together."""
    by_author: dict[str, Counter[str]] = {}
    generator = random.Random(12)
    for author, row in labelled_rows():
        measure(row, by_author.setdefault(author, Counter()), generator)
    by_author["all"] = sum(by_author.values(), Counter())
    for author, counts in by_author.items():
        print(author)
        for name in sorted(name for name in counts if not name.endswith("linked")):
            linked = counts[f"{name} linked"]
            print(f"  {name:30} {counts[name]:5}  linked {linked:5}  {linked / counts[name]:.3f}")
    curve = novelty_curve(arguments.attributed) if arguments.attributed else {}
    for name, area in curve.items():
        print(f"novelty, {name:20} area under the curve {area:.3f}")
