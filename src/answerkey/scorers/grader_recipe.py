"""GraderRecipe: all that a grader is made from, so that another process can make the same."""

import msgspec

from answerkey.config import ScorerSettings
from answerkey.model.options import Scoring
from answerkey.protocols import Direction

__all__ = ["GraderRecipe"]


class GraderRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """All that a grader is made from, where that can be written down."""

    scoring: Scoring
    scorers: dict[str, ScorerSettings]
    # The configuration file, from whose folder paths start.
    path: str | None
    # Where modules are found.
    sys_path: list[str]
    # The names of the judge's scores; None: there is no judge.
    judge: dict[str, Direction] | None = None
    # Seconds of CPU that one trial may take, and seconds altogether.
    cpu_seconds: float = 10.0
    wall_seconds: float = 60.0
