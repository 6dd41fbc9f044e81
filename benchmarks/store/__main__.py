"""How a store takes and gives back runs, on PostgreSQL and SQLite: many writers, the tenth run, a million replies.

    python benchmarks/store [--only writers|tenth|large] [--kind postgresql|sqlite] [--runs 100] [--questions 10000]

A server is started for it on loopback, with its own settings but that commits wait for the disk as they would anywhere.
Everything shares the machine: the server, the writers, and whatever else runs. Tables are Markdown.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from made_runs import made_info, made_questions, made_trials, store_run

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from filling import fill
from reading import measured_readings
from writers import copied_rows, together

from answerkey.store import open_store
from store.postgres_server import PostgresServer

KINDS = ("postgresql", "sqlite")


@contextmanager
def new_stores() -> Iterator[dict[str, str]]:
    """Kind → the address of an empty store."""
    server = PostgresServer()
    with tempfile.TemporaryDirectory() as folder:
        try:
            server.start()
            # Where a run's journals would go.
            os.environ["XDG_STATE_HOME"] = folder
            yield {"postgresql": server.new_database(), "sqlite": f"{folder}/store.db"}
        finally:
            server.stop()
            server.remove()


def writers(kinds: list[str], questions: int) -> None:
    """Eight processes that store a run each, one that does, and the same rows by COPY, in alternation."""
    print("| storing in batches of 500 | replies a second | times one writer |\n|---|---|---|")
    for kind in kinds:
        best = {"one writer": 0.0, "eight writers": 0.0}
        if kind == "postgresql":
            best["plain COPY of the same rows, one connection"] = 0.0
        for _ in range(3):
            with new_stores() as urls:
                rates = {
                    "one writer": together(urls[kind], 1, questions),
                    "eight writers": together(urls[kind], 8, questions // 2),
                }
                if kind == "postgresql":
                    rates["plain COPY of the same rows, one connection"] = copied_rows(urls[kind], questions)
            best = {name: max(rate, rates[name]) for name, rate in best.items()}
        for name, rate in best.items():
            print(f"| {kind}: {name} | {rate:,.0f} | {rate / best['one writer']:.2f} |", flush=True)


def tenth(kinds: list[str], questions: int) -> None:
    """Ten runs in a row: stored, read back and summarised."""
    print("| ten runs in a row | first, s | tenth, s | slowest, s | tenth to first |\n|---|---|---|---|---|")
    asked = made_questions(questions)
    for kind in kinds:
        taken = []
        with new_stores() as urls, open_store(urls[kind]) as store:
            for number in range(10):
                trials = list(made_trials(asked, seed=number))
                begun = time.perf_counter()
                store_run(store, made_info(number, asked), asked, trials)
                taken.append(time.perf_counter() - begun)
        ratio = taken[9] / taken[0]
        print(
            f"| {kind}, {questions:,} questions each | {taken[0]:.2f} | {taken[9]:.2f} | {max(taken):.2f} | {ratio:.2f} |",
            flush=True,
        )


def large(kinds: list[str], questions: int, runs: int) -> None:
    """The same readings of a store with two runs and of one with many, which should take the same time."""
    asked = made_questions(questions)
    few, many = 2 * questions, runs * questions
    for kind in kinds:
        print(f"| {kind}, ms | {few:,} replies | {many:,} replies | ratio |\n|---|---|---|---|")
        found = []
        with new_stores() as urls, open_store(urls[kind]) as store:
            for number in (2, runs):
                fill(store, asked, number)
                found.append(measured_readings(store, questions))
        for name, before in found[0].items():
            after = found[1].get(name, math.nan)
            print(f"| {name} | {before:.1f} | {after:.1f} | {after / before:.1f} |")
        print(flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--only", choices=("writers", "tenth", "large"), action="append")
    options.add_argument("--kind", choices=KINDS, action="append")
    options.add_argument("--questions", type=int, default=10_000)
    options.add_argument("--runs", type=int, default=100)
    chosen = options.parse_args()
    kinds, sections = chosen.kind or list(KINDS), chosen.only or ["writers", "tenth", "large"]
    if "writers" in sections:
        writers(kinds, chosen.questions)
        print()
    if "tenth" in sections:
        tenth(kinds, chosen.questions)
        print()
    if "large" in sections:
        large(kinds, chosen.questions, chosen.runs)


if __name__ == "__main__":
    main()
