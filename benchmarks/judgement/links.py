"""Links and novelty on labelled replies: what stands in the evidence, what is derived from it, and what is drawn at random.

Whether something stands in the evidence is told by plain search here, not by the code that is measured: a figure by its
digits, a name, id or quote by its letters, a date by its ISO form. A random figure has the form of the one it replaces.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from answerkey.grounded import derived
from answerkey.grounded.links import Link, link_reply
from answerkey.grounded.words import novelty_of
from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source, ToolCall
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


def labelled_rows(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(author's file, row) of every labelled reply with evidence."""
    for path in sorted(folder.glob("grounded_*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path.stem, json.loads(line)


def supported_spans(row: dict[str, Any]) -> list[tuple[int, int]]:
    """The stretches of the answer that are labelled as supported."""
    spans, at = [], 0
    for sentence in row["sentences"]:
        start = row["answer"].find(sentence["text"], at)
        if start >= 0:
            at = start + len(sentence["text"])
            if sentence["supported"] is True:
                spans.append((start, at))
    return spans


def stands_there(item: Link, row: dict[str, Any]) -> bool:
    """Whether an item stands in the evidence as a plain search finds it."""
    evidence = json.dumps([row["tool_calls"], row["sources"], row["question"]], ensure_ascii=False)
    if item.kind == "figure":
        stated = _NUMBER.search(item.text)
        return stated is not None and _plain(stated[0]) in {_plain(one) for one in _NUMBER.findall(evidence)}
    if item.kind == "date":
        stated_dates = [one for one in find_dates(item.text) if one.month and one.day]
        return any(f"-{one.month:02}-{one.day:02}" in evidence for one in stated_dates)
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
    for item in link_reply(*reply_of(row)).items:
        if not any(start <= item.start < end for start, end in spans):
            continue
        sort = "stands" if stands_there(item, row) else "derivable" if _derivable(item, row) else "other"
        counts[f"{sort} {item.kind}"] += 1
        counts[f"{sort} {item.kind} linked"] += bool(item.where)
        if item.kind == "figure" and item.text[0].isdigit():
            drawn = random_figure(item.text, generator)
            text = row["answer"][: item.start] + drawn + row["answer"][item.end :]
            found = [one for one in link_reply(*reply_of(row, text)).items if one.start == item.start]
            size = min(4, sum(map(str.isdigit, drawn)))
            for name in ("random figure", f"random figure of {size} digits"):
                counts[name] += 1
                counts[f"{name} linked"] += any(one.where for one in found)


def _derivable(item: Link, row: dict[str, Any]) -> bool:
    """Whether a figure follows plainly from a column if chance is no matter: some of these do so by chance only."""
    if item.kind != "figure":
        return False
    bounds = derived._CHANCE, derived._CHANCE_OF_COUNT
    derived._CHANCE, derived._CHANCE_OF_COUNT = 1e9, 1e9
    try:
        return any(one.start == item.start and one.where for one in link_reply(*reply_of(row)).items)
    finally:
        derived._CHANCE, derived._CHANCE_OF_COUNT = bounds


def area_under_curve(positive: list[float], negative: list[float]) -> float:
    """How often a positive is above a negative, ties half."""
    above = sum((one > other) + 0.5 * (one == other) for one in positive for other in negative)
    return above / (len(positive) * len(negative))


def novelty_curve(path: Path) -> dict[str, float]:
    """By part of the attributed replies: how well novelty tells those that are not fully attributable."""
    parts: dict[str, tuple[list[float], list[float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        value = novelty_of(row["response"], [row["knowledge"]])
        for name in ("all", row["id"].rsplit("-", 1)[0]):
            more, less = parts.setdefault(name, ([], []))
            (less if row["label"] == "Fully attributable" else more).append(1.0 if value is None else value)
    return {name: area_under_curve(*lists) for name, lists in parts.items()}


def table(arguments: argparse.Namespace) -> None:
    """Print the figures, by author and together."""
    by_author: dict[str, Counter[str]] = {}
    generator = random.Random(12)
    for author, row in labelled_rows(arguments.replies):
        measure(row, by_author.setdefault(author, Counter()), generator)
    by_author["all"] = sum(by_author.values(), Counter())
    for author, counts in by_author.items():
        print(author)
        for name in sorted(name for name in counts if not name.endswith("linked")):
            linked = counts[f"{name} linked"]
            print(f"  {name:30} {counts[name]:5}  linked {linked:5}  {linked / counts[name]:.3f}")
    curve = novelty_curve(arguments.attributed) if arguments.attributed else {}
    for name, area in curve.items():
        print(f"novelty, {name:20} area under the curve {area:.3f}")
