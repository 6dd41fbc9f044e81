"""What every script in `datasets/` needs: a golden set to export, and where files of the tools' own are kept for the tests."""

import tempfile
from importlib.metadata import version
from pathlib import Path

from answerkey.datasets.golden_sets import parse_question
from answerkey.model.question import QuestionSet
from answerkey.plugins import exporters

KEPT = Path(__file__).parents[1] / "tests" / "datasets" / "peers"
ROWS = [
    {
        "id": "fee",
        "question": "What is the yearly fee for „Montrose“?",
        "category": "fees",
        "expected_tools": [{"name": "query_database", "arguments": {"year": [2024]}}],
        "expected_keywords": ["900", ["9th", "ninth"], {"regex": "Montro+se"}],
        "reference_answer": "It is 900 a year.",
        "relevant_documents": ["lease-9"],
        "checks": [{"rubric": "is polite"}],
    },
    {"id": "hello", "question": "Hello?", "tools": "none", "reference_answer": "Hello!"},
]


def golden() -> QuestionSet:
    return QuestionSet(questions=tuple(parse_question(row) for row in ROWS))


def exported(name: str) -> Path:
    """answerkey's export in this format: the file, or the folder where there are several."""
    folder = Path(tempfile.mkdtemp())
    files = exporters.get(name)(golden()).files
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(b"".join(content))
    return folder / next(iter(files)) if len(files) == 1 else folder


def done(package: str, *loaded: object) -> None:
    """Say what was loaded, and by which version."""
    print(f"{package} {version(package)}: loaded {', '.join(map(str, loaded))}")
