"""Facts about the properties: address, basis, price, dates, size, value, loan and depreciation."""

import msgspec

from answerkey.demo.language.understanding import Understanding
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.ledger import ADDRESS
from answerkey.demo.planner.wording import day, join, money, plural

__all__ = ["PropertyFacts"]


class _Field(msgspec.Struct, frozen=True):
    """A fact of the properties table and how people ask for it."""

    name: str
    words: str
    columns: tuple[str, ...]
    # how one property's fact reads; {column} is filled in
    reads: str
    # the column that can be added up over properties
    additive: str | None = None
    # how to order it for "largest", "oldest" …
    order: str | None = None


_FIELDS = [
    _Field(
        "basis",
        r"(?:total|cost|tax|depreciable|adjusted|original)? ?basis",
        ("total_basis", "land_basis", "building_basis", "furniture_basis"),
        "has a total basis of {total_basis}: land {land_basis}, building {building_basis} and "
        "furniture {furniture_basis}; "
        "depreciation applies to {depreciable}, since land is not depreciated",
        "total_basis",
        "total_basis",
    ),
    _Field(
        "land",
        r"land(?:'s)?(?: (?:value|portion|part|component|basis|cost|worth))?",
        ("land_basis",),
        "has a land basis of {land_basis}",
        "land_basis",
        "land_basis",
    ),
    _Field(
        "building",
        r"building (?:value|portion|part|component|basis|share|cost)",
        ("building_basis",),
        "has a building basis of {building_basis}",
        "building_basis",
        "building_basis",
    ),
    _Field(
        "furniture",
        r"furniture(?: (?:value|portion|part|component|basis|cost))?|furnishings",
        ("furniture_basis",),
        "has a furniture basis of {furniture_basis}",
        "furniture_basis",
        "furniture_basis",
    ),
    _Field(
        "closing_costs",
        r"closing costs?",
        ("closing_costs",),
        "had closing costs of {closing_costs}",
        "closing_costs",
        "closing_costs",
    ),
    _Field(
        "purchase_price",
        (
            r"purchase price|(?:buying|sale|contract|acquisition) (?:price|cost)|(?:pa(?:id|y)|cost|"
            r"spend|spent) (?:\w+ )?(?:for|to buy|to purchase|to acquire)|bought for|price|cost us|"
            r"most expensive|cheapest"
        ),
        ("purchase_price", "acquired_on"),
        "was bought for {purchase_price} on {acquired_on}",
        "purchase_price",
        "purchase_price",
    ),
    _Field(
        "acquired_on",
        (
            r"acquir\w+|bought|buy|purchased?|acquisition date|purchase date|close on|closed on|"
            r"became (?:the )?owners?|most recent(?:ly)?|latest"
        ),
        ("acquired_on", "purchase_price"),
        "was acquired on {acquired_on} for {purchase_price}",
        None,
        "acquired_on",
    ),
    _Field(
        "placed_in_service",
        r"placed in service|in[- ]service(?: date)?|(?:put|go|went|goes) into service",
        ("placed_in_service",),
        "was placed in service on {placed_in_service}",
        None,
        "placed_in_service",
    ),
    _Field(
        "year_built",
        r"(?:year )?(?:built|constructed|construction)|how old|age|oldest|newest|construction year",
        ("year_built",),
        "was built in {year_built}",
        None,
        "year_built",
    ),
    _Field(
        "square_feet",
        (
            r"square (?:feet|foot|footage)|sq\.? ?(?:ft|feet)\.?|how (?:big|large)|floor (?:area|"
            r"space)|living (?:area|space)|size|area|smallest|largest|biggest"
        ),
        ("square_feet",),
        "has {square_feet} square feet",
        "square_feet",
        "square_feet",
    ),
    _Field(
        "unit_count",
        r"(?:rental )?units|apartments|doors|dwellings",
        ("unit_count", "kind"),
        "has {units} ({kind})",
        "unit_count",
        "unit_count",
    ),
    _Field("bedrooms", r"bedrooms?", ("bedrooms",), "has {bedrooms} bedrooms", "bedrooms", "bedrooms"),
    _Field(
        "equity",
        r"equity",
        ("market_value", "loan_balance"),
        "has equity of {equity}: a market value of {market_value} less a loan balance of {loan_balance}",
        "market_value - loan_balance",
        "market_value - loan_balance",
    ),
    _Field(
        "market_value",
        (
            r"(?:current |market |fair market |appraised |estimated )?(?:value|worth)|valued|most "
            r"valuable|appraisal"
        ),
        ("market_value",),
        "has a market value of {market_value}",
        "market_value",
        "market_value",
    ),
    _Field(
        "parcel_number",
        r"parcel(?: (?:number|id|no\.?))?|assessor's number",
        ("parcel_number",),
        "has parcel number {parcel_number}",
    ),
    _Field(
        "loan_rate",
        r"(?:interest|loan|mortgage) rates?|rate (?:on|of)|rates?",
        ("loan_rate", "lender"),
        "has a loan from {lender} at {loan_rate}%",
        None,
        "loan_rate",
    ),
    _Field(
        "loan_balance",
        (
            r"(?:loan|mortgage|outstanding|remaining)(?: (?:loan|mortgage))? (?:balances?|debt|"
            r"amounts?)|(?:still )?owed?|balances?|debts?|outstanding|(?:mortgage|loan)s? left|left "
            r"(?:on|to pay)|(?:remaining|outstanding|current|biggest|largest|smallest|highest|lowest) "
            r"(?:loan|mortgage)s?"
        ),
        ("loan_balance", "lender"),
        "has a loan balance of {loan_balance} with {lender}",
        "loan_balance",
        "loan_balance",
    ),
    _Field(
        "lender",
        r"lenders?|bank|who (?:holds|has|gave|made)|financ\w+|holds",
        ("lender", "loan_rate", "loan_balance"),
        "is financed by {lender} at {loan_rate}%, balance {loan_balance}",
    ),
    _Field(
        "kind",
        r"(?:kind|type|sort|style) of (?:property|building|house)",
        ("kind", "unit_count"),
        "is a {kind} with {units}",
    ),
    _Field(
        "address",
        r"address(?:es)?|located|location|where|street|situated|zip(?: code)?|city",
        ("city", "state", "zip"),
        "is at {address}, {city}, {state} {zip}",
    ),
]
_OWNED = (
    r"(?:what|which|list|name|all|how many)\b.*\b(?:properties|buildings|houses|homes|real "
    r"estate|rentals)|real estate (?:do|we)|(?:properties|buildings) (?:do we|we|that we)?"
)
_DEPRECIATION = r"depreciat\w+(?: (?:expenses?|deductions?|amounts?|charges?))?|write[- ]offs?|written off"
_FILLER = (
    r"propert(?:y|ies)|buildings?|houses?|homes?|place|real estate|rentals?|total|combined|"
    r"together|altogether|main|portfolio|sum|entire|whole|"
    r"own(?:s|ed|ing)?|currently|loans?|mortgages?|each|every|separately|purchase|physical|full|"
    r"exact|date|year|years|owns|hold|holding|allocated?|components?|parts?|made|broken|"
    r"breakdown|split|break|down|"
    r"cost|paid|pay|compan(?:y|ies)|llc|claim(?:ed)?|take|taken|deduct(?:ed)?|situated|market|"
    r"across|accumulated|cumulative|so far|land|building|furniture"
)
_SMALLEST = r"oldest|smallest|cheapest|lowest|least|earliest|fewest"
_LARGEST = r"newest|largest|biggest|highest|most|latest|greatest|recent(?:ly)?"


class PropertyFacts:
    """Answers from the tables properties and depreciation."""

    def fit(self, u: Understanding) -> list[str] | None:
        """Needs a fact to ask for, or a question for the properties themselves."""
        fields = self._fields(u)
        if not fields and not u.has(_OWNED) and not u.has(_DEPRECIATION):
            return None
        if u.units or u.has(r"tenants?|leases?|rent|deposits?"):
            return None
        if (
            u.periods
            and not u.has(_DEPRECIATION)
            and not any(f.name in ("acquired_on", "purchase_price") for f in fields)
        ):
            return None
        asked = [f.words for f in _FIELDS if u.has(f.words)]
        words = "|".join([_FILLER, _SMALLEST, _LARGEST, _DEPRECIATION, *asked])
        return u.unexplained("properties", "periods", words=words)

    def answer(self, u: Understanding, context: Context) -> str:
        """One sentence for each property that is meant, and the total where it is asked for."""
        if u.has(_DEPRECIATION) and not u.has("basis"):
            return self._depreciation(u, context)
        fields = self._fields(u)
        if not fields:
            return self._owned(u, context)
        superlative = u.has(_SMALLEST) or u.has(_LARGEST)
        ids = [p.id for p in u.properties]
        if not ids and not superlative and not u.plural and u.singular:
            ids = [context.vocabulary.main.id]
        columns = dict.fromkeys(
            ["id", "name", "address", "unit_count", *(c for f in fields for c in f.columns)]
        )
        sql = f"SELECT {', '.join(columns)} FROM properties"
        if ids:
            sql += f" WHERE id IN ({', '.join('?' * len(ids))})"
        ordered = next((f.order for f in fields if f.order), None)
        if superlative and ordered and not ids:
            small = u.has(_SMALLEST)
            sql += f" ORDER BY {ordered} {'ASC' if small else 'DESC'} LIMIT 1"
        else:
            sql += " ORDER BY is_main DESC, id"
        rows = context.turn.rows(sql, *ids)
        if not rows:
            return "Not on record: no such property is in the database."
        lines = [
            f"{row['address']} ({row['name']}) " + join([_read(f, row) for f in fields]) + "." for row in rows
        ]
        additive = next((f for f in fields if f.additive), None)
        if len(rows) > 1 and additive and additive.additive:
            total = context.turn.rows(
                f"SELECT SUM({additive.additive}) AS total FROM properties"
                + (f" WHERE id IN ({', '.join('?' * len(ids))})" if ids else ""),
                *ids,
            )[0]["total"]
            shown = (
                f"{total:,.0f}"
                if additive.name in ("square_feet", "unit_count", "bedrooms")
                else money(total)
            )
            unit = {"square_feet": " square feet", "unit_count": " units", "bedrooms": " bedrooms"}.get(
                additive.name, ""
            )
            lines.append(
                f"Together that is {shown}{unit or ' of ' + additive.name.replace('_', ' ')} "
                f"over {plural(len(rows), 'property')}."
            )
        return " ".join(lines)

    def _fields(self, u: Understanding) -> list[_Field]:
        found = [f for f in _FIELDS if u.has(f.words)]
        names = {f.name for f in found}
        # a longer reading hides the shorter one that is part of it
        hidden = {
            "basis": {"land", "building", "furniture", "purchase_price"}
            if u.has("total|whole|composed|made up|components|split|broken|allocated")
            else {"purchase_price", "building"},
            "purchase_price": {"acquired_on", "lender"} if not u.has("when|date") else set(),
            "closing_costs": {"purchase_price"},
            "equity": {"market_value", "loan_balance"},
            "land": {"market_value"},
            "loan_rate": {"lender", "loan_balance"},
            "loan_balance": {"lender"},
            "unit_count": {"purchase_price"},
            "year_built": {"acquired_on"},
            "furniture": {"market_value"},
        }
        for name in names:
            found = [f for f in found if f.name not in hidden.get(name, set()) or f.name == name]
        if len(found) > 1 and not u.has(r"square|sq|how (?:big|large)|floor|living|size|area"):
            # "largest" alone means the size; in "largest loan" it does not
            found = [f for f in found if f.name != "square_feet"]
        if len(found) > 1:
            found = [
                f
                for f in found
                if f.name != "address" or u.has(r"address(?:es)?|located|location|zip|city|where (?:is|are)")
            ]
        if (
            "basis" in names
            and {"land", "building", "furniture"} & names
            and not u.has("total|whole|components|composed|made up|split")
        ):
            found = [f for f in found if f.name != "basis"]
        return found

    def _owned(self, u: Understanding, context: Context) -> str:
        rows = context.turn.rows(
            "SELECT name, address, city, state, zip, kind, unit_count FROM properties ORDER BY "
            "is_main DESC, id"
        )
        listed = [
            (
                f"{r['address']}, {r['city']}, {r['state']} {r['zip']} ({r['name']}, "
                f"{plural(r['unit_count'], 'unit')})"
            )
            for r in rows
        ]
        return f"The company owns {plural(len(rows), 'property')}: {'; '.join(listed)}."

    def _depreciation(self, u: Understanding, context: Context) -> str:
        ids = [p.id for p in u.properties] or (
            [context.vocabulary.main.id] if u.singular and not u.plural else []
        )
        where, values = ["1 = 1"], list[object]()
        if ids:
            where.append(f"property_id IN ({', '.join('?' * len(ids))})")
            values += ids
        if u.periods:
            where.append("year BETWEEN ? AND ?")
            values += [min(p.start.year for p in u.periods), max(p.end.year for p in u.periods)]
        rows = context.turn.rows(
            f"SELECT {ADDRESS}, year, building, furniture, total FROM depreciation WHERE "
            + " AND ".join(where)
            + " ORDER BY year, property_id",
            *values,
        )
        period = u.periods[0].label if u.periods else "all years on record"
        if not rows:
            known = context.turn.rows("SELECT MIN(year) AS first, MAX(year) AS last FROM depreciation")[0]
            return (
                f"Not on record: there is no depreciation for {period}; the schedule covers "
                f"{known['first']} to {known['last']}."
            )
        total = sum(r["total"] for r in rows)
        parts = [
            (
                f"{r['address']} {r['year']}: {money(r['total'])} "
                f"(building {money(r['building'])}, furniture {money(r['furniture'])})"
            )
            for r in rows
        ]
        return f"Depreciation for {period} is {money(total)}. " + "; ".join(parts) + "."


def _read(field: _Field, row: dict[str, object]) -> str:
    values: dict[str, object] = {}
    for column, value in row.items():
        if column.endswith(("_on", "_service")):
            values[column] = day(None if value is None else str(value))
        elif column in ("square_feet",):
            values[column] = f"{value:,}"
        elif isinstance(value, float) and column != "loan_rate":
            values[column] = money(value)
        else:
            values[column] = "nothing on record" if value is None else value
    count = row["unit_count"]
    values["units"] = plural(count, "unit") if isinstance(count, int) else ""
    if field.name == "basis":
        values["depreciable"] = money(_number(row["building_basis"]) + _number(row["furniture_basis"]))
    if field.name == "equity":
        values["equity"] = money(_number(row["market_value"]) - _number(row["loan_balance"]))
    return field.reads.format(**values)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
