"""Waiting for asynchronous work from synchronous code."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from answerkey.runs.context import wait_for


@pytest.fixture(autouse=True)
def _pace() -> Iterator[None]:
    """Python's own pace, whatever the tests' is."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


async def _threshold() -> int:
    return gc.get_threshold()[0]


def test_garbage_is_collected_less_often_and_then_as_before() -> None:
    assert wait_for(_threshold()) > 700
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 50_000])
def test_whoever_set_a_calmer_pace_or_none_keeps_it(chosen: int) -> None:
    gc.set_threshold(chosen, 10, 10)
    assert wait_for(_threshold()) == chosen
    assert gc.get_threshold()[0] == chosen


def test_within_a_running_loop_the_work_has_a_thread_and_leaves_the_collector_alone() -> None:
    async def inside() -> int:
        return wait_for(_threshold())

    assert asyncio.run(inside()) == 700


def test_a_failure_comes_out_as_it_is() -> None:
    async def fails() -> None:
        raise LookupError("gone")

    async def inside() -> None:
        wait_for(fails())

    with pytest.raises(LookupError, match="gone"):
        wait_for(fails())
    with pytest.raises(LookupError, match="gone"):
        asyncio.run(inside())
