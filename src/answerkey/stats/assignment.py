"""The cheapest assignment of rows to columns, by shortest augmenting paths (Jonker and Volgenant, 1987)."""

import math
from collections.abc import Sequence

_FREE = -1


def cheapest_assignment(costs: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the pairs (row, column) of least total cost; each row and column is used at most once.

    Costs must be finite. All of the shorter side is assigned, in O(shorter² · longer).
    """
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        return sorted((row, column) for column, row in cheapest_assignment(list(zip(*costs, strict=True))))
    column_of, row_of = [_FREE] * len(costs), [_FREE] * len(costs[0])
    # Dual variables: row price + column price ≤ cost, with equality for assigned pairs.
    row_prices, column_prices = [0.0] * len(column_of), [0.0] * len(row_of)
    for start in range(len(column_of)):
        # Grow a tree of shortest paths from the new row until it reaches a free column.
        distances, rows_before = [math.inf] * len(row_of), [start] * len(row_of)
        open_columns, reached = list(range(len(row_of))), list[int]()
        row, distance = start, 0.0
        while True:
            for column in open_columns:
                length = distance + costs[row][column] - row_prices[row] - column_prices[column]
                if length < distances[column]:
                    distances[column], rows_before[column] = length, row
            end = min(open_columns, key=distances.__getitem__)
            distance = distances[end]
            if row_of[end] == _FREE:
                break
            open_columns.remove(end)
            reached.append(end)
            row = row_of[end]
        row_prices[start] += distance
        for column in reached:
            row_prices[row_of[column]] += distance - distances[column]
            column_prices[column] -= distance - distances[column]
        # Shift every row on the path to its next column.
        while end != _FREE:
            row = rows_before[end]
            row_of[end] = row
            column_of[row], end = end, column_of[row]
    return list(enumerate(column_of))
