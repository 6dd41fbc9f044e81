import subprocess
import sys

import pytest

from answerkey.errors import StoreError
from answerkey.server.app import create_app, warm_up
from answerkey.store import open_store
from store.filling import add_run, golden


@pytest.mark.parametrize("runs", [0, 1, 2])
def test_whatever_is_in_the_store_it_gets_ready(tmp_path, runs):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        for number in range(runs):
            add_run(store, f"r{number}", questions=golden(4), day=number)
        add_run(store, "none", questions=golden(4), day=9, finish=False, asked=0)
    app = create_app(lambda: open_store(path))
    warm_up(app)
    app.state.holder.close()


def test_a_store_that_cannot_be_opened_is_left_to_the_first_visitor():
    def closed():
        raise StoreError("store s.db: database is locked")

    warm_up(create_app(closed))


def test_afterwards_no_page_has_to_load_a_library(tmp_path):
    path = str(tmp_path / "s.db")
    with open_store(path) as store:
        for number in range(2):
            add_run(store, f"r{number}", questions=golden(4), day=number)
    program = f"""
import sys
from answerkey.server.app import create_app
from answerkey.server.app import PAGES
from answerkey.server.comparisons import CompareQuery
from answerkey.server.app import warm_up
from answerkey.store import open_store
app = create_app(lambda: open_store({path!r}))
warm_up(app)
before = set(sys.modules)
store = app.state.holder.get()
for page in PAGES:
    # Pages of what this store lacks: replies, faults, a judge.
    if page.path.startswith("/replies/") or page.path.endswith(("/faults", "/judge")):
        continue
    query = CompareQuery(run=("r0", "r1"), show="different") if page.query is CompareQuery else page.query()
    page.load(store, query, **{{name: {{"run": "r0", "question": "q1"}}[name] for name in page.path_names}})
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
