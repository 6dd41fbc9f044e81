"""Rows of recorded replies: which question and trial a row is of, and the reply to each turn in it.

Also where a raw reply has the parts that were read from it, a mapping for those that were not found, and logs of Inspect.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from answerkey.errors import InputError
from answerkey.model.reply import Evidence, Json, JsonObject, Reply
from answerkey.text.normalise import fold_accents
from answerkey.text.patterns import lazy
from answerkey.transcripts.fields import ARGUMENT_NAMES, CALL_NAMES, RESULT_NAMES
from answerkey.transcripts.formats import FORMAT_MARKS, read_transcript
from answerkey.transcripts.json_values import TEXT_NAMES, as_dict, as_dicts, as_str, decode_json, safe_text
from answerkey.transcripts.messages import (
    TRANSCRIPT_NAMES,
    QuestionContext,
    looks_like_messages,
    read_messages,
    split_exchanges,
    transcripts_in,
)
from answerkey.transcripts.payloads import (
    BESIDE_NAMES,
    IDENTITIES,
    NAMES_READ,
    SOURCE_NAMES,
    ReplyMapping,
    is_unmapped,
    reply_from_payload,
)

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

_REPLY_NAMES = frozenset({*TEXT_NAMES, "error", "tools_used", "tool_calls", "messages"})
_ASKED = ("question", "input", "query", "user_input", "prompt")


# What tables and exports write as JSON in a text, and what must come of it.
_AS_JSON_TEXT: dict[str, type] = {
    **dict.fromkeys(("contents", "replies", *TRANSCRIPT_NAMES, *SOURCE_NAMES), list),
    "usage": dict,
}


def read_json_texts(row: Mapping[str, Json]) -> Mapping[str, Json]:
    """A row with its lists and objects that were written as JSON in a text."""
    if row.keys().isdisjoint(_AS_JSON_TEXT):
        return row
    read: dict[str, Json] = {}
    for name, kind in _AS_JSON_TEXT.items():
        text = row.get(name)
        if isinstance(text, str) and text.lstrip()[:1] in ("[", "{"):
            # Text that is not JSON is the value itself.
            with suppress(ValueError):
                value = decode_json(text)
                if isinstance(value, kind):
                    read[name] = value
    return {**row, **read} if read else row


def check_messages(row: Mapping[str, Json]) -> None:
    """Raise ValueError where a row's only reply would be in `messages`, and these are a text that holds none."""
    if not isinstance(row.get("messages"), str):
        return
    others = NAMES_READ & (row.keys() - {"messages", *BESIDE_NAMES})
    if not others and not looks_like_messages(read_json_texts(row).get("messages")):
        raise ValueError("'messages' is a text that holds no list of messages; write them as a JSON list")


def question_in_row(row: Mapping[str, Json]) -> str | None:
    """What was asked, where the row says it: by name, in a LangSmith run's inputs, or as the first user message."""
    row = read_json_texts(row)
    for holder in (row, as_dict(row.get("inputs")), as_dict(row.get("vars"))):
        for name in _ASKED:
            if isinstance(holder.get(name), str):
                return str(holder[name])
    return first_asked(row)


def first_asked(row: Mapping[str, Json]) -> str | None:
    """The first user message of a row's transcript."""
    messages = read_messages(_transcript(read_json_texts(row)))
    said = [text for texts, _ in split_exchanges(messages) for text in texts]
    return next(filter(None, said), None)


def _transcript(row: Mapping[str, Json]) -> list[Json]:
    """The transcript of a row; beside an answer, only `messages` is one: a history may be what came before the question."""
    named = row if row.keys().isdisjoint(TEXT_NAMES) else {"messages": row.get("messages")}
    return next(transcripts_in(named), [])


def reply_in_row(
    row: Mapping[str, Json],
    question: str,
    turn: int = 0,
    mapping: ReplyMapping | None = None,
    *,
    in_turns: bool = False,
) -> Reply | None:
    """The reply to a turn (0 is the first); None if the row has no such turn."""
    row = read_json_texts(row)
    asked = QuestionContext(question, turn, in_turns or turn > 0, recorded=True)
    for name in ("replies", "turns"):
        parts = row.get(name)
        if isinstance(parts, list) and any(_is_reply(part) for part in parts):
            return _reply(parts[turn], asked, mapping) if turn < len(parts) else None
    if asked.in_turns and mapping is None and (messages := _transcript(row)):
        # What the row says beside them is not said of this turn.
        return read_transcript(messages, asked)
    return _reply(row, asked, mapping) if turn == 0 else None


# Where a row may have the text of a reply.
_TEXT_HOLDERS = frozenset({*TEXT_NAMES, *FORMAT_MARKS, *TRANSCRIPT_NAMES, "replies", "turns"})


def lacks_text(row: Mapping[str, Json], replies: Sequence[Reply]) -> bool:
    """Whether a row has no field for the text of a reply; null, an error or a transcript without a text are the chatbot's.

    The result of a search engine has documents instead of a text.
    """
    if "sources" in row and "relevant_documents" in row:
        return False
    for reply in replies:
        if reply.text is not None or (reply.failure is not None and not is_unmapped(reply.failure)):
            return False
    return any(reply.failure is not None for reply in replies) or row.keys().isdisjoint(_TEXT_HOLDERS)


# What a right reply has is not the reply.
_LIKE_AN_EXPECTATION = lazy(
    r"(expected|forbidden|accept|validation)_|(reference_answer|also_right|checks|relevant_documents)$"
)


def propose_maps(row: Mapping[str, Json]) -> str:
    """What to write for a row that lacks its question, its reply's text or both, with the fields that they likely are."""
    maps = []
    if row.keys().isdisjoint(("id", "question", "turns")):
        texts = [name for name, value in row.items() if isinstance(value, str) and value.strip()]
        asked = next((name for name in texts if _LIKE_A_QUESTION.search(fold_accents(name))), "FIELD")
        maps.append(f"--map question={_quoted(asked)}")
    if row.keys().isdisjoint(_TEXT_HOLDERS) or not maps:
        others = {
            name: value
            for name, value in row.items()
            if f"--map question={_quoted(name)}" not in maps and not _LIKE_AN_EXPECTATION.match(name)
        }
        # A column that is named for the answer comes before one with a longer text.
        named = {name: value for name, value in others.items() if _is_named_answer(name)}
        question = question_in_row(row) or ""
        maps.append(f"--map answer={_text(named, question) or _text(others, question) or 'FIELD'}")
    return f"write for example {' '.join(maps)}"


def _is_named_answer(name: str) -> bool:
    folded = fold_accents(name)
    return bool(_NAMED_ANSWER.search(folded)) and not _NOT_ANSWER.search(folded)


def _quoted(name: str) -> str:
    """A column's name as a shell takes it."""
    return f'"{name}"' if " " in name else name


def _is_reply(part: object) -> bool:
    """Whether an entry is a reply; a row's `turns` may as well be the questions and expectations of a conversation."""
    return isinstance(part, str) or not _REPLY_NAMES.isdisjoint(as_dict(part))


def _reply(part: object, context: QuestionContext, mapping: ReplyMapping | None) -> Reply:
    """A reply; one that answerkey wrote itself says how it was observed."""
    reply = reply_from_payload(part, mapping=mapping, context=context)
    evidence = as_dict(as_dict(part).get("reply")).get("evidence", as_dict(part).get("evidence"))
    if isinstance(evidence, dict):
        try:
            return msgspec.structs.replace(reply, evidence=msgspec.convert(evidence, Evidence))
        except msgspec.ValidationError:
            return reply
    return reply


# Where a raw reply has the parts that were read from it, and what in it was not read.
#
# Nothing is read again here: the values of the Reply are looked for in the raw reply, whatever format they were read by.


# A step into an object by name, or into a list by position.
JsonPath = tuple[str | int, ...]
# More of a reply than this is not looked through.
_MOST_LEAVES = 20_000


class Leaf(msgspec.Struct, frozen=True):
    """A value in a raw reply that holds no others, or an empty list or object."""

    path: JsonPath
    value: Json


class ReplyPaths(msgspec.Struct, frozen=True):
    """Where the parts of a reply are."""

    # Part → its place, as JMESPath writes it.
    read: dict[str, str]
    # ReplyPaths that hold something which was not read, each once.
    unread: tuple[str, ...]


def leaves_of(value: Json, path: JsonPath = ()) -> Iterator[Leaf]:
    """Every leaf, in the order of the reply."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from leaves_of(part, (*path, str(name)))
    elif isinstance(value, list) and value:
        for position, part in enumerate(value):
            yield from leaves_of(part, (*path, position))
    else:
        yield Leaf(path, value)


def short_place(path: JsonPath) -> JsonPath:
    """A path without positions: -1 means any."""
    return tuple(-1 if isinstance(step, int) else step for step in path)


def place_text(path: JsonPath) -> str:
    """A path as JMESPath writes it; "@" is the whole reply."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += "[]" if step == -1 else f"[{step}]"
        else:
            plain = step.isascii() and step.isidentifier()
            text += ("." if text else "") + (step if plain else msgspec.json.encode(step).decode())
    return text or "@"


def find_places(raw: Json, reply: Reply, expressions: Mapping[str, str]) -> ReplyPaths:
    """The places of the reply's parts in what it was read from; a part with an expression is where that says."""
    leaves = list(islice(leaves_of(raw), _MOST_LEAVES))
    found: dict[str, list[JsonPath]] = {}
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
    for name in IDENTITIES:
        identity = getattr(reply, name)
        found[name] = [leaf.path for leaf in leaves if identity and str(leaf.value) == identity][:1]
    read = {
        part: expressions.get(part) or ", ".join(_path_texts(part, paths))
        for part, paths in found.items()
        if paths
    }
    whole = [
        path for part, paths in found.items() for path in paths if part in ("text", "error", *IDENTITIES)
    ]
    whole += found.get("usage", [])
    # An item of a list is read as a whole: a call with its arguments and its result.
    whole += [_item(path) for part in ("tool_calls", "sources") for path in found[part]]
    unread = dict.fromkeys(
        place_text(short_place(leaf.path))
        for leaf in leaves
        if leaf.value not in (None, "", [], {}) and not any(leaf.path[: len(path)] == path for path in whole)
    )
    return ReplyPaths(read, tuple(unread))


def _path_texts(part: str, paths: list[JsonPath]) -> list[str]:
    """The places of a part, each once; of a list only the likeliest."""
    places = list(dict.fromkeys(place_text(short_place(path)) for path in paths))
    return places[:1] if part in ("tool_calls", "sources") else places


def _places_of_text(leaves: list[Leaf], text: str) -> list[JsonPath]:
    """The leaf that is the text, or those that it is put together from."""
    said = [(leaf.path, safe_text(leaf.value)) for leaf in leaves if isinstance(leaf.value, str)]
    whole = [path for path, value in said if value == text or value.strip() == text.strip()]
    return whole[:1] or [path for path, value in said if len(value) > 2 and value.strip() and value in text]


def _places_of(leaves: list[Leaf], values: Iterable[str | None]) -> list[JsonPath]:
    """The leaves that have one of the values, those of the most likely place first."""
    names = {name for name in values if name}
    by_place: dict[JsonPath, list[Leaf]] = {}
    for leaf in leaves:
        value = leaf.value if isinstance(leaf.value, str) else str(leaf.value)
        if value in names:
            by_place.setdefault(short_place(leaf.path), []).append(leaf)
    if not by_place:
        return [
            leaf.path[: leaf.path.index(step) + 1] for leaf in leaves for step in leaf.path if step in names
        ]
    # The deepest last: an object has more than a name, and is what was read where both are there.
    order = sorted(by_place, key=lambda path: (len({str(leaf.value) for leaf in by_place[path]}), len(path)))
    return [leaf.path for place in reversed(order) for leaf in by_place[place]]


def _item(path: JsonPath) -> JsonPath:
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


# A mapping for a reply whose parts are not under the usual names: JMESPath expressions, guessed from one example.


# "Answer" and "question" in other languages, without accents.
_ANSWER_WORDS = (
    "antwort|reponse|respuesta|risposta|resposta|antwoord|svar|vastau|odpowiedz|odpoved|odgovor|raspuns|valasz|cevap|"
    "jawaban|απαντηση|ответ|відповід|vidpovid|回答|答案|回复"
)
_QUESTION_WORDS = (
    "frage|pregunta|consulta|domanda|pergunta|vraag|fraga|sporgsmal|sporsmal|kysymy|pytani|otazka|pitanje|intrebare|kerdes|"
    "soru|pertanyaan|ερωτηση|вопрос|питання|質問|问题|問題"
)
_NAMED_ANSWER = lazy(f"answer|response|reply|{_ANSWER_WORDS}")
_ANSWER = lazy(
    r"answer|response|text|output|message|content|reply|result|final|body|completion|generated|assistant|bot|speech|say|"
    + _ANSWER_WORDS
)
_LIKE_A_QUESTION = lazy(
    r"question|query|prompt|ask|user_?(message|input|text|utterance|q\b)|^q$|^input|^user$|request|"
    + _QUESTION_WORDS
)
# Fields that other people wrote, or that are about the reply.
_NOT_ANSWER = lazy(
    r"prompt|question|query|input|request|system|instruct|context|source|document|snippet|chunk|passage|citation|title|"
    r"descr|debug|log|trace|reason|thought|think|error|tool|call|step|usage|model|\bid\b|_id|name|user|history|url|link|"
    r"status|type|role|time|date|version|hash|token|suggest|follow|" + _QUESTION_WORDS
)
_TOOLS = lazy(r"tool|function|call|action|step|plugin|skill|invo[ck]|trace|span|event|used|executed")
_TOOL_NAME = lazy(r"tool|func|\bfn\b|method|plugin|skill|api|action")
_SOURCES = lazy(r"source|document|citation|cited|passage|chunk|reference|retriev|context|hits|evidence|docs")
_ERROR = lazy(r"^(error|err|error_message|errormessage|problem|failure|exception)$")
_USAGE = lazy(r"usage|tokens")
# Fields by which the messages of several speakers, or steps of several kinds, are distinguished.
_SPEAKER = ("role", "sender", "from", "author", "speaker", "type", "kind")
# Words that say that all went well, and nothing else.
_FINE = frozenset(
    {"ok", "okay", "success", "successful", "succeeded", "done", "complete", "completed", "true", "200"}
)


def propose_mapping(payload: Json, question: str) -> dict[str, str]:
    """Part → expression for the parts that are not found by their usual names but are likely there; may be empty."""
    if not isinstance(payload, dict | list):
        return {}
    plain = reply_from_payload(payload)
    proposed: dict[str, str] = {}
    if (events := _events_in(payload)) and not plain.evidence.tools_observed:
        proposed = _propose_from_events(events)
        mapped = reply_from_payload(payload, mapping=ReplyMapping(**proposed))
        return proposed if mapped.text is not None else {}
    if _lacks_text(payload, plain) and (text := _text(payload, question)):
        proposed["text"] = text
    lists = _lists_in(payload)
    if not plain.evidence.tools_observed and (tools := _tools(lists)):
        proposed["tool_calls"] = tools
    if not plain.evidence.sources_observed and (sources := _sources(lists)):
        proposed["sources"] = sources
    if plain.usage is None and (usage := _usage(payload)):
        proposed["usage"] = usage
    if not isinstance(payload, dict) or "error" not in payload:
        wrong = (leaf.path for leaf in leaves_of(payload) if _ERROR.search(_last_name(leaf.path)))
        nested = next((path for path in wrong if not any(isinstance(step, int) for step in path)), None)
        if nested is not None:
            proposed["error"] = place_text(nested)
    if not proposed:
        return {}
    mapped = reply_from_payload(payload, mapping=ReplyMapping(**proposed))
    # A mapping that gives no reply for the example is not proposed.
    return proposed if mapped.text is not None or mapped.failure is None else {}


def _events_in(payload: Json) -> dict[str, list[JsonObject]]:
    """The data of the events of a stream by their name; empty if the payload is not one of named events."""
    events = as_dicts(as_dict(payload).get("events"))
    grouped: dict[str, list[JsonObject]] = {}
    for event in events:
        name = event.get("event")
        if (
            event.keys() != {"event", "data"}
            or not isinstance(name, str)
            or not re.fullmatch(r"[\w.-]+", name)
        ):
            return {}
        grouped.setdefault(name, []).append(as_dict(event["data"]))
    return grouped


def _propose_from_events(events: dict[str, list[JsonObject]]) -> dict[str, str]:
    """Calls are objects with a tool's name; the text is the field that brings most pieces, of the other events."""
    proposed: dict[str, str] = {}
    pieces: dict[str, int] = {}
    for name, items in events.items():
        data = f"events[?event=='{name}'].data"
        calls = _calls_expression(("data",), items) if _TOOLS.search(name.lower()) else None
        if calls is not None:
            proposed.setdefault("tool_calls", data + calls.removeprefix("data").replace("[].{", ".{"))
            continue
        for field in {field for item in items for field in item if not _NOT_ANSWER.search(field.lower())}:
            texts = [item[field] for item in items if isinstance(item.get(field), str)]
            pieces[f"join('', {data}.{place_text((field,))})"] = len(" ".join(map(str, texts)).split())
    best = max(pieces, key=lambda expression: pieces[expression], default=None)
    if best is not None and pieces[best]:
        proposed["text"] = best
    return proposed


def _lacks_text(payload: Json, plain: Reply) -> bool:
    """Whether the usual names give no text, one that is not the reply's text, or one that says only that all is well."""
    if plain.failure is not None and plain.failure.kind not in ("malformed", "null"):
        return False
    # A list or object where the text should be is read as it would be written.
    if not plain.text or plain.text.strip().lower() in _FINE or plain.text[:1] in ("{", "["):
        return True
    return "text" not in find_places(payload, plain, {}).read


def _text(payload: Json, question: str) -> str | None:
    """The expression for the leaf that reads most like an answer."""
    said = [leaf for leaf in leaves_of(payload) if isinstance(leaf.value, str) and leaf.value.strip()]
    rated = [(_like_an_answer(leaf, question), leaf) for leaf in said]
    best = max(rated, key=lambda pair: pair[0], default=None)
    return None if best is None or best[0] <= 0 else _expression(payload, best[1].path)


def _like_an_answer(leaf: Leaf, question: str) -> float:
    text = str(leaf.value).strip()
    if text == question.strip() or re.fullmatch(r"\S*(://|[0-9a-f]{8}-)\S*", text) or text.lower() in _FINE:
        return 0.0
    names = [fold_accents(step) for step in leaf.path if isinstance(step, str)]
    words = len(text.split())
    rating = min(words, 40) + 1.0
    # The nearest name says most.
    for distance, name in enumerate(reversed(names)):
        if _NOT_ANSWER.search(name):
            rating -= 60 / (1 + distance)
        elif _ANSWER.search(name):
            rating += 30 / (1 + distance)
    return rating


def _expression(payload: Json, path: JsonPath) -> str:
    """A path as an expression that holds for other replies: of a list the last item of its kind, not the one at a number."""
    text, value = "", payload
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            name = place_text((step,))
            text += f".{name}" if text else name
            value = value[step]
        elif isinstance(step, int) and isinstance(value, list):
            item = value[step]
            kind = _kind_of(item, as_dicts(value))
            if kind is not None:
                name, said = kind
                text += f"[?{place_text((name,))}=='{said}'] | [-1]"
            else:
                text += "[-1]" if step == len(value) - 1 else f"[{step}]"
            value = item
    return text or "@"


def _kind_of(item: Json, items: list[JsonObject]) -> tuple[str, str] | None:
    """The field that distinguishes an item from others of its list, with its value; None if there is none."""
    if not isinstance(item, dict):
        return None
    for name in _SPEAKER:
        values = [one.get(name) for one in items]
        said = item.get(name)
        if isinstance(said, str) and "'" not in said and all(isinstance(value, str) for value in values):
            return name, said
    return None


def _lists_in(value: Json, path: JsonPath = ()) -> dict[JsonPath, list[Json]]:
    """Every list by its place; the items of lists in the items of a list are taken together."""
    found: dict[JsonPath, list[Json]] = {}
    for place, items in _each_list(value, path):
        found.setdefault(place, []).extend(items)
    return found


def _each_list(value: Json, path: JsonPath) -> Iterator[tuple[JsonPath, list[Json]]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _each_list(part, (*path, str(name)))
    elif isinstance(value, list):
        yield short_place(path), value
        for part in value:
            yield from _each_list(part, (*path, -1))


def _tools(lists: dict[JsonPath, list[Json]]) -> str | None:
    """The expression for the list that holds calls: objects with a tool's name, or names under such a field."""
    best: tuple[int, str] | None = None
    for path, items in lists.items():
        name = _last_name(path)
        if not _TOOLS.search(name):
            continue
        rating = 2 if re.search(r"tool|function|plugin|skill|invo[ck]", name) else 1
        objects = as_dicts(items)
        if not items or all(isinstance(item, str) for item in items):
            shown = place_text(path) if rating == 2 else None
        else:
            shown = _calls_expression(path, objects)
            rating += 2
        if shown is not None and (best is None or rating > best[0]):
            best = (rating, shown)
    return None if best is None else best[1]


def _calls_expression(path: JsonPath, items: list[JsonObject]) -> str | None:
    """A list of calls, without items that are none, and with fields under the names that calls are read by."""
    name = _field(items, CALL_NAMES, _TOOL_NAME)
    if name is None:
        return None
    chosen = [item for item in items if item.get(name)]
    text = place_text(path)
    if len(chosen) < len(items):
        text += f"[?{place_text((name,))}]"
    arguments = _field(chosen, ARGUMENT_NAMES, re.compile(r"arg|param|input|payload|request"))
    result = _field(chosen, RESULT_NAMES, re.compile(r"result|^out|response|observ|return"))
    known = name in CALL_NAMES and arguments in (None, *ARGUMENT_NAMES) and result in (None, *RESULT_NAMES)
    if known:
        return text
    parts = {"name": name, "arguments": arguments, "result": result}
    shape = ", ".join(f"{part}: {place_text((field,))}" for part, field in parts.items() if field)
    return f"{text}{'' if text.endswith(']') else '[]'}.{{{shape}}}"


def _field(items: list[JsonObject], usual: tuple[str, ...], likely: re.Pattern[str]) -> str | None:
    """A field of the items: one of the usual names, or one whose name is like them."""
    names = list(dict.fromkeys(name for item in items for name, part in item.items() if part))
    found = next((name for name in usual if name in names), None)
    return found or next((name for name in names if likely.search(name.lower())), None)


def _sources(lists: dict[JsonPath, list[Json]]) -> str | None:
    fitting = [path for path in lists if _SOURCES.search(_last_name(path))]
    return place_text(min(fitting, key=len)) if fitting else None


def _usage(payload: Json) -> str | None:
    numbers = (leaf.path for leaf in leaves_of(payload) if type(leaf.value) is int)
    inside = (path[:-1] for path in numbers if len(path) > 1 and _USAGE.search(_last_name(path[:-1])))
    return next(
        (place_text(path) for path in inside if not any(isinstance(step, int) for step in path)), None
    )


def _last_name(path: JsonPath) -> str:
    return next((step.lower() for step in reversed(path) if isinstance(step, str)), "")


# Whole logs of Inspect, as recorded replies: a `.eval` archive, or the same as one JSON document.


# Inspect's archives are compressed with Zstandard, which Python's zipfile reads from 3.14 on.
_ZSTANDARD = 93
_LOCAL_HEADER = 30


def is_inspect_log(document: object) -> bool:
    """Whether a JSON document is a whole log."""
    log = as_dict(document)
    return isinstance(log.get("samples"), list) and isinstance(log.get("eval"), dict)


def sample_row(sample: JsonObject) -> JsonObject:
    """A sample as a row: what was asked, in which trial, and its target as the reference answer."""
    given = sample.get("input")
    asked = given if isinstance(given, str) else _last_asked(given)
    row: JsonObject = {**sample, "question": asked, "trial": sample.get("epoch")}
    target = as_str(sample.get("target"))
    return row if target is None else {**row, "reference_answer": target}


def _last_asked(messages: Json) -> str | None:
    said = [message.text for message in read_messages(messages) if message.role == "user"]
    return said[-1] if said else None


def is_eval_archive(stream: IO[bytes]) -> bool:
    """Whether an archive is a log of Inspect."""
    import zipfile  # slow to load, and few logs are archives

    try:
        with zipfile.ZipFile(stream) as archive:
            return any(name.startswith(("samples/", "_journal/")) for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def read_eval_archive(stream: IO[bytes], path: Path) -> Iterator[JsonObject]:
    """The samples of an archive, in the order of their ids and epochs."""
    import zipfile

    try:
        with zipfile.ZipFile(stream) as archive:
            members = [one for one in archive.infolist() if one.filename.startswith("samples/")]
            for member in members:
                content = _content(archive, member, path)
                # Inspect writes NaN, which is not JSON.
                yield sample_row(as_dict(decode_json(content)))
    except (zipfile.BadZipFile, ValueError) as error:
        raise InputError(f"not a log of Inspect: {str(error).splitlines()[0]}", path=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path) from None


def _content(archive: "ZipFile", member: "ZipInfo", path: Path) -> bytes:
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    try:
        import pyarrow
    except ImportError:
        remedy = "pip install 'answerkey[parquet]', or: inspect log convert --to json"
        raise InputError(f"is compressed with Zstandard; {remedy}", path=path) from None
    stream = archive.fp
    if stream is None or member.file_size > 1 << 31:
        raise InputError(f"{member.filename} is too large", path=path)
    stream.seek(member.header_offset)
    header = stream.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER:
        raise ValueError("an entry is cut off")
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    stream.seek(member.header_offset + _LOCAL_HEADER + name_length + extra_length)
    packed = stream.read(member.compress_size)
    try:
        found: bytes = pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd").read(
            member.file_size
        )
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{member.filename}: {error}") from None
    return found
