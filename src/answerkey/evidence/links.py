"""Links: where each figure, date, name, id and quote of a reply occurs in its evidence; and entailment models.

A link says where to look, not that the statement is right; a mention without a link is listed, not called wrong. The evidence
is indexed once, by value and by word, and each mention of the reply is looked up. What is not found may be derived: a
count, sum, average, difference or share of the cells of a table.

An entailment model, a cross-encoder in ONNX form, checks the sentences of a reply against its evidence. A model is a folder with
`model.onnx`, `tokenizer.json` and `config.json` (whose `id2label` names the labels), or the name of a model on the Hugging Face
hub. Needs the extra `entailment`.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, groupby, pairwise, permutations
from math import fsum
from operator import add, attrgetter, sub, truediv
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from answerkey.errors import ConfigError, MissingExtraError
from answerkey.evidence.records import (
    MAX_EVIDENCE_CHARACTERS,
    UNITS,
    Amount,
    CalendarDate,
    Digits,
    EarlierTurns,
    Evidence,
    EvidenceValue,
    Mention,
    Reading,
    RecordPath,
    TimeOfDay,
    Words,
    content_words,
    find_mentions,
    find_names,
    gather_evidence,
    novelty,
    sentence_edges,
)
from answerkey.model.question import Question
from answerkey.model.reply import Link, Reply

MAX_REPLY_CHARACTERS = 50_000
# Candidates whose surroundings are compared: for all mentions of a reply, and for one mention.
_MAX_CANDIDATES, _MAX_CANDIDATES_PER_MENTION = 20_000, 100
# The surroundings of a candidate: in a passage its block of characters and the two beside it, in a record its first characters.
_BLOCK, _MAX_SURROUNDINGS = 60, 1_000
# With enough numbers almost any figure is the difference or ratio of two of them. A hit counts only if the number of hits
# that a random figure would have among everything tried is below this: in general, and for what the sentence states.
_MAX_CHANCE, _MAX_CHANCE_NEAR = 0.1, 0.25
_MAX_COUNTS = 2  # with more distinct list lengths, a count is not evidence
_MAX_PAIRED_CELLS = 12  # larger groups of cells are not compared in pairs
_MAX_PAIRS = 4_000
# Smaller digits inside a date or id are found too often by chance.
_MIN_DIGITS_VALUE = 1000


class TooLargeError(ValueError):
    """The reply or its evidence is too large to be searched."""


def find_links(
    question: Question, reply: Reply, earlier: EarlierTurns = ()
) -> tuple[tuple[Link, ...], float | None]:
    """The links of a reply into its tool results, sources, arguments and question, and its novelty."""
    text = reply.text or ""
    if len(text) > MAX_REPLY_CHARACTERS:
        raise TooLargeError(f"the reply has {len(text):,} characters (limit {MAX_REPLY_CHARACTERS:,})")
    evidence = gather_evidence(question, reply, earlier)
    if evidence.length > MAX_EVIDENCE_CHARACTERS:
        raise TooLargeError(f"the evidence has more than {MAX_EVIDENCE_CHARACTERS:,} characters")
    search = _LinkSearch(text, evidence)
    links = sorted(search.links(), key=attrgetter("start")) if evidence.values else ()
    return tuple(links), novelty(search.reply_words, search.evidence_words)


# The index of the evidence.


class _HasValue(Protocol):
    @property
    def value(self) -> float: ...


_Item = TypeVar("_Item", bound=_HasValue)


class SortedValues(Generic[_Item]):
    """Items sorted by value."""

    def __init__(self, items: Iterable[_Item]) -> None:
        self._items = sorted(items, key=attrgetter("value"))
        self._values = [item.value for item in self._items]
        self._distinct = list(dict.fromkeys(self._values))

    def near(self, quantity: Amount, limit: int) -> tuple[list[_Item], float]:
        """The items that round to a quantity, and the number of hits that a random figure like it would have."""
        value, step = quantity.value, quantity.step
        half = 0.5001 * step + 1e-9 * value
        first, last = bisect_left(self._values, value - half), bisect_right(self._values, value + half)
        similar = bisect_right(self._distinct, 2 * value) - bisect_left(self._distinct, value / 2)
        return self._items[first : min(last, first + limit)], similar * step / (1.5 * value) if value else 1.0


class _Occurrence(msgspec.Struct, frozen=True, gc=False):
    """A span of the evidence, with its value if it is a quantity or time of day."""

    start: int
    end: int
    value: float = 0.0


class _Candidate(msgspec.Struct, frozen=True, gc=False):
    """A span of the evidence that a mention may refer to."""

    start: int
    end: int
    value: float = 0.0
    how: str = ""  # as in Link.how
    may_be_chance: bool = False  # a random figure like it would often be found


class _EvidenceIndex:
    """The quantities, dates, times and digits of the evidence, each under every reading by which it may be mentioned."""

    def __init__(self, evidence: Evidence, words: Words) -> None:
        self._quantities: dict[str, list[_Occurrence]] = defaultdict(list)  # by unit
        self._sorted_quantities: dict[str, SortedValues[_Occurrence]] = {}
        self._exact: dict[CalendarDate | TimeOfDay | Digits, list[_Occurrence]] = defaultdict(list)
        for value in evidence.values:
            if value.number is not None:
                self._add_number(value, abs(value.number))
        for mention in find_mentions(evidence.text, words):
            for reading in mention.readings:
                self._add_reading(reading, mention)

    def _add_number(self, value: EvidenceValue, number: float) -> None:
        self._quantities[""].append(_Occurrence(value.start, value.start, number))
        unit = UNITS.get(str(value.key).rpartition("_")[2].lower())  # delay_min is in minutes
        if unit:
            dimension, factor = unit
            self._quantities[dimension].append(_Occurrence(value.start, value.start, number * factor))

    def _add_reading(self, reading: Reading, mention: Mention) -> None:
        if isinstance(reading, Amount):
            if reading.how in ("", "converted"):
                occurrence = _Occurrence(mention.start, mention.end, reading.value)
                self._quantities[reading.unit].append(occurrence)
            return
        minutes = reading.minutes if isinstance(reading, TimeOfDay) else 0.0
        occurrence = _Occurrence(mention.start, mention.end, minutes)
        if isinstance(reading, CalendarDate):
            year, month, day = reading.year, reading.month, reading.day
            # A set, since a date without a year is one of its own parts.
            parts = {
                reading,
                CalendarDate(None, month, day),
                CalendarDate(year, month, None),
                CalendarDate(None, month, None),
            }
            for part in parts:
                self._exact[part].append(occurrence)
            if year is not None:
                self._exact[Digits(year)].append(occurrence)
        elif isinstance(reading, TimeOfDay) or mention.kind == "part":
            self._exact[reading].append(occurrence)

    def quantities_near(self, quantity: Amount, limit: int) -> tuple[list[_Occurrence], float]:
        """The occurrences that round to a quantity, and the number of hits expected by chance."""
        unit = quantity.unit
        if unit not in self._quantities:
            return [], 0.0
        if unit not in self._sorted_quantities:
            self._sorted_quantities[unit] = SortedValues(self._quantities[unit])
        return self._sorted_quantities[unit].near(quantity, limit)

    def occurrences(self, reading: CalendarDate | TimeOfDay | Digits, limit: int) -> list[_Occurrence]:
        return self._exact.get(reading, [])[:limit]


# The search.


class _LinkSearch:
    """The search for one reply's links."""

    def __init__(self, text: str, evidence: Evidence) -> None:
        self._text = text
        self._evidence = evidence
        self.reply_words, self.evidence_words = Words(text), Words(evidence.text)
        self._mentions = find_mentions(text, self.reply_words, is_reply=True)
        self._mentions += find_names(text, self.reply_words, self._mentions)
        share = _MAX_CANDIDATES // max(1, len(self._mentions))
        self._max_candidates = max(4, min(_MAX_CANDIDATES_PER_MENTION, share))
        self._index = _EvidenceIndex(evidence, self.evidence_words)
        # Word key → indices of the evidence's words, for the words of the reply's mentions.
        self._word_indices: dict[str, list[int]] = defaultdict(list)
        wanted = {self.reply_words.keys[index] for mention in self._mentions for index in mention.words}
        for index, key in enumerate(self.evidence_words.keys) if wanted else ():
            if key in wanted:
                self._word_indices[key].append(index)
        self._sentence_edges = sentence_edges(text)
        # By number of the sentence, from 1: its content words, and the cells that it was linked to.
        sentences = [self.reply_words.indices(*edges) for edges in pairwise(self._sentence_edges)]
        self._sentence_words: list[set[str]] = [set()]
        self._sentence_words += [
            content_words(self.reply_words.keys[one.start : one.stop]) for one in sentences
        ]
        self._stated: dict[int, list[_Cell]] = defaultdict(list)

    def links(self) -> Iterator[Link]:
        """Direct links first, since derived figures are looked for among the cells that their sentence states."""
        not_found: list[Mention] = []
        for mention in self._mentions:
            if mention.words:
                yield from self._link_words(mention)
            elif mention.kind != "part":
                candidates = self._candidates(mention.readings, is_scaled=mention.is_scaled)
                best = self._choose(mention.start, candidates)
                if best is None and mention.kind == "figure":
                    not_found.append(mention)
                else:
                    yield self._link(mention.start, mention.end, mention.kind, best)
        if not_found:
            derived = _DerivedFigures(self._evidence)
            for mention in not_found:
                sentence = self._sentence_number(mention.start)
                derivation = derived.find(mention, sentence, self._stated[sentence])
                yield self._link(mention.start, mention.end, "figure", derivation)

    def _sentence_number(self, offset: int) -> int:
        return bisect_right(self._sentence_edges, offset)

    def _candidates(self, readings: Sequence[Reading], *, is_scaled: bool = False) -> list[_Candidate]:
        """The candidates of every reading: as it is, then rounded, then in another unit, then as part of a date or id."""
        by_start: dict[int, _Candidate] = {}
        for reading in readings:
            if isinstance(reading, Amount):
                self._add_quantities(by_start, reading, is_scaled)
            else:
                may_be_chance = isinstance(reading, Digits) and reading.value < _MIN_DIGITS_VALUE
                for one in self._index.occurrences(reading, self._max_candidates):
                    candidate = _Candidate(one.start, one.end, one.value, may_be_chance=may_be_chance)
                    by_start.setdefault(one.start, candidate)
        return list(by_start.values())[: self._max_candidates]

    def _add_quantities(self, by_start: dict[int, _Candidate], quantity: Amount, is_scaled: bool) -> None:
        value, how = quantity.value, quantity.how
        nearby, chance = self._index.quantities_near(quantity, self._max_candidates)
        for one in nearby:
            is_exact = abs(one.value - value) <= 1e-9 * value
            known = by_start.get(one.start)
            if known is not None:
                # The same number of the same unit is not there by chance.
                if is_exact and how == "converted" and not known.how:
                    by_start[one.start] = _Candidate(one.start, one.end, one.value)
            elif is_exact or value >= 10 * quantity.step or is_scaled:
                candidate_how = how if is_exact or how == "converted" else "rounded"
                by_start[one.start] = _Candidate(
                    one.start, one.end, one.value, candidate_how, may_be_chance=chance > _MAX_CHANCE
                )

    def _choose(self, start: int, candidates: Sequence[_Candidate]) -> _Candidate | None:
        """The candidate whose surroundings share most words with the sentence; one that may be chance needs a shared word."""
        sentence = self._sentence_number(start)
        best: _Candidate | None = None
        if len(candidates) == 1 and not candidates[0].may_be_chance:
            best = candidates[0]
        else:
            best_shared = -1.0
            for candidate in candidates:
                shared = self._shared_words(self._sentence_words[sentence], candidate.start)
                rating = shared - (0.5 if candidate.how else 0.0)
                if rating > best_shared and (rating > 0 or not candidate.may_be_chance):
                    best, best_shared = candidate, rating
        if best is not None:
            self._stated[sentence].append(_Cell(best.value, self._evidence.value_at(best.start)))
        return best

    def _shared_words(self, words: set[str], start: int) -> int:
        """How many words occur near an offset of the evidence, or in the names of its value."""
        value = self._evidence.value_at(start)
        record, next_record = self._evidence.records[value.record : value.record + 2]
        first, last, block = record.start, next_record.start, start - start % _BLOCK
        if record.path is None or len(value.text) > 3 * _BLOCK:
            first, last = max(first, block - _BLOCK), min(last, block + 2 * _BLOCK)
        near = self.evidence_words.indices(first, min(last, first + _MAX_SURROUNDINGS))
        names = _name_words((*(record.path or ()), value.key))
        return len(words.intersection(chain(self.evidence_words.keys[near.start : near.stop], names)))

    def _link_words(self, mention: Mention) -> Iterator[Link]:
        """The link of a name, id or quote; if a name is not found as a whole but some of its words are, one link per word."""
        starts, ends = self.reply_words.starts, self.reply_words.ends
        found = [(mention.words, self._word_candidates(mention.words))]
        if not found[0][1] and mention.kind == "name":
            single = [
                range(index, index + 1) for index in mention.words if self._text[starts[index]].isupper()
            ]
            by_word = [(word, self._word_candidates(word)) for word in single]
            found = by_word if any(candidates for _, candidates in by_word) else found
        for words, candidates in found:
            if mention.is_doubtful and words == mention.words[:1]:
                # A word that begins a sentence is a name only if the evidence capitalises it.
                candidates = [one for one in candidates if self._evidence.text[one.start].isupper()]
                if not candidates:
                    continue
            start, end = starts[words.start], ends[words.stop - 1]
            yield self._link(start, end, mention.kind, self._choose(start, candidates))

    def _word_candidates(self, words: range) -> list[_Candidate]:
        """The places where words follow each other within one value of the evidence."""
        keys, known = self.reply_words.keys[words.start : words.stop], self.evidence_words
        value_at = self._evidence.value_at
        candidates: list[_Candidate] = []
        for index in self._word_indices[keys[0]][: 10 * self._max_candidates]:
            last = index + len(keys) - 1
            if known.keys[index : last + 1] == keys:
                start, end = known.starts[index], known.ends[last]
                if len(keys) == 1 or value_at(start) is value_at(known.starts[last]):
                    candidates.append(_Candidate(start, end))
        if not candidates and len(keys) == 1 and keys[0][0] == "#":
            # The name of a month that the evidence has in a date.
            return self._candidates([CalendarDate(None, int(keys[0][1:]), None)])
        return candidates[: self._max_candidates]

    def _link(self, start: int, end: int, kind: str, candidate: _Candidate | None) -> Link:
        text = self._text[start:end]
        if candidate is None:
            return Link(text, start, end, kind)
        value = self._evidence.value_at(candidate.start)
        # A number has no characters in the text of the evidence: the whole value is shown.
        span = (0, len(value.text))
        if value.number is None:
            span = (candidate.start - value.start, candidate.end - value.start)
        address, row = self._evidence.address(value), self._evidence.row_label(value)
        return Link(text, start, end, kind, address, value.text[slice(*span)], span, row, candidate.how)


@lru_cache(maxsize=4096)
def _name_words(names: RecordPath) -> frozenset[str]:
    return frozenset(Words(" ".join(map(str, names))).keys)


# Derived figures.


class _Cell(NamedTuple):
    number: float
    value: EvidenceValue


class _CellGroup(NamedTuple):
    """The numbers of a column or record."""

    label: str
    cells: list[_Cell]


class _Derivation(msgspec.Struct, frozen=True, gc=False):
    """A figure that follows from cells; the description is formatted only if it is used."""

    value: float
    template: str
    operands: tuple[float | str, ...]
    source: EvidenceValue

    def candidate(self) -> _Candidate:
        """The cell to look at, with the description of the derivation."""
        start = self.source.start
        return _Candidate(start, start + len(self.source.text), how=self.template.format(*self.operands))


class _Operation(NamedTuple):
    template: str
    only_stated: bool  # only for figures that the sentence itself states
    only_percent: bool  # only if the figure is a percentage
    compute: Callable[[float, float], float]


_OPERATIONS = (
    _Operation("{:g} − {:g}", False, False, sub),
    _Operation("{:g} + {:g}", True, False, add),
    _Operation("{:g} ÷ {:g}", True, False, truediv),
    _Operation("{:g} ÷ {:g}", False, True, lambda x, y: 100 * x / y),
    _Operation("change to {:g} from {:g}", False, True, lambda x, y: 100 * abs(x / y - 1)),
)


def _pairs(groups: Iterable[_CellGroup], percent: bool, *, stated: bool = False) -> Iterator[_Derivation]:
    """Differences and ratios of two cells of the same group."""
    operations = [one for one in _OPERATIONS if one.only_stated <= stated and one.only_percent <= percent]
    pairs_left = _MAX_PAIRS
    for group in groups:
        if len(group.cells) <= _MAX_PAIRED_CELLS and pairs_left > 0:
            pairs_left -= len(group.cells) ** 2 // 2
            for (x, value), (y, _) in permutations(group.cells, 2):
                if x and y and x != y:
                    for operation in operations:
                        yield _Derivation(operation.compute(x, y), operation.template, (x, y), value)


def _totals(groups: Iterable[_CellGroup], percent: bool) -> Iterator[_Derivation]:
    """Sums, averages and shares of a group."""
    for label, cells in groups:
        if len(cells) > 1:
            total, first = fsum(cell.number for cell in cells), cells[0].value
            yield _Derivation(abs(total), "sum of {}", (label,), first)
            yield _Derivation(abs(total) / len(cells), "average of {}", (label,), first)
            for number, value in cells if total and percent else ():
                share = 100 * abs(number / total)
                yield _Derivation(share, "{:g} ÷ sum of {}", (number, label), value)


_Key = TypeVar("_Key", bound=Hashable)


class _DerivedFigures:
    """The figures that follow from the cells of tool results."""

    def __init__(self, evidence: Evidence) -> None:
        columns: dict[Hashable, _CellGroup] = {}
        self._records: dict[int, _CellGroup] = {}
        self._groups: list[_CellGroup] = []  # columns and records in the order of their first cells
        for value in evidence.values:
            if value.is_cell and value.number is not None:
                cell, record = _Cell(value.number, value), evidence.records[value.record]
                # The same name in every entry of a list is one column.
                path = tuple("*" if isinstance(key, int) else key for key in (record.path or ())[:-1])
                self._add(columns, (path, value.key), str(value.key), cell)
                self._add(self._records, value.record, record.label, cell)
        self._counts: dict[float, _Candidate] = {}
        for record in evidence.records:
            if record.entries > 1 and record.first_value < len(evidence.values):
                how, first = f"count of the entries of {record.label}", evidence.values[record.first_value]
                candidate = _Candidate(first.start, first.start + len(first.text), how=how)
                self._counts[float(record.entries)] = candidate
        self._sorted: dict[Hashable, SortedValues[_Derivation]] = {}

    def _add(self, groups: dict[_Key, _CellGroup], key: _Key, label: str, cell: _Cell) -> None:
        if key not in groups:
            groups[key] = _CellGroup(label, [])
            self._groups.append(groups[key])
        groups[key].cells.append(cell)

    def find(self, figure: Mention, sentence: int, stated: Sequence[_Cell]) -> _Candidate | None:
        """How a figure follows from the evidence; `stated` are the cells that its sentence is linked to.

        Families of derivations are tried from the most to the least likely, as long as chance explains too few hits.
        """
        quantities = [one for one in figure.readings if isinstance(one, Amount)]
        literal, percent = quantities[0], quantities[-1].unit == "%"
        is_count = literal.step == 1 and not percent and len(self._counts) <= _MAX_COUNTS
        if is_count and literal.value in self._counts:
            return self._counts[literal.value]
        bare = [one for one in quantities if not one.unit and one.how != "rounded"]
        in_sentence = [_CellGroup("", [cell for cell in stated if cell.number])]
        same_records = {cell.value.record for cell in stated}
        beside = [self._records[number] for number in same_records if number in self._records]
        tried = 0.0
        for family, max_chance, derive in (
            (("stated", sentence), _MAX_CHANCE_NEAR, partial(_pairs, in_sentence, percent, stated=True)),
            (("beside", sentence), _MAX_CHANCE_NEAR, partial(_pairs, beside, percent)),
            (("totals",), _MAX_CHANCE, partial(_totals, self._groups, percent)),
            (("pairs",), _MAX_CHANCE, partial(_pairs, self._groups, percent)),
        ):
            if tried > max_chance:
                return None
            key = (family, percent)
            if key not in self._sorted:
                self._sorted[key] = SortedValues(derive())
            found = [(quantity.value, *self._sorted[key].near(quantity, _MAX_PAIRS)) for quantity in bare]
            tried += sum(chance for _, _, chance in found)
            if tried > max_chance:
                continue
            for value, hits, _ in found:
                if hits:
                    return min(hits, key=lambda hit, value=value: abs(hit.value - value)).candidate()  # type: ignore[misc]
        return None


_BATCH_SIZE = 16
_MAX_TOKENS = 512  # of a pair; the premise is truncated first
# Label names that mean entailment, in lower case. A model with a single label needs no name.
_ENTAILMENT_LABELS = ("entailment", "entails", "supported", "consistent", "label_entailment")
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")

_MIN_CLAIM_WORDS = 2  # a sentence with fewer content words claims nothing: "Sure!", "Warm regards"
_MAX_PREMISE_LENGTH = 800  # passages are cut into premises of this many characters
_PREMISES_PER_SENTENCE = 3  # the premises with most words in common are tried


class CrossEncoder:
    """A loaded entailment model."""

    def __init__(self, session: Any, tokenizer: Any, label: int | None, name: str) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._label = label  # index of the entailment logit; None for a model with a single logit
        self._inputs = {one.name for one in session.get_inputs()}
        self.name = name

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The probability that the second text of each pair follows from the first, in order."""
        probabilities: list[float] = []
        for start in range(0, len(pairs), _BATCH_SIZE):
            probabilities += self._batch(pairs[start : start + _BATCH_SIZE])
        return probabilities

    def _batch(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        import numpy as np  # seldom needed, and slow to load

        plain = [tuple(part.encode("utf-8", "replace").decode() for part in pair) for pair in pairs]
        encoded = self._tokenizer.encode_batch(plain)
        arrays = {
            "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),
            "attention_mask": np.array([one.attention_mask for one in encoded], dtype=np.int64),
            "token_type_ids": np.array([one.type_ids for one in encoded], dtype=np.int64),
        }
        inputs = {name: value for name, value in arrays.items() if name in self._inputs}
        logits = np.asarray(self._session.run(None, inputs)[0], dtype=np.float64).reshape(len(pairs), -1)
        if self._label is None:
            return [float(value) for value in 1.0 / (1.0 + np.exp(-logits[:, 0]))]
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return [float(value) for value in raised[:, self._label] / raised.sum(axis=1)]


def load_cross_encoder(name: str, folder: Path = Path()) -> CrossEncoder:
    """Load the model from a folder (relative to `folder`), or from the hub."""
    try:
        import onnxruntime
        import tokenizers
    except ImportError:
        raise MissingExtraError("an entailment model", "entailment") from None
    path = folder / name
    if not path.is_dir():
        path = _download(name, path)
    weights = next((path / part for part in _MODEL_FILES if (path / part).is_file()), None)
    for part in ("tokenizer.json", "config.json"):
        if not (path / part).is_file():
            raise ConfigError(
                f"{path}: {part} is missing; the folder needs model.onnx, tokenizer.json and config.json"
            )
    if weights is None:
        raise ConfigError(f"{path}: model.onnx is missing; export the model, or use one that has it")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # replies are scored in several processes
    try:
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    except Exception as error:  # noqa: BLE001  # both libraries raise bare exceptions for a broken file
        raise ConfigError(f"{path}: cannot be loaded: {' '.join(str(error).split())[:200]}") from None
    tokenizer.enable_truncation(_MAX_TOKENS, strategy="only_first")
    tokenizer.enable_padding()
    return CrossEncoder(session, tokenizer, _entailment_label(path / "config.json"), name)


def _download(name: str, path: Path) -> Path:
    if name.count("/") != 1 or name.startswith((".", "/")):
        raise ConfigError(f"{path}: no such folder; [grounded] model is a folder, or OWNER/NAME on the hub")
    from huggingface_hub import snapshot_download  # comes with tokenizers

    try:
        return Path(snapshot_download(name, allow_patterns=["tokenizer.json", "config.json", *_MODEL_FILES]))
    except Exception as error:  # noqa: BLE001  # no network, no such model, no permission: each its own exception
        reason = str(error).splitlines()[0][:200]
        raise ConfigError(f"{name}: not a folder, and downloading it from the hub failed: {reason}") from None


def _entailment_label(path: Path) -> int | None:
    """The index of the entailment label; None for a model with one label."""
    try:
        labels = msgspec.json.decode(path.read_bytes()).get("id2label", {})
        numbers = {str(label).lower(): int(number) for number, label in labels.items()}
    except (msgspec.DecodeError, AttributeError, ValueError):
        raise ConfigError(f"{path}: not the configuration of a model; it needs id2label") from None
    for label in _ENTAILMENT_LABELS:
        if label in numbers:
            return numbers[label]
    if len(numbers) > 1:
        raise ConfigError(
            f"{path}: none of the labels {', '.join(numbers)} is called entailment; rename it in id2label"
        )
    return None


class SentenceSupport(NamedTuple):
    """How well the evidence supports a sentence."""

    sentence: str
    probability: float
    note: str  # "87% by tool_calls[0].result"


def claimed_sentences(text: str) -> list[str]:
    """The sentences that can claim something: not questions, not headings of a word or two."""
    sentences = [text[start:end].strip() for start, end in pairwise(sentence_edges(text))]
    return [
        one
        for one in sentences
        if one[-1:] not in "?？:" and len(content_words(Words(one).keys)) >= _MIN_CLAIM_WORDS
    ]


def verify_sentences(
    model: CrossEncoder,
    question: Question,
    reply: Reply,
    earlier: EarlierTurns = (),
    *,
    sentences: Sequence[str],
) -> list[SentenceSupport]:
    """Check each sentence against the premises that share most words with it; the best premise counts."""
    premises = _premises(gather_evidence(question, reply, earlier))
    premise_words = [content_words(Words(text).keys) for _, text in premises]
    pairs: list[tuple[int, int]] = []  # (sentence, premise)
    for number, sentence in enumerate(sentences):
        words = content_words(Words(sentence).keys)
        nearest = sorted(range(len(premises)), key=lambda index: -len(words & premise_words[index]))
        pairs += [(number, index) for index in nearest[:_PREMISES_PER_SENTENCE]]
    probabilities = model.probabilities([(premises[index][1], sentences[number]) for number, index in pairs])
    checked = []
    for number, tried in groupby(zip(pairs, probabilities, strict=True), key=lambda one: one[0][0]):
        (_, index), best = max(tried, key=lambda one: one[1])
        checked.append(SentenceSupport(sentences[number], best, f"{best:.0%} by {premises[index][0]}"))
    return checked


def _premises(evidence: Evidence) -> list[tuple[str, str]]:
    """(address, text): passages in pieces, and records as "name: value" lines; neighbouring short ones are joined."""
    premises: list[tuple[str, str]] = []
    for record, following in pairwise(evidence.records):
        values = evidence.values[record.first_value : following.first_value]
        if record.path is None:
            text = "\n".join(value.text for value in values)
        else:
            text = "\n".join(f"{value.key}: {value.text}" for value in values if value.is_cell)
        if (
            premises
            and premises[-1][0] == record.root
            and len(premises[-1][1]) + len(text) < _MAX_PREMISE_LENGTH
        ):
            premises[-1] = (record.root, f"{premises[-1][1]}\n{text}")
        else:
            pieces = range(0, len(text), _MAX_PREMISE_LENGTH)
            premises += [(record.root, text[start : start + _MAX_PREMISE_LENGTH]) for start in pieces]
    return premises
