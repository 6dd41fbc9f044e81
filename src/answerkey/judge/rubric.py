"""Rubrics: what a judge is asked, as data files; their hash is part of every judgement's key."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from hashlib import blake2b
from importlib import resources
from math import fsum
from pathlib import Path

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.graded_rubric import GradedExample, Scale, grades_of, read_check_rubric

# The criterion of a golden case's own rubric.
CHECK = "rubric"


class Criterion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that is graded."""

    name: str
    # Its share of the judge's score.
    weight: float
    # What the judge is asked about it.
    question: str


class _Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """What a judge is asked, under a name."""

    name: str

    @cached_property
    def hash(self) -> str:
        """Changes whenever a judge could be asked anything else."""
        return blake2b(msgspec.json.encode(self, order="deterministic"), digest_size=8).hexdigest()


class Rubric(_Asked, frozen=True, kw_only=True):
    """What a reply is graded on."""

    criteria: tuple[Criterion, ...]
    task: str = "Grade the chatbot's reply to the user's question."
    # Grade → what it means, from the lowest to the highest; nothing: 1 to 5. Grades become 0 to 1.
    scale: Scale = {}
    # Replies that the judge is shown with the grades that they deserve.
    examples: tuple[GradedExample, ...] = ()

    @cached_property
    def weights(self) -> dict[str, float]:
        """Criterion → share of the score; the shares add up to 1."""
        whole = fsum(criterion.weight for criterion in self.criteria)
        return {criterion.name: criterion.weight / whole for criterion in self.criteria}

    @cached_property
    def grades(self) -> dict[int, str]:
        """The grades that the scale names, with what they mean."""
        return grades_of(self.scale)

    @property
    def lowest(self) -> int:
        """The lowest grade."""
        return min(self.grades)

    @property
    def top(self) -> int:
        """The highest grade."""
        return max(self.grades)

    def share_of(self, grade: float) -> float:
        """A grade as 0 to 1."""
        return (grade - self.lowest) / (self.top - self.lowest)

    def grade_of(self, share: float) -> float:
        """The grade that a share of 0 to 1 stands for."""
        return self.lowest + share * (self.top - self.lowest)


class PairRubric(_Asked, frozen=True, kw_only=True):
    """What makes one reply better than another."""

    task: str
    guidance: str


def load_rubric(reference: str, *, folder: Path | None = None) -> Rubric:
    """The rubric with a name, or in a TOML or JSON file (relative to `folder`)."""
    where, raw = _read(reference, folder)
    try:
        rubric = msgspec.convert(raw, Rubric, str_keys=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: not a rubric: {str(error).replace('`$.', '`')}") from None
    _check(rubric, where)
    return rubric


def check_rubric(expected: object) -> Rubric:
    """A rubric of one criterion: what a golden case asks a judge to look for. Golden sets repeat theirs."""
    return _check_rubric(msgspec.json.encode(expected, order="deterministic"))


@lru_cache(maxsize=1000)
def _check_rubric(encoded: bytes) -> Rubric:
    asked = read_check_rubric(msgspec.json.decode(encoded))
    return Rubric(
        name="check",
        criteria=(Criterion(name=CHECK, weight=1.0, question=asked.question),),
        scale=asked.scale,
        examples=asked.examples,
    )


def load_pair_rubric(reference: str = "pairwise", *, folder: Path | None = None) -> PairRubric:
    """The rubric for pairs of replies with a name, or in a file."""
    where, raw = _read(reference, folder)
    try:
        return msgspec.convert(raw, PairRubric)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: no rubric for pairs: {str(error).replace('`$.', '`')}") from None


def _read(reference: str, folder: Path | None) -> tuple[str, Mapping[str, object]]:
    path = Path(reference)
    if path.suffix not in (".toml", ".json"):
        return f"rubric {reference!r}", _bundled(reference)
    path = path if folder is None else folder / path
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        raw = decode(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"rubric {path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigError(f"rubric {path}: not valid {path.suffix[1:].upper()}: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"rubric {path}: must be a table with name and criteria")
    return f"rubric {path}", {"name": path.stem, **raw}


def _bundled(name: str) -> Mapping[str, object]:
    folder = resources.files("answerkey.judge") / "rubrics"
    known = sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")
    )
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "there are " + ", ".join(known)
        raise ConfigError(f"unknown rubric {name!r}; {hint} (or give a .toml or .json file)")
    return dict(tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8")))


def _check(rubric: Rubric, where: str) -> None:
    names = [criterion.name for criterion in rubric.criteria]
    if not names:
        raise ConfigError(f"{where}: has no criteria")
    for name in names:
        if not name.isidentifier() or len(name) > 40:
            raise ConfigError(f"{where}: criterion {name!r}: a name is letters, digits and _ (at most 40)")
    if len(set(names)) < len(names):
        raise ConfigError(f"{where}: two criteria have the same name")
    for criterion in rubric.criteria:
        if not criterion.weight >= 0:
            raise ConfigError(f"{where}: {criterion.name}: weight {criterion.weight:g} must not be negative")
    whole = fsum(criterion.weight for criterion in rubric.criteria)
    if min(abs(whole - 100), abs(whole - 1)) > 1e-6:
        raise ConfigError(
            f"{where}: the weights add up to {whole:g}; change them so that they add up to 100 (or 1)"
        )
    try:
        grades = grades_of(rubric.scale)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    for number, example in enumerate(rubric.examples, start=1):
        given = example.grades if isinstance(example.grades, dict) else dict.fromkeys(names, example.grades)
        if set(given) != set(names) or not all(min(grades) <= one <= max(grades) for one in given.values()):
            raise ConfigError(
                f"{where}: example {number}: grades must give each of {', '.join(names)} "
                f"a number from {min(grades)} to {max(grades)}"
            )
