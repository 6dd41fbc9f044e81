"""The documentation as a site: it builds without a warning, and has search and the whole Python reference."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import answerkey
from documented import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: what is not logged does not count as a warning.
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    reference = (site / "reference.html").read_text()
    missing = [name for name in answerkey.__all__ if f'id="answerkey.{name}"' not in reference]
    assert missing == []
    # The comment above a field is its description.
    _, _, described = reference.partition('id="answerkey.Options.concurrency"')
    assert "Maximum concurrent questions." in described[:2000]


def test_the_search_index_finds_what_pages_say(site: Path) -> None:
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    assert any(page["location"].startswith("gates.html") and "broken" in page["text"] for page in found)


def test_reading_a_page_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]*", page.read_text()
        )
        assert fetched == [], page.name
