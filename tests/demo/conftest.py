"""A cache of its own for the tests, and one chatbot for all that only read."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from answerkey_demo import Chatbot, open_chatbot
from answerkey_demo.knowledge import BUNDLED_DATA


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Nothing is built in the home directory."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("ANSWERKEY_CACHE_DIR")
    os.environ["ANSWERKEY_CACHE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["ANSWERKEY_CACHE_DIR"]
    else:
        os.environ["ANSWERKEY_CACHE_DIR"] = before


@pytest.fixture(scope="session")
def bot(cache: Path) -> Chatbot:
    """The default variant."""
    return open_chatbot()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the data folder to change."""
    return Path(shutil.copytree(BUNDLED_DATA, tmp_path / "data"))
