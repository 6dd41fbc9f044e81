"""A judge of known confusion behind a real HTTP endpoint on loopback: what calibration makes of its verdicts, over many samples.

All replies of two versions are put to the judge once, by the code that judges runs, and each trial draws a run of either
version and its labels from them, with replacement; so the truth is known, and the verdicts are as they came over the wire.
"""

import asyncio
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from aiohttp import web
from judge_simulations import JUDGES
from simulated_shares import format_share

from answerkey.judge.calibration import JudgedReplies, Labels, calibrate_judge, change_between
from answerkey.judge.session import Judge, open_judging
from answerkey.model.options import JudgeSettings
from answerkey.model.question import Question
from answerkey.model.reply import Reply

__all__ = ["loopback_sections"]

_QUESTIONS = 1000
_RIGHT = {"base": 0.7, "candidate": 0.8}
_RUBRIC = 'scale = "pass/fail"\n[[criteria]]\nname = "right"\nweight = 1\nquestion = "Is it right?"\n'


class _Version(NamedTuple):
    """Each reply of a version: whether it is right, and whether the judge passed it."""

    right: list[bool]
    passes: list[bool]

    def drawn(self, places: Sequence[int], labelled: Sequence[int]) -> tuple[JudgedReplies, Labels]:
        """A run of the replies at these places, of which some are labelled."""
        keys = [(f"q{number}", 1) for number in range(len(places))]
        values: dict[tuple[str, int], float | None] = {
            key: float(self.passes[place]) for key, place in zip(keys, places, strict=True)
        }
        right = {keys[number]: self.right[places[number]] for number in labelled}
        labels = Labels(right=right, scores={key: float(found) for key, found in right.items()})
        return JudgedReplies(values, {key[0]: key[0] for key in keys}, 0.7), labels


def loopback_sections(trials: int, _sizes: Sequence[int], source: np.random.Generator) -> None:
    """A table of the coverage for each judge."""
    print("\n### A judge of known confusion on loopback: coverage of the corrected numbers\n")
    print("| judge | replies | labelled | corrected rate | corrected mean | corrected difference |")
    print("|---|---|---|---|---|---|")
    for name, confusion in JUDGES.items():
        versions = asyncio.run(_judged_pool(confusion, seed=int(source.integers(2**31))))
        for replies, labelled in ((200, 50), (500, 100)):
            shares = _coverage(versions, replies, labelled, trials, source)
            print(
                f"| {name} | {replies} | {labelled} | "
                + " | ".join(format_share(share, trials) for share in shares)
                + " |"
            )


def _coverage(
    versions: dict[str, _Version], replies: int, labelled: int, trials: int, source: np.random.Generator
) -> list[float]:
    base, candidate = versions["base"], versions["candidate"]
    rate = sum(candidate.right) / len(candidate.right)
    change = rate - sum(base.right) / len(base.right)
    held = np.zeros(3)
    for _ in range(trials):
        # Both versions are asked the same questions, and other replies of them are labelled.
        places = source.integers(len(base.right), size=replies).tolist()
        first, second = (
            version.drawn(places, source.permutation(replies)[:labelled].tolist())
            for version in (base, candidate)
        )
        found = calibrate_judge(*second)
        moved = change_between(first[0], second[0], (first[1], second[1])).rate
        for place, (corrected, truth) in enumerate(
            ((found.prediction_powered, rate), (found.corrected_mean, rate), (moved, change))
        ):
            assert corrected is not None
            held[place] += corrected.interval.low <= truth <= corrected.interval.high
    return (held / trials).tolist()


async def _judged_pool(confusion: tuple[float, float], *, seed: int) -> dict[str, _Version]:
    """Every reply of both versions with its verdict, asked for over HTTP."""
    chance = random.Random(seed)

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        # The reply itself says what it is; the judge errs at its rates.
        right = "It is right." in body["messages"][1]["content"]
        passes = chance.random() < (confusion[0] if right else 1 - confusion[1])
        verdict = json.dumps({"right": {"reason": "So it seems.", "score": int(passes)}})
        return web.json_response({"choices": [{"message": {"content": verdict}, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rubric.toml").write_text(_RUBRIC)
        settings = JudgeSettings(
            model="confused",
            base_url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1",
            api_key_env="",
            rubric="rubric.toml",
            canaries=False,
            claims=False,
        )
        judge = Judge(settings, folder=Path(folder))
        async with open_judging(judge, run_id="pool") as session:

            async def passed(version: str, number: int, right: bool) -> bool:
                reply = Reply(text=f"{version} {number}: It is {'right' if right else 'wrong'}.")
                scores = (await session.judge(Question(id=f"q{number}", question="Is it?"), (reply,)))[0]
                return scores[0].value == 1.0

            found = {}
            luck = [chance.random() for _ in range(_QUESTIONS)]
            for version, share in _RIGHT.items():
                # On half of the questions the versions share their luck.
                right = [(one if number % 2 else chance.random()) < share for number, one in enumerate(luck)]
                asked = (passed(version, number, one) for number, one in enumerate(right))
                found[version] = _Version(right, await asyncio.gather(*asked))
    await runner.cleanup()
    return found
