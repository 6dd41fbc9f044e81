"""Concepts in many languages."""

import pytest

from answerkey.detect.detector import (
    CONCEPTS,
    NAMES,
    Lexicon,
    Shelves,
    find_concepts,
    mask_of,
    read_features,
    said_in,
    said_together,
)


def spoken_of(text: str) -> set[str]:
    return {NAMES[place] for place in read_features(text, Lexicon(Shelves())).concepts} & set(CONCEPTS)


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


def test_a_term_of_several_words_needs_them_all() -> None:
    assert "sorry" in spoken_of("Es tut mir leid.")
    assert "sorry" not in spoken_of("Es tut mir gut.")
    assert ("tut mir leid", mask_of("sorry")) in (find_concepts("tut")[1] or {})["mi"]


def test_concepts_are_bits_of_a_number() -> None:
    both = mask_of("sorry", "fail")
    assert [CONCEPTS[n] for n in said_in(both)] == ["sorry", "fail"]
    assert len(said_together(both)) == 1
