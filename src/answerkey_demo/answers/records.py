"""Facts and figures of the tables: rows counted, ordered, added up, averaged, split and compared.

`tables.toml` says what the tables have and how people ask for it; nothing here knows a single table.
"""

import re
from datetime import date
from typing import Any

import msgspec

from answerkey_demo.answers.tables import TABLES, Field, Query, Table, details, lists_entries, view_of
from answerkey_demo.language.periods import Period
from answerkey_demo.language.reading import Reading, Vocabulary
from answerkey_demo.language.words import capital, fill_template, format_value, join, money, plural
from answerkey_demo.tools import Turn

_MAX_EXTREME, _MANY_PAYMENTS = 5, 5
# Asks for what has been done, not for what is still open.
_DONE = re.compile(r"\b(?:did|have|has|was|were|is|are)\b.*\b(?:filed?|renewed|paid|done|completed|tested)\b")
_SEVERAL = re.compile(r"\b(?:expenses|costs|payments|bills|transactions)\b")
_NO_PARTY = "no party in particular"


class Records:
    """Answers from query_database."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def answer(self, name: str, reading: Reading, turn: Turn, unknown: list[int]) -> str:
        """Choose the query by what is asked, run it, and say what it covers. `unknown`: words to find in texts."""
        table, view = TABLES[name], view_of(name, reading)
        words = [*details(view), *unknown]
        if compared := self._compare(table, view, words, turn):
            return compared
        query = Query.of(table, view, self._vocabulary, words)
        if table.totals and view.has("op", "share") and view.has("kind") and view.has("category"):
            whole = Query.of(table, view.view(lambda m: m.kind != "category"), self._vocabulary, [])
            return _share(query, whole, turn)
        still_open = table.open and not _DONE.search(view.text)
        for chosen in [query.also(table.open), query] if still_open else [query]:
            if text := self._describe(chosen, view, turn):
                return text
        return _nothing(query, turn)

    def _describe(self, query: Query, reading: Reading, turn: Turn) -> str | None:
        """What the rows say; None if there are none."""
        table, group = query.table, query.table.splits_by(reading)
        every = "month" if reading.has("op", "monthly") else "year" if reading.has("op", "yearly") else ""
        if group or every in table.groups:
            return _split(query, group or every, reading, turn)
        listed = not table.totals or (lists_entries(reading) and not query.measured.split)
        superlative, in_time = reading.has("op", "most", "least"), reading.has("op", "next", "first", "last")
        if listed and query.measured.measure and (superlative or in_time):
            if reading.has("op", "next") and query.measured.date:
                query = query.also(f"{query.measured.date} >= '{self._vocabulary.knowledge.as_of}'")
            several = table.totals and superlative and _SEVERAL.search(reading.text)
            least = not reading.has("op", "most", "last")
            query = query.extreme(_MAX_EXTREME if several else 1, least=least)
        summed = query.measured
        if summed.form not in ("$", "number"):
            summed = table.fields[table.sums] if table.sums else Field("", "")
        rows = query.figures(turn, summed.column, listed=listed)
        if not rows or not rows[0]["row_count"]:
            return None
        count, total, mean = (rows[0][f"row_{name}"] for name in ("count", "total", "mean"))
        by_whom = table.totals and reading.has("op", "who") and not superlative
        if listed and by_whom and count > _MANY_PAYMENTS:
            return _split(query, "party", reading, turn)
        adjectives = [table.conditions[v.partition(".")[2]].reads for v in reading.all("condition")]
        counted = " ".join([str(count), *adjectives[:1], table.one if count == 1 else table.many])
        counted += f" for {query.words}" if table.totals else ""
        head = counted if count > 1 or reading.has("op", "count") else ""
        if reading.has("op", "average") and mean:
            head = f"On average {format_value(mean, summed.form)} over {counted}"
        elif table.totals and superlative and listed:
            head = f"The {'smallest' if reading.has('op', 'least') else 'largest'} of {query.words}"
        elif (count > 1 or not listed) and total and not superlative and not in_time:
            head = f"{counted}, together {format_value(total, summed.form)}"
        if listed:
            return f"{head}: {_entries(query, rows)}" if head else _entries(query, rows)
        if reading.has("op", "average", "count"):
            return f"{head}."
        text = f"{capital(query.words)} came to {money(total)} ({plural(count, table.one)})."
        split = query.measured.split or ("category" if len(reading.all("category")) > 1 else "")
        amounts = msgspec.structs.replace(query, measured=table.fields[table.default])
        return f"{text} By {split}: {_listed(_parts(amounts, split, turn))}." if split else text

    def _compare(self, table: Table, reading: Reading, words: list[int], turn: Turn) -> str | None:
        """Two periods, properties or categories set against each other; None if nothing is compared."""
        asked = reading.has("op", "change", "compare")
        if not table.totals and not (asked and table.requested_fields(reading)[0].form == "$"):
            return None
        query = Query.of(table, reading, self._vocabulary, words)
        periods = sorted(reading.periods, key=lambda p: p.start)
        if len(periods) == 1 and asked:
            first, last = periods[0].start.year, periods[0].end.year
            if first == last and reading.has("op", "change"):
                # "Did rent go up in 2025?" compares with the year before
                periods = [periods[0].in_year(first - 1), periods[0]]
            elif first < last < 9999:
                periods = [Period(date(y, 1, 1), date(y, 12, 31), str(y)) for y in (first, last)]
        kind = next((k for k in ("property", "category") if asked and len(reading.all(k)) == 2), "")
        sides: list[tuple[str, float]] = []
        if len(periods) == 2:
            for period in periods:
                query = Query.of(table, reading, self._vocabulary, words, period)
                row = query.rows(turn, f"COUNT(*) AS n, SUM({query.measured.column}) AS total")[0]
                if not row["n"]:
                    return _nothing(query, turn)
                sides.append((period.label, row["total"]))
        elif kind in table.groups:
            sides = [(part, total) for part, _, total in _parts(query, kind, turn)]
        if len(sides) != 2:
            return None
        (one, before), (other, after) = sides
        change = f"{money(abs(after - before))} {'more' if after >= before else 'less'} for {other}"
        change += f" ({(after - before) / before:+.1%})" if before else ""
        both = "" if asked else f" Both together: {money(before + after)}."
        amounts = f"{one} {money(before)}, {other} {money(after)}"
        return f"{capital(query.about)}: {amounts}. That is {change}.{both}"


def _entries(query: Query, rows: list[dict[str, Any]]) -> str:
    """A sentence for each row."""
    facts = [(row["row_label"], join([fill_template(f.reads, row) for f in query.fields])) for row in rows]
    text, count = " ".join(f"{label} {fact}".strip() + "." for label, fact in facts), rows[0]["row_count"]
    return f"{text} These are the first {len(rows)} of {count}." if count > len(rows) else text


def _parts(query: Query, group: str, turn: Turn) -> list[tuple[str, int, float]]:
    """Name, number of rows and total of each part; in the order of time, or the largest first."""
    order = "part" if group in ("month", "quarter", "year") else "total DESC, part"
    total = f"ROUND(SUM({query.measured.column}), 2) AS total"
    columns = f"{query.table.groups[group]} AS part, COUNT(*) AS n, {total}"
    rows = query.rows(turn, columns, f"GROUP BY part ORDER BY {order}")
    return [(_part_name(group, row["part"]), row["n"], row["total"]) for row in rows]


def _part_name(group: str, part: str | None) -> str:
    if part and group == "month":
        return format_value(f"{part}-01", "date").replace(" 1,", "")
    return format_value(part, "category" if group == "category" else "") if part else _NO_PARTY


def _listed(parts: list[tuple[str, int, float]]) -> str:
    return "; ".join(f"{part} {money(total)}" for part, _, total in parts)


def _split(query: Query, group: str, reading: Reading, turn: Turn) -> str | None:
    """The totals by group: the highest or lowest, their average, or all of them."""
    parts = _parts(query, group, turn)
    if not parts:
        return None
    whole = sum(total for _, _, total in parts)
    if not reading.has("op", "most", "least"):
        if reading.has("op", "average", "monthly", "yearly"):
            mean = f"{money(whole / len(parts))} over {plural(len(parts), group)}"
            return f"The average {group}ly amount of {query.words} is {mean}."
        return f"By {group}, {query.words}: {_listed(parts)}. Total {money(whole)}."
    least, often = reading.has("op", "least"), "often" in reading.text
    known = [(n if often else total, part) for part, n, total in parts if part != _NO_PARTY]
    if not known:
        return None
    known.sort(key=lambda pair: pair[0] if least else -pair[0])
    totals = [(plural(int(value), "time") if often else money(value), part) for value, part in known]
    best = [part for value, part in totals if value == totals[0][0]]
    others = join([f"{part} with {value}" for value, part in totals[len(best) : len(best) + 2]])
    rank = f"{'lowest' if least else 'highest'} {'count' if often else 'total'}"
    first = f"{join(best)} with {totals[0][0]}{' each' if len(best) > 1 else ''}"
    return f"For {query.words}, the {group} with the {rank} is {first}{f'; next {others}' if others else ''}."


def _share(part: Query, whole: Query, turn: Turn) -> str:
    """What part of all income or expenses a category is."""
    one, all_ = (q.rows(turn, f"SUM({q.measured.column}) AS total")[0]["total"] for q in (part, whole))
    if not one or not all_:
        return _nothing(part, turn)
    return f"{one / all_:.1%}: {part.words} came to {money(one)}, {whole.words} to {money(all_)}."


def _nothing(query: Query, turn: Turn) -> str:
    text, covers = f"Not on record: there is no entry for {query.words}", query.table.covers
    if not covers:
        return f"{text}."
    row = turn.rows(f"SELECT MIN({covers}) AS first, MAX({covers}) AS last FROM {query.table.rows}")[0]
    return f"{text}; the records cover {format_value(row['first'], 'date')} to {format_value(row['last'], 'date')}."
