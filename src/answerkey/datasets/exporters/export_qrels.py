"""Exports a golden set's relevance judgements: TREC qrels, or a BEIR dataset without its corpus."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from answerkey.datasets.question_rows import question_row
from answerkey.datasets.trec_files import MOST_GRADE
from answerkey.errors import UsageError
from answerkey.model.question import Question, QuestionSet
from answerkey.protocols import Exported

_CARRIED = ("id", "question", "relevant_documents")


def export_trec(questions: QuestionSet) -> Exported:
    """`qrels.txt` ("query 0 document grade") and the questions as `queries.tsv` (id, tab, text)."""
    judged, notes = _judged(questions)
    return Exported(
        files={
            "qrels.txt": (
                f"{question.id} 0 {document} {grade}\n".encode()
                for question, grades in judged
                for document, grade in grades.items()
            ),
            "queries.tsv": (
                f"{question.id}\t{' '.join(question.question.split())}\n".encode() for question, _ in judged
            ),
        },
        count=len(judged),
        notes=notes,
    )


def export_beir(questions: QuestionSet) -> Exported:
    """`qrels/test.tsv` and `queries.jsonl`, as a BEIR dataset has them."""
    judged, notes = _judged(questions)
    return Exported(
        files={
            "qrels/test.tsv": _beir_judgements(judged),
            "queries.jsonl": (
                msgspec.json.encode({"_id": question.id, "text": question.question}) + b"\n"
                for question, _ in judged
            ),
        },
        count=len(judged),
        notes=(*notes, "there is no corpus.jsonl: a golden set names documents but does not hold them"),
    )


_Judged = list[tuple[Question, dict[str, int]]]


def _beir_judgements(judged: _Judged) -> Iterator[bytes]:
    yield b"query-id\tcorpus-id\tscore\n"
    for question, grades in judged:
        for document, grade in grades.items():
            yield f"{question.id}\t{document}\t{grade}\n".encode()


def _judged(questions: QuestionSet) -> tuple[_Judged, tuple[str, ...]]:
    """The questions with judgements that qrels can hold, and what was left out."""
    left_out: Counter[str] = Counter()
    judged: _Judged = []
    for question in questions:
        if _has_spaces(question.id) or not question.relevant_documents:
            reason = (
                "their ids have spaces" if question.relevant_documents else "they have no relevant_documents"
            )
            left_out[f"questions were left out: {reason}"] += 1
            continue
        grades: dict[str, int] = {}
        for document, grade in question.relevant_documents.items():
            if _has_spaces(document):
                left_out["judgements were left out: their documents' ids have spaces, which part a line"] += 1
            elif not grade.is_integer() or grade > MOST_GRADE:
                left_out[f"judgements were left out: qrels have whole grades up to {MOST_GRADE}"] += 1
            else:
                grades[document] = int(grade)
        if grades:
            judged.append((question, grades))
        for name in question_row(question):
            if name not in _CARRIED:
                left_out[f"questions have {name!r}, which is not carried over"] += 1
    if not judged:
        raise UsageError("no question has relevant_documents that qrels can hold; there is nothing to export")
    return judged, tuple(f"{count} {what}" for what, count in left_out.items())


def _has_spaces(name: str) -> bool:
    return name.split() != [name]
