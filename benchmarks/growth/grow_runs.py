"""How the commands about runs grow with the golden set: CPU and memory from a thousand to a hundred thousand questions.

python benchmarks/growth/grow_runs.py [QUESTIONS ...]
"""

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from asking import ANSWERKEY, golden, measured, ours, start_bot

# After two runs of the same set.
COMMANDS = {
    "show": ("show", "latest"),
    "show --failures": ("show", "latest", "--failures"),
    "show --question": ("show", "latest", "--question", "q17"),
    "report -o xlsx": ("report", "latest", "-o", "{folder}/report.xlsx"),
    "report -o csv": ("report", "latest", "-o", "{folder}/report.csv"),
    "report -o jsonl": ("report", "latest", "-o", "{folder}/report.jsonl"),
    "report -o html": ("report", "latest", "-o", "{folder}/report.html"),
    "resume, nothing missing": ("resume", "latest"),
    "rescore": ("rescore", "latest"),
    "compare": ("compare", "latest~1", "latest"),
    "why": ("why", "latest~1", "latest"),
    "runs": ("runs",),
}


def main(sizes: list[int]) -> None:
    cells: dict[str, list[str]] = {}
    bot, url = start_bot(0.0)
    try:
        for size in sizes:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                path, store = golden(folder, size), str(folder / "store.db")
                run = ours(path, url, folder, store="store.db")
                commands = {"run, the first": run, "run, a later one": run}
                for label, words in COMMANDS.items():
                    given = [word.format(folder=folder) for word in words]
                    commands[label] = [ANSWERKEY, *given, "--store", store]
                commands["lint"] = [ANSWERKEY, "lint", str(path)]
                both = [ANSWERKEY, "ab", str(path), "--a", url, "--b", f"{url}?b", "--concurrency", "50"]
                commands["ab"] = [*both, "--store", str(folder / "ab.db")]
                for label, command in commands.items():
                    _, cpu, _, peak = measured(*command)
                    cells.setdefault(label, []).append(f"{cpu:.2f} s, {peak:.0f} MB")
    finally:
        bot.kill()
    print(f"| CPU and peak memory | {' | '.join(f'{size:,} questions' for size in sizes)} |")
    print("|---" * (len(sizes) + 1) + "|")
    for label, row in cells.items():
        print(f"| `{label}` | {' | '.join(row)} |")


if __name__ == "__main__":
    main([int(given) for given in sys.argv[1:]] or [1000, 10_000, 100_000])
