"""Imports TREC files and BEIR datasets: qrels become a golden set, a run becomes recorded replies."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from answerkey.datasets.trec_files import (
    Qrels,
    TrecRun,
    file_kind,
    read_beir_corpus_ids,
    read_qrels,
    read_queries,
    read_trec_run,
)
from answerkey.errors import InputError, UsageError
from answerkey.model.json_value import JsonObject
from answerkey.protocols import Imported

# Which judgements of a dataset are taken when its folder is given.
_SPLITS = ("test", "dev", "train")


def import_trec(paths: Sequence[Path]) -> Imported:
    """Qrels, a run, and queries, in any order; which is which shows in the files.

    Qrels alone give a golden set; a run gives recorded replies, with the judgements inline if qrels are given too.
    """
    found = [(file_kind(path), path) for path in paths]
    for kind, path in found:
        if kind not in ("qrels", "run", "queries"):
            raise InputError(
                "is neither qrels, a run nor queries; see docs/retrieval.md for the formats", path=path
            )
    files = _by_kind(found)
    if "qrels" not in files and "run" not in files:
        raise UsageError("no qrels and no run among the files: there is nothing to import")
    queries = read_queries(files["queries"]) if "queries" in files else {}
    qrels = read_qrels(files["qrels"]) if "qrels" in files else {}
    if "run" in files:
        run = read_trec_run(files["run"])
        return Imported(rows=_replies(run, qrels, queries), kind="replies", notes=_notes(run, qrels, queries))
    return Imported(rows=_questions(qrels, queries), kind="questions", notes=_notes(qrels, qrels, queries))


def import_beir(paths: Sequence[Path]) -> Imported:
    """A dataset's folder, or its files: qrels (.tsv), queries.jsonl and, to check the ids, corpus.jsonl."""
    notes: list[str] = []
    given = [_folder(path, notes) if path.is_dir() else [(file_kind(path), path)] for path in paths]
    files = _by_kind([one for found in given for one in found])
    if "qrels" not in files:
        raise UsageError("no judgements among the files; give the folder, or its qrels/test.tsv")
    if "queries" not in files:
        raise UsageError("no queries among the files; give the folder, or its queries.jsonl")
    qrels, queries = read_qrels(files["qrels"]), read_queries(files["queries"])
    absent = [query for query in qrels if query not in queries]
    if absent:
        raise InputError(
            f"query {absent[0]!r} of {files['qrels']} is not in it ({len(absent)} are missing)",
            path=files["queries"],
        )
    if "corpus" in files:
        corpus = read_beir_corpus_ids(files["corpus"])
        unknown = {document for documents in qrels.values() for document in documents} - corpus
        if unknown:
            notes.append(
                f"{len(unknown)} judged documents are not in the corpus, for example {min(unknown)!r}"
            )
    return Imported(rows=_questions(qrels, queries), kind="questions", notes=tuple(notes))


def _by_kind(found: Sequence[tuple[str, Path]]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for kind, path in found:
        if kind in files:
            raise UsageError(f"{files[kind]} and {path} are both {kind}; import them one at a time")
        files[kind] = path
    return files


def _folder(folder: Path, notes: list[str]) -> list[tuple[str, Path]]:
    for split in _SPLITS:
        judged = folder / "qrels" / f"{split}.tsv"
        if judged.is_file():
            if split != _SPLITS[0]:
                notes.append(f"took {judged}, as there is no qrels/test.tsv")
            found = [("qrels", judged)]
            break
    else:
        raise InputError("has no qrels/test.tsv, dev.tsv or train.tsv", path=folder)
    for kind in ("queries", "corpus"):
        file = folder / f"{kind}.jsonl"
        if file.is_file():
            found.append((kind, file))
    return found


def _relevance(documents: dict[str, int]) -> JsonObject:
    """Judgements as a golden set holds them: a negative grade means "not judged", so it is left out."""
    return {document: grade for document, grade in documents.items() if grade >= 0}


def _questions(qrels: Qrels, queries: dict[str, str]) -> Iterator[JsonObject]:
    """Judgements as rows of a golden set; a query without a text is its id."""
    for query, documents in qrels.items():
        judged = _relevance(documents)
        yield {"id": query, "question": queries.get(query, query), "relevant_documents": judged}


def _replies(run: TrecRun, qrels: Qrels, queries: dict[str, str]) -> Iterator[JsonObject]:
    for query, scores in run.items():
        # trec_eval's order: by score, and equal scores by the greater id.
        order = sorted(sorted(scores, reverse=True), key=lambda document: -scores[document])
        row: JsonObject = {"id": query, "question": queries.get(query, query)}
        if query in qrels:
            row["relevant_documents"] = _relevance(qrels[query])
        row["sources"] = [
            {"id": document, "rank": rank, "score": scores[document]}
            for rank, document in enumerate(order, start=1)
        ]
        yield row


def _notes(wanted: dict[str, Any], qrels: Qrels, queries: dict[str, str]) -> tuple[str, ...]:
    notes = []
    wordless = sum(query not in queries for query in wanted)
    if wordless:
        notes.append(
            f"{wordless} queries have no text here, so their question is their id; add the queries' file"
        )
    negative = sum(grade < 0 for documents in qrels.values() for grade in documents.values())
    if negative:
        notes.append(f"{negative} judgements with a negative grade were left out: they mean 'not judged'")
    unjudged = sum(query not in qrels for query in wanted) if qrels else 0
    if unjudged:
        notes.append(f"{unjudged} queries of the run have no judgements")
    return tuple(notes)
