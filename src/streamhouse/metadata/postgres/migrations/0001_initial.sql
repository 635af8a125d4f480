-- Times are milliseconds since 1970 by this server's clock.

CREATE FUNCTION now_ms() RETURNS BIGINT LANGUAGE sql VOLATILE AS
    'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

CREATE TABLE cluster (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    cluster_id TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE topics (
    topic_id UUID PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    partition_count INTEGER NOT NULL CHECK (partition_count > 0),
    config JSONB NOT NULL,
    created_at BIGINT NOT NULL
);

-- high_watermark: the committed next offset, covered by segments up to here.
CREATE TABLE partitions (
    topic_id UUID NOT NULL REFERENCES topics (topic_id) ON DELETE CASCADE,
    partition_id INTEGER NOT NULL,
    topic TEXT NOT NULL,
    log_start_offset BIGINT NOT NULL DEFAULT 0,
    high_watermark BIGINT NOT NULL DEFAULT 0,
    producer_state BYTEA NOT NULL DEFAULT '',
    PRIMARY KEY (topic_id, partition_id),
    UNIQUE (topic, partition_id),
    CHECK (0 <= log_start_offset AND log_start_offset <= high_watermark)
);

-- A topic's objects and the ranges [base_offset, end_offset) that they hold: contiguous and disjoint.
CREATE TABLE segments (
    topic_id UUID NOT NULL,
    partition_id INTEGER NOT NULL,
    base_offset BIGINT NOT NULL,
    end_offset BIGINT NOT NULL,
    topic TEXT NOT NULL,
    record_count BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    min_timestamp BIGINT NOT NULL,
    max_timestamp BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    object_key TEXT NOT NULL,
    checksum BIGINT NOT NULL,
    commit_id UUID NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (topic_id, partition_id, base_offset),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE,
    CHECK (base_offset < end_offset)
);

CREATE TABLE leader_epochs (
    topic_id UUID NOT NULL,
    partition_id INTEGER NOT NULL,
    epoch BIGINT NOT NULL,
    start_offset BIGINT NOT NULL,
    PRIMARY KEY (topic_id, partition_id, epoch),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
);

CREATE TABLE agents (
    agent_id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    availability_zone TEXT NOT NULL,
    agent_group TEXT NOT NULL,
    last_heartbeat BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    metadata JSONB NOT NULL DEFAULT '{}'
);

-- A released lease keeps its row, so that an epoch never goes back.
CREATE TABLE partition_leases (
    topic TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    leader_agent_id TEXT NOT NULL,
    lease_expires_at BIGINT NOT NULL,
    acquired_at BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    PRIMARY KEY (topic, partition_id)
);

CREATE TABLE group_offsets (
    group_id TEXT NOT NULL,
    topic_id UUID NOT NULL,
    partition_id INTEGER NOT NULL,
    committed_offset BIGINT NOT NULL,
    leader_epoch INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    committed_at BIGINT NOT NULL,
    PRIMARY KEY (group_id, topic_id, partition_id),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
);

CREATE INDEX group_offsets_by_partition ON group_offsets (topic_id, partition_id);

-- Objects that nothing refers to any more; deleted after a grace period.
CREATE TABLE garbage (
    object_key TEXT PRIMARY KEY,
    unreferenced_since BIGINT NOT NULL
);

CREATE INDEX garbage_by_age ON garbage (unreferenced_since);

CREATE TABLE producer_ids (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    next_producer_id BIGINT NOT NULL
);

INSERT INTO producer_ids (singleton, next_producer_id) VALUES (1, 0);
