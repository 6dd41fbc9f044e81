"""What readers ask of a store: lists, pages, one question, comparisons; and what deleting a run costs."""

import statistics
import time
from collections.abc import Callable

from answerkey.comparison.columns import columns_from_store
from answerkey.runs.stored import load_stored_run
from answerkey.store.maintenance import delete_runs
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.store.questions import PairFilter, PairTable, QuestionFilter, QuestionTable
from answerkey.store.sql import RunTable, SqlStore

# Times that each is measured; the median counts.
TIMES = 5


def readings(store: SqlStore, questions: int) -> dict[str, Callable[[], object]]:
    """What is done → a call that does it, on runs in the middle of the store and on its newest production replies."""
    runs = store.count_runs()
    base, candidate = (store.find_run(f"run{number}") for number in (runs // 2 - 1, runs // 2))
    listed, asked = RunTable(store), QuestionTable(store, base)
    production = ProductionReplies(store)
    pairs = PairTable(store, base, [candidate])
    middle = f"q{questions // 2}"
    return {
        "`runs`: the newest 25": lambda: listed.page(),
        "`show`: a run, all of its results": lambda: list(load_stored_run(store, base.id).results),
        "`show --question`": lambda: store.results_of(base, middle),
        "a question over all runs, the newest 50": lambda: asked.history(middle),
        "first page of a run's questions, worst first": lambda: asked.page(QuestionFilter()),
        "its last page": lambda: asked.page(QuestionFilter(), offset=max(questions - 50, 0)),
        "words in a run's replies": lambda: asked.page(QuestionFilter(text="unit 77")),
        "`compare`: two runs": lambda: columns_from_store(store, [base, candidate]),
        "first page of regressions": lambda: pairs.page(PairFilter(show="regressions")),
        "production replies: newest page": lambda: production.page(ProductionFilter()),
        "production replies: page 100": lambda: production.page(ProductionFilter(), offset=2500),
        "production replies: failed, newest page": lambda: production.page(ProductionFilter(result="failed")),
        "production replies: worst page": lambda: production.page(ProductionFilter(sort="score")),
        "production replies: of a category": lambda: production.page(ProductionFilter(category="c7")),
        "production replies: words of one": lambda: production.page(ProductionFilter(text="p15000 what")),
        "production replies: words of one in 1,000": lambda: production.page(
            ProductionFilter(text="unit 77?")
        ),
        "production replies: in figures": lambda: production.figures(),
    }


def milliseconds(call: Callable[[], object], times: int = TIMES) -> float:
    """The median of several calls."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - begun))
    return statistics.median(taken)


def measured_readings(store: SqlStore, questions: int) -> dict[str, float]:
    """What is done → milliseconds; at last the run in the middle is deleted."""
    found = {name: milliseconds(call) for name, call in readings(store, questions).items()}
    chosen = store.find_run(f"run{store.count_runs() // 2}")
    found["`runs rm`: one run"] = milliseconds(lambda: delete_runs(store, [chosen]), times=1)
    return found
