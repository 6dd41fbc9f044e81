"""Price: what a model's tokens cost, by `[prices]` or by the dated list that comes with answerkey; and what a reply cost."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.reply import Reply, Usage

# What follows a model's name in the names of its versions.
_VERSION = re.compile(r"(?:-\d{4}-\d\d-\d\d|[-@]\d{8}|-\d{3}|-latest)\Z")


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model or a chatbot costs, in any one currency: tokens by the million."""

    # Both or neither.
    input: float | None = None
    output: float | None = None
    # Of input tokens that were read from the provider's cache; None: as much as others.
    cached: float | None = None
    # Of each reply, whatever its tokens.
    reply: float = 0.0

    def __post_init__(self) -> None:
        example = "write for example {input = 0.15, output = 0.60}, per million tokens"
        if (self.input is None) != (self.output is None):
            missing = "input" if self.input is None else "output"
            raise ConfigError(f"a price without `{missing}`; {example}")
        if not min(self.input or 0.0, self.output or 0.0, self.cached or 0.0, self.reply) >= 0:
            raise ConfigError(f"a price must not be negative; {example}")

    def cost(self, usage: Usage | None) -> float | None:
        """What a reply cost; None where its tokens are not known and count."""
        used = usage or Usage()
        if self.input is None or self.output is None:
            return self.reply
        if used.input_tokens is None and used.output_tokens is None:
            return None
        read, cached = used.input_tokens or 0, min(used.cached_tokens or 0, used.input_tokens or 0)
        cheaper = 0.0 if self.cached is None else cached * (self.input - self.cached)
        return self.reply + (read * self.input - cheaper + (used.output_tokens or 0) * self.output) / 1e6


def price_of(model: str, configured: Mapping[str, Price], *, base_url: str = "") -> Price | None:
    """What a model costs: as configured, or else as listed, unless it is served on this machine."""
    names = list(_spellings(model))
    found = next((configured[name] for name in names if name in configured), None)
    if found is not None or urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1"):
        return found
    listed = _listed()
    return next((listed[name] for name in names if name in listed), None)


def priced(reply: Reply, price: Price) -> Reply:
    """A reply with its cost, where it does not state that itself."""
    own = reply.usage or Usage()
    # Tokens are paid for even where nothing came of them.
    in_vain = reply.failure is not None and own.input_tokens is None and own.output_tokens is None
    cost = None if own.cost is not None or in_vain else price.cost(own)
    if cost is None:
        return reply
    return msgspec.structs.replace(reply, usage=msgspec.structs.replace(own, cost=round(cost, 12)))


def _spellings(model: str) -> Iterator[str]:
    """A model's name as it is given, without its provider, and without its version."""
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        yield name
        yield _VERSION.sub("", name)


@cache
def _listed() -> dict[str, Price]:
    import tomllib  # only where something has a price

    found = tomllib.loads(Path(__file__).with_name("prices.toml").read_text("utf-8"))
    return msgspec.convert(found["models"], dict[str, Price])
