"""A store of the schema before the current one is migrated when it is opened, and nothing in it changes."""

import sqlite3

from answerkey.model.feedback import ProductionReply
from answerkey.model.reply import Reply
from answerkey.store import open_store
from answerkey.store.production import ProductionFilter, ProductionReplies

from .filling import add_run


def test_a_store_of_schema_13_is_opened_and_goes_on(tmp_path):
    path = tmp_path / "s.db"
    with open_store(str(path)) as store:
        add_run(store, "r1")
        old = ProductionReply(
            id="old", created_at="2026-11-01T00:00:00.000+00:00", question="?", reply=Reply(text="yes")
        )
        ProductionReplies(store).add([old])
    with sqlite3.connect(path) as raw:
        raw.execute("DROP INDEX production_listing")
        for column in ("cost", "metadata"):
            raw.execute(f"ALTER TABLE production_replies DROP COLUMN {column}")
        raw.execute("CREATE INDEX production_listing ON production_replies (created_at, id)")
        raw.execute("UPDATE answerkey_schema SET version = 13")
    for _ in range(2):
        with open_store(str(path)) as store:
            assert store.find_run("r1").name == "run r1"
            replies = ProductionReplies(store)
            assert replies.find("old") == old
            new = ProductionReply(
                id="new",
                created_at="2026-11-02T00:00:00.000+00:00",
                question="?",
                reply=Reply(text="yes"),
                metadata={"persona": "tenant"},
            )
            replies.add([new])
            found, _ = replies.page(ProductionFilter(metadata="persona=tenant"))
            assert [one.id for one in found] == ["new"]
