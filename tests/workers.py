"""How the tests are shared out to the workers of one run.

A file stays together, for its tests share nodes. The folders below stay together too: their tests share what takes long
to start, a Spark session, a cluster of agents, a browser. They come first, so that no worker ends with one of them
alone, and one worker runs all of Spark, which would want both cores twice over otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

_TOGETHER = ("tests/spark/", "tests/faults/cluster/", "tests/console/")
_LONG = (
    "tests/pages/",
    "tests/long/",
    "tests/e2e/",
    "tests/faults/",
    "tests/compat/",
    "tests/behaviour/",
    "tests/property/",
)


class Shares(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return next(_folders(nodeid, _TOGETHER), nodeid.partition("::")[0])


def longest_first(items: list[pytest.Item]) -> None:
    """Within a folder all stays as it was."""
    order = {folder: place for place, folder in enumerate((*_TOGETHER, *_LONG))}
    items.sort(key=lambda item: next((order[folder] for folder in _folders(item.nodeid, order)), len(order)))


def _folders(nodeid: str, known: tuple[str, ...] | dict[str, int]) -> Iterator[str]:
    return (folder for folder in known if nodeid.startswith(folder))
