-- Times are milliseconds since 1970, topic and commit ids are UUIDs as text.

CREATE TABLE cluster (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    cluster_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE topics (
    topic_id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    partition_count INTEGER NOT NULL CHECK (partition_count > 0),
    config TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- high_watermark: the committed next offset, covered by segments up to here.
CREATE TABLE partitions (
    topic_id TEXT NOT NULL REFERENCES topics (topic_id) ON DELETE CASCADE,
    partition_id INTEGER NOT NULL,
    topic TEXT NOT NULL,
    log_start_offset INTEGER NOT NULL DEFAULT 0,
    high_watermark INTEGER NOT NULL DEFAULT 0,
    producer_state BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (topic_id, partition_id),
    UNIQUE (topic, partition_id),
    CHECK (0 <= log_start_offset AND log_start_offset <= high_watermark)
) WITHOUT ROWID;

-- A topic's objects and the ranges [base_offset, end_offset) that they hold: contiguous and disjoint.
CREATE TABLE segments (
    topic_id TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    topic TEXT NOT NULL,
    record_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    min_timestamp INTEGER NOT NULL,
    max_timestamp INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    object_key TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    commit_id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (topic_id, partition_id, base_offset),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE,
    CHECK (base_offset < end_offset)
) WITHOUT ROWID;

CREATE TABLE leader_epochs (
    topic_id TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    start_offset INTEGER NOT NULL,
    PRIMARY KEY (topic_id, partition_id, epoch),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE agents (
    agent_id TEXT NOT NULL PRIMARY KEY,
    address TEXT NOT NULL,
    availability_zone TEXT NOT NULL,
    agent_group TEXT NOT NULL,
    last_heartbeat INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;

-- A released lease keeps its row, so that an epoch never goes back.
CREATE TABLE partition_leases (
    topic TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    leader_agent_id TEXT NOT NULL,
    lease_expires_at INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (topic, partition_id)
) WITHOUT ROWID;

CREATE TABLE group_offsets (
    group_id TEXT NOT NULL,
    topic_id TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    committed_offset INTEGER NOT NULL,
    leader_epoch INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    committed_at INTEGER NOT NULL,
    PRIMARY KEY (group_id, topic_id, partition_id),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE INDEX group_offsets_by_partition ON group_offsets (topic_id, partition_id);

-- Objects that nothing refers to any more; deleted after a grace period.
CREATE TABLE garbage (
    object_key TEXT NOT NULL PRIMARY KEY,
    unreferenced_since INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX garbage_by_age ON garbage (unreferenced_since);

CREATE TABLE producer_ids (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    next_producer_id INTEGER NOT NULL
);

INSERT INTO producer_ids (singleton, next_producer_id) VALUES (1, 0);
