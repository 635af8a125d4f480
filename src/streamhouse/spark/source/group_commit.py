"""Progress of a query as committed offsets of a consumer group, so that lag tools see it."""

from __future__ import annotations

import asyncio
import logging

import uvloop

from streamhouse.client.address import parse_bootstrap
from streamhouse.client.cluster import Cluster
from streamhouse.client.groups_admin import GroupPartition, GroupsAdmin
from streamhouse.model.errors import Fenced, NotFound, Unavailable
from streamhouse.spark.source.positions import Offsets

logger = logging.getLogger(__name__)


class GroupCommitter:
    """Nothing depends on what is committed here: a query goes on from its checkpoint. So a coordinator that is away or
    a topic that is gone does not stop it; but a group with members is somebody else's, and an error."""

    def __init__(self, group_id: str, kafka_addresses: list[str]) -> None:
        self._group_id = group_id
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._cluster = Cluster(parse_bootstrap(",".join(kafka_addresses)))
        self._committed: Offsets = {}

    def commit(self, offsets: Offsets) -> None:
        """Costs nothing if these are committed already."""
        if offsets == self._committed:
            return
        named = {GroupPartition(topic, partition): offset for (topic, partition), offset in offsets.items()}
        try:
            self._runner.run(GroupsAdmin(self._cluster).commit_offsets(self._group_id, named))
        except (Unavailable, Fenced, NotFound) as problem:
            logger.warning("the progress of group %r was not committed: %s", self._group_id, problem)
        else:
            self._committed = dict(offsets)

    def close(self) -> None:
        self._runner.run(self._cluster.close())
        self._runner.close()
