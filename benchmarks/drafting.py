"""How well `answerkey draft` finds what a golden set lacks.

    python benchmarks/drafting.py labelled/traffic/property_questions.jsonl [--seeds N] [--variant basic] [--half 0|1]
    python benchmarks/drafting.py labelled/traffic/*.asked.jsonl [--seeds N]

A row of a traffic file has `text`, `intent` (the id of the case that it paraphrases, "new:NAME" or "noise") and perhaps `times`.

The first form hides half of the bundled questions; the demo chatbot answers every text. An expectation is right if the demo's
reply to the bundled question itself meets it; a reply is wrong if it does not pass the bundled question's key. `--half` takes
the half of the intents that a checksum chooses: what is fitted is fitted to half 0.

The second form has the golden set in NAME.golden.jsonl beside NAME.asked.jsonl, and no replies: once with the whole set, once for
each seed with some of its cases, and as often with 15 questions drawn at random.
"""

import argparse
import json
import os
import random
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

import answerkey
from answerkey.config import load_settings
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Reply
from answerkey.runs.context import golden_set, with_truth
from answerkey.runs.draft import Drafts, draft_cases
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


class SetEvaluation:
    """Coverage of one set's questions, with all or some of its cases."""

    def __init__(self, asked: Path) -> None:
        self.name = asked.name.removesuffix(".asked.jsonl")
        self.settings = load_settings()
        self.golden = golden_set(asked.with_name(f"{self.name}.golden.jsonl"), self.settings)
        self.rows = [json.loads(line) for line in asked.read_text().splitlines()]

    def print_figures(self, seeds: range) -> None:
        """The whole set, some of its cases, and few questions."""
        ids = [case.id for case in self.golden]
        whole = self._figures(set(ids), self.rows)
        print(self.name, whole)
        some, few = [], []
        for seed in seeds:
            draw = random.Random(seed)
            visible = set(draw.sample(ids, round(len(ids) * draw.choice((0.3, 0.5, 0.7, 0.9)))))
            some.append(self._figures(visible, self.rows))
            few.append(self._figures(draw.choice((visible, set(ids))), draw.sample(self.rows, 15)))
        for label, figures in (("some of the cases", some), ("15 questions", few)):
            within = sum(one.within for one in figures)
            bias = sum(one.value - one.true for one in figures) / len(figures)
            width = sum(one.high - one.low for one in figures) / len(figures)
            holes = sum(one.holes for one in figures) / max(sum(one.hidden for one in figures), 1)
            print(
                f"  {label}: within {within}/{len(figures)}, bias {bias:+.3f}, width {width:.2f}, holes {holes:.2f}"
            )

    def _figures(self, visible: set[str], rows: list[dict[str, Any]]) -> "SetFigures":
        golden = QuestionSet(
            questions=tuple(case for case in self.golden if case.id in visible), name=self.name
        )
        real = (
            RealQuestion(text=row["text"], source=f"{self.name}:{number}", count=row.get("times", 1))
            for number, row in enumerate(rows, 1)
        )
        drafts = draft_cases(real, golden, self.settings)
        asked = sum(row.get("times", 1) for row in rows)
        covered = sum(row.get("times", 1) for row in rows if row["intent"] in visible)
        listed = {text for hole in drafts.holes for text in hole.examples}
        hidden = {row["intent"] for row in rows} - visible - {"noise"}
        found = {row["intent"] for row in rows if row["text"] in listed} & hidden
        coverage = drafts.coverage
        return SetFigures(
            covered / asked, coverage.value, coverage.low, coverage.high, len(hidden), len(found)
        )


class SetFigures(NamedTuple):
    """The true share of covered questions, the reported one with its interval, and the hidden intents among the holes."""

    true: float
    value: float
    low: float
    high: float
    hidden: int
    holes: int

    @property
    def within(self) -> bool:
        """Whether the truth is in the interval."""
        return self.low <= self.true <= self.high

    def __str__(self) -> str:
        shares = f"true {self.true:.2f}, reported {self.value:.2f} ({self.low:.2f} to {self.high:.2f})"
        return f"{shares}{'' if self.within else ' OUTSIDE'}, holes {self.holes}/{self.hidden}"


def main() -> None:
    """Print the figures of some splits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traffic", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--variant", default="")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    if options.traffic[0].name.endswith(".asked.jsonl"):
        for asked in options.traffic:
            SetEvaluation(asked).print_figures(seeds)
        return
    traffic = [json.loads(line) for line in options.traffic[0].read_text().splitlines()]
    if options.half is not None:
        traffic = [row for row in traffic if crc32(row["intent"].encode()) % 2 == options.half]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        evaluation = Evaluation(traffic, f"demo:{options.variant}" if options.variant else "demo")
        for seed in seeds:
            figures = evaluation.run(seed)
            misses = figures.pop("misses")
            print(seed, msgspec.json.encode(figures).decode())
            if options.misses and isinstance(misses, list):
                print(*misses, sep="\n")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
