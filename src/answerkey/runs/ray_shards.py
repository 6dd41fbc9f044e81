"""The blocks of a log scored by the tasks of a Ray cluster; Ray itself repeats what a lost worker or node was doing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from answerkey.engine.ray_engine import connect, error_line
from answerkey.errors import AnswerkeyError, UsageError
from answerkey.model.question_lines import AddedUp, add_up
from answerkey.runs.score_journal import Places, read_batches
from answerkey.runs.shard import Block, ShardPlan, ShardScorer
from answerkey.runs.shard_tally import ShardPart

# So many blocks a processor are under way: one that is scored, and one that has arrived.
_AHEAD = 2
# Bytes of records after which no more are sent with them.
_SENT_TOGETHER = 4 * 1024 * 1024
# A worker process of Ray's lives longer than a log.
_scorers: dict[str, ShardScorer] = {}


class RayShards:
    """A cluster."""

    def __init__(self, plan: ShardPlan, address: str | None = None) -> None:
        if plan.recipe is None:
            raise UsageError(
                "the engine ray cannot score with scorers that are given as Python objects; name them in the configuration"
            )
        self._ray = connect(address)
        self._pass_mark, self._given = plan.pass_mark, plan.given
        self._plan = self._ray.put(plan)
        # By what workers know it, so that each makes its scorer once.
        self._name = self._plan.hex()
        self._ahead = _AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def score(self, blocks: Iterable[Block]) -> Iterator[ShardPart]:
        """As they are done; a node that sees the log's files at the same place reads its lines there."""
        task = self._task(_score)
        return self._map(lambda block: task.remote(self._name, self._plan, block.sent()), blocks)

    def add_up(self, journal: str, partitions: Sequence[Places]) -> Iterator[AddedUp]:
        """Some at a time, as they are done; the journal is a file of this machine, so its records are sent."""
        task = self._task(_add_up)

        def submit(together: list[Places]) -> Any:
            records = [list(read_batches(journal, places)) for places in together]
            return task.remote(records, self._pass_mark, self._given)

        return self._map(submit, _by_size(partitions))

    def close(self) -> None:
        """The cluster goes on without us."""
        self._ray.shutdown()

    def _task(self, function: Callable[..., object]) -> Any:
        return self._ray.remote(num_cpus=1, max_retries=-1, scheduling_strategy="SPREAD")(function)

    def _map(self, submit: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        waiting = iter(items)
        under_way: dict[Any, Any] = {}
        try:
            while True:
                while len(under_way) < self._ahead and (item := next(waiting, None)) is not None:
                    under_way[submit(item)] = item
                if not under_way:
                    return
                [done], _ = self._ray.wait(list(under_way), num_returns=1)
                item, found = under_way.pop(done), self._ray.get(done)
                if found is None:
                    under_way[submit(msgspec.structs.replace(item, part=None))] = item
                else:
                    yield found
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            raise (
                cause if isinstance(cause, AnswerkeyError) else AnswerkeyError(error_line(error))
            ) from None
        finally:
            for task in under_way:
                self._ray.cancel(task, force=False)


def _score(name: str, plan: ShardPlan, block: Block) -> ShardPart | None:
    """What comes of a block; None: its lines cannot be read here."""
    arrived = block.arrived()
    if arrived is None:
        return None
    scorer = _scorers.get(name)
    if scorer is None:
        _scorers.clear()
        scorer = _scorers[name] = ShardScorer(plan)
    return scorer.score(arrived)


def _by_size(partitions: Sequence[Places]) -> Iterator[list[Places]]:
    """Partitions together that are small: a task costs more than adding one of these up."""
    together, size = list[Places](), 0
    for places in partitions:
        together.append(places)
        size += sum(length for _, length in places)
        if size > _SENT_TOGETHER:
            yield together
            together, size = [], 0
    if together:
        yield together


def _add_up(partitions: list[list[bytes]], pass_mark: float, given: int) -> AddedUp:
    found = AddedUp(pass_mark)
    for batches in partitions:
        found.merge(add_up(batches, pass_mark, given))
    return found
