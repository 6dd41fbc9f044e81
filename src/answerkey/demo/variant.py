"""Variants as text: "basic", "openai", "flaky?kinds=timeout,empty&rate=0.3&seed=7"."""

from urllib.parse import parse_qsl

import msgspec

from answerkey.demo.brains.flaky import FAULTS

__all__ = ["VARIANTS", "Variant", "parse_variant"]

VARIANTS = ("default", "basic", "openai", "flaky")


class Variant(msgspec.Struct, frozen=True):
    """Which brain, and how it is set up."""

    # one of VARIANTS
    name: str
    # of the faults
    seed: int = 0
    # flaky: which faults occur
    kinds: tuple[str, ...] = FAULTS
    # flaky: the share of questions that meets one
    rate: float = 0.3


def parse_variant(text: str, *, seed: int = 0) -> Variant:
    """Read NAME or NAME?kinds=…&rate=…&seed=…, with or without "demo:" before it, or raise ValueError."""
    text = text.strip()
    name, _, query = text.removeprefix("demo:").partition("?")
    name = name or "default"
    if name == "demo":
        name = "default"
    if name not in VARIANTS:
        raise ValueError(f"no variant {name!r} of the demo: choose from {', '.join(VARIANTS)}")
    try:
        given = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise ValueError(
            f"demo:{text}: the part after ? must be like kinds=timeout,empty&rate=0.3&seed=7"
        ) from error
    kinds = tuple(k.strip() for k in given.pop("kinds", ",".join(FAULTS)).split(","))
    unknown = [k for k in kinds if k not in FAULTS]
    if unknown:
        raise ValueError(
            f"demo:{name}: no fault {', '.join(map(repr, unknown))}: choose from {', '.join(FAULTS)}"
        )
    try:
        rate = float(given.pop("rate", "0.3"))
        seed = int(given.pop("seed", str(seed)))
    except ValueError as error:
        raise ValueError(f"demo:{name}: rate must be a number and seed a whole number ({error})") from error
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"demo:{name}: rate must be between 0 and 1, not {rate}")
    if given:
        raise ValueError(f"demo:{name}: unknown setting {', '.join(given)}: only kinds, rate and seed")
    if query and name != "flaky":
        raise ValueError(f"demo:{name} takes no settings: only demo:flaky does")
    return Variant(name, seed, kinds, rate)
