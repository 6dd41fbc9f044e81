"""Variants as text."""

import pytest

from answerkey_demo import VARIANTS, golden_set_path, open_chatbot, parse_variant
from answerkey_demo.chatbot import FAULTS


@pytest.mark.parametrize("text", ["", "default", "demo", "demo:default"])
def test_the_default_variant_has_several_spellings(text: str) -> None:
    assert parse_variant(text).name == "default"


def test_settings_of_the_flaky_variant() -> None:
    variant = parse_variant("demo:flaky?kinds=timeout,empty&rate=0.25&seed=7")
    assert (variant.kinds, variant.rate, variant.seed) == (("timeout", "empty"), 0.25, 7)
    assert parse_variant("flaky").kinds == FAULTS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nope", "default, basic, openai, flaky"),
        ("flaky?kinds=coffee", "no fault 'coffee'"),
        ("flaky?kinds=", "no fault ''"),
        ("flaky?rate=2", "between 0 and 1"),
        ("flaky?rate=lots", "must be a number"),
        ("flaky?seed=x", "whole number"),
        ("flaky?colour=red", "unknown setting colour"),
        ("flaky?garbage", "like kinds="),
        ("basic?rate=0.5", "takes no settings"),
    ],
)
def test_what_is_wrong_is_said(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="demo") as caught:
        parse_variant(text)
    assert reason in str(caught.value)


def test_an_unknown_variant_cannot_be_opened() -> None:
    with pytest.raises(ValueError, match=", ".join(VARIANTS)):
        open_chatbot("turbo")


def test_the_model_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSWERKEY_DEMO_MODEL", raising=False)
    with pytest.raises(ValueError, match="ANSWERKEY_DEMO_MODEL"):
        open_chatbot("openai")


def test_the_golden_set_comes_with_the_package() -> None:
    assert golden_set_path().is_file()
