"""Citations: which of its sources a reply cites, and which documents it cites that were never retrieved."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from answerkey.model.reply import Reply, Source

# [1], [2, 3] and 【4†source】 refer to a source by its number.
_NUMBERED = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\](?!\()|【(\d{1,3})(?::\d+)?†[^】]*】")
# "Source: lease.pdf", "(source: Lease 2024)", "[lease.pdf]": a document called by name.
_LABELLED = re.compile(r"(?i)\b(?:sources?|according to document)\s*:\s*\**\[?([^\n\]\)\*;,]{2,120})")
_FILE = re.compile(
    r"(?<![\w/.])([\w][\w\-.]*\.(?:pdf|docx?|xlsx?|csv|txt|md|html?|pptx?|eml|json))(?!\w)", re.IGNORECASE
)


_POINT = re.compile(r"\w\.\w")


class Citations(msgspec.Struct, frozen=True):
    """What a reply cites."""

    # False: neither the sources nor the text say what is cited, so nothing can be told of citations.
    observed: bool
    # Sources that are cited, and those that are not, by number (0 is the first).
    cited: tuple[int, ...]
    uncited: tuple[int, ...]
    # Documents that the text cites and that are neither among the sources nor in a tool's result.
    unretrieved: tuple[str, ...]


def find_citations(reply: Reply) -> Citations:
    """Match the citations in a reply's text, and the flags of its sources, with what was retrieved."""
    sources = reply.sources
    text = reply.text or ""
    cited = {number for number, source in enumerate(sources) if source.cited}
    observed = any(source.cited is not None for source in sources)
    unretrieved: dict[str, None] = {}
    for found in _NUMBERED.finditer(text) if "[" in text or "【" in text else ():
        for written in re.split(r"\s*,\s*", found[1] or found[2]):
            number = int(written)
            observed = True
            if 1 <= number <= len(sources):
                cited.add(number - 1)
            else:
                unretrieved[f"[{number}]"] = None
    lowered = text.lower()
    for number, source in enumerate(sources):
        for name in (source.id, source.uri, source.title):
            if name and len(name) > 2 and name.lower() in lowered and _mentions(lowered, name):
                cited.add(number)
                observed = True
                break
    # A label has the word, a file's name has a point within it.
    labels = _labels(text) if "source" in lowered or "document" in lowered or _POINT.search(text) else ()
    retrieved = _retrieved_text(reply) if labels else ""
    for label in labels:
        observed = True
        if (
            not any(_same(label, name) for source in sources for name in _names(source))
            and label.lower() not in retrieved
        ):
            unretrieved[label] = None
    return Citations(
        observed,
        tuple(sorted(cited)),
        tuple(number for number in range(len(sources)) if number not in cited),
        tuple(unretrieved),
    )


def _labels(text: str) -> Sequence[str]:
    labels = [found[1].strip(" .\"'`“”_") for found in _LABELLED.finditer(text)]
    labels = [label for label in labels if label and not label[0].isdigit() and "http" not in label.lower()]
    named = [found[1] for found in _FILE.finditer(text)]
    # A file's name says more than the words around it.
    return list(
        dict.fromkeys(named + [label for label in labels if not any(name in label for name in named)])
    )


def _names(source: Source) -> Sequence[str]:
    return [name for name in (source.id, source.uri, source.title) if name and len(name) > 2]


def _mentions(lowered: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", lowered) is not None


def _same(label: str, name: str) -> bool:
    one, other = label.lower(), name.lower()
    return one in other or other in one


def _retrieved_text(reply: Reply) -> str:
    """All texts in the tools' results and the sources, lower case: what a citation may refer to."""
    parts: list[str] = []
    pending: list[Any] = [call.result for call in reply.tool_calls]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            parts.append(value)
        elif isinstance(value, dict):
            pending.extend(value.keys())
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)
    parts.extend(source.text or "" for source in reply.sources)
    return "\n".join(parts).lower()
