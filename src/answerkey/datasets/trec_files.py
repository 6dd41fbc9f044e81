"""TREC and BEIR files: relevance judgements (qrels), runs and queries, each mistake named with its line.

qrels are `query iteration document grade` (TREC) or a table `query-id corpus-id score` with a header (BEIR); a run is
`query Q0 document rank score tag`. Any white space separates fields. The rank column is not used: as in trec_eval, the
order of a run is that of its scores.
"""

import re
from collections.abc import Callable, Iterator
from math import isnan, nan
from pathlib import Path
from typing import TypeVar

from answerkey.errors import InputError
from answerkey.transcripts.file_bytes import read_text
from answerkey.transcripts.row_files import read_rows

# Query id → document id → grade.
Qrels = dict[str, dict[str, int]]
# Query id → document id → score.
TrecRun = dict[str, dict[str, float]]

# trec_eval keeps a table of all grades up to the largest one: a typing error in a grade must not fill the memory.
MOST_GRADE = 1000

_Value = TypeVar("_Value", int, float)


def read_qrels(path: str | Path) -> Qrels:
    """Relevance judgements of a TREC or BEIR file. A grade of 0 or less says that the document is not relevant."""
    columns = 0

    def judgement(fields: list[str]) -> tuple[str, str, int] | None:
        nonlocal columns
        if not columns:
            columns = 3 if len(fields) == 3 else 4
            if _is_beir_header(fields):
                return None
        if len(fields) != columns:
            wanted = "'query iteration document grade'" if columns == 4 else "'query-id corpus-id score'"
            raise ValueError(
                f"{len(fields)} fields where a judgement has {columns}: {wanted}; mend or remove the line"
            )
        return fields[0], fields[-2], _grade(fields[-1])

    return _by_query(
        Path(path),
        judgement,
        twice="is judged twice for query {!r}; remove one of the lines",
        empty="no judgement in it; a qrels file has lines 'query iteration document grade'",
    )


def read_trec_run(path: str | Path) -> TrecRun:
    """A retrieval run: what was found for each query, with scores."""

    def retrieved(fields: list[str]) -> tuple[str, str, float]:
        if len(fields) not in (5, 6):
            raise ValueError(
                f"{len(fields)} fields where a run has 6: 'query Q0 document rank score tag'; mend or remove the line"
            )
        try:
            score = float(fields[4])
        except ValueError:
            score = nan
        if isnan(score):
            raise ValueError(f"score {fields[4]!r} is not a number; mend or remove the line")
        return fields[0], fields[2], score

    return _by_query(
        Path(path),
        retrieved,
        twice="is retrieved twice for query {!r}; keep its best line",
        empty="no line in it; a run has lines 'query Q0 document rank score tag'",
    )


def _by_query(
    path: Path, read: Callable[[list[str]], tuple[str, str, _Value] | None], *, twice: str, empty: str
) -> dict[str, dict[str, _Value]]:
    """Query id → document id → value, from a line's fields each; None: the line is a header."""
    found: dict[str, dict[str, _Value]] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        try:
            record = read(fields) if (fields := line.split()) else None
            if record is not None:
                query, document, value = record
                documents = found.setdefault(query, {})
                if document in documents:
                    raise ValueError(f"document {document!r} {twice.format(query)}")
                documents[document] = value
        except ValueError as error:
            raise InputError(str(error), path=path, line=number) from None
    if not found:
        raise InputError(empty, path=path)
    return found


def read_queries(path: str | Path) -> dict[str, str]:
    """Query id → text, from BEIR's `queries.jsonl`, a table `id<TAB>text` or TREC topics (`<num>`, `<title>`)."""
    path = Path(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return dict(_json_records(path))
    text = read_text(path)
    if "<top>" in text[:4096].lower():
        return _topics(text, path)
    queries: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        identifier, tab, query = line.rstrip("\r").partition("\t")
        if not tab or not query.strip():
            raise InputError("expected a query id, a tab and the query's text", path=path, line=number)
        queries[identifier.strip()] = query.strip()
    return queries


def read_beir_corpus_ids(path: str | Path) -> set[str]:
    """The ids of the documents of BEIR's `corpus.jsonl`."""
    return {identifier for identifier, _ in _json_records(Path(path), need_text=False)}


def file_kind(path: str | Path) -> str:
    """What a file holds, by its first line: `qrels`, `run`, `queries` or `corpus`."""
    path = Path(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return "corpus" if "corpus" in path.name.lower() else "queries"
    for line in read_text(path).split("\n"):
        if not line.strip():
            continue
        fields = line.split()
        if fields[0].startswith("<"):
            return "queries"
        if len(fields) in (5, 6) and fields[1].upper() == "Q0":
            return "run"
        if line.count("\t") == 1:
            return "queries"
        if _is_beir_header(fields) or len(fields) == 4 or (len(fields) == 3 and _whole(fields[2])):
            return "qrels"
        return "run" if len(fields) in (5, 6) else "unknown"
    return "unknown"


def _whole(written: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]+", written))


def _is_beir_header(fields: list[str]) -> bool:
    return [field.lower() for field in fields] == ["query-id", "corpus-id", "score"]


def _grade(written: str) -> int:
    if not _whole(written):
        raise ValueError(f"grade {written!r} is not a whole number; mend or remove the line")
    grade = int(written) if len(written) < 9 else MOST_GRADE + 1
    if grade > MOST_GRADE:
        raise ValueError(f"grade {written} is above {MOST_GRADE}; use smaller grades")
    return grade


def _json_records(path: Path, *, need_text: bool = True) -> Iterator[tuple[str, str]]:
    for line, record in read_rows(path):
        identifier, words = record.get("_id", record.get("id")), record.get("text")
        if not isinstance(identifier, str | int) or (need_text and not isinstance(words, str)):
            raise InputError('expected an object such as {"_id": "1", "text": "…"}', path=path, line=line)
        yield str(identifier), words if isinstance(words, str) else ""


def _topics(text: str, path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for part in re.split(r"(?i)<top>", text)[1:]:
        number = re.search(r"(?i)<num>\s*(?:Number:)?\s*([^\s<]+)", part)
        title = re.search(r"(?is)<title>\s*(?:Topic:)?\s*(.*?)\s*(?=<|\Z)", part)
        if number is None or title is None or not title[1]:
            line = text[: text.index(part)].count("\n") + 1
            raise InputError("a topic without <num> or <title>", path=path, line=line)
        queries[number[1].lstrip("0") or number[1]] = " ".join(title[1].split())
    return queries
