"""`[errors]`: replies that a configuration allows, adds or does not suspect, in every entry."""

from pathlib import Path
from typing import Any

import pytest

import answerkey as ak
from answerkey.errors import ConfigError
from answerkey.model.options import AddedError, ErrorSettings, Scoring
from answerkey.scorers.grader import make_grader

APOLOGY = "Sorry, something went wrong. Please try again later."
SUSPICIOUS = "None"


def handled(reply: str, settings: ErrorSettings) -> tuple[float | None, str | None]:
    """The score of error handling and the kind of the error."""
    card = ak.score({"question": "Q"}, {"answer": reply}, Scoring(errors=settings))
    return card.components["error_handling"].value, None if card.error is None else card.error.kind


def test_the_default() -> None:
    assert handled(APOLOGY, ErrorSettings()) == (0.0, "error_text")
    assert handled("The kitchen is closed.", ErrorSettings()) == (1.0, None)


@pytest.mark.parametrize(
    "entry", ["sorry,  something went wrong. Please try again later", "/something went wrong/"]
)
def test_an_allowed_reply_is_an_answer(entry: str) -> None:
    assert handled(APOLOGY, ErrorSettings(allow=(entry,))) == (1.0, None)


def test_a_text_is_the_whole_reply() -> None:
    assert handled(APOLOGY, ErrorSettings(allow=("something went wrong",))) == (0.0, "error_text")


def test_an_added_reply_is_an_error_of_its_kind() -> None:
    settings = ErrorSettings(add=("The kitchen is closed", AddedError(text="/^closed for/", kind="timeout")))
    assert handled("the kitchen is closed.", settings) == (0.0, "error_text")
    assert handled("Closed for today", settings) == (0.0, "timeout")


def test_suspicion_costs_nothing_and_can_be_switched_off() -> None:
    card = ak.score({"question": "Q"}, {"answer": SUSPICIOUS})
    assert card.components["error_handling"].value == 1.0
    assert card.suspected is not None
    assert card.suspected.words == SUSPICIOUS
    off = ak.score({"question": "Q"}, {"answer": SUSPICIOUS}, Scoring(errors=ErrorSettings(suspect=False)))
    assert off.suspected is None


def test_the_settings_are_part_of_the_scoring_hash() -> None:
    default, other = make_grader(), make_grader(Scoring(errors=ErrorSettings(allow=("x",))))
    assert default.hash != other.hash


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"allow": ("/(/",)}, "does not compile"),
        ({"add": (" ",)}, "an entry is empty"),
        ({"allow": ("//",)}, "an entry is empty"),
    ],
)
def test_bad_entries_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ErrorSettings(**settings)


def test_a_log_is_scored_by_the_file(command: Any, write_rows: Any, tmp_path: Path) -> None:
    (tmp_path / "answerkey.toml").write_text(
        '[errors]\nallow = ["/went wrong/"]\nadd = [{text = "later", kind = "tool"}]\n'
    )
    rows = write_rows(
        "log.jsonl",
        *({"question": f"Q{n}", "answer": text} for n, text in enumerate([APOLOGY, "Later!", SUSPICIOUS])),
    )
    outcome = command("score", rows, "--json")
    assert outcome.code == 0, outcome.err
    summary = outcome.document["summary"]
    assert summary["errors"] == {"tool": 1}
    assert summary["suspected_errors"] == 1
    assert [reply["words"] for reply in summary["suspected_replies"]] == [SUSPICIOUS]
    suspected = [
        result["components"]["error_handling"].get("suspected") for result in outcome.document["results"]
    ]
    assert [found and found["words"] for found in suspected] == [None, None, SUSPICIOUS]


def test_an_unknown_setting_is_refused(command: Any, write_rows: Any, tmp_path: Path) -> None:
    (tmp_path / "answerkey.toml").write_text("[errors]\nalow = []\n")
    outcome = command("score", write_rows("log.jsonl", {"question": "Q", "answer": "A"}))
    assert outcome.code == 2
    assert "did you mean 'allow'" in outcome.err


def test_a_reply_that_stopped_at_the_token_limit_is_truncated() -> None:
    card = make_grader().grade_turn(
        ak.Question(id="q", question="Q"), ak.Reply(text="The rent is due", finish="length")
    )
    assert card.error is not None
    assert card.error.kind == "truncated"
