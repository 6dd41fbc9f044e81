"""How well `smart` agrees with readers on held-out replies, beside baselines and an older version.

Accuracy with its 95% interval over questions: business replies by models without their author,
trivia answers (where the file is given; needs scikit-learn) by models without their question. The older version judges by its own
`find_keywords`, in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable

import fit_smart
import numpy as np
from fit_smart import Row

from answerkey.match.keywords import find_keywords
from answerkey.match.smart import SmartKeyword
from answerkey.model.question import Alternatives
from answerkey.text.normalise import folded_text, folded_words

__all__ = ["table"]

NOT_FITTED = {"ordinary replies": "keywords_ordinary_*"}
# Authors of replies in the proportions of life; the others wrote hard cases.
ORDINARY = frozenset("mopqrw")

_OLD = """
import json, sys
from answerkey.match.keywords import find_keywords
from answerkey.model.question import Alternatives
for line in sys.stdin:
    question, options, answer = json.loads(line)
    print(int(find_keywords([Alternatives(tuple(options))], answer, "smart", question=question)[0].found))
"""


def _substring(row: Row) -> bool:
    return any(option.lower() in row.answer.lower() for option in row.options if option.strip())


def _normalised(row: Row) -> bool:
    said = folded_text(row.answer)
    return any(folded_text(option) in said for option in row.options if folded_words(option))


def _overlap(row: Row) -> bool:
    """At least half of the words of some option."""
    said = set(folded_words(row.answer))
    shares = [
        len(said & set(words)) / len(words) for option in row.options if (words := folded_words(option))
    ]
    return max(shares, default=0.0) >= 0.5


def _standard(row: Row) -> bool:
    return find_keywords([Alternatives(tuple(row.options))], row.answer, "standard")[0].found


def _smart(row: Row) -> bool:
    return find_keywords([Alternatives(tuple(row.options))], row.answer, "smart", question=row.question)[
        0
    ].found


def _kind(row: Row) -> str:
    """Where the keyword is in the reply."""
    if _substring(row):
        return "there literally"
    keyword = SmartKeyword(Alternatives(tuple(row.options)), row.question)
    if keyword.has_value:
        return "a value in another form" if row.said else "a value that is not there"
    return "in other words" if row.said else "words that are not there"


def _by_kind(rows: list[Row], right: np.ndarray) -> None:
    kinds = np.array([_kind(row) for row in rows])
    said = np.array([row.said for row in rows])
    ordinary = np.array([row.source in ORDINARY for row in rows])
    print(f"{'the keyword is':<28}{'said':<6}{'rows':>6}{'right':>8}{'ordinary':>10}{'right':>8}")
    for kind in dict.fromkeys(kinds):
        for verdict in (True, False):
            some = (kinds == kind) & (said == verdict)
            if some.any():
                print(
                    f"{kind:<28}{'yes' if verdict else 'no':<6}{some.sum():>6}{right[some].mean():>8.3f}"
                    f"{(some & ordinary).sum():>10}{right[some & ordinary].mean():>8.3f}"
                )
    rest = kinds != "in other words"
    for title, some in (("all", rest), ("ordinary", rest & ordinary)):
        print(f"without what is said in other words only, {title}: {right[some].mean():.3f} of {some.sum()}")
    print(f"ordinary authors: {right[ordinary].mean():.3f} of {ordinary.sum()}")


def _by_author(rows: list[Row], right: np.ndarray) -> None:
    print(
        f"{'author':<8}{'rows':>6}{'right':>8}   rejected and accepted wrongly where the keyword is there literally"
    )
    for author in dict.fromkeys(row.source for row in rows):
        own = [(row, bool(ok)) for row, ok in zip(rows, right, strict=True) if row.source == author]
        there = [(row.said, ok) for row, ok in own if _substring(row)]
        wrong = {said: sum(one == said and not ok for one, ok in there) for said in (True, False)}
        count = {said: sum(one == said for one, _ in there) for said in (True, False)}
        print(
            f"{author:<8}{len(own):>6}{sum(ok for _, ok in own) / len(own):>8.3f}"
            f"   {wrong[True]} of {count[True]}, {wrong[False]} of {count[False]}"
        )


BASELINES: dict[str, Callable[[Row], bool]] = {
    "substring": _substring,
    "normalised substring": _normalised,
    "token overlap": _overlap,
    "standard": _standard,
}


def _old_verdicts(rows: list[Row], source: str) -> np.ndarray:
    given = "\n".join(json.dumps([row.question, row.options, row.answer]) for row in rows)
    run = subprocess.run(
        [sys.executable, "-c", _OLD],
        input=given,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    return np.array([line == "1" for line in run.stdout.split()])


def interval(right: np.ndarray, rows: list[Row]) -> tuple[float, float]:
    """95% by drawing questions, whose rows belong together, with replacement."""
    questions: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        questions.setdefault(row.question, []).append(index)
    sums = np.array([right[of].sum() for of in questions.values()])
    counts = np.array([len(of) for of in questions.values()])
    drawn = np.random.default_rng(0).integers(0, len(sums), (1000, len(sums)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _show(title: str, rows: list[Row], verdicts: dict[str, np.ndarray]) -> None:
    said = np.array([row.said for row in rows])
    print(f"{title}: {len(rows)} replies, {said.mean():.1%} said")
    print(f"{'':<24}{'accuracy':>9}{'95%':>14}{'wrong accepted':>16}{'right rejected':>16}")
    for name, found in verdicts.items():
        right = found == said
        low, high = interval(right, rows)
        print(
            f"{name:<24}{right.mean():>9.3f}{low:>8.3f}–{high:.3f}"
            f"{found[~said].mean():>15.1%} {(~found)[said].mean():>15.1%}"
        )


def table(arguments: argparse.Namespace) -> None:
    """Print the figures of business replies and, where the file is given, of trivia answers."""
    trivia, old = arguments.trivia, arguments.old
    folds = fit_smart.stored_folds()
    business = fit_smart.business_rows()
    held_out = {"business keywords, leave one author out": (business, np.array(
        [fit_smart.is_found(folds[row.source], row) for row in business]))}  # fmt: skip
    if trivia is not None:
        judged = fit_smart.trivia_rows(trivia)
        held_out["trivia answers, cross-validated over questions"] = (
            judged,
            fit_smart.held_out_trivia(business, judged),
        )
    for title, files in NOT_FITTED.items():
        rows = fit_smart.business_rows(f"not_fitted/{files}")
        held_out[f"{title}, never fitted to"] = rows, np.array([_smart(row) for row in rows])
    for title, (rows, found) in held_out.items():
        verdicts = {name: np.array([judge(row) for row in rows]) for name, judge in BASELINES.items()}
        if old is not None:
            verdicts["smart, older version"] = _old_verdicts(rows, old)
            print("(an older version that was itself fitted to these rows is in sample here)")
        _show(title, rows, {**verdicts, "smart, held out": found})
        if rows is business:
            right = found == np.array([row.said for row in rows])
            _by_kind(rows, right)
            _by_author(rows, right)
