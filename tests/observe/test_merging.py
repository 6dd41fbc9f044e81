"""What several observers saw of a question becomes one list, each call once."""

from answerkey.model.reply import Evidence, Reply, ToolCall, Usage
from answerkey.observe.observations import Gap, Observation, join_calls, join_observations

ASKED = ToolCall(name="query", id="c1", arguments={"sql": "SELECT 1"})
RAN = ToolCall(name="query", result="1", result_seen=True, start_ms=12.0, duration_ms=3.0)


def test_a_call_that_two_saw_is_one_with_what_each_saw_of_it() -> None:
    assert join_calls([ASKED], [RAN]) == (
        ToolCall(
            name="query",
            id="c1",
            arguments={"sql": "SELECT 1"},
            result="1",
            result_seen=True,
            start_ms=12.0,
            duration_ms=3.0,
        ),
    )


def test_ids_decide_before_arguments_and_arguments_before_order() -> None:
    first = ToolCall(name="query", id="a", arguments={"n": 1})
    second = ToolCall(name="query", id="b", arguments={"n": 1})
    third = ToolCall(name="query", arguments={"n": 2})
    results = [
        ToolCall(name="query", arguments={"n": 2}, result="two", result_seen=True),
        ToolCall(name="query", id="b", result="b", result_seen=True),
        ToolCall(name="query", id="a", result="a", result_seen=True),
    ]
    joined = join_calls([first, second, third], results)
    assert [(call.id, call.result) for call in joined] == [("a", "a"), ("b", "b"), (None, "two")]


def test_the_same_call_made_twice_stays_twice() -> None:
    assert len(join_calls([ASKED, ASKED], [ASKED, ASKED])) == 2
    assert len(join_calls([ASKED], [ASKED, ASKED])) == 2


def test_calls_with_other_ids_or_arguments_are_others() -> None:
    other = ToolCall(name="query", id="c2", arguments={"sql": "SELECT 1"})
    assert join_calls([ASKED], [other]) == (ASKED, other)
    assert (
        len(join_calls([ToolCall(name="f", arguments={"n": 1})], [ToolCall(name="f", arguments={"n": 2})]))
        == 2
    )


def test_a_call_that_only_one_saw_stands_beside_its_neighbours() -> None:
    calls = [ToolCall(name=name) for name in "abcd"]
    assert [call.name for call in join_calls([calls[0], calls[3]], calls)] == list("abcd")
    assert [call.name for call in join_calls(calls[2:], calls)] == list("abcd")


def test_a_tool_of_an_mcp_server_is_the_same_under_its_long_name() -> None:
    asked = ToolCall(name="mcp__files__read", id="c1", arguments={"path": "a"})
    ran = ToolCall(name="read", arguments={"path": "a"}, result="x", result_seen=True)
    assert [(call.name, call.result) for call in join_calls([asked], [ran])] == [("mcp__files__read", "x")]


def test_nothing_seen_changes_nothing() -> None:
    reply = Reply(text="hello")
    assert join_observations(reply, [Observation(kind="otel")]) is reply


def test_a_complete_observation_makes_none_a_fact_and_a_partial_one_does_not() -> None:
    reply = Reply(text="hello")
    complete = join_observations(reply, [Observation(kind="otel", shows_calls=True)])
    assert complete.evidence == Evidence(kind="otel", tools_observed=True)
    half = Observation(kind="otel", tool_calls=(RAN,), gaps=(Gap("2 spans did not arrive"),))
    partial = join_observations(reply, [half])
    assert partial.tool_calls == (RAN,)
    assert partial.evidence == Evidence(
        kind="otel", completeness="partial", tools_observed=False, unread=("2 spans did not arrive",)
    )


def test_a_gap_is_filled_only_by_an_observer_that_saw_the_same_model_call() -> None:
    reply = Reply(text="hello")
    seen = {"kind": "proxy", "tool_calls": (ASKED,), "shows_calls": True}
    cut_off = Gap("the calls that a model made", frozenset({"span-1", "response-1"}))
    trace = Observation(kind="otel", tool_calls=(RAN,), shows_calls=True, gaps=(cut_off,))
    same = join_observations(reply, [trace, Observation(**seen, known=frozenset({"response-1"}))])
    assert same.evidence == Evidence(kind="otel", tools_observed=True)
    assert len(same.tool_calls) == 1
    for known in (frozenset(), frozenset({"response-2"}), frozenset({"response-2", "response-3"})):
        other = join_observations(reply, [trace, Observation(**seen, known=known)])
        assert other.evidence.unread == ("the calls that a model made",)
        assert (other.evidence.completeness, other.evidence.tools_observed) == ("partial", False)


def test_what_the_chatbot_reports_is_not_all_if_an_observer_saw_more() -> None:
    reply = Reply(text="hello", evidence=Evidence(tools_observed=True))
    gap = (Gap("the answer to a pending request"),)
    assert join_observations(reply, [Observation(kind="proxy", gaps=gap)]).evidence == reply.evidence
    more = join_observations(reply, [Observation(kind="proxy", tool_calls=(RAN,), gaps=gap)])
    assert (more.evidence.completeness, more.evidence.tools_observed) == ("partial", False)


def test_observed_tokens_go_before_a_counter_that_all_questions_share() -> None:
    reply = Reply(text="hello", usage=Usage(input_tokens=88, output_tokens=56, cost=0.5))
    seen = Observation(kind="proxy", shows_calls=True, usage=Usage(input_tokens=44, output_tokens=28))
    assert join_observations(reply, [seen]).usage == Usage(input_tokens=44, output_tokens=28, cost=0.5)
    part = Observation(kind="proxy", usage=Usage(input_tokens=11), gaps=(Gap("a model's answer"),))
    assert join_observations(reply, [part]).usage == reply.usage


def test_a_trace_of_this_process_makes_up_for_spans_that_did_not_arrive() -> None:
    reply = Reply(text="1", tool_calls=(RAN,), evidence=Evidence(kind="otel", tools_observed=True))
    late = Observation(
        kind="otel", tool_calls=(RAN,), gaps=(Gap("2 parent spans did not arrive", is_lost_span=True),)
    )
    assert join_observations(reply, [late]).evidence == reply.evidence


def test_what_was_seen_from_outside_goes_before_what_the_chatbot_says() -> None:
    claimed = ToolCall(name="query", id="c1", arguments={"sql": "SELECT 2"}, result="2", result_seen=True)
    reply = Reply(text="2", tool_calls=(claimed,), evidence=Evidence(tools_observed=True))
    joined = join_observations(reply, [Observation(kind="proxy", tool_calls=(ASKED,), shows_calls=True)])
    assert [(call.arguments, call.result) for call in joined.tool_calls] == [({"sql": "SELECT 1"}, "2")]
