-- Coordinators of consumer groups: one lease per shard. All rows are there from the start and stay, so that an epoch
-- never goes back and a grant is always a change of a row that others may hold.
CREATE TABLE coordinator_leases (
    shard INTEGER NOT NULL PRIMARY KEY,
    leader_agent_id TEXT NOT NULL,
    lease_expires_at INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL
);

INSERT INTO coordinator_leases (shard, leader_agent_id, lease_expires_at, acquired_at, epoch)
WITH RECURSIVE shards (shard) AS (SELECT 0 UNION ALL SELECT shard + 1 FROM shards WHERE shard < 15)
SELECT shard, '', 0, 0, 0 FROM shards;

-- protocol: classic, consumer, or '' for a group that only commits offsets. shard: follows from the id; NULL until the
-- next load for a group that this migration found.
CREATE TABLE consumer_groups (
    group_id TEXT NOT NULL PRIMARY KEY,
    shard INTEGER,
    protocol TEXT NOT NULL,
    protocol_type TEXT NOT NULL,
    generation INTEGER NOT NULL,
    state BLOB NOT NULL,
    empty_since INTEGER
) WITHOUT ROWID;

CREATE INDEX consumer_groups_by_shard ON consumer_groups (shard);

INSERT INTO consumer_groups (group_id, shard, protocol, protocol_type, generation, state, empty_since)
SELECT group_id, NULL, '', '', 0, x'', max(committed_at) FROM group_offsets GROUP BY group_id;
