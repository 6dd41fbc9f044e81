"""Counts the files of answerkey that a command goes through: `python tests/files_touched.py run golden.jsonl --target …`.

A file counts if one of its functions was called, other than while a module was imported. Prints {file: functions} as JSON
on standard error.
"""

import json
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType

import answerkey

SOURCE = str(Path(answerkey.__file__).parent) + "/"
# Code of a function, not the body of a class or a module.
_FUNCTION = 1


def main() -> None:
    called: dict[str, set[str]] = defaultdict(set)

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & _FUNCTION or not code.co_filename.startswith(SOURCE):
            return
        caller = frame.f_back
        while caller is not None:
            if caller.f_code.co_name == "<module>" and caller.f_code.co_filename.startswith(SOURCE):
                return
            caller = caller.f_back
        called[code.co_filename.removeprefix(SOURCE)].add(code.co_name)

    from answerkey.cli.main import run_command

    threading.setprofile(note)
    sys.setprofile(note)
    run_command(sys.argv[1:])
    sys.setprofile(None)
    sys.stderr.write(json.dumps({file: sorted(names) for file, names in sorted(called.items())}))


if __name__ == "__main__":
    main()
