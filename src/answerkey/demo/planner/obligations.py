"""Obligations: what is due, overdue or done, to whom, when and for how much."""

from typing import Any

from answerkey.demo.language.understanding import Understanding
from answerkey.demo.language.words import STOPWORDS, normalise, stem, tokenise
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.ledger import ADDRESS
from answerkey.demo.planner.wording import day, money, plural

__all__ = ["Obligations"]

_TRIGGER = (
    r"due|(?:needs?|has|have) to be (?:done|filed|paid|renewed)|"
    r"deadlines?|overdue|past due|upcoming|coming up|obligations?|renewals?|renew(?:ed)?|"
    r"to-?do|missed|behind|outstanding (?:items|filings|obligations)|"
    r"compliance (?:items|tasks|obligations|status|calendar)|compliant|have to (?:file|pay|"
    r"renew)|need to (?:file|pay|renew)|must (?:we )?(?:file|pay|renew)|scheduled"
)
_ALSO = (
    r"fil(?:e|ed|ing|ings)|licen[cs]es?|inspect(?:ed|ions?)|periodic report|next|meetings?|"
    r"alarm tests?|certificates?"
)
_OVERDUE = r"overdue|past due|late|missed|behind|not (?:been )?(?:done|completed|paid|filed)|compliant"
_DONE = (
    r"done|completed?|finished|already|filed|did we (?:file|renew|pay|complete)|have we "
    r"(?:filed|renewed|paid|completed)|were"
)
_FILLER = (
    r"items?|tasks?|fil(?:e|ed|ing|ings)|dates?|pay(?:ment|ments)?|owed?|next|list|status|"
    r"anything|any|total|amounts?|cost(?:s)?|calendar|tests?|by|soon|everything|"
    r"compliance|year|yearly|annual|month|still|open|pending|complete|completed|done|finished|"
    r"already|paid|behind|late|filed|been|renew(?:ed)?|how many|count|number|sum|fees?|"
    r"first half|second half|deadline|half|forms?|earliest|soonest|latest|taxes|report(?:s|"
    r"ing)?|compan(?:y|ies)|llc|properties|property|responsible|must|expected|whole"
)
# How people name the kinds of the table.
_KINDS = {
    "state filing": r"state filings?|secretary of state|periodic reports?",
    "tax filing": (
        r"tax (?:filings?|returns?|forms?|deadlines?)|irs (?:filings?|forms?|deadlines?)|(?:federal|"
        r"income) tax\w*|1065s?|1099s?|k-1s?"
    ),
    "property tax": r"property tax(?:es)?|county tax(?:es)?",
    "insurance": r"insurance|polic(?:y|ies)|premiums?",
    "licence": r"licen[cs](?:e|es|ing)",
    "inspection": r"inspections?|alarm tests?|inspected|safety (?:checks?|tests?)",
    "governance": r"(?:annual |members'? )?meetings?",
    "lease": r"lease (?:renewals?|notices?)|renewal notices?",
}


class Obligations:
    """Answers from the table obligations."""

    def fit(self, u: Understanding) -> list[str] | None:
        """Needs to ask for what is due, or for one named obligation."""
        if not u.has(_TRIGGER) and not (
            u.has(_ALSO) and u.has(r"when|next|date|which|what|did we|have we|is|are")
        ):
            return None
        if u.has(
            r"say|says|state[sd]?|according|fees? for each|penalt(?:y|ies)|rent (?:is )?due|"
            r"required hours|why|how do|decid\w+|discuss\w*|report(?:ed)? at|did (?!we)|attend\w*|chair\w*"
        ):
            return None
        words = "|".join([_TRIGGER, _FILLER, *_KINDS.values()])
        left = u.unexplained("properties", "periods", "categories", "parties", "kind", "units", words=words)
        return [w for w in left if stem(w) not in _NAME_STEMS]

    def answer(self, u: Understanding, context: Context) -> str:
        """The obligations that match the status, the period, the property and the words of the question."""
        where, values = ["1 = 1"], list[Any]()
        overdue, done = u.has(_OVERDUE), u.has(_DONE)
        if overdue:
            where.append("status = 'overdue'")
        elif u.has("did we|have we"):
            where.append("status = 'done'")
        elif not done and not u.has(
            r"(?:is|was|are|were|has|have)\b.* (?:renewed|filed|paid|completed|tested|inspected)"
        ):
            where.append("status <> 'done'")
        for period in u.periods[:1]:
            where.append("due_on BETWEEN ? AND ?")
            values += [period.start.isoformat(), period.end.isoformat()]
        if u.properties:
            where.append(f"property_id IN ({', '.join('?' * len(u.properties))})")
            values += [p.id for p in u.properties]
        kinds = [kind for kind, words in _KINDS.items() if u.has(words)]
        if "property tax" in kinds:
            kinds = [k for k in kinds if k != "tax filing"]
        if kinds:
            where.append(f"kind IN ({', '.join('?' * len(kinds))})")
            values += kinds
        rows = context.turn.rows(
            (
                f"SELECT name, kind, {ADDRESS}, authority, due_on, amount, status, completed_on "
                "FROM obligations WHERE "
            )
            + " AND ".join(where)
            + " ORDER BY due_on, id",
            *values,
        )
        rows = _narrow(rows, u)
        scope = f" in {u.periods[0].label}" if u.periods else ""
        if not rows:
            known = context.turn.rows(
                "SELECT COUNT(*) AS n, MIN(due_on) AS first, MAX(due_on) AS last FROM obligations"
            )[0]
            return (
                f"Not on record: no {'overdue ' if overdue else ''}obligation matches that{scope}. "
                f"The list has {plural(known['n'], 'obligation')} due from {day(known['first'])} "
                f"to {day(known['last'])}."
            )
        if u.has("next|earliest|soonest|first") and not u.has("first half"):
            rows = [r for r in rows if r["due_on"] == rows[0]["due_on"]]
        lines = [_line(row) for row in rows]
        head = (
            f"{plural(len(rows), 'obligation')}{scope}{' overdue' if overdue else ''}: "
            if len(rows) > 1 or u.has("how many") or overdue
            else ""
        )
        total = sum(row["amount"] or 0 for row in rows)
        tail = f" The recorded amounts come to {money(total)}." if len(rows) > 1 and total else ""
        return head + " ".join(lines) + tail


# Words that name single obligations; the table decides which exist.
_NAME_STEMS = frozenset(
    stem(w)
    for w in """
        colorado periodic report form 1065 schedule k-1 1099-nec contractors dr 0106 property tax
        landlord policy renewal umbrella cabin city rental licence license boiler inspection certificate
        smoke carbon monoxide alarm alarms test septic annual meeting members lease notice registered
        agent insurance state federal county partnership return
    """.split()
)


def _narrow(rows: list[dict[str, Any]], u: Understanding) -> list[dict[str, Any]]:
    """The rows whose names share the most words with the question, where it names one at all."""
    elsewhere = u.spans.get("periods", frozenset()) | u.spans.get("properties", frozenset())
    asked = {t.stem for i, t in enumerate(u.tokens) if t.text not in STOPWORDS and i not in elsewhere}
    asked -= {
        stem(w)
        for w in """
            property tax due next year filing obligation renewal first second half file date policy
            notice insurance deadline
        """.split()
    }
    asked = {("licenc" if w == "licens" else w) for w in asked}
    scored = [
        (
            len(
                asked
                & {("licenc" if t.stem == "licens" else t.stem) for t in tokenise(normalise(str(r["name"])))}
            ),
            r,
        )
        for r in rows
    ]
    best = max((s for s, _ in scored), default=0)
    if best == 0:
        left = asked & _NAME_STEMS
        named = {
            stem(w)
            for w in """
                1065 k-1 1099-nec dr 0106 boiler septic smoke monoxide alarm umbrella periodic agent
                licence license meeting
            """.split()
        }
        return [] if left & named else rows
    return [r for s, r in scored if s == best]


def _line(row: dict[str, Any]) -> str:
    amount = f", {money(row['amount'])}" if row["amount"] else ""
    if row["status"] == "done":
        return (
            f"{row['name']} ({row['authority']}){amount} was completed on {day(row['completed_on'])}; "
            f"it was due on {day(row['due_on'])}."
        )
    state = "is overdue since" if row["status"] == "overdue" else "is due on"
    return f"{row['name']} ({row['authority']}) {state} {day(row['due_on'])}{amount}."
