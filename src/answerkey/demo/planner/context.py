"""What every skill is given: the names of the business, the day of the records, the tools of this turn."""

from datetime import date
from typing import Protocol

import msgspec

from answerkey.demo.language.understanding import Understanding
from answerkey.demo.language.vocabulary import Vocabulary
from answerkey.demo.tools.toolbox import Turn

__all__ = ["Context", "Skill"]


class Context(msgspec.Struct, frozen=True):
    """The surroundings in which a clause is answered."""

    vocabulary: Vocabulary
    as_of: date
    company: str
    turn: Turn

    def property_label(self, key: str | None) -> str:
        """The address of a property, as it reads in an answer."""
        place = self.vocabulary.property_named(key)
        return place.label if place else "the company as a whole"


class Skill(Protocol):
    """One kind of question that can be answered from the tools."""

    def fit(self, u: Understanding) -> list[str] | None:
        """The words of the clause that this skill cannot explain; None if the clause is not of its kind."""

    def answer(self, u: Understanding, context: Context) -> str:
        """Use the tools and say what they gave."""
