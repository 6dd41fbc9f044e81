"""Fits the trees of `smart` matching: `python tools/fit/fit_smart.py TRIVIA [--write]`; needs scikit-learn.

TRIVIA has one judged answer a line: {"id", "question", "accepted": [...], "answer", "correct"}. The business replies are
labelled/keywords. Every fit also uses labelled/fit_only/keywords_short_sentences.jsonl, which is never evaluated on.

Prints held-out accuracy: each business reply by a model fitted without its author, each trivia answer by a model fitted
without its question. --write stores the model of all rows in src/answerkey/match/smart.json and context.json.gz, and the
models without each author in smart_held_out.json.gz, so that tests can measure without scikit-learn.

A row counts by its best candidate, so the fit and the choice of the best candidate alternate.
"""

import argparse
import gzip
import os
import random
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fit_context import export_context, fit_context, number_observations
from fit_trees import export_trees
from labelled_sets import LABELLED, author_of, labelled_files
from labelled_sets import read_rows as read_lines

from answerkey.match.keywords import ReplyText
from answerkey.match.phrasing import prepare_question
from answerkey.match.reading import ContextModel, Reply, in_steps
from answerkey.match.smart import (
    DIRECTIONS,
    KeywordTrees,
    SmartKeyword,
    accept_unopposed,
    limit_other_name,
)
from answerkey.model.question import Alternatives

ROOT = Path(__file__).resolve().parents[2]
# So small fits lose more by threads that wait for each other than they win; scikit-learn reads this when first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
STORED_FOLDS = Path(__file__).with_name("smart_held_out.json.gz")
AUTHORS = "".join(map(author_of, labelled_files("keywords/*")))
FOLDS = 5
# What a row counts beside a business row, by its source: trivia rows are more and easier, short sentences are all of one kind.
WEIGHTS = {"trivia": 0.1, "short sentences": 0.3}
ROUNDS = 2
# What a trivia row counts for the words around a keyword: the plain answers are so many that they would teach little else.
TRIVIA_WORDS = 0.1
# The recall from which a keyword counts as being there as a whole.
WHOLE = 0.95
RECALL, SAID = list(DIRECTIONS).index("recall"), list(DIRECTIONS).index("said")
# The score of a row of which nothing is in the reply.
NOWHERE = -9.0
TREES = {
    "max_iter": 220, "max_leaf_nodes": 15, "learning_rate": 0.07, "max_features": 0.4,
    "l2_regularization": 1.0, "min_samples_leaf": 8, "max_bins": 64,
}  # fmt: skip


class Row:
    """One judged reply with the features of its candidates and their places."""

    def __init__(self, source: str, question: str, options: list[str], answer: str, said: bool) -> None:
        self.source, self.question, self.options, self.answer, self.said = (
            source,
            question,
            options,
            answer,
            said,
        )
        keyword = SmartKeyword(Alternatives(tuple(options)), question)
        reply = Reply(ReplyText(answer), prepare_question(question))
        found = list(keyword.candidates(reply))
        self.features = np.array([one[0] for one in found], dtype=float).reshape(len(found), len(DIRECTIONS))
        self.candidates = found
        # None for what only the whole reply may say.
        self.observations = [
            None if way == "tone" else reply.observations(place, wanted.size if way == "phrase" else 1)
            for _, wanted, place, way in found
        ]
        self.known = [None if names is None else number_observations(names) for names in self.observations]


class Model(msgspec.Struct, frozen=True):
    """What a fit gives: the words around a keyword, and the trees that read what they say among their features."""

    context: ContextModel
    trees: KeywordTrees


def business_rows(files: str = "keywords/*") -> list[Row]:
    """The labelled replies of some files: those below keywords/ are fitted to, those below not_fitted/ are not."""
    return [row for path in labelled_files(files) for row in _read_rows(path, author_of(path))]


@lru_cache(maxsize=1)
def surroundings_rows() -> list[Row]:
    """Short sentences by the author of the model: every fit has them, no figure counts them."""
    return _read_rows(LABELLED / "fit_only/keywords_short_sentences.jsonl", "short sentences")


def _read_rows(path: Path, author: str) -> list[Row]:
    rows = []
    for line in read_lines(path):
        keyword = line["expected_keywords"][0]
        options = keyword if isinstance(keyword, list) else [keyword]
        rows.append(Row(author, line["question"], options, line["answer"], line["said"]))
    return rows


def trivia_rows(path: Path) -> list[Row]:
    return [
        Row("trivia", line["question"], line["accepted"], line["answer"], bool(line["correct"]))
        for line in read_lines(path)
    ]


def question_folds(rows: list[Row], folds: int = FOLDS) -> list[int]:
    """The fold of each row; all answers to one question are in one fold."""
    questions = sorted({row.question for row in rows})
    random.Random(0).shuffle(questions)
    of = {question: index % folds for index, question in enumerate(questions)}
    return [of[row.question] for row in rows]


def fit(rows: list[Row]) -> Model:
    """The model of these rows and of the short sentences."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows = [row for row in (*rows, *surroundings_rows()) if len(row.features)]
    context, values = _fit_surroundings(rows)
    said = np.array([row.said for row in rows])
    weights = np.array([WEIGHTS.get(row.source, 1.0) for row in rows])
    chosen = [its[np.lexsort((its[:, SAID], its[:, RECALL]))[-1]] for its in values]
    ends = np.cumsum([len(its) for its in values])[:-1]
    model: Any = None
    for _ in range(ROUNDS):
        if model is not None:
            scored = np.split(model.decision_function(np.concatenate(values)), ends)
            chosen = [its[int(np.argmax(scores))] for its, scores in zip(values, scored, strict=True)]
        model = HistGradientBoostingClassifier(
            **TREES, monotonic_cst=list(DIRECTIONS.values()), early_stopping=False, random_state=0
        )
        model.fit(np.array(chosen), said, sample_weight=weights)
    base, trees = export_trees(model)
    return Model(context, KeywordTrees(base, trees))


def _fit_surroundings(rows: list[Row]) -> tuple[ContextModel, list[np.ndarray]]:
    """The model of the words around a keyword, and all features, `said` among them as a model without the row's author (or
    question, where one author wrote all) would have it: the trees must not trust what was learned by heart.
    """
    # It learns from the first place that has the whole keyword.
    whole = [(row, int(np.argmax(row.features[:, RECALL] >= WHOLE))) for row in rows]
    whole = [(row, at) for row, at in whole if row.features[at, RECALL] >= WHOLE]
    known = [row.known[at] for row, at in whole]
    said = np.array([row.said for row, _ in whole])
    counts = np.array([TRIVIA_WORDS if row.source == "trivia" else 1.0 for row, _ in whole])
    folds, of_whole = np.array(_folds(rows)), np.array(_folds([row for row, _ in whole]))
    values = [row.features.copy() for row in rows]
    for fold in range(FOLDS):
        others = np.flatnonzero(of_whole != fold)
        weights = fit_context([known[index] for index in others], said[others], counts[others])
        for index in np.flatnonzero(folds == fold):
            values[index][:, SAID] = [
                0.0 if one is None else in_steps(weights[one].sum() + weights[-1])
                for one in rows[index].known
            ]
    return export_context(fit_context(known, said, counts)), values


def _folds(rows: list[Row]) -> list[int]:
    """The fold of each row: all of an author, or of a question where one author wrote all."""
    return [
        AUTHORS.index(row.source) % FOLDS
        if row.source in AUTHORS
        else zlib.crc32(row.question.encode()) % FOLDS
        for row in rows
    ]


def verdict_score(model: Model, row: Row) -> float:
    """The log-odds of the best candidate."""
    best = NOWHERE
    for (_, *place), values, names in zip(
        row.candidates, row.features.tolist(), row.observations, strict=True
    ):
        values[SAID] = 0.0 if names is None else model.context.log_odds(names)
        read = tuple(values)
        log_odds = limit_other_name(read, model.trees.score(read))
        best = max(best, accept_unopposed((read, *place), log_odds))
    return best


def is_found(model: Model, row: Row) -> bool:
    """The verdict of `smart` at the threshold `even`."""
    return verdict_score(model, row) > 0


def stored_folds() -> dict[str, Model]:
    """The models without each author, as `--write` stored them."""
    return msgspec.json.decode(gzip.decompress(STORED_FOLDS.read_bytes()), type=dict[str, Model])


def held_out_business(business: list[Row], trivia: list[Row]) -> tuple[np.ndarray, dict[str, Model]]:
    """Each business row's score by a model that saw nothing of its author, and those models."""
    models = {a: fit([*(row for row in business if row.source != a), *trivia]) for a in AUTHORS}
    return np.array([verdict_score(models[row.source], row) for row in business]), models


def held_out_trivia(business: list[Row], trivia: list[Row]) -> np.ndarray:
    """Each trivia row's verdict by a model that did not see its question."""
    folds = np.array(question_folds(trivia))
    found = np.zeros(len(trivia), dtype=bool)
    for fold in range(FOLDS):
        model = fit([*business, *(row for row, its in zip(trivia, folds, strict=True) if its != fold)])
        for index in np.flatnonzero(folds == fold):
            found[index] = is_found(model, trivia[index])
    return found


def thresholds(found: np.ndarray, said: np.ndarray) -> dict[str, float]:
    """`even` at 0; `strict`: nine in ten that it accepts are right; `lenient`: of the right ones of which something is there,
    49 in 50 are accepted."""
    levels = sorted({round(float(one), 2) for one in found if 0 <= one <= 4})
    strict = next((level for level in levels if said[found > level].mean() >= 0.9), 4.0)
    lenient = round(float(np.quantile(found[said & (found > NOWHERE)], 0.02)), 2)
    return {"even": 0.0, "strict": strict, "lenient": min(0.0, lenient)}


def _write_gzip(path: Path, model: Any) -> None:
    """Without the time, so that equal fits give equal files."""
    path.write_bytes(gzip.compress(msgspec.json.encode(model), mtime=0))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("trivia", type=Path)
    arguments.add_argument("--write", action="store_true", help="store the model and the folds")
    given = arguments.parse_args()
    business, trivia = business_rows(), trivia_rows(given.trivia)
    said = np.array([row.said for row in business])
    found, models = held_out_business(business, trivia)
    right = (found > 0) == said
    for author in AUTHORS:
        own = np.array([row.source == author for row in business])
        print(f"business, author {author}: {right[own].mean():.4f} of {own.sum()}")
    print(f"business, leave one author out: {right.mean():.4f} of {len(said)}")
    limits = thresholds(found, said)
    for name, limit in limits.items():
        accepted = found > limit
        print(f"  {name} {limit:+.2f}: accuracy {(accepted == said).mean():.3f}, precision {said[accepted].mean():.3f}, "
              f"recall {accepted[said].mean():.3f}")  # fmt: skip
    judged = held_out_trivia(business, trivia)
    right = judged == np.array([row.said for row in trivia])
    print(f"trivia, cross-validated over questions: {right.mean():.4f} of {len(right)}", flush=True)
    few = np.array([len(row.options) <= 3 for row in trivia])
    print(f"  with one to three accepted answers: {right[few].mean():.4f} of {few.sum()}")
    if given.write:
        shipped = fit([*business, *trivia])
        trees = msgspec.structs.replace(shipped.trees, thresholds=limits)
        (ROOT / "src/answerkey/match/smart.json").write_bytes(msgspec.json.encode(trees))
        _write_gzip(ROOT / "src/answerkey/match/context.json.gz", shipped.context)
        _write_gzip(STORED_FOLDS, models)


if __name__ == "__main__":
    main()
