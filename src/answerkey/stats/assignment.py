"""The cheapest assignment of rows to columns, by shortest augmenting paths (Jonker and Volgenant, 1987)."""

import math
from collections.abc import Sequence

_FREE = -1


def cheapest_assignment(costs: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pairs (row, column) of the least total cost: each row and column once at most, all of the shorter side.

    Costs are finite; the time grows with the shorter side squared times the longer one.
    """
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        return sorted((row, column) for column, row in cheapest_assignment(list(zip(*costs, strict=True))))
    column_of, row_of = [_FREE] * len(costs), [_FREE] * len(costs[0])
    # No cost is below the sum of its row's and its column's price, and one that is chosen equals it.
    row_prices, column_prices = [0.0] * len(column_of), [0.0] * len(row_of)
    for start in range(len(column_of)):
        # A tree of shortest paths grows from the new row until it reaches a free column.
        distances, rows_before = [math.inf] * len(row_of), [start] * len(row_of)
        waiting, reached = list(range(len(row_of))), list[int]()
        row, distance = start, 0.0
        while True:
            for column in waiting:
                length = distance + costs[row][column] - row_prices[row] - column_prices[column]
                if length < distances[column]:
                    distances[column], rows_before[column] = length, row
            end = min(waiting, key=distances.__getitem__)
            distance = distances[end]
            if row_of[end] == _FREE:
                break
            waiting.remove(end)
            reached.append(end)
            row = row_of[end]
        row_prices[start] += distance
        for column in reached:
            row_prices[row_of[column]] += distance - distances[column]
            column_prices[column] -= distance - distances[column]
        # Every row on the path moves on to the next column, which leaves the start's to be taken.
        while end != _FREE:
            row = rows_before[end]
            row_of[end] = row
            column_of[row], end = end, column_of[row]
    return list(enumerate(column_of))
