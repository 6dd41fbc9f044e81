"""Pages and figures of production replies: the same for few and for many, and no query that reads them all."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from answerkey.model.judgement import ProductionReply
from answerkey.model.reply import Reply, Timings
from answerkey.runs.production import production_series
from answerkey.store import open_store, production
from answerkey.store.database import all_of, in_list, sql
from answerkey.store.maintenance import delete_production, delete_reply
from answerkey.store.production import ProductionFilter, ProductionReplies, counts_of, recounted
from answerkey.text.dates import local_time

ORDERS = ("created_at", "score", "latency_ms", "category", "error", "model", "version", "id")
FILTERS = (
    {},
    {"category": "c1"},
    {"category": "c1", "version": "v1"},
    {"result": "failed"},
    {"result": "ungraded"},
    {"range": ("latency_ms:100..102",)},
    {"since": "2026-01-01", "until": "2026-01-02"},
    {"text": "rent"},
    {"verdict": "none"},
)


def made(number):
    return ProductionReply(
        id=f"p{number:02}",
        created_at=f"2026-01-{1 + number % 4:02}T{number % 24:02}:30:00.000+00:00",
        question="What is the rent?",
        reply=Reply(
            text="$4,100", timings=Timings(latency_ms=None if number % 5 == 0 else 100.0 + number % 4)
        ),
        category=None if number % 7 == 0 else f"c{number % 3}",
        score=None if number % 2 else number % 6 / 5,
        model=None if number % 11 == 0 else "m",
        version=f"v{number % 2}" if number % 4 else None,
        graded_by="g",
    )


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        ProductionReplies(opened).add([made(number) for number in range(60)])
        yield opened


def ids(store, wanted, **paging):
    return [reply.id for reply in ProductionReplies(store).page(wanted, **paging)[0]]


@pytest.mark.parametrize("given", FILTERS, ids=str)
def test_a_page_of_many_is_that_of_few(store, monkeypatch, given):
    for sort in (way + name for name in ORDERS for way in ("", "-")):
        wanted = ProductionFilter(sort=sort, **given)
        monkeypatch.setattr(production, "MAX_COUNTED", 60)
        replies, total = ProductionReplies(store).page(wanted, limit=100)
        every = [reply.id for reply in replies]
        assert [reply.id for reply in ProductionReplies(store).every(wanted)] == every
        assert len(every) == total > 2
        monkeypatch.setattr(production, "MAX_COUNTED", 2)
        assert ProductionReplies(store).page(wanted)[1] == 3, "more than that are not counted"
        paged = [ids(store, wanted, limit=7, offset=start) for start in range(0, total + 7, 7)]
        assert [one for page in paged for one in page] == every


def test_what_has_no_value_is_last_and_the_newest_first_of_equals(store):
    by_score = list(ProductionReplies(store).every(ProductionFilter(sort="score")))
    scored = [reply for reply in by_score if reply.score is not None]
    assert by_score[: len(scored)] == scored
    worst = [reply.created_at for reply in scored if reply.score == 0.0]
    assert worst == sorted(worst, reverse=True)


def plans(store, wanted, monkeypatch):
    """How the database finds the rows of a page of many, a line for each step."""
    asked = []
    with store.database.reading() as connection:
        kind = type(connection)
    run = kind.run
    monkeypatch.setattr(production, "MAX_COUNTED", 2)
    with monkeypatch.context() as patch:
        patch.setattr(kind, "run", lambda *given: asked.append(given[1:]) or run(*given))
        ProductionReplies(store).page(wanted, limit=60)
    explain = "EXPLAIN QUERY PLAN" if store.database.dialect == "sqlite" else "EXPLAIN"
    lines = []
    with store.database.reading() as connection:
        if store.database.dialect == "postgresql":
            # Sixty rows are read and sorted sooner than any index.
            for setting in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
                connection.run(f"SET LOCAL {setting} = off")
        for sql, *values in asked:
            if "p.id FROM production_replies p" in sql and "OFFSET" in sql and "OVER" not in sql:
                lines += [str(row[-1]) for row in connection.run(f"{explain} {sql}", *values)]
    return lines


@pytest.mark.parametrize(
    "wanted",
    [
        *(ProductionFilter(sort=way + name) for name in ORDERS for way in ("", "-")),
        ProductionFilter(category="c1"),
        ProductionFilter(version="v1", sort="-created_at"),
        ProductionFilter(result="failed"),
        ProductionFilter(result="failed", sort="score"),
        ProductionFilter(range=("latency_ms:100..102",)),
        ProductionFilter(since="2026-01-01", sort="score"),
    ],
    ids=lambda wanted: wanted.query_string() or "newest",
)
def test_a_page_of_many_follows_an_index_and_sorts_nothing(store, monkeypatch, wanted):
    lines = plans(store, wanted, monkeypatch)
    assert any("ndex" in line or "INDEX" in line for line in lines)
    for line in lines:
        assert "Sort" not in line, lines
        assert "TEMP B-TREE" not in line, lines
        assert "Seq Scan" not in line, lines
        assert not (line.startswith("SCAN") and "USING" not in line), lines


def added_up(store):
    """What was counted as replies came, and what there is now."""
    with store.database.reading() as connection:
        kept = connection.run("SELECT day, facet, value, replies FROM production_counts").fetchall()
        now = counts_of(connection, all_of(()))
    return {row[:3]: row[3] for row in kept}, now


def test_the_counts_are_right_whatever_happens_to_replies(store):
    replies = ProductionReplies(store)
    kept, now = added_up(store)
    assert kept == now
    assert now[("2026-01-01", "", "")] == 15
    for result in ("failed", "passed", "ungraded"):
        counted = sum(
            number for (_, facet, value), number in now.items() if (facet, value) == ("result", result)
        )
        assert counted == replies.page(ProductionFilter(result=result))[1] > 0
    assert replies.add([made(number) for number in range(50, 70)]).new == tuple(
        f"p{n}" for n in range(60, 70)
    )
    regraded = [msgspec.structs.replace(made(number), score=0.25, category="new") for number in range(30)]
    replies.keep_grades(regraded)
    delete_reply(store, "p45")
    kept, now = added_up(store)
    assert kept == now
    facets = replies.facets()
    assert (facets.replies, facets.categories["new"]) == (69, 30)
    delete_production(store, older_than_days=0)
    assert added_up(store) == ({}, {})
    assert replies.facets().replies == 0


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Auckland"]
)
def test_figures_of_days_are_those_of_the_zone(store, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        replies = ProductionReplies(store)
        for since, until in (
            ("2026-01-02", "2026-01-03"),
            ("2026-01-02", "2026-01-02"),
            (None, "2026-01-02"),
        ):
            wanted = ProductionFilter(since=since, until=until)
            every = list(replies.every(wanted))
            scores = [reply.score for reply in every if reply.score is not None]
            series = production_series(store, wanted)
            figures = series.total
            assert (figures.replies, figures.graded) == (len(every), len(scores))
            assert figures.score == (pytest.approx(sum(scores) / len(scores)) if scores else None)
            by_day = Counter(local_time(reply.created_at)[:10] for reply in every)
            assert {day.day: day.replies for day in series.days} == by_day
            facets = replies.facets(wanted)
            assert facets.replies == len(every)
            assert facets.categories == Counter(reply.category for reply in every if reply.category)
        assert replies.facets(ProductionFilter(since="2026-01-03", until="2026-01-01")).replies == 0
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_several_do_to_the_same_replies_is_counted_once(store):
    replies = ProductionReplies(store)
    regraded = [msgspec.structs.replace(made(number), score=0.5) for number in range(60)]
    new = [made(number) for number in range(60, 80)]
    with ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(replies.keep_grades, regraded) for _ in range(4)]
        tasks += [pool.submit(replies.add, new) for _ in range(4)]
        tasks += [pool.submit(delete_production, store, older_than_days=0) for _ in range(2)]
        for task in tasks:
            task.result()
    kept, now = added_up(store)
    assert kept == now


def test_a_reply_that_is_added_again_while_it_is_deleted_stays(store):
    if store.database.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    replies, again = ProductionReplies(store), made(70)
    with (
        store.database.transaction() as connection,
        recounted(store.database, connection, [again.id]) as ids,
    ):
        replies.add([again])
        connection.run(*sql("DELETE FROM production_replies WHERE id IN {ids}", ids=in_list(ids)))
    assert replies.find(again.id) is not None
    kept, now = added_up(store)
    assert kept == now
