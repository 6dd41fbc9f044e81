"""Where a raw reply has the parts that were read from it, and what in it was not read.

Nothing is read anew here: the values of the Reply are looked for in the raw reply, whatever format they were read by.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Reply
from answerkey.transcripts.fields.content_text import safe_text

# A step into an object by name, or into a list by position.
Path = tuple[str | int, ...]
# More of a reply than this is not looked through.
_MOST_LEAVES = 20_000
# The names of a Reply's own parts, as `[targets.NAME.reply]` has them.
_IDS = ("conversation_id", "response_id", "trace_id")


class Leaf(msgspec.Struct, frozen=True):
    """A value in a raw reply that holds no others, or an empty list or object."""

    path: Path
    value: Json


class Places(msgspec.Struct, frozen=True):
    """Where a reply's parts stand."""

    # Part → its place, as JMESPath writes it.
    read: dict[str, str]
    # Places that hold something which was not read, each once.
    unread: tuple[str, ...]


def leaves_of(value: Json, path: Path = ()) -> Iterator[Leaf]:
    """Every leaf, in the order of the reply."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from leaves_of(part, (*path, str(name)))
    elif isinstance(value, list) and value:
        for position, part in enumerate(value):
            yield from leaves_of(part, (*path, position))
    else:
        yield Leaf(path, value)


def short_place(path: Path) -> Path:
    """A path without positions: -1 stands for any."""
    return tuple(-1 if isinstance(step, int) else step for step in path)


def place_text(path: Path) -> str:
    """A path as JMESPath writes it; "@" is the whole reply."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += "[]" if step == -1 else f"[{step}]"
        else:
            plain = step.isascii() and step.isidentifier()
            text += ("." if text else "") + (step if plain else msgspec.json.encode(step).decode())
    return text or "@"


def find_places(raw: Json, reply: Reply, expressions: Mapping[str, str]) -> Places:
    """The places of the reply's parts in what it was read from; a part with an expression stands where that says."""
    leaves = list(islice(leaves_of(raw), _MOST_LEAVES))
    found: dict[str, list[Path]] = {}
    if reply.text is not None:
        found["text"] = _places_of_text(leaves, reply.text)
    found["tool_calls"] = _places_of(leaves, (call.name for call in reply.tool_calls))
    given = (source.id or source.text or source.title for source in reply.sources)
    found["sources"] = _places_of(leaves, given)
    if reply.failure is not None:
        message = reply.failure.message
        found["error"] = [
            leaf.path for leaf in leaves if _is_said(leaf, message, ("error", "detail", "message"))
        ]
    if reply.usage is not None:
        told = {value for value in msgspec.structs.asdict(reply.usage).values() if value}
        found["usage"] = [
            leaf.path[:-1] or leaf.path for leaf in leaves if _is_number(leaf.value) and leaf.value in told
        ][:1]
    for name in _IDS:
        identity = getattr(reply, name)
        found[name] = [leaf.path for leaf in leaves if identity and str(leaf.value) == identity][:1]
    read = {
        part: expressions.get(part) or ", ".join(_shown(part, paths))
        for part, paths in found.items()
        if paths
    }
    whole = [path for part, paths in found.items() for path in paths if part in ("text", "error", *_IDS)]
    whole += found.get("usage", [])
    # An item of a list is read as a whole: a call with its arguments and its result.
    whole += [_item(path) for part in ("tool_calls", "sources") for path in found[part]]
    unread = dict.fromkeys(
        place_text(short_place(leaf.path))
        for leaf in leaves
        if leaf.value not in (None, "", [], {}) and not any(leaf.path[: len(path)] == path for path in whole)
    )
    return Places(read, tuple(unread))


def _shown(part: str, paths: list[Path]) -> list[str]:
    """The places of a part, each once; of a list only the likeliest."""
    places = list(dict.fromkeys(place_text(short_place(path)) for path in paths))
    return places[:1] if part in ("tool_calls", "sources") else places


def _places_of_text(leaves: list[Leaf], text: str) -> list[Path]:
    """The leaf that is the text, or those that it is put together from."""
    said = [(leaf.path, safe_text(leaf.value)) for leaf in leaves if isinstance(leaf.value, str)]
    whole = [path for path, value in said if value == text or value.strip() == text.strip()]
    return whole[:1] or [path for path, value in said if len(value) > 2 and value.strip() and value in text]


def _places_of(leaves: list[Leaf], wanted: Iterable[str | None]) -> list[Path]:
    """The leaves that have one of the values, those of the most likely place first."""
    names = {name for name in wanted if name}
    by_place: dict[Path, list[Leaf]] = {}
    for leaf in leaves:
        value = leaf.value if isinstance(leaf.value, str) else str(leaf.value)
        if value in names:
            by_place.setdefault(short_place(leaf.path), []).append(leaf)
    if not by_place:
        return [
            leaf.path[: leaf.path.index(step) + 1] for leaf in leaves for step in leaf.path if step in names
        ]
    # The deepest last: an object tells more than a name, and is what was read where both are there.
    order = sorted(
        by_place, key=lambda place: (len({str(leaf.value) for leaf in by_place[place]}), len(place))
    )
    return [leaf.path for place in reversed(order) for leaf in by_place[place]]


def _item(path: Path) -> Path:
    """The nearest item of a list that a path lies in, or the path itself."""
    for end in range(len(path), 0, -1):
        if isinstance(path[end - 1], int):
            return path[:end]
    return path


def _is_said(leaf: Leaf, message: str, names: tuple[str, ...]) -> bool:
    return (
        isinstance(leaf.value, str)
        and len(leaf.value) > 1
        and leaf.value in message
        and any(step in names for step in leaf.path)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
