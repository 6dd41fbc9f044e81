"""`answerkey import` and `answerkey score --qrels`, through the real command."""

import json
import subprocess
import sys

import pytest


def answerkey(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "answerkey", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def trec(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b -1\n1 0 c 0\n2 0 a 2\n")
    (tmp_path / "run").write_text("1 Q0 c 1 2.0 t\n1 Q0 a 2 1.0 t\n3 Q0 a 1 1.0 t\n")
    (tmp_path / "queries.tsv").write_text("1\twhat is the rent\n2\twho owns it\n")
    return tmp_path


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_trec_run_is_scored_alone(trec):
    done = answerkey("score", "run", "--qrels", "qrels", "--metrics", "nDCG@10,P@5,AP,RR", "--json", cwd=trec)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["queries"] == 1
    assert document["metrics"] == {
        "nDCG@10": pytest.approx(0.6309, abs=5e-5),
        "P@5": 0.2,
        "AP": 0.5,
        "RR": 0.5,
    }
    shown = answerkey("score", "run", "--qrels", "qrels", cwd=trec)
    assert "AP       0.5000" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--metrics", "P@5"], "add --qrels"),
        (["run", "--qrels", "qrels", "--metrics", "nDGC@10"], "did you mean nDCG@10"),
        (["run", "--qrels", "nowhere", "--metrics", "P@5"], "nowhere: no such file"),
        (["run", "--qrels", "broken", "--metrics", "P@5"], "broken:2: 3 fields"),
        (["run", "--qrels", "qrels", "--metrics", ","], "no retrieval measure given"),
    ],
)
def test_mistakes_are_one_line(trec, arguments, message):
    (trec / "broken").write_text("1 0 a 1\n1 0 b\n")
    done = answerkey("score", *arguments, cwd=trec)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_trec_judgements_become_a_golden_set(trec):
    done = answerkey("import", "trec", "qrels", "queries.tsv", "-o", "golden.jsonl", cwd=trec)
    assert done.returncode == 0, done.stderr
    assert rows(trec / "golden.jsonl") == [
        {"id": "1", "question": "what is the rent", "relevant_documents": {"a": 1, "c": 0}},
        {"id": "2", "question": "who owns it", "relevant_documents": {"a": 2}},
    ]
    assert "1 judgement with a negative grade left out" in done.stderr


def test_a_trec_run_becomes_replies_that_score_alike(trec):
    done = answerkey("import", "trec", "run", "qrels", "-o", "replies.jsonl", cwd=trec)
    assert done.returncode == 0, done.stderr
    (trec / "answerkey.toml").write_text('[scoring]\nretrieval = ["nDCG@10", "AP"]\n')
    scored = answerkey("score", "replies.jsonl", "--json", cwd=trec)
    assert scored.returncode == 0, scored.stderr
    metrics = json.loads(scored.stdout)["summary"]["metrics"]
    assert (metrics["nDCG@10"], metrics["AP"]) == (pytest.approx(0.6309, abs=5e-5), 0.5)


def test_a_beir_folder_becomes_a_golden_set(tmp_path):
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td9\t2\n")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "zero"}\n{"_id": "q2", "text": "unused"}\n')
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "one"}\n')
    done = answerkey("import", "beir", "set", "-o", "golden.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "golden.jsonl") == [
        {"id": "q1", "question": "zero", "relevant_documents": {"d1": 1, "d9": 2}}
    ]
    assert "1 judged documents are not in the corpus" in done.stderr


def test_unknown_formats_and_files_are_refused(tmp_path):
    (tmp_path / "x").write_text("hello world\n")
    done = answerkey("import", "treck", "x", "-o", "y.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'trec'" in done.stderr
    done = answerkey("import", "trec", "x", "-o", "y.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "neither qrels, a run nor queries" in done.stderr
