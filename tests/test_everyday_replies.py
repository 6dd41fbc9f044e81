"""Ordinary replies and ordinary errors through `answerkey score`: what the first users tried."""

import json
from pathlib import Path
from typing import Any

import pytest

ANSWERS = [
    "There are no open invoices for this patient.",
    "This patient has no open invoices.",
    "No open balance for this patient.",
    "The lab has not sent results for this patient yet.",
    "There is no connection after midnight.",
    "Der Termin ist leider nicht mehr verfügbar.",
    "Der Dienst ist sonntags nicht verfügbar.",
    "Das Modell ist derzeit nicht lieferbar.",
    "Ce modèle n'est pas disponible pour le moment.",
    "Il servizio non è disponibile la domenica.",
    "We do not have this model in stock at the moment.",
    "Your code returns None.",
    "The slope is undefined.",
    "Your variable is undefined.",
    "echo: hi",
    "dummy answer",
    "Lorem ipsum dolor sit amet",
    "mock response",
    "hey :)",
    "SELECT * FROM users WHERE id = 1;",
    "```python\nx = 1\n```",
    "Red / M / in stock: 12",
    "N/A for this model",
    "1. Open the app\n2. Tap Settings\n3. Tap Log out",
    "1. Open the app.\n2. Tap Settings.\n3. Tap Log out.",
    "- milk\n- eggs\n- bread",
    "Timeout: coach explains late-game call",
    "Steps:\n1. Open Settings\n2. Choose Billing\n3. Press Cancel plan",
    "Top 3:\n1. Paris\n2. Rome\n3. Berlin",
    "ready",
    "good evening :)",
    "Hello, I'm Robo. Ask me anything!",
    "throw new Error('bad input')",
    '{"answer": 42}',
    '[{"id": 1}, {"id": 2}]',
    '{"ok": true}',
    '{"result": "success", "id": 17}',
    "<xml><a>1</a></xml>",
    "Not available in red",
    "Check-in from 3 pm, check-out by 11 am",
    "Your order #1234 has shipped",
    "Null result for new drug",
    "Connection lost: why teens feel lonely",
    "Server shortage closes diners",
    "Tak",
    "こんにちは",
    "नमस्ते",
    "Γεια σας",
    "Answer: 42",
    "bot reply",
    "hello from bot v2",
    "[image]",
    "*waves*",
    "To reset your password:\n1. Go to Settings\n2. Tap Security\n3. Choose Reset password",
    "1. Unplug the router\n2. Wait 30 seconds\n3. Plug it back in",
    "Steps to install:\n1. Download the file\n2. Run the installer\n3. Restart your computer",
    'git checkout -b feature\ngit add .\ngit commit -m "msg"\ngit push',
    "Use this:\n```bash\nnpm run build\n```",
    "SELECT name FROM users;",
    "Your order has shipped",
    "Order status: shipped",
    "Answer: Paris",
    "Hey! Ask me a question :)",
    "Sure! :)",
    "ok :)",
    "Great ;)",
    "Thanks :-)",
    '{"city":"Ouray"}',
    "# Opening hours\nMon–Fri 9–17",
    "Hello! I'm Ava, your virtual assistant. Ask me about orders, returns or shipping!",
    "Please try again with your order number.",
    "Not available in your country",
    "This product is not available in blue.",
    "Hello world",
    "You said: hi",
    "TODO",
    "OK",
    "42",
    # The first users' own list has these as replies that may or may not be meant: they are suspected at most.
    "None",
    "{}",
    "[]",
    "500",
    # Rows of the scoring standard.
    "Your property is located at 900 S 9th St...",
    "The most common error on Form 1065 is a missing EIN.",
    "There are currently no business documents available in the system.",
    "reply to question number 0 please",
    "Op maandag zijn we gesloten",
    "🎈 Doors open at 6",
]
ERRORS = [
    ("Sorry, your request failed.", "error_text"),
    ("Response blocked by content filter.", "error_text"),
    ("Your balance is undefined.", "malformed"),
    ("The price is None.", "malformed"),
    ('<function=get_price_list>{"treatment": "crown"}</function>', "malformed"),
    ("Sorry, something went wrong. Please try again later.", "error_text"),
    ("Sorry, something went wrong. Please try again later", "error_text"),
    ("Something went wrong. Please try again later.", "error_text"),
    ("502 Bad Gateway", "error_text"),
    ("504 Gateway Timeout", "error_text"),
    ("Gateway Timeout", "error_text"),
    ("404 Not Found", "error_text"),
    ("403 Forbidden", "error_text"),
    ("401 Unauthorized", "error_text"),
    ("500 Internal Server Error", "error_text"),
    ("503 Service Unavailable", "error_text"),
    ("HTTP 500", "error_text"),
    ("ECONNRESET", "error_text"),
    ("ECONNREFUSED", "error_text"),
    ("connect ECONNREFUSED 127.0.0.1:5432", "error_text"),
    ("Bad Gateway", "error_text"),
    ("Forbidden", "error_text"),
    ("Unauthorized", "error_text"),
    ("Sorry, I couldn't process that. Please try again.", "error_text"),
    ("Sorry, there was a problem. Please try again in a few minutes.", "error_text"),
    # Punctuation alone says nothing.
    ("...", "empty"),
    ("…", "empty"),
    ("?", "empty"),
    ("!", "empty"),
    ("-", "empty"),
    # Rows of the scoring standard.
    ("I encountered an error while searching...", "error_text"),
    ("Your balance is undefined EUR as of NaN.", "malformed"),
    ("Dear {{customer_name}},", "malformed"),
]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Reply → its result in the run document of one `answerkey score`."""
    from answerkey.cli.main import run_command

    folder: Path = tmp_path_factory.mktemp("everyday")
    replies = [*ANSWERS, *(reply for reply, _ in ERRORS)]
    rows = [{"question": f"Question {number}", "answer": reply} for number, reply in enumerate(replies)]
    log, out = folder / "replies.jsonl", folder / "out.json"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert run_command(["score", str(log), "-o", str(out)]) == 0
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    return {result["reply"]["text"]: result for result in results}


@pytest.mark.parametrize("reply", ANSWERS)
def test_an_answer_is_not_charged(scored: dict[str, dict[str, Any]], reply: str) -> None:
    result = scored[reply]
    assert result["components"]["error_handling"]["score"] == 1.0
    assert result["reply"]["error"] is None


@pytest.mark.parametrize(("reply", "kind"), ERRORS)
def test_an_error_is_charged(scored: dict[str, dict[str, Any]], reply: str, kind: str) -> None:
    result = scored[reply]
    assert result["components"]["error_handling"]["score"] == 0.0
    assert result["reply"]["error"]["kind"] == kind


def test_the_reason_shows_the_words_that_decided(scored: dict[str, dict[str, Any]]) -> None:
    reason = scored["Your balance is undefined EUR as of NaN."]["components"]["error_handling"]["reason"]
    assert reason == "malformed: 'undefined EUR'"
    reason = scored["502 Bad Gateway"]["components"]["error_handling"]["reason"]
    assert reason == "error_text: '502 Bad Gateway'"


def test_a_bot_that_only_apologises_fails_the_error_gate(command: Any, tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(
        '{"question": "When are you open?", "expected_keywords": ["nine"]}\n'
    )
    (tmp_path / "bot.py").write_text(
        "def answer(question):\n    return 'Sorry, something went wrong. Please try again later.'\n"
    )
    outcome = command(
        "run", "golden.jsonl", "--target", "bot.py:answer", "--gate", "error_rate < 2%", "--json"
    )
    assert outcome.code == 1
    assert outcome.document["summary"]["errors"] == {"error_text": 1}
