"""JUnit files are read back with an XML parser: what a CI would see."""

import io
from xml.etree import ElementTree

import msgspec

from answerkey.model.run import GateResult, Run
from answerkey.report.result_files import write_junit


def read(run: Run) -> ElementTree.Element:
    file = io.BytesIO()
    write_junit(run, file)
    return ElementTree.fromstring(file.getvalue())


def test_one_case_per_question_with_true_counts(golden_run: Run) -> None:
    root = read(golden_run)
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    names = [case.get("name") for case in cases]
    questions = {result.question.id for result in golden_run.results}
    assert len(names) == len(set(names))
    assert {name for name in names if name in questions} == questions
    assert int(suite.get("tests", "")) == len(cases)
    assert int(suite.get("failures", "")) == sum(case.find("failure") is not None for case in cases)
    assert int(suite.get("errors", "")) == sum(case.find("error") is not None for case in cases)
    assert root.get("tests") == suite.get("tests")


def test_a_failure_says_why(golden_run: Run) -> None:
    failed = [case for case in read(golden_run).iter("testcase") if case.find("failure") is not None]
    assert failed
    failure = next(case for case in failed if case.get("classname") != "answerkey.gates").find("failure")
    assert failure is not None
    assert "is below 0.7" in failure.get("message", "")


def test_the_properties_name_the_run_and_its_figures(golden_run: Run) -> None:
    listed = {one.get("name"): one.get("value") for one in read(golden_run).iter("property")}
    assert listed["answerkey.run"] == golden_run.id
    assert listed["answerkey.grade"] == golden_run.summary.grade
    assert {name for name in listed if name} >= {"answerkey.target", "answerkey.score", "answerkey.coverage"}


def test_failed_gates_are_cases(golden_run: Run) -> None:
    judged = msgspec.structs.replace(
        golden_run, gates=(GateResult("score >= 0.99", False, 0.5), GateResult("coverage == 1", True, 1.0))
    )
    cases = {case.get("name"): case for case in read(judged).iter("testcase")}
    assert cases["score >= 0.99"].find("failure") is not None
    assert cases["coverage == 1"].find("failure") is None


def test_hostile_text_stays_text(hostile_run: Run) -> None:
    root = read(hostile_run)
    text = "".join(root.itertext())
    assert "window.hacked" in text
    assert not {"\x1b", "\u202e"} & set(text)
    assert "\\u202e" in text
    assert "\x00" not in text


def test_equal_names_are_told_apart(golden_run: Run) -> None:
    results = list(golden_run.results)
    first = results[0]
    renamed = [
        msgspec.structs.replace(result, question=msgspec.structs.replace(result.question, id=name))
        for result, name in zip((first, results[1], results[2]), ("a", "b", "a"), strict=True)
    ]
    changed = msgspec.structs.replace(golden_run, results=renamed)
    names = [
        case.get("name")
        for case in read(changed).iter("testcase")
        if case.get("classname") != "answerkey.gates"
    ]
    assert names == ["a", "b", "a (2)"]
