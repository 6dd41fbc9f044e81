"""Does the strength of a key predict what the key can find? `python tools/simulate/key_strength.py [--copies 200]`

Weakened copies of the bundled set: each drops expectations at random, and takes `must` from others. For each copy: its
strength, and the power to find that 10% of the replies state a wrong fact, by the paired comparison over 100 questions. The
wrong facts are made with another seed than the wrong replies that measure the strength.
"""

import argparse
import random
from collections.abc import Iterator

import msgspec
import numpy as np
from edges import clear_sign

import answerkey
from answerkey.config import Settings
from answerkey.golden.wrong_replies import wrong_replies
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.runs.audit import try_wrong_replies
from answerkey.runs.context import golden_set, with_truth
from answerkey.scorers.grader import make_grader

ASKED, WRONG = 100, 10


def weakened(questions: QuestionSet, source: random.Random) -> QuestionSet:
    """A copy that drops a share of the expectations and takes `must` from a share of the others."""
    dropped, unmarked = source.random(), source.random()

    def changed(question: Question) -> Question:
        kept = []
        for one in question.expected_keywords:
            if source.random() < dropped:
                continue
            is_marked = not isinstance(one, str) and one.must
            kept.append(
                msgspec.structs.replace(one, must=False) if is_marked and source.random() < unmarked else one
            )
        return msgspec.structs.replace(question, expected_keywords=tuple(kept), reference_answer=None)

    return questions.subset([changed(question) for question in questions])


def seeded_facts(questions: QuestionSet, replies: dict[str, Reply], seed: int) -> dict[str, Reply]:
    """A wrong reply for each question that has one: a wrong fact, else the reply to a similar question."""
    recorded = {(identity, 0): reply for identity, reply in replies.items()}
    found: dict[str, Reply] = {}
    for question, [mutants] in wrong_replies(questions, recorded, seed=seed):
        order = sorted(
            (one for one in mutants if one.family in ("fact", "subject")), key=lambda one: one.family
        )
        if order:
            found[question.id] = order[0].reply
    return found


def power(falls: list[float], draws: int, source: random.Random) -> float:
    """How often the comparison finds that WRONG of ASKED replies state a wrong fact."""
    found = 0
    for _ in range(draws):
        differences = np.zeros(ASKED)
        differences[:WRONG] = source.choices(falls, k=WRONG)
        found += clear_sign(differences) < 0
    return found / draws


def figures(copies: int, draws: int, seed: int) -> Iterator[tuple[float, float]]:
    """(strength, power) of each weakened copy."""
    source = random.Random(seed)
    # Computed expectations have their values, so that dropping one is all that a copy lacks.
    bundled, _ = with_truth(golden_set("demo", Settings()), Settings())
    bundled = bundled.subset([question for question in bundled if not question.turns and question.answerable])
    run = answerkey.evaluate(bundled, "demo")
    right = {trial.question.id: trial.replies[0] for trial in run.results if trial.passed}
    bundled = bundled.subset([question for question in bundled if question.id in right])
    wrong = seeded_facts(bundled, right, seed=seed + 1)
    grader = make_grader().without_metrics()
    for _ in range(copies):
        copy = weakened(bundled, source)
        key = try_wrong_replies(copy, grader, run.results)
        falls = [
            (grader.grade_turn(question, wrong[question.id]).total or 0.0)
            - (grader.grade_turn(question, right[question.id]).total or 0.0)
            for question in copy
            if question.id in wrong
        ]
        yield key.strength.value if key.strength else 0.0, power(falls, draws, source)


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    """Spearman's, with mean ranks for ties."""
    columns = np.array(pairs).T
    ranks = [np.array([(np.sum(c < v) + np.sum(c <= v) + 1) / 2 for v in c]) for c in columns]
    return float(np.corrcoef(*ranks)[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=200)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=28)
    options = parser.parse_args()
    pairs = sorted(figures(options.copies, options.draws, options.seed))
    print(
        f"{len(pairs)} weakened copies: rank correlation of strength and power {rank_correlation(pairs):.3f}\n"
    )
    print("| strength | copies | power |\n|---|---|---|")
    for low in np.arange(0, 1, 0.2):
        part = [
            found for strength, found in pairs if low <= strength < low + 0.2 or (low > 0.7 and strength == 1)
        ]
        if part:
            print(f"| {low:.1f}–{low + 0.2:.1f} | {len(part)} | {np.mean(part):.2f} |")


if __name__ == "__main__":
    main()
