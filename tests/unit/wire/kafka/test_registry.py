"""The registry: which APIs, in which versions, under which header."""

from __future__ import annotations

import pytest

from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.registry import APIS, request_header_version, response_header_version

# Apache Kafka 4.3: key → (name, first version, last stable version, first flexible version)
_KAFKA_4 = {
    0: ("Produce", 3, 13, 9),
    1: ("Fetch", 4, 18, 12),
    2: ("ListOffsets", 1, 11, 6),
    3: ("Metadata", 0, 13, 9),
    8: ("OffsetCommit", 2, 10, 8),
    9: ("OffsetFetch", 1, 10, 6),
    10: ("FindCoordinator", 0, 6, 3),
    11: ("JoinGroup", 0, 9, 6),
    12: ("Heartbeat", 0, 4, 4),
    13: ("LeaveGroup", 0, 5, 4),
    14: ("SyncGroup", 0, 5, 4),
    15: ("DescribeGroups", 0, 6, 5),
    16: ("ListGroups", 0, 5, 3),
    17: ("SaslHandshake", 0, 1, None),
    18: ("ApiVersions", 0, 4, 3),
    19: ("CreateTopics", 2, 7, 5),
    20: ("DeleteTopics", 1, 6, 4),
    21: ("DeleteRecords", 0, 2, 2),
    22: ("InitProducerId", 0, 5, 2),
    23: ("OffsetForLeaderEpoch", 2, 4, 4),
    29: ("DescribeAcls", 1, 3, 2),
    30: ("CreateAcls", 1, 3, 2),
    31: ("DeleteAcls", 1, 3, 2),
    32: ("DescribeConfigs", 1, 4, 4),
    33: ("AlterConfigs", 0, 2, 2),
    34: ("AlterReplicaLogDirs", 1, 2, 2),
    35: ("DescribeLogDirs", 1, 5, 2),
    36: ("SaslAuthenticate", 0, 2, 2),
    37: ("CreatePartitions", 0, 3, 2),
    38: ("CreateDelegationToken", 1, 3, 2),
    39: ("RenewDelegationToken", 1, 2, 2),
    40: ("ExpireDelegationToken", 1, 2, 2),
    41: ("DescribeDelegationToken", 1, 3, 2),
    42: ("DeleteGroups", 0, 2, 2),
    43: ("ElectLeaders", 0, 2, 2),
    44: ("IncrementalAlterConfigs", 0, 1, 1),
    45: ("AlterPartitionReassignments", 0, 1, 0),
    46: ("ListPartitionReassignments", 0, 0, 0),
    47: ("OffsetDelete", 0, 0, None),
    48: ("DescribeClientQuotas", 0, 1, 1),
    50: ("DescribeUserScramCredentials", 0, 0, 0),
    55: ("DescribeQuorum", 0, 2, 0),
    60: ("DescribeCluster", 0, 2, 0),
    61: ("DescribeProducers", 0, 0, 0),
    65: ("DescribeTransactions", 0, 0, 0),
    66: ("ListTransactions", 0, 2, 0),
    68: ("ConsumerGroupHeartbeat", 0, 1, 0),
    69: ("ConsumerGroupDescribe", 0, 1, 0),
    74: ("ListConfigResources", 0, 1, 0),
    75: ("DescribeTopicPartitions", 0, 0, 0),
    77: ("ShareGroupDescribe", 1, 1, 1),
    89: ("StreamsGroupDescribe", 0, 0, 0),
    90: ("DescribeShareGroupOffsets", 0, 1, 0),
    91: ("AlterShareGroupOffsets", 0, 0, 0),
    92: ("DeleteShareGroupOffsets", 0, 0, 0),
}


def test_the_codec_speaks_these_apis_in_these_versions() -> None:
    found = {key: (api.name, api.min_version, api.max_version, api.flexible_since) for key, api in APIS.items()}

    assert found == _KAFKA_4


def test_the_registry_is_in_the_order_of_keys() -> None:
    assert list(APIS) == sorted(APIS)
    assert all(api.key == key for key, api in APIS.items())


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_headers_are_flexible_from_the_first_flexible_version_on(api) -> None:  # type: ignore[no-untyped-def]
    for version in range(api.min_version, api.max_version + 1):
        flexible = api.flexible_since is not None and version >= api.flexible_since
        assert request_header_version(api, version) == (2 if flexible else 1)
        assert response_header_version(api, version) == (1 if flexible and api.name != "ApiVersions" else 0)


def test_an_api_supports_its_own_versions_only() -> None:
    produce = APIS[0]

    assert [version for version in range(-1, 20) if produce.supports(version)] == list(range(3, 14))


def test_every_error_code_has_a_number_and_a_meaning() -> None:
    assert sorted(ErrorCode) == list(range(-1, 134))
    assert all(code.meaning for code in ErrorCode)
    assert ErrorCode(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.TOPIC_ALREADY_EXISTS.retriable
