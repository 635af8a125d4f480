"""Kafka's error codes: number, short meaning, and whether a client may simply try again."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_RETRY: Final = True


class ErrorCode(IntEnum):
    meaning: str
    retriable: bool

    def __new__(cls, value: int, meaning: str, retriable: bool = False) -> ErrorCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        code.retriable = retriable
        return code

    UNKNOWN_SERVER_ERROR = -1, "the server failed in a way that it did not expect"
    NONE = 0, "success"
    OFFSET_OUT_OF_RANGE = 1, "the offset is outside what the log holds"
    CORRUPT_MESSAGE = 2, "the batch's checksum, size or contents are wrong", _RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "the topic or partition does not exist here", _RETRY
    INVALID_FETCH_SIZE = 4, "the fetch size is invalid"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at the moment", _RETRY
    NOT_LEADER_OR_FOLLOWER = 6, "this broker does not lead the partition", _RETRY
    REQUEST_TIMED_OUT = 7, "the request timed out", _RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, "the replica is not available", _RETRY
    MESSAGE_TOO_LARGE = 10, "the batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, "the controller moved to another broker"
    OFFSET_METADATA_TOO_LARGE = 12, "the metadata of the committed offset is too large"
    NETWORK_EXCEPTION = 13, "the server disconnected before it answered", _RETRY
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still loading", _RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "the coordinator is not available", _RETRY
    NOT_COORDINATOR = 16, "this broker is not the coordinator", _RETRY
    INVALID_TOPIC_EXCEPTION = 17, "the topic's name is not allowed"
    RECORD_LIST_TOO_LARGE = 18, "the batch is larger than a segment"
    NOT_ENOUGH_REPLICAS = 19, "too few replicas are in sync", _RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "written, but to too few replicas", _RETRY
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, "the group's generation is another one"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member shares no protocol with its group"
    INVALID_GROUP_ID = 24, "the group id is invalid"
    UNKNOWN_MEMBER_ID = 25, "the coordinator does not know the member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside the allowed range"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing: join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the committed offset's data is too large"
    TOPIC_AUTHORIZATION_FAILED = 29, "not allowed on this topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not allowed on this group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not allowed on this cluster"
    INVALID_TIMESTAMP = 32, "the record's timestamp is out of range"
    UNSUPPORTED_SASL_MECHANISM = 33, "the SASL mechanism is not supported"
    ILLEGAL_SASL_STATE = 34, "the request does not fit the state of the authentication"
    UNSUPPORTED_VERSION = 35, "the version of the API is not supported"
    TOPIC_ALREADY_EXISTS = 36, "a topic of this name exists"
    INVALID_PARTITIONS = 37, "the number of partitions is invalid"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is invalid"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replica assignment is invalid"
    INVALID_CONFIG = 40, "the configuration is invalid"
    NOT_CONTROLLER = 41, "this broker is not the controller", _RETRY
    INVALID_REQUEST = 42, "the request is malformed or does not make sense"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the message format does not support the request"
    POLICY_VIOLATION = 44, "the request is against the configured policy"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "the producer's sequence number leaves a gap"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the producer's sequence number was seen before"
    INVALID_PRODUCER_EPOCH = 47, "the producer's epoch is old"
    INVALID_TXN_STATE = 48, "the transaction's state does not allow it"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer id does not belong to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is larger than the broker allows"
    CONCURRENT_TRANSACTIONS = 51, "another operation on the same transaction is under way", _RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "the transaction coordinator was replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not allowed to use the transactional id"
    SECURITY_DISABLED = 54, "security features are disabled"
    OPERATION_NOT_ATTEMPTED = 55, "not attempted, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the storage refuses to work", _RETRY
    LOG_DIR_NOT_FOUND = 57, "there is no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "the authentication failed"
    UNKNOWN_PRODUCER_ID = 59, "nothing is known of the producer id any more"
    REASSIGNMENT_IN_PROGRESS = 60, "a partition reassignment is in progress"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are disabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, "the delegation token does not exist"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the principal neither owns nor may renew the delegation token"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation tokens cannot be requested over this channel"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not allowed on this delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the type of principal is not supported"
    NON_EMPTY_GROUP = 68, "the group has members"
    GROUP_ID_NOT_FOUND = 69, "the group does not exist"
    FETCH_SESSION_ID_NOT_FOUND = 70, "the fetch session does not exist", _RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session's epoch is another one", _RETRY
    LISTENER_NOT_FOUND = 72, "the leader has no listener like this one", _RETRY
    TOPIC_DELETION_DISABLED = 73, "topics may not be deleted"
    FENCED_LEADER_EPOCH = 74, "the leader epoch is older than the broker's", _RETRY
    UNKNOWN_LEADER_EPOCH = 75, "the leader epoch is newer than the broker's", _RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the client's version does not know the batches' compression"
    STALE_BROKER_EPOCH = 77, "the broker's epoch has changed"
    OFFSET_NOT_AVAILABLE = 78, "the high watermark has not caught up after an election", _RETRY
    MEMBER_ID_REQUIRED = 79, "join again with the member id that was given"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", _RETRY
    GROUP_MAX_SIZE_REACHED = 81, "the group is full"
    FENCED_INSTANCE_ID = 82, "another member has taken this static member's place"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no eligible leader is available", _RETRY
    ELECTION_NOT_NEEDED = 84, "no election is needed", _RETRY
    NO_REASSIGNMENT_IN_PROGRESS = 85, "no reassignment is in progress"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group is subscribed to the topic whose offsets are to be deleted"
    INVALID_RECORD = 87, "a record failed validation"
    UNSTABLE_OFFSET_COMMIT = 88, "a transaction on the offsets is still open", _RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "a quota was exceeded", _RETRY
    PRODUCER_FENCED = 90, "a newer producer has the same transactional id"
    RESOURCE_NOT_FOUND = 91, "the resource does not exist"
    DUPLICATE_RESOURCE = 92, "the request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential is not acceptable"
    INCONSISTENT_VOTER_SET = 94, "the sender or the receiver is not one of the voters"
    INVALID_UPDATE_VERSION = 95, "the update's version is invalid"
    FEATURE_UPDATE_FAILED = 96, "the features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the forwarded principal could not be read"
    SNAPSHOT_NOT_FOUND = 98, "the snapshot does not exist"
    POSITION_OUT_OF_RANGE = 99, "the position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "the topic id is not known here", _RETRY
    DUPLICATE_BROKER_REGISTRATION = 101, "the broker id is in use"
    BROKER_ID_NOT_REGISTERED = 102, "the broker id is not registered"
    INCONSISTENT_TOPIC_ID = 103, "the topic id is not the log's", _RETRY
    INCONSISTENT_CLUSTER_ID = 104, "the cluster id is another one"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "the transactional id does not exist"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixes topic ids and names", _RETRY
    INELIGIBLE_REPLICA = 107, "a replica may not be in sync"
    NEW_LEADER_ELECTED = 108, "the partition was changed, and has a new leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset is in tiered storage"
    FENCED_MEMBER_EPOCH = 110, "the member's epoch is fenced: give up all partitions and join again"
    UNRELEASED_INSTANCE_ID = 111, "another member still has this instance id"
    UNSUPPORTED_ASSIGNOR = 112, "the group does not support the assignor"
    STALE_MEMBER_EPOCH = 113, "the member's epoch is old: heartbeat, then try again"
    MISMATCHED_ENDPOINT_TYPE = 114, "sent to an endpoint of the wrong type"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "the type of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "the controller id is not known"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is not known"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than the broker accepts"
    INVALID_REGISTRATION = 119, "the broker's registration is invalid"
    TRANSACTION_ABORTABLE = 120, "the transaction failed: abort it to go on"
    INVALID_RECORD_STATE = 121, "the record's state does not allow the acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, "the share session does not exist", _RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session's epoch is another one", _RETRY
    FENCED_STATE_EPOCH = 124, "the share group's state epoch is another one"
    INVALID_VOTER_KEY = 125, "the voter's key is not the replica's"
    DUPLICATE_VOTER = 126, "already a voter"
    VOTER_NOT_FOUND = 127, "not a voter"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, "the client's metadata is too old: bootstrap again"
    STREAMS_INVALID_TOPOLOGY = 130, "the topology is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the topology's epoch is invalid"
    STREAMS_TOPOLOGY_FENCED = 132, "the topology's epoch is old"
    SHARE_SESSION_LIMIT_REACHED = 133, "there are too many share sessions", _RETRY
