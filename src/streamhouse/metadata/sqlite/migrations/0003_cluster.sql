-- wal_end: where the partition's WAL objects end. wal_agent_id: whose own disk may hold acknowledged records that no
-- segment has yet. pinned_to: where an operator moved it. Each is '' if there is no such agent.
ALTER TABLE partitions ADD COLUMN wal_end INTEGER NOT NULL DEFAULT 0;
ALTER TABLE partitions ADD COLUMN wal_agent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE partitions ADD COLUMN pinned_to TEXT NOT NULL DEFAULT '';

-- Until now every leader had its own WAL, which may still hold what it acknowledged.
UPDATE partitions SET wal_agent_id = coalesce(
    (
        SELECT l.leader_agent_id FROM partition_leases l
        WHERE l.topic = partitions.topic AND l.partition_id = partitions.partition_id
    ),
    ''
);

-- An agent's Kafka node id is its own forever, also when it is not registered.
CREATE TABLE agent_nodes (
    agent_id TEXT NOT NULL PRIMARY KEY,
    node_id INTEGER NOT NULL UNIQUE
) WITHOUT ROWID;

-- Above every id that any agent ever had.
CREATE TABLE node_ids (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    next_node_id INTEGER NOT NULL
);

INSERT INTO node_ids (singleton, next_node_id) VALUES (1, 1);

CREATE TABLE partition_transfers (
    transfer_id TEXT NOT NULL PRIMARY KEY,
    topic_id TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    from_agent_id TEXT NOT NULL,
    to_agent_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'accepted', 'completed', 'rejected', 'failed')),
    reason TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE UNIQUE INDEX partition_transfers_under_way ON partition_transfers (topic_id, partition_id)
WHERE state IN ('pending', 'accepted');

CREATE INDEX partition_transfers_by_partition ON partition_transfers (topic_id, partition_id);
CREATE INDEX partition_transfers_by_age ON partition_transfers (created_at);

CREATE TABLE wal_objects (
    object_key TEXT NOT NULL PRIMARY KEY,
    commit_id TEXT NOT NULL UNIQUE,
    agent_id TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- What of a partition an object holds: [base_offset, end_offset), each following the one before.
CREATE TABLE wal_ranges (
    topic_id TEXT NOT NULL,
    partition_id INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    position INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    object_key TEXT NOT NULL REFERENCES wal_objects (object_key),
    PRIMARY KEY (topic_id, partition_id, base_offset),
    FOREIGN KEY (topic_id, partition_id) REFERENCES partitions (topic_id, partition_id) ON DELETE CASCADE,
    CHECK (base_offset < end_offset)
) WITHOUT ROWID;

CREATE INDEX wal_ranges_by_object ON wal_ranges (object_key);
