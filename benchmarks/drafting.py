"""How well `answerkey draft` finds what a golden set lacks: half of the bundled questions are hidden from it.

    python benchmarks/drafting.py TRAFFIC.jsonl [--seeds N] [--variant basic] [--half 0|1] [--bands]

`--half` takes the half of the intents that a checksum chooses. What is fitted, with `--bands`, is fitted to half 0; half 1 is
for counting only.

A row of TRAFFIC has `text` and `intent`: the id of the bundled question that it paraphrases, "new:NAME" or "noise". The demo
chatbot answers every text. An expectation is right if the demo's reply to the bundled question itself meets it; a reply is
wrong if it does not pass the bundled question's key.
"""

import argparse
import json
import os
import random
import resource
import tempfile
from bisect import bisect
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import msgspec

import answerkey
from answerkey.config import load_settings
from answerkey.golden.similar import BANDS, question_words
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.runs.context import golden_set, with_truth
from answerkey.runs.draft import Drafts, Traffic, draft_cases
from answerkey.runs.production import RealQuestion
from answerkey.scorers.grader import make_grader


def replies_of(texts: list[str], target: str) -> dict[str, Reply]:
    """The demo's reply to each text."""
    run = answerkey.evaluate([{"question": text} for text in dict.fromkeys(texts)], target=target)
    return {trial.question.question: trial.replies[0] for trial in run.results}


class Evaluation:
    """Drafts of one traffic file, with half of the bundled questions hidden by a seed."""

    def __init__(self, traffic: list[dict[str, str]], target: str) -> None:
        self.settings = load_settings()
        self.bundled, _ = with_truth(golden_set("demo", self.settings), self.settings)
        self.cases = {case.id: case for case in self.bundled}
        self.traffic = [row for row in traffic if not self._is_conversation(row["intent"])]
        self.intents = {row["text"]: row["intent"] for row in self.traffic}
        self.replies = replies_of([row["text"] for row in self.traffic], target)
        self.clean = replies_of([case.question for case in self.bundled if not case.turns], "demo")
        self.grader = make_grader(self.settings.scoring, self.settings)

    def _is_conversation(self, intent: str) -> bool:
        return intent in self.cases and bool(self.cases[intent].turns)

    def run(self, seed: int) -> dict[str, object]:
        """Figures of one split."""
        visible = self._visible(seed)
        golden = self._golden(visible)
        drafts = draft_cases(self._asked(), golden, self.settings)
        covered = sum(row["intent"] in visible for row in self.traffic) / len(self.traffic)
        hidden = {row["intent"] for row in self.traffic if row["intent"] in self.cases} - visible
        found = {self.intents[text] for hole in drafts.holes for text in hole.examples} & hidden
        interval = drafts.coverage
        return {
            "true coverage": round(covered, 3),
            "coverage": [round(one, 3) for one in (interval.value, interval.low, interval.high)],
            "within": interval.low <= covered <= interval.high,
            "hidden found": f"{len(found)}/{len(hidden)}",
            **self._expectations(drafts),
        }

    def _visible(self, seed: int) -> set[str]:
        ids = sorted(case.id for case in self.bundled)
        random.Random(seed).shuffle(ids)
        return set(ids[: len(ids) // 2])

    def _golden(self, visible: set[str]) -> QuestionSet:
        return QuestionSet(questions=tuple(case for case in self.bundled if case.id in visible), name="half")

    def similarities(self, seed: int, *, with_replies: bool) -> Iterator[tuple[float, bool]]:
        """Of each question: how similar it is to its nearest case, and whether the golden set covers it."""
        visible = self._visible(seed)
        traffic = Traffic(self._golden(visible), self.grader)
        for row in self.traffic:
            reply = self.replies[row["text"]] if with_replies else None
            nearest = traffic.nearest(question_words(row["text"]), reply)
            yield (nearest[0].similarity if nearest else 0.0), row["intent"] in visible

    def _asked(self) -> Iterator[RealQuestion]:
        for number, row in enumerate(self.traffic, 1):
            yield RealQuestion(text=row["text"], source=f"traffic:{number}", reply=self.replies[row["text"]])

    def _expectations(self, drafts: Drafts) -> dict[str, object]:
        right = total = drafted_wrong = wrong = good = good_drafted = 0
        misses: list[str] = []
        for draft in drafts.drafts:
            text = str(draft["question"])
            case = self.cases.get(self.intents[text])
            if case is None:
                continue
            passes = self.grader.grade(case, (self.replies[text],)).components["response_quality"].value == 1
            expected = draft.get("expected_keywords") or []
            if not passes:
                wrong += 1
                drafted_wrong += bool(expected)
                misses += [f"WRONG {text} -> {expected}"] if expected else []
                continue
            good += 1
            good_drafted += bool(expected)
            for one in expected if isinstance(expected, list) else []:
                total += 1
                met = self._is_met(one, self.clean[case.question])
                right += met
                misses += [] if met else [f"{text} -> {one}"]
        return {
            "expectations right": f"{right}/{total}",
            "right replies with expectations": f"{good_drafted}/{good}",
            "wrong replies with expectations": f"{drafted_wrong}/{wrong}",
            "misses": misses,
        }

    def _is_met(self, expectation: object, reply: Reply) -> bool:
        from answerkey.datasets.golden_sets import parse_question

        question: Question = parse_question({"question": "?", "expected_keywords": [expectation]})
        return self.grader.grade(question, (reply,)).components["response_quality"].value == 1


def print_bands(evaluation: Evaluation, seeds: range) -> None:
    """How often covered questions, and others, have a similarity in each band; with and without replies."""
    for covered in (True, False):
        bands = [1] * (len(BANDS) + 1)
        for seed in seeds:
            for with_replies in (True, False):
                for similarity, is_covered in evaluation.similarities(seed, with_replies=with_replies):
                    bands[bisect(BANDS, similarity)] += is_covered == covered
        print("covered" if covered else "others", [round(number / sum(bands), 3) for number in bands])


def main() -> None:
    """Print the figures of some splits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traffic", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--variant", default="")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--misses", action="store_true")
    parser.add_argument(
        "--bands", action="store_true", help="print the shares that coverage is estimated with"
    )
    options = parser.parse_args()
    traffic = [json.loads(line) for line in options.traffic.read_text().splitlines()]
    if options.half is not None:
        traffic = [row for row in traffic if crc32(row["intent"].encode()) % 2 == options.half]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        evaluation = Evaluation(traffic, f"demo:{options.variant}" if options.variant else "demo")
        if options.bands:
            print_bands(evaluation, seeds)
        for seed in () if options.bands else seeds:
            figures = evaluation.run(seed)
            misses = figures.pop("misses")
            print(seed, msgspec.json.encode(figures).decode())
            if options.misses and isinstance(misses, list):
                print(*misses, sep="\n")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
