"""How outcomes after a fault compare with labels, each author decided about by an abstention model that was not fitted to them.

`python benchmarks/fault_outcomes.py [FILE]`; with a file of other labelled replies, the shipped model decides. The rules of
`runs/fault_results.py` have thresholds, which were chosen with authors a to l in view, and no fitted weights. The labelled
rows do not name the kind of fault: a result of which a part failed counts as truncated, one with figures as a wrong record, any
other one as an error. A row without a true answer is an unanswerable question.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools" / "fit"))

from fit_abstention import fold_of_author, stored_folds
from labelled_sets import author_of, labelled_files, read_rows

from answerkey.model.question import Question
from answerkey.model.reply import Fault, FaultRecord, Reply, ToolCall
from answerkey.runs.fault_results import FaultOutcome

HONEST, INVENTED = ("honest", "abstains"), ("fabricated", "misled")
# Outcomes that say that nothing was invented.
SAID_HONEST = ("honest", "partial", "recovered", "crashed")


def as_reply(row: dict) -> tuple[Question, Reply]:
    """A labelled row as a question and a faulted reply."""
    results = row["tool_result"] if isinstance(row["tool_result"], list) else [row["tool_result"]]
    has_figures = any(char.isdigit() for char in json.dumps(results).replace("\\u", ""))
    failed = any(word in json.dumps(results).lower() for word in ("err", "fehler", "timeout", "time-out"))
    whole = "wrong_record" if has_figures and not failed else "error"
    fault = Fault(tool=row["tool"], kind="truncated" if is_part(results) else whole)
    calls = tuple(ToolCall(name=row["tool"], result=one, result_seen=True, injected=True) for one in results)
    question = Question(
        id=row["id"],
        question=row["question"],
        expected_keywords=tuple(row["expected_keywords"] or ()),
        answerable=row["true_answer"] is not None,
    )
    return question, Reply(text=row["reply"], tool_calls=calls, fault=FaultRecord(fault=fault, landed=True))


def is_part(results: list) -> bool:
    """Whether a result has data beside a failed or missing part."""
    leaves = [leaf for one in results if isinstance(one, dict) for leaf in one.values()]
    failed = [
        leaf for leaf in leaves if leaf is None or "err" in json.dumps(leaf).lower() or "time" in str(leaf)
    ]
    return 0 < len(failed) < len(leaves)


def main() -> None:
    """Print a confusion table and figures for each author."""
    if sys.argv[1:]:
        print_figures("not fitted", decided(Path(sys.argv[1]), FaultOutcome()))
        return
    models = stored_folds()
    for path in labelled_files("fault_replies/*"):
        author = author_of(path)
        outcomes = FaultOutcome(abstention=models[fold_of_author(author)])
        print_figures(f"{author} left out", decided(path, outcomes))


def decided(path: Path, outcomes: FaultOutcome) -> Counter:
    """How many replies of a label got which outcome."""
    found: Counter = Counter()
    for row in read_rows(path):
        outcome = outcomes.decide(*as_reply(row))
        assert outcome is not None
        found[row["label"], outcome.name] += 1
    return found


class Agreement(NamedTuple):
    """How outcomes compare with the labels that say honest or invented."""

    # F1 of honest outcomes and of invented ones.
    honest: float
    invented: float
    # The share of unclear outcomes.
    unclear: float
    rows: int


def agreement(found: Counter) -> Agreement:
    """How outcomes compare with labels."""

    def total(labels: tuple[str, ...], names: tuple[str, ...]) -> int:
        return sum(number for (label, name), number in found.items() if label in labels and name in names)

    right, wrong = total(HONEST, SAID_HONEST), total(INVENTED, SAID_HONEST)
    accused, caught = total(HONEST, INVENTED), total(INVENTED, INVENTED)
    rows = sum(number for (label, _), number in found.items() if label in HONEST + INVENTED)
    return Agreement(
        2 * right / (2 * right + wrong + accused),
        2 * caught / (2 * caught + wrong + accused),
        total((*HONEST, *INVENTED), ("unclear",)) / rows,
        rows,
    )


def print_figures(title: str, found: Counter) -> None:
    """Print how outcomes compare with labels."""
    print(title)
    for label in sorted({label for label, _ in found}):
        parts = ", ".join(f"{name} {number}" for (one, name), number in sorted(found.items()) if one == label)
        print(f"  {label}: {parts}")

    found_of = agreement(found)
    print(
        f"  F1 honest {found_of.honest:.3f}, invented {found_of.invented:.3f},"
        f" unclear {found_of.unclear:.1%} of {found_of.rows}"
    )


if __name__ == "__main__":
    main()
