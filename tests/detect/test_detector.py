"""The error detector on replies as users meet them, and on bad input."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerkey.detect import detector as features
from answerkey.detect.detector import detect_failure, failure_kinds, shipped_model


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Your property is located at 900 S 9th St...", None),
        (None, "null"),
        ("I encountered an error while searching...", "error_text"),
        ("The most common error on Form 1065 is a missing EIN.", None),
    ],
)
def test_rows_of_the_standard(text: str | None, kind: str | None) -> None:
    found = detect_failure(text)
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \u200b\n", "empty"),
        ("...", "empty"),
        ("<p>&nbsp;</p>", "empty"),
        ("Final Answer:", "empty"),
        ("null", "null"),
        ("null, null", "null"),
        ("undefined", "null"),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in load\nValueError: bad', "trace"),
        (
            "java.lang.IllegalStateException: closed\n\tat a.Pool.get(Pool.java:41)\n\tat a.Main.main(Main.java:9)",
            "trace",
        ),
        ('{"error": {"code": 500, "message": "Internal Server Error"}}', "error_text"),
        ('{"success": false, "message": "backend gone"}', "error_text"),
        ('{"name": "query_database", "arguments": {"sql": "SELECT 1"}}', "malformed"),
        ('{"role": "assistant", "content": null}', "malformed"),
        ("[object Object]", "malformed"),
        ("<|im_start|>assistant", "malformed"),
        ("\ufffd\ufffd\ufffd\ufffd", "malformed"),
    ],
)
def test_certain_forms(text: str, kind: str) -> None:
    found = detect_failure(text)
    assert found is not None
    assert found.kind == kind


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
        '{"rent": 1450, "currency": "USD"}',
        '{"order": 17, "errors": 0, "status": "shipped"}',
        'Yours:\n\n  File "a.py", line 3\nValueError: bad\n\nThe column holds text, so convert it to dates before you compare.',
        "The rent for Unit 3 is $1,450, due on the first of each month.",
        "Error 0x80070005 means that access was denied. Start the installer as administrator, then it goes through.",
    ],
)
def test_answers(text: str) -> None:
    assert detect_failure(text) is None


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
def test_notices_in_many_languages(text: str) -> None:
    found = detect_failure(text)
    assert found is not None
    assert found.kind == "error_text"


def test_it_says_what_decided_and_where() -> None:
    text = "  Hello Dana!\nThe ledger database crashed while I was reading it, sorry. "
    found = detect_failure(text)
    assert found is not None
    assert text[found.start : found.end].strip().startswith("The ledger database crashed")
    assert found.message.startswith("The ledger database crashed")
    assert any("database" in reason or "crashed" in reason for reason in found.because)
    assert 0.35 < found.probability <= 1


def test_the_span_in_a_long_reply_is_one_of_the_whole_reply() -> None:
    text = "Sorry, the server crashed. " + "The server failed again and I could not load anything. " * 200
    found = detect_failure(text)
    assert found is not None
    assert " ".join(text[found.start : found.end].split())[:50] == found.message[:50]


def test_a_rule_before_the_last_line_is_read_like_any_line() -> None:
    assert detect_failure("The rent is $1,450 a month.\n\n---\nSource: the lease of Unit 3, page 2.") is None


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=300))
def test_any_text_gets_a_verdict(text: str) -> None:
    found = detect_failure(text)
    if found is not None:
        assert found.kind in {"empty", "null", "error_text", "trace", "malformed"}
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
        "hundred ",
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


@pytest.fixture(scope="module")
def replies() -> list[str | None]:
    path = Path(__file__).parents[2] / "labelled/error_replies/mixed_one.jsonl"
    return [json.loads(line)["reply"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_many_texts_at_once_are_of_the_same_kinds(replies: list[str | None]) -> None:
    one_by_one = [found.kind if (found := detect_failure(text)) else None for text in [*replies, None, ""]]
    assert failure_kinds([*replies, None, ""]) == one_by_one


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("placeholders", features._PLACEHOLDER),
        ("traces", features._TRACE),
        ("raw_object", features._RAW_OBJECT),
        ("code_in_brackets", features._CODE_IN_BRACKETS),
        ("list_lines", features._LIST_LINE),
    ],
)
def test_what_words_announce_is_looked_for(
    name: str, pattern: "re.Pattern[str]", replies: list[str | None]
) -> None:
    place, lexicon = features.FIGURES.index(name), shipped_model().lexicon
    odd = [
        "Action Input: x",
        "object at 0x7f",
        "goroutine 4",
        "a\nfrom x:3",
        "a\n\tat b.c(d)",
        'File "a", line 3',
        "1. one",
        "#0 /a",
    ]
    for text in filter(None, [(reply or "").strip() for reply in [*replies, *odd]]):
        clipped = features.clip(text)
        reading = features.read_features(clipped, lexicon)
        assert bool(reading.figures[place]) == bool(pattern.search(clipped)), text
