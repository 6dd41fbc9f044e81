"""Replies that are error messages through and through, and answers that resemble them."""

import tomllib
from pathlib import Path

import pytest

from answerkey.detect import detector
from answerkey.detect.detector import FAILURE_WORD, detect_failure, read_message, scan

# One message a language; no list has any of them as a phrase.
MESSAGES = {
    "en": "Oh dear, our server seems to have crashed. Give it a minute and send your question again.",
    "de": "Da ist etwas schiefgelaufen. Bitte versuchen Sie es später erneut.",
    "fr": "Une erreur est survenue. Veuillez réessayer plus tard.",
    "es": "Algo salió mal. Inténtalo de nuevo más tarde.",
    "ca": "S'ha produït un error. Torneu-ho a provar més tard.",
    "pt": "Ocorreu um erro. Tente novamente mais tarde.",
    "it": "Qualcosa è andato storto. Riprova più tardi.",
    "nl": "Er is iets misgegaan. Probeer het later opnieuw.",
    "sv": "Något gick fel. Försök igen om en stund.",
    "da": "Der opstod en fejl. Prøv igen senere.",
    "nb": "Det oppstod en feil. Prøv igjen senere.",
    "is": "Villa kom upp. Reyndu aftur síðar.",
    "fi": "Tapahtui virhe. Yritä myöhemmin uudelleen.",
    "et": "Tekkis viga. Palun proovige hiljem uuesti.",
    "lv": "Radās kļūda. Lūdzu, mēģiniet vēlāk.",
    "lt": "Įvyko klaida. Bandykite vėliau.",
    "pl": "Wystąpił błąd. Spróbuj ponownie później.",
    "cs": "Došlo k chybě. Zkuste to prosím později.",
    "sk": "Nastala chyba. Skúste to neskôr.",
    "sl": "Prišlo je do napake. Poskusite znova.",
    "hr": "Došlo je do pogreške. Molimo pokušajte ponovno.",
    "bg": "Възникна грешка. Моля, опитайте отново по-късно.",
    "ro": "A apărut o eroare. Vă rugăm să încercați din nou mai târziu.",
    "hu": "Hiba történt. Kérjük, próbálja újra később.",
    "el": "Παρουσιάστηκε σφάλμα. Παρακαλώ δοκιμάστε ξανά αργότερα.",
    "tr": "Bir hata oluştu. Lütfen daha sonra tekrar deneyin.",
    "ru": "Произошла ошибка. Попробуйте позже.",
    "uk": "Сталася помилка. Спробуйте ще раз за кілька хвилин.",
    "ar": "حدث خطأ. يرجى المحاولة مرة أخرى لاحقًا.",
    "fa": "خطایی رخ داد. لطفا بعدا دوباره تلاش کنید.",
    "he": "אירעה שגיאה. נסו שוב מאוחר יותר.",
    "hi": "त्रुटि हुई। कृपया बाद में पुनः प्रयास करें।",
    "bn": "একটি ত্রুটি ঘটেছে। পরে আবার চেষ্টা করুন।",
    "ja": "エラーが発生しました。しばらくしてからもう一度お試しください。",
    "zh": "系统出现错误，请稍后再试。",
    "ko": "오류가 발생했습니다. 잠시 후 다시 시도해 주세요.",
    "vi": "Đã xảy ra lỗi. Vui lòng thử lại sau.",
    "id": "Terjadi kesalahan. Silakan coba beberapa saat lagi.",
    "th": "เกิดข้อผิดพลาด กรุณาลองใหม่อีกครั้ง",
    "sw": "Samahani, hitilafu imetokea. Tafadhali jaribu tena baadaye.",
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_messages_in_many_languages(message: str) -> None:
    found = detect_failure(message)
    assert found is not None
    assert (found.kind, found.charged) == ("error_text", True)


@pytest.mark.parametrize(
    "message",
    [
        "Oops, that failed. Try again.",
        "Sorry, our system is down.",
        "Database error (0x80004005).",
        "Unable to load your request (HTTPError 502).",
    ],
)
def test_short_messages_are_charged(message: str) -> None:
    assert len(message) < 50
    found = detect_failure(message)
    assert found is not None
    assert found.charged


@pytest.mark.parametrize(
    "reply",
    [
        "Too many requests come in on Mondays, which is why we suggest calling midweek.",
        "You have used 80% of your monthly API quota.",
        "The most frequent exceptions in your log are NullPointerException (41) and TimeoutException (12).",
        "I'm sorry, but I can't help with getting into someone else's account.",
        "No problem, glad that solved it.",
        "No incidents this week.",
        "Für Halle 2 sind heute keine Störungen gemeldet.",
        "Tak, ale proszę pamiętać o legitymacji.",
        "Sorry, the blue one is out of stock. Please try again next week.",
        "Your payment failed because the card has expired.",
        "The server room is offline for maintenance on Sunday from 02:00 to 04:00.",
        "HTTP 503 means the server is temporarily unable to handle the request.",
        "Please try again with your order number.",
        "Your SSO login fails because your account is locked. I have unlocked it, please try again now.",
    ],
)
def test_answers_are_not_charged(reply: str) -> None:
    found = detect_failure(reply)
    assert found is None or not found.charged


def test_the_sentence_that_reports_the_failure_is_shown() -> None:
    text = "Hello Dana! An unexpected error occurred. Please try again later."
    message = read_message(text)
    assert message is not None
    assert text[message.start : message.end].strip() == "An unexpected error occurred."


def test_each_word_of_a_failure_is_found_in_ascii_and_in_other_replies() -> None:
    sections = tomllib.loads(Path(detector.__file__).with_name("words.toml").read_text("utf-8"))
    failing = [sections[heading] for heading in ("fault", "cannot", "down", "late", "limit")]
    words = {
        word.rstrip("*").replace("_", " ")
        for lines in failing
        for line in lines.values()
        for word in line.split()
    }
    assert len(words) > 1400
    for word in words:
        for reply in (f"1 {word} 2", f"é {word} 2"):
            assert FAILURE_WORD in scan(reply), reply
    assert not scan("Rent is 12 a month.")
    assert not scan("Rent is 12 € a month.")
