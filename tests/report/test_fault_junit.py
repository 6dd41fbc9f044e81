"""JUnit XML of a run of faults: a test for each fault and gate."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


def test_each_fault_and_gate_is_a_test(command: Callable[..., Any], tmp_path: Path) -> None:
    gates = ("--gate", "landed >= 1", "--gate", "resilience > 1")
    done = command("faults", "--target", "demo", "--sample", "6", *gates, "-o", "x.junit.xml", "--json")
    assert done.code == 1
    cases = done.document["cases"]
    suite = ElementTree.parse(tmp_path / "x.junit.xml").getroot()[0]
    faults = suite.findall("testcase[@classname='answerkey.faults']")
    assert len(faults) == len(cases) > 0
    assert {one.attrib["name"].split(" · ")[0] for one in faults} == {case["id"] for case in cases}
    handled = {"recovered", "honest", "partial"}
    failed = [case for case in cases if case["landed"] and case["outcome"] not in handled]
    skipped = [case for case in cases if not case["landed"]]
    assert [
        len(suite.findall(f"testcase[@classname='answerkey.faults']/{kind}"))
        for kind in ("failure", "skipped")
    ] == [
        len(failed),
        len(skipped),
    ]
    assert [
        one.find("failure") is None for one in suite.findall("testcase[@classname='answerkey.gates']")
    ] == [True, False]
    counts = {name: int(suite.attrib[name]) for name in ("tests", "failures", "skipped")}
    assert counts == {"tests": len(cases) + 2, "failures": len(failed) + 1, "skipped": len(skipped)}
