"""Labelled sentences put to whatever gives groundedness, a judge or an entailment model, and its answers counted."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from answerkey.errors import InputError, UsageError
from answerkey.evidence.entailment import load_cross_encoder, verify_sentences
from answerkey.evidence.records import Words, content_words
from answerkey.judge.session import ClaimCheck, Judge, open_judging
from answerkey.model.judgement import SentenceCalibration, calibrate_sentences
from answerkey.model.scorecard import Trial
from answerkey.runs.log_rows import RowReader
from answerkey.transcripts.row_files import read_rows

# (sentence, whether it is supported)
Labels = list[tuple[str, bool]]


def _labelled(paths: Iterable[Path]) -> Iterator[tuple[Trial, Labels]]:
    """Recorded replies with their evidence and `sentences`: {text, supported}; what claims nothing (null) is left out."""
    for path in paths:
        reader = RowReader(None)
        for place, (line, row) in enumerate(read_rows(path)):
            try:
                trial = reader.trial(row, place)
            except ValueError as error:
                raise InputError(str(error), path=path, line=line) from None
            given: Any = row.get("sentences")
            if not isinstance(given, list) or not all(
                isinstance(one, dict) and "text" in one for one in given
            ):
                raise InputError("has no 'sentences': [{text, supported}]", path=path, line=line)
            yield (
                trial,
                [
                    (str(one["text"]), one["supported"])
                    for one in given
                    if isinstance(one.get("supported"), bool)
                ],
            )


def calibrate_model(paths: Iterable[Path], model: str, folder: Path = Path()) -> SentenceCalibration:
    """How well an entailment model does; the threshold that tells best is taken."""
    encoder = load_cross_encoder(model, folder)
    verdicts: list[tuple[bool, float | None]] = []
    for trial, labels in _labelled(paths):
        sentences = [text for text, _ in labels]
        found = verify_sentences(encoder, trial.question, trial.replies[-1], sentences=sentences)
        held = {text: probability for text, probability, _ in found}
        verdicts += [(supported, held.get(text)) for text, supported in labels]
    return calibrate_sentences(model, verdicts)


async def calibrate_judge(paths: Iterable[Path], judge: Judge) -> SentenceCalibration:
    """How well a judge does who lists a reply's claims: each belongs to the sentence with most of its words."""
    if not judge.settings.claims:
        raise UsageError("the judge checks no claims; set [judge] claims = true")
    rows = list(_labelled(paths))
    async with open_judging(judge, run_id="sentences", canaries=False) as session:
        check = ClaimCheck(session.panel)
        scored = await asyncio.gather(*(check.scores(row.question, row.replies[-1]) for row, _ in rows))
    verdicts: list[tuple[bool, float | None]] = []
    for (_, labels), scores in zip(rows, scored, strict=True):
        claims = scores[0].details["claims"] if scores else []
        verdicts += _by_sentence(labels, claims)
    return calibrate_sentences(judge.settings.models[0], verdicts, threshold=0.5)


def _by_sentence(labels: Labels, claims: Sequence[Mapping[str, Any]]) -> Iterator[tuple[bool, float | None]]:
    """A sentence holds if every claim that belongs to it does; one without a claim has no verdict."""
    words = [_content(text) for text, _ in labels]
    held: dict[int, bool] = {}
    for claim in claims if labels else ():
        said = _content(claim["claim"])
        shared = [len(said & one) / (len(one) or 1) for one in words]
        nearest = max(range(len(labels)), key=shared.__getitem__)
        if shared[nearest] > 0:
            held[nearest] = held.get(nearest, True) and claim["supported"]
    for index, (_, supported) in enumerate(labels):
        yield supported, float(held[index]) if index in held else None


def _content(text: str) -> set[str]:
    return content_words(Words(text).keys)
