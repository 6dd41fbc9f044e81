"""`answerkey schema`: what the schemas accept is what is read and written."""

import tomllib
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import msgspec

CONFIG = """
questions = "golden.jsonl"
target = "demo"
gates = ["score >= 0.8"]
[map]
question = "Prompt"
[run]
repeat = 2
[scoring.weights]
tool_usage = 0.5
response_quality = 0.5
[scorers.polite]
python = "checks.py:polite"
words = ["please"]
"""


def validator(command: Callable[..., Any], what: str) -> Any:
    done = command("schema", what)
    assert (done.code, done.err) == (0, "")
    return jsonschema_rs.validator_for(done.document)


def test_the_bundled_questions_fit_and_slips_do_not(command: Callable[..., Any]) -> None:
    from answerkey_demo import golden_set_path

    schema = validator(command, "questions")
    for line in golden_set_path().read_text().splitlines():
        schema.validate(msgspec.json.decode(line))
    for slip in (
        {},
        {"question": " "},
        {"question": "x", "expected_keywords": "y"},
        {"question": "x", "tools": "t"},
    ):
        assert not schema.is_valid(slip)


def test_the_configuration(command: Callable[..., Any]) -> None:
    schema = validator(command, "config")
    schema.validate(tomllib.loads(CONFIG))
    for slip in ("targt = 'demo'", "[run]\nrepeet = 2", "[scoring]\nmatch = 5"):
        assert not schema.is_valid(tomllib.loads(slip)), slip


def test_a_run(command: Callable[..., Any]) -> None:
    schema = validator(command, "run")
    document = command("run", "--sample", "3", "--json").document
    schema.validate(document)
    del document["results"][0]["reply"]["text"]
    assert not schema.is_valid(document)


def test_other_names_are_refused(command: Callable[..., Any]) -> None:
    done = command("schema", "answers")
    assert done.code == 2
    assert "questions" in done.err
