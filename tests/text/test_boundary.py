import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.text.normalise import clean_text, decode_text

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        (None, "Zürich – 東京"),
        ("utf-8", "\ufeffZürich"),
        ("UTF8", "Zürich"),
        ("utf-16", "Zürich"),
        ("utf-16le", "Zürich"),
        ("utf-32", "Zürich"),
        ("latin-1", "Zürich"),
        ("iso-8859-15", "50 €"),
        ("windows-1252", "“quoted”"),
        ("cp1251", "Москва"),
        ("koi8-r", "Москва"),
        ("shift_jis", "東京"),
        ("euc-jp", "東京"),
        ("iso-2022-jp", "東京"),
        ("euc-kr", "서울"),
        ("gb2312", "北京"),
        ("gb18030", "北京"),
        ("big5", "臺北"),
        ("us-ascii", "plain"),
    ],
)
def test_charsets_of_real_servers(charset: str | None, text: str) -> None:
    assert decode_text(text.encode(charset or "utf-8"), charset) == (text.removeprefix("\ufeff"), None)


@pytest.mark.parametrize(
    "charset",
    [
        *(
            "utf-7",
            "punycode",
            "idna",
            "unicode_escape",
            "raw_unicode_escape",
            "rot13",
            "hex",
            "zlib",
            "base64",
        ),
        *("undefined", "mbcs", "no-such", "a\0b", "ü", "../x", "x" * 10_000, ""),
    ],
)
def test_other_codecs_are_never_used(charset: str) -> None:
    assert decode_text("Zürich \\ud800 +2AA-".encode(), charset) == ("Zürich \\ud800 +2AA-", None)
    text, wrong = decode_text(b"\xff\xfe\xfd", charset)
    assert text == "\ufffd\ufffd\ufffd"
    assert wrong is not None


@given(st.binary(), st.sampled_from([None, "utf-8", "utf-16", "latin-1", "shift_jis", "utf-7", "punycode"]))
def test_any_bytes_are_read(body: bytes, charset: str | None) -> None:
    text, wrong = decode_text(body, charset)
    clean_text(text).encode()
    if wrong is not None:
        assert clean_text(text) == text


@given(ANY_TEXT)
def test_clean_text_can_be_written_anywhere(text: str) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    cleaned.encode()
    assert clean_text(cleaned) == cleaned
    if "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text


def test_halves_that_stand_together_are_one_character() -> None:
    assert clean_text("\ud83d\ude00 \ud83d") == "😀 \ufffd"


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


@pytest.mark.parametrize("unit", ["a", "ü", "\0", "\ud800", "<", "+2AA-"])
@pytest.mark.parametrize(
    "charset", [None, "utf-7", "punycode", "utf-16", "shift_jis", "gb18030", "iso-2022-jp"]
)
def test_time_grows_with_the_length_and_no_faster(unit: str, charset: str | None) -> None:
    def work(length: int) -> Callable[[], object]:
        text = unit * (length // len(unit))
        body = text.encode("utf-8", "surrogatepass")
        return lambda: clean_text(text) + decode_text(body, charset)[0]

    # Sixteen times the text: a quadratic way would take 256 times as long.
    assert seconds(work(1_000_000)) < 64 * (seconds(work(62_500)) + 0.0005)
