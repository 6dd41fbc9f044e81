"""What the model knows of one wanted answer at one place of a reply: named numbers, each with its reason and direction."""

import math
import re

from rapidfuzz import fuzz

from answerkey.match.align import Presence
from answerkey.match.reply import Reply
from answerkey.match.vocabulary import CUES, LIGHT_WORDS, OPPOSITES
from answerkey.match.wanted import TELLING, Term, Wanted
from answerkey.text.normalise import FUNCTION_WORDS, stem

__all__ = ["DIRECTIONS", "Hit", "features", "find_hits"]

# Name to direction: 1 speaks for the answer, -1 against it, 0 as the labels say.
DIRECTIONS: dict[str, int] = {
    # 1 if its words stand there in a row.
    "phrase": 1,
    # 1 if an amount or a date of the same worth stands there, 0.6 where a part of the date is not given.
    "same_value": 1,
    # Share of what it tells that is in the reply; words of the question and titles weigh little.
    "recall": 1,
    # The same in the clause and in the sentence of the hit.
    "recall_in_clause": 1,
    "recall_in_sentence": 1,
    # How many telling words are missing, up to four.
    "missing": -1,
    # How surely its weakest telling word was recognised: 1 as it is, 0.9 inflected, down to 0.3 by an initial.
    "way": 1,
    # Whether the last telling word (a surname, a head noun) is there.
    "last_word": 1,
    # Likeness, character by character, to any stretch of the reply.
    "likeness": 1,
    # A figure or date of it is absent while the reply has another of its kind, or has its unit wrong.
    "other_value": -1,
    # Its figure stands there with another unit or currency.
    "other_unit": -1,
    # A part of the name is there beside another capitalised word: Neil Sedaka for Neil Young.
    "other_name": -1,
    # A word of opposite meaning is in the reply, and the word itself is not.
    "opposite": -1,
    # It stands there inside a longer word or number only.
    "inside": 0,
    # Share of what the reply tells that belongs to the answer.
    "precision": 0,
    # Logarithm of how many words the reply has.
    "length": 0,
    # Logarithm of how many ways to say it there are.
    "choices": 0,
    # Below 1 for the part of an accepted answer before a remark.
    "share": 1,
    # What is wanted: its telling words; a figure or date; a name; a code; a list.
    "words": 0,
    "is_value": 0,
    "is_name": 0,
    "is_code": 0,
    "is_list": 0,
    # Share of it that the question gives away.
    "echoes": 0,
    # How near before it a denial stands (1 beside it, 0 from six words on); a denial before it in its sentence, in its clause, and after it.
    "denied": -1,
    "denial_before": -1,
    "denial_in_clause": -1,
    "denial_after": -1,
    # Its sentence hedges; tells of the past; supposes; sets against; says what is unknown; asks.
    "hedges": -1,
    "outdated": -1,
    "supposes": -1,
    "contrasts": 0,
    "unknowns": 0,
    "asks": -1,
    # The reply begins by saying that it does not know.
    "abstains": -1,
    # The reply begins with no; with yes.
    "says_no": 0,
    # How much of the question the clause of the hit repeats, and how much less than the best other clause.
    "on_topic": 1,
    "better_elsewhere": -1,
    # Other figures of the same kind in its clause and in the reply; how much nearer to the question the best of them is.
    "rivals_in_clause": 0,
    "rivals": 0,
    "nearer_rival": -1,
    # The question names a year or number, and the hit's sentence has another one instead.
    "other_number": -1,
    # Share of the question's names and figures in the hit's sentence; how many more another sentence has, or another clause
    # than the hit's own.
    "names_here": 1,
    "names_elsewhere": -1,
    "names_in_other_clause": -1,
    # Capitalised words of the hit's clause that are neither asked for nor wanted, up to three.
    "foreign_names": 0,
    # The hit's clause has the opposite of a word of the question: closes for opens.
    "asked_opposite": -1,
    # How many sentences say that something is not found, given or known, up to two.
    "not_found": -1,
    # "or" stands beside it.
    "or_beside": -1,
    # Its sentence tells of the past, and some sentence of what is now.
    "superseded": -1,
}
_WAYS = {"word": 1.0, "number": 1.0, "date": 1.0, "inflected": 0.9, "abbreviation": 0.8, "compound": 0.7, "misspelt": 0.5, "other unit": 0.3, "initial": 0.3, "absent": 0.0}  # fmt: skip
_MOST_PLACES = 4
_LONGEST = 4000
_NOT_DENIALS = frozenset({"only", "just", "merely", "simply", "until", "more", "less", "all", "sure", "clear", "later"})
_DENIES = CUES["denies"]


class Hit:
    """A place in the reply's folded words where the answer may stand; from -1 to -1 where there is none."""

    __slots__ = ("at", "clause", "end", "phrase")

    def __init__(self, at: int, end: int, clause: int, phrase: bool) -> None:
        self.at, self.end, self.clause, self.phrase = at, end, clause, phrase


def find_hits(wanted: Wanted, reply: Reply, found: list[Presence]) -> list[Hit]:
    """The first few places as a phrase; else those of its figure; else where most of it stands."""
    hits = []
    joined = reply.joined
    # A figure is found by its value: its sign and its unit are not in the folded words.
    figure = wanted.telling[0].quantity if len(wanted.telling) == 1 else None
    at = -1 if figure is not None and found[wanted.terms.index(wanted.telling[0])].strength < 1 else joined.find(wanted.phrase)
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


def features(wanted: Wanted, reply: Reply, found: list[Presence], hit: Hit, choices: int) -> tuple[float, ...]:
    """The features in the order of `DIRECTIONS`, rounded so that equal cases are equal."""
    recall = 1.0 if hit.phrase else sum(o.strength * t.weight for o, t in zip(found, wanted.terms, strict=True)) / wanted.total
    told = len(reply.told)
    return (
        *_presence(wanted, reply, found, hit, recall),
        min(1.0, round(2 * len(wanted.telling) * recall / (told or 1), 1)),
        round(math.log1p(len(reply.words)), 1),
        round(math.log(choices), 1),
        round(wanted.share, 1),
        min(6, len(wanted.telling)),
        float(any(t.quantity or t.date for t in wanted.telling)),
        float(wanted.is_name),
        float(wanted.is_code),
        float(wanted.is_list),
        round(sum(t.weight <= 0.2 for t in wanted.terms) / (len(wanted.terms) or 1), 1),
        *(_context(wanted, reply, hit) if hit.at >= 0 else _NO_CONTEXT),
    )


def _presence(
    wanted: Wanted, reply: Reply, found: list[Presence], hit: Hit, recall: float
) -> tuple[float, ...]:
    """How much of the answer is there, from `phrase` to `inside`."""
    if hit.phrase:
        return (1.0, float(any(t.quantity or t.date for t in wanted.telling)), 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # fmt: skip
    pairs = [(t, o) for t, o in zip(wanted.terms, found, strict=True) if t.weight >= TELLING] or list(
        zip(wanted.terms, found, strict=True)
    )
    present = [o for _, o in pairs if o.strength > 0]
    values = [o for t, o in pairs if t.quantity or t.date or t.code]
    likeness = 0.0
    if 0 < recall < 1 and all(o.strength for o in values):
        told = " ".join(t.word for t, _ in pairs)
        likeness = round(fuzz.partial_ratio(told, reply.joined[:_LONGEST]) / 100, 1)
    return (
        0.0,
        min((o.strength if o.way != "other unit" else 0.0 for o in values), default=0.0),
        round(recall, 2),
        *(_recall_around(wanted, reply, found, hit) if hit.at >= 0 else (0.0, 0.0)),
        min(4, sum(o.strength < 0.5 for _, o in pairs)),
        min((_WAYS[o.way] for o in present), default=0.0),
        float(bool(pairs) and pairs[-1][1].strength >= 0.5),
        likeness,
        float(any(o.clash and o.way != "other unit" for o in values)),
        float(any(o.way == "other unit" for o in values)),
        float(_other_name(wanted, reply, pairs)),
        float(any(_opposed(t, reply) for t, o in pairs if o.strength < 0.9)),
        float(recall < 1 and wanted.lowered in reply.text.lower()),
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
            there = reply.joined[at + len(one.word) + 2 :][:40].split(" ", 1)[0] if step > 0 else reply.joined[max(0, at - 40) : at].rsplit(" ", 1)[-1]  # fmt: skip
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


_NO_CONTEXT = (0.0,) * 26


def _context(wanted: Wanted, reply: Reply, hit: Hit) -> tuple[float, ...]:
    """What stands around the hit, from `denied` to `other_number`."""
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
    numbers = [w for w in (*before, *after) if w[0].isdigit()]
    return (
        _denied(before) if denies else 0.0,
        float(denies and not _DENIES.isdisjoint(before)),
        float(denies and not _DENIES.isdisjoint(in_clause)),
        float(denies and not _DENIES.isdisjoint(after)),
        float("hedges" in cues),
        float("outdated" in cues),
        float("supposes" in cues),
        float("contrasts" in cues),
        float("unknowns" in cues),
        float("?" in reply.marks[clause.sentence]),
        float(reply.abstains),
        -1.0 if first in _NO else float(first in _YES),
        round(own, 1),
        round(max(0.0, max(overlaps) - own), 1),
        *_rivals(wanted, reply, hit, own),
        float(bool(asked.numbers) and bool(numbers) and asked.numbers.isdisjoint(numbers)),
        *_names(wanted, reply, hit),
        float(any(not opposed.isdisjoint(clause.stems) for opposed in asked.opposites)),
        min(2, reply.not_found),
        float(not _OR.isdisjoint((*before[-3:], *after[:3]))),
        float("outdated" in cues and reply.tells_now),
    )


_OR = frozenset({"or", "oder", "ou", "oppure", "either"})


def _names(wanted: Wanted, reply: Reply, hit: Hit) -> tuple[float, ...]:
    """The question's names and figures in the hit's sentence and elsewhere, and others in its clause."""
    clause, names = reply.clauses[hit.clause], reply.asked.names
    here = more = beside = 0
    if names:
        here = reply.names_by_sentence[clause.sentence]
        more = max(reply.names_by_sentence) - here
        beside = max(reply.names_by_clause) - reply.names_by_clause[hit.clause]
    told = {stem(word) for word in wanted.phrase.split()}
    foreign = {
        word
        for name in _CAPITALISED.findall(reply.text, clause.start, min(clause.end, clause.start + 400))
        if (word := stem(name.lower())) not in reply.asked.stems and word not in told
    }
    all_of_them = len(names) or 1
    return round(here / all_of_them, 1), round(more / all_of_them, 1), round(beside / all_of_them, 1), min(3, len(foreign))


_CAPITALISED = re.compile(r"(?<=[^.!?|\n] )[A-Z][^\W_]+")


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
