"""list_business_documents: which documents exist, by type, property, year or words of the title."""

import sqlite3
from pathlib import Path
from typing import Any

from answerkey_demo.tools.failure import ToolExecutionError

__all__ = ["SCHEMA", "list_business_documents"]

SCHEMA: dict[str, Any] = {
    "name": "list_business_documents",
    "description": (
        "List the business documents on file: id, title, type, date, property, expiry and pages. "
        "Every filter is optional."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "type": {
                "type": "string",
                "description": (
                    "agreement, formation, governance, insurance, lease, loan, minutes, tax, policy …"
                ),
            },
            "property_id": {"type": "string", "description": "for instance P1"},
            "year": {"type": "integer", "description": "year of the document's date"},
        },
        "additionalProperties": False,
    },
}


def list_business_documents(path: Path, **filters: object) -> dict[str, Any]:
    """The documents that pass the filters, oldest first: {"documents": [...], "count"}."""
    unknown = set(filters) - {"type", "property_id", "year"}
    if unknown:
        raise ToolExecutionError(f"list_business_documents has no filter {', '.join(sorted(unknown))}")
    year = filters.get("year")
    values = {
        "type": filters.get("type"),
        "property_id": filters.get("property_id"),
        "year": None if year is None else str(year),
    }
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        db.row_factory = sqlite3.Row
        rows = db.execute(
            "SELECT id, title, type, dated_on, property_id, expires_on, pages FROM documents"
            " WHERE (:type IS NULL OR type = :type) AND (:property_id IS NULL OR property_id = :property_id)"
            " AND (:year IS NULL OR substr(dated_on, 1, 4) = :year) ORDER BY dated_on, id",
            values,
        ).fetchall()
    finally:
        db.close()
    return {"documents": [dict(row) for row in rows], "count": len(rows)}
