import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from answerkey.errors import StoreError
from answerkey.model.feedback import Feedback, ReplyKey
from answerkey.store import open_store
from answerkey.store.database import now
from answerkey.store.feedback_book import FeedbackBook, new_id
from answerkey.store.feedback_sums import feedback_stats
from answerkey.store.judgements import SqlJudgements
from answerkey.store.people import People, Sites
from answerkey.store.production import ProductionFilter, ProductionReplies
from answerkey.store.question_list import QuestionList
from answerkey.store.row_filter import RowFilter
from answerkey.store.schema import TABLES, VERSION
from answerkey.store.sql import SqlStore

from .old_store import OLD, SCHEMA_7, SCHEMA_8, SCHEMA_9, SCHEMA_10, write_old_store

READ = OLD["read"]


@pytest.fixture(
    params=[OLD, SCHEMA_7, SCHEMA_8, SCHEMA_9, SCHEMA_10],
    ids=["0.1.0", "schema 7", "schema 8", "schema 9", "schema 10"],
)
def old_store(request, store_url):
    write_old_store(store_url, request.param)
    with open_store(store_url) as opened:
        yield opened


def plain(value):
    """Through JSON, as what 0.1.0 read."""
    return msgspec.json.decode(msgspec.json.encode(value))


def without_unknown(new: Any, old: Any) -> Any:
    """A document without what later versions have added."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {name: without_unknown(new[name], old[name]) for name in new if name in old}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [without_unknown(*pair) for pair in zip(new, old, strict=True)]
    return new


def test_every_run_of_version_0_1_0_has_the_same_document(old_store):
    for info, old in zip(old_store.list_infos(), READ["infos"], strict=True):
        new, options = plain(info), old["options"]
        # What later versions have added is at its default, and the target stands no longer among the options.
        assert new["target_spec"] == options.get("target")
        # Two settings have gone with what they chose.
        scoring = {k: v for k, v in options["scoring"].items() if k not in ("embeddings", "groundedness")}
        assert new["options"]["scoring"] == new["options"]["scoring"] | scoring
        kept = {k: v for k, v in options.items() if k not in ("target", "scoring")}
        assert without_unknown({k: new["options"][k] for k in kept}, kept) == kept
        # Nobody is asking the run that was under way, nor one that was stopped.
        status = "interrupted" if old["status"] == "running" else old["status"]
        assert new == new | {**old, "options": new["options"], "status": status}
        document = READ["documents"][info.id]
        document["run"]["status"] = status
        assert without_unknown(plain(old_store.load_run(info).to_dict()), document) == document
    assert len(READ["documents"]) == 5


def test_its_questions_replies_and_history_are_all_there(old_store):
    for set_hash, questions in READ["questions"].items():
        assert [plain(question) for question in old_store.questions(set_hash)] == questions
        assert old_store.count_questions(set_hash) == len(questions)
    for info in old_store.list_infos():
        assert sorted(map(list, old_store.reply_keys(info))) == READ["replies"][info.id]
    history = QuestionList(old_store).history(
        READ["documents"][READ["history"][0]["run_id"]]["results"][0]["id"]
    )
    assert [plain(point) for point in history] == READ["history"]


def test_its_feedback_is_tied_to_the_same_replies(old_store):
    book = FeedbackBook(old_store)
    verdicts = [plain(verdict) for verdict in book.page(limit=100)[0]]
    targets = {info.id: info.target_hash for info in old_store.list_infos()}
    for verdict in verdicts:
        if "reply" in verdict:
            # New: whose reply it was.
            assert verdict["reply"].pop("target_hash") == targets[verdict["reply"]["run_id"]]
    assert verdicts == READ["feedback"]
    stats = plain(feedback_stats(old_store))
    # Equally frequent ones come in the database's order.
    stats["categories"].sort(key=lambda part: part["category"])
    assert stats == {
        **READ["stats"],
        "categories": sorted(READ["stats"]["categories"], key=lambda p: p["category"]),
    }
    found = [[row.question, row.components, row.value] for row in book.scored_verdicts()]
    assert sorted(map(str, found)) == sorted(map(str, READ["scored_verdicts"]))
    # A reply that came before is still found by its id.
    kept, _ = book.add(Feedback(id=new_id(), created_at=now(), value=1.0, response_id="resp-under-way"))
    assert kept.reply == ReplyKey("underway01", kept.reply.ask_hash, 1, targets["underway01"])


def test_its_production_replies_judgements_tokens_and_baselines_are_all_there(old_store):
    page, _ = ProductionReplies(old_store).page(ProductionFilter())
    assert [plain(reply) for reply in page] == READ["production"]
    assert ProductionReplies(old_store).figures().replies == len(page)
    assert dict(SqlJudgements(old_store).find_answers(["a" * 32, "b" * 32])) == READ["judged"]
    first = old_store.find_run("first")
    assert plain(SqlJudgements(old_store).spent_on(first.id)) == READ["spent"]
    # An annotator is a reviewer now, and a token that may only send is a site's key.
    person = People(old_store).holder_of(READ["token"])
    assert (person.name, person.role) == ("ann", "reviewer")
    assert [site.name for site in Sites(old_store).all()] in ([], ["page"])
    assert dict(old_store.baselines()) == READ["baselines"]


def test_its_texts_are_found_whatever_their_case(old_store):
    info = old_store.find_run("odd")

    def found(text):
        return [row.id for row in QuestionList(old_store).rows(info, RowFilter(text=text))[0]]

    assert found("große strasse") == found("ÖLBERG") == found("graz") == ["große Straße"]
    page, total = ProductionReplies(old_store).page(ProductionFilter(text="äöü"))
    assert ([reply.id for reply in page], total) == (["prod-2"], 1)


def layout(store: SqlStore) -> set[tuple]:
    """All tables, columns and indexes that a database has, as it describes them itself."""
    queries = ["SELECT type, tbl_name, name, sql FROM sqlite_master"]
    if store.database.kind == "postgresql":
        queries = [
            "SELECT table_name, column_name, ordinal_position, data_type, is_nullable, is_identity "
            "FROM information_schema.columns WHERE table_schema = current_schema()",
            "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()",
        ]
    with store.database.reading() as connection:
        return {tuple(row) for query in queries for row in connection.run(query)}


def test_a_store_that_was_carried_over_is_laid_out_as_a_new_one(old_store, new_store_url):
    with open_store(new_store_url) as new:
        assert layout(old_store) == layout(new)
        with new.database.reading() as connection:
            assert new.database.tables(connection) >= {*TABLES, "answerkey_schema"}


def test_opening_again_changes_nothing(store_url):
    versions = []
    for _ in range(2):
        with open_store(store_url) as store, store.database.reading() as connection:
            versions.append(connection.run("SELECT version FROM answerkey_schema").fetchall())
    assert versions == [[(VERSION,)]] * 2


@pytest.mark.parametrize(
    ("version", "says"),
    [(999, "newer answerkey"), (VERSION + 1, "newer answerkey"), (4, "before answerkey 0.1.0")],
)
def test_a_store_of_a_version_that_is_not_known_is_refused_untouched(store_url, version, says):
    with open_store(store_url) as store, store.database.transaction() as connection:
        connection.run("UPDATE answerkey_schema SET version = ?", (version,))
    before = None if "://" in store_url else Path(store_url).read_bytes()
    with pytest.raises(StoreError, match=f"^store .*: .*{says}.*--store$"):
        open_store(store_url)
    assert before is None or Path(store_url).read_bytes() == before


KILLED = """
import os, signal, sys
from answerkey.store import open_store
from answerkey.store import sqlite
left = int(sys.argv[2])
class Killed(sqlite._Connection):
    def run(self, *arguments):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(*arguments)
    def run_many(self, *arguments):
        self.run("SELECT 1")
        return super().run_many(*arguments)
sqlite._Connection = Killed
open_store(sys.argv[1])
"""


@pytest.mark.parametrize("statements", [1, 3, 20, 60, 75, 95])
def test_killed_while_it_is_carried_over_a_store_is_as_it_was(tmp_path, statements):
    path = tmp_path / "store.db"
    write_old_store(str(path))
    with sqlite3.connect(path) as connection:
        before = list(connection.iterdump())
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(statements)], env={**os.environ})
    assert done.returncode == -signal.SIGKILL
    with sqlite3.connect(path) as connection:
        assert list(connection.iterdump()) == before
    with open_store(str(path)) as store:
        assert store.count_runs() == 5
