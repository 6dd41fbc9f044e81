"""What is built from the data files: once, completely, and where it may be written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from answerkey_demo.knowledge import BUNDLED_DATA, open_knowledge
from answerkey_demo.tools import search_document_content


def test_is_built_once_into_the_cache(cache: Path) -> None:
    first, second = open_knowledge(), open_knowledge()
    assert first.database == second.database
    assert cache in first.database.parents
    assert not list((cache / "demo").glob(".building-*"))


def test_other_data_is_built_elsewhere(data: Path) -> None:
    before = open_knowledge(data).database
    with (data / "documents" / "house-rules.md").open("a", encoding="utf-8") as file:
        file.write("\n## Bicycles\nBicycles are kept in the shed.\n")
    assert open_knowledge(data).database != before


def test_the_usual_cache_directories_are_respected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANSWERKEY_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "answerkey" / "demo" in open_knowledge().database.parents


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("ANSWERKEY_CACHE_DIR", str(blocked))
    knowledge = open_knowledge()
    assert len(knowledge.passages) > 50


def test_several_processes_may_start_at_once(tmp_path: Path) -> None:
    program = (
        "from answerkey_demo.knowledge import open_knowledge; k = open_knowledge(); "
        "print(k.database, len(k.passages), len(k.read('SELECT id FROM transactions')))"
    )
    environment = {**os.environ, "ANSWERKEY_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = {process.communicate(timeout=300)[0] for process in running}
    assert all(process.returncode == 0 for process in running)
    assert len(outputs) == 1
    assert [p.name for p in (tmp_path / "demo").iterdir()] == [Path(outputs.pop().split()[0]).name]


def test_a_folder_without_data_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no data files"):
        open_knowledge(tmp_path)


def test_every_document_has_text_and_metadata() -> None:
    knowledge = open_knowledge()
    listed = {str(row["id"]) for row in knowledge.read("SELECT id FROM documents")}
    written = {path.stem for path in (BUNDLED_DATA / "documents").glob("*.md")}
    assert listed == written
    assert len(listed) >= 12
    assert {p["document"] for p in knowledge.passages} == listed


def test_the_words_of_a_question_find_the_passage_in_any_form() -> None:
    found = search_document_content(open_knowledge().database, "quorums at member meetings")["passages"]
    assert (found[0]["document_id"], found[0]["heading"]) == ("operating-agreement", "Meetings and quorum")
    scores = [passage["score"] for passage in found]
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[0] <= 1


def test_a_search_is_narrowed_to_a_document_or_a_type() -> None:
    database = open_knowledge().database
    in_one = search_document_content(database, "notice", document_id="management-agreement")["passages"]
    assert {passage["document_id"] for passage in in_one} == {"management-agreement"}
    leases = search_document_content(database, "notice", type="lease", limit=20)["passages"]
    assert len({passage["document_id"] for passage in leases}) == 3
    assert all(passage["document_id"].startswith("lease-") for passage in leases)
