import pytest

from answerkey.text.numbers import Quantity, find_quantities


def read(text: str) -> Quantity:
    return find_quantities(text)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("48 hours", "two days"),
        ("2 years", "24-month"),
        ("$442.3K", "$442,300.00"),
        ("18,400 kWh", "18.4 MWh"),
        ("90 minutes", "an hour and a half"),
        ("6.25%", "six and a quarter percent"),
        ("42.5%", "42,5 %"),
        ("24.300", "24,3 Tsd."),
        ("5:30 PM", "17:30"),
        ("75%", "three quarters"),
        ("-12", "minus twelve"),
        ("R$ 842 mil", "R$ 842.000,00"),
        ("14", "fourteen years"),
        ("7 days", "sieben Tage"),
        ("3 months", "trois mois"),
        ("48 hours", "dois dias"),
        ("14 days", "a fortnight"),
        ("14:30", "halb drei"),
        ("19:30", "half acht"),
        ("17:30", "cinq heures et demie"),
        ("9:15", "las nueve y cuarto"),
        ("16:00", "8 in the morning to 4 in the afternoon"),
        ("16:00", "10am-4pm"),
        ("3 m³", "three cubic metres"),
    ],
)
def test_the_same_amount_in_two_forms(one: str, other: str) -> None:
    assert any(read(one).equals(found) and read(one).fits(found) >= 0 for found in find_quantities(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("20 km/h", "20 mph"),
        ("$75,000", "£75,000"),
        ("37 ha", "37 acres"),
        ("8,600 square metres", "8,600 square feet"),
    ],
)
def test_another_unit_does_not_fit(one: str, other: str) -> None:
    assert read(one).fits(read(other)) == -1


@pytest.mark.parametrize("text", ["The rent is due today.", "Once days are short.", "an elf for days"])
def test_words_that_are_numbers_elsewhere_are_none(text: str) -> None:
    assert find_quantities(text) == []


def test_spans_are_those_of_the_text() -> None:
    text = "It came to €2.4 million in 2023."
    assert [text[found.start : found.end] for found in find_quantities(text)] == ["€2.4 million", "2023"]


def test_letters_that_only_look_like_i_and_s_spell_no_number() -> None:
    assert [found.dimension for found in find_quantities("half, thırd, ſix and sıx")] == ["%"]
