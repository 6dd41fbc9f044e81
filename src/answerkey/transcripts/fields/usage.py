"""Usage in the names that APIs give it: tokens in, out, cached, for reasoning, and what they cost."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Usage
from answerkey.transcripts.json_shapes import read_count, read_number

# The spellings of OpenAI, Anthropic, the AI SDK, LangChain, promptfoo and Ollama, and Gemini's two.
_COUNTS = {
    "input_tokens": (
        *("input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "prompt", "input"),
        *("prompt_eval_count", "promptTokenCount", "prompt_token_count"),
    ),
    "output_tokens": (
        *("output_tokens", "completion_tokens", "outputTokens", "completionTokens", "completion", "output"),
        *("eval_count", "candidatesTokenCount", "candidates_token_count"),
    ),
    "total_tokens": ("total_tokens", "totalTokens", "total", "totalTokenCount", "total_token_count"),
    "reasoning_tokens": (
        *("reasoning_tokens", "reasoningTokens", "reasoning"),
        *("thoughtsTokenCount", "thoughts_token_count", "output_reasoning_tokens"),
    ),
    "cached_tokens": (
        *("cached_tokens", "cachedTokens", "cached", "cache_read", "cacheReadTokens"),
        *("cache_read_input_tokens", "cachedContentTokenCount", "cached_content_token_count"),
        *("cacheReadInputTokens", "cache_read_tokens"),
    ),
}
# Anthropic and Bedrock count cached tokens apart from the input, Gemini its thoughts apart from the output: the field, the
# name that it has there, and what is added to it.
_APART = (
    ("input_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    ("input_tokens", "inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
    ("input_tokens", "promptTokenCount", "toolUsePromptTokenCount"),
    ("input_tokens", "prompt_token_count", "tool_use_prompt_token_count"),
    ("output_tokens", "candidatesTokenCount", "thoughtsTokenCount"),
    ("output_tokens", "candidates_token_count", "thoughts_token_count"),
)
_ADDED = frozenset(name for _, _, *apart in _APART for name in apart)
_FIELD_OF = {name: (field, rank) for field, names in _COUNTS.items() for rank, name in enumerate(names)}
# Only these are told in an object of details.
_DETAILED = ("reasoning_tokens", "cached_tokens")
_DETAILS = (
    *("completion_tokens_details", "output_tokens_details", "output_token_details", "outputTokenDetails"),
    *("prompt_tokens_details", "input_tokens_details", "input_token_details", "inputTokenDetails"),
)
_COST = ("cost", "total_cost", "totalCost", "cost_usd", "total_cost_usd")


def read_usage(value: object, cost: object = None) -> Usage | None:
    """The usage in a field: an object, or a bare number of tokens; None if there is nothing in it."""
    total_cost = read_number(cost)
    if not isinstance(value, dict):
        tokens = read_count(value)
        return None if tokens is None and total_cost is None else Usage(total_tokens=tokens, cost=total_cost)
    if total_cost is None:
        total_cost = next(
            (number for name in _COST if (number := read_number(value.get(name))) is not None), None
        )
    counts = _counts(value)
    for name in _DETAILS:
        details = value.get(name)
        if isinstance(details, dict):
            told = _counts(details)
            for field in _DETAILED:
                if field in told:
                    counts.setdefault(field, told[field])
    if not _ADDED.isdisjoint(value):
        for field, given, *apart in _APART:
            if given in value and field in counts:
                counts[field] += sum(read_count(value.get(name)) or 0 for name in apart)
    usage = Usage(**counts, cost=total_cost)
    return None if usage == Usage() else usage


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """What two steps of one reply used together."""
    if first is None or second is None:
        return first or second
    sums = {}
    for name in Usage.__struct_fields__:
        one, other = getattr(first, name), getattr(second, name)
        sums[name] = other if one is None else one if other is None else one + other
    return Usage(**sums)


def _counts(value: JsonObject) -> dict[str, int]:
    """The counts in an object, by the fields that they are; of two names for one, the one that is listed first."""
    counts: dict[str, int] = {}
    ranks: dict[str, int] = {}
    for name, part in value.items():
        known = _FIELD_OF.get(name)
        if known is not None and (count := read_count(part)) is not None:
            field, rank = known
            if rank <= ranks.get(field, rank):
                counts[field], ranks[field] = count, rank
    return counts
