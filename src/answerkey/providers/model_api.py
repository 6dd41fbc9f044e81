"""ModelApi: what tells one provider's API from another's, as a row of small functions; nothing here sends anything.

One step is `address`, `headers` and `body` on the way there; on the way back the payload (or the document that a stream
makes, `transcripts.streams`) goes through `read_step`. Histories stay in the API's own form, so that what a provider
wants back unchanged (signatures of thoughts, ids) goes back unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp
from typing import Literal, NamedTuple

import msgspec

from answerkey.model.json_value import Json, JsonObject
from answerkey.model.reply import Failure, Reply, ToolCall
from answerkey.transcripts.failures import failure_message, read_failure
from answerkey.transcripts.fields.content_text import json_text
from answerkey.transcripts.json_shapes import as_dict, as_str, read_number
from answerkey.transcripts.reply_mapping import reply_from_payload

# The parameters that every API has under a name of its own; others are sent as they are given.
Place = tuple[str, ...]
Speaker = Literal["user", "assistant"]
# The calls of an answer that whoever asked is to make, and what of it goes back in the next step.
Taken = tuple[tuple[ToolCall, ...], tuple[JsonObject, ...]]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model is told of it."""

    name: str
    description: str
    # The JSON Schema of its arguments.
    parameters: JsonObject


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What one step asks of a model."""

    model: str
    # In the API's own form, oldest first.
    messages: Sequence[JsonObject]
    system: str | None = None
    tools: Sequence[ToolSpec] = ()
    stream: bool = False
    # `temperature`, `max_tokens`, `seed`, `top_p` and `stop` are written as the API calls them.
    parameters: Mapping[str, Json] = {}
    # The JSON Schema that the answer must meet; None: it may be any text, or any JSON.
    schema: JsonObject | None = None
    as_json: bool = False
    # How many of the likeliest tokens are wanted at each place of the answer, with their probabilities; None: none.
    likeliest: int | None = None


class SaidToken(msgspec.Struct, frozen=True):
    """One token of an answer."""

    # What it adds to the answer; a character may be cut through.
    said: bytes
    # The token itself and others that might have stood in its place → how probable each was.
    probabilities: dict[str, float]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a model gave in one step."""

    # What it said, called, thought and used; its failure if there is nothing to go on with.
    reply: Reply
    # The calls that whoever asked is to make; those that the provider made itself are in the reply only.
    calls: tuple[ToolCall, ...] = ()
    # What of it goes back in the next step, in the API's own form.
    kept: tuple[JsonObject, ...] = ()
    # It paused and goes on when it is given back what it said.
    paused: bool = False


def bearer(key: str | None) -> dict[str, str]:
    """The key as most APIs take it."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def _said(speaker: Speaker, text: str) -> JsonObject:
    return {"role": speaker, "content": text}


class ModelApi(NamedTuple):
    """One provider's API."""

    name: str
    base_url: str
    # Environment variables of the base address and of the key, the first that is set.
    base_url_env: str
    key_env: tuple[str, ...]
    # Model and whether it streams → what follows the base address.
    path: Callable[[str, bool], str]
    body: Callable[[Prompt], JsonObject]
    # Whether a payload is an answer of this API at all.
    answers: Callable[[JsonObject], bool]
    # An answer's calls for us to make, and what goes back of it.
    taken: Callable[[JsonObject], Taken]
    # What came of calls, as messages.
    results: Callable[[Sequence[ToolCall]], tuple[JsonObject, ...]]
    # Whether an event of a stream has a word of the answer in it.
    speaks: Callable[[JsonObject], bool]
    # The key, if there is one → headers.
    headers: Callable[[str | None], dict[str, str]] = bearer
    # What the user or the assistant says, as a message.
    said: Callable[[Speaker, str], JsonObject] = _said
    # Of the usual parameters those that it does not have.
    without: frozenset[str] = frozenset()
    # The tokens of an answer's text with their probabilities; None: the API tells none.
    tokens: Callable[[JsonObject], tuple[SaidToken, ...]] | None = None


def read_step(api: ModelApi, payload: Json) -> Step:
    """The step in what an API answered; one that is no answer is a failure."""
    document = as_dict(payload)
    if not api.answers(document):
        failure = read_failure(document.get("error"))
        message = f"the reply is no answer of the {api.name} API: {failure_message(json_text(payload), 200)}"
        return Step(reply=Reply(failure=failure or Failure("malformed", message)))
    reply = reply_from_payload(document)
    if reply.failure is None and document.get("error"):
        reply = msgspec.structs.replace(reply, failure=read_failure(document["error"]))
    calls, kept = api.taken(document)
    return Step(reply=reply, calls=calls, kept=kept, paused=document.get("stop_reason") == "pause_turn")


def said_token(token: JsonObject, likeliest: Sequence[JsonObject], *, logarithm: str) -> SaidToken:
    """A token and the likeliest ones at its place, as APIs tell them; `logarithm` is what they call a probability's."""
    octets = token.get("bytes")
    try:
        said = bytes(octets) if isinstance(octets, list) else None  # type: ignore[arg-type]  # checked by bytes itself
    except (TypeError, ValueError):
        said = None
    text = as_str(token.get("token")) or ""
    told = {
        as_str(one.get("token")) or "": exp(min(0.0, power))
        for one in (token, *likeliest)
        if (power := read_number(one.get(logarithm))) is not None
    }
    return SaidToken(text.encode("utf-8", "replace") if said is None else said, told)


def with_parameters(
    body: JsonObject, parameters: Mapping[str, Json], places: Mapping[str, Place]
) -> JsonObject:
    """The body with parameters where the API has them; a table that is given joins the one that is there."""
    for name, value in parameters.items():
        *outer, last = places.get(name, (name,))
        holder = body
        for part in outer:
            inner = holder.setdefault(part, {})
            holder = inner if isinstance(inner, dict) else {}
        held = holder.get(last)
        holder[last] = {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
    return body


def result_text(call: ToolCall) -> str:
    """What came of a call, as the model is told."""
    if call.error is not None:
        return f"Error: {call.error}"
    return call.result if isinstance(call.result, str) else json_text(call.result)
