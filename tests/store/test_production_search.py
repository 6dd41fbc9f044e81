"""Production replies found by words: the same with an index and without, whatever the words."""

import pytest

from answerkey.model.judgement import ProductionReply
from answerkey.model.reply import Reply, ToolCall
from answerkey.store import open_store
from answerkey.store.database import Database
from answerkey.store.maintenance import delete_reply
from answerkey.store.production import ProductionFilter, ProductionReplies

TEXTS = {
    "r1": 'Rent of "Montrose" is $4,100 OR more',
    "r2": "Die Große Straße in Graz",
    "r3": "current balance: 100% of 5_000!",
    "r4": None,
    "r5": "家賃は四千百ドルです",
}


def production_reply(identity, text, number=1):
    return ProductionReply(
        id=identity,
        created_at=f"2026-11-0{number}T00:00:00.000+00:00",
        question="What is it?",
        reply=Reply(text=text, tool_calls=(ToolCall(name=f"tool{number}"),)),
    )


@pytest.fixture
def store(store_url):
    with open_store(store_url) as opened:
        ProductionReplies(opened).add(
            [
                production_reply(identity, text, number)
                for number, (identity, text) in enumerate(TEXTS.items(), start=1)
            ]
        )
        yield opened


def found(store, **wanted):
    rows, total = ProductionReplies(store).page(ProductionFilter(**wanted))
    assert len(rows) == total
    return [row.id for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("montrose", ["r1"]),
        ('"Montrose" is', ["r1"]),
        ("$4,100 OR", ["r1"]),
        ("rent", ["r3", "r1"]),
        ("STRASSE", ["r2"]),
        ("große", ["r2"]),
        ("100%", ["r3"]),
        ("5_000!", ["r3"]),
        ("5x000", []),
        ("is", ["r5", "r4", "r3", "r2", "r1"]),
        ("四千百", ["r5"]),
        ("四千", ["r5"]),
        ("r4", ["r4"]),
        ("montrose*", []),
        ("NOT", []),
    ],
)
def test_words_mean_themselves(store, text, expected):
    assert found(store, text=text) == expected


def test_an_index_finds_what_looking_through_all_texts_does(store, monkeypatch):
    words = ["montrose", "what is it", "tra", "zebra", 'e"', "ße "]
    if store.database.dialect == "postgresql":
        # Made for those who serve, and only once.
        store.database.index_texts()
        store.database.index_texts()
    else:
        assert "MATCH" in str(store.database.search("production_replies", "montrose"))
    indexed = [found(store, text=word) for word in words]
    monkeypatch.setattr(type(store.database), "search", Database.search)
    assert [found(store, text=word) for word in words] == indexed


def test_words_tools_and_days_together(store):
    assert found(store, text="what", tool="tool3") == ["r3"]
    assert found(store, text="what", tool="tool") == []
    assert found(store, text="rent", until="2026-11-01") == ["r1"]


def test_what_is_deleted_is_not_found(store):
    delete_reply(store, "r1")
    assert found(store, text="montrose") == []
    assert found(store, text="rent") == ["r3"]


@pytest.mark.postgres
def test_a_server_asks_its_index(own_postgres_server):
    with open_store(own_postgres_server.new_database()) as store:
        ProductionReplies(store).add([production_reply(f"r{number}", "a text") for number in range(50)])
        store.database.index_texts()
        query = store.database.search("production_replies", "montrose")
        with store.database.reading() as connection:
            # Fifty rows are read sooner than any index.
            connection.run("SET LOCAL enable_seqscan = off")
            plan = connection.run(f"EXPLAIN {query.text}", query.values).fetchall()
    assert "production_replies_words" in str(plan)
