"""The blocks of a log scored by tasks of a Ray cluster; Ray itself repeats what a lost worker or node was doing."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from answerkey.engine.ray_engine import connect, error_line
from answerkey.errors import AnswerkeyError, UsageError
from answerkey.runs.log_files import Block
from answerkey.runs.log_rows import BlockScorer, LogPlan
from answerkey.runs.log_table import BlockPart
from answerkey.scorers.grader import grader_by

# Blocks in flight per processor: one that is scored, and one that has arrived.
_AHEAD = 2
# A worker process of Ray lives longer than a log.
_scorers: dict[str, BlockScorer] = {}


class RayPool:
    """Scores blocks on a cluster."""

    def __init__(self, plan: LogPlan, address: str | None = None) -> None:
        if plan.recipe is None:
            raise UsageError(
                "the engine ray cannot score with scorers given as Python objects; name them in the configuration"
            )
        self._ray = connect(address)
        self._plan = self._ray.put(plan)
        # Workers cache their scorer under this name.
        self._name = self._plan.hex()
        self._ahead = _AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def score(self, blocks: Iterable[Block]) -> Iterator[BlockPart]:
        """The parts as they are done; a node that has the log's files at the same path reads the lines there."""
        task = self._ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(_score)
        waiting = iter(blocks)
        in_flight: dict[Any, Block] = {}
        try:
            while True:
                while len(in_flight) < self._ahead and (block := next(waiting, None)) is not None:
                    in_flight[task.remote(self._name, self._plan, block.sent())] = block
                if not in_flight:
                    return
                [done], _ = self._ray.wait(list(in_flight), num_returns=1)
                block, part = in_flight.pop(done), self._ray.get(done)
                if part is None:
                    whole = msgspec.structs.replace(block, part=None)
                    in_flight[task.remote(self._name, self._plan, whole)] = block
                else:
                    yield part
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            raise (
                cause if isinstance(cause, AnswerkeyError) else AnswerkeyError(error_line(error))
            ) from None
        finally:
            for unfinished in in_flight:
                self._ray.cancel(unfinished, force=False)

    def close(self) -> None:
        """Leave the cluster, which continues without us."""
        self._ray.shutdown()


def _score(name: str, plan: LogPlan, block: Block) -> BlockPart | None:
    """What comes of a block; None: its lines cannot be read here."""
    arrived = block.arrived()
    if arrived is None:
        return None
    scorer = _scorers.get(name)
    if scorer is None:
        if plan.recipe is None:
            raise TypeError("a plan without a recipe")
        _scorers.clear()
        scorer = _scorers[name] = BlockScorer(plan, grader_by(plan.recipe))
    return scorer.score(arrived)
