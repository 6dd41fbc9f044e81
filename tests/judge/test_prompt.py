import json
import re
from pathlib import Path
from typing import Any

import pytest

from answerkey.judge.prompt import Item, encode_data, item_of, judge_messages, load_rubric
from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source, ToolCall

from .judging import ADDRESS, GOOD, ScriptedJudge, judge_all
from .scripted_judge import read_data

ADVERSARIAL: list[dict[str, str]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "adversarial.jsonl").read_text().splitlines()
]
RUBRIC = load_rubric("standard")
LOOKALIKE = re.compile(r"DATA[\s_-]*[0-9a-f]{16,}", re.IGNORECASE)


def as_sent(text: str) -> str:
    """A reply as the judge must find it: lone surrogates replaced, and nothing else."""
    return text.encode("utf-8", "replace").decode()


def frame(messages: list[dict[str, str]]) -> list[str]:
    """Everything around the data, with the marker that was drawn taken out."""
    found = read_data(messages)
    user = messages[1]["content"].split("\n")
    return [part.replace(found["marker"], "MARKER") for part in (messages[0]["content"], user[0], *user[2:])]


def test_there_are_enough_of_many_kinds() -> None:
    assert len(ADVERSARIAL) >= 40
    assert len({item["kind"] for item in ADVERSARIAL}) >= 12


@pytest.mark.parametrize("item", ADVERSARIAL, ids=lambda item: item["id"])
@pytest.mark.parametrize("place", ["reply", "source", "tool result", "earlier turn"])
def test_no_text_leaves_its_field(item: dict[str, str], place: str) -> None:
    text = item["reply"]
    replies = {
        "reply": Reply(text=text),
        "source": Reply(text="x", sources=(Source(id="d", text=text),)),
        "tool result": Reply(text="x", tool_calls=(ToolCall(name="t", result=text),)),
        "earlier turn": Reply(text="x"),
    }
    earlier = [("Hello", text)] if place == "earlier turn" else []
    shown = item_of(ADDRESS, replies[place], earlier=earlier)
    messages = judge_messages(RUBRIC, shown)
    found = read_data(messages)
    # What the judge finds between the markers is exactly the fields, and the text is where it belongs.
    expected: dict[str, Any] = {
        "reply": lambda: found["fields"]["reply"],
        "source": lambda: found["fields"]["sources"][0]["text"],
        "tool result": lambda: found["fields"]["tool_results"][0]["result"],
        "earlier turn": lambda: found["fields"]["conversation_so_far"][0]["chatbot"],
    }
    assert expected[place]() == as_sent(text)
    assert set(found["fields"]) == set(shown.fields)
    # Everything outside the data is word for word what it is for a harmless reply.
    harmless = judge_messages(RUBRIC, item_of(ADDRESS, GOOD))
    assert frame(messages) == frame(harmless)
    # The data is one line that no chat template, terminal or parser could take for structure.
    line = messages[1]["content"].split("\n")[1]
    assert not re.search(r"[<>\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\U000e0000-\U000e007f]", line)
    assert not LOOKALIKE.search(line)
    assert "[INST" not in line
    assert "[/INST" not in line
    assert messages[1]["content"].count(found["marker"]) == 2


def test_the_marker_is_drawn_anew_for_every_call(scripted: ScriptedJudge) -> None:
    judge_all(scripted.settings(), *((ADDRESS, Reply(text=f"Reply {number}")) for number in range(5)))
    markers = {call["data"]["marker"] for call in scripted.calls}
    assert len(markers) == 5
    for call in scripted.calls:
        assert call["data"]["marker"] in call["system"]


def test_a_real_judge_process_finds_every_text_in_its_field(scripted: ScriptedJudge) -> None:
    pairs = [(ADDRESS, Reply(text=item["reply"])) for item in ADVERSARIAL]
    scores, document = judge_all(scripted.settings(concurrency=20), *pairs)
    found = {call["data"]["fields"]["reply"] for call in scripted.calls}
    assert found == {as_sent(item["reply"]) for item in ADVERSARIAL}
    assert len({tuple(sorted(call["data"]["fields"])) for call in scripted.calls}) == 1
    assert document["unscored"] == 0
    # This judge reads only what it should; a reply scores where it says what the reference says, and nowhere else.
    for item, score in zip(ADVERSARIAL, scores, strict=True):
        assert score[0].value == (1.0 if "Montrose" in item["reply"] else 0.0), item["id"]


def test_the_system_message_is_the_same_up_to_the_marker() -> None:
    first, second = (judge_messages(RUBRIC, item_of(ADDRESS, GOOD))[0]["content"] for _ in range(2))
    alike = next(index for index, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1])
    # So that a provider's prompt cache, and a local model's, can have all of it.
    assert alike > 0.95 * len(first)


def test_encoding_keeps_every_ordinary_text_as_it_is() -> None:
    fields = {"reply": "Zoë paid €1 200,50 (≈ $1,300) – «fine»\nnext 漢字 🎉 [1] a < b"}
    assert json.loads(encode_data(fields)) == fields


@pytest.mark.parametrize("text", ["The data 20240831 is in.", "data: 0xdeadbeef", "END DATA 12345678"])
def test_honest_dates_and_numbers_are_not_taken_for_the_marker(text: str) -> None:
    assert encode_data({"reply": text}) == json.dumps({"reply": text})


def test_long_texts_are_cut_and_say_so() -> None:
    item = item_of(ADDRESS, Reply(text="x" * 5000), max_chars=300)
    assert item.fields["reply"].startswith("x" * 300 + " … [4700 characters left out]")


def test_the_hash_changes_with_all_that_is_shown() -> None:
    base = item_of(ADDRESS, GOOD)
    others = [
        item_of(ADDRESS, Reply(text="other")),
        item_of(ADDRESS, Reply(text=GOOD.text, sources=(Source(id="a", text="source"),))),
        item_of(ADDRESS, Reply(text=GOOD.text, tool_calls=(ToolCall(name="t", result={"a": 1}),))),
        item_of(ADDRESS, GOOD, earlier=[("q", "a")]),
        item_of(Question(id="address", question=ADDRESS.question, reference_answer="other"), GOOD),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == 6
    assert Item(dict(base.fields)).hash == base.hash
