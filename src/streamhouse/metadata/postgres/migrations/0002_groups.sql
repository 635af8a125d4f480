-- Coordinators of consumer groups: one lease per shard. All rows are there from the start and stay, so that an epoch
-- never goes back and a grant is always a change of a row that others may hold.
CREATE TABLE coordinator_leases (
    shard INTEGER PRIMARY KEY,
    leader_agent_id TEXT NOT NULL,
    lease_expires_at BIGINT NOT NULL,
    acquired_at BIGINT NOT NULL,
    epoch BIGINT NOT NULL
);

INSERT INTO coordinator_leases (shard, leader_agent_id, lease_expires_at, acquired_at, epoch)
SELECT shard, '', 0, 0, 0 FROM generate_series(0, 15) AS shard;

-- protocol: classic, consumer, or '' for a group that only commits offsets. shard: follows from the id; NULL until the
-- next load for a group that this migration found.
CREATE TABLE consumer_groups (
    group_id TEXT PRIMARY KEY,
    shard INTEGER,
    protocol TEXT NOT NULL,
    protocol_type TEXT NOT NULL,
    generation INTEGER NOT NULL,
    state BYTEA NOT NULL,
    empty_since BIGINT
);

CREATE INDEX consumer_groups_by_shard ON consumer_groups (shard);

INSERT INTO consumer_groups (group_id, shard, protocol, protocol_type, generation, state, empty_since)
SELECT group_id, NULL, '', '', 0, '', max(committed_at) FROM group_offsets GROUP BY group_id;

-- Clients send any characters as an offset's metadata, NUL among them, which a text cannot hold here.
ALTER TABLE group_offsets ALTER COLUMN metadata TYPE bytea USING convert_to(metadata, 'UTF8');
