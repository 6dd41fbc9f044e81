"""How a store is opened, and what a run writes into it."""

from pathlib import Path

import pytest

from answerkey.errors import StoreError
from answerkey.store import open_store


@pytest.mark.parametrize("url", ["runs.db", "sqlite:///runs.db", ":memory:", "sqlite://"])
def test_what_a_url_means(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(url) as store:
        assert store.count_runs() == 0
    assert (tmp_path / "runs.db").exists() == ("runs" in url)


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("just some notes, and quite a few of them" * 50)
    with pytest.raises(StoreError, match=r"notes\.db: file is not a database; it is not an answerkey store"):
        open_store(str(tmp_path / "notes.db"))
