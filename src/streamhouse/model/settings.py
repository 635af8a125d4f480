"""Every knob of a node, frozen, with its default, its kind and its help. Parsing them from flags, variables and files
is the command line's job; here is only what they are and how they must agree."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.extras import install_hint
from streamhouse.model.topic import MAX_PARTITIONS, MAX_SEGMENT_BYTES

MIB = 2**20


class Kind(Enum):
    """How a setting is written: which decides how a flag, a variable or a TOML line is read."""

    TEXT = "text"
    SECRET = "secret"
    INTEGER = "integer"
    FLAG = "flag"
    DURATION = "duration"
    SIZE = "size"


def _setting(kind: Kind, default: Any, help_text: str) -> Any:
    return field(default=default, repr=kind is not Kind.SECRET, metadata={"kind": kind, "help": help_text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Durations are in milliseconds and sizes in bytes; optional texts are empty when not given."""

    host: str = _setting(Kind.TEXT, "127.0.0.1", "address the listeners bind to")
    kafka_port: int = _setting(Kind.INTEGER, 9092, "port of the Kafka listener; 0 picks a free one")
    http_port: int = _setting(Kind.INTEGER, 8080, "port of the HTTP listener; 0 picks a free one")
    grpc_port: int = _setting(Kind.INTEGER, 50051, "port of the gRPC listener; 0 picks a free one")
    flume_port: int = _setting(Kind.INTEGER, 9094, "port of the Flume listener; 0 picks a free one")
    advertise: str = _setting(Kind.TEXT, "", "HOST or HOST:PORT that clients are told to connect to")
    advertise_http: str = _setting(
        Kind.TEXT,
        "",
        "HOST or HOST:PORT by which commands are told to call the HTTP port; default: the host of advertise, and the"
        " port that it listens on",
    )
    http_names: str = _setting(
        Kind.TEXT,
        "",
        "names by which the HTTP port may be called, with commas between, *.NAME for all below, * for any; besides IP"
        " addresses, localhost, the host's name and what agents advertise",
    )
    data_dir: str = _setting(Kind.TEXT, "./streamhouse-data", "where the WAL, and by default everything, is kept")
    metadata: str = _setting(Kind.TEXT, "", "postgresql://…, or sqlite:///FILE; default: SQLite under the data dir")
    objects: str = _setting(
        Kind.TEXT, "", "s3://bucket/prefix, or file:///dir; default: a directory under the data dir"
    )
    s3_endpoint: str = _setting(
        Kind.TEXT, "", "S3 endpoint URL; default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS"
    )
    s3_region: str = _setting(Kind.TEXT, "", "S3 region; default: AWS_REGION, AWS_DEFAULT_REGION, or us-east-1")
    s3_access_key_id: str = _setting(Kind.TEXT, "", "S3 key id; default: AWS_ACCESS_KEY_ID")
    s3_secret_access_key: str = _setting(Kind.SECRET, "", "S3 secret; default: AWS_SECRET_ACCESS_KEY")
    s3_session_token: str = _setting(Kind.SECRET, "", "S3 session token; default: AWS_SESSION_TOKEN")
    s3_path_style: bool = _setting(Kind.FLAG, True, "address buckets by path instead of by host name")

    agent_id: str = _setting(Kind.TEXT, "", "name of this agent; default: one made and kept in the data dir")
    node_id: int = _setting(
        Kind.INTEGER, 0, "Kafka node id; 0 takes the one that the metadata store keeps for the agent"
    )
    zone: str = _setting(Kind.TEXT, "", "availability zone of this agent, which clients know as its rack")
    agent_group: str = _setting(Kind.TEXT, "default", "group of agents that share the topics of this group")
    durability: str = _setting(
        Kind.TEXT, "", "wal or object: where acknowledged records are safe; default: wal, for an agent alone object"
    )
    auto_create_topics: bool = _setting(Kind.FLAG, True, "create a topic when a client first names it")
    auto_create_delay: int = _setting(
        Kind.DURATION, 10_000, "how long after its deletion a Kafka client that names a topic does not create it again"
    )
    default_partitions: int = _setting(Kind.INTEGER, 4, "partitions of a topic whose count was not given")
    flume_partitions: int = _setting(Kind.INTEGER, 3, "the same for a topic that a Flume client names first")

    segment_bytes: int = _setting(Kind.SIZE, 1 * MIB, "upload a segment when it holds this much, up to 100MiB")
    segment_age: int = _setting(Kind.DURATION, 60_000, "upload a segment when its first record is this old")
    wal_file_bytes: int = _setting(Kind.SIZE, 64 * MIB, "size of one WAL file")
    buffer_bytes: int = _setting(Kind.SIZE, 512 * MIB, "budget for records not yet in the object store")
    partition_buffer_bytes: int = _setting(Kind.SIZE, 128 * MIB, "the same for one partition")
    tail_bytes: int = _setting(Kind.SIZE, 256 * MIB, "recently written records kept in memory after their upload")
    cache_bytes: int = _setting(Kind.SIZE, 256 * MIB, "cache of blocks read from the object store")

    max_message_bytes: int = _setting(Kind.SIZE, 1_048_588, "largest record batch, unless the topic says otherwise")
    max_request_bytes: int = _setting(Kind.SIZE, 100 * MIB, "largest request frame")
    receive_bytes: int = _setting(Kind.SIZE, 512 * MIB, "budget for requests that are partly received or wait")
    max_connections: int = _setting(Kind.INTEGER, 10_000, "connections accepted at once")
    idle_timeout: int = _setting(Kind.DURATION, 600_000, "close a connection that was silent for this long")
    request_timeout: int = _setting(
        Kind.DURATION, 30_000, "close a connection whose request, also the first, takes this long to arrive"
    )

    retention_ms: int = _setting(
        Kind.DURATION, 7 * 86_400_000, "keep records this long, unless the topic says otherwise"
    )
    retention_interval: int = _setting(Kind.DURATION, 300_000, "how often it is looked what retention has to delete")
    garbage_interval: int = _setting(Kind.DURATION, 60_000, "how often objects are removed that nothing refers to")
    garbage_grace: int = _setting(Kind.DURATION, 3_600_000, "keep objects this long after nothing refers to them")

    offsets_retention: int = _setting(Kind.DURATION, 7 * 86_400_000, "keep the offsets of an empty group this long")
    group_initial_rebalance_delay: int = _setting(Kind.DURATION, 3_000, "wait this long for a new group's members")
    group_min_session_timeout: int = _setting(Kind.DURATION, 6_000, "shortest session a classic member may ask for")
    group_max_session_timeout: int = _setting(Kind.DURATION, 1_800_000, "longest session it may ask for")
    group_consumer_session_timeout: int = _setting(Kind.DURATION, 45_000, "silence that ends a KIP-848 membership")
    group_consumer_heartbeat_interval: int = _setting(Kind.DURATION, 5_000, "how often KIP-848 members are to beat")
    group_consumer_migration_policy: str = _setting(
        Kind.TEXT,
        "bidirectional",
        "disabled, upgrade, downgrade or bidirectional: how groups change to and from KIP-848 with members in them",
    )
    group_max_size: int = _setting(Kind.INTEGER, 10_000, "members that a group may have")

    lease_ttl: int = _setting(Kind.DURATION, 30_000, "how long a partition lease lasts")
    lease_renewal: int = _setting(Kind.DURATION, 10_000, "how often leases are renewed")
    heartbeat: int = _setting(Kind.DURATION, 15_000, "how often an agent says that it is alive, give or take a third")
    liveness: int = _setting(Kind.DURATION, 60_000, "silence after which an agent is taken for dead")
    rebalance: int = _setting(Kind.DURATION, 30_000, "how often agents look who should lead what, besides at changes")
    shutdown_timeout: int = _setting(Kind.DURATION, 60_000, "how long a stop may take to flush")

    log_level: str = _setting(Kind.TEXT, "info", "debug, info, warning or error")
    log_format: str = _setting(Kind.TEXT, "text", "text or json: a line for each event in either")
    traces: bool = _setting(
        Kind.FLAG,
        False,
        f"trace some produces with OpenTelemetry, as its own variables say ({install_hint('otel')})",
    )

    def __post_init__(self) -> None:
        for name in ("default_partitions", "flume_partitions"):
            self._require(getattr(self, name) in range(1, MAX_PARTITIONS + 1), name, f"1 to {MAX_PARTITIONS}")
        self._require(1024 <= self.segment_bytes <= MAX_SEGMENT_BYTES, "segment_bytes", "1KiB to 100MiB")
        self._require(self.wal_file_bytes >= 1 * MIB, "wal_file_bytes", "at least 1MiB")
        self._require(self.segment_age >= 1, "segment_age", "at least 1ms")
        self._require(
            self.partition_buffer_bytes <= self.buffer_bytes, "partition_buffer_bytes", "at most buffer_bytes"
        )
        self._require(
            self.max_message_bytes <= self.max_request_bytes, "max_message_bytes", "at most max_request_bytes"
        )
        self._require(self.lease_renewal * 2 < self.lease_ttl, "lease_renewal", "less than half of lease_ttl")
        self._require(self.max_request_bytes <= self.receive_bytes, "receive_bytes", "at least max_request_bytes")
        self._require(self.heartbeat * 8 <= self.liveness * 3, "heartbeat", "at most three eighths of liveness")
        self._require(self.lease_ttl <= self.liveness, "liveness", "at least lease_ttl")
        self._require(self.durability in ("", "wal", "object"), "durability", "wal or object")
        for name in (
            "heartbeat",
            "rebalance",
            "max_connections",
            "idle_timeout",
            "request_timeout",
            "retention_interval",
            "garbage_interval",
            "lease_renewal",
        ):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        self._require(
            1 <= self.group_min_session_timeout <= self.group_max_session_timeout < 2**31,
            "group_min_session_timeout",
            "at most group_max_session_timeout",
        )
        self._require(
            1 <= self.group_consumer_heartbeat_interval < self.group_consumer_session_timeout,
            "group_consumer_heartbeat_interval",
            "less than group_consumer_session_timeout",
        )
        self._require(
            self.group_consumer_migration_policy in ("disabled", "upgrade", "downgrade", "bidirectional"),
            "group_consumer_migration_policy",
            "disabled, upgrade, downgrade or bidirectional",
        )
        self._require(0 <= self.node_id < 2**31, "node_id", "0 to 2147483647")
        for name in ("kafka_port", "http_port", "grpc_port", "flume_port"):
            self._require(0 <= getattr(self, name) < 65536, name, "0 to 65535")
        self._require(
            self.log_level in ("debug", "info", "warning", "error"), "log_level", "debug, info, warning or error"
        )
        self._require(self.log_format in ("text", "json"), "log_format", "text or json")

    @staticmethod
    def _require(holds: bool, name: str, rule: str) -> None:
        if not holds:
            raise InvalidConfig(f"setting {name} must be {rule}")


def setting_kinds() -> dict[str, Kind]:
    return {item.name: item.metadata["kind"] for item in fields(Settings)}
