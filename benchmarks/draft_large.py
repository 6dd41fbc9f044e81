"""CPU time and memory of `answerkey draft` on many logged questions of which no two are alike.

python benchmarks/draft_large.py [--questions 100000]
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_SUBJECTS = (
    "rent deposit lease loan insurance roof boiler policy invoice contractor inspection payout tax permit licence parking "
    "heating plumbing cleaning garden elevator key refund fee notice renewal guarantor mortgage escrow"
)
_THINGS = "unit apartment building office warehouse shop garage house duplex studio lot"
_VERBS = "pay increase renew cancel file update transfer check repair order book approve extend verify split"
_STREETS = "Oak Maple Cedar River Hill Lake Park Stone Mill Church Bridge King Queen North South Elm"
_ENDINGS = "wood side view dale ton field gate ham"
_FIRST = "Ann Bo Cara Dev Eli Finn Gus Hal Ida Jon Kim Lea Max Nia Oto Pia Ray Sam Tia Uma"
_LAST = "Lee Day Roy Fox Kay Moss Hart Bell Cole Dunn Ford Gray Hale Ives Judd Knox Lowe Marsh Nash Orr"
_MONTHS = "January February March April June July September October December"
_FORMS = (
    "What is the {subject} of {thing} {number} in {street}?",
    "how much was the {subject} for {thing} {number} {street} in {year}",
    "When does {name} {verb} the {subject} at {street} {number}?",
    "who handled the {subject} of {name} in {month} {year}",
    "can I {verb} my {subject} for {thing} {number} at {street}",
    "I need to {verb} the {other} and the {subject} of {name}, {street} {number}",
    "{subject} {thing} {number} {street}",
    "please tell me whether {name} has to {verb} {subject} before {month} {year}",
)


def rows(count: int) -> Iterator[dict[str, object]]:
    """Logged questions with replies; a fifth of the replies do not know."""
    draw = random.Random(4)

    def one_of(words: str) -> str:
        return draw.choice(words.split())

    asked: set[str] = set()
    while len(asked) < count:
        words = {
            "subject": one_of(_SUBJECTS),
            "other": one_of(_SUBJECTS),
            "thing": one_of(_THINGS),
            "verb": one_of(_VERBS),
            "street": one_of(_STREETS) + one_of(_ENDINGS),
            "name": f"{one_of(_FIRST)} {one_of(_LAST)}",
            "month": one_of(_MONTHS),
            "year": draw.randrange(2015, 2027),
            "number": draw.randrange(1, 900),
        }
        amount = draw.randrange(100, 99_999)
        question = draw.choice(_FORMS).format(**words)
        if question in asked:
            continue
        asked.add(question)
        answer = "The {subject} of {thing} {number} in {street} is ${amount:,}.".format(
            **words, amount=amount
        )
        arguments = {"subject": words["subject"], "number": words["number"], "street": words["street"]}
        call = {"name": "query_database", "arguments": arguments, "result": [{"amount": amount}]}
        if draw.random() < 0.2:
            answer = "I could not find that."
        yield {"question": question, "answer": answer, "tool_calls": [call]}


def main() -> None:
    """Write a log, draft from it, and print what that took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--questions", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with Path(folder, "log.jsonl").open("w") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in rows(options.questions))
        command = [
            sys.executable,
            "-m",
            "answerkey",
            "draft",
            "log.jsonl",
            "--questions",
            "demo",
            "-o",
            "drafts.jsonl",
        ]
        output = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    print(*output.splitlines()[:3], sep="\n")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime:.1f} s user, {used.ru_stime:.1f} s system, {used.ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
