"""Which documents exist (list_business_documents), and their recorded dates and parties (query_database)."""

from typing import Any

from answerkey.demo.language.understanding import Understanding
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.wording import day, plural

__all__ = ["DocumentDates", "DocumentList"]

_DOCUMENTS = r"documents?|files|paperwork|papers|on file"
_ASK = r"what|which|list|show|see|have|are there|all|give|any|how many|is there|overview|inventory|got"
_LIST_FILLER = (
    r"address(?:es)?|"
    r"documents?|files?|paperwork|papers|list|have|exist(?:s|ing)?|all|available|stored|hold|"
    r"keep|kept|got|types?|kinds?|inventory|overview|catalogue?|"
    r"compan(?:y|ies)|llc|many|related|concern\w*|cover(?:ing)?|belong\w*|from|dated|titles?|"
    r"ingested|upload\w*|access|library|business|entire|everything|there|total|full|complete"
)
_DATED = (
    r"signed|dated|date|executed|adopted|issued|drawn up|written|when was|when were|effective|took effect"
)
_EXPIRES = r"expir\w+|runs? out|ends?|valid(?: until)?|lapses?|in force until|renews?|up for renewal"
_PAGES = r"pages?|how long"
_PARTIES = r"who signed|signatories|parties|party to|signers?"


class DocumentList:
    """Lists documents by type, property and year."""

    def fit(self, u: Understanding) -> list[str] | None:
        """Needs to ask for documents as such."""
        if u.has(
            r"mention\w*|say|says|refer\w*|contain\w*|talk\w*|describ\w*|expir\w+|about (?!our|the company)"
        ):
            return None
        plural_type = u.has(r"leases|policies|agreements|minutes|articles|notes|reports|papers")
        if not (
            u.has(_DOCUMENTS)
            or (u.document_types and plural_type and u.has(r"have|on file|list|how many|are there"))
        ):
            return None
        if not u.has(_ASK):
            return None
        return u.unexplained(
            "documents",
            "properties",
            "periods",
            words=_LIST_FILLER
            + r"|insurance|tax|taxes|leases?|formation|governance|compliance|loans?|minutes|polic(?:y|ies)",
        )

    def answer(self, u: Understanding, context: Context) -> str:
        """The titles with their dates."""
        filters: dict[str, Any] = {}
        types = list(u.document_types) or [
            t
            for t in ("insurance", "tax", "lease", "formation", "governance", "compliance", "loan")
            if u.has(rf"{t}s?|{t}es")
        ]
        if len(types) == 1:
            filters["type"] = types[0]
        if len(u.properties) == 1:
            filters["property_id"] = u.properties[0].id
        if u.periods and u.periods[0].start.year == u.periods[0].end.year:
            filters["year"] = u.periods[0].start.year
        found = context.turn.use("list_business_documents", **filters)["documents"]
        if not found:
            total = context.turn.use("list_business_documents")["count"]
            return f"Not on record: none of the {total} documents on file matches that."
        listed = "; ".join(f"{d['title']} ({d['type']}, {day(d['dated_on'])})" for d in found)
        return f"{plural(len(found), 'document')} on file: {listed}."


class DocumentDates:
    """Dates, parties and pages of documents, from their metadata."""

    def fit(self, u: Understanding) -> list[str] | None:
        """Needs a document or a type of document, and one of its recorded facts."""
        if u.document_types == ["lease"] and u.has(_EXPIRES) and not u.has(_DOCUMENTS):
            return None  # the units' table has the dates of all leases, not only of those on file
        if not (u.documents or u.document_types or u.has(_DOCUMENTS)):
            return None
        if not (u.has(_DATED) or u.has(_EXPIRES) or u.has(_PAGES) or u.has(_PARTIES)) or (
            u.units and u.has(r"leases?")
        ):
            return None
        words = "|".join(
            [
                _DATED,
                _EXPIRES,
                _PAGES,
                _PARTIES,
                _LIST_FILLER,
                (
                    r"next|first|soonest|members?|year|long|landlord|insurance|annual|meetings?|"
                    r"special|commercial"
                ),
            ]
        )
        return u.unexplained("documents", "properties", "periods", "categories", words=words)

    def answer(self, u: Understanding, context: Context) -> str:
        """One sentence for each document that is meant."""
        where, values = ["1 = 1"], list[Any]()
        if u.documents:
            where.append(f"id IN ({', '.join('?' * len(u.documents))})")
            values += [d.id for d in u.documents]
        elif u.document_types:
            where.append(f"type IN ({', '.join('?' * len(u.document_types))})")
            values += u.document_types
        if u.properties and not u.documents:
            where.append(f"property_id IN ({', '.join('?' * len(u.properties))})")
            values += [p.id for p in u.properties]
        expires = u.has(_EXPIRES)
        if expires and not u.documents:
            where.append("expires_on IS NOT NULL")
        if u.periods and not u.documents:
            where.append(f"{'expires_on' if expires else 'dated_on'} BETWEEN ? AND ?")
            values += [u.periods[0].start.isoformat(), u.periods[0].end.isoformat()]
        rows = context.turn.rows(
            "SELECT title, dated_on, expires_on, pages, parties FROM documents WHERE "
            + " AND ".join(where)
            + f" ORDER BY {'expires_on' if expires else 'dated_on'}, id",
            *values,
        )
        if not rows:
            return "Not on record: no document matches that."
        if u.has("next|first|soonest"):
            rows = rows[:1]
        lines = []
        for row in rows:
            facts = []
            if expires:
                facts.append(
                    f"expires on {day(row['expires_on'])}"
                    if row["expires_on"]
                    else "has no expiry date on record"
                )
            if u.has(_PAGES):
                facts.append(f"has {row['pages']} pages")
            if u.has(_PARTIES):
                facts.append(f"has these parties: {row['parties']}")
            if u.has(_DATED) or not facts:
                facts.append(f"is dated {day(row['dated_on'])}")
            lines.append(f"The {row['title']} {' and '.join(facts)}.")
        return " ".join(lines)
