"""Groups of questions that lost points for one reason, and the causes of one run."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from answerkey.model.question import UNCATEGORISED, Question
from answerkey.model.run import Run
from answerkey.model.scorecard import Trial, mean_score
from answerkey.model.why import Cause, Causes, Group, Signature
from answerkey.runs.stages import own_cause
from answerkey.text.normalise import MatchMode

# A group is "about" a category if at least this share of its questions is of it, and fewer of all questions are.
_MOSTLY = 0.8


class _Members(msgspec.Struct):
    """The questions of a signature so far."""

    ids: list[str]
    categories: Counter[str]
    # Sum of score differences.
    total: float
    # Of the question that lost most.
    most: float
    example: str
    because: str


class Grouping:
    """Groups of causes, one question at a time: memory is a reference for each question that lost or gained points."""

    def __init__(self, categories: Mapping[str, int] | None = None) -> None:
        self._members: dict[tuple[Signature, bool], _Members] = {}
        # Category → all of its questions, where they are known beforehand; otherwise `see` counts them.
        self._categories = Counter(categories or {})

    def see(self, question: Question) -> None:
        """Count a question, whether it lost points or not."""
        self._categories[question.category] += 1

    def add(self, question: Question, cause: Cause, difference: float) -> None:
        """Add a question with the change of its score; losses and gains are different groups."""
        key = (cause.signature, difference < 0)
        members = self._members.get(key)
        if members is None:
            members = self._members[key] = _Members([], Counter(), 0.0, 0.0, question.id, cause.words)
        members.ids.append(question.id)
        members.categories[question.category] += 1
        members.total += difference
        if abs(difference) > members.most:
            members.most, members.example, members.because = abs(difference), question.id, cause.words

    def add_trials(self, trials: Sequence[Trial], mode: MatchMode) -> float | None:
        """Add a question of one run by its worst trial; returns its score, None if it could not be scored."""
        score = mean_score([trial.scorecard.total for trial in trials])
        if score is None:
            return None
        self.see(trials[0].question)
        if score < 1.0:
            worst = min(trials, key=lambda trial: 1.0 if trial.score is None else trial.score)
            if (cause := own_cause(worst, mode)) is not None:
                self.add(worst.question, cause, score - 1.0)
        return score

    @property
    def questions(self) -> int:
        """The number of questions, those without a change included."""
        return self._categories.total()

    def groups(self) -> tuple[Group, ...]:
        """The groups: losses, the largest first, then gains."""
        scale = 100.0 / max(1, self.questions)
        found = [
            Group(
                signature=signature,
                about=self._about(members),
                ids=tuple(members.ids),
                points=round(members.total * scale, 6),
                example=members.example,
                because=members.because,
            )
            for (signature, _), members in self._members.items()
        ]
        return tuple(sorted(found, key=lambda group: (group.points > 0, -abs(group.points), group.words)))

    def _about(self, members: _Members) -> str:
        """The category of most of a group's questions, if that says something."""
        [(category, number)] = members.categories.most_common(1)
        of_all = self._categories[category] / max(1, self.questions)
        says = number >= 2 and number >= _MOSTLY * len(members.ids) and of_all < _MOSTLY
        return category if says and category != UNCATEGORISED else ""


def causes(run: Run) -> Causes:
    """Say why one run lost points: groups with their counts and costs, largest first, and slices worse than the rest.

    The results are read once, question by question; pages and reports show the groups' `words`, `ids` and `points`.

    Args:
        run: Any run, e.g. `store.load_run(info)`.
    """
    import numpy as np  # only comparisons and slices need it

    from answerkey.comparison.slices import find_slices

    grouping = Grouping()
    questions: list[Question] = []
    scores: list[float] = []
    for trials in run.by_question():
        score = grouping.add_trials(trials, run.info.options.scoring.match)
        if score is not None:
            questions.append(slim_question(trials[0].question))
            scores.append(score)
    values = np.array(scores)
    return Causes(
        lost=round(100.0 * float((1.0 - values).mean()), 6) if scores else 0.0,
        questions=int(np.count_nonzero(values < 1.0)),
        groups=grouping.groups(),
        slices=find_slices(questions, values) if scores else (),
    )


def slim_question(question: Question) -> Question:
    """A question with what slices need of it."""
    return Question(
        id=question.id,
        question=question.question,
        category=question.category,
        expected_tools=question.expected_tools,
        group=question.group,
        persona=question.persona,
        tags=question.tags,
        turns=question.turns,
        metadata=question.metadata,
    )
