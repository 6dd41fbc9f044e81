"""Draws wrong replies for people to label, and reports from the labels which of them are still right.

    python -m tools.simulate.mutant_sample draw FOLDER [OTHER]  # sample.jsonl, and the families apart
    python -m tools.simulate.mutant_sample report FOLDER        # reads labels_1.jsonl, labels_2.jsonl

Half of the mutants are of the bundled golden set, made from a run of the demo; the others are of questions by the authors of
`labelled/`; with the folder of an earlier sample as OTHER, only of questions that it does not have.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import answerkey
from answerkey.datasets.golden_sets import parse_question
from answerkey.golden.wrong_replies import COUNTED, Mutant, wrong_replies
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Evidence, Reply, ToolCall

LABELLED = Path(__file__).parents[2] / "labelled"
# Mutants of each source in the sample. Wrong facts are the ones that may be right after all.
PER_SOURCE = 300
SAMPLED = {"fact": 0.52, "subject": 0.29, "nothing": 0.19}
_SHOWN = 3_000
_Replies = dict[tuple[str, int], Reply]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def bundled() -> tuple[QuestionSet, _Replies]:
    """The bundled set with the demo's passing replies."""
    run = answerkey.evaluate(target="demo")
    questions = {trial.question.id: trial.question for trial in run.results}
    replies = {
        (trial.question.id, index): reply
        for trial in run.results
        if trial.passed
        for index, reply in enumerate(trial.replies)
    }
    return QuestionSet(questions=tuple(questions.values())), replies


def other_authors() -> tuple[QuestionSet, _Replies]:
    """English questions of `labelled/` with a reply that is supported as a whole, or with a true answer."""
    questions: list[Question] = []
    replies: _Replies = {}
    for path in sorted((LABELLED / "evidence").glob("*.jsonl")):
        for row in _rows(path):
            if not row["tool_calls"] or any(part["supported"] is False for part in row["sentences"]):
                continue
            if not row["answer"].isascii():
                continue
            identity = f"{path.stem}-{row['id']}"
            questions.append(
                parse_question(
                    {"id": identity, "question": row["question"], "reference_answer": row["answer"]}
                )
            )
            calls = tuple(
                ToolCall(name=call["name"], arguments=call.get("arguments"), result=call.get("result"))
                for call in row["tool_calls"]
            )
            replies[identity, 0] = Reply(
                text=row["answer"], tool_calls=calls, evidence=Evidence(tools_observed=True)
            )
    for path in sorted((LABELLED / "fault_replies").glob("*.jsonl")):
        for row in _rows(path):
            if row["language"] == "en" and row["true_answer"]:
                fields = {
                    "reference_answer": row["true_answer"],
                    "expected_keywords": row["expected_keywords"],
                }
                questions.append(
                    parse_question({"id": f"{path.stem}-{row['id']}", "question": row["question"]} | fields)
                )
    return QuestionSet(questions=tuple(questions)), replies


def _sampled(
    source: str, random: Random, labelled: frozenset[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    questions, replies = bundled() if source == "bundled" else other_authors()
    made: dict[str, list[tuple[Question, int, Mutant]]] = defaultdict(list)
    for question, turns in wrong_replies(questions, replies):
        if source == "others" and question.id in labelled:
            continue
        for index, mutants in enumerate(turns):
            for mutant in mutants:
                made[mutant.family].append((question, index, mutant))
    room = PER_SOURCE
    for family, share in SAMPLED.items():
        # What one family has not, the next one gets.
        left = sum(
            part for name, part in SAMPLED.items() if list(SAMPLED).index(name) >= list(SAMPLED).index(family)
        )
        number = min(round(room * share / left), len(made[family]))
        room -= number
        for question, index, mutant in random.sample(made[family], number):
            turn, good = question.asks[index], replies.get((question.id, index))
            shown = {
                "earlier_turns": [one.question for one in question.asks[:index]],
                "question": turn.question,
                "accepted_reply": good.text if good else turn.reference_answer,
                "reference_answer": turn.reference_answer,
                "tool_results": [
                    json.dumps(call.result, ensure_ascii=False, default=str)[:_SHOWN]
                    for call in good.tool_calls
                ]
                if good
                else [],
                "reply": mutant.reply.text,
            }
            hidden = {
                "source": source,
                "question_id": question.id,
                "family": family,
                "operator": mutant.operator,
            }
            yield shown, hidden | {"of": len(made[family])}


def draw(folder: Path, earlier: Path | None = None) -> None:
    """Write the sample, and apart from it how each mutant was made."""
    random = Random(28)
    labelled = (
        frozenset(row["question_id"] for row in _rows(earlier / "families.jsonl")) if earlier else frozenset()
    )
    rows = [row for source in ("bundled", "others") for row in _sampled(source, random, labelled)]
    random.shuffle(rows)
    with (
        (folder / "sample.jsonl").open("w") as sample,
        (folder / "families.jsonl").open("w") as families,
    ):
        for number, (shown, hidden) in enumerate(rows, start=1):
            identity = {"id": f"m{number:03d}"}
            sample.write(json.dumps(identity | shown, ensure_ascii=False) + "\n")
            families.write(json.dumps(identity | hidden) + "\n")
    print(f"{len(rows)} mutants")


def report(folder: Path) -> None:
    """Print which share of the mutants is still right, by family and by author."""
    families = {row["id"]: row for row in _rows(folder / "families.jsonl")}
    labels = [
        {row["id"]: bool(row["still_right"]) for row in _rows(path)}
        for path in sorted(folder.glob("labels_*.jsonl"))
    ]
    for source in ("bundled", "others"):
        shares: list[tuple[int, float]] = []
        for family in COUNTED:
            ids = [
                one for one, row in families.items() if row["source"] == source and row["family"] == family
            ]
            rates = [_share(author[one] for one in ids if one in author) for author in labels]
            both = _share(all(author.get(one, False) for author in labels) for one in ids)
            shares.append((families[ids[0]]["of"], sum(rates) / len(rates)))
            listed = ", ".join(f"{rate:.3f}" for rate in rates)
            print(f"{source:8} {family:8} {len(ids):4} labelled  still right: {listed}; by all: {both:.3f}")
        total = sum(size for size, _ in shares)
        print(
            f"{source:8} all      {total:4} made      still right: {sum(size * rate for size, rate in shares) / total:.3f}"
        )
    for identity, row in families.items():
        if any(author.get(identity) for author in labels):
            marks = " ".join("right" if author.get(identity) else "wrong" for author in labels)
            print(identity, row["source"], row["family"], row["operator"], marks, sep="\t")


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


if __name__ == "__main__":
    {"draw": draw, "report": report}[sys.argv[1]](*map(Path, sys.argv[2:]))
