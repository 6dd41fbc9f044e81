"""Concepts in many languages."""

import pytest

from answerkey.detect.concepts import CONCEPTS, find_mentions


def spoken_of(text: str) -> set[str]:
    return {CONCEPTS[mention.concept] for mention in find_mentions(text.lower())}


@pytest.mark.parametrize(
    ("text", "concepts"),
    [
        ("Sorry, the server crashed.", {"sorry", "machine", "fail"}),
        ("Die Datenbank antwortet nicht.", {"machine", "timeout"}),
        ("サーバーでエラーが発生しました", {"machine", "error"}),
        ("เซิร์ฟเวอร์ไม่ตอบสนอง", {"machine", "timeout"}),
        ("Не удалось загрузить данные", {"cannot", "load", "result"}),
    ],
)
def test_a_concept_is_found_in_its_languages(text: str, concepts: set[str]) -> None:
    assert concepts <= spoken_of(text)


def test_a_short_term_is_a_whole_word_and_a_long_one_may_go_on() -> None:
    assert "error" not in spoken_of("The bugle sounds.")
    assert "error" in spoken_of("Problematisch ist das.")


def test_a_mention_has_its_span() -> None:
    text = "the server is fine"
    mention = next(m for m in find_mentions(text) if CONCEPTS[m.concept] == "machine")
    assert text[mention.start : mention.end] == "server"
