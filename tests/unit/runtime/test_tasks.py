"""Tasks with an owner: waited for, cancelled together, failures heard."""

from __future__ import annotations

import asyncio
import logging

import pytest

from log_parts.waiting import until
from streamhouse.runtime.tasks import TaskGroup


async def test_wait_also_waits_for_tasks_that_tasks_started() -> None:
    group = TaskGroup("test")
    done: list[str] = []

    async def child() -> None:
        await asyncio.sleep(0)
        done.append("child")

    async def parent() -> None:
        group.start(child(), "child")
        done.append("parent")

    group.start(parent(), "parent")
    await group.wait()

    assert done == ["parent", "child"]
    assert len(group) == 0


async def test_cancel_ends_all_and_lets_them_clean_up() -> None:
    group = TaskGroup("test")
    cleaned: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(number)

    for number in range(3):
        group.start(work(number), str(number))
    await asyncio.sleep(0)
    await group.cancel()

    assert sorted(cleaned) == [0, 1, 2]
    assert len(group) == 0


async def test_a_failure_is_logged_and_reported_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[BaseException] = []
    group = TaskGroup("test", heard.append)
    release = asyncio.Event()
    problem = RuntimeError("broken")

    async def fails() -> None:
        raise problem

    other = group.start(release.wait(), "other")
    group.start(fails(), "fails")
    with caplog.at_level(logging.ERROR):
        await until(lambda: heard, "the failure is heard")

    assert heard == [problem]
    assert "test:fails" in caplog.text
    assert not other.done()
    release.set()
    await group.wait()


async def test_a_cancelled_task_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[BaseException] = []
    group = TaskGroup("test", heard.append)
    group.start(asyncio.Event().wait(), "waits")

    await group.cancel()

    assert heard == []
    assert caplog.records == []


async def test_a_group_without_tasks_is_waited_for_and_cancelled_at_once() -> None:
    group = TaskGroup("test")

    await group.wait()
    await group.cancel()


async def test_what_has_to_go_on_begins_again_after_a_failure_and_ends_with_its_owner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = TaskGroup("test")
    begun: list[int] = []

    async def work() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            raise RuntimeError("unexpected")
        await asyncio.Event().wait()

    group.keep(work, "work")
    await until(lambda: len(begun) == 3, "it has begun three times")
    await group.cancel()

    assert len(group) == 0
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]
