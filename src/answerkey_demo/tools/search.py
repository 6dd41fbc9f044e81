"""search_document_content: passages of the documents, ranked by the words that they share with the query (BM25)."""

import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from answerkey_demo.language.words import STOPWORDS, content_stems, normalise, words_of
from answerkey_demo.tools.database import ToolExecutionError

__all__ = ["search_document_content"]

# Passages far below the best one are noise.
_KEEP = 0.45
_MAX_TERMS, _MAX_LIMIT, _MAX_OF_ONE = 40, 20, 3
# A word of a heading or a title says more than one of the text.
_BEST = """
    SELECT document AS document_id, passages.title, heading, text, -bm25(passages, 0, 1.5, 2.0, 1.0) AS score
    FROM passages JOIN documents ON documents.id = document
    WHERE passages MATCH :words AND :document IN (document, '') AND :type IN (type, '')
    ORDER BY score DESC, passages.rowid LIMIT 60
"""
_SEARCHED = "SELECT COUNT(*) FROM documents WHERE :document IN (id, '') AND :type IN (type, '')"


def search_document_content(
    path: Path,
    query: object = None,
    *,
    document_id: str | None = None,
    type: str | None = None,  # noqa: A002 (the tool's schema has it)
    limit: object = 5,
) -> dict[str, Any]:
    """The best passages: {"passages": [{"document_id", "title", "heading", "text", "score"}], "documents_searched"}.

    The score of the best one is the share of the query's words that it has, that of the others in proportion.
    """
    if not isinstance(query, str) or not query.strip():
        raise ToolExecutionError("search_document_content needs some words in `query`")
    if not isinstance(limit, int) or not 1 <= limit <= _MAX_LIMIT:
        raise ToolExecutionError(f"`limit` must be a number from 1 to {_MAX_LIMIT}")
    said = [w.text for w in words_of(normalise(query)) if w.text not in STOPWORDS]
    terms = list(dict.fromkeys(part for word in said for part in re.findall(r"[a-z0-9]+", word)))[:_MAX_TERMS]
    given = {"words": " OR ".join(f'"{term}"' for term in terms) or '""'}
    given |= {"document": document_id or "", "type": type or ""}
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        db.row_factory = sqlite3.Row
        if document_id and not db.execute("SELECT 1 FROM documents WHERE id = ?", [document_id]).fetchone():
            raise ToolExecutionError(f"Document not found: {document_id}")
        found = [dict(row) for row in db.execute(_BEST, given)]
        (searched,) = db.execute(_SEARCHED, given).fetchone()
    except sqlite3.Error as error:
        raise ToolExecutionError(f"the search failed ({error})") from error
    finally:
        db.close()
    if not found:
        return {"passages": [], "documents_searched": searched}
    best, asked = found[0], content_stems(" ".join(terms))
    in_best = asked & content_stems(f"{best['title']} {best['heading']} {best['text']}")
    scale = max(1, len(in_best)) / len(asked) / best["score"] if asked else 0.0
    passages: list[dict[str, Any]] = []
    of_one: Counter[str] = Counter()
    for passage in found:
        of_one[passage["document_id"]] += 1
        # no document crowds out the others
        if passage["score"] >= _KEEP * best["score"] and (
            document_id or of_one[passage["document_id"]] <= _MAX_OF_ONE
        ):
            passages.append(passage | {"score": round(passage["score"] * scale, 4)})
    return {"passages": passages[:limit], "documents_searched": searched}
