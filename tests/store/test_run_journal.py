"""A run's journal: whole lines last, torn and damaged ones are left out, and a full disk leaves no half line."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from answerkey.errors import StoreFullError
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Trial
from answerkey.runs.recorder import JournalHead, RunJournal, read_journal
from answerkey.store import open_store
from answerkey.store.maintenance import check_store

from .filling import golden, good_reply

QUESTIONS = golden(5)
INFO = RunInfo(
    id="r1",
    name="one",
    status="running",
    created_at="2026-11-01",
    target="bot",
    target_hash="t",
    question_set="golden",
    question_set_hash=QUESTIONS.hash,
    weights={},
)
TRIALS = [
    Trial(question, 1, place, (good_reply(question),)) for place, question in enumerate(QUESTIONS.questions)
]


def read(path: Path) -> list[tuple[int, int, tuple[Reply, ...]]]:
    found = read_journal(path)
    assert found is not None
    head, entries = found
    assert head == JournalHead("r1", QUESTIONS.hash, "t")
    return [(entry.position, entry.number, entry.replies) for entry in entries]


@pytest.fixture
def journal(tmp_path: Path) -> RunJournal:
    written = RunJournal(tmp_path / "folder" / "r1.journal", INFO)
    for trial in TRIALS:
        written.append(trial)
    written.close()
    return written


EXPECTED = [(trial.position, 1, trial.replies) for trial in TRIALS]


def test_what_was_written_is_read_and_gone_when_it_is_removed(journal: RunJournal) -> None:
    assert read(journal.path) == EXPECTED
    assert (journal.entries, journal.path.stat().st_mode & 0o777) == (5, 0o600)
    journal.remove()
    assert read_journal(journal.path) is None


def test_torn_at_any_place_it_holds_every_line_before(journal: RunJournal) -> None:
    whole = journal.path.read_bytes()
    begin = len(whole.splitlines(keepends=True)[0])
    for length in range(begin, len(whole)):
        journal.path.write_bytes(whole[:length])
        lines = whole[begin:length].count(b"\n")
        assert read(journal.path) == EXPECTED[:lines]
    journal.path.write_bytes(whole[: begin - 1])
    assert read_journal(journal.path) is None


def test_a_line_that_the_disk_changed_is_left_out_alone(journal: RunJournal) -> None:
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole.replace(b"fact2 in", b"fact7 in"))
    assert read(journal.path) == [EXPECTED[0], EXPECTED[1], *EXPECTED[3:]]


def test_what_no_store_can_keep_is_left_to_the_store(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "r1.journal", INFO)
    journal.append(Trial(QUESTIONS.questions[0], 1, 0, (Reply(text="\ud800"),)))
    journal.append(TRIALS[1])
    assert read(journal.path) == [EXPECTED[1]]


FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store.test_run_journal import INFO, TRIALS
from answerkey.errors import StoreFullError
from answerkey.store import open_store
from answerkey.store.maintenance import check_store
from answerkey.runs.recorder import RunJournal
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
journal = RunJournal(Path(sys.argv[1]), INFO)
try:
    for trial in TRIALS:
        journal.append(trial)
except StoreFullError as error:
    print(journal.entries, error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit of file sizes")
def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "r1.journal"
    tests = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", FULL, path, tests], capture_output=True, text=True)
    kept, said = done.stdout.split(" ", 1)
    assert said == f"journal {path}: file too large; make room on its disk\n", done.stderr
    assert 0 < int(kept) < 5
    assert read(path) == EXPECTED[: int(kept)]
    assert path.read_bytes().endswith(b"\n")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFullError, match=r"^journal .*: (file exists|not a directory); "):
        RunJournal(tmp_path / "file" / "r1.journal", INFO)


def test_a_check_names_the_journal_of_a_run_that_the_store_lost(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "runs.db")) as store:
        path = store.database.journal_path("r1")
        assert path is not None
        assert check_store(store).lost_journals == []
        journal = RunJournal(path, INFO)
        journal.append(TRIALS[0])
        journal.close()
        assert check_store(store).lost_journals == [str(path)]
