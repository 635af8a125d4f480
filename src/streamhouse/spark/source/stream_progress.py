"""A streaming query on its driver: what there is, how much of it a micro-batch takes, and what has been done."""

from __future__ import annotations

from streamhouse.client.planning import PlanningClient
from streamhouse.core.admission import share
from streamhouse.model.errors import NotFound
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.connections import first_client
from streamhouse.spark.source.byte_limit import ends_within_bytes
from streamhouse.spark.source.catalog import Catalog
from streamhouse.spark.source.data_loss import DataLoss
from streamhouse.spark.source.group_commit import GroupCommitter
from streamhouse.spark.source.options import SourceOptions
from streamhouse.spark.source.planner import ScanPlanner, WantedRange
from streamhouse.spark.source.positions import Offsets, StreamPoint, TopicPartition
from streamhouse.spark.source.retention_pin import RetentionPin
from streamhouse.spark.source.task import ScanTask
from streamhouse.wire.http.planning import LATEST

# An idle query is asked many times a second; new topics need not be seen sooner than this.
_LISTING_MS = 1_000


class StreamProgress:
    """A partition that a query has not seen before is read from its first offset on, whenever it appears; so is one of
    a topic that was deleted and made again, once that was reported as a loss of data."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._client = first_client(options.connection.endpoint)
        self._catalog = Catalog(self._client, options.subscription)
        self._planner = ScanPlanner(self._client, options)
        self._data_loss = DataLoss(is_fatal=options.fail_on_data_loss)
        self._clock = SystemClock()
        self._partitions: list[TopicPartition] = []
        self._listed_at_ms: int | None = None
        self._target: StreamPoint | None = None
        self.latest_seen: StreamPoint | None = None
        self._group = self._new_group()
        self._pin = (
            None
            if options.pin_ms is None
            else RetentionPin(PlanningClient(options.connection.endpoint), options.pin_ms)
        )

    def initial(self) -> StreamPoint:
        """Where a query without a checkpoint begins."""
        assert self._options.start is not None, "for_stream sets it"
        partitions = self._catalog.partitions(must_exist=True)
        start, target = self._options.start, self._target.offsets if self._target is not None else {}
        offsets = self._catalog.resolve(partitions, start, no_match_is_latest=self._options.latest_if_no_match)
        # Where the query stops may have been found out before. What was the latest then is where it starts too.
        return self._point(
            {
                each: min(offset, target.get(each, offset)) if start.by_time or start.of(each) == LATEST else offset
                for each, offset in offsets.items()
            }
        )

    def stop_at_what_is_there(self) -> None:
        """From now on the query behaves as if nothing were added."""
        self._target = self._point(self._catalog.latest(self._existing()))

    def next_end(self, start: StreamPoint, *, is_limited: bool) -> StreamPoint:
        """Where the micro-batch from `start` on ends: `start` itself if there is nothing new."""
        ends, topic_ids = self._latest()
        # Spark asks for the next micro-batch only when the one before is done. It says so itself, in `commit`, only
        # after the next has begun, which on an idle topic is never.
        self.done(start)
        again = start.made_again(topic_ids)
        seen = {each: offset for each, offset in start.offsets.items() if each.topic not in again}
        begins = seen | self._catalog.earliest([each for each in ends if each not in seen])
        if is_limited:
            ends = self._limited(begins, ends)
        # A partition of which nothing is taken yet is left unseen, so that its first offset is not skipped. One of a
        # topic that was made again is told apart from it by the topic's id.
        taken = {each: end for each, end in ends.items() if each in start.offsets or end > begins[each]}
        return StreamPoint(taken, {each.topic: topic_ids[each.topic] for each in taken})

    def tasks(self, start: StreamPoint, end: StreamPoint) -> list[ScanTask]:
        if self._pin is not None:
            self._pin.hold(self._still_there(start))
        gone = sorted(str(each) for each in start.offsets if each not in end.offsets)
        if gone:
            self._data_loss.report(f"{', '.join(gone)} cannot be read on: deleted, or no longer part of the query")
        for topic in sorted(start.made_again(end.topic_ids)):
            self._data_loss.report(
                f"topic {topic} was deleted and made again: what was not read of the old one is gone"
            )
        try:
            return self._planner.tasks(self._wanted(start, end))
        except NotFound as problem:
            self._data_loss.report(f"not all of a micro-batch is there any more: {problem.message}")
            there, again = self._existing(), end.made_again(self._catalog.topic_ids)
            left = {each: end.offsets[each] for each in end.offsets if each in there and each.topic not in again}
            return self._planner.tasks(self._wanted(start, end._replace(offsets=left)))

    def done(self, end: StreamPoint) -> None:
        """All before these offsets is processed and will not be asked for again."""
        offsets = self._still_there(end)
        if self._pin is not None:
            self._pin.hold(offsets)
        if self._group is not None:
            self._group.commit(offsets)

    def close(self) -> None:
        self._client.close()
        if self._group is not None:
            self._group.close()
        if self._pin is not None:
            self._pin.stop()

    def _new_group(self) -> GroupCommitter | None:
        group_id = self._options.commit_group
        return GroupCommitter(group_id, self._client.cluster().kafka) if group_id else None

    def _point(self, offsets: Offsets) -> StreamPoint:
        """In the topics as they were last listed."""
        return StreamPoint(offsets, {each.topic: self._catalog.topic_ids[each.topic] for each in offsets})

    def _still_there(self, point: StreamPoint) -> Offsets:
        """Without topics that others have taken the names of: offsets of the old one mean nothing to those."""
        again = point.made_again(self._catalog.topic_ids)
        return {each: offset for each, offset in point.offsets.items() if each.topic not in again}

    def _existing(self) -> list[TopicPartition]:
        self._partitions = self._catalog.partitions(must_exist=False)
        self._listed_at_ms = self._clock.monotonic_ms()
        return self._partitions

    def _latest(self) -> StreamPoint:
        """The ends of all partitions, or the target where the query is to stop there."""
        if self._target is not None:
            return self._target
        now_ms = self._clock.monotonic_ms()
        if self._listed_at_ms is None or now_ms - self._listed_at_ms >= _LISTING_MS:
            self._existing()
        try:
            latest = self._catalog.latest(self._partitions)
        except NotFound:
            latest = self._catalog.latest(self._existing())
        self.latest_seen = self._point(latest)
        return self.latest_seen

    def _limited(self, begins: Offsets, ends: Offsets) -> Offsets:
        if self._options.max_offsets_per_trigger is not None:
            backlogs = {each: end - begins[each] for each, end in ends.items()}
            shares = share(backlogs, self._options.max_offsets_per_trigger)
            ends = {each: end if backlogs[each] < 0 else begins[each] + shares[each] for each, end in ends.items()}
        if self._options.max_bytes_per_trigger is not None:
            ends = ends_within_bytes(self._client, begins, ends, self._options.max_bytes_per_trigger)
        return ends

    def _wanted(self, start: StreamPoint, end: StreamPoint) -> list[WantedRange]:
        wanted = []
        again = start.made_again(end.topic_ids)
        for each, until in end.offsets.items():
            since = start.offsets.get(each, 0)
            is_new = each.topic in again
            if until < since and not is_new:
                # All that a checkpoint without ids tells.
                self._data_loss.report(
                    f"{each} was read up to offset {since} and now ends at {until}: it was deleted and made again"
                )
                is_new = True
            wanted.append(
                WantedRange(
                    partition=each,
                    start=0 if is_new else since,
                    end=until,
                    topic_id=end.topic_ids.get(each.topic),
                    from_earliest=is_new,
                )
            )
        return wanted
