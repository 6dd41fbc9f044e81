"""ModelTurn: one turn of a conversation with a model, step by step: ask, run the tools that it calls, go on until it answers.

Its state outlives an attempt. A step that is turned away (429, 5xx, a connection that breaks) is for the engine to have
made again, and what was done before it is not done twice.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Evidence, Failure, Reply, Source, Timings, ToolCall, Usage
from answerkey.protocols import RetryableError
from answerkey.providers.model_api import ModelApi, Step
from answerkey.transcripts.fields.usage import add_usage

_CUT_OFF = "the call was cut off at the model's limit of tokens"


class TimedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step as it was answered; times are on the clock of time.perf_counter."""

    step: Step
    # When the request that was answered began, when the first word of the answer came, and the last byte.
    begun: float
    first_word: float | None = None
    ended: float
    # Requests that died with their kept-alive connection and were sent again.
    resent: int = 0


class ModelTurn:
    """What has been said, called and used in one turn so far."""

    def __init__(self, api: ModelApi, turn: int, history: Sequence[JsonObject], question: str) -> None:
        self.turn = turn
        self.finished = False
        self._history = history
        # In the API's own form: what is sent with the next step, and at the end what later turns begin with.
        self.messages: list[JsonObject] = [*history, api.said("user", question)]
        self._api = api
        self._calls: list[ToolCall] = []
        # Calls that were begun, and whose end nobody has seen yet.
        self._under_way: tuple[ToolCall, ...] = ()
        self._sources: list[Source] = []
        self._thoughts: list[str] = []
        self._usage: Usage | None = None
        self._steps = 0
        self._worked_ms = 0.0
        # What of it is from earlier attempts.
        self._before_ms = 0.0
        self._first_word_ms: float | None = None
        self._resent = 0
        # What it last said, beside calls.
        self._text: str | None = None

    def before(self, turn: int) -> Sequence[JsonObject]:
        """What was said before a turn, which is this one (asked anew) or a later one."""
        return self.messages if self.turn < turn else self._history if self.turn == turn else []

    async def go_on(
        self,
        ask_step: Callable[[Sequence[JsonObject]], Awaitable[TimedStep]],
        call: Callable[[ToolCall], Awaitable[ToolCall]],
        most_steps: int,
    ) -> Reply:
        """The reply, from wherever the turn stands; raises RetryableError for a step that may be made again."""
        while self._steps < most_steps:
            try:
                timed = await ask_step(self.messages)
            except RetryableError as error:
                error.so_far = self._reply(Reply(), self._worked_ms - self._before_ms)
                self._before_ms = self._worked_ms
                raise
            step = timed.step
            self._note(timed)
            if step.reply.failure is not None or not (step.calls or step.paused):
                return self._end(step.reply)
            if step.reply.finish == "length" and step.calls:
                self._calls += [msgspec.structs.replace(one, error=_CUT_OFF) for one in step.calls]
                return self._end(Reply(failure=Failure("malformed", _CUT_OFF), finish="length"))
            began = time.perf_counter()
            self._under_way = step.calls
            done = await asyncio.gather(*(call(one) for one in step.calls))
            self._under_way = ()
            self._worked_ms += 1000 * (time.perf_counter() - began)
            self._calls += done
            self.messages += [*step.kept, *(self._api.results(done) if done else ())]
        message = f"the model still called tools after {most_steps} turns"
        return self._end(Reply(failure=Failure("exception", message)))

    def _note(self, timed: TimedStep) -> None:
        """Count a step that was answered."""
        step, reply = timed.step, timed.step.reply
        self._steps += 1
        self._resent += timed.resent
        if timed.first_word is not None:
            self._first_word_ms = self._worked_ms + 1000 * (timed.first_word - timed.begun)
        self._worked_ms += 1000 * (timed.ended - timed.begun)
        self._usage = add_usage(self._usage, reply.usage)
        self._sources += reply.sources
        if reply.reasoning:
            self._thoughts.append(reply.reasoning)
        if reply.text is not None and (not step.calls or reply.text.strip()):
            self._text = reply.text
        # Calls that the provider made itself; a name alone is no call that anybody made.
        ours = {one.name for one in step.calls}
        hosted = [one for one in reply.tool_calls if one.name not in ours]
        self._calls += [one for one in hosted if one.id is not None or one.result_seen]
        if not step.calls and not step.paused:
            self.messages += step.kept

    def so_far(self) -> Reply:
        """What was done until now, in a turn that is given up."""
        self.finished = True
        return msgspec.structs.replace(self._reply(Reply(), 0.0), timings=Timings())

    def _end(self, last: Reply) -> Reply:
        """The reply of the whole turn, whose last step this is."""
        self.finished = True
        return self._reply(last, self._worked_ms)

    def _reply(self, last: Reply, worked_ms: float) -> Reply:
        """All that was seen, with what the last step says of itself."""
        return msgspec.structs.replace(
            last,
            text=self._text,
            tool_calls=(*self._calls, *self._under_way),
            sources=tuple(self._sources),
            usage=self._usage,
            reasoning="\n\n".join(self._thoughts) or None,
            # The loop is ours, so no call means no call; what was not understood in the last step stays said.
            evidence=Evidence(
                kind="transcript",
                tools_observed=True,
                sources_observed=bool(self._sources),
                completeness=last.evidence.completeness,
                unread=last.evidence.unread,
            ),
            timings=Timings(
                latency_ms=worked_ms, first_byte_ms=self._first_word_ms, attempts=1 + self._resent
            ),
        )
