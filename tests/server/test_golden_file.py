"""Golden questions edited on the dashboard: exactly one line changes, nobody is overwritten, and the effect is seen before."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from answerkey.cli.main import run_command
from answerkey.config import Settings, load_settings
from answerkey.store import open_store
from store.filling import add_run, golden

from .serving import serving

LINES = [
    '{"id": "q0",   "question": "What is fact 0 of the property file?", "expected_keywords": ["fact0", "Montrose"]}\r\n',
    "\n",
    '{"id":"q1","question":"Two \u2028 lines?","expected_keywords":["fact1"]}\n',
    '{"id": "q2", "question": "Caf\u00e9?", "expected_keywords": ["fact2"], "note": 1.50}',
]


@pytest.fixture
def served(tmp_path):
    path, file = str(tmp_path / "s.db"), tmp_path / "golden.jsonl"
    file.write_bytes("".join(LINES).encode())
    with open_store(path) as store:
        add_run(store, "r1", questions=golden(6))
    with serving(lambda: open_store(path), Settings(), questions=str(file), allow_run=True) as client:
        yield client, file


def post(client, **fields):
    kind = "application/x-www-form-urlencoded"
    return client.post("/golden", urlencode(fields), content_type=kind, origin=client.url)


def opened(client, query):
    page = client.get(f"/golden?{query}")
    assert page.status == 200
    return {
        name: page.text.partition(f'name="{name}" value="')[2].partition('"')[0]
        for name in ("line", "digest")
    }


def test_one_line_changes_and_everything_else_stays_byte_for_byte(served):
    client, file = served
    place = opened(client, "id=q1")
    assert place["line"] == "3"
    text = '{"id":"q1","question":"One line?","expected_keywords":["fact1","blue"]}'
    assert post(client, action="save", text=text, **place).status == 303
    assert file.read_bytes() == "".join([*LINES[:2], text + "\n", LINES[3]]).encode()
    place = opened(client, "id=q0")
    changed = LINES[0].replace('fact0",', 'fact0", "CO",')
    assert post(client, action="save", text=changed.strip(), **place).status == 303
    assert file.read_bytes().startswith(changed.encode()), "the line keeps its own ending"


def test_two_editors_do_not_overwrite_each_other(served):
    client, file = served
    ann, bob = opened(client, "id=q2"), opened(client, "id=q2")
    assert post(client, action="save", text='{"id": "q2", "question": "Ann?"}', **ann).status == 303
    after = file.read_bytes()
    refused = post(client, action="save", text='{"id": "q2", "question": "Bob?"}', **bob)
    assert refused.status == 409
    assert "changed since you opened it" in refused.text
    assert file.read_bytes() == after
    # An editor on disk that inserted a line above.
    place = opened(client, "id=q2")
    file.write_bytes(b'{"id": "new", "question": "New?"}\n' + after)
    assert post(client, action="save", text='{"id": "q2", "question": "Bob?"}', **place).status == 409


def test_what_would_change_is_seen_before_it_is_saved(served):
    client, file = served
    before = file.read_bytes()
    place = opened(client, "id=q0")
    text = '{"id": "q0", "question": "What is fact 0 of the property file?", "expected_keywords": ["zebra"]}'
    page = post(client, action="try", text=text, **place).text
    assert "100%" in page
    assert "+" + text.replace('"', "&#34;") in page
    rescored = page.partition("Stored replies, scored again")[2]
    assert "run r1" in rescored
    assert "60%" in rescored, "the tool and no error are left"
    for wrong in ("{", "[]", '{"id": "q0"}', '{"id": "q0", "question": "?", "expected_keyword": ["x"]}'):
        assert 'class="card alert"' in post(client, action="try", text=wrong, **place).text
        assert post(client, action="save", text=wrong, **place).status == 400
    assert post(client, action="save", text=json.dumps({"id": "q1", "question": "?"}), **place).status == 400
    assert file.read_bytes() == before


def test_a_production_reply_becomes_a_question_or_leads_to_the_one_that_exists(served):
    client, file = served
    rows = [
        {"question": "what is fact 0 of the property file", "answer": "x", "response_id": "known"},
        {"question": "<script>alert(1)</script> new?", "answer": "y", "response_id": "new"},
    ]
    assert client.post("/api/replies", {"replies": rows}).status == 201
    assert opened(client, "reply=known")["line"] == "1"
    assert "already has this question" in client.get("/golden?reply=known").text
    page = client.get("/golden?reply=new").text
    assert opened(client, "reply=new") == {"line": "0", "digest": ""}
    assert "<script>alert" not in page
    text = json.dumps({"id": "added", "question": "Added?", "expected_keywords": ["y"]}, indent=2)
    assert post(client, action="save", text=text, line="0").status == 303
    assert json.loads(file.read_text().splitlines()[-1])["id"] == "added"
    assert post(client, action="save", text=text, line="0").status == 400, "there is one with this id"


def test_without_the_flag_nothing_is_written(tmp_path):
    file = tmp_path / "golden.jsonl"
    file.write_text('{"id": "q0", "question": "?"}\n')
    path = str(tmp_path / "s.db")
    with open_store(path), serving(lambda: open_store(path), questions=str(file)) as client:
        place = opened(client, "id=q0")
        assert post(client, action="save", text='{"id": "q0", "question": "Other?"}', **place).status == 403
        assert "Save to the file" not in client.get("/golden?id=q0").text
    assert file.read_text() == '{"id": "q0", "question": "?"}\n'


DRAFTS = [
    {
        "id": "draft-1",
        "question": "How much is the deposit of unit B?",
        "expected_keywords": [{"number": 2450, "must": True}],
        "evidence": {
            "source": "log.jsonl:4",
            "asked": 7,
            "failures": 0,
            "reply": "It is <b>$2,450</b>.",
            "links": [{"text": "2,450", "where": "tool_calls[0].result[0].deposit", "found": "2450"}],
        },
        "warnings": [],
    },
    {
        "id": "draft-2",
        "question": "What is fact 0 of the property file, please?",
        "evidence": {"source": "log.jsonl:5", "asked": 1, "failures": 1},
        "warnings": ["no expectations: the reply was disliked"],
    },
]


@pytest.fixture
def with_drafts(tmp_path):
    path, file, drafts = str(tmp_path / "s.db"), tmp_path / "golden.jsonl", tmp_path / "drafts.jsonl"
    file.write_bytes("".join(LINES).encode())
    drafts.write_text("".join(json.dumps(one) + "\n" for one in DRAFTS))
    more = {"questions": str(file), "drafts": str(drafts)}

    def left():
        return [json.loads(line)["id"] for line in drafts.read_text().splitlines()]

    return path, file, left, more


def test_a_person_accepts_or_rejects_drafts(with_drafts):
    path, file, left, more = with_drafts
    with serving(lambda: open_store(path, create=True), Settings(), allow_run=True, **more) as client:
        listed = client.get("/golden").text
        assert "How much is the deposit of unit B?" in listed
        assert "no expectations: the reply was disliked" in listed
        page = client.get("/golden?draft=draft-1").text
        assert "Asked 7 times" in page
        assert "It is &lt;b&gt;$2,450" in page
        assert "tool_calls[0].result[0].deposit" in page
        tried = post(client, action="try", text='{"question": "How?"}', draft="draft-1").text
        assert "Asked 7 times" in tried
        assert "What lint says" in tried
        row = {name: DRAFTS[0][name] for name in ("id", "question", "expected_keywords")} | {
            "category": "rent"
        }
        assert post(client, action="save", text=json.dumps(row), draft="draft-1").status == 303
        saved = json.loads(file.read_text("utf-8").split("\n")[-2])
        assert {name: saved[name] for name in row} == row
        assert "evidence" not in saved
        assert saved["provenance"]["source"] == "log.jsonl:4"
        assert saved["provenance"]["accepted_by"]
        assert left() == ["draft-2"]
        # Nearly the same as q0.
        near = post(
            client,
            action="save",
            text=json.dumps({"id": "n", "question": DRAFTS[1]["question"]}),
            draft="draft-2",
        )
        assert "early the same as case" in near.text
        assert left() == ["draft-2"]
        assert post(client, action="reject", text="-", draft="draft-2").status == 303
        assert left() == []
        assert "No draft is left" in client.get("/golden").text
        assert client.get("/golden?draft=draft-2").status == 404
    assert file.read_bytes().startswith("".join(LINES).encode()), "the other lines stay as they were"


def test_an_accepted_draft_is_added_to_a_yaml_file_in_its_style(with_drafts, tmp_path):
    path, _, left, more = with_drafts
    file = tmp_path / "golden.yaml"
    file.write_text(YAML, "utf-8")
    more = {**more, "questions": str(file)}
    with serving(lambda: open_store(path, create=True), Settings(), allow_run=True, **more) as client:
        page = client.get("/golden?draft=draft-1").text
        assert "question: How much is the deposit of unit B?" in page
        text = page.partition("required>")[2].partition("</textarea>")[0].replace("&#39;", "'")
        assert post(client, action="save", text=text, draft="draft-1").status == 303
    assert left() == ["draft-2"]
    written = file.read_text("utf-8")
    assert written.startswith(YAML + "\n- id: draft-1\n  question: How much is the deposit of unit B?\n")
    assert "accepted_by: " in written


def test_drafts_change_only_where_saving_is_allowed(with_drafts):
    path, file, left, more = with_drafts
    before = file.read_bytes()
    with serving(lambda: open_store(path, create=True), Settings(), **more) as client:
        for action in ("save", "reject"):
            answer = post(client, action=action, text=json.dumps({"question": "How?"}), draft="draft-1")
            assert answer.status == 403
    assert (left(), file.read_bytes()) == (["draft-1", "draft-2"], before)


def test_computed_values_are_shown_as_the_newest_run_computed_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts.json").write_text('{"colour": "teal", "size": 4.5}')
    (tmp_path / "bot.py").write_text('def bot(question):\n    return {"answer": "It is teal, 4.50 m."}\n')
    row = {"id": "q0", "question": "Which?", "expected_keywords": [{"fact": "colour"}, {"fact": "size"}]}
    (tmp_path / "golden.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\ntarget = "bot.py:bot"\n[truth.facts]\ndocument = "facts.json"\n'
    )
    assert run_command(["run", "--store", "s.db", "--name", "night"]) == 0
    path = str(tmp_path / "s.db")

    def shown(client, **changed):
        page = post(client, action="try", text=json.dumps(row | changed), **opened(client, "id=q0")).text
        return page.partition("Computed from the data</h2>")[2].partition("</table>")[0]

    with serving(lambda: open_store(path), load_settings(), allow_run=True) as client:
        whole = shown(client)
        assert "<b><bdi>teal</bdi></b>" in whole
        assert "<b><bdi>4.50</bdi></b>" in whole
        assert whole.count("<bdi>night</bdi>") == 2
        assert shown(client, expected_keywords=["teal"]) == ""


YAML = """\
# The golden set
- id: q0  # first
  question: "What is fact 0 of the property file?"
  expected_keywords: [fact0, 'Montrose']

# about q1
- id: q1
  question: Café?
"""


def test_a_question_of_a_yaml_file_is_edited_as_its_author_wrote_it(tmp_path):
    path, file = str(tmp_path / "s.db"), tmp_path / "golden.yaml"
    file.write_text(YAML, "utf-8")
    with open_store(path) as store:
        add_run(store, "r1", questions=golden(6))
    with serving(lambda: open_store(path), Settings(), questions=str(file), allow_run=True) as client:
        assert 'href="/golden?id=q0"' in client.get("/runs/r1/questions/q0").text
        page = client.get("/golden?id=q0").text
        assert "The question as YAML" in page
        assert "id: q0  # first" in page
        place = opened(client, "id=q0")
        text = 'id: q0  # first\r\nquestion: "What is fact 0 of the property file?"\r\nexpected_keywords: [zebra]'
        tried = post(client, action="try", text=text, **place).text
        assert "+  expected_keywords: [zebra]" in tried
        assert "60%" in tried.partition("Stored replies, scored again")[2]
        assert file.read_text("utf-8") == YAML
        assert post(client, action="save", text=text, **place).status == 303
        assert file.read_text("utf-8") == YAML.replace("[fact0, 'Montrose']", "[zebra]")
        # Another editor was faster.
        refused = post(client, action="save", text=text.replace("zebra", "ant"), **place)
        assert (refused.status, "changed since you opened it" in refused.text) == (409, True)
        wrong = post(client, action="try", text="id: q1\n  question: x", **opened(client, "id=q1")).text
        assert "line 2: the line does not fit" in wrong.lower()
        assert (
            client.post("/api/replies", {"question": "New?", "answer": "x", "response_id": "n"}).status == 201
        )
        assert "question: New?" in client.get("/golden?reply=n").text
        assert post(client, action="save", text="id: n\nquestion: New?", line="0").status == 303
    assert file.read_text("utf-8") == YAML.replace("[fact0, 'Montrose']", "[zebra]") + (
        "\n- id: n\n  question: New?\n"
    )


def test_a_table_is_not_edited_and_pages_do_not_lead_there(tmp_path):
    path, file = str(tmp_path / "s.db"), tmp_path / "golden.csv"
    file.write_text("id,question\nq0,Is it?\n")
    with open_store(path) as store:
        add_run(store, "r1", questions=golden(2))
    with serving(lambda: open_store(path), Settings(), questions=str(file), allow_run=True) as client:
        assert "/golden?id" not in client.get("/runs/r1/questions/q0").text
        answer = client.get("/golden?id=q0")
        assert (answer.status, "answerkey export jsonl golden.csv" in answer.text) == (400, True)
    assert file.read_text() == "id,question\nq0,Is it?\n"


@pytest.fixture
def with_truth(tmp_path, monkeypatch):
    """A run whose expectations were computed from a database, and the database changed since."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("books.db")) as books:
        books.execute("CREATE TABLE rent (unit TEXT, amount REAL)")
        books.execute("INSERT INTO rent VALUES ('A', 1200), ('B', 900)")
        books.commit()
    (tmp_path / "bot.py").write_text('def bot(question):\n    return {"answer": "It is 1,200, or 900."}\n')
    row = {
        "id": "q0",
        "question": "How much?",
        "unit": "A",
        "expected_keywords": [{"sql": "SELECT amount FROM rent WHERE unit = :unit"}, "blue"],
    }
    (tmp_path / "golden.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "answerkey.toml").write_text(
        'questions = "golden.jsonl"\ntarget = "bot.py:bot"\n[truth.books]\nurl = "sqlite:///books.db"\n'
    )
    assert run_command(["run", "--store", "s.db", "--name", "night"]) == 0
    with closing(sqlite3.connect("books.db")) as books:
        books.execute("UPDATE rent SET amount = 7 WHERE unit = 'A'")
        books.commit()
    return row


def tried(client, row):
    page = post(client, action="try", text=json.dumps(row), **opened(client, "id=q0")).text
    computed = page.partition("Computed from the data</h2>")[2].partition("</table>")[0]
    return computed, page.partition("Stored replies, scored again</h2>")[2].partition("Patch</h2>")[0]


def test_replies_are_scored_again_with_the_values_that_their_run_computed(with_truth):
    with serving(lambda: open_store("s.db"), load_settings()) as client:
        computed, scores = tried(
            client, with_truth | {"expected_keywords": with_truth["expected_keywords"][:1]}
        )
        assert "1200" in computed
        # 1,200 is what the run expected; today it would be 7.
        assert re.findall(r'<td class="num">(?:<b>)?([\d.]+%)', scores) == ["80%", "100%"]
        assert "not scored" not in scores.lower()


def test_what_the_form_changed_is_computed_only_for_those_who_may_start_runs(with_truth):
    other_field = with_truth | {"unit": "B"}
    other_query = with_truth | {"expected_keywords": [{"sql": "SELECT 900"}]}
    for row in (other_field, other_query):
        with serving(lambda: open_store("s.db"), load_settings()) as client:
            computed, scores = tried(client, row)
            assert "not computed yet" in computed
            assert "1 of 1 runs not scored" in scores
            assert "--allow-run" in scores
        with serving(lambda: open_store("s.db"), load_settings(), allow_run=True) as client:
            computed, scores = tried(client, row)
            assert "900" in computed
            assert "computed now" in computed
            assert "What you changed was computed now" in scores
            assert "%" in scores
    broken = with_truth | {"expected_keywords": [{"sql": "DELETE FROM rent"}]}
    with serving(lambda: open_store("s.db"), load_settings(), allow_run=True) as client:
        assert tried(client, broken) == ("", "")
    with closing(sqlite3.connect("books.db")) as books:
        assert books.execute("SELECT COUNT(*) FROM rent").fetchone() == (2,)


def test_a_query_that_cannot_run_is_a_problem_and_is_not_saved(with_truth):
    wrong = with_truth | {"expected_keywords": [{"sql": "SELECT amount FROM rents"}]}
    with serving(lambda: open_store("s.db"), load_settings(), allow_run=True) as client:
        before, place = Path("golden.jsonl").read_bytes(), opened(client, "id=q0")
        for action in ("try", "save"):
            answer = post(client, action=action, text=json.dumps(wrong), **place)
            assert answer.status == (200 if action == "try" else 400)
            problem = answer.text.partition('class="card alert"')[2].partition("</p>")[0]
            assert "no such table: rents" in problem
            assert "SELECT amount FROM rents" in answer.text.partition("<textarea")[2], "the text is kept"
            for untrue in ("What lint says", "not computed yet", "was computed now"):
                assert untrue not in answer.text
        assert Path("golden.jsonl").read_bytes() == before


def test_a_query_that_failed_before_the_edit_does_not_prevent_it(with_truth):
    edited = with_truth | {"unit": "B", "category": "rent"}
    with serving(lambda: open_store("s.db"), load_settings(), allow_run=True) as client:
        # With another unit there is no stored value.
        Path("golden.jsonl").write_text(json.dumps(with_truth | {"unit": "B"}) + "\n")
        with closing(sqlite3.connect("books.db")) as books:
            books.execute("DROP TABLE rent")
        computed, scores = tried(client, edited)
        assert "no such table: rent" in computed
        assert "not computed yet" not in computed
        assert "was computed now" not in scores
        place = opened(client, "id=q0")
        assert post(client, action="save", text=json.dumps(edited), **place).status == 303


def test_a_second_question_with_an_id_is_refused_in_the_editor(served):
    client, file = served
    before, place = file.read_bytes(), opened(client, "id=q0")
    text = '{"id": "q1", "question": "My edit?"}'
    for action in ("try", "save"):
        page = post(client, action=action, text=text, **place).text
        assert "Another question of golden.jsonl has the id &#39;q1&#39;" in page
        assert "My edit?" in page.partition("<textarea")[2]
        assert f'name="digest" value="{place["digest"]}"' in page
    assert file.read_bytes() == before


def test_a_function_that_a_visitor_names_is_not_called(tmp_path):
    path, file = str(tmp_path / "s.db"), tmp_path / "golden.jsonl"
    (tmp_path / "evil.py").write_text(
        f"import pathlib\npathlib.Path({str(tmp_path / 'called')!r}).touch()\n"
        "def check(question, reply):\n    return True\n"
    )
    plain = {"id": "q0", "question": "What is fact 0 of the property file?"}
    row = plain | {"checks": [{"python": f"{tmp_path / 'evil.py'}:check"}]}
    file.write_text(json.dumps(plain) + "\n")
    with open_store(path) as store:
        add_run(store, "r1", questions=golden(2))
    with serving(lambda: open_store(path), questions=str(file)) as client:
        assert "Not scored: the function" in tried(client, row)[1]
        assert not (tmp_path / "called").exists()
        # The golden set names it already: every run calls it.
        file.write_text(json.dumps(row) + "\n")
        assert "%" in tried(client, row | {"category": "new"})[1]
        assert (tmp_path / "called").exists()
