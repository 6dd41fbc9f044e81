"""The nesting limit of JSON and YAML that comes from outside."""

from collections.abc import Callable
from pathlib import Path

import pytest

from answerkey.cli.main import run_command
from answerkey.transcripts.json_values import (
    MAX_JSON_DEPTH,
    NestingError,
    decode_json,
    decode_python_json,
    decode_strict_json,
    is_deeper,
)
from answerkey.transcripts.yaml_documents import decode_yaml


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("decode", [decode_json, decode_strict_json, decode_python_json, decode_yaml])
def test_every_decoder_has_the_same_limit(decode: Callable[[str], object]) -> None:
    assert decode(nested(MAX_JSON_DEPTH))
    for levels in (MAX_JSON_DEPTH + 1, 100_000):
        with pytest.raises(NestingError):
            decode(nested(levels))


def test_lenient_decoding_is_limited_too() -> None:
    assert decode_json('{"a": NaN}') == {"a": None}
    with pytest.raises(NestingError):
        decode_json(f"[NaN, {nested(5_000)}]")


def test_a_shared_list_is_visited_once_a_level() -> None:
    value: list[object] = []
    for _ in range(100):
        value = [value, value]
    assert not is_deeper(value, 101)
    value.append(value)
    assert is_deeper(value, 101)


@pytest.mark.parametrize("name", ["golden.yaml", "golden.json", "golden.jsonl"])
def test_a_deep_golden_set_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(f'{{"id": "a", "question": "Q?", "notes": {nested(3_000)}}}')
    assert run_command(["lint", str(path)]) == 2
    printed = capsys.readouterr()
    assert "nested too deeply" in printed.out + printed.err
    assert "Traceback" not in printed.err
