"""TREC and BEIR files: what is read, and which line is named when something is wrong."""

import pytest

from answerkey.datasets.evals_and_trec import file_kind, read_qrels, read_queries, read_trec_run
from answerkey.errors import InputError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_qrels_fields_are_parted_by_any_white_space_and_grades_may_be_negative(tmp_path):
    path = write(tmp_path / "qrels", "301 0  FR940202-2-00150\t1\n\n301\t0 FR940104 -1\r\n302 0 A 0\n")
    assert read_qrels(path) == {"301": {"FR940202-2-00150": 1, "FR940104": -1}, "302": {"A": 0}}


def test_beir_qrels_are_read_with_and_without_their_header(tmp_path):
    with_header = write(tmp_path / "a.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\n")
    without = write(tmp_path / "b.tsv", "q1\td1\t2\n")
    assert read_qrels(with_header) == read_qrels(without) == {"q1": {"d1": 2}}


def test_a_run_keeps_scores_and_not_ranks(tmp_path):
    path = write(tmp_path / "run", "1 Q0 b 0  2.5 STANDARD\n1 Q0 a 7 2.50e0 STANDARD\n2 Q0 a 1 -3\n")
    assert read_trec_run(path) == {"1": {"b": 2.5, "a": 2.5}, "2": {"a": -3.0}}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1 0 a 1\n1 0 b\n", 2, "3 fields where a judgement has 4"),
        ("1 0 a 1\n\n1 0 b x\n", 3, "grade 'x' is not a whole number"),
        ("1 0 a 0.5\n", 1, "grade '0.5' is not a whole number"),
        ("1 0 a 1\n1 0 a 1\n", 2, "judged twice for query '1'"),
        ("1 0 a 99999999999\n", 1, "is above 1000"),
    ],
)
def test_a_broken_line_of_qrels_is_named(tmp_path, text, line, message):
    path = write(tmp_path / "qrels", text)
    with pytest.raises(InputError, match=message) as caught:
        read_qrels(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1 Q0 a 1 2.0 t\n1 Q0 b\n", 2, "3 fields where a run has 6"),
        ("1 Q0 a 1 high t\n", 1, "score 'high' is not a number"),
        ("1 Q0 a 1 nan t\n", 1, "score 'nan' is not a number"),
        ("1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n", 2, "retrieved twice"),
    ],
)
def test_a_broken_line_of_a_run_is_named(tmp_path, text, line, message):
    path = write(tmp_path / "run", text)
    with pytest.raises(InputError, match=message) as caught:
        read_trec_run(path)
    assert caught.value.line == line


def test_empty_missing_and_undecodable_files_are_errors(tmp_path):
    with pytest.raises(InputError, match="no judgement"):
        read_qrels(write(tmp_path / "empty", "\n"))
    with pytest.raises(InputError, match="no such file"):
        read_trec_run(tmp_path / "absent")
    (tmp_path / "latin").write_bytes(b"1 0 a 1\n1 0 \xe9 1\n")
    with pytest.raises(InputError, match="not UTF-8") as caught:
        read_qrels(tmp_path / "latin")
    assert caught.value.line == 2


def test_queries_come_from_beir_lines_tables_and_topics(tmp_path):
    beir = write(tmp_path / "queries.jsonl", '{"_id": "1", "text": "rent?"}\n{"_id": 2, "text": "tax"}\n')
    table = write(tmp_path / "queries.tsv", "1\trent?\n2\ttax\n")
    topics = write(
        tmp_path / "topics",
        "<top>\n<num> Number: 1\n<title> rent?\n<desc> Description:\n…\n</top>\n<top><num>2</num><title>tax</title></top>",
    )
    assert read_queries(beir) == read_queries(table) == read_queries(topics) == {"1": "rent?", "2": "tax"}
    with pytest.raises(InputError, match="expected an object") as caught:
        read_queries(write(tmp_path / "bad.jsonl", '{"_id": "1", "text": "a"}\n{"text": "b"}\n'))
    assert caught.value.line == 2


def test_a_file_is_known_by_its_first_line(tmp_path):
    assert file_kind(write(tmp_path / "a", "1 0 d 1\n")) == "qrels"
    assert file_kind(write(tmp_path / "b", "1 Q0 d 1 2.0 t\n")) == "run"
    assert file_kind(write(tmp_path / "c.tsv", "query-id\tcorpus-id\tscore\n")) == "qrels"
    assert file_kind(write(tmp_path / "d.tsv", "1\twhat is the rent\n")) == "queries"
    assert file_kind(write(tmp_path / "corpus.jsonl", "{}")) == "corpus"
