"""The importer `faq`: lines of "Question? Answer" as a golden set."""

from collections.abc import Sequence
from pathlib import Path

from answerkey.protocols import Imported


def import_faq(paths: Sequence[Path]) -> Imported:
    """Called with the files of `answerkey import faq FILE...`."""
    rows = []
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            question, mark, answer = line.partition("?")
            if mark and answer.strip():
                rows.append(
                    {
                        "id": f"{path.stem}-{number}",
                        "question": f"{question}?",
                        "reference_answer": answer.strip(),
                    }
                )
    return Imported(rows=rows, kind="questions", notes=("answers became reference answers",))
