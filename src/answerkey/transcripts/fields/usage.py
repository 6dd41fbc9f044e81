"""Usage in the names that APIs give it: tokens in, out, cached, for reasoning, and what they cost."""

from typing import TypeVar

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Usage
from answerkey.transcripts.fields.json_numbers import read_count, read_number

__all__ = ["add_usage", "read_usage"]

_Number = TypeVar("_Number", int, float)

_INPUT = (
    "input_tokens",
    "prompt_tokens",
    "inputTokens",
    "promptTokens",
    "prompt",
    "input",
    "prompt_eval_count",
    "promptTokenCount",
)
_OUTPUT = (
    "output_tokens",
    "completion_tokens",
    "outputTokens",
    "completionTokens",
    "completion",
    "output",
    "eval_count",
    "candidatesTokenCount",
)
_TOTAL = ("total_tokens", "totalTokens", "total", "totalTokenCount")
_REASONING = ("reasoning_tokens", "reasoningTokens", "reasoning", "thoughtsTokenCount")
_CACHED = (
    "cached_tokens",
    "cachedTokens",
    "cached",
    "cache_read",
    "cacheReadTokens",
    "cache_read_input_tokens",
    "cachedContentTokenCount",
)
_COST = ("cost", "total_cost", "totalCost", "cost_usd")
_DETAILS = (
    "completion_tokens_details",
    "output_tokens_details",
    "output_token_details",
    "outputTokenDetails",
    "prompt_tokens_details",
    "input_tokens_details",
    "input_token_details",
    "inputTokenDetails",
)


def read_usage(value: object, cost: object = None) -> Usage | None:
    """The usage in a field: an object, or a bare number of tokens; None if there is nothing in it."""
    total_cost = read_number(cost)
    if not isinstance(value, dict):
        tokens = read_count(value)
        if tokens is None and total_cost is None:
            return None
        return Usage(total_tokens=tokens, cost=total_cost)
    details: JsonObject = {}
    for name in _DETAILS:
        part = value.get(name)
        if isinstance(part, dict):
            details.update(part)
    usage = Usage(
        input_tokens=_count(value, _INPUT),
        output_tokens=_count(value, _OUTPUT),
        total_tokens=_count(value, _TOTAL),
        reasoning_tokens=_either(_count(value, _REASONING), _count(details, _REASONING)),
        cached_tokens=_either(_count(value, _CACHED), _count(details, _CACHED)),
        cost=total_cost
        if total_cost is not None
        else next((number for name in _COST if (number := read_number(value.get(name))) is not None), None),
    )
    return None if usage == Usage() else usage


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """What two steps of one reply used together."""
    if first is None or second is None:
        return first or second
    return Usage(
        input_tokens=_sum(first.input_tokens, second.input_tokens),
        output_tokens=_sum(first.output_tokens, second.output_tokens),
        total_tokens=_sum(first.total_tokens, second.total_tokens),
        reasoning_tokens=_sum(first.reasoning_tokens, second.reasoning_tokens),
        cached_tokens=_sum(first.cached_tokens, second.cached_tokens),
        cost=_sum(first.cost, second.cost),
    )


def _sum(first: _Number | None, second: _Number | None) -> _Number | None:
    return second if first is None else first if second is None else first + second


def _either(first: int | None, second: int | None) -> int | None:
    return second if first is None else first


def _count(value: JsonObject, names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := read_count(value.get(name))) is not None), None)
