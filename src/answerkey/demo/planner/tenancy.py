"""Tenants and leases as recorded: who lives where, rent, deposit, the lease's dates, vacant units."""

from answerkey.demo.language.understanding import Understanding
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.ledger import ADDRESS
from answerkey.demo.planner.wording import day, join, money, plural

__all__ = ["Tenancy"]

_TENANT = (
    r"tenants?|lives?|living|residents?|occup(?:ant|ants|ied|ies|y|ying)|renters?|rent(?:s|ed|"
    r"ing) (?:from us|unit|the)|staying|stays|moved? in"
)
_VACANT = r"vacan(?:t|cy|cies)|empty|unoccupied|unrented|available|without a tenant"
_RENT = r"(?:monthly |current )*rents?(?: roll)?|pay(?:s|ing)?|charge[ds]?"
_DEPOSIT = r"(?:security )?deposits?"
_END = (
    r"leases? (?:\w+ )?(?:ends?|ending|expires?|expiring|runs? out|up|terminates?|over)|(?:end|"
    r"expir)\w*|lease (?:end|expiration|expiry)(?: dates?)?|runs? out|up for renewal"
)
_START = r"leases? (?:start|begin)s?|start(?:ed|s)?|began|begins?|since when|move[ds]? in"
_FILLER = (
    r"next|soonest|earliest|first|leases?|units?|apartments?|rented?|rental|month(?:ly)?|date|"
    r"dates|per|total|sum|roll|"
    r"current(?:ly)?|properties|property|cabin|building|hold|holding|held|"
    r"expected|all|combined|highest|lowest|most|least|much|together|rate|leased|collect(?:ed|"
    r"ing)?|year|term|bedrooms?|long|expensive|cheapest|largest"
)


class Tenancy:
    """Answers from the table units."""

    def fit(self, u: Understanding) -> list[str] | None:
        """Needs tenants, vacancy, deposits or lease dates; rent of a period is a transaction."""
        dates = u.has(r"leases?|tenan\w+") and (u.has(_END) or u.has(_START))
        rent = (
            u.has(_RENT)
            and (bool(u.units) or u.has("rent roll|monthly rents?|current rents?|rents?"))
            and not u.has(r"income|revenue|earn\w*|receipts|collected")
        )
        if not (
            u.has(_TENANT)
            or u.has(_VACANT)
            or (u.has(_DEPOSIT) and not u.has("refund\\w*|return\\w*"))
            or dates
            or rent
            or (u.units and (u.has(_END) or u.has(_START)))
        ):
            return None
        if u.periods and not (dates or (u.units and u.has(_END))):
            return None
        if u.kind in ("income", "net") and not u.units:
            return None
        words = "|".join([_TENANT, _VACANT, _RENT, _DEPOSIT, _END, _START, _FILLER])
        return u.unexplained("properties", "units", "parties", "periods", words=words)

    def answer(self, u: Understanding, context: Context) -> str:
        """The units that are meant and the facts that are asked for."""
        where, values = ["1 = 1"], list[object]()
        if u.units:
            where.append(f"id IN ({', '.join('?' * len(u.units))})")
            values += [unit.id for unit in u.units]
        elif u.properties:
            where.append(f"property_id IN ({', '.join('?' * len(u.properties))})")
            values += [p.id for p in u.properties]
        vacant = u.has(_VACANT)
        if vacant:
            where.append("status = 'vacant'")
        ends = u.has(_END)
        if ends and not u.units:
            where.append("lease_end IS NOT NULL")
        if ends and u.periods:
            where.append("lease_end BETWEEN ? AND ?")
            values += [u.periods[0].start.isoformat(), u.periods[0].end.isoformat()]
        order = "lease_end, id" if ends else "property_id, id"
        limit = ""
        if u.has("highest|most|largest|expensive"):
            order, limit = ("deposit DESC" if u.has(_DEPOSIT) else "monthly_rent DESC"), " LIMIT 1"
        elif u.has("lowest|cheapest|least|smallest"):
            order, limit = ("deposit" if u.has(_DEPOSIT) else "monthly_rent"), " LIMIT 1"
        elif ends and u.has(r"next|first(?! (?:half|quarter))|soonest|earliest"):
            where.append("lease_end >= ?")
            values.append(context.as_of.isoformat())
            limit = " LIMIT 1"
        rows = context.turn.rows(
            (
                f"SELECT {ADDRESS}, label, monthly_rent, deposit, tenant, lease_start, lease_end, "
                "status FROM units WHERE "
            )
            + " AND ".join(where)
            + f" ORDER BY {order}{limit}",
            *values,
        )
        if not rows:
            if vacant:
                return "No unit is vacant: every unit is occupied."
            return (
                "Not on record: no "
                f"lease{' ends in ' + u.periods[0].label if u.periods else ' matches that'}."
            )
        lines = [self._line(u, row) for row in rows]
        head = ""
        if vacant:
            head = f"{plural(len(rows), 'unit')} vacant: "
        elif u.has("how many|number of"):
            tenants = [r for r in rows if r["tenant"]]
            head = f"{plural(len(tenants), 'tenant')} in {plural(len(rows), 'unit')}: "
        tail = ""
        if (
            len(rows) > 1
            and (u.has("total|roll|all|combined|sum|together") or u.has(_DEPOSIT))
            and (u.has(_RENT) or u.has(_DEPOSIT))
        ):
            column = "deposit" if u.has(_DEPOSIT) else "monthly_rent"
            occupied = [r for r in rows if r["status"] == "occupied"]
            total = sum(r[column] or 0 for r in occupied)
            name = "deposits" if column == "deposit" else "monthly rent"
            tail = f" The {name} of the {plural(len(occupied), 'occupied unit')} come to {money(total)}."
        return head + " ".join(lines) + tail

    def _line(self, u: Understanding, row: dict[str, object]) -> str:
        place = f"{row['label']} at {row['address']}"
        if not row["tenant"]:
            return f"{place} is vacant (asking rent {money(_float(row['monthly_rent']))} a month)."
        facts = []
        if u.has(_RENT) and not u.has(_DEPOSIT):
            facts.append(f"pays {money(_float(row['monthly_rent']))} a month")
        if u.has(_DEPOSIT):
            facts.append(f"has a security deposit of {money(_float(row['deposit']))}")
        if u.has(_START):
            facts.append(f"has a lease that started on {day(str(row['lease_start']))}")
        if u.has(_END) or not facts:
            facts.append(f"has a lease until {day(str(row['lease_end']))}")
        return f"{row['tenant']}, {place}, {join(facts)}."


def _float(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
