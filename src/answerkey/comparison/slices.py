"""Slices of questions that are worse than the rest."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from answerkey.model.question import UNCATEGORISED, Question, group_of
from answerkey.model.why import WorseSlice
from answerkey.stats.slices import Floats, Ints, worse_slices
from answerkey.text.language import detect_language

# Fewest questions of a slice: absolute, and as a share of all.
_FEWEST, _FEWEST_SHARE = 10, 0.005
_MOST_SLICES = 2_000
_SHORT, _LONG = 8, 20
# Detecting the language of more questions takes too long.
_MOST_DETECTED = 20_000


class _SliceKey(NamedTuple):
    field: str
    value: str


def question_fields(question: Question, *, detected: bool = True) -> Iterator[tuple[str, str]]:
    """The fields of a question that slices are made of, with their values."""
    if question.category != UNCATEGORISED:
        yield "category", question.category
    if question.persona:
        yield "persona", question.persona
    yield from (("tag", tag) for tag in dict.fromkeys(question.tags))
    tools = dict.fromkeys(tool.name for turn in question.asks for tool in turn.expected_tools)
    yield from (("tool", tool) for tool in tools)
    words = len(question.question.split())
    yield (
        "length",
        f"up to {_SHORT} words"
        if words <= _SHORT
        else (f"more than {_LONG} words" if words > _LONG else f"{_SHORT + 1} to {_LONG} words"),
    )
    yield "turns", str(min(len(question.asks), 3)) + ("" if len(question.asks) < 3 else " or more")
    language = question.metadata.get("language") or question.metadata.get("lang")
    if not language and detected:
        language = detect_language(question.question)[0]
    if isinstance(language, str):
        yield "language", language


def find_slices(questions: Sequence[Question], values: Floats) -> tuple[WorseSlice, ...]:
    """Slices of one or two fields whose values are lower than those of the rest, corrected for how many were looked at.

    Questions of one group count once, with their mean; they are in a slice if all of them are.
    """
    if len(questions) < 2 * _FEWEST:
        return ()
    detected = len(questions) <= _MOST_DETECTED
    units: dict[str, list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        units[group_of(question) or f"\0{question.id}\0{index}"].append(index)
    means = np.array([float(values[members].mean()) for members in units.values()])
    singles: dict[_SliceKey, list[int]] = defaultdict(list)
    for unit, members in enumerate(units.values()):
        fields = [
            {_SliceKey(*pair) for pair in question_fields(questions[index], detected=detected)}
            for index in members
        ]
        for key in set.intersection(*fields):
            singles[key].append(unit)
    families = _candidates(singles, len(means))
    slices = [one for family in families for one in family]
    found = worse_slices(means, [[members for _, members in family] for family in families])
    sizes = np.array([len(members) for members in units.values()])
    return tuple(
        WorseSlice(
            where={key.field: key.value for key in slices[one.index][0]},
            questions=int(sizes[slices[one.index][1]].sum()),
            difference=one.difference,
            p_value=one.p_value,
        )
        for one in found
    )


_Slice = tuple[tuple[_SliceKey, ...], Ints]


def _candidates(singles: dict[_SliceKey, list[int]], units: int) -> tuple[list[_Slice], list[_Slice]]:
    """Slices of one field, and of two, without those that are too small or nearly everything."""
    fewest = max(_FEWEST, int(_FEWEST_SHARE * units))
    known = {
        key: np.array(sorted(members))
        for key, members in sorted(singles.items())
        if fewest <= len(members) <= units - fewest
    }
    # The same questions under another name are looked at once.
    of_one: dict[bytes, _Slice] = {}
    for key, members in known.items():
        of_one.setdefault(members.tobytes(), ((key,), members))
    of_two: dict[bytes, _Slice] = {}
    for (first, ours), (second, theirs) in _pairs(known.items()):
        if first.field == second.field:
            continue
        both = np.intersect1d(ours, theirs, assume_unique=True)
        if len(both) >= fewest and both.tobytes() not in of_one:
            of_two.setdefault(both.tobytes(), ((first, second), both))
    largest = sorted(of_two.values(), key=lambda one: -len(one[1]))
    return list(of_one.values()), largest[:_MOST_SLICES]


def _pairs(
    items: Iterable[tuple[_SliceKey, Ints]],
) -> Iterable[tuple[tuple[_SliceKey, Ints], tuple[_SliceKey, Ints]]]:
    """All pairs; of very many slices, those of the largest."""
    largest = sorted(items, key=lambda item: -len(item[1]))[:200]
    return combinations(largest, 2)
