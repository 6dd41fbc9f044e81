"""A static site of many runs: everything leads somewhere within it, and nothing that is not its own is touched."""

import re

import pytest

from answerkey.cli.main import run_command
from answerkey.errors import UsageError
from answerkey.report.documents import write_site
from answerkey.store import open_store
from store.filling import add_run, golden, good_reply

EVIL = '<script>alert(1)</script>"'


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "s.db")) as opened:
        for day in range(3):
            add_run(opened, f"night{day}", questions=golden(12), day=day, name=f"nightly {day}")
        add_run(opened, "after1", good_reply, questions=golden(12), day=4, name=EVIL)
        add_run(opened, "open1", questions=golden(12), day=5, finish=False, asked=2, name="under way")
        yield opened


def pages(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.html")}


def test_every_link_leads_to_a_page_of_the_site(store, tmp_path):
    folder = tmp_path / "site"
    written = write_site(store, folder, most=50)
    found = pages(folder)
    assert written[0] == folder / "index.html"
    assert set(found) == {str(path.relative_to(folder)) for path in written}
    assert len([name for name in found if name.startswith("runs/")]) == 4
    assert "compare/night2--after1.html" in found
    for name, text in found.items():
        for link in re.findall(r'href="([^"#]+)"', text):
            assert (folder / name).parent.joinpath(link).resolve().is_file(), (name, link)
        assert "Content-Security-Policy" in text
        assert EVIL not in text
    assert "better" in found["index.html"]
    assert "under way" not in found["index.html"]


def test_written_again_it_follows_the_store(store, tmp_path):
    folder = tmp_path / "site"
    write_site(store, folder, most=50)
    write_site(store, folder, most=2)
    assert set(pages(folder)) == {
        "index.html",
        "runs/after1.html",
        "runs/night2.html",
        "compare/night2--after1.html",
    }


def test_what_it_did_not_write_stays(store, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    with pytest.raises(UsageError, match="is not empty and not a site of answerkey"):
        write_site(store, folder, most=50)
    assert (folder / "index.html").read_text() == "mine"
    site = tmp_path / "site"
    write_site(store, site, most=1)
    (site / "runs" / "night2.html").write_text("mine")
    (site / "notes.txt").write_text("mine")
    (site / ".answerkey-site.json").write_text(
        '["../s.db", "index.html", "runs/../../s.db", "runs/after1.html"]'
    )
    with pytest.raises(UsageError, match=r"night2\.html: exists and was not written"):
        write_site(store, site, most=50)
    (site / "runs" / "night2.html").unlink()
    write_site(store, site, most=1)
    assert (site / "notes.txt").read_text() == "mine"
    assert (tmp_path / "s.db").exists()


def test_the_command(store, tmp_path):
    flags = ["--store", str(tmp_path / "s.db"), "--runs", "2"]
    assert run_command(["report", "--site", str(tmp_path / "x"), *flags]) == 0
    assert (tmp_path / "x" / "index.html").exists()
    assert run_command(["report", "latest~1", "--site", str(tmp_path / "y"), *flags]) == 2


# A score as texts write it; p-values are no scores.
FRACTION = re.compile(r"(?<!p = )\b[01]\.\d{3}\b")


def read_as_text(page):
    return re.sub(r"<[^>]*>", " ", re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "night0", "after1"],
        ["compare", "night0", "after1", "night1"],
        ["why", "night0", "after1"],
    ],
)
def test_a_score_is_a_percentage_on_every_page_and_a_fraction_in_every_text(store, tmp_path, command):
    written = [tmp_path / "out.html", tmp_path / "out.md"]
    outputs = [part for path in written for part in ("-o", str(path))]
    assert run_command([*command, "--store", str(tmp_path / "s.db"), *outputs]) == 0
    page, text = (path.read_text() for path in written)
    # Metrics have their own scale.
    shown = read_as_text(page).partition("tool partial")[0]
    assert "100%" in shown
    assert not FRACTION.search(shown)
    assert FRACTION.search(text.partition("tool partial")[0])


def test_every_page_of_a_site_shows_scores_as_percentages(store, tmp_path):
    write_site(store, tmp_path / "site", most=50)
    for name, page in pages(tmp_path / "site").items():
        assert not FRACTION.search(
            read_as_text(page).partition("tool partial")[0].partition("Tool partial")[0]
        ), name
