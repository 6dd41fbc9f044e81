"""What is measured of a run's questions, out of the packed columns that the database cannot look into."""

from collections.abc import Collection, Sequence
from math import fsum, isnan

from answerkey.model.run import RunInfo
from answerkey.store.database import Connection, signs
from answerkey.store.packing import read_measures, unpack_values
from answerkey.store.writing import OF_RUN, of_run

__all__ = ["measure_means"]

# What a scorecard has in columns of its own.
_PLAIN = ("latency_ms", "cost")


def measure_means(
    connection: Connection,
    info: RunInfo,
    names: Collection[str] | None = None,
    positions: Sequence[int] | None = None,
) -> dict[str, dict[int, float]]:
    """Component, metric, latency_ms or cost → position → its mean over the trials; a name that no trial has is left out.

    Of all names unless some are given, and of all questions unless some are.
    """
    chosen = "" if positions is None else f" AND c.position IN ({signs(positions)})"
    query = (
        "SELECT c.position, m.name, c.measured, c.latency_ms, c.cost FROM scorecards c "
        f"JOIN names m ON m.key = c.measures WHERE {OF_RUN}{chosen} ORDER BY c.position"
    )
    given: dict[str, dict[int, list[float]]] = {}
    places: dict[str, list[tuple[str, int]]] = {}
    for position, measures, measured, *plain in connection.run(query, (*of_run(info), *(positions or ()))):
        if measures not in places:
            read = read_measures(measures)
            columns = (*read.components, *read.metrics, *_PLAIN)
            places[measures] = [
                (name, place) for place, name in enumerate(columns) if names is None or name in names
            ]
        values = (*unpack_values(measured), *plain)
        for name, place in places[measures]:
            of_name = given.setdefault(name, {})
            if values[place] is not None and not isnan(values[place]):
                of_name.setdefault(position, []).append(values[place])
    return {
        name: {position: fsum(values) / len(values) for position, values in found.items()}
        for name, found in given.items()
    }
