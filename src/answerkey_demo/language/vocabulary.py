"""The vocabulary: every phrase that means something, from the names in the database and from the lexicon."""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from answerkey_demo.knowledge import Knowledge, sentences
from answerkey_demo.language.words import content_stems, normalise, stem, stems

__all__ = ["LEXICON", "Vocabulary", "category_label"]

LEXICON: dict[str, Any] = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))
# Descriptions that are booked more often than this are a category's; the words of rarer ones say what they were for.
_RARE = 6
_SIDES, _WAYS = ("n", "s", "e", "w"), ("st", "ave", "rd", "dr", "ln", "blvd")


def category_label(name: str) -> str:
    """How a category reads in an answer."""
    return str(LEXICON["category_labels"].get(name, name.replace("_", " ")))


class Vocabulary:
    """Phrases as sequences of stems, each with the meanings that it may have."""

    def __init__(self, knowledge: Knowledge, phrases: Iterable[tuple[str, str, str]] = ()) -> None:
        """`phrases`: further phrases of the assistant's own, as (phrases separated by commas, kind, value)."""
        self._knowledge = knowledge
        # first stem → (stems, kind, value)
        self._phrases: dict[str, list[tuple[tuple[str, ...], str, str]]] = defaultdict(list)
        self.properties = knowledge.read(
            "SELECT id, name, address, city, kind, is_main FROM properties ORDER BY id"
        )
        self.units = knowledge.read("SELECT id, property_id, label, tenant FROM units ORDER BY id")
        self.documents = knowledge.read(
            "SELECT id, title, type, property_id, dated_on FROM documents ORDER BY dated_on, id"
        )
        # who pays us, as opposed to whom we pay
        self.payers = {
            r["party"]
            for r in knowledge.read("SELECT DISTINCT party FROM transactions WHERE kind = 'income'")
        }
        self.address = {p["id"]: p["address"] for p in self.properties}
        for phrase, kind, value in [*phrases, *_lexicon(knowledge), *self._places(), *self._papers()]:
            for part in phrase.split(",") if kind not in ("document", "party") else [phrase]:
                self._add(stems(part), kind, value)
        for name in self._parties():
            for alias in self._aliases(name):
                self._add(alias, "party", name)
        for table, column, rows in (
            ("transactions", "description", f"HAVING COUNT(*) < {_RARE}"),
            ("obligations", "name", ""),
        ):
            for row in knowledge.read(f"SELECT {column} FROM {table} GROUP BY {column} {rows}"):
                for word in content_stems(row[column]) - {"unit"}:
                    if len(word) > 1:
                        self._add((word,), "text", table)

    def _add(self, phrase: tuple[str, ...], kind: str, value: str) -> None:
        if phrase and (phrase, kind, value) not in self._phrases[phrase[0]]:
            self._phrases[phrase[0]].append((phrase, kind, value))

    def find(self, question: list[str]) -> Iterator[tuple[str, str, int, int]]:
        """Every phrase that occurs in a sequence of stems: kind, value, first word, end."""
        for first, word in enumerate(question):
            for phrase, kind, value in self._phrases.get(word, ()):
                if tuple(question[first : first + len(phrase)]) == phrase:
                    yield kind, value, first, first + len(phrase)

    @cached_property
    def corpus(self) -> Counter[str]:
        """In how many passages each stem occurs."""
        return Counter(
            word
            for p in self._knowledge.passages
            for word in content_stems(f"{p.title} {p.heading} {p.text}")
        )

    @property
    def main(self) -> str:
        """The id of the property that "our property" means."""
        return str(next((p["id"] for p in self.properties if p["is_main"]), self.properties[0]["id"]))

    def _places(self) -> Iterator[tuple[str, str, str]]:
        """Properties by address, name, kind and town; units by label."""
        for row in self.properties:
            number, *street = stems(row["address"])
            side = [w for w in street if w in _SIDES]
            way = [w for w in street if w in _WAYS]
            core = [w for w in street if w not in _SIDES and w not in _WAYS]
            for parts in product(([number], []), (side, []), (way, [])):
                yield " ".join([*parts[0], *parts[1], *core, *parts[2]]), "property", row["id"]
            for column in ("name", "kind", "city"):
                if sum(p[column] == row[column] for p in self.properties) == 1:
                    yield normalise(row[column]), "property", row["id"]
            yield f"{' '.join(core)} {row['kind']}", "property", row["id"]
            for word in ("house", "property", "building", "place"):
                yield f"{row['city']} {word}", "property", row["id"]
        for row in self.units:
            if row["label"].lower().startswith("unit"):
                yield row["label"], "unit", row["id"]

    def _papers(self) -> Iterator[tuple[str, str, str]]:
        """Documents by title, and by the part of it before a comma, a bracket or the company's name."""
        for row in self.documents:
            title = normalise(row["title"])
            head = re.split(rf",| \(| of {re.escape(normalise(self._knowledge.company))}", title)[0]
            yield title.replace(",", ""), "document", row["id"]
            yield head, "document", row["id"]
            if len(head.split()) > 2 and head.split()[-1] in LEXICON["document_types"]:
                # "Commercial Umbrella Policy" is called the umbrella policy
                yield " ".join(head.split()[1:]), "document", row["id"]
            if " for " in head or " of the " in head:
                for small in (" for ", " of the ", " of "):
                    yield head.replace(small, " "), "document", row["id"]
                yield re.sub(r" for \D+$", "", head), "document", row["id"]

    def _parties(self) -> list[str]:
        return [
            str(row["party"])
            for row in self._knowledge.read(
                "SELECT party FROM (SELECT party FROM transactions UNION SELECT tenant FROM units UNION "
                "SELECT lender FROM properties UNION SELECT authority FROM obligations) WHERE party IS NOT NULL"
            )
        ]

    def _aliases(self, name: str) -> Iterator[tuple[str, ...]]:
        """A party goes by its whole name, its first or last two words, or one word that is nobody's and nothing's else."""
        words = stems(name)
        yield words
        if len(words) > 2:
            yield from (part for part in (words[:2], words[-2:]) if not {"of", "and"} & set(part))
        for word in (words[0], words[-1]):
            if word not in self._ordinary and len(word) > 2 and self._in_names[word] == 1:
                yield (word,)
        for said, meant in LEXICON["parties"].items():
            if meant == name:
                yield (stem(said),)

    @cached_property
    def _in_names(self) -> Counter[str]:
        return Counter(word for name in self._parties() for word in set(stems(name)))

    @cached_property
    def _ordinary(self) -> set[str]:
        """Stems that are no names: those that documents write small or begin a sentence with, and those of the lexicon."""
        found = {phrase for phrases in self._phrases.values() for words, *_ in phrases for phrase in words}
        for passage in self._knowledge.passages:
            for sentence in [passage.heading, *sentences(passage.text)]:
                first, _, rest = sentence.partition(" ")
                found.add(stem(normalise(first)))
                found |= {stem(w) for w in re.findall(r"\b[a-z]+\b", rest)}
        people = {stem(w) for p in self._parties() for w in normalise(p).split() if p in self.payers}
        return found - people


def _lexicon(knowledge: Knowledge) -> Iterator[tuple[str, str, str]]:
    for kind, section in (("op", "ops"), ("by", "groups_by"), ("kind", "kinds"), ("content", "content")):
        for value, say in LEXICON[section].items():
            yield say, kind, value
    for number, topic in enumerate(LEXICON["off_topic"]):
        yield topic["say"], "topic", str(number)
    for value, group in LEXICON["category_groups"].items():
        yield group["say"], "group", value
    for kind, table, column, section in (
        ("category", "transactions", "category", "categories"),
        ("type", "documents", "type", "document_types"),
        ("obligation", "obligations", "kind", "obligation_kinds"),
    ):
        for row in knowledge.read(f"SELECT DISTINCT {column} AS value FROM {table}"):
            value = str(row["value"])
            own = value.replace("_", " ")
            # "policy" and "tax" alone may be anything
            names = [own] if kind != "type" else [f"{own} {word}" for word in ("document", "paper", "file")]
            yield ",".join([*names, LEXICON[section].get(value, "")]), kind, value
