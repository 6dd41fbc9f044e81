"""What the model knows of one wanted answer at one place of a reply: named numbers, each with its reason and direction."""

import math
import tomllib
from importlib import resources

from answerkey.match.align import Presence
from answerkey.match.reply import Reply
from answerkey.match.vocabulary import CUES, LIGHT_WORDS, OPPOSITES
from answerkey.match.wanted import TELLING, Term, Wanted
from answerkey.text.normalise import FUNCTION_WORDS, stem

__all__ = ["DIRECTIONS", "Hit", "features", "find_hits"]

# Name to direction, in the order in which the model reads them; each is explained in the file.
DIRECTIONS: dict[str, int] = tomllib.loads(
    resources.files("answerkey.match").joinpath("features.toml").read_text("utf-8")
)
_WAYS = {
    "word": 1.0, "number": 1.0, "date": 1.0, "inflected": 0.9, "abbreviation": 0.8, "compound": 0.7, "misspelt": 0.5,
    "other unit": 0.3, "initial": 0.3, "absent": 0.0,
}  # fmt: skip
_MOST_PLACES = 4
_NOT_DENIALS = frozenset(
    {"only", "just", "merely", "simply", "until", "more", "less", "all", "sure", "clear", "later"}
)
_DENIES = CUES["denies"]


class Hit:
    """A place in the reply's folded words where the answer may stand; from -1 to -1 where there is none."""

    __slots__ = ("at", "clause", "end", "phrase")

    def __init__(self, at: int, end: int, clause: int, phrase: bool) -> None:
        self.at, self.end, self.clause, self.phrase = at, end, clause, phrase


def find_hits(wanted: Wanted, reply: Reply, found: list[Presence]) -> list[Hit]:
    """The first few places as a phrase; else those of its figure; else where most of it stands."""
    hits: list[Hit] = []
    joined = reply.joined
    # A figure is found by its value: its sign and its unit are not in the folded words.
    figure = wanted.figure
    at = (
        -1
        if figure is not None and found[wanted.terms.index(wanted.telling[0])].strength < 1
        else joined.find(wanted.phrase)
    )
    while at >= 0 and len(hits) < _MOST_PLACES:
        hits.append(Hit(at, at + len(wanted.phrase), reply.clause_at(at), True))
        at = joined.find(wanted.phrase, at + 1)
    if hits:
        return hits
    if figure is not None:
        for quantity in reply.quantities:
            if figure.equals(quantity):
                at = reply.offset_of(quantity.start)
                hits.append(Hit(at, joined.find(" ", at + 1) + 1, reply.clause_at(at), False))
                if len(hits) == _MOST_PLACES:
                    break
        if hits:
            return hits
    return [_densest(wanted, reply, found)]


def _densest(wanted: Wanted, reply: Reply, found: list[Presence]) -> Hit:
    """The place of the heaviest found term in the clause that has most of them."""
    offsets: dict[int, float] = {}
    for term, one in zip(wanted.terms, found, strict=True):
        if one.strength <= 0 or not one.word:
            continue
        at, seen = one.offset, 0
        if at >= 0:
            offsets[at] = term.weight
            continue
        at = reply.joined.find(f" {one.word}")
        while at >= 0 and seen < _MOST_PLACES:
            offsets[at] = max(term.weight, offsets.get(at, 0.0))
            at, seen = reply.joined.find(f" {one.word}", at + 1), seen + 1
    if not offsets:
        return Hit(-1, -1, 0, False)
    weights: dict[int, float] = {}
    for at, weight in offsets.items():
        clause = reply.clause_at(at)
        weights[clause] = weights.get(clause, 0.0) + weight
    best = max(weights, key=lambda clause: (weights[clause], -clause))
    at = max((at for at in offsets if reply.clause_at(at) == best), key=lambda at: offsets[at])
    return Hit(at, reply.joined.find(" ", at + 1) + 1, best, False)


def features(
    wanted: Wanted, reply: Reply, found: list[Presence], hit: Hit, choices: int
) -> tuple[float, ...]:
    """The features in the order of `DIRECTIONS`, rounded so that equal cases are equal."""
    recall = (
        1.0
        if hit.phrase
        else sum(o.strength * t.weight for o, t in zip(found, wanted.terms, strict=True)) / wanted.total
    )
    told = len(reply.told)
    return (
        *_presence(wanted, reply, found, hit, recall),
        min(1.0, round(2 * len(wanted.telling) * recall / (told or 1), 1)),
        round(math.log1p(len(reply.words)), 1),
        round(math.log(choices), 1),
        min(6, len(wanted.telling)),
        float(wanted.is_value),
        float(wanted.is_name),
        float(wanted.is_code),
        wanted.echoes,
        *(_context(wanted, reply, hit) if hit.at >= 0 else _NO_CONTEXT),
    )


def _presence(
    wanted: Wanted, reply: Reply, found: list[Presence], hit: Hit, recall: float
) -> tuple[float, ...]:
    """How much of the answer is there, from `phrase` to `opposite`."""
    if hit.phrase:
        return (1.0, float(wanted.is_value), 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    pairs = [(t, o) for t, o in zip(wanted.terms, found, strict=True) if t.weight >= TELLING] or list(
        zip(wanted.terms, found, strict=True)
    )
    present = [o for _, o in pairs if o.strength > 0]
    values = [o for t, o in pairs if t.quantity or t.date or t.code]
    return (
        0.0,
        min((o.strength if o.way != "other unit" else 0.0 for o in values), default=0.0),
        round(recall, 2),
        *(_recall_around(wanted, reply, found, hit) if hit.at >= 0 else (0.0, 0.0)),
        min(4, sum(o.strength < 0.5 for _, o in pairs)),
        min((_WAYS[o.way] for o in present), default=0.0),
        float(bool(pairs) and pairs[-1][1].strength >= 0.5),
        float(any(o.clash and o.way != "other unit" for o in values)),
        float(any(o.way == "other unit" for o in values)),
        float(_other_name(wanted, reply, pairs)),
        float(any(_opposed(t, reply) for t, o in pairs if o.strength < 0.9)),
    )


def _recall_around(wanted: Wanted, reply: Reply, found: list[Presence], hit: Hit) -> tuple[float, float]:
    clause = reply.clauses[hit.clause]
    start, end = reply.sentence_of(hit.clause)
    near, around = clause.folded, reply.joined[start:end]
    in_clause = in_sentence = 0.0
    for term, one in zip(wanted.terms, found, strict=True):
        if one.offset >= 0:
            inside = start <= one.offset < end
            in_sentence += term.weight * one.strength * inside
            in_clause += term.weight * one.strength * (clause.at - 1 <= one.offset < clause.at + len(near))
        elif one.strength > 0:
            in_sentence += term.weight * one.strength * (f" {one.word}" in around)
            in_clause += term.weight * one.strength * (f" {one.word}" in f" {near}")
    return round(in_clause / wanted.total, 1), round(in_sentence / wanted.total, 1)


def _opposed(term: Term, reply: Reply) -> bool:
    return not OPPOSITES.get(term.stem, frozenset()).isdisjoint(reply.stem_set)


def _other_name(wanted: Wanted, reply: Reply, pairs: list[tuple[Term, Presence]]) -> bool:
    """Whether a missing word of a name has another capitalised word in its place, before or after its neighbour."""
    if not wanted.is_name or len(pairs) < 2:
        return False
    for index, (_, one) in enumerate(pairs):
        for step in (-1, 1):
            beside = index + step
            if one.way != "word" or not 0 <= beside < len(pairs) or pairs[beside][1].strength >= 0.3:
                continue
            at = reply.joined.find(f" {one.word} ")
            clause = reply.clauses[reply.clause_at(at)]
            if step > 0:
                there = reply.joined[at + len(one.word) + 2 : at + len(one.word) + 42].split(" ", 1)[0]
            else:
                there = reply.joined[max(0, at - 40) : at].rsplit(" ", 1)[-1]
            if (
                there.isalpha()
                and there not in FUNCTION_WORDS
                and there not in LIGHT_WORDS
                and stem(there) not in reply.asked.stems
                and f" {there} " in f" {clause.folded}"
                and there.capitalize() in reply.text
            ):
                return True
    return False


_NO_CONTEXT = (0.0,) * 20


def _context(wanted: Wanted, reply: Reply, hit: Hit) -> tuple[float, ...]:
    """What stands around the hit, from `denied` to `superseded`."""
    joined, asked = reply.joined, reply.asked
    clause = reply.clauses[hit.clause]
    start, end = reply.sentence_of(hit.clause)
    before = joined[max(start, hit.at - 300) : hit.at + 1].split()
    after = joined[hit.end - 1 : min(end, hit.end + 300)].split()
    in_clause = joined[max(clause.at, hit.at - 300) : hit.at + 1].split()
    cues = reply.cues_of(clause.sentence)
    overlaps = reply.overlaps
    own = overlaps[hit.clause]
    denies = "denies" in cues and not asked.negative and not wanted.denies
    first = reply.joined[1:12].split(" ", 1)[0]
    return (
        _denied(before) if denies else 0.0,
        float(denies and not _DENIES.isdisjoint(in_clause)),
        float(denies and not _DENIES.isdisjoint(after)),
        float("hedges" in cues),
        float("supposes" in cues),
        float("contrasts" in cues),
        float("?" in reply.marks[clause.sentence]),
        float(reply.abstains),
        -1.0 if first in _NO else float(first in _YES),
        round(own, 1),
        round(max(0.0, max(overlaps) - own), 1),
        *_rivals(wanted, reply, hit, own),
        *_names(reply, hit),
        float(any(not opposed.isdisjoint(clause.stems) for opposed in asked.opposites)),
        min(2, reply.not_found),
        float(not _OR.isdisjoint((*before[-3:], *after[:3]))),
        float("outdated" in cues and reply.tells_now),
    )


_OR = frozenset({"or", "oder", "ou", "oppure", "either"})


def _names(reply: Reply, hit: Hit) -> tuple[float, float]:
    """The share of the question's names and figures in the hit's sentence, and how many more another has."""
    names = reply.asked.names
    if not names:
        return 0.0, 0.0
    here = reply.names_by_sentence[reply.clauses[hit.clause].sentence]
    return round(here / len(names), 1), round((max(reply.names_by_sentence) - here) / len(names), 1)


_NO = frozenset({"no", "nein", "non", "not", "nao", "unfortunately", "nope"})
_YES = frozenset({"yes", "ja", "oui", "si", "sim", "correct", "yep"})


def _denied(before: list[str]) -> float:
    """How near a denial stands before what follows: "not 42", "rather than Denver"; "not only 42" is none."""
    following = ""
    for distance, word in enumerate(reversed(before[-5:])):
        if word in _DENIES and following not in _NOT_DENIALS:
            return 1.0 - 0.2 * distance
        following = word
    return 0.0


def _rivals(wanted: Wanted, reply: Reply, hit: Hit, own: float) -> tuple[float, float, float]:
    """Other figures of the kind that is wanted: in the hit's clause, in the reply, and how much nearer to the question."""
    figure = next((t.quantity for t in wanted.telling if t.quantity is not None), None)
    if figure is None:
        return 0.0, 0.0, 0.0
    clauses = [
        reply.clause_at(reply.offset_of(other.start))
        for other in reply.quantities[:40]
        if figure.fits(other) == 1 and not figure.equals(other) and _is_year(figure) == _is_year(other)
    ]
    nearer = max((reply.overlaps[clause] for clause in clauses), default=0.0) - own
    return min(3, clauses.count(hit.clause)), min(5, len(clauses)), round(max(0.0, nearer), 1)


def _is_year(quantity: object) -> bool:
    values = getattr(quantity, "values", ())
    return not getattr(quantity, "dimension", "") and any(1900 <= value <= 2100 for value in values)
