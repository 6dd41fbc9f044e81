"""Counts how many items of labelled replies get a link: items in the evidence, derived figures, random figures.

A plain search, not the code that is measured, decides whether an item is in the evidence: a figure by its digits, a name, id or
quote by its letters, a date by its ISO form. A random figure has the form of the one that it replaces.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import permutations
from typing import Any

from labelled_sets import labelled_files, read_rows

from answerkey.evidence.links import find_links
from answerkey.model.question import Question
from answerkey.model.reply import Link, Reply, Source, ToolCall
from answerkey.text.dates import find_dates

_NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def reply_of(row: dict[str, Any], text: str | None = None) -> tuple[Question, Reply]:
    """A labelled row as question and reply, with another text where one is given."""
    calls = [
        ToolCall(
            name=call["name"], arguments=call.get("arguments"), result=call.get("result"), result_seen=True
        )
        for call in row["tool_calls"]
    ]
    sources = [
        Source(id=one.get("id"), title=one.get("title"), text=one.get("text")) for one in row["sources"]
    ]
    said = row["answer"] if text is None else text
    reply = Reply(text=said, tool_calls=tuple(calls), sources=tuple(sources))
    return Question(id=row["id"], question=row["question"]), reply


def labelled_rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """(file, row) of every labelled reply with evidence."""
    for path in labelled_files("evidence/*"):
        for row in read_rows(path):
            yield path.stem, row


def supported_spans(row: dict[str, Any]) -> list[tuple[int, int, str]]:
    """The stretches of the answer that are labelled as supported, each with the author's note why."""
    spans, at = [], 0
    for sentence in row["sentences"]:
        start = row["answer"].find(sentence["text"], at)
        if start >= 0:
            at = start + len(sentence["text"])
            if sentence["supported"] is True:
                spans.append((start, at, sentence.get("why") or ""))
    return spans


def is_in_evidence(item: Link, row: dict[str, Any]) -> bool:
    """Whether a plain search finds an item in the evidence."""
    evidence = json.dumps([row["tool_calls"], row["sources"], row["question"]], ensure_ascii=False)
    if item.kind == "figure":
        stated = _NUMBER.search(item.text)
        return stated is not None and _plain(stated[0]) in {_plain(one) for one in _NUMBER.findall(evidence)}
    if item.kind == "date":
        stated_dates = [one for one in find_dates(item.text) if one.month and one.day]
        return any(f"{one.year or ''}-{one.month:02}-{one.day:02}" in evidence for one in stated_dates)
    return item.kind != "time" and _letters(item.text) in _letters(evidence)


def _plain(number: str) -> float:
    text = number.rstrip(".,")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return -1.0


def _letters(text: str) -> str:
    return " " + " ".join(re.findall(r"[^\W_]+", text.lower())) + " "


def random_figure(stated: str, generator: random.Random) -> str:
    """A figure with other digits and the same form."""
    while True:
        digits = [generator.choice("0123456789") if mark.isdigit() else mark for mark in stated]
        first = next(index for index, mark in enumerate(digits) if mark.isdigit())
        digits[first] = generator.choice("123456789")
        drawn = "".join(digits)
        if drawn != stated:
            return drawn


def measure(row: dict[str, Any], counts: Counter[str], generator: random.Random) -> None:
    """Count one row's items."""
    spans = supported_spans(row)
    for item in find_links(*reply_of(row))[0]:
        why = next((why for start, end, why in spans if start <= item.start < end), None)
        if why is None:
            continue
        for name in _sorts(item, row, why):
            counts[f"{name} {item.kind}"] += 1
            counts[f"{name} {item.kind} linked"] += bool(item.where)
        if item.kind == "figure" and item.text[0].isdigit():
            drawn = random_figure(item.text, generator)
            text = row["answer"][: item.start] + drawn + row["answer"][item.end :]
            found = [one for one in find_links(*reply_of(row, text))[0] if one.start == item.start]
            size = min(4, sum(map(str.isdigit, drawn)))
            for name in ("random figure", f"random figure of {size} digits"):
                counts[name] += 1
                counts[f"{name} linked"] += any(one.where for one in found)


def _sorts(item: Link, row: dict[str, Any], why: str) -> tuple[str, ...]:
    """ "derived": it follows from a column, and the author's note works it out; "derivable": it follows, if by chance."""
    # What the author's note works out is elsewhere only by coincidence.
    worked_out = {_plain(one) for one in re.findall(r"=\s*\D?(\d[\d.,]*)", why)}
    stated = _NUMBER.search(item.text)
    if is_in_evidence(item, row) and (stated is None or _plain(stated[0]) not in worked_out):
        return ("in evidence",)
    if not _derivable(item, row):
        return ("other",)
    noted = {_plain(one) for one in _NUMBER.findall(why)}
    return ("derivable", "derived") if _plain(_NUMBER.findall(item.text)[0]) in noted else ("derivable",)


def _derivable(item: Link, row: dict[str, Any]) -> bool:
    """Whether a figure follows plainly from a column or record of a result, by trying everything; some do by chance only."""
    stated = _NUMBER.search(item.text)
    if item.kind != "figure" or stated is None:
        return False
    value, decimals = _plain(stated[0]), len(stated[0].rstrip(".,").partition(".")[2])
    percent = row["answer"][item.end : item.end + 2].strip()[:1] == "%"
    return any(
        round(abs(worth) * (100 if share else 1), decimals) == value
        for worth, share in _everything(row)
        if percent or not share
    )


def _everything(row: dict[str, Any]) -> Iterator[tuple[float, bool]]:
    """(worth, whether it is a share) of all counts, sums, averages, differences, changes and shares."""
    groups: dict[object, list[float]] = defaultdict(list)
    for number, call in enumerate(row["tool_calls"]):
        waiting: list[tuple[tuple[Any, ...], Any]] = [((number,), call.get("result"))]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, dict | list):
                pairs = value.items() if isinstance(value, dict) else enumerate(value)
                waiting += [((*path, key), one) for key, one in pairs]
                if isinstance(value, list):
                    yield len(value), False
            elif isinstance(value, int | float) and not isinstance(value, bool):
                groups["record", path[:-1]].append(value)
                groups["column", tuple("*" if isinstance(key, int) else key for key in path[1:])].append(
                    value
                )
    for values in groups.values():
        whole = sum(values)
        yield from ((whole, False), (whole / len(values), False))
        yield from ((one / whole, True) for one in values if whole)
        for one, other in permutations(values, 2):
            yield one - other, False
            if other:
                yield from ((one / other, True), (one / other - 1, True))
