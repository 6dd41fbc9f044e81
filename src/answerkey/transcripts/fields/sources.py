"""Sources in the shapes that retrievers report them: ids, passages, or objects of many dialects, best first."""

from collections.abc import Iterable
from math import isfinite

import msgspec

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import Source
from answerkey.transcripts.fields.content_text import json_text, read_text, safe_text
from answerkey.transcripts.json_shapes import pick, read_number

_IDS = (
    *("id", "doc_id", "document_id", "docId", "documentId", "source_id", "sourceId", "_id"),
    *("file_id", "chunk_id", "documentName", "document_name"),
)
_FALLBACK_IDS = ("source", "filename", "file", "path", "document", "uri", "url", "link", "title", "name")
_TEXTS = ("text", "page_content", "pageContent", "content", "snippet", "chunk", "passage", "body")
_SCORES = ("score", "similarity", "relevance_score", "relevanceScore", "relevance")
_NESTS = ("kwargs", "document", "chunk", "node")
_URIS = ("uri", "url", "link", "href")
_PLAIN_NAMES = frozenset(["id", "rank", "score", "text"])
# A string longer than this is a passage, not an id.
_LONGEST_ID = 200


def read_sources(value: object, *, passages: bool = False) -> tuple[Source, ...]:
    """The sources in a field, in order. `passages`: its strings are texts rather than ids."""
    if not value:
        return ()
    if isinstance(value, str):
        return (_from_string(value, 1, passages),)
    if isinstance(value, dict):
        if not any(key in value for key in (*_IDS, *_FALLBACK_IDS, *_TEXTS)):
            # {"doc-1": 0.93, …}: ids with their scores.
            return tuple(
                Source(id=safe_text(str(key)), rank=rank, score=read_number(part))
                for rank, (key, part) in enumerate(value.items(), start=1)
            )
        return (read_source(value, 1),)
    if isinstance(value, (list, tuple)):
        return tuple(
            [
                _from_string(item, rank, passages) if isinstance(item, str) else read_source(item, rank)
                for rank, item in enumerate(value, start=1)
                if item is not None
            ],
        )
    return (Source(id=json_text(value), rank=1),)


def read_source(item: object, rank: int | None) -> Source:
    """One source: an object, a pair of a document and its score, or a bare id."""
    if isinstance(item, (list, tuple)) and len(item) == 2:
        inner = item[0] if isinstance(item[0], (dict, str)) else json_text(item[0])
        return msgspec.structs.replace(
            read_source(inner, rank), rank=rank, score=read_number(item[1]), cited=None
        )
    if isinstance(item, str):
        return _from_string(item, rank, False)
    if type(item) is dict and item.keys() <= _PLAIN_NAMES and (plain := _plain(item, rank)) is not None:
        return plain
    if not isinstance(item, dict):
        return Source(id=json_text(item), rank=rank)
    # LangChain's serialisation, and {"document": {…}, "score": …}.
    for nest in _NESTS:
        inner_item = item.get(nest)
        if isinstance(inner_item, dict):
            item = {**item, **inner_item}
            if item.get(nest) is inner_item:
                del item[nest]
    found = item.get("metadata")
    metadata: JsonObject = found if isinstance(found, dict) else {}
    identity = _string(item, _IDS) or _string(metadata, (*_IDS, "source")) or _string(item, _FALLBACK_IDS)
    given_rank = item.get("rank")
    cited = item.get("cited")
    score = _number(item, _SCORES)
    text_value = next((item[key] for key in _TEXTS if item.get(key) is not None), None)
    return Source(
        id=identity,
        rank=given_rank
        if isinstance(given_rank, int) and not isinstance(given_rank, bool) and abs(given_rank) < 2**62
        else rank,
        score=score if score is not None else _number(metadata, _SCORES),
        text=read_text(text_value),
        title=_string(item, ("title",)) or _string(metadata, ("title",)),
        uri=_string(item, _URIS) or _string(metadata, _URIS),
        cited=cited if isinstance(cited, bool) else None,
        metadata=metadata,
    )


def read_citation(note: JsonObject, rank: int | None = None) -> Source:
    """A source that a text cites; its title may be called that of a document or a file."""
    title = pick(note, "title", "document_title", "filename")
    return read_source({**note, "title": title, "text": note.get("cited_text"), "cited": True}, rank)


def ranked(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Sources that were found one by one, numbered in their order."""
    return tuple(msgspec.structs.replace(source, rank=rank) for rank, source in enumerate(sources, start=1))


def _plain(item: JsonObject, rank: int | None) -> Source | None:
    """A source whose fields have our own names and types, as logs have by the million; None if one has not."""
    get = item.get
    identity, score, text = get("id"), get("score"), get("text")
    if type(identity) is not str or not identity or not identity.isascii():
        return None
    if score is not None and (type(score) is not float or not isfinite(score)):
        return None
    if text is not None and (type(text) is not str or not text.isascii()):
        return None
    given = get("rank")
    if given is not None and (type(given) is not int or abs(given) >= 2**62):
        return None
    return Source(id=identity, rank=rank if given is None else given, score=score, text=text)


def _from_string(text: str, rank: int | None, passages: bool) -> Source:
    text = safe_text(text)
    if len(text) > _LONGEST_ID or "\n" in text or (passages and " " in text):
        return Source(text=text, rank=rank)
    return Source(id=text, rank=rank)


def _string(item: JsonObject, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = item.get(name)
        if isinstance(value, str) and value:
            return safe_text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def _number(item: JsonObject, names: tuple[str, ...]) -> float | None:
    for name in names:
        if name in item:
            number = read_number(item[name])
            if number is not None:
                return number
    return None
