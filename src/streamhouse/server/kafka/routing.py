"""Which handler answers which API; ApiVersions tells clients exactly this table."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from streamhouse.broker.broker import Broker
from streamhouse.broker.measures import DoorMeasures
from streamhouse.format.kernel import scan_run
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch, MalformedRequest
from streamhouse.runtime.measures import stopwatch_s
from streamhouse.server.kafka.context import Context, Endpoint
from streamhouse.server.kafka.handlers import (
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    renew_delegation_token,
    share_group_describe,
    streams_group_describe,
    sync_group,
)
from streamhouse.wire.kafka.frame import RequestHeader, encode_response
from streamhouse.wire.kafka.items import MAX_ITEMS, count_items
from streamhouse.wire.kafka.messages.api_versions import ApiVersion
from streamhouse.wire.kafka.messages.fetch import FetchResponse
from streamhouse.wire.kafka.registry import Api

Handler = Callable[[Context, Any], Awaitable[Any]]
# What is larger is read in a thread, for it may consist of a great many small things.
_LARGE_REQUEST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Route:
    api: Api
    handler: Handler


def _routes(*handlers: tuple[Api, Handler]) -> Mapping[int, Route]:
    return MappingProxyType({api.key: Route(api, handler) for api, handler in handlers})


ROUTES = _routes(
    (fetch.API, fetch.handle),
    (list_offsets.API, list_offsets.handle),
    (metadata.API, metadata.handle),
    (offset_commit.API, offset_commit.handle),
    (offset_fetch.API, offset_fetch.handle),
    (find_coordinator.API, find_coordinator.handle),
    (join_group.API, join_group.handle),
    (heartbeat.API, heartbeat.handle),
    (leave_group.API, leave_group.handle),
    (sync_group.API, sync_group.handle),
    (describe_groups.API, describe_groups.handle),
    (list_groups.API, list_groups.handle),
    (delete_groups.API, delete_groups.handle),
    (offset_delete.API, offset_delete.handle),
    (consumer_group_heartbeat.API, consumer_group_heartbeat.handle),
    (consumer_group_describe.API, consumer_group_describe.handle),
    (create_topics.API, create_topics.handle),
    (delete_topics.API, delete_topics.handle),
    (delete_records.API, delete_records.handle),
    (init_producer_id.API, init_producer_id.handle),
    (offset_for_leader_epoch.API, offset_for_leader_epoch.handle),
    (describe_acls.API, describe_acls.handle),
    (create_acls.API, create_acls.handle),
    (delete_acls.API, delete_acls.handle),
    (describe_configs.API, describe_configs.handle),
    (alter_configs.API, alter_configs.handle),
    (describe_log_dirs.API, describe_log_dirs.handle),
    (create_partitions.API, create_partitions.handle),
    (incremental_alter_configs.API, incremental_alter_configs.handle),
    (describe_cluster.API, describe_cluster.handle),
    (describe_topic_partitions.API, describe_topic_partitions.handle),
    (elect_leaders.API, elect_leaders.handle),
    (alter_partition_reassignments.API, alter_partition_reassignments.handle),
    (list_partition_reassignments.API, list_partition_reassignments.handle),
    (describe_client_quotas.API, describe_client_quotas.handle),
    (describe_user_scram_credentials.API, describe_user_scram_credentials.handle),
    (describe_quorum.API, describe_quorum.handle),
    (describe_producers.API, describe_producers.handle),
    (describe_transactions.API, describe_transactions.handle),
    (list_transactions.API, list_transactions.handle),
    (list_config_resources.API, list_config_resources.handle),
    (alter_replica_log_dirs.API, alter_replica_log_dirs.handle),
    (create_delegation_token.API, create_delegation_token.handle),
    (renew_delegation_token.API, renew_delegation_token.handle),
    (expire_delegation_token.API, expire_delegation_token.handle),
    (describe_delegation_token.API, describe_delegation_token.handle),
    (share_group_describe.API, share_group_describe.handle),
    (streams_group_describe.API, streams_group_describe.handle),
    (describe_share_group_offsets.API, describe_share_group_offsets.handle),
    (alter_share_group_offsets.API, alter_share_group_offsets.handle),
    (delete_share_group_offsets.API, delete_share_group_offsets.handle),
)


def _advertised() -> list[ApiVersion]:
    """What ApiVersions says: every routed API, Produce and ApiVersions itself."""
    apis = [route.api for route in ROUTES.values()] + [produce.API, api_versions.API]
    return [
        ApiVersion(api_key=api.key, min_version=_advertised_min(api), max_version=api.max_version)
        for api in sorted(apis, key=lambda api: api.key)
    ]


def _advertised_min(api: Api) -> int:
    # librdkafka takes a broker without Produce v0 for one without compression; Kafka 4 tells it the same white lie.
    return 0 if api is produce.API else api.min_version


class Router:
    def __init__(
        self,
        broker: Broker,
        endpoint: Endpoint,
        largest_reply_bytes: Callable[[], int],
        measures: DoorMeasures,
        reading: Executor,
    ) -> None:
        """`reading`: where large requests are decoded."""
        self.broker = broker
        self.measures = measures
        self.requests: Counter[str] = Counter()
        """By the name of the API; produces are in the measures."""
        self._largest_reply_bytes = largest_reply_bytes
        self.endpoint = endpoint
        self._advertised = _advertised()
        self._reading = reading

    def answer_now(self, header: RequestHeader, buffer: memoryview, end: int, client_host: str) -> list[Buffer] | None:
        """The reply, if it can be given without waiting: a fetch from memory, the versions. Else None."""
        if header.api is fetch.API:
            if end - header.body_pos > _LARGE_REQUEST_BYTES:
                return None
            begun_s = stopwatch_s()
            request = fetch.decode_request(buffer, header.body_pos, end, header.api_version)
            response = fetch.answer_now(self._context(header, client_host), request)
            if response is None:
                return None
            self._note_fetched(response, begun_s)
            body = fetch.encode_response(response, header.api_version)
            return encode_response(header.correlation_id, fetch.API, header.api_version, body)
        if header.api_key == api_versions.API.key:
            return api_versions.answer(header, self._advertised)
        return None

    async def answer(self, header: RequestHeader, request: memoryview, client_host: str) -> list[Buffer]:
        if header.api_key == api_versions.API.key:
            return api_versions.answer(header, self._advertised)
        return await self.answer_read(header, await self.read(header, request), client_host)

    async def read(self, header: RequestHeader, request: memoryview) -> msgspec.Struct:
        """The message in a request; MalformedRequest if there is none that anybody here answers."""
        if header.api_key not in ROUTES or header.api is None:
            raise MalformedRequest(f"API {header.api_key} is not supported in version {header.api_version}")
        if len(request) > _LARGE_REQUEST_BYTES:
            return await asyncio.get_running_loop().run_in_executor(self._reading, _read_large, header, request)
        return header.api.decode_request(request, header.body_pos, len(request), header.api_version)

    async def answer_read(self, header: RequestHeader, message: msgspec.Struct, client_host: str) -> list[Buffer]:
        begun_s = stopwatch_s()
        route = ROUTES[header.api_key]
        response = await route.handler(self._context(header, client_host), message)
        if route.api is fetch.API:
            self._note_fetched(response, begun_s)
        else:
            self.requests[route.api.name] += 1
        body = route.api.encode_response(response, header.api_version)
        return encode_response(header.correlation_id, route.api, header.api_version, body)

    def _note_fetched(self, response: FetchResponse, begun_s: float) -> None:
        measures = self.measures
        partitions = [partition for topic in response.responses for partition in topic.partitions]
        parts = [part for each in partitions if isinstance(each.records, list) for part in each.records]
        measures.fetched_bytes += sum(map(len, parts))
        measures.fetched_records += _record_count(parts)
        measures.fetches_refused += bool(response.error_code) or any(partition.error_code for partition in partitions)
        measures.fetch_seconds.observe(stopwatch_s() - begun_s)

    def _context(self, header: RequestHeader, client_host: str) -> Context:
        return Context(self.broker, self.endpoint, header, self._largest_reply_bytes(), client_host)


def _read_large(header: RequestHeader, request: memoryview) -> msgspec.Struct:
    assert header.api is not None
    message = header.api.decode_request(request, header.body_pos, len(request), header.api_version)
    count = count_items(message)
    if count > MAX_ITEMS:
        raise MalformedRequest(f"a {header.api.name} request names {count} things, and may name {MAX_ITEMS}")
    return message


def _record_count(parts: list[Buffer]) -> int:
    """By the headers of their batches. What is not in order is for the reader to find, and no reason not to answer."""
    try:
        return sum(scan_run(part, 0, len(part)).record_count for part in parts)
    except CorruptBatch:
        return 0
