"""Every API that the codec speaks: its key, its versions and its four codec functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from streamhouse.model.buffer import Buffer
from streamhouse.wire.kafka.messages import (
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
    sasl_authenticate,
    sasl_handshake,
    share_group_describe,
    streams_group_describe,
    sync_group,
)

Decode = Callable[[memoryview, int, int, int], msgspec.Struct]
"""(buffer, position, end, version) → message, or `MalformedRequest`."""
Encode = Callable[..., list[Buffer]]
"""(message of the API's own type, version) → buffers to be written in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    key: int
    name: str
    min_version: int
    max_version: int
    flexible_since: int | None
    decode_request: Decode
    encode_request: Encode
    decode_response: Decode
    encode_response: Encode

    def supports(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since


class _Messages(Protocol):
    """What a generated module offers."""

    @property
    def API_KEY(self) -> int: ...
    @property
    def MIN_VERSION(self) -> int: ...
    @property
    def MAX_VERSION(self) -> int: ...
    @property
    def FLEXIBLE_SINCE(self) -> int | None: ...
    @property
    def decode_request(self) -> Decode: ...
    @property
    def encode_request(self) -> Encode: ...
    @property
    def decode_response(self) -> Decode: ...
    @property
    def encode_response(self) -> Encode: ...


def _api(name: str, messages: _Messages) -> Api:
    return Api(
        key=messages.API_KEY,
        name=name,
        min_version=messages.MIN_VERSION,
        max_version=messages.MAX_VERSION,
        flexible_since=messages.FLEXIBLE_SINCE,
        decode_request=messages.decode_request,
        encode_request=messages.encode_request,
        decode_response=messages.decode_response,
        encode_response=messages.encode_response,
    )


APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            _api("Produce", produce),
            _api("Fetch", fetch),
            _api("ListOffsets", list_offsets),
            _api("Metadata", metadata),
            _api("OffsetCommit", offset_commit),
            _api("OffsetFetch", offset_fetch),
            _api("FindCoordinator", find_coordinator),
            _api("JoinGroup", join_group),
            _api("Heartbeat", heartbeat),
            _api("LeaveGroup", leave_group),
            _api("SyncGroup", sync_group),
            _api("DescribeGroups", describe_groups),
            _api("ListGroups", list_groups),
            _api("SaslHandshake", sasl_handshake),
            _api("ApiVersions", api_versions),
            _api("CreateTopics", create_topics),
            _api("DeleteTopics", delete_topics),
            _api("DeleteRecords", delete_records),
            _api("InitProducerId", init_producer_id),
            _api("OffsetForLeaderEpoch", offset_for_leader_epoch),
            _api("DescribeAcls", describe_acls),
            _api("CreateAcls", create_acls),
            _api("DeleteAcls", delete_acls),
            _api("DescribeConfigs", describe_configs),
            _api("AlterConfigs", alter_configs),
            _api("AlterReplicaLogDirs", alter_replica_log_dirs),
            _api("DescribeLogDirs", describe_log_dirs),
            _api("SaslAuthenticate", sasl_authenticate),
            _api("CreatePartitions", create_partitions),
            _api("CreateDelegationToken", create_delegation_token),
            _api("RenewDelegationToken", renew_delegation_token),
            _api("ExpireDelegationToken", expire_delegation_token),
            _api("DescribeDelegationToken", describe_delegation_token),
            _api("DeleteGroups", delete_groups),
            _api("ElectLeaders", elect_leaders),
            _api("IncrementalAlterConfigs", incremental_alter_configs),
            _api("AlterPartitionReassignments", alter_partition_reassignments),
            _api("ListPartitionReassignments", list_partition_reassignments),
            _api("OffsetDelete", offset_delete),
            _api("DescribeClientQuotas", describe_client_quotas),
            _api("DescribeUserScramCredentials", describe_user_scram_credentials),
            _api("DescribeQuorum", describe_quorum),
            _api("DescribeCluster", describe_cluster),
            _api("DescribeProducers", describe_producers),
            _api("DescribeTransactions", describe_transactions),
            _api("ListTransactions", list_transactions),
            _api("ConsumerGroupHeartbeat", consumer_group_heartbeat),
            _api("ConsumerGroupDescribe", consumer_group_describe),
            _api("ListConfigResources", list_config_resources),
            _api("DescribeTopicPartitions", describe_topic_partitions),
            _api("ShareGroupDescribe", share_group_describe),
            _api("StreamsGroupDescribe", streams_group_describe),
            _api("DescribeShareGroupOffsets", describe_share_group_offsets),
            _api("AlterShareGroupOffsets", alter_share_group_offsets),
            _api("DeleteShareGroupOffsets", delete_share_group_offsets),
        )
    }
)
"""Ascending by key. What a listener offers is for it to choose among these."""


def request_header_version(api: Api, version: int) -> int:
    return 2 if api.is_flexible(version) else 1


def response_header_version(api: Api, version: int) -> int:
    # A client that asks for a version which the broker lacks must still be able to read the answer (KIP-511).
    return 1 if api.is_flexible(version) and api.key != api_versions.API_KEY else 0
