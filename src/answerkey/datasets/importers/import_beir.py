"""Imports a BEIR dataset: its queries and judgements as a golden set."""

from collections.abc import Sequence
from pathlib import Path

from answerkey.datasets.importers.import_trec import questions_of
from answerkey.datasets.trec_files import file_kind, read_beir_corpus_ids, read_qrels, read_queries
from answerkey.errors import InputError, UsageError
from answerkey.protocols import Imported

__all__ = ["import_beir"]

# Which judgements of a dataset are taken when its folder is given.
_SPLITS = ("test", "dev", "train")


def import_beir(paths: Sequence[Path]) -> Imported:
    """A dataset's folder, or its files: qrels (.tsv), queries.jsonl and, to check the ids, corpus.jsonl."""
    files: dict[str, Path] = {}
    notes: list[str] = []
    for path in paths:
        for kind, file in _folder(path, notes) if path.is_dir() else [(file_kind(path), path)]:
            if kind in files:
                raise UsageError(f"{files[kind]} and {file} are both {kind}; import them one at a time")
            files[kind] = file
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
    return Imported(rows=questions_of(qrels, queries), kind="questions", notes=tuple(notes))


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
