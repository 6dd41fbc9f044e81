"""Texts of other languages: their numbers keep their places, and their nouns are no names."""

import pytest

from answerkey.grounded.claims.extract import find_claims
from answerkey.grounded.claims.language import comma_decimals, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Kaution beträgt drei Monatsmieten.", "de"),
        ("Le musée est ouvert de 10 h à 18 h.", "fr"),
        ("El contrato empezó en octubre y vence en mayo.", "es"),
        ("The deposit is three months' rent.", "en"),
        ("1,450.00", "en"),
    ],
)
def test_the_language_shows_in_the_frequent_words(text, language):
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.350 €", "1,350 €"),
        ("12,50 €", "12.50 €"),
        ("17,5 % mehr", "17.5 % mehr"),
        (
            "Das sind 37,5 Stunden von insgesamt 1.284 im Jahr",
            "Das sind 37.5 Stunden von insgesamt 1,284 im Jahr",
        ),
        ("It is 1.350 m long and has 1,350 rivets", "It is 1.350 m long and has 1,350 rivets"),
        ("rows 3,5 and 7", "rows 3,5 and 7"),
    ],
)
def test_numbers_are_written_the_english_way_at_the_same_places(text, expected):
    assert comma_decimals(text) == expected


def claims(text):
    return [(claim.kind, claim.text) for claim in find_claims(text)]


def test_german_nouns_are_no_names_but_people_and_firms_are():
    text = "Für Ihre Wohnung zahlt Frau Lena Hoffmann die Miete von 1.350 € an die Nordwall Versicherung."
    assert claims(text) == [
        ("name", "Lena Hoffmann"),
        ("money", "1.350 €"),
        ("name", "Nordwall Versicherung"),
    ]


def test_words_that_open_a_french_or_spanish_sentence_are_no_names():
    assert claims("Quels sont les tarifs ? L'entrée est à 8 €.") == [("money", "8 €")]
    assert claims("La renta es alta. El arrendador es Juan Pérez.") == [("name", "Juan Pérez")]
