"""Runs a program of `node/` in the folder that its npm packages were installed in: the script's first argument."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["npm_version", "read_cases", "run_node"]

# A chatbot in a process of its own has it from its environment.
_PLACE = Path(os.environ.setdefault("INTEROP_NODE", sys.argv[1] if len(sys.argv) > 1 else "."))


def npm_version(package: str) -> str:
    """The version that was installed."""
    return str(json.loads((_PLACE / "node_modules" / package / "package.json").read_text())["version"])


def run_node(program: str, *arguments: str) -> str:
    """What the program prints."""
    for file in (Path(__file__).parent / "node").glob("*.mjs"):
        shutil.copyfile(file, _PLACE / file.name)
    ran = subprocess.run(
        ["node", program, *arguments], cwd=_PLACE, capture_output=True, check=True, text=True, timeout=60
    )
    return ran.stdout


def read_cases(package: str, program: str) -> int:
    """Read what a program prints of each case, and keep it for the tests; the number of cases that are read wrongly."""
    from recording import QUESTION, problem_with, write

    from answerkey.transcripts.messages import QuestionContext
    from answerkey.transcripts.payloads import Streamed, reply_from_object

    made = json.loads(run_node(program, QUESTION))
    wrong = 0
    for name, payload in made["cases"].items():
        streams = name.endswith("stream")
        given = Streamed(payload) if streams else payload
        problem = problem_with(reply_from_object(given, context=QuestionContext(QUESTION)), "everything")
        wrong += problem is not None
        print(f"{package} {made['version']} {name}: {problem or 'everything seen'}")
        write(package, made["version"], name, "everything", streams, payload)
    return wrong
