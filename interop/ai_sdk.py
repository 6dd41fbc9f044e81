"""Records what the npm package `ai` gives back: runs ai_sdk.mjs and reads each of its cases."""

import json
import subprocess
import sys
from pathlib import Path

from recording import QUESTION, problem_with, write

from answerkey.transcripts.conversation import Asked
from answerkey.transcripts.reply_mapping import Streamed, reply_from_object


def main() -> int:
    script = Path(__file__).with_suffix(".mjs")
    place = Path(sys.argv[1])
    (place / script.name).write_text(script.read_text())
    ran = subprocess.run(
        ["node", script.name, QUESTION], cwd=place, capture_output=True, check=True, text=True, timeout=60
    )
    made = json.loads(ran.stdout)
    wrong = 0
    for name, payload in made["cases"].items():
        streams = name.endswith("stream")
        given = Streamed(payload) if streams else payload
        problem = problem_with(reply_from_object(given, asked=Asked(QUESTION)), "everything")
        wrong += problem is not None
        print(f"ai {made['version']} {name}: {problem or 'everything seen'}")
        write("ai", made["version"], name, "everything", streams, payload)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
