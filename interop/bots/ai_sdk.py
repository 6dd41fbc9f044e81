# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""The npm package `ai`: runs node/ai_sdk.mjs where the package was installed, and reads each of its cases."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from node_programs import run_node
from recording import QUESTION, problem_with, write

from answerkey.transcripts.conversation import QuestionContext
from answerkey.transcripts.payloads import Streamed, reply_from_object


def main() -> int:
    made = json.loads(run_node("ai_sdk.mjs", QUESTION))
    wrong = 0
    for name, payload in made["cases"].items():
        streams = name.endswith("stream")
        given = Streamed(payload) if streams else payload
        problem = problem_with(reply_from_object(given, context=QuestionContext(QUESTION)), "everything")
        wrong += problem is not None
        print(f"ai {made['version']} {name}: {problem or 'everything seen'}")
        write("ai", made["version"], name, "everything", streams, payload)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
