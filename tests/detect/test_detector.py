"""The error detector on replies as users meet them, and on bad input."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerkey.detect.detector import SUSPECTED_FROM, detect_failure
from answerkey.detect.model import shipped_model


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (None, "null"),
        ("", "empty"),
        (" \u200b\n", "empty"),
        ("...", "empty"),
        ("```\n```", "empty"),
        ("null", "null"),
        ("\ufffd\ufffd\ufffd\ufffd", "malformed"),
        ("I encountered an error while searching...", "error_text"),
    ],
)
def test_replies_that_are_errors(text: str | None, kind: str) -> None:
    found = detect_failure(text)
    assert found is not None
    assert (found.kind, found.charged) == (kind, True)


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "None.",
        "hello",
        "Paid",
        "Neil Young",
        "442300",
        "Switzerland",
        "Yes.",
        "The rent for Unit 3 is $1,450, due on the first of each month.",
        "The most common error on Form 1065 is a missing EIN.",
        "The rent is $1,450 a month.\n\n---\nSource: the lease of Unit 3, page 2.",
        "Error 0x80070005 means that access was denied. Start the installer as administrator, then it works.",
    ],
)
def test_answers(text: str) -> None:
    found = detect_failure(text)
    assert found is None or not found.charged


@pytest.mark.parametrize(
    "text",
    [
        "Sorry, something went wrong on our end. Please try again later.",
        "Entschuldigung, bei der Abfrage ist ein Fehler aufgetreten. Bitte versuchen Sie es später erneut.",
        "Désolé, le service est momentanément indisponible. Veuillez réessayer plus tard.",
        "Lo siento, no se pudo conectar con la base de datos. Inténtelo de nuevo más tarde.",
        "申し訳ありません。サーバーでエラーが発生しました。後でもう一度お試しください。",
        "抱歉,系统出现错误,请稍后重试。",
        "죄송합니다. 서버 오류가 발생했습니다. 잠시 후 다시 시도해 주세요.",
        "عذراً، حدث خطأ في الخادم. يرجى المحاولة مرة أخرى لاحقاً.",
        "Извините, произошла ошибка сервера. Попробуйте позже.",
        "Rate limit reached: too many requests. Please wait 20 seconds and retry.",
    ],
)
def test_error_messages_in_many_languages(text: str) -> None:
    found = detect_failure(text)
    assert found is not None
    assert (found.kind, found.charged) == ("error_text", True)


def test_a_suspected_reply_has_words_span_and_probability() -> None:
    text = "  Hello Dana!\nThe ledger database crashed while I was reading the lease, so I could not finish, sorry. "
    found = detect_failure(text)
    assert found is not None
    assert text[found.start : found.end].strip().startswith("The ledger database crashed")
    assert found.message.startswith("The ledger database crashed")
    assert SUSPECTED_FROM <= found.probability <= 1
    assert found.because == ("model",)
    assert found.charged == (found.probability >= shipped_model().weights.charged_from)


def test_the_span_of_a_form_is_that_of_the_whole_reply() -> None:
    text = "\n Dear {{customer_name}}, your parcel is on its way."
    found = detect_failure(text)
    assert found is not None
    assert text[found.start : found.end] == "{{customer_name}}"


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=300))
def test_any_text_gets_a_verdict(text: str) -> None:
    found = detect_failure(text)
    if found is not None:
        assert found.kind in {"empty", "null", "error_text", "trace", "malformed", "truncated"}
        assert 0 <= found.start <= found.end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "\ud800\udfff" * 10,
        "\x00",
        "{" * 5000,
        "[" * 100_000,
        "`" * 5000,
        "\u200b" * 5000,
        "שלום " * 400,
        "İ" * 50,
        "🙂" * 3000,
    ],
)
def test_odd_input_does_not_crash(text: str) -> None:
    detect_failure(text)


@pytest.mark.parametrize(
    "piece",
    [
        "an error ",
        "a",
        "at x(",
        "{{ ",
        "sorry, ",
        "\u200b",
        "null ",
        "\n",
        "[1,",
        '{"error": ',
        "---\n",
        "<p>",
        "🙂",
        "抱歉",
    ],
)
def test_time_is_linear_in_the_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = time.process_time()
        detect_failure(text)
        return time.process_time() - start

    seconds(1000)
    # Ten times the length may cost ten times the time, not a hundred; a floor absorbs what is too short to measure.
    assert seconds(1_000_000) <= 30 * max(seconds(100_000), 0.01)
