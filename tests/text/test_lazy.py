"""Patterns compiled at their first use."""

import ast
import re
from pathlib import Path

import answerkey.detect
from answerkey.text.normalise import lazy


def test_finds_what_the_compiled_pattern_finds() -> None:
    ours, theirs = lazy(r"(\d+)\s*(GB|mb)", re.IGNORECASE), re.compile(r"(\d+)\s*(GB|mb)", re.IGNORECASE)
    text = "from 5 gb to 20MB"
    for _ in range(2):
        assert [found.span() for found in ours.finditer(text)] == [
            found.span() for found in theirs.finditer(text)
        ]
        assert ours.sub("?", text) == theirs.sub("?", text)
        assert ours.search("none") is None
        assert (ours.pattern, ours.flags) == (theirs.pattern, theirs.flags)


def test_every_lazy_pattern_compiles() -> None:
    import importlib
    import pkgutil

    found = 0
    for module in pkgutil.walk_packages(answerkey.detect.__path__, "answerkey.detect."):
        source = Path(str(importlib.import_module(module.name).__file__)).read_text(encoding="utf-8")
        names = [
            target.id
            for node in ast.parse(source).body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets
            if isinstance(node.value.func, ast.Name) and node.value.func.id == "lazy"
            if isinstance(target, ast.Name)
        ]
        for name in names:
            assert re.compile(getattr(importlib.import_module(module.name), name).pattern)
            found += 1
    assert found >= 6
