"""Consumer groups over REST: list, describe with lag, reset, delete. A group's coordinator may be any node, so they are
reached as any client reaches them, through this node's own Kafka port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.group_progress import Progress, measure, reset_group
from streamhouse.client.groups_admin import GroupDescription, GroupPartition
from streamhouse.cluster.state import leader_of, waits_for
from streamhouse.core.groups.offset_reset import ResetKind, ResetTarget, total_lag, waiting
from streamhouse.metadata.cluster import Placement
from streamhouse.model.errors import InvalidInput, InvalidName, NotFound, NotLeader, Unavailable
from streamhouse.model.names import TopicPartition, check_group_id
from streamhouse.model.topic import Topic
from streamhouse.runtime.watched import Silence
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.group_coordinators import GroupCoordinators
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.partition_ends import PartitionEnds
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.watch import ClusterWatch, Seen
from streamhouse.wire.http.rest import groups as api
from streamhouse.wire.http.rest.paging import PageQuery

TAG = "groups"
_ASK_LEADERS_MS = 10_000
"""For as long as a partition without a leader keeps a caller waiting."""

_DESCRIPTION_EXAMPLE = api.GroupDescription(
    group_id="billing",
    state="Stable",
    type="consumer",
    assignor="uniform",
    lag=42,
    members=[
        api.MemberDescription(
            member_id="3a1c8f0e-7f43-4d6c-9b6f-0f6f3f1d2c4b",
            instance_id=None,
            client_id="billing-1",
            host="127.0.0.1",
            partitions=[api.PartitionRef(topic="orders", partition=0)],
        )
    ],
    partitions=[
        api.PartitionProgress(
            topic="orders",
            partition=0,
            committed_offset=1000,
            log_start_offset=0,
            end_offset=1042,
            lag=42,
            member_id="3a1c8f0e-7f43-4d6c-9b6f-0f6f3f1d2c4b",
        )
    ],
)


def add_groups(
    rest: Rest,
    context: DoorContext,
    cluster: Cluster,
    coordinators: GroupCoordinators,
    watch: ClusterWatch,
    known: KnownEnds,
) -> None:
    groups = _GroupRoutes(context, cluster, coordinators, watch, known)
    one = f"{API}/groups/{{group}}"
    rest.route(
        "GET",
        f"{API}/groups",
        groups.all,
        summary="List the consumer groups",
        tag=TAG,
        query=PageQuery,
        answer=api.GroupsAnswer,
        answer_example=api.GroupsAnswer(
            groups=[api.GroupSummary(group_id="billing", state="Stable", type="consumer", coordinator="agent-1")]
        ),
    )
    rest.route(
        "GET",
        one,
        groups.describe,
        summary="Describe a group: its members, and how far it is",
        tag=TAG,
        answer=api.GroupDescription,
        answer_example=_DESCRIPTION_EXAMPLE,
        errors=(InvalidName, NotFound),
    )
    rest.route(
        "POST",
        f"{one}/reset",
        groups.reset,
        summary="Move a group without members to other offsets, or to a time",
        tag=TAG,
        body=api.ResetRequest,
        body_example=api.ResetRequest(to="time", timestamp_ms=1_767_225_600_000, topics=["orders"], dry_run=True),
        answer=api.ResetAnswer,
        answer_example=api.ResetAnswer(
            group_id="billing",
            dry_run=True,
            partitions=[api.OffsetMove(topic="orders", partition=0, old_offset=1000, new_offset=300)],
        ),
        errors=(InvalidInput, NotFound),
    )
    rest.route(
        "DELETE",
        one,
        groups.delete,
        summary="Delete a group without members, and its offsets",
        tag=TAG,
        errors=(InvalidInput, NotFound),
    )


class _GroupRoutes:
    def __init__(
        self,
        context: DoorContext,
        cluster: Cluster,
        coordinators: GroupCoordinators,
        watch: ClusterWatch,
        known: KnownEnds,
    ) -> None:
        self._records = context.records
        self._metadata = context.metadata
        self._coordinators = coordinators
        self._groups = coordinators.groups
        self._admin = Admin(cluster, timeout_ms=_ASK_LEADERS_MS)
        self._watch = watch
        self._known = known
        self._ends = PartitionEnds(context.records, known)

    async def all(self, call: Call) -> api.GroupsAnswer:
        asked: PageQuery = call.query
        listed = await self._coordinators.all()
        groups, following = page(
            (group for group in listed.groups if group.group_id > asked.after),
            asked.limit,
            lambda group: group.group_id,
        )
        return api.GroupsAnswer(
            groups=[
                api.GroupSummary(
                    group_id=group.group_id, state=group.state, type=group.kind, coordinator=group.coordinator
                )
                for group in groups
            ],
            next=following,
            metadata_silent_since_ms=_since_ms(listed.metadata_silence),
        )

    async def describe(self, call: Call) -> api.GroupDescription:
        group_id = group_of(call)
        description = await self._coordinators.describe(group_id)
        committed = await self._coordinators.committed(group_id)
        seen = await self._coordinators.seen()
        starts: dict[GroupPartition, int] = {}

        async def ends_of(name: str, numbers: Sequence[int]) -> Mapping[int, int]:
            """Also of leaders that are away, as far as they were known."""
            topic = await self._records.topic(name)
            placements = await self._placed(topic, numbers, seen)
            for each in placements:
                starts[GroupPartition(name, each.partition.partition)] = each.log_start_offset
            ends = await self._ends.of(topic, placements)
            return {
                each.partition.partition: end
                for each, end in zip(placements, ends, strict=True)
                if self._known.unheard(each) is None
            }

        progress = await measure(description, committed, ends_of)
        return _description(description, progress, starts, None if seen is None else seen.metadata_silence)

    async def _placed(self, topic: Topic, numbers: Sequence[int], seen: Seen | None) -> list[Placement]:
        wanted = {TopicPartition(topic.topic_id, number) for number in numbers}
        placements = [each for each in ([] if seen is None else seen.state.placements) if each.partition in wanted]
        if len(placements) < len(wanted) or any(leader_of(each) is None for each in placements):
            # Perhaps made, or led, a moment ago.
            placements = [each for each in await self._metadata.list_placements() if each.partition in wanted]
        return placements

    async def reset(self, call: Call) -> api.ResetAnswer:
        asked: api.ResetRequest = call.body
        group_id, target = group_of(call), _target(asked)
        await self._coordinators.committed(group_id)  # so that it is said who is away
        try:
            moves = await reset_group(self._groups, self._admin, group_id, asked.topics, target, dry_run=asked.dry_run)
        except (Unavailable, NotLeader) as problem:
            raise await self._not_moved(group_id, problem) from None
        return api.ResetAnswer(
            group_id=group_id,
            dry_run=asked.dry_run,
            partitions=[
                api.OffsetMove(
                    topic=move.partition.topic,
                    partition=move.partition.partition,
                    old_offset=move.old_offset,
                    new_offset=move.new_offset,
                )
                for move in moves
            ],
        )

    async def delete(self, call: Call) -> None:
        group_id = group_of(call)
        await self._coordinators.committed(group_id)  # so that it is said who is away
        await self._groups.delete_groups([group_id])

    async def _not_moved(self, group_id: str, problem: Unavailable | NotLeader) -> Unavailable | NotLeader:
        seen = await self._watch.seen()
        holders = {leader_of(each) or waits_for(each) for each in seen.state.placements}
        away = sorted(holders & seen.work.silent.keys(), key=str)
        if not away:
            return problem
        return Unavailable(
            f"group {group_id!r} cannot be moved now: where a partition begins and ends only its leader can say, and "
            f"these agents do not answer: {', '.join(map(str, away))}",
            hint="look whether they run and can be reached; or move the group in topics that others lead",
        )


def group_of(call: Call) -> str:
    return check_group_id(call.path["group"])


def partition_refs(partitions: tuple[GroupPartition, ...]) -> list[api.PartitionRef]:
    return [api.PartitionRef(topic=topic, partition=partition) for topic, partition in partitions]


def _target(asked: api.ResetRequest) -> ResetTarget:
    values = {ResetKind.OFFSET: asked.offset, ResetKind.TIME: asked.timestamp_ms, ResetKind.SHIFT: asked.shift_by}
    kind = ResetKind(asked.to)
    if any(value is not None for other, value in values.items() if other is not kind):
        raise InvalidInput(f"to {asked.to}, but another place is given as well", hint="give one place to go to")
    if kind not in values:
        return ResetTarget(kind)
    value = values[kind]
    if value is None:
        raise InvalidInput(f"to which {asked.to}?", hint="give offset, timestamp_ms or shift_by, as `to` says")
    return ResetTarget(kind, value)


def _since_ms(silence: Silence | None) -> int | None:
    return None if silence is None else silence.since_ms


def _description(
    group: GroupDescription,
    progress: Sequence[Progress],
    starts: Mapping[GroupPartition, int],
    metadata_silence: Silence | None,
) -> api.GroupDescription:
    """`starts`: where logs begin, of the topics that there are."""
    return api.GroupDescription(
        group_id=group.group_id,
        state=group.state,
        type=group.kind,
        assignor=group.assignor,
        lag=total_lag(
            waiting(each.lag, starts[each.partition], each.end_offset) for each in progress if each.partition in starts
        ),
        members=[
            api.MemberDescription(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.host,
                partitions=partition_refs(member.partitions),
            )
            for member in group.members
        ],
        partitions=[
            api.PartitionProgress(
                topic=each.partition.topic,
                partition=each.partition.partition,
                committed_offset=each.committed_offset,
                log_start_offset=starts.get(each.partition),
                end_offset=each.end_offset,
                lag=each.lag,
                member_id=None if each.member is None else each.member.member_id,
            )
            for each in progress
        ],
        metadata_silent_since_ms=_since_ms(metadata_silence),
    )
