from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from answerkey.store import open_store
from store.filling import add_run, golden, good_reply

from .serving import Client, golden_file, serving


@pytest.fixture
def stopped_clock(monkeypatch):
    """No bucket of a limit fills again, however long the machine takes."""
    monkeypatch.setattr("answerkey.server.access.time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.fixture(scope="module")
def store_path(tmp_path_factory):
    """A store with two finished runs, one running, and nothing else; tests add to it."""
    path = str(tmp_path_factory.mktemp("server") / "s.db")
    with open_store(path) as store:
        add_run(store, "aaaa1", questions=golden(60), day=0, name="before")
        add_run(store, "bbbb2", good_reply, questions=golden(60), day=1, name="after")
        add_run(store, "cccc3", questions=golden(60), day=2, finish=False, asked=7, name="third run")
        store.set_baseline("production", "aaaa1")
    return path


@pytest.fixture(scope="module")
def client(store_path, tmp_path_factory) -> Iterator[Client]:
    with serving(
        lambda: open_store(store_path),
        questions=golden_file(tmp_path_factory.mktemp("golden"), golden(60)),
        allow_origins=("https://chat.example.com",),
        rate_per_minute=100_000,
        burst=10_000,
    ) as running:
        yield running
