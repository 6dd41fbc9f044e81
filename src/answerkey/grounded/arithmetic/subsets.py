"""Sets of rows that a clause or the question names."""

from collections.abc import Iterator
from itertools import combinations

from answerkey.grounded.arithmetic.clause import LEFT, OPPOSITES, REST, Clause
from answerkey.grounded.figures import Figures, Group
from answerkey.grounded.flatten import Table, key_words

__all__ = ["Subset", "mentioned_rows", "named_subsets", "named_values", "speaks_of"]

# Table, rows, how they are told apart.
Subset = tuple[Table, frozenset[int], str]
_MOST_GROUPS = 8


def named_subsets(figures: Figures, clause: Clause) -> Iterator[Subset]:
    """Rows that share a named value, or named values of several columns at once, or all rows but those."""
    spoken = figures.mentioned(clause.words)
    asked = figures.mentioned(clause.question_words)
    for table in figures.tables:
        flagged = [g for g in figures.groups if g.table is table and _flag_named(g, clause.words)]
        listed = [*spoken.get(id(table), []), *flagged, *asked.get(id(table), [])]
        groups = list({group.label: group for group in listed}.values())[:_MOST_GROUPS]
        for group in groups:
            yield table, group.rows, group.label
        for one, other in combinations(groups, 2):
            same = one.column == other.column
            yield (
                table,
                one.rows | other.rows if same else one.rows & other.rows,
                f"{one.label}, {other.label}",
            )
        by_column: dict[str, frozenset[int]] = {}
        for group in groups:
            by_column[group.column] = by_column.get(group.column, frozenset()) | group.rows
        if len(by_column) > 2:
            label = " and ".join(group.label for group in groups)
            yield table, frozenset.intersection(*by_column.values()), label
        # What is left when a named group is taken away: "the other three".
        everything = frozenset(range(len(table.rows)))
        if clause.says(REST):
            for group in groups:
                yield table, everything - group.rows, f"not {group.label}"
        if LEFT.search(f"{clause.text} {clause.question_words}"):
            for group in figures.groups:
                if group.table is table and group.label.endswith(" = no"):
                    yield table, group.rows, group.label
        spoken_words = set(clause.words.split())
        opposed = {opposite for word, opposite in OPPOSITES.items() if word in spoken_words}
        for group in figures.groups:
            if group.table is table and group.words.strip() in opposed:
                yield table, everything - group.rows, f"not {group.label}"


def mentioned_rows(figures: Figures, table: Table, clause: Clause) -> frozenset[int]:
    """All rows of a table that a clause names."""
    rows: set[int] = set()
    for group in figures.mentioned(clause.words).get(id(table), []):
        rows |= group.rows
    return frozenset(rows)


def named_values(figures: Figures, clause: Clause) -> dict[str, set[float]]:
    """For each column, by its place, the values of the rows that a clause names."""
    found: dict[str, set[float]] = {}
    for column in figures.columns:
        rows = mentioned_rows(figures, column.table, clause)
        if rows:
            found[column.where] = {value for row, value in column.cells if row in rows}
    return found


def _flag_named(group: Group, words: str) -> bool:
    """Whether the words speak of a yes/no column: "paid = no" by "unpaid", "is_vacant = yes" by "vacant"."""
    if not group.label.endswith((" = yes", " = no")):
        return False
    return any(len(part) > 3 and part[:6] in words for part in key_words(group.column))


def speaks_of(column: str, word: str) -> bool:
    """Whether a word is the name of a column, or one of its words: "nights" of "nights" or "night_count"."""
    stem = word.lower().rstrip("s")[:5]
    return bool(stem) and any(stem == part.rstrip("s")[:5] for part in key_words(column))
