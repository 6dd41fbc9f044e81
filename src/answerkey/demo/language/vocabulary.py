"""The names that a question may use, from the database: properties, units, parties, documents."""

import re

import msgspec

from answerkey.demo.knowledge import Knowledge
from answerkey.demo.language.words import STOPWORDS, normalise, stem, tokenise

__all__ = ["DocumentName", "Property", "Unit", "Vocabulary", "load_vocabulary"]

_ORDINALS = {
    "1st": "first",
    "2nd": "second",
    "3rd": "third",
    "4th": "fourth",
    "5th": "fifth",
    "6th": "sixth",
    "7th": "seventh",
}
_ORDINALS |= {"8th": "eighth", "9th": "ninth", "10th": "tenth"}
_SUFFIX = {"st": "street", "ave": "avenue", "rd": "road", "dr": "drive", "ln": "lane", "blvd": "boulevard"}


class Property(msgspec.Struct, frozen=True):
    """A building and everything that people call it."""

    id: str
    label: str
    pattern: re.Pattern[str]
    is_main: bool


class Unit(msgspec.Struct, frozen=True):
    """A rented unit: its label, its building, who lives there."""

    id: str
    property_id: str
    label: str
    tenant: str | None


class DocumentName(msgspec.Struct, frozen=True):
    """A document and the words of its title that tell it from the others."""

    id: str
    title: str
    type: str
    property_id: str | None
    dated_on: str
    words: frozenset[str]
    # the words of its title, letters only, as a phrase
    pattern: re.Pattern[str]


class Vocabulary(msgspec.Struct, frozen=True):
    """All the names, and every word that the documents use."""

    properties: list[Property]
    units: list[Unit]
    # name as recorded → pattern
    parties: dict[str, re.Pattern[str]]
    documents: list[DocumentName]
    # stems of the words in the descriptions of transactions
    descriptions: frozenset[str]
    # stems of every word in the documents → in how many passages
    corpus: dict[str, int]
    passage_count: int

    def property_named(self, key: str | None) -> Property | None:
        """The property with this id."""
        return next((p for p in self.properties if p.id == key), None)

    @property
    def main(self) -> Property:
        """The property that "our property" means."""
        return next((p for p in self.properties if p.is_main), self.properties[0])


def load_vocabulary(knowledge: Knowledge) -> Vocabulary:
    """Read the names from the database and the words from the documents."""
    rows = knowledge.read("SELECT id, name, address, city, kind, is_main FROM properties ORDER BY id")
    cities = [str(row["city"]) for row in rows]
    properties = [_property(row, cities) for row in rows]
    units = [
        Unit(
            str(r["id"]),
            str(r["property_id"]),
            str(r["label"]),
            None if r["tenant"] is None else str(r["tenant"]),
        )
        for r in knowledge.read("SELECT id, property_id, label, tenant FROM units ORDER BY id")
    ]
    names = [
        str(r["party"])
        for r in knowledge.read(
            "SELECT party FROM (SELECT party FROM transactions UNION SELECT tenant FROM units "
            "UNION SELECT lender FROM properties"
            " UNION SELECT authority FROM obligations) WHERE party IS NOT NULL"
        )
    ]
    documents = [
        _document(row)
        for row in knowledge.read("SELECT id, title, type, property_id, dated_on FROM documents ORDER BY id")
    ]
    corpus: dict[str, int] = {}
    for passage in knowledge.passages:
        for word in {
            t.stem for t in tokenise(normalise(f"{passage.title} {passage.heading} {passage.text}"))
        }:
            corpus[word] = corpus.get(word, 0) + 1
    # what is booked every month has a category; the words of single entries say what they were for
    single = knowledge.read("SELECT description FROM transactions GROUP BY description HAVING COUNT(*) < 6")
    described = " ".join(str(r["description"]) for r in single)
    return Vocabulary(
        properties=properties,
        units=units,
        parties={name: _party_pattern(name, names) for name in names},
        documents=documents,
        descriptions=frozenset(t.stem for t in tokenise(normalise(described)) if t.text not in STOPWORDS),
        corpus=corpus,
        passage_count=len(knowledge.passages),
    )


def _property(row: dict[str, object], cities: list[str]) -> Property:
    address = normalise(str(row["address"]))
    number, *street = address.split()
    core = [w for w in street if w not in ("n", "s", "e", "w") and w not in _SUFFIX]
    suffix = [w for w in street if w in _SUFFIX]
    said = [f"(?:{re.escape(w)}|{_ORDINALS[w]})" if w in _ORDINALS else re.escape(w) for w in core]
    ending = f"(?: (?:{'|'.join({*suffix, *(_SUFFIX[s] for s in suffix)})}))?" if suffix else ""
    side = r"(?:(?:n|s|e|w|north|south|east|west)\.? )?"
    names = [
        rf"(?:{number} )?{side}{' '.join(said)}{ending}\.?",
        normalise(str(row["name"])),
        re.escape(str(row["kind"])),
        number,
    ]
    names.append(rf"{' '.join(said)} {row['kind']}")
    city = str(row["city"])
    if cities.count(city) == 1:
        names.append(rf"{normalise(city)}(?: (?:{row['kind']}|house|place|property|building))?")
    names.sort(key=len, reverse=True)
    return Property(
        str(row["id"]),
        str(row["address"]),
        re.compile(rf"(?<![\w$,.])(?:{'|'.join(names)})(?![\w,]|\.\d)"),
        bool(row["is_main"]),
    )


def _party_pattern(name: str, names: list[str]) -> re.Pattern[str]:
    """A party goes by its whole name, or by its first or last word where that is rare and nobody else's."""
    normal = normalise(name)
    words = normal.split()
    options = [re.escape(normal).replace(r"\ ", " ")]
    common = {
        "city",
        "county",
        "colorado",
        "internal",
        "revenue",
        "department",
        "form",
        "coin",
        "management",
        "inspection",
        "division",
    }
    common |= {
        "montrose",
        "insurance",
        "service",
        "state",
        "treasurer",
        "works",
        "laundry",
        "internet",
        "tax",
        "electric",
        "gas",
        "water",
    }
    common |= {
        "heating",
        "plumbing",
        "cleaning",
        "hardware",
        "health",
        "agents",
        "company",
        "union",
        "bank",
        "listings",
        "grand",
        "western",
    }
    others = [w for other in names if other != name for w in normalise(other).split()]
    options += [
        re.escape(w)
        for w in (words[0], words[-1])
        if w.isalpha() and w not in common and w not in others and len(w) > 2
    ]
    if len(words) > 2 and not {"of", "and", "&"} & set(words):
        # "the county treasurer" may be two of them
        options.append(re.escape(" ".join(words[-2:])).replace(r"\ ", " "))
        options.append(re.escape(" ".join(words[:2])).replace(r"\ ", " "))
    if "internal revenue" in normal:
        options.append("irs")
    return re.compile(rf"\b(?:{'|'.join(sorted(options, key=len, reverse=True))})(?!\w)")


def _document(row: dict[str, object]) -> DocumentName:
    title = normalise(str(row["title"]))
    head = re.split(r",| of cimarron| \(", title)[0]
    words = {t.stem for t in tokenise(title) if t.text not in STOPWORDS}
    phrase = re.escape(head).replace(r"\ ", " ")
    return DocumentName(
        str(row["id"]),
        str(row["title"]),
        str(row["type"]),
        None if row["property_id"] is None else str(row["property_id"]),
        str(row["dated_on"]),
        frozenset(words | {stem(str(row["type"]))}),
        re.compile(rf"\b{phrase}\b"),
    )
