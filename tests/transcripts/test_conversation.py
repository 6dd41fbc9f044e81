"""Long conversations as agents record them: many user messages, ids that repeat, an end in the middle."""

import json
import random
from typing import Any

import pytest

from answerkey.model.reply import Reply
from answerkey.transcripts.messages import TRANSCRIPT_NAMES, QuestionContext
from answerkey.transcripts.payloads import reply_from_payload
from answerkey.transcripts.recorded_rows import lacks_text, question_in_row, reply_in_row

Call = tuple[str, dict[str, Any], str | None]


class Scripted:
    """A conversation of which everything is known, because it was made up: what was said, called and brought, by exchange."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "You are an agent."}]
        self.asked: list[str] = []
        self.calls: list[list[Call]] = []
        self.texts: list[str | None] = []
        for number in range(self._random.randint(3, 30)):
            self._exchange(f"Request {number} of {seed}")
        # How it ends: with the user's last words, with a tool's result, or with an answer.
        ending = seed % 3
        if ending == 0:
            self.asked.append("###STOP###")
            self.calls.append([])
            self.texts.append(None)
            self.messages.append({"role": "user", "content": "###STOP###"})
        elif ending == 1:
            self._exchange("One more thing", answers=False)

    def _exchange(self, question: str, answers: bool = True) -> None:
        self.asked.append(question)
        self.messages.append({"role": "user", "content": question})
        calls: list[Call] = []
        text = None
        for _ in range(self._random.randint(0 if answers else 1, 3)):
            said = self._random.choice([None, "", "One moment."])
            text = said or text
            calls += self._step(said)
        if answers:
            text = f"Answer to {question}"
            self.messages.append({"role": "assistant", "content": text})
        self.calls.append(calls)
        self.texts.append(text)

    def _step(self, said: str | None) -> list[Call]:
        """Calls side by side, whose results come in any order; the ids begin anew in half of the steps."""
        made = []
        for place in range(self._random.randint(1, 3)):
            identity = (
                f"call_{place}" if self._random.random() < 0.5 else f"call_{self._random.getrandbits(40)}"
            )
            name = self._random.choice(["get_user", "get_order", "update_order"])
            made.append((identity, name, {"n": self._random.randint(0, 9)}))
        tool_calls = [
            {"id": one, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for one, name, given in made
        ]
        self.messages.append({"role": "assistant", "content": said, "tool_calls": tool_calls})
        results = {one: f"result {self._random.getrandbits(40)}" for one, _, _ in made}
        # Now and then a tool never comes back, and its id is used again later.
        lost = {one for one, _, _ in made if self._random.random() < 0.05}
        for one in self._random.sample(sorted(results), len(results)):
            if one not in lost:
                self.messages.append({"role": "tool", "tool_call_id": one, "content": results[one]})
        return [(name, given, None if one in lost else results[one]) for one, name, given in made]


def calls_of(reply: Reply) -> list[Call]:
    return [
        (call.name, call.arguments or {}, call.result if call.result_seen else None)
        for call in reply.tool_calls
    ]


@pytest.mark.parametrize("seed", range(200))
def test_200_conversations_are_read_exactly(seed: int) -> None:
    truth = Scripted(seed)
    whole = reply_from_payload({"messages": truth.messages})
    assert calls_of(whole) == [call for calls in truth.calls for call in calls]
    assert whole.text == [text for text in truth.texts if text is not None][-1]
    assert whole.evidence.tools_observed
    row = {"id": "q", "messages": truth.messages}
    for number, question in enumerate(truth.asked):
        ways = (
            lambda: reply_in_row(row, question),  # noqa: B023  # called at once
            lambda: reply_in_row(row, "the wording was changed", number, in_turns=True),  # noqa: B023
            lambda: reply_from_payload(row, context=QuestionContext(question, number, number > 0)),  # noqa: B023
        )
        reply = ways[(number + seed) % 3]()
        assert reply is not None
        assert (reply.text, calls_of(reply)) == (truth.texts[number], truth.calls[number])
    assert reply_in_row(row, "x", len(truth.asked), in_turns=True) is None


def test_a_row_without_a_question_is_known_by_its_first_user_message() -> None:
    truth = Scripted(1)
    assert question_in_row({"messages": truth.messages}) == truth.asked[0]


@pytest.mark.parametrize("name", TRANSCRIPT_NAMES)
@pytest.mark.parametrize("written", [list, json.dumps])
def test_a_row_has_its_transcript_under_any_of_the_names_that_live_replies_have(
    name: str, written: Any
) -> None:
    truth = Scripted(1)
    row = {"id": "q", name: written(truth.messages)}
    assert question_in_row(row) == truth.asked[0]
    for turn, question in enumerate(truth.asked):
        reply = reply_in_row(row, question, turn, in_turns=True)
        assert reply == reply_in_row({"id": "q", "messages": truth.messages}, question, turn, in_turns=True)
        assert not lacks_text(row, [reply] if reply else [])


@pytest.mark.parametrize("with_golden_set", [True, False])
def test_score_knows_a_row_without_id_and_question_by_its_first_user_message(
    command: Any, write_rows: Any, with_golden_set: bool
) -> None:
    conversation = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "Three."}]
    log = write_rows("log.jsonl", {"messages": conversation})
    golden = write_rows(
        "golden.jsonl", {"id": "count", "question": "How many?", "expected_keywords": ["three"]}
    )
    done = command("score", log, "--json", *(["--questions", golden] if with_golden_set else []))
    [result] = json.loads(done.out)["results"]
    assert result["reply"]["text"] == "Three."
    assert result["question"] == "How many?"
    assert not with_golden_set or result["id"] == "count"


def test_beside_an_answer_a_history_is_what_came_before_it() -> None:
    row = {"id": "q", "answer": "Four.", "history": Scripted(1).messages}
    assert question_in_row(row) is None
    reply = reply_in_row(row, "And two more?")
    assert reply is not None
    assert (reply.text, reply.tool_calls) == ("Four.", ())


def call(identity: str | None, name: str, **given: Any) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [made if identity is None else {"id": identity, **made}],
    }


def test_a_result_belongs_to_the_newest_open_call_of_its_id() -> None:
    messages = [
        call("c", "first"),
        call("c", "second"),
        {"role": "tool", "tool_call_id": "c", "content": "of the second"},
        {"role": "tool", "tool_call_id": "c", "content": "of the first"},
    ]
    reply = reply_from_payload({"messages": messages})
    assert [(one.name, one.result) for one in reply.tool_calls] == [
        ("first", "of the first"),
        ("second", "of the second"),
    ]


def test_a_result_told_twice_makes_no_call() -> None:
    result = {"role": "tool", "tool_call_id": "c", "name": "a", "content": "x"}
    reply = reply_from_payload({"messages": [call("c", "a"), result, result]})
    assert reply.tools_used == ("a",)


def test_results_without_ids_belong_to_the_newest_open_call_of_their_name() -> None:
    messages = [
        call(None, "a", n=1),
        call(None, "a", n=2),
        {"role": "tool", "name": "a", "content": "two"},
        {"role": "tool", "content": "one"},
    ]
    reply = reply_from_payload({"messages": messages})
    assert [one.result for one in reply.tool_calls] == ["one", "two"]


def test_the_text_is_the_last_thing_that_the_assistant_said() -> None:
    said = {"role": "assistant", "content": "Let me look."}
    called = call("c", "a")
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    user = {"role": "user", "content": "?"}
    assert reply_from_payload([user, said, called, result]).text == "Let me look."
    assert (
        reply_from_payload([user, said, called, result, {"role": "user", "content": "Well?"}]).text
        == "Let me look."
    )
    assert reply_from_payload([user, called, result]).text is None
    empty = {"role": "assistant", "content": ""}
    assert reply_from_payload([user, said, called, result, empty]).text == "", "an empty answer is one"


def test_what_is_not_understood_is_named_and_proves_nothing() -> None:
    odd = {"type": "telepathy", "thought": "…"}
    for messages in (
        [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [odd, {"type": "text", "text": "Yes."}]},
        ],
        [{"role": "user", "content": "?"}, odd, {"role": "assistant", "content": "Yes."}],
    ):
        reply = reply_from_payload({"messages": messages})
        assert reply.text == "Yes."
        assert reply.evidence.unread == ("telepathy",)
        assert (reply.evidence.completeness, reply.evidence.tools_observed) == ("partial", False)
    stranger = reply_from_payload([{"role": "user", "content": "?"}, {"role": "oracle", "content": "Yes."}])
    assert (stranger.text, stranger.evidence.unread) == ("Yes.", ("role oracle",))


def test_messages_in_a_row_are_one_thing_said() -> None:
    messages = [
        {"role": "user", "content": "Hello."},
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "Here."},
    ]
    for question in ("Hello.", "Where is it?"):
        assert reply_from_payload(messages, context=QuestionContext(question)).text == "Here."


def growth(payload: Any, larger: Any) -> float:
    """How many more steps the interpreter takes for ten times as much: counted, not timed."""
    import sys

    def steps(given: Any) -> int:
        taken = 0

        def count(*_: Any) -> Any:
            nonlocal taken
            taken += 1
            return count

        sys.settrace(count)
        try:
            reply_from_payload(given)
        finally:
            sys.settrace(None)
        return taken

    return steps(larger) / steps(payload)


def repeated(times: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "?"}]
    messages += [call("same", "a", n=number) for number in range(times)]
    return messages + [{"role": "tool", "tool_call_id": "same", "content": "x"}] * times


def at_once(times: int) -> list[dict[str, Any]]:
    calls = [call(None, "a", n=number)["tool_calls"][0] for number in range(times)]
    return [{"role": "assistant", "tool_calls": calls}, *[{"role": "tool", "content": "x"}] * times]


@pytest.mark.parametrize("make", [repeated, at_once])
def test_the_work_grows_as_the_transcript_does(make: Any) -> None:
    assert growth(make(50), make(500)) < 12


def test_depth_does_no_harm() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = {"content": [deep], "role": "assistant", "type": "tool_result", "output": [deep]}
    for payload in (deep, [deep], {"messages": [deep]}, {"output": deep}, {"parts": [deep]}):
        assert isinstance(reply_from_payload(payload), Reply)


USER = {"role": "user", "content": "What is the total?"}
SAID = {"role": "assistant", "content": "The total is 442300."}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "query", "arguments": "{}"}}],
}


@pytest.mark.parametrize(
    ("messages", "observed"),
    [
        # Logs often keep only what was said.
        ([SAID], False),
        ([USER, SAID], False),
        ([USER, SAID, USER, SAID], False),
        # The last step alone, as the AI SDK 7 has it under response.messages.
        ([{"role": "assistant", "content": [{"type": "text", "text": "The total is 442300."}]}], False),
        # Messages with a place for calls that is empty.
        ([USER, {**SAID, "tool_calls": []}], True),
        ([USER, {**SAID, "tool_calls": None}], True),
        ([USER, {"role": "assistant", "content": [{"type": "text", "text": "The total is 442300."}]}], True),
        ([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]},
          {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello."}]}], True),
        # A call in another exchange shows that calls are recorded.
        ([USER, CALLED, {"role": "tool", "tool_call_id": "c1", "content": "1"}, SAID, USER, SAID], True),
    ],
)  # fmt: skip
def test_a_transcript_proves_that_no_tool_was_called_only_if_it_would_show_a_call(
    messages: list[dict[str, object]], observed: bool
) -> None:
    reply = reply_from_payload({"messages": messages})
    assert reply.evidence.tools_observed is observed


ASKED, SAID = "How much is the rent?", "The rent is 900."
PLAIN = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}]


@pytest.mark.parametrize(
    "payload",
    [
        {"history": PLAIN},
        {"chat_history": PLAIN, "tools_used": []},
        {"data": {"history": PLAIN}},
        {"data": {"answer": SAID}, "tools_used": []},
        {"conversation": [{"sender": "user", "text": ASKED}, {"sender": "bot", "text": SAID}]},
        {"messages": [{"from": "customer", "content": ASKED}, {"from": "agent", "content": SAID}]},
        {"generated_text": SAID},
        [{"generated_text": SAID}],
        {"answer": SAID, "history": [{"role": "assistant", "content": "Hello!"}]},
    ],
)
def test_transcripts_and_texts_under_everyday_names(payload: Any) -> None:
    reply = reply_from_payload(payload, context=QuestionContext(ASKED))
    assert (reply.text, reply.failure, reply.tool_calls) == (SAID, None, ())
    assert reply.evidence.tools_observed == ("tools_used" in payload)


@pytest.mark.parametrize(
    ("payload", "fails"),
    [
        ({"success": False, "message": "Session expired"}, True),
        ({"ok": False, "message": "Session expired", "code": 7}, True),
        ({"success": True, "message": SAID}, False),
        ({"success": False, "answer": SAID, "message": "partial"}, False),
        ({"message": SAID}, False),
    ],
)
def test_a_body_that_says_that_it_failed_is_a_failure(payload: Any, fails: bool) -> None:
    reply = reply_from_payload(payload, context=QuestionContext(ASKED))
    if fails:
        assert reply.text is None
        assert reply.failure is not None
        assert reply.failure.message == "Session expired"
    else:
        assert (reply.text, reply.failure) == (SAID, None)


@pytest.mark.parametrize(
    "payload",
    [
        {"history": [{"role": "user", "content": ASKED}]},
        {"messages": [{"from": "Ann", "text": ASKED}, {"from": "Bob", "text": SAID}]},
        {"verdict": SAID, "tools_used": []},
    ],
)
def test_a_reply_whose_text_is_nowhere_says_what_it_has(payload: Any) -> None:
    reply = reply_from_payload(payload, context=QuestionContext(ASKED))
    assert reply.text is None
    assert reply.failure is not None
    assert f"(it has: {', '.join(payload)})" in reply.failure.message
