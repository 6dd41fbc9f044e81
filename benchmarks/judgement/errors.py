"""The error detector on authors that it was not fitted to: answers and errors charged, replies suspected."""

import argparse
import json

import fit_errors
from fit_errors import EVERYDAY, HARD, HELD_OUT
from held_out_errors import HeldOut, figures, held_out


def show(name: str, found: HeldOut) -> None:
    """Print one line of the table."""
    of = figures(found)
    print(
        f"{name:<26}{of.answers:>7}{of.answers_charged:>6}{of.false_rate:>8.2%}{of.errors:>8}{of.recall:>8.1%}"
        f"{of.suspected_share:>11.1%}{of.suspected_precision:>11.1%}"
    )


def table(arguments: argparse.Namespace) -> None:
    """Print the table."""
    found = held_out()
    stored = json.loads(HELD_OUT.read_text(encoding="utf-8"))
    if stored["digest"] != fit_errors.digest():
        print("! the held-out verdicts are older than code or labels: run python tools/fit/fit_errors.py")
    print(f"charged from a probability of {stored['charged_from']}")
    print(
        f"{'author left out':<26}{'answers':>7}{'charged':>14}{'errors':>8}{'charged':>8}{'suspected':>11}{'precision':>11}"
    )
    for group in (EVERYDAY, HARD):
        of_group = found.chosen([row.group == group for row in found.rows])
        show(group, of_group)
        for author in dict.fromkeys(row.author for row in of_group.rows):
            show(f"  author {author}", of_group.chosen([row.author == author for row in of_group.rows]))
    languages = sorted({row.language for row in found.rows})
    for language in languages:
        show(f"  language {language}", found.chosen([row.language == language for row in found.rows]))
    print("wrongly charged answers:")
    for row, charged in zip(found.rows, found.charged, strict=True):
        if charged and not row.is_error:
            print(f"  {row.author} {row.kind}: {' '.join(row.text.split())[:150]}")
